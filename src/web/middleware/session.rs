//! Finds out who is signed in, once for each request.

use crate::web::extractors::program::Program;
use crate::web::extractors::session::Known;
use crate::web::extractors::visitor::Counted;
use crate::web::state::AppState;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// Leaves with the request who sent it. Static files and the addresses of health are everybody's, and read nothing.
pub(crate) async fn recognise(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let path = path.strip_prefix(state.settings.base_path.as_str()).unwrap_or(path);
    if !path.starts_with("/static/") && !matches!(path, "/healthz" | "/readyz") {
        let known = Known::look_up(&state, request.headers()).await;
        if let Program::Known(token) = &known.program {
            request.extensions_mut().insert(Counted(format!("api-token-{}", token.id)));
        }
        request.extensions_mut().insert(known);
    }
    next.run(request).await
}
