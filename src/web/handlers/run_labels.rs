//! Names, notes and tags of runs, and whether they are archived.

use crate::ids::RunId;
use crate::store::{LabelChange, RunLabel};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Form, Json, Path};
use crate::web::format;
use crate::web::page::Page;
use crate::web::page::run_view::RunView;
use crate::web::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};

/// Body of `PATCH /api/runs/{run}`; what is left out stays.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    name: Option<String>,
    notes: Option<String>,
    tags: Option<Vec<String>>,
    archived: Option<bool>,
}

/// Answer of `PATCH /api/runs/{run}`.
#[derive(Serialize)]
pub(crate) struct Labelled {
    /// The title by which people tell runs apart.
    called: String,
    label: RunLabel,
}

/// Changes a run's label.
async fn change(state: &AppState, run: &RunId, change: LabelChange) -> Result<RunLabel> {
    let change = change.clean().map_err(|problem| {
        Error::change(problem.field, format!("{}.", format::upper(&problem.sentence)))
    })?;
    state.store.run(run).await?;
    Ok(state.store.label_run(run, &change).await?)
}

/// `PATCH /api/runs/{run}`: another name, notes or tags; archived or not.
pub(crate) async fn patch(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Json(Change { name, notes, tags, archived }): Json<Change>,
) -> Result<axum::Json<Labelled>> {
    change(&state, &run, LabelChange { name, notes, tags, archived }).await?;
    let view = RunView::load(&state, &run).await?;
    Ok(axum::Json(Labelled { called: view.title(), label: view.label }))
}

/// Fields of the forms by which a label is changed without a script.
#[derive(Deserialize)]
pub(crate) struct LabelForm {
    name: Option<String>,
    notes: Option<String>,
    /// Tags with commas between them.
    tags: Option<String>,
    /// `yes` or `no`.
    archived: Option<String>,
    /// `list`: back to the list of runs, else to the page of the run.
    #[serde(default)]
    back: String,
}

/// `POST /runs/{run}/label`: the form of the run's page and of the list.
pub(crate) async fn form(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
    Form(form): Form<LabelForm>,
) -> Result<Response> {
    let wanted = LabelChange {
        name: form.name,
        notes: form.notes.map(|notes| notes.replace("\r\n", "\n")),
        tags: form.tags.map(|tags| tags.split(',').map(str::to_owned).collect()),
        archived: form.archived.map(|archived| archived == "yes"),
    };
    change(&state, &run, wanted).await?;
    let back = if form.back == "list" { "/runs".to_owned() } else { format!("/runs/{}", format::encode(&run)) };
    Ok(Redirect::to(&page.url(&back)).into_response())
}
