//! The settings of a study as a file: to keep, and to begin another study with.

use crate::ids::StudyId;
use crate::study::{SettingsError, StudyFile, StudySettings};
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::handlers::studies::editor;
use crate::web::page::Page;
use crate::web::services::study_form::StudyForm;
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

/// `GET /studies/{study}/settings.toml`.
pub(crate) async fn download(_: Steering, State(state): State<AppState>, Path(id): Path<StudyId>) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let name = format!("attachment; filename=\"{id}.toml\"");
    let text = StudyFile { id: Some(study.id), settings: study.settings, arms: study.arms }.text();
    Ok(([(header::CONTENT_TYPE, "application/toml".to_owned()), (header::CONTENT_DISPOSITION, name)], text)
        .into_response())
}

/// Query of the page on which a study is written.
#[derive(Deserialize)]
pub(crate) struct Beginning {
    /// The study whose settings it begins with.
    #[serde(default)]
    from: Option<StudyId>,
}

/// `GET /studies/new`. With `?from=STUDY` it begins with the settings of another study, without its runs and its name.
pub(crate) async fn new(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(beginning): Query<Beginning>,
) -> Result<Response> {
    let settings = match beginning.from {
        Some(other) => state.store.study(&other).await?.settings,
        None => StudySettings::default(),
    };
    editor(&state, page, None, StudyForm::of(&settings, &[]), Vec::new()).await
}

/// Body of the form that reads a file.
#[derive(Deserialize)]
pub(crate) struct Given {
    #[serde(default)]
    settings: String,
    /// The study that is edited; a new one without it.
    #[serde(default)]
    study: Option<StudyId>,
}

/// `POST /studies/settings`: the editor, filled with what a file says. Nothing is stored.
pub(crate) async fn read(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Form(given): Form<Given>,
) -> Result<Response> {
    let study = match given.study.filter(|id| !id.is_empty()) {
        Some(id) => Some(state.store.study(&id).await?),
        None => None,
    };
    match StudyFile::read(&given.settings.replace("\r\n", "\n")) {
        Ok(file) => {
            // A study that is edited keeps its runs and its name; a file of another server names runs that are not here.
            let arms = study.as_ref().map_or(file.arms, |study| study.arms.clone());
            let mut form = StudyForm::of(&file.settings, &arms);
            if let Some(id) = file.id.filter(|_| study.is_none()) {
                form.name(&id);
            }
            editor(&state, page, study, form, Vec::new()).await
        }
        Err(error) => {
            let problem = SettingsError { field: "settings", sentence: error.to_string() };
            let form = match &study {
                Some(study) => StudyForm::of_study(study),
                None => StudyForm::of(&StudySettings::default(), &[]),
            };
            let again = editor(&state, page, study, form, vec![problem]).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response())
        }
    }
}
