//! Programs: the tokens that they bring, and which scope an address needs.

use crate::store::{KnownToken, Scope};
use crate::web::error::Error;
use crate::web::extractors::access::{self, Permit};
use crate::web::extractors::session::Known;
use crate::web::extractors::visitor;
use crate::web::limits::{self, Verdict};
use crate::web::state::AppState;
use axum::extract::MatchedPath;
use axum::http::header;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use std::sync::Arc;

/// The beginning of every token of a program.
pub const PREFIX: &str = "iliad_";

/// The path in front of the addresses of programs.
pub(crate) const V1: &str = "/api/v1";

/// The token that a request brings.
#[derive(Clone, Debug, Default)]
pub(crate) enum Program {
    /// It brings none.
    #[default]
    None,
    /// A token that stands.
    Known(Arc<KnownToken>),
    /// One that is unknown, revoked or expired, as it was sent.
    Unknown(String),
}

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())?;
    let (scheme, given) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
}

/// The token of a program in a request's headers, by its form.
pub(crate) fn token_of(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).filter(|given| given.starts_with(PREFIX) && given.len() == PREFIX.len() + 32)
}

impl KnownToken {
    /// Whether the token gives a scope.
    pub(crate) fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// The scopes of which a token needs one for an address. `path` is the address as it is routed, without the base path.
pub(crate) fn needed(method: &Method, path: &str) -> &'static [Scope] {
    let get = *method == Method::GET || *method == Method::HEAD;
    let Some(api) = path.strip_prefix(V1).or_else(|| path.strip_prefix("/api")) else {
        return match path {
            "/events" | "/runs/{run}/events" | "/metrics" => &[Scope::Read],
            path if path.starts_with("/runs/{run}/export") || path.starts_with("/export/") => &[Scope::Export],
            _ => &[Scope::Admin],
        };
    };
    match api {
        "/runs/{run}/try" => &[Scope::Steer],
        "/runs/{run}/descriptions" | "/runs/{run}/descriptions/events" => &[Scope::Export, Scope::Agent],
        path if path.starts_with("/export/") => &[Scope::Export],
        "/runs/{run}/learned" => &[Scope::Export],
        "/runs/{run}/executions" | "/runs/{run}/updates" => &[Scope::Agent],
        "/runs/{run}/readings" => &[Scope::Read],
        "/studies/{study}/participants" => &[Scope::Export],
        "/runs/{run}/lease" | "/runs/{run}/drafts" | "/runs/{run}/review" => &[Scope::Teach],
        path if ["/runs/{run}/executions/", "/runs/{run}/answers", "/runs/{run}/comprehension"]
            .iter()
            .any(|start| path.starts_with(start)) =>
        {
            &[Scope::Teach]
        }
        path if (path.starts_with("/studies") || path.starts_with("/trash")) && !get => &[Scope::Admin],
        "/runs/{run}" | "/runs/{run}/events" if get => &[Scope::Read, Scope::Agent],
        _ if get => &[Scope::Read],
        _ => &[Scope::Steer],
    }
}

/// The address of a request as it is routed, without the base path.
fn routed<'a>(state: &AppState, parts: &'a Parts) -> &'a str {
    let path = parts.extensions.get::<MatchedPath>().map_or_else(|| parts.uri.path(), MatchedPath::as_str);
    path.strip_prefix(state.settings.base_path.as_str()).unwrap_or(path)
}

/// Whether the request's token opens its address; `None` where it brings no token of a program.
pub(crate) fn permit(state: &AppState, parts: &Parts) -> Option<Result<Permit, Error>> {
    let token = match Known::of(parts).program {
        Program::None => return None,
        Program::Unknown(given) => {
            // Somebody who tries tokens is to run out of guesses as with the access token.
            let verdict = access::judge(limits::of(parts).as_ref(), &given, false);
            return Some(Err(match verdict {
                Verdict::TooMany(standing) => Error::TooMany(Box::new(standing)),
                Verdict::Right | Verdict::Wrong => Error::NoAccess,
            }));
        }
        Program::Known(token) => token,
    };
    let needed = needed(&parts.method, routed(state, parts));
    let allowed =
        needed.iter().any(|scope| token.allows(*scope)) || token.allows(Scope::Admin) && needed != [Scope::Teach];
    Some(if allowed { Ok(Permit::Program) } else { Err(Error::MissingScope(needed[0])) })
}

/// The name under which a program teaches, in place of a cookie: its token's, or that of whoever steers without one. Browsers are
/// known by their cookies alone.
pub(crate) fn teacher(state: &AppState, parts: &Parts) -> Option<Result<String, Error>> {
    match Known::of(parts).program {
        Program::Known(token) if token.allows(Scope::Teach) => return Some(Ok(format!("api-token-{}", token.id))),
        Program::Known(_) => return Some(Err(Error::MissingScope(Scope::Teach))),
        Program::Unknown(_) => return permit(state, parts).map(|refused| refused.map(|_| String::new())),
        Program::None => {}
    }
    let browser = ["sec-fetch-mode", "sec-fetch-site", "origin"].iter().any(|name| parts.headers.contains_key(*name));
    if browser
        || !routed(state, parts).starts_with(V1)
        || !visitor::tokens_of(&state.settings, &parts.headers).is_empty()
    {
        return None;
    }
    match access::check(state, parts).ok()? {
        Permit::ThisMachine => Some(Ok("this-machine".to_owned())),
        Permit::Token => Some(Ok("access-token".to_owned())),
        Permit::Account | Permit::Program => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_the_scope_of_what_they_do() {
        for (method, path, expected) in [
            (Method::GET, "/api/v1/runs", Scope::Read),
            (Method::POST, "/api/v1/runs", Scope::Steer),
            (Method::POST, "/api/runs/{run}/pause", Scope::Steer),
            (Method::POST, "/api/v1/runs/{run}/lease", Scope::Teach),
            (Method::POST, "/api/v1/runs/{run}/executions", Scope::Agent),
            (Method::POST, "/api/v1/runs/{run}/executions/{execution}/renew", Scope::Teach),
            (Method::GET, "/api/v1/runs/{run}/answers", Scope::Teach),
            (Method::GET, "/api/v1/runs/{run}/descriptions", Scope::Export),
            (Method::GET, "/runs/{run}/export.jsonl", Scope::Export),
            (Method::GET, "/export/{file}", Scope::Export),
            (Method::GET, "/api/v1/export/{file}", Scope::Export),
            (Method::GET, "/api/v1/export/{file}/manifest", Scope::Export),
            (Method::GET, "/api/v1/runs/{run}/learned", Scope::Export),
            (Method::GET, "/api/v1/events", Scope::Read),
            (Method::GET, "/api/v1/trash", Scope::Read),
            (Method::DELETE, "/api/v1/trash/{run}", Scope::Admin),
            (Method::PATCH, "/api/v1/studies/{study}", Scope::Admin),
            (Method::GET, "/api/v1/studies/{study}", Scope::Read),
            (Method::GET, "/runs", Scope::Admin),
            (Method::POST, "/studies/{study}/state", Scope::Admin),
        ] {
            assert_eq!(needed(&method, path)[0], expected, "{method} {path}");
        }
    }
}
