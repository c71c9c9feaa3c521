//! Who changes something, for records of who did what.

use crate::ids::AccountId;
use crate::web::error::Error;
use crate::web::extractors::access::Permit;
use crate::web::extractors::account::check_reviewer;
use crate::web::extractors::session::Known;
use crate::web::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Who carries out a request that steers or reviews. It refuses everybody who may do neither; whether they may do what they
/// ask for is for the handler's other extractor to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    #[allow(dead_code, reason = "records name people by the name that they had")]
    /// The account that is signed in; `None` for the machine itself and the access token.
    #[allow(dead_code, reason = "records of who changed what keep it")]
    pub(crate) account: Option<AccountId>,
    /// The account's name, "this machine" or "access token".
    pub(crate) name: String,
}

impl FromRequestParts<AppState> for Actor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let permit = check_reviewer(state, parts)?;
        // Somebody who is signed in acts under their name, whatever else would let them in.
        if let Some(signed) = Known::of(parts).signed.filter(|signed| signed.role.reviews()) {
            return Ok(Actor { account: Some(signed.account), name: signed.name.clone() });
        }
        let name = if permit == Permit::ThisMachine { "this machine" } else { "access token" };
        Ok(Actor { account: None, name: name.to_owned() })
    }
}
