//! Drafts, the texts that a teacher has typed and not sent, are kept on the server, so that they outlive the browser.

use crate::ids::{ExecutionId, RunId};
use crate::store::{Draft, SavedDraft};
use crate::web::error::{Error, Result};
use crate::web::extractors::visitor::Visitor;
use crate::web::settings::TEXT_LIMIT;
use crate::web::state::AppState;

/// Most characters of a draft. A text that is too long to be sent is kept all the same, to be shortened.
const LIMIT: usize = 2 * TEXT_LIMIT;

/// Drafts that a page gets.
const LISTED: u32 = 20;

/// Keeps what the visitor has typed about an execution; an empty text discards it.
pub(crate) async fn save(
    state: &AppState,
    run: &RunId,
    visitor: &Visitor,
    execution: ExecutionId,
    (client_key, version, text): (String, u64, String),
) -> Result<()> {
    if client_key.is_empty() || client_key.chars().count() > 64 {
        return Err(Error::Unreadable("client_key must have 1 to 64 characters".to_owned()));
    }
    if text.chars().count() > LIMIT {
        return Err(Error::change(
            "too-long",
            "This is too long to be kept on the server. It is kept in this browser.",
        ));
    }
    state.store.execution_in(run, execution).await?;
    let draft = Draft { execution, teacher: visitor.teacher.id, client_key, version, text };
    Ok(state.store.save_draft(&draft).await?)
}

/// The visitor's drafts in a run, newest first.
pub(crate) async fn list(state: &AppState, run: &RunId, visitor: &Visitor) -> Result<Vec<SavedDraft>> {
    Ok(state.store.drafts(run, visitor.teacher.id, LISTED).await?)
}
