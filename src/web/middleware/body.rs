//! Bodies of requests are read whole before a handler sees them, within a limit of time and size: nobody holds a handler,
//! a transaction or a connection by sending a byte now and then.

use crate::web::error::Error;
use crate::web::listener::Exchange;
use crate::web::settings::BODY_LIMIT;
use crate::web::state::AppState;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;

/// Reads the body. One that comes too slowly is answered with 408, one that is too large with 413.
pub(crate) async fn read_whole(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Error::TooLarge.into_response_without_reading(parts.version);
    }
    let exchange = parts.extensions.remove::<Arc<Exchange>>();
    if let Some(exchange) = &exchange {
        exchange.wait_for_body();
    }
    let limit = state.settings.connections.body;
    let read = tokio::time::timeout(limit, Limited::new(body, BODY_LIMIT).collect()).await;
    let error = match read {
        Ok(Ok(whole)) => {
            if let Some(exchange) = &exchange {
                exchange.work();
            }
            return next.run(Request::from_parts(parts, Body::from(whole.to_bytes()))).await;
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => Error::TooLarge,
        Ok(Err(_)) => Error::Unreadable("its body broke off".to_owned()),
        Err(_) => Error::SlowBody,
    };
    error.into_response_without_reading(parts.version)
}
