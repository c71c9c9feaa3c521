//! The guide as a page.

use crate::family::Audience;
use crate::web::error::Result;
use crate::web::page::panel::Panel;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use askama::Template;
use axum::response::Response;

#[derive(Template)]
#[template(path = "guide.html")]
struct GuidePage {
    page: Page,
    panel: Panel,
    title: &'static str,
    lead: &'static str,
    heading: &'static str,
    /// The request of the example, where people see it.
    request: Option<String>,
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
    let panel = Panel::of(&view);
    let (title, lead, heading) = panel.guide();
    let (request, good, poor) = match panel.describes() {
        true => (None, guide.good, guide.poor),
        // A good description of the example is a request for it.
        false => {
            let (good, poor) = panel.advice();
            (guide.good.into_iter().next().map(|(request, _)| request), good, poor)
        }
    };
    Ok(page::html(&GuidePage { page, panel, title, lead, heading, request, view, example, good, poor, first }))
}
