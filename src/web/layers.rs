//! What happens to every request and response: the same-site check, security headers, errors put into words.

use super::AppState;
use super::page::{self, Page};
use crate::error::{Error, Problem};
use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode, Uri, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use std::any::Any;

/// The log span of a request: method and path without the query (which may hold an address to return to), and its number.
pub(super) fn span(request: &Request) -> tracing::Span {
    let number = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or("");
    tracing::info_span!("request", method = %request.method(), path = request.uri().path(), id = number)
}

/// Security headers on everything. Scripts and styles come from our own files only, nobody may frame the pages.
pub(super) async fn security_headers(request: Request, next: Next) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
        font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
    response
}

/// Host and port the client believes it talks to. A proxy's word counts only when the settings trust it.
pub(super) fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri, trust_proxy: bool) -> Option<&'a str> {
    let read = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = if trust_proxy { read(HeaderName::from_static("x-forwarded-host")) } else { None };
    forwarded
        .and_then(|list| list.split(',').next())
        .map(str::trim)
        .or_else(|| read(header::HOST))
        .or_else(|| uri.authority().map(|authority| authority.as_str()))
}

/// Refuses requests that change something and come from another site's page.
///
/// `Sec-Fetch-Site` is the browser's own statement and passes through every proxy; where it is absent (plain http on a
/// local network, old browsers) `Origin` is compared with the host. Programs send neither and are let through: they
/// carry no cookies of a victim.
pub(super) async fn same_site(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) || is_same_site(&state, &request) {
        return next.run(request).await;
    }
    super::intake::unread(request.version(), Error::CrossSite)
}

fn is_same_site(state: &AppState, request: &Request) -> bool {
    let headers = request.headers();
    let read = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(site) = read("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = read("origin") else { return true };
    let Some((scheme, origin_host)) = origin.split_once("://") else { return false };
    let port = if scheme == "https" { ":443" } else { ":80" };
    let bare = |host: &str| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    host(headers, request.uri(), state.settings.trust_proxy).is_some_and(|host| bare(host) == bare(origin_host))
}

/// Turns a panic into an error.
pub(super) fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "unknown".to_owned());
    Error::Panic(message).into_response()
}

/// No such address. One with a slash too many leads to the one without.
pub(super) async fn nowhere(method: Method, uri: Uri) -> Response {
    let path = uri.path();
    let shorter = path.trim_end_matches('/');
    let readable = matches!(method, Method::GET | Method::HEAD);
    if readable && path.ends_with('/') && shorter.starts_with('/') && !shorter.starts_with("//") {
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        return Redirect::permanent(&format!("{shorter}{query}")).into_response();
    }
    Error::NotFound("the page").into_response()
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    page: &'a Page,
    problem: &'a Problem,
    number: &'a str,
}

/// Gives every error its words: a page for people, problem+json for programs (see `crate::error`).
pub(super) async fn render_errors(State(state): State<AppState>, request: Request, next: Next) -> Response {
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

/// What must be remembered of a request to answer it with an error.
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
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if self.html && self.get && problem.code == "no-access" {
            let next = page::encode(&self.address);
            return Redirect::to(&self.page.url(&format!("/access?next={next}"))).into_response();
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
