//! Who changes something, for records of who did what.

use crate::ids::AccountId;
use crate::web::error::Error;
use crate::web::extractors::access::{self, Permit};
use crate::web::extractors::program::Program;
use crate::web::extractors::session::Known;
use crate::web::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Who carries out a request that steers. It refuses everybody whom [`access::Steering`] refuses, so that a handler needs no
/// other extractor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    /// The account that is signed in; `None` for the machine itself and the access token.
    #[allow(dead_code, reason = "records name people by the name that they had")]
    pub(crate) account: Option<AccountId>,
    /// The account's name, "this machine" or "access token".
    pub(crate) name: String,
}

impl Actor {
    /// Who acts in a request that `permit` lets through. Somebody who is signed in acts under their name, whatever else would
    /// let them in.
    pub(crate) fn of(parts: &Parts, permit: Permit) -> Actor {
        if let Some(signed) = Known::of(parts).signed {
            return Actor { account: Some(signed.account), name: signed.name.clone() };
        }
        if let Program::Known(token) = Known::of(parts).program {
            return Actor { account: None, name: format!("token {}", token.name) };
        }
        let name = if permit == Permit::ThisMachine { "this machine" } else { "access token" };
        Actor { account: None, name: name.to_owned() }
    }
}

impl FromRequestParts<AppState> for Actor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let permit = access::check(state, parts)?;
        Ok(Actor::of(parts, permit))
    }
}
