//! The agent carries out a request now: in the box where it is tried, and as a preview of a sentence before it is sent.

use crate::config::run::Preview;
use crate::ids::{ExecutionId, RunId, TeacherId};
use crate::launch::Trial;
use crate::run::{Command, Tried};
use crate::study::draw;
use crate::web::error::{Error, Result};
use crate::web::extractors::visitor::Visitor;
use crate::web::page::run_view::RunView;
use crate::web::services::{commands, launching, participation};
use crate::web::state::AppState;
use serde_json::Value;
use tokio::sync::oneshot;

/// Most characters of a request that the agent carries out.
const REQUEST_LIMIT: usize = 500;

/// Whether a teacher of the run is shown previews; `None` where they are shown to nobody. A study decides for its teachers. In a
/// run without one its settings do, and where these leave it to chance, a hash: the same for as long as the run and the teacher
/// are.
pub(crate) async fn arm(state: &AppState, view: &RunView, teacher: TeacherId) -> Result<Option<bool>> {
    if let Some(of_study) = participation::preview_arm(state, &view.run.id, teacher).await? {
        return Ok(of_study);
    }
    Ok(match serde_json::from_value(view.run.config["pool"]["preview"].clone()).unwrap_or_default() {
        Preview::Off => None,
        Preview::On => Some(true),
        Preview::Random => Some(chance(&view.run.id, teacher)),
    })
}

fn chance(run: &RunId, teacher: TeacherId) -> bool {
    draw(&[run, "preview", &teacher.to_string()], 2) == 1
}

/// Carries out a request from the start that a form describes. A run that has ended is asked by its best checkpoint, and any run by
/// the checkpoint that is named.
pub(crate) async fn carry_out(
    state: &AppState,
    view: &RunView,
    request: String,
    start: Value,
    checkpoint: Option<String>,
) -> Result<Tried> {
    if request.trim().is_empty() {
        return Err(Error::change("empty", "Write what the agent should do first."));
    }
    if request.chars().count() > REQUEST_LIMIT {
        return Err(Error::change("too-long", format!("A request may have {REQUEST_LIMIT} characters; shorten it.")));
    }
    if checkpoint.is_some() || view.ended() {
        return launching::try_checkpoint(state, &view.run.id, Trial { checkpoint, request, start }).await;
    }
    commands::is_ready(view)?;
    let (send, receive) = oneshot::channel();
    commands::send(state, &view.run.id, Command::Try { request, start, reply: send }).await?;
    commands::reply(state, &view.run.id, receive).await
}

/// Carries out a sentence about an execution, from the start of that execution, before the sentence is sent.
///
/// # Errors
/// Also when the visitor is none of those to whom previews are shown, or never had the execution.
pub(crate) async fn preview(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    execution: ExecutionId,
    text: String,
) -> Result<Tried> {
    if arm(state, view, visitor.teacher.id).await? != Some(true) {
        return Err(Error::conflict("no-preview", "No preview is shown here. Send your words as they are."));
    }
    state.store.execution_in(&view.run.id, execution).await?;
    state.store.held(execution, visitor.teacher.id).await?;
    let start = view.family.start_fields(&state.store.view(execution).await?);
    if start.is_null() {
        return Err(Error::change("refused", "This cannot be previewed. Send your words as they are."));
    }
    carry_out(state, view, text, start, None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_even_and_stays() {
        let run: RunId = "run".into();
        let shown = (0..1000).filter(|&id| chance(&run, TeacherId(id))).count();
        assert!((420..580).contains(&shown), "{shown}");
        assert_eq!(chance(&run, TeacherId(7)), chance(&run, TeacherId(7)));
    }
}
