//! One's own account: where one is signed in, and the password.

use crate::credentials;
use crate::store::{Role, Session, SessionId, SignedIn};
use crate::web::error::Result;
use crate::web::extractors::account::{Guessing, SignedInAccount};
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::format;
use crate::web::handlers::sign_in::too_many;
use crate::web::limits::standing;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    page: Page,
    account: Arc<SignedIn>,
    sessions: Vec<Session>,
    notice: Option<&'static str>,
    problem: Option<String>,
}

/// Query of `GET /account`: `done`, what was just done.
#[derive(Deserialize)]
pub(crate) struct Done {
    #[serde(default)]
    done: String,
}

fn notice(done: &str) -> Option<&'static str> {
    Some(match done {
        "password" => "Your password was changed, and you were signed out everywhere else.",
        "session" => "That browser was signed out.",
        "others" => "You were signed out everywhere else.",
        _ => return None,
    })
}

async fn shown(
    state: &AppState,
    page: Page,
    account: Arc<SignedIn>,
    notice: Option<&'static str>,
    problem: Option<String>,
) -> Result<Response> {
    let sessions = state.store.sessions_of(account.account).await?;
    Ok(page::html(&AccountPage { page, account, sessions, notice, problem }))
}

/// `GET /account`.
pub(crate) async fn show(
    SignedInAccount(account): SignedInAccount,
    State(state): State<AppState>,
    page: Page,
    Query(Done { done }): Query<Done>,
) -> Result<Response> {
    shown(&state, page, account, notice(&done), None).await
}

/// `POST /account/sessions/{session}/end`: signs out one browser of one's own.
pub(crate) async fn end_session(
    SignedInAccount(account): SignedInAccount,
    State(state): State<AppState>,
    page: Page,
    Path(session): Path<SessionId>,
) -> Result<Redirect> {
    state.store.end_session(account.account, session).await?;
    let to = if session == account.session { "/" } else { "/account?done=session" };
    Ok(Redirect::to(&page.url(to)))
}

/// `POST /account/sessions/end-others`: signs out all browsers of one's own but this one.
pub(crate) async fn end_others(
    SignedInAccount(account): SignedInAccount,
    State(state): State<AppState>,
    page: Page,
) -> Result<Redirect> {
    state.store.end_other_sessions(account.account, account.session).await?;
    Ok(Redirect::to(&page.url("/account?done=others")))
}

/// Body of the form that changes the password.
#[derive(Deserialize)]
pub(crate) struct Passwords {
    #[serde(default)]
    current: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    again: String,
}

/// `POST /account/password`: changes one's password, which ends one's other sessions.
pub(crate) async fn change_password(
    SignedInAccount(account): SignedInAccount,
    Guessing(limits): Guessing,
    State(state): State<AppState>,
    page: Page,
    Form(Passwords { current, password, again }): Form<Passwords>,
) -> Result<Response> {
    let refused = match credentials::password_problem(&password, &account.name) {
        None if password != again => Some("The two new passwords differ; enter the same one twice."),
        problem => problem,
    };
    if let Some(problem) = refused {
        let again = shown(&state, page, account, None, Some(problem.to_owned())).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response());
    }
    // Somebody at a browser that was left open must not guess the password there.
    if let Some((client, limits)) = &limits
        && let Err(standing) = limits.passwords.begin(*client, &account.name)
    {
        let again = shown(&state, page, account, None, Some(standing::sentence(&standing))).await?;
        return Ok(too_many(&standing, again));
    }
    let known = state.store.credentials(&account.name).await?;
    if !credentials::verify(current, known.map(|known| known.password_hash)).await? {
        if let Some((client, limits)) = &limits {
            limits.passwords.was_wrong(*client);
        }
        let problem = "That is not your current password. Nothing was changed.".to_owned();
        let again = shown(&state, page, account, None, Some(problem)).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response());
    }
    if let Some((client, limits)) = &limits {
        limits.passwords.was_right(*client, &account.name);
    }
    let hash = credentials::hash(password).await?;
    state.store.set_password(account.account, &hash, Some(account.session)).await?;
    Ok(Redirect::to(&page.url("/account?done=password")).into_response())
}
