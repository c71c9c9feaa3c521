//! A run as JSON: what the dashboard shows and what it commands.

use crate::config::run::TeacherMode;
use crate::family::{Audience, TryAnswer};
use crate::ids::RunId;
use crate::run::{CheckpointRow, Command, Point, RunState, Status};
use crate::store::{PoolCounts, RunLabel};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Json, Path, Query};
use crate::web::extractors::visitor::Returned;
use crate::web::page::episode::EpisodeJson;
use crate::web::page::run_view::RunView;
use crate::web::services::{commands, preview};
use crate::web::state::{AppState, LogLine};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::sync::oneshot;

/// Most points a chart gets; the store thins evenly.
pub(crate) const POINTS: usize = 2_000;

/// A run in one JSON object.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunJson {
    id: RunId,
    /// The title by which people tell runs apart.
    called: String,
    family: String,
    title: &'static str,
    preset: String,
    seed: u64,
    live: bool,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    status: Status,
    label: RunLabel,
}

impl From<RunView> for RunJson {
    fn from(view: RunView) -> RunJson {
        let called = view.title();
        let RunView { run, family, status, live, label, .. } = view;
        RunJson {
            id: run.id,
            called,
            family: run.family,
            title: family.title(),
            preset: run.preset,
            seed: run.seed,
            live,
            created_at: run.created_at,
            status,
            label,
        }
    }
}

/// `GET /api/runs`: all runs that are not in the trash, newest first.
pub(crate) async fn list(_: Steering, State(state): State<AppState>) -> Result<axum::Json<Vec<RunJson>>> {
    Ok(axum::Json(RunView::all(&state).await?.into_iter().map(RunJson::from).collect()))
}

/// Answer of `GET /api/runs/{run}`.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = RunSnapshot)]
pub(crate) struct Snapshot {
    #[serde(flatten)]
    run: RunJson,
    config: Value,
    pool: PoolCounts,
    log: Vec<LogLine>,
}

/// `GET /api/runs/{run}`: status, configuration, pool and log.
#[utoipa::path(get, path = "/runs/{run}", operation_id = "show_run", tag = "runs",
    summary = "A run with its settings, its pool and its log", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, body = Snapshot, description = "The run")))]
pub(crate) async fn status(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<axum::Json<Snapshot>> {
    let view = RunView::load(&state, &run).await?;
    let (config, pool, log) = (view.run.config.clone(), state.store.pool(&run).await?, state.runs.log(&run));
    Ok(axum::Json(Snapshot { run: view.into(), config, pool, log }))
}

/// Query of lists: how many.
#[derive(Deserialize)]
pub(crate) struct Limit {
    limit: Option<u32>,
}

/// `GET /api/runs/{run}/points`: the curves, oldest first.
pub(crate) async fn points(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<axum::Json<Vec<Point>>> {
    let run = state.store.run(&run).await?;
    let limit = limit.map_or(POINTS, |limit| (limit as usize).clamp(1, POINTS));
    Ok(axum::Json(state.store.points(&run.id, limit).await?))
}

/// `GET /api/runs/{run}/episodes`: the latest, newest first.
pub(crate) async fn episodes(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<axum::Json<Vec<EpisodeJson>>> {
    let view = RunView::load(&state, &run).await?;
    let rows = state.store.recent_episodes(&run, limit.unwrap_or(40).clamp(1, 200)).await?;
    Ok(axum::Json(rows.into_iter().map(|row| EpisodeJson::of(view.family, row)).collect()))
}

/// `POST /api/runs/{run}/pause`.
#[utoipa::path(post, path = "/runs/{run}/pause", operation_id = "pause_run", tag = "runs",
    summary = "Pauses a run: it learns no more until it is resumed", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 202, description = "The command was sent")))]
pub(crate) async fn pause(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<StatusCode> {
    commands::send(&state, &run, Command::Pause).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/stop`: a checkpoint is written and the run ends.
#[utoipa::path(post, path = "/runs/{run}/stop", operation_id = "stop_run", tag = "runs",
    summary = "Writes a checkpoint and ends a run", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 202, description = "The command was sent")))]
pub(crate) async fn stop(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<StatusCode> {
    commands::send(&state, &run, Command::Stop).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/teacher`: who teaches from now on. The body is a teacher mode.
#[utoipa::path(post, path = "/runs/{run}/teacher", operation_id = "set_teacher", tag = "runs",
    summary = "Says who teaches from now on", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = TeacherMode,
    responses((status = 202, description = "The command was sent")))]
pub(crate) async fn teacher(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
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
                "People teach by describing, showing or rating, and this run learns from {} that are known beforehand ({}).",
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
    commands::send(&state, &run, Command::SetTeacher(mode)).await?;
    state.store.set_teacher_mode(&run, mode).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/checkpoints`: writes one now.
#[utoipa::path(post, path = "/runs/{run}/checkpoints", operation_id = "write_checkpoint", tag = "runs",
    summary = "Writes a checkpoint now", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 201, body = CheckpointRow, description = "The checkpoint")))]
pub(crate) async fn checkpoint_now(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<(StatusCode, axum::Json<CheckpointRow>)> {
    commands::is_ready(&RunView::load(&state, &run).await?)?;
    let (send, receive) = oneshot::channel();
    commands::send(&state, &run, Command::Checkpoint(send)).await?;
    Ok((StatusCode::CREATED, axum::Json(commands::reply(&state, &run, receive).await?)))
}

/// Body of `POST …/try`.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = TryRequest)]
pub(crate) struct TryBody {
    request: String,
    start: Value,
    /// File name of the checkpoint whose agent is tried; without it the agent as it is now, or the best one of a run that has
    /// ended.
    #[serde(default)]
    checkpoint: Option<String>,
}

/// Answer of `POST …/try`.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Tried)]
pub(crate) struct TriedJson {
    html: String,
    text: String,
    /// The execution in sentences.
    spoken: String,
    /// Its answer in one sentence.
    sentence: String,
    /// The steps of the execution, a sentence each, where there are several.
    steps: Vec<String>,
    summary: String,
    valid: bool,
    update: u64,
    /// Words of the request that the agent has never met.
    unknown: Vec<String>,
}

/// Whether the visitor may try the agent: who steers, and who has described what it did.
async fn may_try(state: &AppState, run: &RunId, steering: Result<Steering>, visitor: Result<Returned>) -> Result<bool> {
    let Err(refused) = steering else { return Ok(true) };
    if let Ok(Returned(Some(visitor))) = visitor
        && state.store.teacher_counts(run, visitor.teacher.id).await?.described > 0
    {
        return Ok(false);
    }
    Err(refused)
}

/// `POST /api/runs/{run}/try`: what the agent would do now. Teachers get the drawing without the line for researchers.
#[utoipa::path(post, path = "/runs/{run}/try", operation_id = "try_agent", tag = "runs",
    summary = "What the agent would do now", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = TryBody,
    responses((status = 200, body = TriedJson, description = "The execution")))]
pub(crate) async fn try_agent(
    steering: Result<Steering>,
    visitor: Result<Returned>,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    body: Result<Json<TryBody>>,
) -> Result<axum::Json<TriedJson>> {
    let steers = may_try(&state, &run, steering, visitor).await?;
    let Json(TryBody { request, start, checkpoint }) = body?;
    let checkpoint = checkpoint.filter(|_| steers);
    let view = RunView::load(&state, &run).await?;
    let tried = preview::carry_out(&state, &view, request, start, checkpoint).await?;
    let TryAnswer { sentence, steps } = view.family.try_answer(&tried.view)?;
    Ok(axum::Json(TriedJson {
        sentence,
        steps,
        html: view.family.render(&tried.view, Audience::Teacher)?,
        text: view.family.render_text(&tried.view)?,
        spoken: view.family.render_spoken(&tried.view)?,
        summary: if steers { tried.summary } else { String::new() },
        valid: tried.valid,
        update: tried.update,
        unknown: tried.unknown,
    }))
}
