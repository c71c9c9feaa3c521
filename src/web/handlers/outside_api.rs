//! The addresses of an agent that lives in another program: it posts executions, and gets what people say about them.

use crate::ids::{AnswerId, RunId};
use crate::import::episodes::NewExecution;
use crate::launch::NewOutsideRun;
use crate::protocol::evaluation::rate;
use crate::registry::{HousesElsewhere, OUTSIDE};
use crate::run::{Command, Event as RunEvent, Point, RunState};
use crate::store::{PostedExecution, UpdateRecord};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::account::SteeringSession;
use crate::web::extractors::input::{Json, Path, Query};
use crate::web::handlers::events::{response, until_signed_out};
use crate::web::page::run_view::RunView;
use crate::web::services::launching;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::response::sse::Event;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};

/// Most executions of one request.
const MOST_EXECUTIONS: usize = 100;

/// Descriptions that are read from the store at once, and that may wait for a slow reader.
const AT_ONCE: u64 = 100;
const WAITING: usize = 64;

/// How often a stream looks into the store, beside whenever an answer comes.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The new run.
#[derive(Serialize, ToSchema)]
pub(crate) struct OutsideRun {
    /// Key of the run.
    id: RunId,
}

/// `POST /api/v1/outside-runs`: starts a run whose agent lives in another program.
#[utoipa::path(post, path = "/outside-runs", operation_id = "create_outside_run", tag = "outside agents",
    summary = "Starts a run whose agent lives in another program", description = "",
    request_body = NewOutsideRun, responses((status = 201, body = OutsideRun, description = "The run was started")))]
pub(crate) async fn create(
    _: Steering,
    State(state): State<AppState>,
    Json(wish): Json<NewOutsideRun>,
) -> Result<(StatusCode, axum::Json<OutsideRun>)> {
    let id = launching::start_outside(&state, wish).await?;
    Ok((StatusCode::CREATED, axum::Json(OutsideRun { id })))
}

/// Body of `POST …/executions`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewExecutions {
    /// 1 to 100 executions. All of them are stored, or none.
    #[schema(min_items = 1, max_items = 100)]
    executions: Vec<NewExecution>,
}

/// The executions as they were stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct PostedExecutions {
    /// Keys and episodes, in the order of the request.
    executions: Vec<PostedExecution>,
}

/// The run, if its agent lives elsewhere and it takes executions and updates.
pub(crate) async fn open_run(state: &AppState, run: &RunId) -> Result<RunView> {
    let view = RunView::load(state, run).await?;
    if view.run.family != OUTSIDE {
        return Err(Error::conflict("not-outside", "The agent of this run lives in this server."));
    }
    if view.ended() {
        return Err(Error::conflict("ended", "This run has ended. Resume it, or start another one."));
    }
    if view.status.state == RunState::Paused {
        return Err(Error::conflict("paused", "This run is paused. Wait until it is resumed."));
    }
    Ok(view)
}

/// Tells the run's host to read its figures anew.
pub(crate) fn tell_host(state: &AppState, run: &RunId, point: Option<Point>) {
    if let Some(handle) = state.runs.get(run) {
        if let Some(point) = point {
            let _ = handle.events.send(Arc::new(RunEvent::Point(point)));
        }
        let _ = handle.commands.send(Command::DescriptionArrived);
    }
}

/// `POST /api/v1/runs/{run}/executions`: offers executions to people.
#[utoipa::path(post, path = "/runs/{run}/executions", operation_id = "post_executions", tag = "outside agents",
    summary = "Offers executions of an outside agent to people", description = "",
    params(("run" = String, Path, description = "Key of the run")), request_body = NewExecutions,
    responses((status = 201, body = PostedExecutions, description = "All of them are stored")))]
pub(crate) async fn post_executions(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Json(NewExecutions { executions }): Json<NewExecutions>,
) -> Result<(StatusCode, axum::Json<PostedExecutions>)> {
    open_run(&state, &run).await?;
    if executions.is_empty() || executions.len() > MOST_EXECUTIONS {
        return Err(Error::change("execution", format!("Send 1 to {MOST_EXECUTIONS} executions at once.")));
    }
    // Houses of walks are made anew, which takes a while.
    let executions: Result<Vec<_>, String> = tokio::task::spawn_blocking(move || {
        let mut houses = HousesElsewhere::default();
        executions.into_iter().map(|execution| execution.checked(&mut houses)).collect()
    })
    .await
    .map_err(|error| Error::Panic(error.to_string()))?;
    let executions = executions.map_err(|sentence| Error::change("execution", sentence))?;
    let executions = state.store.offer_outside(&run, &executions).await?;
    tell_host(&state, &run, None);
    Ok((StatusCode::CREATED, axum::Json(PostedExecutions { executions })))
}

/// A result of a test.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestResult {
    /// Requests that the agent did right.
    right: u64,
    /// Requests of the test.
    of: u64,
}

/// Body of `POST …/updates`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUpdate {
    /// Number of the update, as the program counts: from 1, and larger each time.
    update: u64,
    /// The descriptions that it learned from, in their order. None of them can be undone from now on.
    #[serde(default)]
    descriptions: Vec<AnswerId>,
    /// The result of a test of the agent after the update.
    validation: Option<TestResult>,
    /// Seconds that the agent has trained by then.
    #[serde(default)]
    seconds: f64,
}

/// `POST /api/v1/runs/{run}/updates`: says what the agent has learned from.
#[utoipa::path(post, path = "/runs/{run}/updates", operation_id = "post_update", tag = "outside agents",
    summary = "Says which descriptions an outside agent has learned from",
    description = "Teachers and dashboards then see it, and these descriptions can no longer be undone. Sending the same \
        update twice changes nothing. 409 `superseded` when one of them was undone meanwhile: learn without it.",
    params(("run" = String, Path, description = "Key of the run")), request_body = NewUpdate,
    responses((status = 200, body = Point, description = "The point of the learning curves that the update makes")))]
pub(crate) async fn post_update(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Json(new): Json<NewUpdate>,
) -> Result<axum::Json<Point>> {
    open_run(&state, &run).await?;
    let right = new.validation.is_none_or(|test| test.of > 0 && test.right <= test.of);
    if new.update == 0 || !right || !new.seconds.is_finite() || new.seconds < 0.0 {
        return Err(Error::change(
            "update",
            "Updates are counted from 1, a test has at least as many requests as were right, and seconds are a positive number.",
        ));
    }
    let record = UpdateRecord { update: new.update, data: json!({}), answers: new.descriptions };
    state.store.record_update(&run, &record).await?;
    let point = Point {
        update: new.update,
        episodes: state.store.execution_count(&run).await?,
        descriptions: state.store.standing(&run).await?.people,
        seconds: new.seconds,
        validation: new.validation.map(|test| rate(test.right, test.of)),
        ..Point::default()
    };
    state.store.record_points(&run, std::slice::from_ref(&point)).await?;
    tell_host(&state, &run, Some(point.clone()));
    Ok(axum::Json(point))
}

/// Query of the stream of descriptions.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// Key of the last description that the program has. `Last-Event-ID` takes its place when a connection was lost.
    after: Option<AnswerId>,
}

/// `GET /api/v1/runs/{run}/descriptions/events`: what people say, as it comes.
#[utoipa::path(get, path = "/runs/{run}/descriptions/events", operation_id = "stream_descriptions", tag = "descriptions",
    summary = "What people say about a run's executions, as it comes",
    description = "Server-sent events named `description`, whose `id` is the key of the description and whose `data` is the \
        description as the list has it. The stream begins after `Last-Event-ID` or `after`, and with the first one without either.",
    params(("run" = String, Path, description = "Key of the run"), After,
        ("Last-Event-ID" = Option<i64>, Header, description = "Key of the last description that the program has")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The stream")))]
pub(crate) async fn events(
    SteeringSession(let_in): SteeringSession,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Result<Response> {
    let run = state.store.run(&run).await?.id;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let after = last.or(after).unwrap_or_default();
    let (sender, receiver) = mpsc::channel(WAITING);
    let shared = state.clone();
    tokio::spawn(async move {
        let gone = sender.clone();
        tokio::select! {
            () = follow(&shared, &run, after, &sender) => {}
            () = gone.closed() => {}
        }
    });
    let told = ReceiverStream::new(receiver).take_until(until_signed_out(state.store.clone(), let_in));
    Ok(response(&state, told))
}

/// Sends the descriptions of a run from a key on, until nobody reads any more.
async fn follow(state: &AppState, run: &RunId, mut after: AnswerId, sender: &mpsc::Sender<Event>) {
    let mut answers = state.runs.answers();
    loop {
        answers.mark_unchanged();
        match state.store.descriptions(run, after, AT_ONCE).await {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                for one in found {
                    after = one.id;
                    let event = Event::default().event("description").id(one.id.to_string());
                    let data = serde_json::to_value(&one).ok().and_then(|data| crate::output::json::line(&data).ok());
                    let Some(data) = data else { continue };
                    if sender.send(event.data(data)).await.is_err() {
                        return;
                    }
                }
                continue;
            }
            Err(error) => tracing::debug!(%run, %error, "the descriptions of a run were not read"),
        }
        let _ = tokio::time::timeout(ASK_AGAIN, answers.changed()).await;
    }
}
