//! The teacher's page, whole without a script: one execution, one sentence, next.

use super::AppState;
use super::extract::{Form, Path, Query};
use super::page::{self, Page};
use super::run_view::RunView;
use super::teaching::{self, Given, Shown};
use super::visitor::{KnownVisitor, Visitor};
use super::{TEXT_LIMIT, guide};
use crate::error::{Error, Result};
use crate::store::{AnswerKind, StoreError};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

/// Reasons for skipping that the menu offers; own words are possible beside them.
const SKIP_REASONS: [&str; 3] =
    ["I do not understand what happened", "Too much happened at once", "Something looks broken"];

#[derive(Template)]
#[template(path = "teach.html")]
struct TeachPage {
    page: Page,
    view: RunView,
    shown: Option<Shown>,
    /// Why there is nothing to describe.
    idle: String,
    /// Text that was sent and not stored.
    text: String,
    problem: Option<String>,
    thanks: Option<String>,
    reasons: &'static [&'static str],
    /// What the script needs to know, as JSON.
    data: String,
}

/// Query of the page: what was just stored, after a plain form was sent.
#[derive(Deserialize)]
pub(super) struct Said {
    said: Option<AnswerKind>,
}

/// `GET /teach/{run}`.
pub(super) async fn page(
    State(state): State<AppState>,
    Path(run): Path<String>,
    Query(Said { said }): Query<Said>,
    page: Page,
    visitor: Visitor,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    if !visitor.teacher.seen_guide && !view.ended() {
        return guide::show(page, view, true);
    }
    let shown = teaching::lease(&state, &view, &visitor, &[]).await?;
    let thanks = match said {
        Some(kind) => {
            Some(teaching::sentence(kind, state.store.teacher_counts(&run, visitor.teacher.id).await?))
        }
        None => None,
    };
    Ok(page::html(&teach_page(&state, page, view, shown, thanks)))
}

fn teach_page(state: &AppState, page: Page, view: RunView, shown: Option<Shown>, thanks: Option<String>) -> TeachPage {
    let data = json!({
        "run": view.run.id,
        "api": page.url(&format!("/api/runs/{}", view.run.id)),
        "limit": TEXT_LIMIT,
        "lease_seconds": state.settings.lease_ttl.as_secs(),
        "ended": view.ended(),
        "shown": shown.as_ref().map(|shown| json!({
            "execution": shown.execution,
            "client_key": shown.client_key,
            "shown_at": page::exact(&shown.shown_at),
            "text": shown.text,
        })),
    });
    TeachPage {
        idle: view.nothing_to_describe(),
        text: String::new(),
        problem: None,
        reasons: &SKIP_REASONS,
        data: data.to_string(),
        page,
        view,
        shown,
        thanks,
    }
}

/// What the plain form sends. Browsers send line ends as CRLF; a person typed one line end.
#[derive(Deserialize)]
pub(super) struct Sent {
    execution: i64,
    client_key: String,
    kind: AnswerKind,
    #[serde(default)]
    text: String,
    /// A reason chosen from the menu.
    reason: Option<String>,
    shown_at: Option<String>,
}

/// `POST /teach/{run}`: the plain form. Whatever goes wrong, the page comes back with the text in the box.
pub(super) async fn send(
    State(state): State<AppState>,
    Path(run): Path<String>,
    page: Page,
    KnownVisitor(visitor): KnownVisitor,
    Form(sent): Form<Sent>,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let mut text = sent.text.replace("\r\n", "\n");
    if let Some(reason) = sent.reason.filter(|_| sent.kind == AnswerKind::Skipped) {
        text = if text.trim().is_empty() { reason } else { text };
    }
    let given = |client_key: String, text: String| Given {
        client_key,
        execution: sent.execution,
        kind: sent.kind,
        text,
        shown_at: sent.shown_at.clone(),
        active_ms: None,
    };
    let stored = match teaching::answer(&state, &view, &visitor, given(sent.client_key.clone(), text.clone())).await {
        // The browser's back button, other words, sent again: what was said last is what the person means.
        Err(Error::Store(StoreError::KeyReused)) => {
            let key = teaching::key_of_words(&sent.client_key, &text);
            teaching::answer(&state, &view, &visitor, given(key, text.clone())).await
        }
        other => other,
    };
    let error = match stored {
        Ok(_) => {
            let kind = serde_json::to_value(sent.kind).ok();
            let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default();
            return Ok(Redirect::to(&page.url(&format!("/teach/{run}?said={kind}"))).into_response());
        }
        Err(error) => error,
    };
    let problem = error.problem();
    if problem.status >= 500 {
        tracing::error!(%error, "an answer could not be stored");
    }
    let shown = match teaching::lease(&state, &view, &visitor, &[]).await {
        Ok(shown) => shown,
        Err(error) => {
            tracing::warn!(%error, "no execution to show beside the error");
            None
        }
    };
    let mut again = teach_page(&state, page, view, shown, None);
    again.text = text;
    again.problem = Some(problem.detail);
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok((status, page::html(&again)).into_response())
}
