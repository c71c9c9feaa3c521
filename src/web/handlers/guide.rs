//! The first visit: one example with good and poor descriptions, and why. Shown once, and again when asked for.

use crate::ids::RunId;
use crate::web::error::{Error, Problem, Result};
use crate::web::extractors::input::Path;
use crate::web::extractors::visitor::{Guest, KnownVisitor};
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page, guide};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};

/// `GET /teach/{run}/guide`.
pub(crate) async fn page(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let seen = visitor.is_some_and(|visitor| visitor.teacher.seen_guide);
    guide::show(page, view, !seen)
}

/// In the place of the page that cannot come, because the browser keeps its cookie to itself.
#[derive(Template)]
#[template(path = "no_cookie.html")]
struct NoCookiePage {
    page: Page,
    problem: Problem,
    run: RunId,
}

/// `POST /teach/{run}/guide`: understood; on to teaching. A browser that does not return the cookie would be led back to
/// the guide for ever: it is told what is the matter instead.
pub(crate) async fn seen(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
    visitor: Result<KnownVisitor>,
    headers: HeaderMap,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    match visitor {
        Ok(KnownVisitor(visitor)) => {
            state.store.set_seen_guide(visitor.teacher.id).await?;
            Ok(Redirect::to(&page.url(&format!("/teach/{}", format::encode(&view.run.id)))).into_response())
        }
        Err(Error::NoCookie) if accepts_html(&headers) => {
            let page = NoCookiePage { page, problem: Error::NoCookie.problem(), run };
            Ok((StatusCode::FORBIDDEN, page::html(&page)).into_response())
        }
        Err(error) => Err(error),
    }
}

fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}
