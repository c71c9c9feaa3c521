//! How far some work has come that a page waits for.

use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Query;
use crate::web::state::AppState;
use crate::web::state::work::{Stage, Step};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

/// The ticket of some work, which a page draws.
#[derive(Default, Deserialize)]
pub(crate) struct Ticket {
    #[serde(default)]
    pub(crate) ticket: String,
}

/// Answer of [`show`].
#[derive(Serialize)]
pub(crate) struct Progress {
    stage: Stage,
    #[serde(flatten)]
    step: Step,
    done: u64,
    seconds_left: Option<f64>,
}

/// `GET /progress`: how far the work of a ticket has come.
pub(crate) async fn show(
    _: Steering,
    State(state): State<AppState>,
    Query(Ticket { ticket }): Query<Ticket>,
) -> Result<Json<Progress>> {
    let work = state.works.get(&ticket).ok_or(Error::NotFound("the work of this ticket"))?;
    Ok(Json(Progress { stage: work.stage, step: work.step, done: work.done, seconds_left: work.seconds_left() }))
}
