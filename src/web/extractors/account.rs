//! Extractors of handlers that are for some accounts only. [`access::Steering`] is the one for whoever steers.

use crate::store::{Role, SessionId, SignedIn, TokenId};
use crate::web::error::Error;
use crate::web::extractors::access::{self, Permit};
use crate::web::extractors::actor::Actor;
use crate::web::extractors::program::Program;
use crate::web::extractors::session::Known;
use crate::web::extractors::visitor;
use crate::web::limits::{self, Client, Limits};
use crate::web::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;
use std::sync::Arc;

/// Who is signed in, if anybody is.
pub(crate) struct Signed(pub(crate) Option<Arc<SignedIn>>);

/// Somebody who is signed in; everybody else is sent to sign in.
pub(crate) struct SignedInAccount(pub(crate) Arc<SignedIn>);

/// Who may review what teachers said, for records of who did: an owner, a researcher, a reviewer, the machine itself, or the
/// access token.
pub(crate) struct Reviewer(pub(crate) Actor);

/// Who may see the parts of the pages that show executions: whoever teaches, and whoever reviews.
pub(crate) struct Viewing;

/// Who may manage accounts: an owner, and where no account is needed the machine itself. Its user could do the same by
/// command. The access token is not enough: whoever has it would keep a way in after it was changed.
pub(crate) struct Owner(pub(crate) Option<Arc<SignedIn>>);

/// Who may remove runs for good before their time: whoever steers, but for researchers' accounts, since what somebody else deleted
/// is to be found in the trash.
pub(crate) struct Remover;

/// Whether the sender of a request is a [`Remover`].
pub(crate) struct MayRemove(pub(crate) bool);

/// Whoever steers, with what can end while a stream goes on.
pub(crate) struct SteeringSession(pub(crate) LetIn);

/// By what the reader of a stream is let in, as far as it can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetIn {
    /// By something that lasts.
    Always,
    /// By a session.
    Session(SessionId),
    /// By the token of a program.
    Program(TokenId),
}

/// The buckets of guesses, with the client that they are charged to.
pub(crate) struct Guessing(pub(crate) Option<(Client, Arc<Limits>)>);

impl FromRequestParts<AppState> for Signed {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Infallible> {
        Ok(Signed(Known::of(parts).signed))
    }
}

impl FromRequestParts<AppState> for SignedInAccount {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Error> {
        let known = Known::of(parts);
        if known.failed {
            return Err(Error::Unrecognised);
        }
        known.signed.map(SignedInAccount).ok_or(Error::NotSignedIn)
    }
}

impl FromRequestParts<AppState> for Reviewer {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        Ok(Reviewer(Actor::of(parts, check_reviewer(state, parts)?)))
    }
}

/// Whether a request may review, and by what.
pub(crate) fn check_reviewer(state: &AppState, parts: &Parts) -> Result<Permit, Error> {
    match Known::of(parts).with(Role::reviews) {
        Some(_) => Ok(Permit::Account),
        None => access::check(state, parts),
    }
}

impl FromRequestParts<AppState> for Viewing {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        if check_reviewer(state, parts).is_ok() {
            return Ok(Viewing);
        }
        visitor::known_in(state, parts).await?.map(|_| Viewing).ok_or(Error::NoCookie)
    }
}

/// Whether a request may manage accounts.
pub(crate) fn check_owner(state: &AppState, parts: &Parts) -> Result<(), Error> {
    let known = Known::of(parts);
    // No program manages accounts and tokens: whoever had its token would keep a way in after it was revoked.
    if !matches!(known.program, Program::None) {
        return Err(Error::NotSignedIn);
    }
    if access::from_this_machine(state, parts) || known.with(|role| role == Role::Owner).is_some() {
        return Ok(());
    }
    Err(known.signed.map_or(Error::NotSignedIn, |signed| Error::NotPermitted(signed.role)))
}

impl FromRequestParts<AppState> for Owner {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        check_owner(state, parts)?;
        Ok(Owner(Known::of(parts).signed))
    }
}

/// Whether a request may remove runs for good.
fn check_remover(state: &AppState, parts: &Parts) -> Result<(), Error> {
    if access::check(state, parts)? != Permit::Account {
        return Ok(());
    }
    let known = Known::of(parts);
    if known.with(|role| role == Role::Owner).is_some() {
        return Ok(());
    }
    Err(known.signed.map_or(Error::NotSignedIn, |signed| Error::NotPermitted(signed.role)))
}

impl FromRequestParts<AppState> for Remover {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        check_remover(state, parts).map(|()| Remover)
    }
}

impl FromRequestParts<AppState> for MayRemove {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        Ok(MayRemove(check_remover(state, parts).is_ok()))
    }
}

impl FromRequestParts<AppState> for SteeringSession {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let permit = access::check(state, parts)?;
        let known = Known::of(parts);
        Ok(SteeringSession(match (permit, known.signed, known.program) {
            (Permit::Account, Some(signed), _) => LetIn::Session(signed.session),
            (Permit::Program, _, Program::Known(token)) => LetIn::Program(token.id),
            _ => LetIn::Always,
        }))
    }
}

impl FromRequestParts<AppState> for Guessing {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Infallible> {
        Ok(Guessing(limits::of(parts).filter(|(_, limits)| limits.is_on())))
    }
}
