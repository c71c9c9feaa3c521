//! Who teaches: an anonymous cookie. The store keeps only the token's hash.
//!
//! A token is a random number with a signature, so that the server knows its own when it comes back without having
//! kept it: a visit of a page writes nothing.

use crate::store::Teacher;
use crate::web::error::Error;
use crate::web::extractors::cookie::{Names, new_token};
use crate::web::extractors::{program, proxy};
use crate::web::settings::WebSettings;
use crate::web::state::AppState;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header;
use axum::http::request::Parts;
use axum_extra::extract::cookie::Cookie;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::sync::{Arc, OnceLock};

/// Names of the cookie.
pub(crate) const COOKIE: Names = Names { secure: "__Host-iliad_teacher", plain: "iliad_teacher" };

/// Most tokens that the cookie holds: other Iliads on the same host (browsers do not tell ports apart) keep theirs in it.
const TOKENS: usize = 4;

/// The teacher behind a request.
pub(crate) struct Visitor {
    /// The store's row.
    pub(crate) teacher: Teacher,
}

/// Who opens a page. Without a cookie of ours they get one with the response, and the store is none the wiser: there is
/// a row only once the cookie has come back with something to remember.
pub(crate) struct Guest(pub(crate) Option<Visitor>);

/// Who asks about what they have: their cookie has come back, but there may be no row yet.
pub(crate) struct Returned(pub(crate) Option<Visitor>);

/// Who has read the guide or wants something to describe; the row is made when the cookie comes back with that for the
/// first time. One without a cookie is refused: what they get and say would be nobody's.
pub(crate) struct KnownVisitor(pub(crate) Visitor);

/// A browser whose cookie has come back, whether or not it is a known teacher's.
pub(crate) struct Browser {
    /// The cookie's token.
    pub(crate) token: String,
    /// The teacher, where the browser is one's.
    pub(crate) visitor: Option<Visitor>,
}

/// Where [`Guest`] leaves the cookie of a new visitor for the layer that sets it.
#[derive(Clone, Default)]
pub(crate) struct NewCookie(pub(crate) Arc<OnceLock<String>>);

/// The name under which the requests of a teacher are counted; a layer leaves it with the request.
#[derive(Clone)]
pub(crate) struct Counted(pub(crate) String);

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
    let Ok(signature) = hex::decode(signature) else { return Ok(false) };
    Ok(signer(key, random)?.verify_truncated_left(&signature).is_ok())
}

/// Everything in the request's cookies that has the form of a token: signed ones, and those of before, which are
/// random numbers alone. Over https the cookie of https counts. Where there is none, the other one does, which teachers have
/// from before, so that they keep their answers.
pub(crate) fn tokens_of(settings: &WebSettings, headers: &HeaderMap) -> Vec<String> {
    let tokens = tokens_named(headers, COOKIE.of(proxy::is_https(settings, headers)));
    if tokens.is_empty() { tokens_named(headers, COOKIE.plain) } else { tokens }
}

fn tokens_named(headers: &HeaderMap, name: &str) -> Vec<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let ours = cookies.flat_map(Cookie::split_parse).flatten().filter(|cookie| cookie.name() == name);
    let is_token = |token: &&str| matches!(token.len(), 32 | 64) && token.bytes().all(|b| b.is_ascii_hexdigit());
    ours.flat_map(|cookie| cookie.value().split('.').filter(is_token).map(str::to_owned).collect::<Vec<_>>())
        .take(4 * TOKENS)
        .collect()
}

/// The token by which a request is known, with the teacher's row where there is one: that of a program, or that of a cookie.
pub(crate) async fn known_in(state: &AppState, parts: &Parts) -> Result<Option<(String, Option<Teacher>)>, Error> {
    if let Some(name) = program::teacher(state, parts) {
        let name = name?;
        let teacher = state.store.known_teacher(&name).await?;
        return Ok(Some((name, teacher)));
    }
    recognised(state, tokens_of(&state.settings, &parts.headers)).await
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
pub(crate) fn counted_by(key: &[u8], tokens: &[String]) -> Option<Counted> {
    let signed = tokens.iter().find(|token| token.len() == 64 && matches!(is_signed(key, token), Ok(true)));
    let token = signed.or_else(|| tokens.iter().find(|token| token.len() == 32))?;
    Some(Counted(token.split_at(32).0.to_owned()))
}

impl FromRequestParts<AppState> for Guest {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let mut tokens = tokens_of(&state.settings, &parts.headers);
        let known = recognised(state, tokens.clone()).await?;
        let name = COOKIE.of(proxy::is_https(&state.settings, &parts.headers));
        if known.is_none() || tokens_named(&parts.headers, name).is_empty() {
            let own = match &known {
                Some((token, _)) => token.clone(),
                None => signed_token(state.store.visitor_key().await?)?,
            };
            tokens.retain(|other| *other != own);
            tokens.truncate(TOKENS - 1);
            tokens.insert(0, own);
            if let Some(slot) = parts.extensions.get::<NewCookie>() {
                let _ = slot.0.set(tokens.join("."));
            }
        }
        Ok(Guest(known.and_then(|(_, teacher)| teacher).map(|teacher| Visitor { teacher })))
    }
}

impl FromRequestParts<AppState> for Returned {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let (_, teacher) = known_in(state, parts).await?.ok_or(Error::NoCookie)?;
        Ok(Returned(teacher.map(|teacher| Visitor { teacher })))
    }
}

impl FromRequestParts<AppState> for KnownVisitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let (token, teacher) = known_in(state, parts).await?.ok_or(Error::NoCookie)?;
        let teacher = match teacher {
            Some(teacher) => teacher,
            None => state.store.teacher(&token).await?,
        };
        Ok(KnownVisitor(Visitor { teacher }))
    }
}

impl FromRequestParts<AppState> for Browser {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let (token, teacher) = known_in(state, parts).await?.ok_or(Error::NoCookie)?;
        Ok(Browser { token, visitor: teacher.map(|teacher| Visitor { teacher }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

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
        let Names { secure, plain } = COOKIE;
        let value = format!("x=y; {plain}={new}.{old}.short; =; {plain}=\u{e9}{old}");
        headers.append(header::COOKIE, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        let settings = WebSettings { trust_proxy: true, ..WebSettings::default() };
        assert!(tokens_of(&settings, &headers).is_empty(), "a header that is no text holds no cookie");
        headers.append(header::COOKIE, HeaderValue::from_str(&format!("{plain}={new}.{old}.short")).unwrap());
        assert_eq!(tokens_of(&settings, &headers), [new.clone(), old.clone()]);
        headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
        assert_eq!(tokens_of(&settings, &headers), [new, old.clone()], "a cookie from before is kept");
        headers.append(header::COOKIE, HeaderValue::from_str(&format!("{secure}={old}")).unwrap());
        assert_eq!(tokens_of(&settings, &headers), [old], "it is planted where there is one of https");
    }
}
