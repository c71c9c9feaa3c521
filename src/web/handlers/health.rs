//! The addresses by which a supervisor or proxy sees that the server answers, and that it can do its work.

use crate::run::RunState;
use crate::web::error::{Error, Result};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Below this many bytes the next checkpoint or answer may find no room.
const ROOM: u64 = 64 << 20;

/// `GET /healthz`: the server answers.
pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// `GET /readyz`: the database answers, its disk has room, and every run that learns has its trainer. 503 where not.
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Json<Value>> {
    let found = [
        ("server", if state.shutdown.is_cancelled() { "ending" } else { "ok" }),
        ("database", database(&state).await),
        ("disk", disk(&state)),
        ("trainer", trainer(&state)),
    ];
    let members: Map<String, Value> = found.into_iter().map(|(part, word)| (part.to_owned(), word.into())).collect();
    if found.iter().any(|(_, word)| *word != "ok") {
        return Err(Error::NotReady(members));
    }
    let mut ready = Map::from_iter([("status".to_owned(), Value::from("ready"))]);
    ready.extend(members);
    Ok(Json(ready.into()))
}

async fn database(state: &AppState) -> &'static str {
    match tokio::time::timeout(PATIENCE, state.store.ping()).await {
        Ok(Ok(())) => "ok",
        Ok(Err(error)) => {
            tracing::debug!(%error, "the database did not answer");
            "failed"
        }
        Err(_) => "slow",
    }
}

fn disk(state: &AppState) -> &'static str {
    let Some(folder) = state.data_folder() else { return "ok" };
    #[cfg(unix)]
    if rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) == Err(rustix::io::Errno::ROFS) {
        return "read-only";
    }
    match fs4::available_space(&folder) {
        Ok(free) if free < ROOM => "full",
        // A system that does not say has not run full.
        _ => "ok",
    }
}

/// A trainer that ends says so in its last status; one that is gone without has come to grief.
fn trainer(state: &AppState) -> &'static str {
    let runs = state.runs.ids();
    let gone = runs.iter().filter_map(|id| state.runs.get(id)).any(|handle| {
        let ended = matches!(handle.status.borrow().state, RunState::Stopped | RunState::Failed { .. });
        !ended && handle.status.has_changed().is_err()
    });
    if gone { "gone" } else { "ok" }
}
