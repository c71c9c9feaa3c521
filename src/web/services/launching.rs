//! Starting runs, and resuming runs that have ended.

use crate::config::run::{LARGEST_SEED, TeacherMode};
use crate::ids::RunId;
use crate::launch::{Continuation, EvaluationRequest, LaunchError, Launcher, NewOutsideRun, NewRun, Trial};
use crate::run::{Command, Tried};
use crate::web::error::{Error, Result};
use crate::web::page::run_view::RunView;
use crate::web::services::commands;
use crate::web::state::AppState;
use crate::web::state::work::{Following, Step, Unit};
use std::sync::Arc;

pub(crate) fn launcher(state: &AppState) -> Result<&Arc<dyn Launcher>> {
    let none = || Error::conflict("cannot-start", "This server only shows runs; it cannot start any.");
    state.launcher.as_ref().ok_or_else(none)
}

pub(crate) fn refused(error: LaunchError) -> Error {
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

/// Lets a run that has ended go on to another number of episodes; 0: until it is stopped.
pub(crate) async fn extend(state: &AppState, run: &RunId, episodes: u64) -> Result<()> {
    if !RunView::load(state, run).await?.ended() {
        return Err(Error::conflict("going", "This run has not ended."));
    }
    launcher(state)?.extend(run, episodes).await.map_err(refused)
}

/// Starts a new run from a checkpoint of another and returns its id.
pub(crate) async fn continue_from(state: &AppState, run: &RunId, continuation: Continuation) -> Result<RunId> {
    let run = state.store.run(run).await?;
    launcher(state)?.continue_from(&run.id, continuation).await.map_err(refused)
}

/// Lets the agent of a checkpoint carry out a request.
pub(crate) async fn try_checkpoint(state: &AppState, run: &RunId, trial: Trial) -> Result<Tried> {
    launcher(state)?.try_checkpoint(run, trial).await.map_err(|error| match error {
        LaunchError::Wish(sentence) => Error::change("refused", sentence),
        other => refused(other),
    })
}

/// The first step of the removal of a run.
pub(crate) const REMOVAL: Step = Step { step: "Removing the files", unit: Unit::Rows, all: 0 };

/// Removes runs of the trash for good, each whole: also where nobody waits for it any more. How many were removed.
pub(crate) async fn remove(state: &AppState, runs: Vec<RunId>, following: Following) -> Result<u64> {
    let launcher = launcher(state)?.clone();
    let removal = tokio::spawn(async move {
        let mut removed = 0;
        for run in runs {
            following.step(REMOVAL);
            let rows = |done: u64, all: u64| {
                if done == 0 {
                    following.step(Step { step: "Removing the rows", unit: Unit::Rows, all });
                }
                following.done(done);
            };
            launcher.remove(&run, &rows).await.map_err(refused)?;
            removed += 1;
        }
        following.whole();
        Ok(removed)
    });
    removal.await.map_err(|error| Error::Panic(error.to_string()))?
}

/// Begins to evaluate a checkpoint.
pub(crate) async fn evaluate(state: &AppState, run: &RunId, request: EvaluationRequest) -> Result<()> {
    let run = state.store.run(run).await?;
    launcher(state)?.evaluate(&run.id, request).await.map_err(refused)
}
