//! Undo: a person takes an answer back, and the execution and the words come back onto the page.

use crate::ids::AnswerId;
use crate::protocol::Medium;
use crate::store::{AnswerKind, Response, WithdrawnAnswer};
use crate::web::error::Result;
use crate::web::extractors::cookie::new_token;
use crate::web::extractors::visitor::Visitor;
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::services::media;
use crate::web::services::teaching::{self, Shown};
use crate::web::state::AppState;
use serde::Serialize;
use time::OffsetDateTime;

/// An answer that was taken back, or could not be: the execution again, with the words.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TakenBack {
    /// Key of the answer.
    pub(crate) answer: AnswerId,
    /// Whether it was taken back; `false` when the agent has learned from it already.
    pub(crate) undone: bool,
    /// Its kind.
    pub(crate) kind: AnswerKind,
    /// The text that was typed; empty where it says that the execution did what was asked.
    pub(crate) said: String,
    /// The demonstration or the rating.
    pub(crate) response: Response,
    /// The update that learnt from it, when one has.
    pub(crate) used_in_update: Option<u64>,
    /// One true sentence.
    pub(crate) notice: String,
    /// The execution.
    #[serde(flatten)]
    pub(crate) shown: Shown,
}

/// Takes an answer of the visitor back, unless the agent has learned from it.
pub(crate) async fn take_back(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    answer: AnswerId,
) -> Result<TakenBack> {
    let undone = state.store.undo(&view.run.id, answer, visitor.teacher.id, teaching::ttl(state)).await?;
    of(view, undone)
}

/// An answer that was taken back before and has not been replaced since; `None` for any other.
pub(crate) async fn undone(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    answer: AnswerId,
) -> Result<Option<TakenBack>> {
    let undone = state.store.withdrawn_answer(&view.run.id, answer, visitor.teacher.id).await?;
    undone.map(|undone| of(view, undone)).transpose()
}

fn of(view: &RunView, undone: WithdrawnAnswer) -> Result<TakenBack> {
    let given = media::given_before(&undone.response);
    let (html, text) = media::draw(view, &undone.view, &given).unwrap_or_else(|error| {
        tracing::warn!(%error, answer = %undone.answer, "an answer is taken back whose execution cannot be drawn");
        Default::default()
    });
    let shown_at = OffsetDateTime::now_utc();
    let notice = match (undone.learnt_in, undone.kind) {
        (Some(update), _) => {
            let also = if view.ended() { "" } else { ", and the agent learns from them too" };
            format!(
                "The agent has learned from this one already (update {}), so it cannot be taken back. Change your words and send them: they take the place of the old ones{also}.",
                format::count(&update)
            )
        }
        (None, AnswerKind::Described) if view.medium() != Medium::Description => {
            format!("Taken back. The agent will not learn from it; here is your {} again.", view.medium())
        }
        (None, AnswerKind::Described) if !undone.fulfilled => {
            "Taken back. The agent will not learn from it; your words are in the box again.".to_owned()
        }
        (None, _) => "Taken back. Here it is again.".to_owned(),
    };
    Ok(TakenBack {
        answer: undone.answer,
        undone: undone.learnt_in.is_none(),
        kind: undone.kind,
        said: if undone.fulfilled { String::new() } else { undone.text },
        response: undone.response,
        used_in_update: undone.learnt_in,
        notice,
        shown: Shown {
            execution: undone.execution,
            episode: undone.episode,
            html,
            text,
            spoken: media::spoken(view, &undone.view).unwrap_or_default(),
            draft: None,
            placeholder: teaching::placeholder(view.family, undone.execution),
            doubt: media::doubt(view, &undone.view),
            request: undone.request,
            client_key: new_token()?,
            expires_at: undone.expires_at,
            shown_at,
            lease_seconds: (undone.expires_at - shown_at).whole_seconds().max(1).unsigned_abs(),
        },
    })
}
