//! Who may steer runs. On the server's own machine: whoever sits at it. From elsewhere: whoever has the access token, or is
//! signed in as an owner or a researcher.

use crate::store::Role;
use crate::web::error::Error;
use crate::web::extractors::cookie::Names;
use crate::web::extractors::session::Known;
use crate::web::extractors::{cookie, program, proxy};
use crate::web::limits::{self, Client, Limits, Verdict};
use crate::web::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Version};
use axum_extra::extract::CookieJar;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Names of the cookie that stands for the token.
pub(crate) const COOKIE: Names = Names { secure: "__Host-iliad_access", plain: "iliad_access" };

/// Extractor of every page and command that steers a run or shows its data.
pub(crate) struct Steering;

impl FromRequestParts<AppState> for Steering {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        check(state, parts).map(|_| Steering)
    }
}

/// The reason why a request may steer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It comes from the server's own machine, where that is enough.
    ThisMachine,
    /// It brings the access token.
    Token,
    /// It comes from somebody who is signed in, and whose role allows it.
    Account,
    /// It brings the token of a program that has the scope.
    Program,
}

/// Whether this request may steer, and by what.
pub(crate) fn check(state: &AppState, parts: &Parts) -> Result<Permit, Error> {
    // A token gives its scopes and no more, also where the machine alone would be enough.
    if let Some(permit) = program::permit(state, parts) {
        return permit;
    }
    if from_this_machine(state, parts) {
        return Ok(Permit::ThisMachine);
    }
    let known = Known::of(parts);
    if known.with(Role::steers).is_some() {
        return Ok(Permit::Account);
    }
    let Some(token) = state.settings.access_token.as_deref() else {
        return Err(known.refusal().unwrap_or(Error::SteeringOff));
    };
    let bearer = program::bearer(&parts.headers);
    let jar = CookieJar::from_headers(&parts.headers);
    let cookie = jar.get(cookie_name(state, &parts.headers)).map(|cookie| cookie.value());
    let mut refused = known.refusal().unwrap_or(Error::NoAccess);
    let offered =
        [bearer.map(|given| (given, same(given, token))), cookie.map(|given| (given, is_session(given, token)))];
    let limits = limits::of(parts);
    for (given, right) in offered.into_iter().flatten() {
        match judge(limits.as_ref(), given, right) {
            Verdict::Right => {
                if let Some((_, limits)) = limits.as_ref().filter(|_| Some(given) == cookie) {
                    limits.guesses.remember(given);
                }
                return Ok(Permit::Token);
            }
            Verdict::Wrong => {}
            Verdict::TooMany(standing) => refused = Error::TooMany(Box::new(standing)),
        }
    }
    Err(refused)
}

/// The name of the cookie that counts: over https the one that came over https alone.
fn cookie_name(state: &AppState, headers: &HeaderMap) -> &'static str {
    COOKIE.of(proxy::is_https(&state.settings, headers))
}

/// Whether the browser has the cookie of somebody who entered the token.
pub(crate) fn by_cookie(state: &AppState, headers: &HeaderMap) -> bool {
    let jar = CookieJar::from_headers(headers);
    let given = jar.get(cookie_name(state, headers)).map(|cookie| cookie.value());
    given.zip(state.settings.access_token.as_deref()).is_some_and(|(given, token)| is_session(given, token))
}

/// Whether a token or cookie is right, unless its address has sent too many wrong ones.
pub(crate) fn judge(limits: Option<&(Client, Arc<Limits>)>, given: &str, right: bool) -> Verdict {
    match limits {
        Some((client, limits)) if limits.is_on() => limits.guesses.judge(*client, given, || right),
        _ if right => Verdict::Right,
        _ => Verdict::Wrong,
    }
}

/// Whether a browser on this machine asks, where that is enough.
///
/// It is enough only where nothing else was configured: a token, a trusted proxy, a base path or an address beyond this
/// machine mean that others come here, too. And a loopback listener alone proves little: a proxy on this machine, a
/// tunnel, or a foreign name that resolves to 127.0.0.1 all arrive through it. So the browser must also believe that it
/// talks to this machine, and nothing may tell of a proxy in between.
pub(crate) fn from_this_machine(state: &AppState, parts: &Parts) -> bool {
    let settings = &state.settings;
    settings.loopback
        && settings.access_token.is_none()
        && !settings.trust_proxy
        && !went_through_a_proxy(parts)
        && proxy::host(&parts.headers, &parts.uri, false).is_none_or(is_this_machine)
        && believes_to_be_here(&parts.headers)
}

/// Signs of a proxy. Forwarding headers are what proxies add when they are told to. Left to its defaults, nginx adds none:
/// up to 1.29.6 it speaks HTTP/1.0 and asks for the connection to be closed, from 1.29.7 on it speaks HTTP/1.1 and says
/// nothing of the connection. Browsers ask for the connection to be kept in every request that they send over HTTP/1.1, and
/// speak HTTP/2 only over TLS; that header is for the next hop alone, so whatever passes a browser's request on drops it.
///
/// Programs need not send it and are not told apart by it.
fn went_through_a_proxy(parts: &Parts) -> bool {
    const NAMES: [&str; 8] = [
        "forwarded",
        "via",
        "x-real-ip",
        "x-client-ip",
        "x-original-host",
        "true-client-ip",
        "cf-connecting-ip",
        "x-envoy-external-address",
    ];
    let headers = &parts.headers;
    let read = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let agent = read(header::USER_AGENT);
    // PowerShell is a program that calls itself one of the browsers.
    let named_so = agent.starts_with("Mozilla/") && !agent.contains("PowerShell/");
    let browser = named_so || headers.contains_key("sec-fetch-mode");
    let mut connection = read(header::CONNECTION).split(',').map(str::trim);
    headers.keys().any(|name| NAMES.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded-"))
        || parts.version <= Version::HTTP_10
        || browser && !connection.any(|word| word.eq_ignore_ascii_case("keep-alive"))
}

/// Whether the page that a request comes from is this machine's as well. A visitor's page behind a proxy that rewrites the
/// host still says under which address the visitor opened it. Somebody else's page with a link to here tells nothing.
fn believes_to_be_here(headers: &HeaderMap) -> bool {
    let linked = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site");
    let names = [header::ORIGIN, header::REFERER];
    names.into_iter().filter(|name| !linked || *name != header::REFERER).all(|name| {
        let Some(value) = headers.get(name) else { return true };
        let host = value.to_str().ok().and_then(|value| value.split_once("://"));
        host.is_some_and(|(_, rest)| is_this_machine(rest.split('/').next().unwrap_or(rest)))
    })
}

/// Whether `host` or `host:port` is a name of this machine that no other machine answers to.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name == "[::1]"
        || name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// Equality that takes the same time wherever two values first differ.
pub(crate) fn same(given: &str, wanted: &str) -> bool {
    let (given, wanted) = (Sha256::digest(given), Sha256::digest(wanted));
    given.iter().zip(wanted.iter()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// A session's cookie: a random number, and a digest of it with the token. Reading a browser's cookies does not reveal the
/// token, a new token ends all sessions, and a session that is known to be good cannot be guessed.
pub(crate) fn new_session(token: &str) -> Result<String, Error> {
    let number = cookie::new_token()?;
    Ok(format!("{number}.{}", seal(&number, token)))
}

fn seal(number: &str, token: &str) -> String {
    hex::encode(Sha256::digest(format!("iliad access {token} {number}")))
}

fn is_session(cookie: &str, token: &str) -> bool {
    let parts = cookie.split_once('.');
    parts.is_some_and(|(number, sealed)| {
        number.len() == 32 && number.bytes().all(|b| b.is_ascii_hexdigit()) && same(sealed, &seal(number, token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_is_by_whole_value() {
        assert!(same("abc", "abc"));
        assert!(!same("abc", "abcd") && !same("", "abc"));
    }
}
