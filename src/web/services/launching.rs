//! Starting runs, and resuming runs that have ended.

use crate::config::run::{LARGEST_SEED, TeacherMode};
use crate::ids::RunId;
use crate::launch::{LaunchError, Launcher, NewOutsideRun, NewRun};
use crate::run::Command;
use crate::web::error::{Error, Result};
use crate::web::page::run_view::RunView;
use crate::web::services::commands;
use crate::web::state::AppState;

fn launcher(state: &AppState) -> Result<&dyn Launcher> {
    let none = || Error::conflict("cannot-start", "This server only shows runs; it cannot start any.");
    state.launcher.as_deref().ok_or_else(none)
}

fn refused(error: LaunchError) -> Error {
    match error {
        LaunchError::Wish(sentence) => Error::change("wish", sentence),
        LaunchError::State(sentence) => Error::conflict("cannot-start", sentence),
        LaunchError::Store(error) => Error::Store(error),
        LaunchError::Failed(cause) => Error::NotStarted(cause),
    }
}

/// Starts a run and returns its id.
pub(crate) async fn start(state: &AppState, wish: NewRun) -> Result<RunId> {
    if wish.seed > LARGEST_SEED {
        return Err(Error::change("seed", format!("The seed must be a whole number from 0 to {LARGEST_SEED}.")));
    }
    if let Some(TeacherMode::Mixed { share }) = wish.teacher
        && !(0.0..=1.0).contains(&share)
    {
        return Err(Error::change("share", "The share that goes to people must lie between 0 and 1."));
    }
    launcher(state)?.create(wish).await.map_err(refused)
}

/// Starts a run whose agent lives in another program and returns its id.
pub(crate) async fn start_outside(state: &AppState, wish: NewOutsideRun) -> Result<RunId> {
    launcher(state)?.create_outside(wish).await.map_err(refused)
}

/// Resumes a run: one that has ended from its last checkpoint, any other from its pause.
pub(crate) async fn resume(state: &AppState, run: &RunId) -> Result<()> {
    if RunView::load(state, run).await?.ended() {
        resume_ended(state, run).await
    } else {
        commands::send(state, run, Command::Resume).await
    }
}

/// Resumes a run that has ended, from its last checkpoint.
pub(crate) async fn resume_ended(state: &AppState, run: &RunId) -> Result<()> {
    if !RunView::load(state, run).await?.ended() {
        return Err(Error::conflict("going", "This run has not ended."));
    }
    launcher(state)?.resume(run).await.map_err(refused)
}
