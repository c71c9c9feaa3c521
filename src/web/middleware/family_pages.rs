//! The layer around the pages that families bring: it counts work, adds the frame of a page and puts errors into words.

use crate::family::pages::{FamilyPage, PageContext, PageError, Work};
use crate::registry::AnyFamily;
use crate::web::error::Error;
use crate::web::limits::{self, standing::Standing};
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, Mutex, PoisonError};

/// The family whose routes a layer surrounds.
#[derive(Clone)]
pub(crate) struct FamilyRoutes {
    /// The state of the application.
    pub(crate) state: AppState,
    /// The family.
    pub(crate) family: &'static dyn AnyFamily,
}

impl FamilyRoutes {
    /// The state of the family's handlers.
    pub(crate) fn context(&self) -> PageContext {
        let settings = &self.state.settings;
        PageContext {
            address: format!("{}/{}", settings.base_path, self.family.name()).into(),
            pictures: settings.pictures.as_deref().map(Arc::from),
        }
    }
}

#[derive(Template)]
#[template(path = "family.html")]
struct FramedPage {
    page: Page,
    family: &'static dyn AnyFamily,
    title: String,
    html: String,
}

/// Serves a family's address.
pub(crate) async fn serve(
    State(FamilyRoutes { state, family }): State<FamilyRoutes>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let frame = Page::of(&state, &parts);
    let refused: Arc<Mutex<Option<Standing>>> = Arc::default();
    if let Some((client, limits)) = limits::of(&parts) {
        let refused = refused.clone();
        parts.extensions.insert(Work::counted(move || match limits.charge_family_work(family.name(), client) {
            Ok(()) => true,
            Err(standing) => {
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(standing);
                false
            }
        }));
    }
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(error) = response.extensions_mut().remove::<PageError>() {
        let standing = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        return match (error, standing) {
            (PageError::TooMuchWork, Some(standing)) => Error::TooMany(Box::new(standing)),
            (PageError::NotFound(what), _) => Error::NotFound(what),
            (PageError::Unreadable(why), _) => Error::Unreadable(why),
            (error, _) => Error::FamilyPage(error),
        }
        .into_response();
    }
    match response.extensions_mut().remove::<FamilyPage>() {
        Some(FamilyPage { title, html }) => page::html(&FramedPage { page: frame, family, title, html }),
        None => response,
    }
}
