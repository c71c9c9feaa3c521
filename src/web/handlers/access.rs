//! The page on which researchers enter the access token.

use crate::web::error::Error;
use crate::web::extractors::input::{Form, Query};
use crate::web::extractors::{access, cookie, proxy};
use crate::web::format;
use crate::web::limits::{Client, Limits, Verdict};
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage {
    page: Page,
    next: String,
    problem: Option<&'static str>,
}

/// `GET /access`: the form. Query of the form: `next`, the page to go to.
#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

/// `POST /access`: what the form sends.
#[derive(Deserialize)]
pub(crate) struct Entered {
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
}

/// Only a path of this application may be gone to.
pub(crate) fn inner_path(next: &str) -> &str {
    let plain =
        next.starts_with('/') && !next.starts_with("//") && !next.contains(|c: char| c == '\\' || c.is_control());
    if plain { next } else { "/" }
}

pub(crate) async fn form(
    State(state): State<AppState>,
    page: Page,
    Query(Next { next }): Query<Next>,
) -> Result<Response, Error> {
    if page.steering {
        return Ok(Redirect::to(&page.url(inner_path(&next))).into_response());
    }
    if state.settings.access_token.is_none() {
        return match page.accounts {
            true => Ok(Redirect::to(&page.url(&format!("/sign-in?next={}", format::encode(&next)))).into_response()),
            false => Err(Error::SteeringOff),
        };
    }
    Ok(page::html(&AccessPage { page, next, problem: None }))
}

/// `POST /access/leave`: signs out on this browser, and leads to the start page.
pub(crate) async fn leave(State(state): State<AppState>, page: Page, headers: HeaderMap) -> Response {
    let mut response = Redirect::to(&page.url("/")).into_response();
    cookie::drop_cookie(&state.settings, &mut response, access::COOKIE, proxy::is_https(&state.settings, &headers));
    response
}

pub(crate) async fn enter(
    State(state): State<AppState>,
    page: Page,
    asking: Option<Extension<Client>>,
    limits: Option<Extension<Arc<Limits>>>,
    headers: HeaderMap,
    Form(Entered { token, next }): Form<Entered>,
) -> Result<Response, Error> {
    let wanted = state.settings.access_token.as_deref().ok_or(Error::SteeringOff)?;
    let limits = asking.zip(limits).map(|(Extension(client), Extension(limits))| (client, limits));
    match access::judge(limits.as_ref(), token.trim(), access::same(token.trim(), wanted)) {
        Verdict::Right => {}
        Verdict::TooMany(standing) => return Err(Error::TooMany(Box::new(standing))),
        Verdict::Wrong => {
            let problem = Some(
                "That is not the token. The people who run this server know it: it was printed at its start, or they set it themselves.",
            );
            let again = AccessPage { page, next, problem };
            return Ok((StatusCode::UNAUTHORIZED, page::html(&again)).into_response());
        }
    }
    let session = access::new_session(wanted)?;
    if let Some((_, limits)) = &limits {
        limits.guesses.remember(&session);
    }
    let mut response = Redirect::to(&page.url(inner_path(&next))).into_response();
    let secure = proxy::is_https(&state.settings, &headers);
    cookie::set_cookie(&state.settings, &mut response, access::COOKIE, &session, secure);
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
}
