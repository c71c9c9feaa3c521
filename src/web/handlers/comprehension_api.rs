//! How the agent takes what people say, as JSON addresses: a person's own words for their page, and the curves of all teachers for the
//! dashboard.

use crate::ids::RunId;
use crate::run::{Event as RunEvent, RunState};
use crate::store::StoreError;
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Path;
use crate::web::extractors::visitor::Returned;
use crate::web::handlers::events::response;
use crate::web::services::comprehension::{self, Curve, Own, Review};
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use std::mem::discriminant;
use tokio_stream::wrappers::BroadcastStream;

/// `GET /api/runs/{run}/comprehension`: how the agent takes the visitor's words. Null for who has said nothing.
#[utoipa::path(get, path = "/runs/{run}/comprehension", operation_id = "show_comprehension", tag = "teaching",
    summary = "How the agent takes the sender's own words; null for who has said nothing", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, body = Option<Own>, description = "The figures")))]
pub(crate) async fn own(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Returned(visitor): Returned,
) -> Result<axum::Json<Option<Own>>> {
    state.store.run(&run).await?;
    let Some(visitor) = visitor else { return Ok(axum::Json(None)) };
    Ok(axum::Json(Some(comprehension::own(&state, &run, visitor.teacher.id).await?)))
}

/// `GET /api/runs/{run}/comprehension/events`: [`own`] as server-sent events, now and whenever it changes. 204 where nothing can
/// change: for a run that is not alive, and for who has said nothing.
#[utoipa::path(get, path = "/runs/{run}/comprehension/events", operation_id = "stream_comprehension", tag = "teaching",
    summary = "How the agent takes the sender's own words, as server-sent events", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The stream"), (status = 204, description = "Nothing can change")))]
pub(crate) async fn events(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Returned(visitor): Returned,
) -> Result<Response> {
    state.store.run(&run).await?;
    let (Some(visitor), Some(handle)) = (visitor, state.runs.get(&run)) else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let teacher = visitor.teacher.id;
    // The channel of events is not held by the stream: it ends when the trainer lets go of its own.
    let received = BroadcastStream::new(handle.events.subscribe());
    let mut state_of_run = discriminant(&handle.status.borrow().state);
    drop(handle);
    let changes = received.filter_map(move |received| {
        let changed = match received.as_deref() {
            Ok(RunEvent::Comprehension(rows)) => rows.iter().any(|row| row.teacher == teacher),
            Ok(RunEvent::Status(status)) => {
                let before: std::mem::Discriminant<RunState> = state_of_run;
                state_of_run = discriminant(&status.state);
                before != state_of_run
            }
            Ok(_) => false,
            // Too slow: what was missed is in the store.
            Err(_) => true,
        };
        std::future::ready(changed.then_some(()))
    });
    let shared = state.clone();
    let snapshots = stream::once(std::future::ready(())).chain(changes).then(move |()| {
        let (state, run) = (shared.clone(), run.clone());
        async move {
            let own = comprehension::own(&state, &run, teacher).await.ok()?;
            let data = crate::output::json::line(&serde_json::to_value(&own).ok()?).ok()?;
            Some(Event::default().event("comprehension").data(data))
        }
    });
    Ok(response(&state, snapshots.filter_map(std::future::ready)))
}

/// `POST /api/runs/{run}/review`: the agent carries out a few of the visitor's descriptions now. The body is not read.
#[utoipa::path(post, path = "/runs/{run}/review", operation_id = "review_own", tag = "teaching",
    summary = "Lets the agent carry out a few of the sender's own descriptions", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, body = Review, description = "What it did")))]
pub(crate) async fn review(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Returned(visitor): Returned,
) -> Result<axum::Json<Review>> {
    let visitor = visitor.ok_or(StoreError::NotFound("a description of yours"))?;
    Ok(axum::Json(comprehension::review(&state, &run, &visitor).await?))
}

/// `GET /api/runs/{run}/readings`: what the agent understood before it was told, a curve a teacher.
#[utoipa::path(get, path = "/runs/{run}/readings", operation_id = "list_readings", tag = "runs",
    summary = "What the agent understood before it was told, a curve for each teacher", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, body = Vec<Curve>, description = "The curves")))]
pub(crate) async fn readings(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<axum::Json<Vec<Curve>>> {
    Ok(axum::Json(comprehension::curves(&state, &run).await?))
}
