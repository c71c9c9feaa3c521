//! The start page.

use super::AppState;
use super::page::{self, Page};
use super::run_view::RunView;
use crate::error::Result;
use crate::task::{Audience, Family};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    active: Vec<RunView>,
    /// Runs that an error ended, or kept from going on, since the server started.
    failed: Vec<RunView>,
    others: usize,
    example: Option<Example>,
}

/// All runs that can be shown, newest first. A run of a family that this build does not know is left out.
pub(super) async fn all(state: &AppState) -> Result<Vec<RunView>> {
    let mut views = Vec::new();
    for run in state.store.runs().await? {
        if state.family(&run.family).is_some() {
            views.push(RunView::of(state, run).await?);
        }
    }
    Ok(views)
}

/// An execution and a description of it, so that a newcomer sees at a glance what this is about.
struct Example {
    title: &'static str,
    html: String,
    sentence: String,
}

impl Example {
    fn of(family: &dyn Family) -> Option<Example> {
        let guide = family.guide();
        let html = family.render(&guide.view, Audience::Teacher).ok()?;
        let (sentence, _) = guide.good.into_iter().next()?;
        Some(Example { title: family.title(), html, sentence })
    }
}

/// `GET /`: what this is, and the runs that can learn.
pub(super) async fn home(State(state): State<AppState>, page: Page) -> Result<Response> {
    let (mut active, mut failed, mut others) = (Vec::new(), Vec::new(), 0);
    for run in state.store.runs().await? {
        let known = state.runs.get(&run.id).is_some() || state.runs.refusal(&run.id).is_some();
        if !known || state.family(&run.family).is_none() {
            others += 1;
            continue;
        }
        let view = RunView::of(&state, run).await?;
        match view.trouble() {
            Some(_) => failed.push(view),
            None if view.ended() => others += 1,
            None => active.push(view),
        }
    }
    let family = active.first().map(|view| view.family).or(state.families.first().copied());
    let example = family.and_then(Example::of);
    Ok(page::html(&HomePage { page, active, failed, others, example }))
}
