//! Finds out who is signed in, once for each request.

use crate::web::extractors::session::{Known, token_of};
use crate::web::state::AppState;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// Leaves with the request who sent it. Static files and the address of health are everybody's, and read nothing.
pub(crate) async fn recognise(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let path = path.strip_prefix(state.settings.base_path.as_str()).unwrap_or(path);
    if !path.starts_with("/static/") && path != "/healthz" {
        let token = token_of(&state.settings, request.headers());
        let known = Known::look_up(&state, token).await;
        request.extensions_mut().insert(known);
    }
    next.run(request).await
}
