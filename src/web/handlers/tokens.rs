//! The tokens of programs: their list, and forms that make and revoke them. It is for owners.

use crate::credentials::random_token;
use crate::store::{ApiToken, Scope, StoreError, TokenId};
use crate::web::error::{Error, Result};
use crate::web::extractors::account::Owner;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::extractors::program::PREFIX;
use crate::web::format;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::collections::BTreeMap;
use time::{Duration, OffsetDateTime};

/// For how many days a token may be good, in words; 0 is for ever.
const DAYS: [(u64, &str); 4] = [(30, "30 days"), (90, "90 days"), (365, "365 days"), (0, "ever, until it is revoked")];

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    page: Page,
    tokens: Vec<ApiToken>,
    /// The token that was just made, with its name.
    made: Option<(String, String)>,
    notice: Option<&'static str>,
    problem: Option<String>,
    name: String,
    chosen: Vec<Scope>,
    days: u64,
}

async fn shown(state: &AppState, page: Page, notice: Option<&'static str>) -> Result<TokensPage> {
    Ok(TokensPage {
        page,
        tokens: state.store.api_tokens().await?,
        made: None,
        notice,
        problem: None,
        name: String::new(),
        chosen: vec![Scope::Read],
        days: DAYS[1].0,
    })
}

/// Query of `GET /tokens`: `done`, what was just done.
#[derive(Deserialize)]
pub(crate) struct Done {
    #[serde(default)]
    done: String,
}

/// `GET /tokens`.
pub(crate) async fn show(
    _: Owner,
    State(state): State<AppState>,
    page: Page,
    Query(Done { done }): Query<Done>,
) -> Result<Response> {
    let notice = (done == "revoked").then_some("The token was revoked. No program can use it any more.");
    Ok(page::html(&shown(&state, page, notice).await?))
}

/// `POST /tokens`: makes a token and shows it once.
pub(crate) async fn create(
    Owner(own): Owner,
    State(state): State<AppState>,
    page: Page,
    Form(form): Form<BTreeMap<String, String>>,
) -> Result<Response> {
    let name = form.get("name").cloned().unwrap_or_default();
    let chosen: Vec<Scope> =
        Scope::ALL.into_iter().filter(|scope| form.contains_key(&format!("scope-{scope}"))).collect();
    let days = form
        .get("days")
        .and_then(|days| days.parse::<u64>().ok())
        .filter(|days| DAYS.iter().any(|known| known.0 == *days));
    let days = days.ok_or_else(|| Error::change("days", "Choose for how long the token is good."))?;
    let expires = (days > 0).then(|| OffsetDateTime::now_utc() + Duration::days(days.cast_signed()));
    let maker = own.map_or_else(|| "this machine".to_owned(), |own| own.name.clone());
    let token = format!("{PREFIX}{}", random_token()?);
    let stored = state.store.create_api_token(&token, &name, &chosen, &maker, expires).await;
    let mut again = shown(&state, page, None).await?;
    match stored {
        Ok(_) => {
            again.made = Some((token, name.trim().to_owned()));
            Ok((StatusCode::CREATED, page::html(&again)).into_response())
        }
        Err(StoreError::Invalid(sentence)) => {
            (again.problem, again.name, again.chosen, again.days) = (Some(sentence), name, chosen, days);
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page::html(&again)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /tokens/{token}/revoke`.
pub(crate) async fn revoke(
    _: Owner,
    State(state): State<AppState>,
    page: Page,
    Path(token): Path<TokenId>,
) -> Result<Redirect> {
    state.store.revoke_api_token(token).await?;
    Ok(Redirect::to(&page.url("/tokens?done=revoked")))
}
