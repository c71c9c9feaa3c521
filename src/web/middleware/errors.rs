//! Puts errors into words: every error becomes a page for people or a problem document for programs, and a panic becomes
//! an error.

use crate::web::error::{Error, Problem};
use crate::web::format;
use crate::web::page::Page;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{Method, StatusCode, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use std::any::Any;

/// Turns a panic into an error.
pub(crate) fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "unknown".to_owned());
    Error::Panic(message).into_response()
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    page: &'a Page,
    problem: &'a Problem,
    number: &'a str,
}

/// Gives every error its words: a page for people, problem+json for programs (see `web::error`).
pub(crate) async fn render_errors(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let asked = Asked::of(&state, &parts);
    let response = next.run(Request::from_parts(parts, body)).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = match response.extensions().get::<Problem>() {
        Some(problem) => problem.clone(),
        // A handler that made its own page for the error (a form with the text still in it).
        None if response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|t| t.as_bytes().starts_with(b"text/html")) =>
        {
            return response;
        }
        None => Problem::of_status(status),
    };
    let mut rendered = asked.render(&problem);
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH && !rendered.headers().contains_key(name) {
            rendered.headers_mut().append(name, value.clone());
        }
    }
    rendered
}

/// The parts of a request that are needed to answer it with an error.
struct Asked {
    page: Page,
    html: bool,
    get: bool,
    address: String,
    number: String,
}

impl Asked {
    fn of(state: &AppState, parts: &request::Parts) -> Asked {
        let base = &state.settings.base_path;
        let path = parts.uri.path();
        let inner = path.strip_prefix(base.as_str()).unwrap_or(path);
        let accepts = |kind: &str| {
            parts.headers.get_all(header::ACCEPT).iter().any(|v| v.to_str().is_ok_and(|v| v.contains(kind)))
        };
        Asked {
            page: Page::of(state, parts),
            html: !inner.starts_with("/api/") && accepts("text/html"),
            get: parts.method == Method::GET,
            address: parts
                .uri
                .path_and_query()
                .map_or(inner, |p| p.as_str().strip_prefix(base.as_str()).unwrap_or(p.as_str()))
                .to_owned(),
            number: parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or("").to_owned(),
        }
    }

    fn render(&self, problem: &Problem) -> Response {
        let status = problem.status();
        if self.html && self.get && matches!(problem.code, "no-access" | "not-signed-in") {
            let next = format::encode(&self.address);
            let accounts = self.page.accounts || problem.code == "not-signed-in";
            let form = if accounts { "sign-in" } else { "access" };
            return Redirect::to(&self.page.url(&format!("/{form}?next={next}"))).into_response();
        }
        if self.html {
            let page = ErrorPage { page: &self.page, problem, number: &self.number };
            if let Ok(html) = page.render() {
                return (status, axum::response::Html(html)).into_response();
            }
        }
        let mut response = (status, axum::Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
