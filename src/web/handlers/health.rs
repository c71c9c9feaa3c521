//! The address by which a supervisor or proxy sees that the server answers.

use axum::Json;
use serde_json::{Value, json};

/// `GET /healthz`.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}
