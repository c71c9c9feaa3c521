//! Curves of any runs over each other. The page itself asks for the points of what is chosen.

use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "charts.html")]
struct ChartsPage {
    page: Page,
    runs: Vec<RunView>,
}

/// `GET /charts`.
pub(crate) async fn page(_: Steering, State(state): State<AppState>, page: Page) -> Result<Response> {
    let runs = RunView::all(&state).await?;
    Ok(page::html(&ChartsPage { page, runs }))
}
