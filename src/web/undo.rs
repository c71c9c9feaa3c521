//! Undo: an answer that its person takes back, with the execution and the words coming back onto the page.

use super::AppState;
use super::extract::Path;
use super::page::{self, Page};
use super::run_view::RunView;
use super::teaching::{self, Shown};
use super::visitor::{self, Returned, Visitor};
use crate::error::{Error, Result};
use crate::family::Audience;
use crate::store::{AnswerKind, StoreError, Undone};
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Serialize;
use time::OffsetDateTime;

/// What taking an answer back led to: the execution again, with the words.
#[derive(Debug, Serialize)]
pub(super) struct TakenBack {
    /// Key of the answer.
    pub(super) answer: i64,
    /// Whether it was taken back; `false` when the agent has learned from it already.
    pub(super) undone: bool,
    /// Its kind.
    pub(super) kind: AnswerKind,
    /// What was typed.
    pub(super) said: String,
    /// The update that learnt from it, when one has.
    pub(super) used_in_update: Option<u64>,
    /// One true sentence.
    pub(super) notice: String,
    /// The execution.
    #[serde(flatten)]
    pub(super) shown: Shown,
}

/// Takes an answer of the visitor back, unless the agent has learned from it.
async fn take_back(state: &AppState, view: &RunView, visitor: &Visitor, answer: i64) -> Result<TakenBack> {
    let undone = state.store.undo(&view.run.id, answer, visitor.teacher.id, teaching::ttl(state)).await?;
    of(view, undone)
}

/// An answer that was taken back before and has not been replaced since; `None` for any other.
pub(super) async fn undone(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    answer: i64,
) -> Result<Option<TakenBack>> {
    let undone = state.store.taken_back(&view.run.id, answer, visitor.teacher.id).await?;
    undone.map(|undone| of(view, undone)).transpose()
}

fn of(view: &RunView, undone: Undone) -> Result<TakenBack> {
    let (html, text) = teaching::draw(view.family, &undone.view, Audience::Teacher).unwrap_or_else(|error| {
        tracing::warn!(%error, answer = undone.answer, "an answer is taken back whose execution cannot be drawn");
        Default::default()
    });
    let shown_at = OffsetDateTime::now_utc();
    let notice = match (undone.learnt_in, undone.kind) {
        (Some(update), _) => {
            let also = if view.ended() { "" } else { ", and the agent learns from them too" };
            format!(
                "The agent has learned from this one already (update {}), so it cannot be taken back. Change your words and send them: they take the place of the old ones{also}.",
                page::count(&update)
            )
        }
        (None, AnswerKind::Described) => {
            "Taken back. The agent will not learn from it; your words are in the box again.".to_owned()
        }
        (None, _) => "Taken back. Here it is again.".to_owned(),
    };
    Ok(TakenBack {
        answer: undone.answer,
        undone: undone.learnt_in.is_none(),
        kind: undone.kind,
        said: undone.text,
        used_in_update: undone.learnt_in,
        notice,
        shown: Shown {
            execution: undone.execution,
            episode: undone.episode,
            html,
            text,
            doubt: teaching::question(view.family, &undone.view),
            request: undone.request,
            client_key: visitor::new_token()?,
            expires_at: undone.expires_at,
            shown_at,
            lease_seconds: (undone.expires_at - shown_at).whole_seconds().max(1).unsigned_abs(),
        },
    })
}

/// `POST /api/runs/{run}/answers/{answer}/undo`. The body is not read.
pub(super) async fn api(
    State(state): State<AppState>,
    Path((run, answer)): Path<(String, i64)>,
    Returned(visitor): Returned,
) -> Result<axum::Json<TakenBack>> {
    let view = RunView::load(&state, &run).await?;
    let visitor = visitor.ok_or(StoreError::NotFound("the answer"))?;
    Ok(axum::Json(take_back(&state, &view, &visitor, answer).await?))
}

/// `POST /teach/{run}/answers/{answer}/undo`: the button without a script. The page that comes shows the execution again;
/// what cannot be taken back is found among the last answers, where it can be corrected.
pub(super) async fn plain(
    State(state): State<AppState>,
    Path((run, answer)): Path<(String, i64)>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let visitor = visitor.ok_or(StoreError::NotFound("the answer"))?;
    let teach = page.url(&format!("/teach/{}", page::encode(&run)));
    let to = match take_back(&state, &view, &visitor, answer).await {
        Ok(TakenBack { undone: true, .. }) => format!("{teach}?undone={answer}"),
        Ok(_) => format!("{teach}/answers?learnt={answer}#answer-{answer}"),
        Err(Error::Store(StoreError::Superseded)) => format!("{teach}/answers"),
        Err(error) => return Err(error),
    };
    Ok(Redirect::to(&to).into_response())
}
