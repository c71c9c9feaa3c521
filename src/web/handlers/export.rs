//! The collected descriptions as a download, in pieces from the store, however many there are.

use crate::export::{self, Format, Rows};
use crate::ids::RunId;
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};
use futures::TryStreamExt;
use serde::Deserialize;

/// Query of an export.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    /// `1`: only answers that stand.
    #[serde(default)]
    standing: u8,
}

/// `GET /runs/{run}/export.jsonl`.
pub(crate) async fn jsonl(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    download(&state, &run, Format::Jsonl, &wanted).await
}

/// `GET /runs/{run}/export.csv`.
pub(crate) async fn csv(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    download(&state, &run, Format::Csv, &wanted).await
}

/// `GET /runs/{run}/export.schema.json`: what the columns are, for programs.
pub(crate) async fn schema(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<Response> {
    state.store.run(&run).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"iliad-schema.json\""),
    ];
    Ok((headers, export::schema::text()).into_response())
}

async fn download(state: &AppState, run: &RunId, format: Format, wanted: &Wanted) -> Result<Response> {
    let run = state.store.run(run).await?.id;
    let rows = if wanted.standing == 0 { Rows::All } else { Rows::Standing };
    let extent = state.store.export_extent(Some(&run)).await?;
    let total = match rows {
        Rows::All => extent.rows,
        Rows::Standing => state.store.standing_count(Some(&run), extent.last).await?,
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = run.chars().map(plain).collect();
    let headers = [
        (header::CONTENT_TYPE, format.media_type().to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{}\"", format.extension())),
        (HeaderName::from_static("x-total-count"), total.to_string()),
    ];
    // An error in the middle breaks the connection, so that a cut file is never taken for a whole one.
    let pieces = export::chunks(state.store.clone(), Some(run), format, rows)
        .map_ok(|(bytes, _)| bytes)
        .inspect_err(|error| tracing::error!(%error, "an export broke off"));
    Ok((headers, Body::from_stream(pieces)).into_response())
}
