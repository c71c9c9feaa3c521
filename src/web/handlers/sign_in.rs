//! Signing in with an account, and out again.

use crate::credentials;
use crate::web::error::{Error, Result};
use crate::web::extractors::account::{Guessing, Signed};
use crate::web::extractors::input::{Form, Query};
use crate::web::extractors::{access, cookie, proxy, session};
use crate::web::handlers::access::inner_path;
use crate::web::limits::standing::{self, Standing};
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

/// The sentence for an unknown name, a wrong password and a disabled account: nobody learns which names there are.
const WRONG: &str = "Name and password do not belong together. Check both; capital letters count in the password.";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Page,
    /// Whether there is an access token that opens the researchers' pages, too.
    token: bool,
    name: String,
    next: String,
    problem: Option<String>,
}

/// Query of `GET /sign-in`: `next`, the page to go to.
#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

/// Body of the form.
#[derive(Deserialize)]
pub(crate) struct Entered {
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

/// `GET /sign-in`: the form.
pub(crate) async fn form(State(state): State<AppState>, page: Page, Query(Next { next }): Query<Next>) -> Response {
    if page.account.is_some() {
        return Redirect::to(&page.url(inner_path(&next))).into_response();
    }
    shown(&state, page, String::new(), next, None)
}

fn shown(state: &AppState, page: Page, name: String, next: String, problem: Option<String>) -> Response {
    let token = state.settings.access_token.is_some() && !page.steering;
    page::html(&SignInPage { page, token, name, next, problem })
}

/// A page that says that a limit was met, with the headers that programs read.
pub(crate) fn too_many(standing: &Standing, page: Response) -> Response {
    let mut response = (StatusCode::TOO_MANY_REQUESTS, page).into_response();
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, standing::seconds(standing.wait).max(1).into());
    standing::write_headers(headers, std::slice::from_ref(standing));
    response
}

/// `POST /sign-in`.
pub(crate) async fn enter(
    State(state): State<AppState>,
    page: Page,
    Signed(before): Signed,
    Guessing(limits): Guessing,
    headers: HeaderMap,
    Form(Entered { name, password, next }): Form<Entered>,
) -> Result<Response> {
    if let Some((client, limits)) = &limits
        && let Err(standing) = limits.passwords.begin(*client, &name)
    {
        let again = shown(&state, page, name, next, Some(standing::sentence(&standing)));
        return Ok(too_many(&standing, again));
    }
    let known = state.store.credentials(&name).await?;
    let hash = known.as_ref().map(|known| known.password_hash.clone());
    // Everybody's password is compared, also that of nobody.
    let right =
        password.chars().count() <= credentials::LONGEST_PASSWORD && credentials::verify(password, hash).await?;
    let Some(known) = known.filter(|known| right && !known.disabled) else {
        if let Some((client, limits)) = &limits {
            limits.passwords.was_wrong(*client);
        }
        let again = shown(&state, page, name, next, Some(WRONG.to_owned()));
        return Ok((StatusCode::UNAUTHORIZED, again).into_response());
    };
    if let Some((client, limits)) = &limits {
        limits.passwords.was_right(*client, &name);
    }
    if let Some(before) = before {
        state.store.end_session(before.account, before.session).await?;
    }
    let mut response = Redirect::to(&page.url(inner_path(&next))).into_response();
    session::open(&state, &headers, known.account, &mut response).await?;
    Ok(response)
}

/// `POST /sign-out`: ends the session on this browser, and leads to the start page.
pub(crate) async fn leave(
    State(state): State<AppState>,
    page: Page,
    Signed(signed): Signed,
    headers: HeaderMap,
) -> Result<Response, Error> {
    if let Some(signed) = signed {
        state.store.end_session(signed.account, signed.session).await?;
    }
    let mut response = Redirect::to(&page.url("/")).into_response();
    session::forget(&state.settings, &headers, &mut response);
    if access::by_cookie(&state, &headers) {
        let secure = proxy::is_https(&state.settings, &headers);
        cookie::drop_cookie(&state.settings, &mut response, access::COOKIE, secure);
    }
    Ok(response)
}
