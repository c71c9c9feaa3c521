//! Cookies that the server sets, and the random tokens in them.

use crate::credentials;
use crate::web::error::Error;
use crate::web::settings::WebSettings;
use axum::http::header::{self, HeaderValue};
use axum::response::Response;
use axum_extra::extract::cookie::{Cookie, SameSite};

/// 128 random bits from the operating system. A secret must not be reproducible, so it does not come
/// from `rng::stream`.
pub(crate) fn new_token() -> Result<String, Error> {
    Ok(credentials::random_token()?)
}

/// Adds a cookie that lasts a year, that scripts cannot read and other sites' forms do not send.
pub(crate) fn set_cookie(
    settings: &WebSettings,
    response: &mut Response,
    name: &'static str,
    value: &str,
    secure: bool,
) {
    add_cookie(settings, response, (name, value), time::Duration::days(365), secure);
}

/// Has the browser forget a cookie.
pub(crate) fn drop_cookie(settings: &WebSettings, response: &mut Response, name: &'static str, secure: bool) {
    add_cookie(settings, response, (name, ""), time::Duration::ZERO, secure);
}

/// Adds a cookie that lasts for a time. Browsers take names that begin with `__Host-` only for the whole host.
pub(crate) fn add_cookie(
    settings: &WebSettings,
    response: &mut Response,
    (name, value): (&'static str, &str),
    age: time::Duration,
    secure: bool,
) {
    let base = &settings.base_path;
    let cookie = Cookie::build((name, value))
        .path(if base.is_empty() || name.starts_with("__Host-") { "/" } else { base })
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .max_age(age);
    if let Ok(value) = HeaderValue::from_str(&cookie.to_string()) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}
