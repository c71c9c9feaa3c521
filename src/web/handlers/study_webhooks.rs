//! The messages that a study sends to a program of its researchers: a test, another try, and the key of their signatures.

use crate::ids::StudyId;
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::actor::Actor;
use crate::web::extractors::cookie::new_token;
use crate::web::extractors::input::{Form, Path};
use crate::web::handlers::studies::{self, Said};
use crate::web::page::Page;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

fn back(page: &Page, id: &StudyId) -> Response {
    Redirect::to(&page.url(&format!("{}#webhooks", studies::admin_path(id)))).into_response()
}

/// `POST /studies/{study}/webhooks/test`: queues a message that tells nothing.
pub(crate) async fn test(
    actor: Actor,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
) -> Result<Response> {
    state.store.queue_webhook_test(&id, &actor.name).await?;
    Ok(back(&page, &id))
}

/// `POST /studies/{study}/webhooks/{message}/retry`: tries a message again that was given up.
pub(crate) async fn retry(
    _: Steering,
    State(state): State<AppState>,
    Path((id, message)): Path<(StudyId, i64)>,
    page: Page,
) -> Result<Response> {
    state.store.retry_webhook(&id, message).await?;
    Ok(back(&page, &id))
}

/// Body of the buttons about the key.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    renew: Option<String>,
}

/// `POST /studies/{study}/webhooks/secret`: shows the key of the signatures on this one page, perhaps a new one.
pub(crate) async fn secret(
    actor: Actor,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    headers: HeaderMap,
    uri: Uri,
    Form(wanted): Form<Wanted>,
) -> Result<Response> {
    if wanted.renew.is_some() {
        state.store.renew_webhook_secret(&id, &new_token()?, &actor.name).await?;
    }
    let secret = state.store.show_webhook_secret(&id, &actor.name).await?;
    let said = Said { secret: Some(secret), ..Said::default() };
    studies::overview(&state, page, &id, &studies::origin(&state, &headers, &uri), said).await
}
