//! Requests of the teacher's page while somebody describes: drafts, the request of an execution, and previews.

use crate::family::Audience;
use crate::ids::{ExecutionId, RunId};
use crate::store::{SavedDraft, StoreError};
use crate::web::error::Result;
use crate::web::extractors::input::{Json, Path};
use crate::web::extractors::visitor::Returned;
use crate::web::page::run_view::RunView;
use crate::web::services::{drafts, preview};
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

/// Body of `PUT …/draft`.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = NewDraft)]
pub(crate) struct DraftBody {
    client_key: String,
    #[serde(default)]
    version: u64,
    text: String,
}

/// `PUT /api/runs/{run}/executions/{execution}/draft`: keeps what was typed; an empty text discards it.
#[utoipa::path(put, path = "/runs/{run}/executions/{execution}/draft", operation_id = "save_draft", tag = "teaching",
    summary = "Keeps a text that is not sent yet; an empty one discards the draft", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("execution" = i64, Path, description = "Key of the execution")),
    request_body = DraftBody,
    responses((status = 204, description = "It is kept")))]
pub(crate) async fn save_draft(
    State(state): State<AppState>,
    Path((run, execution)): Path<(RunId, ExecutionId)>,
    Returned(visitor): Returned,
    Json(body): Json<DraftBody>,
) -> Result<StatusCode> {
    let visitor = visitor.ok_or(StoreError::NeverYours)?;
    let DraftBody { client_key, version, text } = body;
    drafts::save(&state, &run, &visitor, execution, (client_key, version, text)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/runs/{run}/executions/{execution}/draft`: the same, for a page that closes. Browsers carry out a POST after that.
#[utoipa::path(post, path = "/runs/{run}/executions/{execution}/draft", operation_id = "save_draft_of_closing_page", tag = "teaching",
    summary = "Keeps a text that is not sent yet, for a page that closes", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("execution" = i64, Path, description = "Key of the execution")),
    request_body = DraftBody,
    responses((status = 204, description = "It is kept")))]
pub(crate) async fn save_draft_of_closing_page(
    state: State<AppState>,
    path: Path<(RunId, ExecutionId)>,
    visitor: Returned,
    body: Json<DraftBody>,
) -> Result<StatusCode> {
    save_draft(state, path, visitor, body).await
}

/// `GET /api/runs/{run}/drafts`: the visitor's drafts, newest first.
pub(crate) async fn drafts(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Returned(visitor): Returned,
) -> Result<axum::Json<Vec<SavedDraft>>> {
    state.store.run(&run).await?;
    let Some(visitor) = visitor else { return Ok(axum::Json(Vec::new())) };
    Ok(axum::Json(drafts::list(&state, &run, &visitor).await?))
}

/// Answer of `POST …/reveal`.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Revealed {
    request: String,
}

/// `POST /api/runs/{run}/executions/{execution}/reveal`: the request, for a person who believes that it was fulfilled. The body
/// is not read.
#[utoipa::path(post, path = "/runs/{run}/executions/{execution}/reveal", operation_id = "reveal_request", tag = "teaching",
    summary = "The request of an execution, for who believes that it was fulfilled", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("execution" = i64, Path, description = "Key of the execution")),
    responses((status = 200, body = Revealed, description = "The request")))]
pub(crate) async fn reveal(
    State(state): State<AppState>,
    Path((run, execution)): Path<(RunId, ExecutionId)>,
    Returned(visitor): Returned,
) -> Result<axum::Json<Revealed>> {
    state.store.execution_in(&run, execution).await?;
    let visitor = visitor.ok_or(StoreError::NeverYours)?;
    let request = state.store.reveal(execution, visitor.teacher.id).await?;
    Ok(axum::Json(Revealed { request }))
}

/// Body of `POST …/preview`.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = PreviewRequest)]
pub(crate) struct PreviewBody {
    text: String,
}

/// Answer of `POST …/preview`.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Previewed {
    html: String,
    text: String,
    valid: bool,
}

/// `POST /api/runs/{run}/executions/{execution}/preview`: what the agent would do if it were asked in these words.
#[utoipa::path(post, path = "/runs/{run}/executions/{execution}/preview", operation_id = "preview_description", tag = "teaching",
    summary = "What the agent would do if it were asked in these words", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("execution" = i64, Path, description = "Key of the execution")),
    request_body = PreviewBody,
    responses((status = 200, body = Previewed, description = "The execution")))]
pub(crate) async fn preview(
    State(state): State<AppState>,
    Path((run, execution)): Path<(RunId, ExecutionId)>,
    Returned(visitor): Returned,
    Json(body): Json<PreviewBody>,
) -> Result<axum::Json<Previewed>> {
    let view = RunView::load(&state, &run).await?;
    let visitor = visitor.ok_or(StoreError::NeverYours)?;
    let tried = preview::preview(&state, &view, &visitor, execution, body.text).await?;
    Ok(axum::Json(Previewed {
        html: view.family.render(&tried.view, Audience::Beside)?,
        text: view.family.render_text(&tried.view)?,
        valid: tried.valid,
    }))
}
