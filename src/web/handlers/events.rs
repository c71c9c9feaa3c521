//! Runs' events as server-sent events: one run at its own address, or several in one stream.
//!
//! A browser opens six connections a host at most, so its pages share one stream of all the runs they show
//! ([`shared`]). Programs that follow one run have it simpler ([`stream`]).
//!
//! Every event carries the update that the run was at as its id. A client that comes back sends the id it saw last and
//! is told `resync`: what happened meanwhile is in the store, so it fetches a snapshot instead of being sent a backlog.
//! A listener that is too slow for the trainer is told the same.

use crate::ids::RunId;
use crate::registry::AnyFamily;
use crate::run::{Event as RunEvent, RunHandle, Status};
use crate::store::{Role, Store};
use crate::web::error::{Error, Result};
use crate::web::extractors::account::{LetIn, SteeringSession};
use crate::web::extractors::input::{Path, Query};
use crate::web::page::episode::EpisodeJson;
use crate::web::state::AppState;
use crate::web::state::run_log::LogWriter;
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::wrappers::{BroadcastStream, ReceiverStream};

/// How long a browser waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// Silence after which a comment is sent, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often a stream looks whether the session of its reader still stands, beside whenever a session ends.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// Most runs that one stream carries.
const MOST_RUNS: usize = 64;

/// Events of a shared stream that may wait for a slow client before its runs are told to resync.
const WAITING: usize = 64;

/// An event of a run, before it is written for a stream.
struct Told {
    name: &'static str,
    update: u64,
    data: Value,
}

impl Told {
    fn new(name: &'static str, update: u64, data: &impl Serialize) -> Told {
        match serde_json::to_value(data) {
            Ok(data) => Told { name, update, data },
            Err(_) => Told { name: "resync", update, data: json!({}) },
        }
    }

    /// As an event of the run's own stream.
    fn alone(&self) -> Event {
        self.event(&self.data)
    }

    /// As an event of a stream that several runs share.
    fn tagged(&self, run: &RunId) -> Event {
        self.event(&json!({ "run": run, "data": self.data }))
    }

    fn event(&self, data: &Value) -> Event {
        let event = Event::default().event(self.name).id(self.update.to_string());
        // Some readers of events split at characters that JSON lets stand in a string.
        match crate::output::json::line(data) {
            Ok(data) => event.data(data),
            Err(_) => Event::default().event("resync").data("{}"),
        }
    }
}

/// Everything that a run tells from now on; its first word is the status. It ends when the trainer of that time has let
/// go or another takes its place.
fn follow(family: &'static dyn AnyFamily, handle: &RunHandle, again: bool) -> impl Stream<Item = Told> + Send + use<> {
    let received = BroadcastStream::new(handle.events.subscribe());
    let status = handle.status.clone();
    let now: Status = status.borrow().clone();
    let mut first = vec![Told::new("status", now.update, &now)];
    if again {
        first.push(Told::new("resync", now.update, &json!({})));
    }
    let mut writer = LogWriter::from(&now);
    let rest = received.flat_map(move |received| {
        let update = status.borrow().update;
        let told: Vec<Told> = match received {
            Ok(one) => {
                let lines = writer.lines(&one).into_iter();
                let lines = lines.map(|message| Told::new("log", update, &json!({ "message": message })));
                told(family, update, &one).into_iter().chain(lines).collect()
            }
            Err(BroadcastStreamRecvError::Lagged(missed)) => {
                vec![Told::new("resync", update, &json!({ "missed": missed }))]
            }
        };
        stream::iter(told)
    });
    stream::iter(first).chain(rest)
}

/// The event as it is; the lines of the log come from the log writer.
fn told(family: &dyn AnyFamily, update: u64, told: &RunEvent) -> Option<Told> {
    Some(match told {
        RunEvent::Status(status) => Told::new("status", update, status),
        RunEvent::Point(point) => Told::new("point", update, point),
        RunEvent::Episode(row) => Told::new("episode", update, &EpisodeJson::of(family, row.clone())),
        RunEvent::Checkpoint(row) => Told::new("checkpoint", update, row),
        RunEvent::Comprehension(rows) => Told::new("comprehension", update, rows),
        RunEvent::Evaluating { split, done, of, seconds_left } => Told::new(
            "evaluating",
            update,
            &json!({ "split": split, "done": done, "of": of, "seconds_left": seconds_left }),
        ),
        RunEvent::Log { .. } => return None,
    })
}

/// Server-sent events until the server ends.
pub(crate) fn response(state: &AppState, events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = events.enumerate().map(|(i, event)| if i == 0 { event.retry(RETRY) } else { event });
    let events = events.take_until(state.shutdown.clone().cancelled_owned());
    let sse = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no"), (header::CACHE_CONTROL, "no-store")];
    (unbuffered, sse).into_response()
}

/// Waits until the session or the token that lets a stream's reader in has ended. A stream that something else lets in goes on.
pub(crate) async fn until_signed_out(store: Store, let_in: LetIn) {
    let mut changes = store.account_changes();
    loop {
        changes.mark_unchanged();
        // A failed lookup is repeated the next time.
        let stands = match let_in {
            LetIn::Always => return std::future::pending().await,
            LetIn::Session(session) => {
                store.role_in_session(session).await.map_or(true, |role| role.is_some_and(Role::steers))
            }
            LetIn::Program(token) => store.api_token_stands(token).await.unwrap_or(true),
        };
        if !stands {
            return;
        }
        // Sessions also end by time, and by commands on the machine.
        let _ = tokio::time::timeout(ASK_AGAIN, changes.changed()).await;
    }
}

/// The events of a run, for the document.
const EVENTS: &str = "Events have a name and JSON as data:\n\n\
    - `status`: the run's status, as `status` of `GET /runs/{run}`; it is the first one\n\
    - `point`: a point of the learning curves, as in the list of points\n\
    - `episode`: an episode that ended, as in the list of episodes; at most a few a second are told\n\
    - `checkpoint`: a checkpoint that was written, as in the list of checkpoints\n\
    - `comprehension`: a list of descriptions with how the agent took them, before an update learned from them and after\n\
    - `evaluating`: the agent is being tested: `split`, `done` and `of` tasks, `seconds_left` or null\n\
    - `log`: a `message`, as in `log` of `GET /runs/{run}`\n\
    - `resync`: events were missed; read the run and its lists again\n\n\
    The `id` of an event is the update that the run was at. A client that comes back with `Last-Event-ID`, as browsers do by \
    themselves, or that read too slowly, gets `resync`: what happened meanwhile is in the lists, and a list with the cursor of its last \
    page gives what came since. The stream ends when the server does.";

/// `GET /api/v1/runs/{run}/events`. 204 for a run that is not alive: browsers then do not come back.
#[utoipa::path(get, path = "/runs/{run}/events", operation_id = "stream_run", tag = "runs",
    summary = "What happens in a run, as server-sent events", description = EVENTS,
    params(("run" = String, Path, description = "Key of the run"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that the client had")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The stream"),
        (status = 204, description = "The run is not alive")))]
pub(crate) async fn stream(
    SteeringSession(session): SteeringSession,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    headers: HeaderMap,
) -> Result<Response> {
    let stored = state.store.run(&run).await?;
    let family = state.family(&stored.family).ok_or(Error::NotFound("the task family"))?;
    let Some(handle) = state.runs.get(&run) else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    // The handle's sender is not held by the stream: it ends when the trainer lets go of its own.
    let told = follow(family, &handle, headers.contains_key("last-event-id"));
    let told = told.map(|told| told.alone()).take_until(until_signed_out(state.store.clone(), session));
    Ok(response(&state, told))
}

/// Query of [`shared`].
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Keys of 1 to 64 runs, with commas between them.
    #[serde(default)]
    runs: String,
}

/// `GET /api/v1/events?runs=a,b`: the events of several runs in one stream, each as `{"run": …, "data": …}`. It outlives them: a
/// run that has no trainer is told as `absent`, and one that comes alive begins with its status and `resync`.
#[utoipa::path(get, path = "/events", operation_id = "stream_runs", tag = "runs",
    summary = "What happens in several runs, in one stream of server-sent events",
    description = "The events are those of each run's own stream, and say whose they are: `{\"run\": …, \"data\": …}`. A run that has no \
        trainer in this process is told as `absent`; when it comes alive, its `status` and `resync` follow in the same stream.",
    params(Wanted, ("Last-Event-ID" = Option<u64>, Header, description = "The id of the last event that the client had")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The stream")))]
pub(crate) async fn shared(
    SteeringSession(session): SteeringSession,
    State(state): State<AppState>,
    Query(Wanted { runs }): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response> {
    let mut wanted: Vec<RunId> = runs.split(',').filter(|run| !run.is_empty()).map(RunId::from).collect();
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() || wanted.len() > MOST_RUNS {
        let sentence = format!("Name 1 to {MOST_RUNS} runs, with commas between them: /api/v1/events?runs=a,b.");
        return Err(Error::change("runs", sentence));
    }
    let mut followed = Vec::new();
    for run in wanted {
        let stored = state.store.run(&run).await?;
        followed.push((stored.id, state.family(&stored.family).ok_or(Error::NotFound("the task family"))?));
    }
    let (sender, receiver) = mpsc::channel(WAITING);
    let again = headers.contains_key("last-event-id");
    for (run, family) in followed {
        let (state, sender) = (state.clone(), sender.clone());
        tokio::spawn(async move {
            let gone = sender.clone();
            tokio::select! {
                () = follow_lives(&state, &run, family, again, &sender) => {}
                // The client has left, or the server ends: nobody reads any more.
                () = gone.closed() => {}
            }
        });
    }
    let told = ReceiverStream::new(receiver).take_until(until_signed_out(state.store.clone(), session));
    Ok(response(&state, told))
}

/// Tells of a run through all the trainers it has, one after the other.
async fn follow_lives(
    state: &AppState,
    run: &RunId,
    family: &'static dyn AnyFamily,
    mut again: bool,
    sender: &mpsc::Sender<Event>,
) {
    let mut changes = state.runs.changes();
    loop {
        changes.mark_unchanged();
        let Some(handle) = state.runs.get(run) else {
            if sender.send(Told::new("absent", 0, &json!({})).tagged(run)).await.is_err() {
                return;
            }
            again = true;
            while state.runs.get(run).is_none() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
            continue;
        };
        let mut told = std::pin::pin!(follow(family, &handle, again));
        // The status channel identifies this trainer without keeping its channel of events open.
        let status = handle.status.clone();
        drop(handle);
        again = true;
        loop {
            tokio::select! {
                one = told.next() => match one {
                    Some(one) if sender.send(one.tagged(run)).await.is_ok() => {}
                    Some(_) => return,
                    None => break,
                },
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    if state.runs.get(run).is_none_or(|now| !now.status.same_channel(&status)) {
                        break;
                    }
                }
            }
        }
    }
}
