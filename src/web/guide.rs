//! The first visit: one example with good and poor descriptions, and why. Shown once, and again when asked for.

use super::AppState;
use super::extract::Path;
use super::page::{self, Page};
use super::run_view::RunView;
use super::visitor::Visitor;
use crate::error::Result;
use crate::task::Audience;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};

#[derive(Template)]
#[template(path = "guide.html")]
struct GuidePage {
    page: Page,
    view: RunView,
    example: String,
    good: Vec<(String, String)>,
    poor: Vec<(String, String)>,
    first: bool,
}

/// The guide as a response.
pub(super) fn show(page: Page, view: RunView, first: bool) -> Result<Response> {
    let guide = view.family.guide();
    let example = view.family.render(&guide.view, Audience::Teacher)?;
    Ok(page::html(&GuidePage { page, view, example, good: guide.good, poor: guide.poor, first }))
}

/// `GET /teach/{run}/guide`.
pub(super) async fn page(
    State(state): State<AppState>,
    Path(run): Path<String>,
    page: Page,
    visitor: Visitor,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    show(page, view, !visitor.teacher.seen_guide)
}

/// `POST /teach/{run}/guide`: understood; on to teaching.
pub(super) async fn seen(
    State(state): State<AppState>,
    Path(run): Path<String>,
    page: Page,
    visitor: Visitor,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    state.store.set_seen_guide(visitor.teacher.id).await?;
    Ok(Redirect::to(&page.url(&format!("/teach/{}", view.run.id))).into_response())
}
