//! The log span of a request.

use axum::extract::Request;

/// The log span of a request: method and path without the query (which may hold an address to return to), and its number.
pub(crate) fn span(request: &Request) -> tracing::Span {
    let number = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or("");
    tracing::info_span!("request", method = %request.method(), path = request.uri().path(), id = number)
}
