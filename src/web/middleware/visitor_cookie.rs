//! The cookie of a visitor who has none yet.

use crate::web::extractors::visitor::{COOKIE, Counted, NewCookie, counted_by, tokens_of};
use crate::web::extractors::{cookie, proxy};
use crate::web::state::AppState;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// Sends a new visitor's cookie, on error pages too, and says to the layers further in who comes back with one.
pub(crate) async fn keep_cookie(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let slot = NewCookie::default();
    request.extensions_mut().insert(slot.clone());
    let secure = proxy::is_https(&state.settings, request.headers());
    let tokens = tokens_of(&state.settings, request.headers());
    // Without the key nobody is known; who needs it says so.
    if !tokens.is_empty()
        && request.extensions().get::<Counted>().is_none()
        && let Ok(key) = state.store.visitor_key().await
        && let Some(counted) = counted_by(key, &tokens)
    {
        request.extensions_mut().insert(counted);
    }
    let mut response = next.run(request).await;
    if let Some(value) = slot.0.get() {
        cookie::set_cookie(&state.settings, &mut response, COOKIE, value, secure);
    }
    response
}
