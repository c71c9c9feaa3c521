//! Starting runs over JSON: what there is to start from, a new run, an ended run that goes on.

use super::AppState;
use super::access::Steering;
use super::extract::{Json, Path};
use super::run_view::RunView;
use crate::config::run::TeacherMode;
use crate::error::{Error, Result};
use crate::run::{LaunchError, Launcher, NewRun, PresetInfo};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

/// Largest seed. JSON numbers are exact up to here in every language, browsers included.
pub(super) const LARGEST_SEED: u64 = (1 << 53) - 1;

/// The new run.
#[derive(Serialize)]
pub(super) struct Created {
    id: String,
}

fn launcher(state: &AppState) -> Result<&dyn Launcher> {
    let none = || Error::conflict("cannot-start", "This server only shows runs; it cannot start any.");
    state.launcher.as_deref().ok_or_else(none)
}

fn told(error: LaunchError) -> Error {
    match error {
        LaunchError::Wish(sentence) => Error::change("wish", sentence),
        LaunchError::State(sentence) => Error::conflict("cannot-start", sentence),
        LaunchError::Store(error) => Error::Store(error),
        LaunchError::Failed(cause) => Error::NotStarted(cause),
    }
}

/// `GET /api/presets`: what a run can start from, the default first.
pub(super) async fn presets(_: Steering, State(state): State<AppState>) -> axum::Json<Vec<PresetInfo>> {
    axum::Json(state.launcher.as_ref().map(|launcher| launcher.presets()).unwrap_or_default())
}

/// Starts a run; its id.
pub(super) async fn start(state: &AppState, wish: NewRun) -> Result<String> {
    if wish.seed > LARGEST_SEED {
        return Err(Error::change("seed", "The seed must be a whole number from 0 to 9007199254740991."));
    }
    if let Some(TeacherMode::Mixed { share }) = wish.teacher
        && !(0.0..=1.0).contains(&share)
    {
        return Err(Error::change("share", "The share that goes to people must lie between 0 and 1."));
    }
    launcher(state)?.create(wish).await.map_err(told)
}

/// Lets an ended run go on.
pub(super) async fn resume(state: &AppState, run: &str) -> Result<()> {
    let view = RunView::load(state, run).await?;
    if !view.ended() {
        return Err(Error::conflict("going", "This run is going on already."));
    }
    launcher(state)?.resume(run).await.map_err(told)
}

/// `POST /api/runs`: starts a run.
pub(super) async fn create(
    _: Steering,
    State(state): State<AppState>,
    Json(wish): Json<NewRun>,
) -> Result<(StatusCode, axum::Json<Created>)> {
    let id = start(&state, wish).await?;
    Ok((StatusCode::CREATED, axum::Json(Created { id })))
}

/// `POST /api/runs/{run}/go-on`: an ended run goes on from its last checkpoint.
pub(super) async fn go_on(_: Steering, State(state): State<AppState>, Path(run): Path<String>) -> Result<StatusCode> {
    resume(&state, &run).await?;
    Ok(StatusCode::ACCEPTED)
}
