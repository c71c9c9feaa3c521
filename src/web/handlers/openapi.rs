//! The description of `/api/v1` for programs: OpenAPI 3.1, made from the handlers and the types of their bodies.

use crate::web::error::{Error, Result};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::OnceLock;

/// The document; the router sets it when it collects the addresses.
static DOCUMENT: OnceLock<String> = OnceLock::new();

/// Remembers the document.
pub(crate) fn remember(document: impl FnOnce() -> String) {
    DOCUMENT.get_or_init(document);
}

/// `GET /api/v1/openapi.json`.
#[utoipa::path(get, path = "/openapi.json", operation_id = "show_openapi", tag = "description", summary = "This document",
    description = "", responses((status = 200, body = Object, description = "An OpenAPI 3.1 document")))]
pub(crate) async fn show() -> Result<Response> {
    let document = DOCUMENT.get().ok_or_else(|| Error::Panic("the document was not made".to_owned()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], document.clone()).into_response())
}
