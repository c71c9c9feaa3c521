//! Who changes something, for records of who did what.

use crate::ids::AccountId;
use crate::web::error::Error;
use crate::web::extractors::access::{self, Permit};
use crate::web::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Who carries out a request that steers. It refuses everybody whom [`access::Steering`] refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    #[allow(dead_code, reason = "records name people by the name that they had")]
    /// The account that is signed in; `None` for the machine itself and the access token.
    pub(crate) account: Option<AccountId>,
    /// The account's name, "this machine" or "access token".
    pub(crate) name: String,
}

impl FromRequestParts<AppState> for Actor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let name = match access::check(state, parts)? {
            Permit::ThisMachine => "this machine",
            Permit::Token => "access token",
        };
        Ok(Actor { account: None, name: name.to_owned() })
    }
}
