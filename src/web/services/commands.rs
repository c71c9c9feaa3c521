//! Commands to the trainer of a run.

use crate::ids::RunId;
use crate::run::{Command, RunState};
use crate::web::error::{Error, Result};
use crate::web::page::run_view::RunView;
use crate::web::state::AppState;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a command that answers may take: it waits for the current update to end.
const REPLY_LIMIT: Duration = Duration::from_secs(20);

/// Sends a command to the run's trainer.
pub(crate) async fn send(state: &AppState, run: &RunId, command: Command) -> Result<()> {
    let view = RunView::load(state, run).await?;
    let ended = || Error::conflict("ended", "This run has ended, so it takes no commands.");
    let handle = state.runs.get(run).filter(|_| !view.ended()).ok_or_else(ended)?;
    handle.commands.send(command).map_err(|_| ended())
}

/// A run that gets ready answers when it is done with that, which may take minutes: nobody is kept waiting for it.
const GETTING_READY: &str = "It is still getting ready. Try again when it is learning.";

/// Refuses what needs an answer from a run that gets ready.
pub(crate) fn is_ready(view: &RunView) -> Result<()> {
    match view.status.state {
        RunState::Starting { .. } if !view.ended() => Err(Error::Busy(GETTING_READY.to_owned())),
        _ => Ok(()),
    }
}

/// Waits for the answer to a command.
pub(crate) async fn reply<T>(state: &AppState, run: &RunId, reply: oneshot::Receiver<Result<T, String>>) -> Result<T> {
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
