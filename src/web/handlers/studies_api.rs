//! Studies as JSON: what researchers' programs read of them, and the settings that they change.

use crate::ids::StudyId;
use crate::store::{Participant, ParticipantFigures, Study};
use crate::study::{Estimate, ParticipantState, StudySettings};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::actor::Actor;
use crate::web::extractors::input::{Json, Path};
use crate::web::state::AppState;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;

/// A study with what it has come to.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = StudyFigures)]
pub(crate) struct StudyJson {
    #[serde(flatten)]
    study: Study,
    /// Everybody who joined.
    teachers: u64,
    /// Those who have given what was asked.
    finished: u64,
    /// Answers of all.
    answers: u64,
    /// Minutes and cost.
    estimate: Estimate,
}

pub(crate) async fn with_figures(state: &AppState, study: Study) -> Result<StudyJson> {
    let people = state.store.participants(&study.id).await?;
    let figures = state.store.participant_figures(&study.id).await?;
    let (timed, active) = figures.values().fold((0, 0), |(timed, active), f| (timed + f.timed, active + f.active_ms));
    let seconds = (timed > 0).then(|| active as f64 / 1000.0 / timed as f64);
    Ok(StudyJson {
        teachers: people.len() as u64,
        finished: people.iter().filter(|who| who.state == ParticipantState::Finished).count() as u64,
        answers: figures.values().map(|figures| figures.answers).sum(),
        estimate: Estimate::of(&study.settings, seconds),
        study,
    })
}

/// `GET /api/studies`: all studies, newest first.
pub(crate) async fn list(_: Steering, State(state): State<AppState>) -> Result<axum::Json<Vec<StudyJson>>> {
    let mut studies = Vec::new();
    for study in state.store.studies().await? {
        studies.push(with_figures(&state, study).await?);
    }
    Ok(axum::Json(studies))
}

/// `GET /api/studies/{study}`.
#[utoipa::path(get, path = "/studies/{study}", operation_id = "show_study", tag = "studies",
    summary = "A study with what it has come to", description = "",
    params(("study" = String, Path, description = "Key of the study")),
    responses((status = 200, body = StudyJson, description = "The study")))]
pub(crate) async fn study(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
) -> Result<axum::Json<StudyJson>> {
    let study = state.store.study(&id).await?;
    Ok(axum::Json(with_figures(&state, study).await?))
}

/// Puts the members of `patch` into `target`, and those of objects within; `null` takes one out.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    target.remove(&name);
                } else {
                    merge(target.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

/// `PATCH /api/studies/{study}`: changes the settings that the body names.
#[utoipa::path(patch, path = "/studies/{study}", operation_id = "change_study", tag = "studies",
    summary = "Changes the settings that the body names", description = "",
    params(("study" = String, Path, description = "Key of the study")),
    request_body = Object,
    responses((status = 200, body = StudyJson, description = "The study")))]
pub(crate) async fn change(
    actor: Actor,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    Json(patch): Json<Value>,
) -> Result<axum::Json<StudyJson>> {
    if !patch.is_object() {
        return Err(Error::change("settings", "Send an object whose members are settings, such as {\"goal\": 40}."));
    }
    let changed = |study: &Study| -> Result<_> {
        let mut settings = serde_json::to_value(&study.settings)
            .map_err(|error| Error::Panic(format!("settings cannot be written: {error}")))?;
        merge(&mut settings, patch);
        let settings: StudySettings = serde_json::from_value(settings)
            .map_err(|error| Error::change("settings", format!("The settings cannot be read: {error}.")))?;
        match settings.problems().into_iter().next() {
            Some(problem) => Err(Error::change(problem.field, problem.sentence)),
            None => Ok((settings, study.arms.clone())),
        }
    };
    state.store.change_study(&id, &actor.name, changed).await?;
    let study = state.store.study(&id).await?;
    Ok(axum::Json(with_figures(&state, study).await?))
}

/// A participant, by number, with what they gave. What is known of the person is no part of it.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = ParticipantWithFigures)]
pub(crate) struct ParticipantJson {
    pseudonym: String,
    #[serde(flatten)]
    who: Participant,
    figures: Option<ParticipantFigures>,
}

impl ParticipantJson {
    /// The key, for a cursor.
    pub(crate) fn key(&self) -> String {
        self.pseudonym.clone()
    }
}

/// `GET /api/studies/{study}/participants`: everybody in a study, in the order in which they joined.
pub(crate) async fn participants(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
) -> Result<axum::Json<Vec<ParticipantJson>>> {
    Ok(axum::Json(all_participants(&state, &id).await?))
}

/// Everybody in a study, in the order in which they joined.
pub(crate) async fn all_participants(state: &AppState, id: &StudyId) -> Result<Vec<ParticipantJson>> {
    let study = state.store.study(id).await?;
    let figures = state.store.participant_figures(&study.id).await?;
    let people = state.store.participants(&study.id).await?.into_iter();
    let read = |who: Participant| ParticipantJson {
        pseudonym: who.pseudonym(),
        figures: figures.get(&who.teacher).copied(),
        who,
    };
    Ok(people.map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::json;

    #[test]
    fn patches_reach_into_objects_and_null_takes_out() {
        let mut settings = json!({"goal": 3, "completion": {"code": "A", "thanks": "x"}, "good": [1]});
        merge(
            &mut settings,
            json!({"goal": 4, "completion": {"thanks": null, "code": "B"}, "good": [], "webhook": "w"}),
        );
        assert_eq!(settings, json!({"goal": 4, "completion": {"code": "B"}, "good": [], "webhook": "w"}));
    }
}
