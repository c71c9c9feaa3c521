//! The start page.

use crate::family::Audience;
use crate::registry::AnyFamily;
use crate::web::error::Result;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
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

/// An execution and a description of it, so that a newcomer sees at a glance what this is about.
struct Example {
    title: &'static str,
    html: String,
    sentence: String,
}

impl Example {
    fn of(family: &dyn AnyFamily) -> Option<Example> {
        let guide = family.guide();
        let html = family.render(&guide.view, Audience::Teacher).ok()?;
        let (sentence, _) = guide.good.into_iter().next()?;
        Some(Example { title: family.title(), html, sentence })
    }
}

/// `GET /`: what this is, and the runs that can learn.
pub(crate) async fn home(State(state): State<AppState>, page: Page) -> Result<Response> {
    // Only runs that this process knows are read: there may be very many others.
    let mut views = RunView::of_many(&state, state.store.runs_of(&state.runs.ids()).await?).await?;
    views.retain(|view| view.label.trashed_at.is_none());
    let (failed, views): (Vec<_>, Vec<_>) = views.into_iter().partition(|view| view.trouble().is_some());
    let active: Vec<_> = views.into_iter().filter(|view| !view.ended()).collect();
    let others = (state.store.run_count().await? as usize).saturating_sub(active.len() + failed.len());
    let family = active.first().map(|view| view.family).or(state.families.first().copied());
    let example = family.and_then(Example::of);
    Ok(page::html(&HomePage { page, active, failed, others, example }))
}
