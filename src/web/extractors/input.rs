//! axum's extractors with this crate's errors as rejections.

use crate::web::error::Error;
use axum::extract::{FromRequest, FromRequestParts};

/// A JSON body.
#[derive(FromRequest)]
#[from_request(via(axum::Json), rejection(Error))]
pub(crate) struct Json<T>(pub T);

/// A form body.
#[derive(FromRequest)]
#[from_request(via(axum::Form), rejection(Error))]
pub(crate) struct Form<T>(pub T);

/// Parts of the path; what cannot be a key is "no such page".
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Error))]
pub(crate) struct Path<T>(pub T);

/// The query string.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Error))]
pub(crate) struct Query<T>(pub T);
