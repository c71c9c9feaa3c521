//! Says of older addresses that those under `/api/v1` take their place (RFC 9745).

use axum::extract::Request;
use axum::http::header::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// When the addresses under `/api/v1` came: 2026-11-29.
const SINCE: &str = "@1795910400";

/// Adds `Deprecation` to the responses of an address that has a successor.
pub(crate) async fn mark(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(HeaderName::from_static("deprecation"), HeaderValue::from_static(SINCE));
    response
}
