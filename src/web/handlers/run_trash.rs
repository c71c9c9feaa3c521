//! Deleting runs: what is lost is said first, and the trash keeps them for 30 days.

use crate::ids::{RunId, StudyId};
use crate::launch::CheckpointFile;
use crate::store::{MadeBy, RunLosses, TRASH_KEEPS};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::account::{MayRemove, Remover};
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::format;
use crate::web::handlers::lists_api::{self, List, Paging};
use crate::web::handlers::progress::Ticket;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::services::launching;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

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
    /// Whether runs can be removed before their time.
    removes: bool,
    /// Runs that have just been removed.
    removed: u64,
}

/// The views of the runs in the trash, the one that was deleted last first.
async fn trashed(state: &AppState) -> Result<Vec<RunView>> {
    let ids = state.store.trashed_runs().await?;
    let mut views = RunView::of_many(state, state.store.runs_of(&ids).await?).await?;
    views.sort_by_key(|view| ids.iter().position(|id| *id == view.run.id));
    Ok(views)
}

/// When a run of the trash is removed for good.
fn kept_until(view: &RunView) -> OffsetDateTime {
    purged_on(view.label.trashed_at.unwrap_or_else(OffsetDateTime::now_utc))
}

/// Query of [`page`].
#[derive(Deserialize)]
pub(crate) struct Removed {
    #[serde(default)]
    removed: u64,
}

/// `GET /runs/trash`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    MayRemove(removes): MayRemove,
    Query(Removed { removed }): Query<Removed>,
    page: Page,
) -> Result<Response> {
    let runs = trashed(&state).await?.into_iter().map(|view| (kept_until(&view), view));
    let runs = runs.map(|(until, view)| (view, until)).collect();
    Ok(page::html(&TrashPage { page, runs, removes: removes && state.launcher.is_some(), removed }))
}

#[derive(Template)]
#[template(path = "run_trash_empty.html")]
struct EmptyPage {
    page: Page,
    runs: Vec<(RunView, Losses)>,
    /// Whether there are other runs in the trash, which stay.
    some: bool,
}

impl EmptyPage {
    /// The runs, as the form sends them.
    fn ids(&self) -> String {
        self.runs.iter().map(|(view, _)| view.run.id.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn count(&self) -> u64 {
        self.runs.len() as u64
    }

    fn sum(&self, count: impl Fn(&Losses) -> u64) -> u64 {
        self.runs.iter().map(|(_, losses)| count(losses)).sum()
    }

    fn descriptions(&self) -> u64 {
        self.sum(|losses| losses.rows.descriptions_by_people)
    }

    fn answers(&self) -> u64 {
        self.sum(|losses| losses.rows.answers)
    }

    fn checkpoints(&self) -> u64 {
        self.sum(|losses| losses.checkpoints)
    }

    fn bytes(&self) -> u64 {
        self.sum(|losses| losses.checkpoint_bytes)
    }
}

/// Query of [`confirm_empty`].
#[derive(Deserialize)]
pub(crate) struct Which {
    /// One run; all of the trash where it is left out.
    run: Option<RunId>,
}

/// `GET /runs/trash/empty`: what is lost, and whether it is meant.
pub(crate) async fn confirm_empty(
    _: Remover,
    State(state): State<AppState>,
    Query(Which { run }): Query<Which>,
    page: Page,
) -> Result<Response> {
    let mut runs = Vec::new();
    let (all, mut left) = (trashed(&state).await?, 0);
    for view in all {
        if run.as_ref().is_some_and(|wanted| *wanted != view.run.id) {
            left += 1;
            continue;
        }
        let losses = losses_of(&state, &view.run.id).await?;
        runs.push((view, losses));
    }
    if run.is_some() && runs.is_empty() {
        return Err(Error::NotFound("the run in the trash"));
    }
    Ok(page::html(&EmptyPage { page, runs, some: left > 0 }))
}

/// Body of [`empty`].
#[derive(Deserialize)]
pub(crate) struct Meant {
    /// The runs of which the page said what is lost, one a line. Those that came into the trash since are left there.
    #[serde(default)]
    runs: String,
    /// `yes`, where the person ticked that it is meant.
    #[serde(default)]
    sure: String,
}

/// `POST /runs/trash/empty`: removes the runs of that page for good.
pub(crate) async fn empty(
    _: Remover,
    State(state): State<AppState>,
    page: Page,
    Query(Ticket { ticket }): Query<Ticket>,
    Form(Meant { runs, sure }): Form<Meant>,
) -> Result<Response> {
    if sure != "yes" {
        return Err(Error::change("sure", "Tick that the runs are to be removed for good. Nothing has been removed."));
    }
    let there = state.store.trashed_runs().await?;
    let named = runs.lines().map(str::trim).filter(|name| !name.is_empty()).map(RunId::from);
    let following = state.works.follow(&ticket, launching::REMOVAL);
    let removed = launching::remove(&state, named.filter(|run| there.contains(run)).collect(), following).await?;
    Ok(Redirect::to(&page.url(&format!("/runs/trash?removed={removed}"))).into_response())
}

/// A run of the trash.
#[derive(Serialize, ToSchema)]
pub(crate) struct TrashedRun {
    id: RunId,
    /// The title by which people tell runs apart.
    called: String,
    /// When it is removed for good.
    #[serde(with = "time::serde::rfc3339")]
    purged_at: OffsetDateTime,
    /// The losses that its removal means.
    losses: Losses,
}

/// `GET /api/v1/trash`: the runs in the trash, the one that was deleted last first.
#[utoipa::path(get, path = "/trash", operation_id = "list_trash", tag = "runs", description = "", params(Paging),
    summary = "The runs in the trash, the one that was deleted last first",
    responses((status = 200, body = List<TrashedRun>, description = "A page of runs")))]
pub(crate) async fn list(
    _: Steering,
    State(state): State<AppState>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<TrashedRun>>> {
    let views = lists_api::slice(trashed(&state).await?, &paging, |view: &RunView| view.run.id.to_string())?;
    let mut items = Vec::new();
    for view in views.items {
        let losses = losses_of(&state, &view.run.id).await?;
        items.push(TrashedRun { called: view.title(), purged_at: kept_until(&view), losses, id: view.run.id });
    }
    Ok(axum::Json(List { items, next: views.next }))
}

/// `DELETE /api/v1/trash/{run}`: removes a run for good.
#[utoipa::path(delete, path = "/trash/{run}", operation_id = "remove_run", tag = "runs",
    summary = "Removes a run of the trash for good, before its time", description = "`GET /runs/{run}/losses` says what is lost.",
    params(("run" = String, Path, description = "Key of the run")),
    responses((status = 204, description = "It is removed")))]
pub(crate) async fn remove(_: Remover, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<StatusCode> {
    if !state.store.trashed_runs().await?.contains(&run) {
        return Err(Error::NotFound("the run in the trash"));
    }
    launching::remove(&state, vec![run], state.works.follow("", launching::REMOVAL)).await?;
    Ok(StatusCode::NO_CONTENT)
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
