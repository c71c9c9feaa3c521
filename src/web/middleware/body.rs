//! Bodies of requests are read whole before a handler sees them, within a limit of time and size: nobody holds a handler,
//! a transaction or a connection by sending a byte now and then. Forms with files come in pieces instead, each within a limit of time.

use crate::web::error::Error;
use crate::web::extractors::upload::UploadLimit;
use crate::web::listener::Exchange;
use crate::web::settings::{BODY_LIMIT, CORPUS_LIMIT, DESCRIPTIONS_LIMIT, EPISODES_LIMIT};
use crate::web::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The addresses that take files, and the most bytes that they take.
const UPLOADS: [(&str, u64); 4] = [
    ("/import/episodes", EPISODES_LIMIT),
    ("/import/descriptions", DESCRIPTIONS_LIMIT),
    ("/api/v1/import/descriptions", DESCRIPTIONS_LIMIT),
    ("/corpora", CORPUS_LIMIT),
];

/// The most bytes of a request with files; `None` for every other request.
fn upload_limit(request: &Request, base: &str) -> Option<u64> {
    if *request.method() != Method::POST {
        return None;
    }
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let path = path.strip_prefix(base).unwrap_or(path);
    UPLOADS.iter().find(|(upload, _)| *upload == path).map(|(_, limit)| *limit)
}

/// Reads the body. One that comes too slowly is answered with 408, one that is too large with 413.
pub(crate) async fn read_whole(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let upload = upload_limit(&request, &state.settings.base_path);
    let (mut parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    if body.size_hint().lower() > upload.unwrap_or(BODY_LIMIT as u64) {
        return Error::TooLarge.into_response_without_reading(parts.version);
    }
    let exchange = parts.extensions.remove::<Arc<Exchange>>();
    if let Some(exchange) = &exchange {
        exchange.wait_for_body();
    }
    if let Some(limit) = upload {
        parts.extensions.insert(UploadLimit(limit));
        return next.run(Request::from_parts(parts, Body::new(Paced { body, exchange }))).await;
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

/// A body that comes in pieces: the listener waits for the peer anew after each.
struct Paced {
    body: Body,
    exchange: Option<Arc<Exchange>>,
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(exchange) = &self.exchange {
            match &polled {
                Poll::Ready(Some(Ok(_))) => exchange.wait_for_body(),
                Poll::Ready(_) => exchange.work(),
                Poll::Pending => {}
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            exchange.work();
        }
    }
}
