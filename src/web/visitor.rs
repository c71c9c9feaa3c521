//! Who teaches: an anonymous cookie. The store keeps only the token's hash; accounts come later.
//!
//! A token is a random number with a signature, so that the server knows its own when it comes back without having
//! kept it: a visit of a page writes nothing.

use super::AppState;
use crate::error::Error;
use crate::store::Teacher;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use axum_extra::extract::cookie::{Cookie, SameSite};
use hmac::{Hmac, KeyInit, Mac};
use rand::TryRng;
use rand::rngs::SysRng;
use sha2::Sha256;
use std::sync::{Arc, OnceLock};

/// Name of the cookie.
pub(super) const COOKIE: &str = "iliad_teacher";

/// Most tokens that the cookie holds: other Iliads on the same host (browsers do not tell ports apart) keep theirs in it.
const TOKENS: usize = 4;

/// The teacher behind a request.
pub(super) struct Visitor {
    /// The store's row.
    pub(super) teacher: Teacher,
}

/// Who opens a page. Without a cookie of ours they get one with the response, and the store is none the wiser: there is
/// a row only once the cookie has come back with something to remember.
pub(super) struct Guest(pub(super) Option<Visitor>);

/// Who asks about what they have: their cookie has come back, but there may be no row yet.
pub(super) struct Returned(pub(super) Option<Visitor>);

/// Who has read the guide or wants something to describe; the row is made when the cookie comes back with that for the
/// first time. One without a cookie is refused: what they get and say would be nobody's.
pub(super) struct KnownVisitor(pub(super) Visitor);

/// Where [`Guest`] leaves the cookie of a new visitor for [`keep_cookie`].
#[derive(Clone, Default)]
struct NewCookie(Arc<OnceLock<String>>);

/// By what the teacher behind a request is told from others where requests are counted ([`keep_cookie`] says it).
#[derive(Clone)]
pub(super) struct Counted(pub(super) String);

/// 128 random bits from the operating system. A secret must not be reproducible, so it is the one thing in the crate
/// that does not come from `rng::stream`.
pub(super) fn new_token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| Error::Panic(format!("no randomness: {error}")))?;
    Ok(hex::encode(bytes))
}

fn signer(key: &[u8], random: &str) -> Result<Hmac<Sha256>, Error> {
    let signer = Hmac::<Sha256>::new_from_slice(key);
    Ok(signer.map_err(|error| Error::Panic(format!("the key of the cookies: {error}")))?.chain_update(random))
}

/// A random token with its signature: 128 bits each, in hexadecimal digits.
fn signed_token(key: &[u8]) -> Result<String, Error> {
    let random = new_token()?;
    let signature = signer(key, &random)?.finalize().into_bytes();
    Ok(random + &hex::encode(&signature[..16]))
}

/// Whether this database's key has signed the token.
fn is_signed(key: &[u8], token: &str) -> Result<bool, Error> {
    let (random, signature) = token.split_at(32);
    let byte = |i: usize| signature.get(i..i + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let Some(signature) = (0..32).step_by(2).map(byte).collect::<Option<Vec<u8>>>() else { return Ok(false) };
    Ok(signer(key, random)?.verify_truncated_left(&signature).is_ok())
}

/// Everything in the request's cookies that has the form of a token: signed ones, and those of before, which are
/// random numbers alone.
fn tokens_of(headers: &HeaderMap) -> Vec<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let ours = cookies.flat_map(Cookie::split_parse).flatten().filter(|cookie| cookie.name() == COOKIE);
    let is_token = |token: &&str| matches!(token.len(), 32 | 64) && token.bytes().all(|b| b.is_ascii_hexdigit());
    ours.flat_map(|cookie| cookie.value().split('.').filter(is_token).map(str::to_owned).collect::<Vec<_>>())
        .take(4 * TOKENS)
        .collect()
}

/// The token that this server knows as its own, with the teacher's row where there is one.
async fn recognised(state: &AppState, tokens: Vec<String>) -> Result<Option<(String, Option<Teacher>)>, Error> {
    for token in tokens {
        if token.len() == 64 && !is_signed(state.store.visitor_key().await?, &token)? {
            continue;
        }
        let teacher = state.store.known_teacher(&token).await?;
        if teacher.is_some() || token.len() == 64 {
            return Ok(Some((token, teacher)));
        }
    }
    Ok(None)
}

/// By what requests with these tokens are counted. It must not be for the sender to choose: so it is the part of a token
/// that this database's key has signed, whatever stands beside it and however the signature's digits are written; else an
/// older token, which nothing but its row in the store could prove. Nothing but the key is read for it.
fn counted_by(key: &[u8], tokens: &[String]) -> Option<Counted> {
    let signed = tokens.iter().find(|token| token.len() == 64 && matches!(is_signed(key, token), Ok(true)));
    let token = signed.or_else(|| tokens.iter().find(|token| token.len() == 32))?;
    Some(Counted(token.split_at(32).0.to_owned()))
}

impl FromRequestParts<AppState> for Guest {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let tokens = tokens_of(&parts.headers);
        if let Some((_, teacher)) = recognised(state, tokens.clone()).await? {
            return Ok(Guest(teacher.map(|teacher| Visitor { teacher })));
        }
        let mut cookie = signed_token(state.store.visitor_key().await?)?;
        for other in tokens.iter().take(TOKENS - 1) {
            cookie = cookie + "." + other;
        }
        if let Some(slot) = parts.extensions.get::<NewCookie>() {
            let _ = slot.0.set(cookie);
        }
        Ok(Guest(None))
    }
}

impl FromRequestParts<AppState> for Returned {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let (_, teacher) = recognised(state, tokens_of(&parts.headers)).await?.ok_or(Error::NoCookie)?;
        Ok(Returned(teacher.map(|teacher| Visitor { teacher })))
    }
}

impl FromRequestParts<AppState> for KnownVisitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let (token, teacher) = recognised(state, tokens_of(&parts.headers)).await?.ok_or(Error::NoCookie)?;
        let teacher = match teacher {
            Some(teacher) => teacher,
            None => state.store.teacher(&token).await?,
        };
        Ok(KnownVisitor(Visitor { teacher }))
    }
}

/// Sends a new visitor's cookie, on error pages too, and says to the layers further in who comes back with one.
pub(super) async fn keep_cookie(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let slot = NewCookie::default();
    request.extensions_mut().insert(slot.clone());
    let secure = is_https(&state, request.headers());
    let tokens = tokens_of(request.headers());
    // Without the key nobody is known; who needs it says so.
    if !tokens.is_empty()
        && let Ok(key) = state.store.visitor_key().await
        && let Some(counted) = counted_by(key, &tokens)
    {
        request.extensions_mut().insert(counted);
    }
    let mut response = next.run(request).await;
    if let Some(value) = slot.0.get() {
        set_cookie(&state, &mut response, COOKIE, value, secure);
    }
    response
}

/// Whether the visitor's browser speaks https to us, as far as we may know.
pub(super) fn is_https(state: &AppState, headers: &HeaderMap) -> bool {
    state.settings.trust_proxy
        && headers.get("x-forwarded-proto").is_some_and(|proto| proto.as_bytes().starts_with(b"https"))
}

/// Adds a cookie that lasts a year, that scripts cannot read and other sites' forms do not send.
pub(super) fn set_cookie(state: &AppState, response: &mut Response, name: &'static str, value: &str, secure: bool) {
    add_cookie(state, response, (name, value), time::Duration::days(365), secure);
}

/// Has the browser forget a cookie.
pub(super) fn drop_cookie(state: &AppState, response: &mut Response, name: &'static str, secure: bool) {
    add_cookie(state, response, (name, ""), time::Duration::ZERO, secure);
}

fn add_cookie(
    state: &AppState,
    response: &mut Response,
    (name, value): (&'static str, &str),
    age: time::Duration,
    secure: bool,
) {
    let base = &state.settings.base_path;
    let cookie = Cookie::build((name, value))
        .path(if base.is_empty() { "/" } else { base })
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .max_age(age);
    if let Ok(value) = HeaderValue::from_str(&cookie.to_string()) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ones_own_tokens_are_recognised() {
        let token = signed_token(b"one key").unwrap();
        assert_eq!(token.len(), 64);
        assert!(is_signed(b"one key", &token).unwrap());
        assert!(!is_signed(b"another key", &token).unwrap());
        for at in [0, 31, 32, 63] {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            assert!(!is_signed(b"one key", &String::from_utf8(other).unwrap()).unwrap(), "digit {at}");
        }
    }

    #[test]
    fn a_teacher_is_counted_by_what_was_signed() {
        let token = signed_token(b"one key").unwrap();
        let (random, signature) = token.split_at(32);
        let louder = format!("{random}{}", signature.to_ascii_uppercase());
        let (forged, old) = ("a".repeat(64), "b".repeat(32));
        let (token, louder, forged, old) = (token.as_str(), louder.as_str(), forged.as_str(), old.as_str());
        let of = |tokens: &[&str]| {
            let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
            counted_by(b"one key", &tokens).map(|Counted(name)| name)
        };
        for same in [&[token][..], &[token, old], &[old, forged, token], &[louder]] {
            assert_eq!(of(same).as_deref(), Some(random), "{same:?}");
        }
        assert_eq!(of(&[forged, old]).as_deref(), Some(old));
        assert_eq!(of(&[forged]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_cookie_is_read_whatever_else_is_in_the_header() {
        let (new, old) = ("a".repeat(64), "b".repeat(32));
        let mut headers = HeaderMap::new();
        let value = format!("x=y; {COOKIE}={new}.{old}.short; =; {COOKIE}=\u{e9}{old}");
        headers.append(header::COOKIE, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        assert!(tokens_of(&headers).is_empty(), "a header that is no text holds no cookie");
        headers.append(header::COOKIE, HeaderValue::from_str(&format!("{COOKIE}={new}.{old}.short")).unwrap());
        assert_eq!(tokens_of(&headers), [new, old]);
    }
}
