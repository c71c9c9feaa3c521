//! axum's extractors with this crate's errors as rejections.

use crate::web::error::Error;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use percent_encoding::percent_decode;
use serde::de::DeserializeOwned;

/// A JSON body.
#[derive(FromRequest)]
#[from_request(via(axum::Json), rejection(Error))]
pub(crate) struct Json<T>(pub T);

/// A form body. Bytes that are no UTF-8 are refused: reading them as something else would store other words than were sent.
pub(crate) struct Form<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await?;
        if percent_decode(&bytes).decode_utf8().is_err() {
            return Err(Error::Unreadable("its text is not in UTF-8".to_owned()));
        }
        let again = Request::from_parts(parts, Body::from(bytes));
        let axum::Form(fields) = axum::Form::from_request(again, state).await?;
        Ok(Form(fields))
    }
}

/// Parts of the path; what cannot be a key is "no such page".
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Error))]
pub(crate) struct Path<T>(pub T);

/// The query string.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Error))]
pub(crate) struct Query<T>(pub T);
