//! The lists of `/api/v1`, page by page: `limit` and `cursor` in the query, `items` and `next` in the reply. `next` is the cursor of
//! the following page, and null at the end.

use crate::ids::{AnswerId, RunId, StudyId};
use crate::launch::PresetInfo;
use crate::run::Point;
use crate::store::{Description, SavedDraft};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::extractors::visitor::Returned;
use crate::web::handlers::checkpoints::{self, Listed};
use crate::web::handlers::run_api::{self, RunJson};
use crate::web::handlers::studies_api::{self, ParticipantJson, StudyJson};
use crate::web::handlers::teach_api;
use crate::web::page::episode::EpisodeJson;
use crate::web::page::run_view::RunView;
use crate::web::services::drafts;
use crate::web::state::AppState;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How many items a page has where the query says nothing, and at most.
const USUAL: u64 = 50;
const MOST: u64 = 500;

/// Query of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Items of a page; 50 where it is left out.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// Where a list of descriptions begins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// Key of the last description that the program has; for programs that ask again and again for what came meanwhile.
    after: Option<AnswerId>,
}

/// The thinning of a list of points.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Thinning {
    /// For charts: all of the curve in one page, thinned evenly to so many points at most. It takes the place of `limit` and `cursor`.
    #[param(minimum = 1, maximum = 2000)]
    thin: Option<u32>,
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct List<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// The cursor of the following page; null at the end of the list.
    pub(crate) next: Option<String>,
}

impl Paging {
    /// Items of a page.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.unwrap_or(USUAL).clamp(1, MOST)
    }

    /// The text in the cursor.
    fn text(&self) -> Result<Option<String>> {
        let Some(cursor) = self.cursor.as_deref().filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
        let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(Some).ok_or_else(not_a_cursor)
    }

    /// The number in the cursor.
    pub(crate) fn number<N: std::str::FromStr>(&self) -> Result<Option<N>> {
        self.text()?.map(|text| text.parse().map_err(|_| not_a_cursor())).transpose()
    }
}

fn not_a_cursor() -> Error {
    Error::change("cursor", "Send the next of an earlier page as the cursor, or none to begin at the first page.")
}

/// A cursor from its text.
fn cursor(text: impl ToString) -> String {
    URL_SAFE_NO_PAD.encode(text.to_string())
}

/// One page of a list of which one item more than fits was read.
pub(crate) fn page<T>(mut items: Vec<T>, limit: u64, key: impl Fn(&T) -> String) -> List<T> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| cursor(key(last)));
    List { items, next }
}

/// One page of a list that was read whole.
pub(crate) fn slice<T>(all: Vec<T>, paging: &Paging, key: impl Fn(&T) -> String) -> Result<List<T>> {
    let from = match paging.text()? {
        None => 0,
        Some(last) => all.iter().position(|item| key(item) == last).map(|at| at + 1).ok_or_else(|| {
            Error::change("cursor", "The last item of that page is no longer in the list. Begin at the first page.")
        })?,
    };
    let limit = paging.limit();
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    Ok(page(all.into_iter().skip(from).take(most).collect(), limit, key))
}

/// `GET /api/v1/runs`: all runs, newest first.
#[utoipa::path(get, path = "/runs", operation_id = "list_runs", tag = "runs", summary = "All runs, newest first",
    description = "", params(Paging), responses((status = 200, body = List<RunJson>, description = "A page of runs")))]
pub(crate) async fn runs(
    _: Steering,
    State(state): State<AppState>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<RunJson>>> {
    let known = state.store.runs().await?.into_iter().filter(|run| state.family(&run.family).is_some()).collect();
    let List { items, next } = slice(known, &paging, |run: &crate::store::Run| run.id.to_string())?;
    let mut views = Vec::with_capacity(items.len());
    for run in items {
        views.push(RunJson::from(RunView::of(&state, run).await?));
    }
    Ok(axum::Json(List { items: views, next }))
}

/// `GET /api/v1/presets`.
#[utoipa::path(get, path = "/presets", operation_id = "list_presets", tag = "runs", description = "", params(Paging),
    summary = "The presets that a run can start from, the server's default first",
    responses((status = 200, body = List<PresetInfo>, description = "A page of presets")))]
pub(crate) async fn presets(
    _: Steering,
    State(state): State<AppState>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<PresetInfo>>> {
    let presets = state.launcher.as_ref().map(|launcher| launcher.presets()).unwrap_or_default();
    Ok(axum::Json(slice(presets, &paging, |preset| preset.name.clone())?))
}

/// `GET /api/v1/runs/{run}/points`: every point of the curves, oldest first.
#[utoipa::path(get, path = "/runs/{run}/points", operation_id = "list_points", tag = "runs", description = "",
    summary = "Every point of a run's learning curves, oldest first",
    params(("run" = String, Path, description = "Key of the run"), Paging, Thinning),
    responses((status = 200, body = List<Point>, description = "A page of points")))]
pub(crate) async fn points(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(paging): Query<Paging>,
    Query(Thinning { thin }): Query<Thinning>,
) -> Result<axum::Json<List<Point>>> {
    let run = state.store.run(&run).await?;
    if let Some(most) = thin {
        let most = (most as usize).clamp(1, run_api::POINTS);
        return Ok(axum::Json(List { items: state.store.points(&run.id, most).await?, next: None }));
    }
    let points = state.store.points_after(&run.id, paging.number()?, paging.limit() + 1).await?;
    Ok(axum::Json(page(points, paging.limit(), |point| point.update.to_string())))
}

/// `GET /api/v1/runs/{run}/episodes`: episodes that ended, by their numbers, the largest first.
#[utoipa::path(get, path = "/runs/{run}/episodes", operation_id = "list_episodes", tag = "runs", description = "",
    summary = "Episodes that ended, by their numbers, the largest first",
    params(("run" = String, Path, description = "Key of the run"), Paging),
    responses((status = 200, body = List<EpisodeJson>, description = "A page of episodes")))]
pub(crate) async fn episodes(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<EpisodeJson>>> {
    let view = RunView::load(&state, &run).await?;
    let before = match paging.text()? {
        None => None,
        Some(text) => {
            let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, AnswerId(b.parse().ok()?))));
            Some(parts.ok_or_else(not_a_cursor)?)
        }
    };
    let rows = state.store.episodes_before(&run, before, paging.limit() + 1).await?;
    let List { items, next } = page(rows, paging.limit(), |(row, answer)| format!("{}.{answer}", row.episode));
    let items = items.into_iter().map(|(row, _)| EpisodeJson::of(view.family, row)).collect();
    Ok(axum::Json(List { items, next }))
}

/// `GET /api/v1/runs/{run}/checkpoints`: newest first.
#[utoipa::path(get, path = "/runs/{run}/checkpoints", operation_id = "list_checkpoints", tag = "runs", description = "",
    summary = "A run's checkpoints, newest first",
    params(("run" = String, Path, description = "Key of the run"), Paging),
    responses((status = 200, body = List<Listed>, description = "A page of checkpoints")))]
pub(crate) async fn checkpoints(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<Listed>>> {
    let all = checkpoints::of_run(&state, &run).await?;
    Ok(axum::Json(slice(all, &paging, |listed| listed.row.name.clone())?))
}

/// `GET /api/v1/runs/{run}/descriptions`: what people said, oldest first.
#[utoipa::path(get, path = "/runs/{run}/descriptions", operation_id = "list_descriptions", tag = "descriptions",
    summary = "What people said about a run's executions, oldest first",
    description = "Corrected, undone and rejected descriptions are among them; `state` tells them apart. Skips are not. \
        Descriptions that come later have larger keys: `after` gives what came since.",
    params(("run" = String, Path, description = "Key of the run"), Paging, After),
    responses((status = 200, body = List<Description>, description = "A page of descriptions")))]
pub(crate) async fn descriptions(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(paging): Query<Paging>,
    Query(After { after }): Query<After>,
) -> Result<axum::Json<List<Description>>> {
    let run = state.store.run(&run).await?;
    let after = paging.number()?.or(after).unwrap_or_default();
    let found = state.store.descriptions(&run.id, after, paging.limit() + 1).await?;
    Ok(axum::Json(page(found, paging.limit(), |one| one.id.to_string())))
}

/// `GET /api/v1/runs/{run}/answers`: the sender's latest answers that may still be corrected, newest first.
#[utoipa::path(get, path = "/runs/{run}/answers", operation_id = "list_own_answers", tag = "teaching", description = "",
    summary = "The sender's own latest answers that may still be corrected, newest first",
    params(("run" = String, Path, description = "Key of the run"), Paging),
    responses((status = 200, body = List<teach_api::Own>, description = "A page of answers")))]
pub(crate) async fn own_answers(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(paging): Query<Paging>,
    Returned(visitor): Returned,
) -> Result<axum::Json<List<teach_api::Own>>> {
    let own = teach_api::own_answers(&state, &run, visitor).await?;
    Ok(axum::Json(slice(own, &paging, |own| own.answer.to_string())?))
}

/// `GET /api/v1/runs/{run}/drafts`: the sender's drafts, newest first.
#[utoipa::path(get, path = "/runs/{run}/drafts", operation_id = "list_drafts", tag = "teaching", description = "",
    summary = "The sender's own drafts, newest first",
    params(("run" = String, Path, description = "Key of the run"), Paging),
    responses((status = 200, body = List<SavedDraft>, description = "A page of drafts")))]
pub(crate) async fn own_drafts(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(paging): Query<Paging>,
    Returned(visitor): Returned,
) -> Result<axum::Json<List<SavedDraft>>> {
    state.store.run(&run).await?;
    let own = match visitor {
        Some(visitor) => drafts::list(&state, &run, &visitor).await?,
        None => Vec::new(),
    };
    Ok(axum::Json(slice(own, &paging, |draft| draft.execution.to_string())?))
}

/// `GET /api/v1/studies`: all studies, newest first.
#[utoipa::path(get, path = "/studies", operation_id = "list_studies", tag = "studies", description = "", params(Paging),
    summary = "All studies, newest first",
    responses((status = 200, body = List<StudyJson>, description = "A page of studies")))]
pub(crate) async fn studies(
    _: Steering,
    State(state): State<AppState>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<StudyJson>>> {
    let List { items, next } = slice(state.store.studies().await?, &paging, |study| study.id.to_string())?;
    let mut studies = Vec::with_capacity(items.len());
    for study in items {
        studies.push(studies_api::with_figures(&state, study).await?);
    }
    Ok(axum::Json(List { items: studies, next }))
}

/// `GET /api/v1/studies/{study}/participants`: everybody in a study, in the order in which they joined.
#[utoipa::path(get, path = "/studies/{study}/participants", operation_id = "list_participants", tag = "studies",
    description = "", summary = "Everybody in a study, in the order in which they joined",
    params(("study" = String, Path, description = "Key of the study"), Paging),
    responses((status = 200, body = List<ParticipantJson>, description = "A page of participants")))]
pub(crate) async fn participants(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    Query(paging): Query<Paging>,
) -> Result<axum::Json<List<ParticipantJson>>> {
    let all = studies_api::all_participants(&state, &id).await?;
    Ok(axum::Json(slice(all, &paging, ParticipantJson::key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_list_hold_each_item_once() {
        let all: Vec<u32> = (0..7).collect();
        let (mut seen, mut paging) = (Vec::new(), Paging { limit: Some(3), cursor: None });
        for _ in 0..3 {
            let List { items, next } = slice(all.clone(), &paging, u32::to_string).unwrap();
            assert!(items.len() <= 3);
            seen.extend(items);
            paging.cursor = next;
        }
        assert_eq!((seen, paging.cursor), (all, None));
        let whole = Paging { limit: Some(7), cursor: None };
        assert_eq!(slice((0..7).collect(), &whole, u32::to_string).unwrap().next, None);
        let lost = Paging { limit: None, cursor: Some(cursor("gone")) };
        assert!(slice(vec![1, 2], &lost, u32::to_string).is_err());
        assert!(Paging { limit: None, cursor: Some("%".into()) }.text().is_err());
    }
}
