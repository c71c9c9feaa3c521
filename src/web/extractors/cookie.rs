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

/// The two names of a cookie. Browsers take the one that begins with `__Host-` over https and for the whole host alone, so that
/// neither somebody on the network nor a site on a subdomain can set it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// Over https.
    pub(crate) secure: &'static str,
    /// Over plain http.
    pub(crate) plain: &'static str,
}

impl Names {
    /// The name for a browser that speaks https to us, or plain http.
    pub(crate) fn of(self, secure: bool) -> &'static str {
        if secure { self.secure } else { self.plain }
    }
}

/// Adds a cookie that lasts a year, that scripts cannot read and other sites' forms do not send.
pub(crate) fn set_cookie(settings: &WebSettings, response: &mut Response, names: Names, value: &str, secure: bool) {
    add_cookie(settings, response, (names, value), time::Duration::days(365), secure);
}

/// Has the browser forget a cookie.
pub(crate) fn drop_cookie(settings: &WebSettings, response: &mut Response, names: Names, secure: bool) {
    add_cookie(settings, response, (names, ""), time::Duration::ZERO, secure);
}

/// Adds a cookie that lasts for a time.
pub(crate) fn add_cookie(
    settings: &WebSettings,
    response: &mut Response,
    (names, value): (Names, &str),
    age: time::Duration,
    secure: bool,
) {
    let base = &settings.base_path;
    let cookie = Cookie::build((names.of(secure), value))
        .path(if base.is_empty() || secure { "/" } else { base })
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .max_age(age);
    if let Ok(value) = HeaderValue::from_str(&cookie.to_string()) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}
