//! Counts requests and how long they take.

use crate::web::metrics::Metrics;
use crate::web::state::AppState;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;

/// The name of a method. Whoever makes methods up must not make metrics with them.
fn name(method: &Method) -> &'static str {
    const NAMES: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    NAMES.into_iter().find(|name| method.as_str() == *name).unwrap_or("other")
}

/// Counts a request under the address as it is routed; one that has no route counts under `none`.
pub(crate) async fn count(
    State((state, metrics)): State<(AppState, Arc<Metrics>)>,
    request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let base = &state.settings.base_path;
    let route = matched.map_or("none", |path| path.strip_prefix(base.as_str()).unwrap_or(path)).to_owned();
    let (method, begun) = (name(request.method()), Instant::now());
    let _in_flight = metrics.begin();
    let response = next.run(request).await;
    metrics.answered(&route, method, response.status().as_u16(), begun.elapsed());
    response
}
