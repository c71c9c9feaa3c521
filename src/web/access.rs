//! Who may steer runs. On the server's own machine: whoever sits at it. From elsewhere: whoever has the access token.

use super::extract::{Form, Query};
use super::page::{self, Page};
use super::{AppState, layers, visitor};
use crate::error::Error;
use askama::Template;
use axum::extract::{FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Name of the cookie that stands for the token.
const COOKIE: &str = "iliad_access";

/// Extractor of every page and command that steers a run or shows its data.
pub(super) struct Steering;

impl FromRequestParts<AppState> for Steering {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        check(state, parts).map(|()| Steering)
    }
}

/// Whether this request may steer.
pub(super) fn check(state: &AppState, parts: &Parts) -> Result<(), Error> {
    if from_this_machine(state, parts) {
        return Ok(());
    }
    let token = state.settings.access_token.as_deref().ok_or(Error::SteeringOff)?;
    let bearer = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer =
        bearer.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if bearer.is_some_and(|(_, given)| same(given.trim(), token)) {
        return Ok(());
    }
    if by_cookie(state, &parts.headers) { Ok(()) } else { Err(Error::NoAccess) }
}

/// Whether the browser has the cookie of somebody who entered the token.
pub(super) fn by_cookie(state: &AppState, headers: &HeaderMap) -> bool {
    let jar = CookieJar::from_headers(headers);
    let given = jar.get(COOKIE).map(|cookie| cookie.value());
    let wanted = state.settings.access_token.as_deref().map(cookie_value);
    given.zip(wanted).is_some_and(|(given, wanted)| same(given, &wanted))
}

/// A loopback listener is not enough: a proxy on this machine, a tunnel, or a foreign name that resolves to 127.0.0.1
/// all arrive through it. So the browser must also believe that it talks to this machine, and nobody may have
/// forwarded the request.
fn from_this_machine(state: &AppState, parts: &Parts) -> bool {
    let forwarded =
        ["forwarded", "x-forwarded-for", "x-forwarded-host"].iter().any(|name| parts.headers.contains_key(*name));
    state.settings.loopback
        && !forwarded
        && layers::host(&parts.headers, &parts.uri, false).is_none_or(|host| {
            let name = match host.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
                _ => host,
            };
            let name = name.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost") || name == "[::1]" || {
                name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            }
        })
}

/// Equality that takes the same time wherever two values first differ.
fn same(given: &str, wanted: &str) -> bool {
    let (given, wanted) = (Sha256::digest(given), Sha256::digest(wanted));
    given.iter().zip(wanted.iter()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The cookie holds a digest, so that reading a browser's cookies does not reveal the token itself.
fn cookie_value(token: &str) -> String {
    Sha256::digest(format!("iliad access {token}")).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage {
    page: Page,
    next: String,
    problem: Option<&'static str>,
}

/// `GET /access`: the form. Query of the form: `next`, the page to go to.
#[derive(Deserialize)]
pub(super) struct Next {
    #[serde(default)]
    next: String,
}

/// `POST /access`: what the form sends.
#[derive(Deserialize)]
pub(super) struct Entered {
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
}

/// Only a path of this application may be gone to.
fn inner_path(next: &str) -> &str {
    let plain = next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\n', '\r', '\t']);
    if plain { next } else { "/" }
}

pub(super) async fn form(page: Page, Query(Next { next }): Query<Next>) -> Result<Response, Error> {
    if page.steering {
        return Ok(Redirect::to(&page.url(inner_path(&next))).into_response());
    }
    if !page.can_sign_in {
        return Err(Error::SteeringOff);
    }
    Ok(page::html(&AccessPage { page, next, problem: None }))
}

/// `POST /access/leave`: signs out on this browser, and leads to the start page.
pub(super) async fn leave(State(state): State<AppState>, page: Page, headers: HeaderMap) -> Response {
    let mut response = Redirect::to(&page.url("/")).into_response();
    visitor::drop_cookie(&state, &mut response, COOKIE, visitor::is_https(&state, &headers));
    response
}

pub(super) async fn enter(
    State(state): State<AppState>,
    page: Page,
    headers: HeaderMap,
    Form(Entered { token, next }): Form<Entered>,
) -> Result<Response, Error> {
    let wanted = state.settings.access_token.as_deref().ok_or(Error::SteeringOff)?;
    if !same(token.trim(), wanted) {
        let problem = Some(
            "That is not the token. The people who run this server know it: it was printed at its start, or they set it themselves.",
        );
        let again = AccessPage { page, next, problem };
        return Ok((StatusCode::UNAUTHORIZED, page::html(&again)).into_response());
    }
    let mut response = Redirect::to(&page.url(inner_path(&next))).into_response();
    let secure = visitor::is_https(&state, &headers);
    visitor::set_cookie(&state, &mut response, COOKIE, &cookie_value(wanted), secure);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_paths_are_gone_to() {
        for bad in ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\nb"] {
            assert_eq!(inner_path(bad), "/", "{bad:?}");
        }
        assert_eq!(inner_path("/runs/a?x=1"), "/runs/a?x=1");
    }

    #[test]
    fn comparison_is_by_whole_value() {
        assert!(same("abc", "abc"));
        assert!(!same("abc", "abcd") && !same("", "abc"));
    }
}
