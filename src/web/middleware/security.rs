//! Security headers on every response, and the check that a request comes from our own pages.

use crate::web::error::Error;
use crate::web::extractors::{access, proxy, session};
use crate::web::state::AppState;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use axum_extra::extract::CookieJar;

/// Security headers on everything. Scripts and styles come from our own files only, nobody may frame the pages.
pub(crate) async fn security_headers(request: Request, next: Next) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
        font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // For browsers that do not know `frame-ancestors`.
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
    response
}

/// Tells a browser that came over https to ask by https alone for a year. The host may have other services, so nothing is said of
/// its subdomains.
pub(crate) async fn strict_transport(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let https = proxy::is_https(&state.settings, request.headers());
    let mut response = next.run(request).await;
    if https {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

/// Refuses requests that change something and come from another site's page.
///
/// `Sec-Fetch-Site` is the browser's own statement and passes through every proxy; where it is absent (plain http on a
/// local network, old browsers) `Origin` is compared with the host. Programs send neither and are let through, since they
/// carry no cookies of a victim. A request that carries the cookie of an account or of the access token is none of theirs: it has
/// to say by `Referer` at least that it comes from our own pages.
pub(crate) async fn same_site(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) || is_same_site(&state, &request) {
        return next.run(request).await;
    }
    Error::CrossSite.into_response_without_reading(request.version())
}

fn is_same_site(state: &AppState, request: &Request) -> bool {
    let headers = request.headers();
    let read = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(site) = read("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = read("origin").or_else(|| read("referer")) else { return !steers_by_cookie(headers) };
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    let origin_host = rest.split('/').next().unwrap_or(rest);
    let port = if scheme == "https" { ":443" } else { ":80" };
    let bare = |host: &str| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    proxy::host(headers, request.uri(), state.settings.trust_proxy).is_some_and(|host| bare(host) == bare(origin_host))
}

/// Whether a request carries a cookie with which people steer, or manage accounts.
fn steers_by_cookie(headers: &HeaderMap) -> bool {
    let jar = CookieJar::from_headers(headers);
    [access::COOKIE, session::COOKIE]
        .into_iter()
        .flat_map(|names| [names.secure, names.plain])
        .any(|name| jar.get(name).is_some())
}
