//! A run as JSON: what the dashboard shows and what it commands.

use super::access::Steering;
use super::extract::{Json, Path, Query};
use super::run_view::RunView;
use super::{AppState, LogLine, home};
use crate::config::run::TeacherMode;
use crate::error::{Error, Result};
use crate::family::Audience;
use crate::registry::AnyFamily;
use crate::run::{CheckpointRow, Command, EpisodeRow, Point, RunState, Status};
use crate::store::PoolCounts;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::oneshot;

/// How long a command that answers may take: it waits for the current update to end.
const REPLY_LIMIT: Duration = Duration::from_secs(20);

/// Most points a chart gets; the store thins evenly.
const POINTS: usize = 2_000;

/// Most characters of a request that is tried.
const REQUEST_LIMIT: usize = 500;

/// A run in one JSON object.
#[derive(Serialize)]
pub(super) struct RunJson {
    id: String,
    family: String,
    title: &'static str,
    preset: String,
    seed: u64,
    live: bool,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    status: Status,
}

impl From<RunView> for RunJson {
    fn from(view: RunView) -> RunJson {
        let RunView { run, family, status, live, .. } = view;
        RunJson {
            id: run.id,
            family: run.family,
            title: family.title(),
            preset: run.preset,
            seed: run.seed,
            live,
            created_at: run.created_at,
            status,
        }
    }
}

/// `GET /api/runs`: all runs, newest first.
pub(super) async fn list(_: Steering, State(state): State<AppState>) -> Result<axum::Json<Vec<RunJson>>> {
    Ok(axum::Json(home::all(&state).await?.into_iter().map(RunJson::from).collect()))
}

/// Answer of `GET /api/runs/{run}`.
#[derive(Serialize)]
pub(super) struct Snapshot {
    #[serde(flatten)]
    run: RunJson,
    config: Value,
    pool: PoolCounts,
    log: Vec<LogLine>,
}

/// `GET /api/runs/{run}`: status, configuration, pool and log.
pub(super) async fn status(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<axum::Json<Snapshot>> {
    let view = RunView::load(&state, &run).await?;
    let (config, pool, log) = (view.run.config.clone(), state.store.pool(&run).await?, state.runs.log(&run));
    Ok(axum::Json(Snapshot { run: view.into(), config, pool, log }))
}

/// Query of lists: how many.
#[derive(Deserialize)]
pub(super) struct Limit {
    limit: Option<u32>,
}

/// `GET /api/runs/{run}/points`: the curves, oldest first.
pub(super) async fn points(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<axum::Json<Vec<Point>>> {
    let run = state.store.run(&run).await?;
    let limit = limit.map_or(POINTS, |limit| (limit as usize).clamp(1, POINTS));
    Ok(axum::Json(state.store.points(&run.id, limit).await?))
}

/// An episode with its drawing.
#[derive(Serialize)]
pub(super) struct EpisodeJson {
    #[serde(flatten)]
    row: EpisodeRow,
    html: String,
}

impl EpisodeJson {
    /// Draws the episode; one that cannot be drawn keeps its plain line.
    pub(super) fn of(family: &dyn AnyFamily, row: EpisodeRow) -> EpisodeJson {
        let html = family.render(&row.view, Audience::Researcher).unwrap_or_else(|error| {
            tracing::debug!(%error, episode = row.episode, "an episode cannot be drawn");
            String::new()
        });
        EpisodeJson { row, html }
    }
}

/// `GET /api/runs/{run}/episodes`: the latest, newest first.
pub(super) async fn episodes(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<axum::Json<Vec<EpisodeJson>>> {
    let view = RunView::load(&state, &run).await?;
    let rows = state.store.recent_episodes(&run, limit.unwrap_or(40).clamp(1, 200)).await?;
    Ok(axum::Json(rows.into_iter().map(|row| EpisodeJson::of(view.family, row)).collect()))
}

/// `GET /api/runs/{run}/checkpoints`: newest first.
pub(super) async fn checkpoints(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<axum::Json<Vec<CheckpointRow>>> {
    let run = state.store.run(&run).await?;
    Ok(axum::Json(state.store.checkpoints(&run.id).await?))
}

/// Sends a command to the run's trainer.
async fn command(state: &AppState, run: &str, command: Command) -> Result<()> {
    let view = RunView::load(state, run).await?;
    let ended = || Error::conflict("ended", "This run has ended, so it takes no commands.");
    let handle = state.runs.get(run).filter(|_| !view.ended()).ok_or_else(ended)?;
    handle.commands.send(command).map_err(|_| ended())
}

/// A run that gets ready answers when it is done with that, which may take minutes: nobody is kept waiting for it.
const GETTING_READY: &str = "It is still getting ready. Try again when it is learning.";

/// Refuses what needs an answer from a run that gets ready.
fn is_ready(view: &RunView) -> Result<()> {
    match view.status.state {
        RunState::Starting { .. } if !view.ended() => Err(Error::Busy(GETTING_READY.to_owned())),
        _ => Ok(()),
    }
}

/// Waits for the answer to a command.
async fn reply<T>(state: &AppState, run: &str, reply: oneshot::Receiver<Result<T, String>>) -> Result<T> {
    match tokio::time::timeout(REPLY_LIMIT, reply).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(sentence))) => Err(Error::change("refused", sentence)),
        Ok(Err(_)) => Err(Error::conflict("ended", "The run ended before it could do that.")),
        Err(_) => {
            let starting = state
                .runs
                .get(run)
                .is_some_and(|handle| matches!(handle.status.borrow().state, RunState::Starting { .. }));
            Err(Error::Busy(if starting {
                GETTING_READY.to_owned()
            } else {
                "It has not answered yet: it does such things between two updates, and this one takes long. It may still do it when the update is over.".to_owned()
            }))
        }
    }
}

/// `POST /api/runs/{run}/pause`.
pub(super) async fn pause(_: Steering, State(state): State<AppState>, Path(run): Path<String>) -> Result<StatusCode> {
    command(&state, &run, Command::Pause).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/resume`.
pub(super) async fn resume(_: Steering, State(state): State<AppState>, Path(run): Path<String>) -> Result<StatusCode> {
    command(&state, &run, Command::Resume).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/stop`: a checkpoint is written and the run ends.
pub(super) async fn stop(_: Steering, State(state): State<AppState>, Path(run): Path<String>) -> Result<StatusCode> {
    command(&state, &run, Command::Stop).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/teacher`: who teaches from now on. The body is a teacher mode.
pub(super) async fn teacher(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
    Json(mode): Json<TeacherMode>,
) -> Result<StatusCode> {
    let view = RunView::load(&state, &run).await?;
    if let TeacherMode::Mixed { share } = mode
        && !(0.0..=1.0).contains(&share)
    {
        return Err(Error::change("share", "The share that goes to people must lie between 0 and 1."));
    }
    if mode != TeacherMode::Simulated && !view.algorithm().taught_by_people() {
        return Err(Error::change(
            "no-people",
            format!(
                "People teach by describing what the agent did, and this run learns from {} ({}).",
                view.feedback().words(),
                view.algorithm().typed()
            ),
        ));
    }
    // A run that gets ready has not looked for its teacher's models yet; it decides itself when it has.
    let looked = !matches!(view.status.state, RunState::Starting { .. });
    if mode != TeacherMode::Human && view.live && looked && !view.status.simulated_available {
        return Err(Error::change(
            "no-simulated-teacher",
            "This run has no simulated teacher. Train one and start a run with its file in teacher.models, or let people teach.",
        ));
    }
    command(&state, &run, Command::SetTeacher(mode)).await?;
    state.store.set_teacher_mode(&run, mode).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/checkpoints`: writes one now.
pub(super) async fn checkpoint_now(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<(StatusCode, axum::Json<CheckpointRow>)> {
    is_ready(&RunView::load(&state, &run).await?)?;
    let (send, receive) = oneshot::channel();
    command(&state, &run, Command::Checkpoint(send)).await?;
    Ok((StatusCode::CREATED, axum::Json(reply(&state, &run, receive).await?)))
}

/// Body of `POST …/try`.
#[derive(Deserialize)]
pub(super) struct TryBody {
    request: String,
    start: Value,
}

/// Answer of `POST …/try`.
#[derive(Serialize)]
pub(super) struct TriedJson {
    html: String,
    text: String,
    summary: String,
    valid: bool,
    update: u64,
}

/// `POST /api/runs/{run}/try`: what the agent would do now.
pub(super) async fn try_agent(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<String>,
    Json(TryBody { request, start }): Json<TryBody>,
) -> Result<axum::Json<TriedJson>> {
    let view = RunView::load(&state, &run).await?;
    if request.trim().is_empty() {
        return Err(Error::change("empty", "Write what the agent should do first."));
    }
    if request.chars().count() > REQUEST_LIMIT {
        return Err(Error::change("too-long", format!("A request may have {REQUEST_LIMIT} characters; shorten it.")));
    }
    is_ready(&view)?;
    let (send, receive) = oneshot::channel();
    command(&state, &run, Command::Try { request, start, reply: send }).await?;
    let tried = reply(&state, &run, receive).await?;
    Ok(axum::Json(TriedJson {
        html: view.family.render(&tried.view, Audience::Teacher)?,
        text: view.family.render_text(&tried.view)?,
        summary: tried.summary,
        valid: tried.valid,
        update: tried.update,
    }))
}
