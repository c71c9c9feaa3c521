//! Addresses that do not exist.

use crate::web::error::Error;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Redirect, Response};

/// The fallback for every address without a handler. An address with a slash too many leads to the one without.
pub(crate) async fn fallback(method: Method, uri: Uri) -> Response {
    let path = uri.path();
    let shorter = path.trim_end_matches('/');
    let readable = matches!(method, Method::GET | Method::HEAD);
    if readable && path.ends_with('/') && shorter.starts_with('/') && !shorter.starts_with("//") {
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        return Redirect::permanent(&format!("{shorter}{query}")).into_response();
    }
    Error::NotFound("the page").into_response()
}
