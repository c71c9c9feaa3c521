//! The addresses at which people take an answer back, or withdraw it from the data set.

use crate::ids::{AnswerId, RunId};
use crate::store::StoreError;
use crate::web::error::{Error, Result};
use crate::web::extractors::input::Path;
use crate::web::extractors::visitor::Returned;
use crate::web::format;
use crate::web::page::Page;
use crate::web::page::run_view::RunView;
use crate::web::services::undo::{TakenBack, take_back};
use crate::web::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};

/// `POST /api/runs/{run}/answers/{answer}/undo`. The body is not read.
#[utoipa::path(post, path = "/runs/{run}/answers/{answer}/undo", operation_id = "undo_answer", tag = "teaching",
    summary = "Takes an answer back", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("answer" = i64, Path, description = "Key of the answer")),
    responses((status = 200, body = TakenBack, description = "The answer with its execution")))]
pub(crate) async fn api(
    State(state): State<AppState>,
    Path((run, answer)): Path<(RunId, AnswerId)>,
    Returned(visitor): Returned,
) -> Result<axum::Json<TakenBack>> {
    let view = RunView::load(&state, &run).await?;
    let visitor = visitor.ok_or(StoreError::NotFound("the answer"))?;
    Ok(axum::Json(take_back(&state, &view, &visitor, answer).await?))
}

/// `POST /teach/{run}/answers/{answer}/undo`: the button without a script. The page that comes shows the execution again;
/// what cannot be taken back is found among the last answers, where it can be corrected.
pub(crate) async fn plain(
    State(state): State<AppState>,
    Path((run, answer)): Path<(RunId, AnswerId)>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let visitor = visitor.ok_or(StoreError::NotFound("the answer"))?;
    let teach = page.url(&format!("/teach/{}", format::encode(&run)));
    let to = match take_back(&state, &view, &visitor, answer).await {
        Ok(TakenBack { undone: true, .. }) => format!("{teach}?undone={answer}"),
        Ok(_) => format!("{teach}/answers?learnt={answer}#answer-{answer}"),
        Err(Error::Store(StoreError::Superseded)) => format!("{teach}/answers"),
        Err(error) => return Err(error),
    };
    Ok(Redirect::to(&to).into_response())
}

/// `POST /teach/{run}/answers/{answer}/withdraw`: the answer leaves the data set, whether or not the agent has learned from it.
/// Doing it twice does it once.
pub(crate) async fn withdraw(
    State(state): State<AppState>,
    Path((run, answer)): Path<(RunId, AnswerId)>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let visitor = visitor.ok_or(StoreError::NotFound("the answer"))?;
    state.store.answer_in(&run, answer, visitor.teacher.id).await?;
    state.store.retract(answer, visitor.teacher.id).await?;
    let to = format!("/teach/{}/answers?withdrawn={answer}", format::encode(&run));
    Ok(Redirect::to(&page.url(&to)).into_response())
}
