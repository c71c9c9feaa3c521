//! The start page and the list of runs.

use super::AppState;
use super::access::Steering;
use super::page::{self, Page};
use super::run_view::RunView;
use crate::error::Result;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    active: Vec<RunView>,
    others: usize,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    page: Page,
    runs: Vec<RunView>,
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

/// `GET /`: what this is, and the runs that are alive.
pub(super) async fn home(State(state): State<AppState>, page: Page) -> Result<Response> {
    let (mut active, mut others) = (Vec::new(), 0);
    for run in state.store.runs().await? {
        if state.runs.get(&run.id).is_some() && state.family(&run.family).is_some() {
            active.push(RunView::of(&state, run).await?);
        } else {
            others += 1;
        }
    }
    Ok(page::html(&HomePage { page, active, others }))
}

/// `GET /runs`: every run.
pub(super) async fn runs(_: Steering, State(state): State<AppState>, page: Page) -> Result<Response> {
    let runs = all(&state).await?;
    Ok(page::html(&RunsPage { page, runs }))
}
