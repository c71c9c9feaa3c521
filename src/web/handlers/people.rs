//! The people who may sign in: their roles, and links that make further accounts. It is for owners.

use crate::credentials;
use crate::ids::AccountId;
use crate::store::{Account, Invite, InviteId, Role, SignedIn, StoreError};
use crate::web::error::{Error, Result};
use crate::web::extractors::account::Owner;
use crate::web::extractors::actor::Actor;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::extractors::proxy;
use crate::web::format;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// For how many days an invitation may be good.
const DAYS: [u64; 4] = [1, 3, 7, 30];

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    page: Page,
    own: Option<Arc<SignedIn>>,
    accounts: Vec<Account>,
    invites: Vec<Invite>,
    /// The link that was just made, and the role that it gives.
    link: Option<(String, Role)>,
    notice: Option<&'static str>,
    problem: Option<String>,
    /// The role and the days that the form of an invitation shows.
    wish: (Role, u64),
}

impl PeoplePage {
    fn is_own(&self, account: &Account) -> bool {
        self.own.as_ref().is_some_and(|own| own.account == account.id)
    }
}

/// Messages of the page of people beside its lists.
#[derive(Default)]
struct Said {
    link: Option<(String, Role)>,
    notice: Option<&'static str>,
    problem: Option<String>,
}

async fn shown(state: &AppState, page: Page, own: Option<Arc<SignedIn>>, said: Said) -> Result<Response> {
    let (accounts, invites) = (state.store.list_accounts().await?, state.store.open_invites().await?);
    let Said { link, notice, problem } = said;
    let wish = (if accounts.is_empty() { Role::Owner } else { Role::Researcher }, 7);
    Ok(page::html(&PeoplePage { page, own, accounts, invites, link, notice, problem, wish }))
}

/// Query of `GET /people`: `done`, what was just done.
#[derive(Deserialize)]
pub(crate) struct Done {
    #[serde(default)]
    done: String,
}

fn notice(done: &str) -> Option<&'static str> {
    Some(match done {
        "role" => "The role was changed; it counts at once.",
        "disabled" => "The account was disabled and signed out everywhere.",
        "enabled" => "The account can sign in again.",
        "revoked" => "The invitation was taken back; its link makes no account any more.",
        _ => return None,
    })
}

/// `GET /people`.
pub(crate) async fn show(
    Owner(own): Owner,
    State(state): State<AppState>,
    page: Page,
    Query(Done { done }): Query<Done>,
) -> Result<Response> {
    shown(&state, page, own, Said { notice: notice(&done), ..Said::default() }).await
}

/// Leads back to the list, or shows it with the reason why nothing was changed.
async fn done(
    state: &AppState,
    page: Page,
    own: Option<Arc<SignedIn>>,
    changed: Result<(), StoreError>,
    word: &str,
) -> Result<Response> {
    match changed {
        Ok(()) => Ok(Redirect::to(&page.url(&format!("/people?done={word}"))).into_response()),
        Err(StoreError::Conflict(_)) => {
            let problem =
                "This is the last owner who can sign in, so nothing was changed. Make somebody else an owner first.";
            let again = shown(state, page, own, Said { problem: Some(problem.to_owned()), ..Said::default() }).await?;
            Ok((StatusCode::CONFLICT, again).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

fn role(text: &str) -> Result<Role> {
    text.parse().map_err(|_| Error::change("role", "Choose one of the roles: owner, researcher, reviewer or teacher."))
}

/// Body of the form that changes a role.
#[derive(Deserialize)]
pub(crate) struct NewRole {
    role: String,
}

/// `POST /people/{account}/role`.
pub(crate) async fn set_role(
    Owner(own): Owner,
    actor: Actor,
    State(state): State<AppState>,
    page: Page,
    Path(account): Path<AccountId>,
    Form(NewRole { role: wanted }): Form<NewRole>,
) -> Result<Response> {
    let wanted = role(&wanted)?;
    let changed = state.store.set_role(account, wanted).await;
    if changed.is_ok() {
        tracing::info!(by = actor.name, %account, role = %wanted, "a role was changed");
    }
    let left = own.as_ref().is_some_and(|own| own.account == account) && wanted != Role::Owner;
    if left && changed.is_ok() {
        return Ok(Redirect::to(&page.url("/account")).into_response());
    }
    done(&state, page, own, changed, "role").await
}

/// `POST /people/{account}/disable`.
pub(crate) async fn disable(
    Owner(own): Owner,
    actor: Actor,
    State(state): State<AppState>,
    page: Page,
    Path(account): Path<AccountId>,
) -> Result<Response> {
    let changed = state.store.set_disabled(account, true).await;
    if changed.is_ok() {
        tracing::info!(by = actor.name, %account, "an account was disabled");
        if own.as_ref().is_some_and(|own| own.account == account) {
            return Ok(Redirect::to(&page.url("/")).into_response());
        }
    }
    done(&state, page, own, changed, "disabled").await
}

/// `POST /people/{account}/enable`.
pub(crate) async fn enable(
    Owner(own): Owner,
    actor: Actor,
    State(state): State<AppState>,
    page: Page,
    Path(account): Path<AccountId>,
) -> Result<Response> {
    let changed = state.store.set_disabled(account, false).await;
    if changed.is_ok() {
        tracing::info!(by = actor.name, %account, "an account was enabled");
    }
    done(&state, page, own, changed, "enabled").await
}

/// Body of the form that makes an invitation.
#[derive(Deserialize)]
pub(crate) struct Wish {
    role: String,
    days: u64,
}

/// `POST /people/invites`: makes a link, and shows it once.
pub(crate) async fn invite(
    Owner(own): Owner,
    actor: Actor,
    State(state): State<AppState>,
    page: Page,
    uri: Uri,
    headers: HeaderMap,
    Form(Wish { role: wanted, days }): Form<Wish>,
) -> Result<Response> {
    let wanted = role(&wanted)?;
    if !DAYS.contains(&days) {
        return Err(Error::change("days", "Choose for how many days the invitation is good: 1, 3, 7 or 30."));
    }
    let token = credentials::random_token()?;
    let good_for = Duration::from_secs(days * 24 * 60 * 60);
    state.store.invite(&token, wanted, own.as_ref().map(|own| own.account), good_for).await?;
    tracing::info!(by = actor.name, role = %wanted, days, "an invitation was made");
    let scheme = if proxy::is_https(&state.settings, &headers) { "https" } else { "http" };
    let host = proxy::host(&headers, &uri, state.settings.trust_proxy).unwrap_or("localhost");
    let link = format!("{scheme}://{host}{}", page.url(&format!("/invite/{token}")));
    let said = Said { link: Some((link, wanted)), ..Said::default() };
    Ok((StatusCode::CREATED, shown(&state, page, own, said).await?).into_response())
}

/// `POST /people/invites/{invite}/revoke`.
pub(crate) async fn revoke(
    Owner(own): Owner,
    actor: Actor,
    State(state): State<AppState>,
    page: Page,
    Path(invite): Path<InviteId>,
) -> Result<Response> {
    let changed = state.store.revoke_invite(invite).await;
    if changed.is_ok() {
        tracing::info!(by = actor.name, %invite, "an invitation was taken back");
    }
    done(&state, page, own, changed, "revoked").await
}
