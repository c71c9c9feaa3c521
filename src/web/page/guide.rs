//! The guide as a page.

use crate::family::Audience;
use crate::web::error::Result;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use askama::Template;
use axum::response::Response;

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
pub(crate) fn show(page: Page, view: RunView, first: bool) -> Result<Response> {
    let guide = view.family.guide();
    let example = view.family.render(&guide.view, Audience::Teacher)?;
    Ok(page::html(&GuidePage { page, view, example, good: guide.good, poor: guide.poor, first }))
}
