//! Links that make an account. The link is opened once; from then on its token travels in the form, and no address has it.

use crate::credentials;
use crate::store::{Joined, Role, StoreError};
use crate::web::error::{Error, Result};
use crate::web::extractors::account::{Guessing, Signed};
use crate::web::extractors::input::{Form, Path};
use crate::web::extractors::session;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "invite.html")]
struct InvitePage {
    page: Page,
    /// The account that the link makes; `None` when it makes none any more.
    good_for: Option<Good>,
    name: String,
    problem: Option<String>,
}

/// A link that makes an account.
struct Good {
    token: String,
    role: Role,
}

fn shown(page: InvitePage, status: StatusCode) -> Response {
    let mut response = (status, page::html(&page)).into_response();
    // The page has the token in its form.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn gone(page: Page) -> Response {
    shown(InvitePage { page, good_for: None, name: String::new(), problem: None }, StatusCode::GONE)
}

/// `GET /invite/{token}` and `GET /welcome/{token}`: the form in which the account is made.
pub(crate) async fn open(
    State(state): State<AppState>,
    page: Page,
    Guessing(limits): Guessing,
    Path(token): Path<String>,
) -> Result<Response> {
    if let Some((client, limits)) = &limits {
        limits.passwords.may_follow(*client).map_err(|standing| Error::TooMany(Box::new(standing)))?;
    }
    let Some(role) = state.store.invited_role(&token).await? else {
        if let Some((client, limits)) = &limits {
            limits.passwords.wrong_link(*client);
        }
        return Ok(gone(page));
    };
    let good_for = Some(Good { token, role });
    Ok(shown(InvitePage { page, good_for, name: String::new(), problem: None }, StatusCode::OK))
}

/// `GET /invite` and `GET /welcome`: somebody reloaded the page of the form, or cut the link.
pub(crate) async fn cut(page: Page) -> Response {
    gone(page)
}

/// Body of the form.
#[derive(Deserialize)]
pub(crate) struct Entered {
    #[serde(default)]
    token: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    again: String,
}

/// `POST /invite`: makes the account, and signs it in on this browser.
pub(crate) async fn accept(
    State(state): State<AppState>,
    page: Page,
    Signed(before): Signed,
    Guessing(limits): Guessing,
    headers: HeaderMap,
    Form(Entered { token, name, password, again }): Form<Entered>,
) -> Result<Response> {
    if let Some((client, limits)) = &limits {
        limits.passwords.may_follow(*client).map_err(|standing| Error::TooMany(Box::new(standing)))?;
    }
    let Some(role) = state.store.invited_role(&token).await? else {
        if let Some((client, limits)) = &limits {
            limits.passwords.wrong_link(*client);
        }
        return Ok(gone(page));
    };
    let refused = match crate::store::account_name(&name) {
        Err(StoreError::Invalid(sentence)) => Some(sentence),
        Err(error) => return Err(error.into()),
        Ok(_) if password != again => Some("The two passwords differ; enter the same one twice.".to_owned()),
        Ok(name) => credentials::password_problem(&password, name).map(str::to_owned),
    };
    let again = |page: Page, name: String, problem: String, status: StatusCode| {
        let good_for = Some(Good { token: token.clone(), role });
        shown(InvitePage { page, good_for, name, problem: Some(problem) }, status)
    };
    if let Some(problem) = refused {
        return Ok(again(page, name, problem, StatusCode::UNPROCESSABLE_ENTITY));
    }
    let hash = credentials::hash(password).await?;
    let account = match state.store.join(&token, &name, &hash).await? {
        Joined::Account(account) => account,
        Joined::Gone => return Ok(gone(page)),
        Joined::NameTaken => {
            let problem = "Somebody here has this name already; choose another one.".to_owned();
            return Ok(again(page, name, problem, StatusCode::CONFLICT));
        }
    };
    tracing::info!(%account, %role, "an account was made");
    if let Some(before) = before {
        state.store.end_session(before.account, before.session).await?;
    }
    let to = match role {
        Role::Owner => "/people",
        Role::Researcher => "/runs",
        Role::Reviewer | Role::Teacher => "/",
    };
    let mut response = Redirect::to(&page.url(to)).into_response();
    session::open(&state, &headers, account, &mut response).await?;
    Ok(response)
}
