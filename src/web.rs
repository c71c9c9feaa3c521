//! The web application: the teachers' room, the researchers' room, and the JSON that both are made of.
//!
//! Handlers never touch tensors: they send [`crate::run::Command`]s, read [`crate::run::Status`] and
//! [`crate::run::Event`]s, and talk to the [`Store`]. A handler's file holds its template struct, the handler and its
//! tests. `docs/http-api.md` lists every address.
//!
//! Layers, outermost first: request number and log span, who is asking, security headers, rendering of errors, cookies of
//! new visitors, compression, panics, limits of how often, the same-site check, the body; a time limit lies on everything
//! but event streams and exports. Below all of them is the listener, with limits on connections.

mod access;
mod answers;
mod assets;
mod chronicle;
mod docs;
mod events;
mod export;
mod extract;
mod guide;
mod home;
mod intake;
mod launch_api;
mod layers;
pub(crate) mod limits;
pub mod listener;
mod nav;
mod page;
mod run_api;
mod run_page;
mod run_view;
mod runs_page;
mod teach;
mod teach_api;
mod teaching;
mod undo;
mod visitor;

pub use assets::vendor_files;

use crate::registry::AnyFamily;
use crate::run::{Event, Launcher, RunHandle};
use crate::store::Store;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use limits::Limits;
use listener::ConnectionLimits;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

/// Largest body a request may have. A description of 5,000 characters in any script fits with room to spare.
pub const BODY_LIMIT: usize = 64 * 1024;

/// Most characters (Unicode scalar values) an answer may have.
pub const TEXT_LIMIT: usize = 5_000;

/// How long an ordinary request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// How long open connections may take to end after shutdown was asked for.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(8);

/// Log lines kept per run for people who open the dashboard later.
const LOG_LINES: usize = 200;

/// How the web application is set up; does not change while the server runs.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Path in front of every address, without a slash at its end: `""` or `"/iliad"`. A proxy may strip it or pass it on.
    pub base_path: String,
    /// Token that opens the researchers' pages to people who are not on this machine. `None`: nobody else may steer.
    pub access_token: Option<String>,
    /// Whether a browser on this machine may steer without the token: the listener is bound to a loopback address and no
    /// proxy is configured. Never so where a token is set or a proxy is trusted.
    pub loopback: bool,
    /// Whether a proxy stands in front whose `X-Forwarded-Host` and `X-Forwarded-Proto` are to be believed.
    pub trust_proxy: bool,
    /// How long an execution is a teacher's unless the page renews it.
    pub lease_ttl: Duration,
    /// Folder of photographs of real houses: `{house}/{viewpoint}.jpg`, equirectangular.
    pub panoramas: Option<PathBuf>,
    /// How many connections there may be, and how long they may take.
    pub connections: ConnectionLimits,
    /// Whether visitors are kept from doing things too often.
    pub rate_limits: bool,
}

impl Default for WebSettings {
    fn default() -> Self {
        WebSettings {
            base_path: String::new(),
            access_token: None,
            loopback: true,
            trust_proxy: false,
            lease_ttl: Duration::from_secs(180),
            panoramas: None,
            connections: ConnectionLimits::default(),
            rate_limits: true,
        }
    }
}

/// Everything a handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The database.
    pub store: Store,
    /// The registered task families.
    pub families: &'static [&'static dyn AnyFamily],
    /// The runs that are alive in this process.
    pub runs: Runs,
    /// What starts runs; `None` where this process cannot.
    pub launcher: Option<Arc<dyn Launcher>>,
    /// Settings.
    pub settings: Arc<WebSettings>,
    /// Cancelled when the server is to end; event streams end with it.
    pub shutdown: CancellationToken,
}

impl AppState {
    /// The family called `name`.
    pub fn family(&self, name: &str) -> Option<&'static dyn AnyFamily> {
        self.families.iter().copied().find(|family| family.name() == name)
    }
}

/// A line of a run's log with the time it was told.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LogLine {
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The sentence.
    pub message: String,
}

type Log = Arc<Mutex<Kept>>;

/// The last lines of a run's log, and what the next ones depend on.
#[derive(Default)]
struct Kept {
    lines: VecDeque<LogLine>,
    chronicle: chronicle::Chronicle,
}

fn keep(log: &Log, event: &Event) {
    let mut kept = log.lock().unwrap_or_else(PoisonError::into_inner);
    for message in kept.chronicle.lines(event) {
        kept.lines.push_back(LogLine { at: OffsetDateTime::now_utc(), message });
        if kept.lines.len() > LOG_LINES {
            kept.lines.pop_front();
        }
    }
}

#[derive(Default)]
struct Living {
    handles: BTreeMap<String, RunHandle>,
    logs: BTreeMap<String, Log>,
    /// Runs that could not go on, with the reason.
    refused: BTreeMap<String, String>,
    /// Told whenever a run comes or goes.
    changed: watch::Sender<()>,
}

/// The runs alive in this process. Runs come and go while the server is up; clones share one map.
#[derive(Clone, Default)]
pub struct Runs(Arc<RwLock<Living>>);

impl Runs {
    /// Begins to keep the log of a run that is about to start (or goes on with one there is): give every event of the
    /// run to what this returns. A subscriber that comes after the start would miss the first lines.
    pub fn keep_log(&self, id: &str) -> impl Fn(&Event) + Send + use<> {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let log = living.logs.entry(id.to_owned()).or_default().clone();
        move |event| keep(&log, event)
    }

    /// Adds a run (replacing one of the same id). Unless [`Runs::keep_log`] does so already, its log is kept from here
    /// on. Call it within a Tokio runtime.
    pub fn add(&self, handle: RunHandle) {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let id = handle.id.to_string();
        if !living.logs.contains_key(&id) {
            let log = living.logs.entry(id.clone()).or_default().clone();
            let mut events = handle.events.subscribe();
            tokio::spawn(async move {
                loop {
                    match events.recv().await {
                        Ok(event) => keep(&log, &event),
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => break,
                    }
                }
            });
        }
        living.refused.remove(&id);
        living.handles.insert(id, handle);
        living.changed.send_replace(());
    }

    /// Remembers why a stored run could not go on, so that its pages say so: a sentence for people.
    pub fn refuse(&self, id: &str, reason: String) {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let log = living.logs.entry(id.to_owned()).or_default().clone();
        keep(&log, &Event::Log { message: reason.clone() });
        living.refused.insert(id.to_owned(), reason);
        living.changed.send_replace(());
    }

    /// Why a run that is not alive could not go on when it was last tried.
    pub fn refusal(&self, id: &str) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).refused.get(id).cloned()
    }

    /// Tells when a run comes or goes.
    fn changes(&self) -> watch::Receiver<()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).changed.subscribe()
    }

    /// Removes a run; its pages then show what the store has of it.
    pub fn remove(&self, id: &str) {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        living.handles.remove(id);
        living.logs.remove(id);
        living.changed.send_replace(());
    }

    /// The runs that are alive or could not go on.
    pub fn ids(&self) -> Vec<String> {
        let living = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let refused = living.refused.keys().filter(|id| !living.handles.contains_key(*id));
        living.handles.keys().chain(refused).cloned().collect()
    }

    /// The handle of a live run.
    pub fn get(&self, id: &str) -> Option<RunHandle> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).handles.get(id).cloned()
    }

    /// The kept log of a run, oldest first; empty when nothing was told since the server started.
    pub fn log(&self, id: &str) -> Vec<LogLine> {
        let living = self.0.read().unwrap_or_else(PoisonError::into_inner);
        living
            .logs
            .get(id)
            .map(|log| log.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect())
            .unwrap_or_default()
    }
}

/// `GET /healthz`.
async fn healthz() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "status": "ok" }))
}

/// Every address, without the layers.
fn routes() -> Router<AppState> {
    let ordinary = Router::new()
        .route("/", get(home::home))
        .route("/healthz", get(healthz))
        .route("/static/{*path}", get(assets::asset))
        .route("/access", get(access::form).post(access::enter))
        .route("/access/leave", post(access::leave))
        .route("/docs", get(docs::index))
        .route("/docs/{*page}", get(docs::page))
        .route("/licence", get(docs::licence))
        .route("/teach/{run}", get(teach::page).post(teach::send))
        .route("/teach/{run}/guide", get(guide::page).post(guide::seen))
        .route("/teach/{run}/answers", get(answers::page))
        .route("/teach/{run}/answers/{answer}", post(answers::correct))
        .route("/teach/{run}/answers/{answer}/undo", post(undo::plain))
        .route("/runs", get(runs_page::page).post(runs_page::create))
        .route("/runs/{run}", get(run_page::page))
        .route("/runs/{run}/go-on", post(runs_page::go_on))
        .route("/nav/houses/{name}", get(nav::page))
        .route("/nav/houses/{name}/house.json", get(nav::geometry))
        .route("/nav/panoramas/{house}", get(nav::panoramas))
        .route("/nav/panoramas/{house}/{viewpoint}", get(nav::panorama))
        .route("/api/presets", get(launch_api::presets))
        .route("/api/runs", get(run_api::list).post(launch_api::create))
        .route("/api/runs/{run}/go-on", post(launch_api::go_on))
        .route("/api/runs/{run}", get(run_api::status))
        .route("/api/runs/{run}/points", get(run_api::points))
        .route("/api/runs/{run}/episodes", get(run_api::episodes))
        .route("/api/runs/{run}/checkpoints", get(run_api::checkpoints).post(run_api::checkpoint_now))
        .route("/api/runs/{run}/pause", post(run_api::pause))
        .route("/api/runs/{run}/resume", post(run_api::resume))
        .route("/api/runs/{run}/stop", post(run_api::stop))
        .route("/api/runs/{run}/teacher", post(run_api::teacher))
        .route("/api/runs/{run}/try", post(run_api::try_agent))
        .route("/api/runs/{run}/lease", post(teach_api::lease))
        .route("/api/runs/{run}/executions/{execution}/renew", post(teach_api::renew))
        .route("/api/runs/{run}/executions/{execution}/release", post(teach_api::release))
        .route("/api/runs/{run}/answers", get(teach_api::own).post(teach_api::answer))
        .route("/api/runs/{run}/answers/{answer}/correct", post(teach_api::correct))
        .route("/api/runs/{run}/answers/{answer}/undo", post(undo::api))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, REQUEST_LIMIT));
    let long = Router::new()
        .route("/events", get(events::shared))
        .route("/runs/{run}/events", get(events::stream))
        .route("/runs/{run}/export.jsonl", get(export::jsonl))
        .route("/runs/{run}/export.csv", get(export::csv))
        .route("/runs/{run}/export.schema.json", get(export::schema));
    ordinary.merge(long)
}

/// The whole application as a router.
pub fn router(state: AppState) -> Router {
    let limits = Limits::new(&state.settings);
    router_within(state, limits)
}

fn router_within(state: AppState, limits: Arc<Limits>) -> Router {
    let base = state.settings.base_path.clone();
    let routes = match base.as_str() {
        "" => routes(),
        // Both forms are served: some proxies pass the prefix on, some strip it.
        base => Router::new().nest(base, routes()).merge(routes()),
    };
    routes
        .fallback(layers::nowhere)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn_with_state(state.clone(), intake::whole))
        .layer(middleware::from_fn_with_state(state.clone(), layers::same_site))
        .layer(middleware::from_fn_with_state(limits.clone(), limits::count))
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(state.clone(), visitor::keep_cookie))
        .layer(middleware::from_fn_with_state(state.clone(), layers::render_errors))
        .layer(middleware::from_fn(layers::security_headers))
        .layer(middleware::from_fn_with_state(limits, limits::introduce))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(TraceLayer::new_for_http().make_span_with(layers::span))
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .with_state(state)
}

/// Serves until [`AppState::shutdown`] is cancelled, then ends event streams, lets ordinary requests finish and returns.
/// A client that will not let go is left behind after some seconds.
pub async fn serve(state: AppState, listener: tokio::net::TcpListener) -> std::io::Result<()> {
    let shutdown = state.shutdown.clone();
    let connections = state.settings.connections;
    let limits = Limits::new(&state.settings);
    let told = limits.clone();
    let _teller = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(limits::TELL_EVERY).await;
            told.guesses.tell();
        }
    }));
    let served = listener::serve(listener, router_within(state, limits.clone()), connections, shutdown.clone());
    let ended = tokio::select! {
        ended = served => ended,
        () = async { shutdown.cancelled().await; tokio::time::sleep(SHUTDOWN_GRACE).await } => Ok(()),
    };
    limits.guesses.tell();
    ended
}
