//! The checkpoints of a run, and what they are good for: they are downloaded, evaluated, and continued from.

use crate::ids::RunId;
use crate::launch::{Continuation, Evaluating, EvaluationRequest};
use crate::protocol::Split;
use crate::run::CheckpointRow;
use crate::store::RunEvaluation;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Form, Json, Path};
use crate::web::format;
use crate::web::page::Page;
use crate::web::services::launching;
use crate::web::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio_util::io::ReaderStream;

/// A checkpoint, and whether it is still there as a file.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Listed {
    #[serde(flatten)]
    pub(crate) row: CheckpointRow,
    kept: bool,
}

/// The checkpoints of a run, newest first.
pub(crate) async fn of_run(state: &AppState, run: &RunId) -> Result<Vec<Listed>> {
    let run = state.store.run(run).await?;
    let files = match &state.launcher {
        Some(launcher) => launcher.checkpoint_files(&run.id).await.map_err(launching::refused)?,
        None => Vec::new(),
    };
    let files: BTreeMap<&str, u64> = files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    let listed = |row: CheckpointRow| Listed { kept: files.contains_key(row.name.as_str()), row };
    Ok(state.store.checkpoints(&run.id).await?.into_iter().map(listed).collect())
}

/// `GET /api/runs/{run}/checkpoints`: newest first.
pub(crate) async fn list(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<axum::Json<Vec<Listed>>> {
    Ok(axum::Json(of_run(&state, &run).await?))
}

/// `GET /api/v1/runs/{run}/checkpoints/{name}` and `GET /runs/{run}/checkpoints/{name}`: the file.
#[utoipa::path(get, path = "/runs/{run}/checkpoints/{name}", operation_id = "download_checkpoint", tag = "runs",
    summary = "A checkpoint as a file of safetensors", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("name" = String, Path, description = "Name of the file")),
    responses((status = 200, content_type = "application/octet-stream", body = String, description = "The file")))]
pub(crate) async fn download(
    _: Steering,
    State(state): State<AppState>,
    Path((run, name)): Path<(RunId, String)>,
) -> Result<Response> {
    let launcher = launching::launcher(&state)?;
    let files = launcher.checkpoint_files(&run).await.map_err(launching::refused)?;
    let file = files.into_iter().find(|file| file.name == name).ok_or(Error::NotFound("the checkpoint"))?;
    let elsewhere = file.path.as_os_str().is_empty();
    let kept = match elsewhere {
        true => launcher.kept_checkpoint(&run, &name).await.map_err(launching::refused)?,
        false => None,
    };
    if let Some(kept) = kept {
        return Ok((attachment(&run, &name, kept.bytes), Body::from_stream(kept.chunks)).into_response());
    }
    if elsewhere {
        return Err(Error::conflict(
            "elsewhere",
            "This file lies with the process that trains the run. Download it from that process\u{2019}s own address.",
        ));
    }
    let opened = tokio::fs::File::open(&file.path).await.map_err(|_| Error::NotFound("the checkpoint"))?;
    Ok((attachment(&run, &name, file.bytes), Body::from_stream(ReaderStream::new(opened))).into_response())
}

/// The headers with which a checkpoint is sent.
fn attachment(run: &RunId, name: &str, bytes: u64) -> [(header::HeaderName, String); 4] {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let id: String = run.chars().map(plain).collect();
    [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
        // Weights do not become smaller, and a large file would keep a processor busy.
        (header::CONTENT_ENCODING, "identity".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}-{name}\"")),
    ]
}

/// An evaluation that is under way, or that failed.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Pending {
    /// File name of the checkpoint.
    checkpoint: String,
    /// The tasks on which it is evaluated.
    split: Split,
    /// Tasks of the split at most; 0: all.
    limit: usize,
    /// Tasks that are done.
    done: u64,
    /// Tasks in all; 0 while the agent is loaded.
    tasks: u64,
    /// Seconds until it is done, at the pace so far; null before there is a pace.
    seconds_left: Option<f64>,
    /// Why it failed; null while it is under way.
    failed: Option<String>,
}

impl From<Evaluating> for Pending {
    fn from(Evaluating { request, done, tasks, seconds_left, failed }: Evaluating) -> Pending {
        let EvaluationRequest { checkpoint, split, limit } = request;
        Pending { checkpoint, split, limit, done, tasks, seconds_left, failed }
    }
}

/// Answer of `GET /api/runs/{run}/evaluations`.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Evaluations {
    /// Under way, or failed.
    pending: Vec<Pending>,
    /// Done, newest first.
    done: Vec<RunEvaluation>,
}

/// `GET /api/runs/{run}/evaluations`.
#[utoipa::path(get, path = "/runs/{run}/evaluations", operation_id = "list_evaluations", tag = "runs",
    summary = "Evaluations of checkpoints: under way, failed and done", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, body = Evaluations, description = "The evaluations")))]
pub(crate) async fn evaluations(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<axum::Json<Evaluations>> {
    let run = state.store.run(&run).await?.id;
    let pending = state.launcher.as_ref().map(|launcher| launcher.evaluating(&run)).unwrap_or_default();
    let pending = pending.into_iter().map(Pending::from).collect();
    Ok(axum::Json(Evaluations { pending, done: state.store.evaluations(&run).await? }))
}

/// `POST /api/runs/{run}/evaluations`: begins one.
#[utoipa::path(post, path = "/runs/{run}/evaluations", operation_id = "evaluate_checkpoint", tag = "runs",
    summary = "Begins to evaluate a checkpoint", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = EvaluationRequest,
    responses((status = 202, description = "It has begun")))]
pub(crate) async fn evaluate(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Json(request): Json<EvaluationRequest>,
) -> Result<StatusCode> {
    launching::evaluate(&state, &run, request).await?;
    Ok(StatusCode::ACCEPTED)
}

/// The new run.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Continued {
    id: RunId,
}

/// `POST /api/runs/{run}/continue`: a new run that begins with a checkpoint of this one.
#[utoipa::path(post, path = "/runs/{run}/continue", operation_id = "continue_run", tag = "runs",
    summary = "Begins a new run with a checkpoint of this one", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = Continuation,
    responses((status = 201, body = Continued, description = "The new run")))]
pub(crate) async fn continue_from(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Json(continuation): Json<Continuation>,
) -> Result<(StatusCode, axum::Json<Continued>)> {
    let id = launching::continue_from(&state, &run, continuation).await?;
    Ok((StatusCode::CREATED, axum::Json(Continued { id })))
}

/// Body of `POST /api/runs/{run}/episodes`, and of the form.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    /// Episodes after which the run ends; 0: it goes on until it is stopped.
    episodes: u64,
}

/// `POST /api/runs/{run}/episodes`: a run that has ended goes on to another number of episodes.
#[utoipa::path(post, path = "/runs/{run}/episodes", operation_id = "extend_run", tag = "runs",
    summary = "Has a run that has ended go on to another number of episodes", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = Budget,
    responses((status = 202, description = "It goes on")))]
pub(crate) async fn extend(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Json(Budget { episodes }): Json<Budget>,
) -> Result<StatusCode> {
    launching::extend(&state, &run, episodes).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /runs/{run}/episodes`: the form of the run's page.
pub(crate) async fn extend_form(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
    Form(Budget { episodes }): Form<Budget>,
) -> Result<Response> {
    launching::extend(&state, &run, episodes).await?;
    Ok(Redirect::to(&page.url(&format!("/runs/{}", format::encode(&run)))).into_response())
}
