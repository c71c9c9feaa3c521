//! A run's events as server-sent events.
//!
//! Every event carries the update that the run was at as its id. A browser that comes back sends the id it saw last and
//! is told `resync`: what happened meanwhile is in the store, so it fetches a snapshot instead of being sent a backlog.
//! A listener that is too slow for the trainer is told the same.

use super::AppState;
use super::access::Steering;
use super::chronicle::Chronicle;
use super::extract::Path;
use super::run_api::EpisodeJson;
use crate::error::{Error, Result};
use crate::run::Event as RunEvent;
use crate::task::Family;
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use serde::Serialize;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;

/// How long a browser waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// Silence after which a comment is sent, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

fn event(name: &str, update: u64, data: &impl Serialize) -> Event {
    let event = Event::default().event(name).id(update.to_string());
    // Some readers of events split at characters that JSON lets stand in a string.
    match crate::output::json::line(data) {
        Ok(data) => event.data(data),
        Err(_) => Event::default().event("resync").data("{}"),
    }
}

/// The event as it is; lines of the log come from the chronicle.
fn told(family: &dyn Family, update: u64, told: &RunEvent) -> Option<Event> {
    Some(match told {
        RunEvent::Status(status) => event("status", update, status),
        RunEvent::Point(point) => event("point", update, point),
        RunEvent::Episode(row) => event("episode", update, &EpisodeJson::of(family, row.clone())),
        RunEvent::Checkpoint(row) => event("checkpoint", update, row),
        RunEvent::Log { .. } => return None,
    })
}

/// `GET /runs/{run}/events`. 204 for a run that is not alive: browsers then do not come back.
pub(super) async fn stream(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let stored = state.store.run(&run).await?;
    let family = state.family(&stored.family).ok_or(Error::NotFound("the task family"))?;
    let Some(handle) = state.runs.get(&run) else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let received = BroadcastStream::new(handle.events.subscribe());
    let status = handle.status.clone();
    let now = status.borrow().clone();
    let mut first = vec![event("status", now.update, &now).retry(RETRY)];
    if headers.contains_key("last-event-id") {
        first.push(event("resync", now.update, &json!({})));
    }
    let mut chronicle = Chronicle::from(&now);
    let rest = received.flat_map(move |received| {
        let update = status.borrow().update;
        let events: Vec<Event> = match received {
            Ok(one) => {
                let lines = chronicle.lines(&one).into_iter();
                let lines = lines.map(|message| event("log", update, &json!({ "message": message })));
                told(family, update, &one).into_iter().chain(lines).collect()
            }
            Err(BroadcastStreamRecvError::Lagged(missed)) => {
                vec![event("resync", update, &json!({ "missed": missed }))]
            }
        };
        stream::iter(events)
    });
    // The handle's sender must not be held by the stream: it ends when the trainer lets go of its own.
    drop(handle);
    let events = stream::iter(first).chain(rest).take_until(state.shutdown.clone().cancelled_owned());
    let sse = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no"), (header::CACHE_CONTROL, "no-store")];
    Ok((unbuffered, sse).into_response())
}
