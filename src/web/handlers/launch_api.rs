//! Starting and resuming runs over JSON, and the presets to start from.

use crate::ids::RunId;
use crate::launch::{NewRun, PresetInfo};
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Json, Path};
use crate::web::services::launching;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

/// The new run.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = CreatedRun)]
pub(crate) struct Created {
    id: RunId,
    seed: u64,
}

/// `GET /api/presets`: the presets that a run can start from, the default first.
pub(crate) async fn presets(_: Steering, State(state): State<AppState>) -> axum::Json<Vec<PresetInfo>> {
    axum::Json(state.launcher.as_ref().map(|launcher| launcher.presets()).unwrap_or_default())
}

/// `POST /api/runs`: starts a run.
#[utoipa::path(post, path = "/runs", operation_id = "create_run", tag = "runs",
    summary = "Starts a run", description = "",
    request_body = NewRun,
    responses((status = 201, body = Created, description = "The run was started")))]
pub(crate) async fn create(
    _: Steering,
    State(state): State<AppState>,
    Json(wish): Json<NewRun>,
) -> Result<(StatusCode, axum::Json<Created>)> {
    let seed = wish.seed;
    let id = launching::start(&state, wish).await?;
    Ok((StatusCode::CREATED, axum::Json(Created { id, seed })))
}

/// `POST /api/runs/{run}/resume`: a paused run learns again, and a run that has ended continues from its last checkpoint.
#[utoipa::path(post, path = "/runs/{run}/resume", operation_id = "resume_run", tag = "runs",
    summary = "Resumes a run: from its pause, or from its last checkpoint when it has ended", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 202, description = "The command was sent")))]
pub(crate) async fn resume(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<StatusCode> {
    launching::resume(&state, &run).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/runs/{run}/go-on`: the older name of `…/resume`, for runs that have ended only.
pub(crate) async fn resume_ended(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<StatusCode> {
    launching::resume_ended(&state, &run).await?;
    Ok(StatusCode::ACCEPTED)
}
