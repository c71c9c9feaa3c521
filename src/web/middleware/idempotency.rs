//! `Idempotency-Key`: a request that comes twice is carried out once, and its first reply is given again.
//!
//! Replies that say that something was done are kept for a day. One that refused something is not kept: nothing was done, and the
//! same request may be carried out another time.

use crate::store::KeptReply;
use crate::web::error::Error;
use crate::web::extractors::access::{self, Permit};
use crate::web::extractors::program::{self, Program};
use crate::web::extractors::session::Known;
use crate::web::extractors::upload::{SentFile, UploadLimit};
use crate::web::extractors::visitor::Counted;
use crate::web::state::AppState;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::Instrument;

/// Name of the header.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Most characters of a key.
const LONGEST: usize = 255;

/// Largest reply that is kept.
const LARGEST: usize = 1 << 20;

/// Keys whose requests are under way.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<Mutex<HashSet<Vec<u8>>>>);

/// A key while its request is under way.
struct Held(UnderWay, Vec<u8>);

impl UnderWay {
    /// Takes a key, unless a request with it is under way.
    fn take(&self, key: &[u8]) -> Option<Held> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key.to_vec()).then(|| Held(self.clone(), key.to_vec()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

/// Who sends a request, as far as keys belong to somebody; `None` for who may do nothing.
fn sender(state: &AppState, parts: &request::Parts) -> Option<String> {
    let known = Known::of(parts);
    let steers = match (&known.program, access::check(state, parts)) {
        (Program::Known(token), _) => Some(format!("token {}", token.id)),
        (_, Ok(Permit::ThisMachine)) => Some("this machine".to_owned()),
        (_, Ok(Permit::Token)) => Some("access token".to_owned()),
        (_, Ok(Permit::Account | Permit::Program)) => {
            known.signed.as_ref().map(|signed| format!("account {} {}", signed.account.0, signed.role))
        }
        (_, Err(_)) => None,
    };
    let teacher = match program::teacher(state, parts) {
        Some(named) => named.ok(),
        None => parts.extensions.get::<Counted>().map(|Counted(name)| name.clone()),
    };
    (steers.is_some() || teacher.is_some())
        .then(|| format!("{} / {}", steers.unwrap_or_default(), teacher.unwrap_or_default()))
}

fn digest(pieces: &[&[u8]]) -> Vec<u8> {
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update((piece.len() as u64).to_le_bytes());
        hasher.update(piece);
    }
    hasher.finalize().to_vec()
}

/// A kept reply, given again.
fn again(kept: KeptReply) -> Response {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let mut response = (status, Body::from(kept.body)).into_response();
    if let Ok(value) = HeaderValue::from_str(&kept.content_type)
        && !kept.content_type.is_empty()
    {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response.headers_mut().insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    response
}

/// Carries a POST with a key out once.
pub(crate) async fn once(
    State((state, under_way)): State<(AppState, UnderWay)>,
    request: Request,
    next: Next,
) -> Response {
    let Some(key) = request.headers().get(&KEY).filter(|_| *request.method() == Method::POST).cloned() else {
        return next.run(request).await;
    };
    match carry_out(&state, under_way, key.as_bytes(), request, next).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn carry_out(
    state: &AppState,
    under_way: UnderWay,
    key: &[u8],
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    if key.is_empty() || key.len() > LONGEST || !key.iter().all(u8::is_ascii_graphic) {
        return Err(Error::Unreadable(format!("Idempotency-Key must have 1 to {LONGEST} visible ASCII characters")));
    }
    let (mut parts, body) = request.into_parts();
    let Some(sender) = sender(state, &parts) else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let (body, digested) = match parts.extensions.get::<UploadLimit>() {
        // A file is kept on the disk as it comes, for those whom its handler lets in.
        Some(_) if access::check(state, &parts).is_err() => {
            return Ok(next.run(Request::from_parts(parts, body)).await);
        }
        Some(_) => (Bytes::new(), SentFile::keep_for_handler(&mut parts, body, state).await?),
        // Any other body was read whole before, within its limit.
        None => {
            let body = to_bytes(body, usize::MAX).await.map_err(|error| Error::Unreadable(error.to_string()))?;
            (body.clone(), body.to_vec())
        }
    };
    let address = parts.extensions.get::<OriginalUri>().map_or_else(|| parts.uri.to_string(), |uri| uri.0.to_string());
    let address = address.strip_prefix(state.settings.base_path.as_str()).unwrap_or(&address).to_owned();
    let asked = digest(&[parts.method.as_str().as_bytes(), address.as_bytes(), &digested]);
    let sender_key = digest(&[sender.as_bytes(), key]);
    let Some(held) = under_way.take(&sender_key) else {
        return Err(Error::conflict(
            "key-in-use",
            "A request with this Idempotency-Key is under way. Send it again when that one has been answered.",
        ));
    };
    if let Some(kept) = state.store.kept_reply(&sender_key).await? {
        if kept.request != asked {
            return Err(Error::change(
                "key-of-another-request",
                "This Idempotency-Key came with another request before. Send this one with a new key.",
            ));
        }
        return Ok(again(kept));
    }
    // The request goes on when its client leaves: what it did is then known under its key.
    let (state, request) = (state.clone(), Request::from_parts(parts, Body::from(body)));
    let work = async move {
        let response = keep(&state, &sender_key, asked, next.run(request).await).await;
        drop(held);
        response
    };
    let work = tokio::spawn(work.in_current_span());
    work.await.map_err(|error| Error::Panic(format!("a request with a key broke off: {error}")))?
}

/// Keeps a reply that says that something was done.
async fn keep(state: &AppState, sender_key: &[u8], asked: Vec<u8>, response: Response) -> Result<Response, Error> {
    if !response.status().is_success() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, LARGEST).await.map_err(|error| Error::Panic(format!("a reply was not kept: {error}")))?;
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let reply = KeptReply {
        request: asked,
        status: parts.status.as_u16(),
        content_type: content_type.to_owned(),
        body: body.to_vec(),
    };
    // The request was carried out, so its reply is given even where it cannot be kept.
    if let Err(error) = state.store.keep_reply(sender_key, &reply).await {
        tracing::warn!(%error, "the reply to a request with a key was not kept");
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}
