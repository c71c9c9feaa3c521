//! The first visit: one example with good and poor descriptions, and why. Shown once, and again when asked for.

use super::AppState;
use super::extract::Path;
use super::page::{self, Page};
use super::run_view::RunView;
use super::visitor::{Guest, KnownVisitor};
use crate::error::{Error, Problem, Result};
use crate::family::Audience;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
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
    Guest(visitor): Guest,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let seen = visitor.is_some_and(|visitor| visitor.teacher.seen_guide);
    show(page, view, !seen)
}

/// In the place of the page that cannot come, because the browser keeps its cookie to itself.
#[derive(Template)]
#[template(path = "no_cookie.html")]
struct NoCookiePage {
    page: Page,
    problem: Problem,
    run: String,
}

/// `POST /teach/{run}/guide`: understood; on to teaching. A browser that does not return the cookie would be led back to
/// the guide for ever: it is told what is the matter instead.
pub(super) async fn seen(
    State(state): State<AppState>,
    Path(run): Path<String>,
    page: Page,
    visitor: Result<KnownVisitor>,
    headers: HeaderMap,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    match visitor {
        Ok(KnownVisitor(visitor)) => {
            state.store.set_seen_guide(visitor.teacher.id).await?;
            Ok(Redirect::to(&page.url(&format!("/teach/{}", page::encode(&view.run.id)))).into_response())
        }
        Err(Error::NoCookie) if accepts_html(&headers) => {
            let page = NoCookiePage { page, problem: Error::NoCookie.problem(), run };
            Ok((StatusCode::FORBIDDEN, page::html(&page)).into_response())
        }
        Err(error) => Err(error),
    }
}

fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}
