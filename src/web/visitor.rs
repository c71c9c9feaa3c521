//! Who teaches: an anonymous cookie. The store keeps only the token's hash; accounts come later.

use super::AppState;
use crate::error::Error;
use crate::store::Teacher;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use rand::TryRng;
use rand::rngs::SysRng;
use std::sync::{Arc, OnceLock};

/// Name of the cookie.
pub(super) const COOKIE: &str = "iliad_teacher";

/// The teacher behind a request; a visitor without a cookie becomes a new teacher and gets one with the response.
pub(super) struct Visitor {
    /// The store's row.
    pub(super) teacher: Teacher,
}

/// The teacher behind a request that changes something; one without a cookie is refused, because the answer would
/// be nobody's and the page could never show it again.
pub(super) struct KnownVisitor(pub(super) Visitor);

/// Where [`Visitor`] leaves the token of a new teacher for [`keep_cookie`].
#[derive(Clone, Default)]
struct NewToken(Arc<OnceLock<String>>);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 128 random bits from the operating system. A secret must not be reproducible, so it is the one thing in the crate
/// that does not come from `rng::stream`.
pub(super) fn new_token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| Error::Panic(format!("no randomness: {error}")))?;
    Ok(hex(&bytes))
}

fn token_of(parts: &Parts) -> Option<String> {
    let jar = CookieJar::from_headers(&parts.headers);
    let token = jar.get(COOKIE)?.value().to_owned();
    (token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit())).then_some(token)
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let token = match token_of(parts) {
            Some(token) => token,
            None => {
                let token = new_token()?;
                if let Some(slot) = parts.extensions.get::<NewToken>() {
                    let _ = slot.0.set(token.clone());
                }
                token
            }
        };
        Ok(Visitor { teacher: state.store.teacher(&token).await? })
    }
}

impl FromRequestParts<AppState> for KnownVisitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Error> {
        let token = token_of(parts).ok_or(Error::NoCookie)?;
        Ok(KnownVisitor(Visitor { teacher: state.store.teacher(&token).await? }))
    }
}

/// Sends a new teacher's cookie, on error pages too.
pub(super) async fn keep_cookie(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let slot = NewToken::default();
    request.extensions_mut().insert(slot.clone());
    let secure = is_https(&state, request.headers());
    let mut response = next.run(request).await;
    if let Some(token) = slot.0.get() {
        set_cookie(&state, &mut response, COOKIE, token, secure);
    }
    response
}

/// Whether the visitor's browser speaks https to us, as far as we may know.
pub(super) fn is_https(state: &AppState, headers: &axum::http::HeaderMap) -> bool {
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
