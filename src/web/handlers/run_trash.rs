//! Deleting runs: what is lost is said first, and the trash keeps them for 30 days.

use crate::ids::{RunId, StudyId};
use crate::launch::CheckpointFile;
use crate::store::{MadeBy, RunLosses, TRASH_KEEPS};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// The losses with a run: rows of the store and files.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Losses {
    #[serde(flatten)]
    rows: RunLosses,
    checkpoints: u64,
    checkpoint_bytes: u64,
}

/// Days that the trash keeps a run.
const DAYS: u64 = TRASH_KEEPS.as_secs() / 86_400;

async fn losses_of(state: &AppState, run: &RunId) -> Result<Losses> {
    let rows = state.store.run_losses(run).await?;
    let files = match &state.launcher {
        Some(launcher) => launcher.checkpoint_files(run).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let checkpoint_bytes = files.iter().map(|CheckpointFile { bytes, .. }| bytes).sum();
    Ok(Losses { rows, checkpoints: files.len() as u64, checkpoint_bytes })
}

/// When a run that is put into the trash at a time is removed for good.
fn purged_on(trashed_at: OffsetDateTime) -> OffsetDateTime {
    trashed_at + TRASH_KEEPS
}

/// Puts a run into the trash. Who deletes a run that studies need has to name them, with commas between.
async fn trash(state: &AppState, run: &RunId, studies: &str) -> Result<()> {
    let view = RunView::load(state, run).await?;
    if !view.ended() {
        return Err(Error::conflict("going", "The run has not ended. Stop it first; then it can be deleted."));
    }
    let losses = state.store.run_losses(run).await?;
    let named: Vec<&str> = studies.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(study) = losses.studies.iter().find(|study| !named.contains(&study.as_str())) {
        return Err(Error::conflict(
            "in-study",
            format!(
                "The run belongs to the study {study}. Its checkpoints would be removed after {DAYS} days, and the study could not teach it any more; what people said and the curves stay with the study. To delete it all the same, name the study."
            ),
        ));
    }
    state.store.trash_run(run).await?;
    // Its handle would keep it on the start page.
    state.runs.remove(run);
    Ok(())
}

/// Query of `DELETE /api/runs/{run}`, and body of the form.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Sure {
    /// The studies that need the run, with commas between.
    #[serde(default)]
    study: String,
}

/// Answer of `DELETE /api/runs/{run}`.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Trashed {
    /// When the run is removed for good.
    #[serde(with = "time::serde::rfc3339")]
    purged_at: OffsetDateTime,
}

/// `GET /api/runs/{run}/losses`: what is lost with a run.
#[utoipa::path(get, path = "/runs/{run}/losses", operation_id = "show_losses", tag = "runs",
    summary = "What is lost with a run", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 200, body = Losses, description = "Rows and files")))]
pub(crate) async fn losses(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
) -> Result<axum::Json<Losses>> {
    Ok(axum::Json(losses_of(&state, &run).await?))
}

/// `DELETE /api/runs/{run}`: puts the run into the trash.
#[utoipa::path(delete, path = "/runs/{run}", operation_id = "trash_run", tag = "runs",
    summary = "Puts a run into the trash", description = "",
    params(("run" = String, Path, description = "Key of the run"), Sure),
    responses((status = 200, body = Trashed, description = "When it is removed for good")))]
pub(crate) async fn delete(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(sure): Query<Sure>,
) -> Result<axum::Json<Trashed>> {
    trash(&state, &run, &sure.study).await?;
    let trashed_at = state.store.run_label(&run).await?.trashed_at.unwrap_or_else(OffsetDateTime::now_utc);
    Ok(axum::Json(Trashed { purged_at: purged_on(trashed_at) }))
}

/// `POST /api/runs/{run}/restore`: takes the run out of the trash.
#[utoipa::path(post, path = "/runs/{run}/restore", operation_id = "restore_run", tag = "runs",
    summary = "Takes a run out of the trash", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 204, description = "It is back")))]
pub(crate) async fn restore(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<StatusCode> {
    state.store.restore_run(&run).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Template)]
#[template(path = "run_delete.html")]
struct DeletePage {
    page: Page,
    view: RunView,
    losses: Losses,
    problem: Option<String>,
}

impl DeletePage {
    fn checkpoints(&self) -> &u64 {
        &self.losses.checkpoints
    }

    /// The studies that need the run, as the form sends them.
    fn study_names(&self) -> String {
        self.losses.rows.studies.iter().map(StudyId::as_str).collect::<Vec<_>>().join(",")
    }

    fn of_reproduce(&self) -> bool {
        self.view.label.made_by == MadeBy::Reproduce
    }
}

async fn ask(state: &AppState, page: Page, run: &RunId, problem: Option<String>) -> Result<Response> {
    let (view, losses) = (RunView::load(state, run).await?, losses_of(state, run).await?);
    Ok(page::html(&DeletePage { page, view, losses, problem }))
}

/// `GET /runs/{run}/delete`: what is lost, and whether it is meant.
pub(crate) async fn confirm(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
) -> Result<Response> {
    ask(&state, page, &run, None).await
}

/// `POST /runs/{run}/delete`: the form of that page.
pub(crate) async fn delete_form(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
    Form(sure): Form<Sure>,
) -> Result<Response> {
    match trash(&state, &run, &sure.study).await {
        Ok(()) => Ok(Redirect::to(&page.url("/runs/trash")).into_response()),
        Err(error @ Error::Conflict { .. }) => {
            let problem = error.problem();
            Ok((problem.status(), ask(&state, page, &run, Some(problem.detail)).await?).into_response())
        }
        Err(error) => Err(error),
    }
}

#[derive(Template)]
#[template(path = "run_trash.html")]
struct TrashPage {
    page: Page,
    /// The runs, with the time that each is kept.
    runs: Vec<(RunView, OffsetDateTime)>,
}

/// `GET /runs/trash`.
pub(crate) async fn page(_: Steering, State(state): State<AppState>, page: Page) -> Result<Response> {
    let ids = state.store.trashed_runs().await?;
    let mut views = RunView::of_many(&state, state.store.runs_of(&ids).await?).await?;
    views.sort_by_key(|view| ids.iter().position(|id| *id == view.run.id));
    let kept = |view: RunView| {
        let until = purged_on(view.label.trashed_at.unwrap_or_else(OffsetDateTime::now_utc));
        (view, until)
    };
    Ok(page::html(&TrashPage { page, runs: views.into_iter().map(kept).collect() }))
}

/// `POST /runs/{run}/restore`: the button of that page.
pub(crate) async fn restore_form(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
) -> Result<Response> {
    state.store.restore_run(&run).await?;
    Ok(Redirect::to(&page.url(&format!("/runs/{}", format::encode(&run)))).into_response())
}
