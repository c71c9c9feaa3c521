//! The page that lays the curves of any runs over each other. Its script reads them from the addresses of the runs.

use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::page::{self, Page};
use askama::Template;
use axum::response::Response;
use serde_json::json;

#[derive(Template)]
#[template(path = "run_compare.html")]
struct ComparePage {
    page: Page,
    /// Data for the script, as JSON.
    data: String,
}

/// `GET /runs/compare`.
pub(crate) async fn page(_: Steering, page: Page) -> Result<Response> {
    let data = json!({ "runs": page.url("/api/runs") }).to_string();
    Ok(page::html(&ComparePage { page, data }))
}
