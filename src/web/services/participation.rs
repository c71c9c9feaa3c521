//! Where a teacher is in a study, and where they go next. Every page and address that hands out executions asks here first.

use crate::config::run::Preview;
use crate::ids::{RunId, StudyId, TeacherId};
use crate::store::{Participant, SELF, Study};
use crate::study::{ParticipantState, StudyState};
use crate::web::error::Result;
use crate::web::extractors::visitor::Visitor;
use crate::web::format;
use crate::web::services::completion;
use crate::web::state::AppState;
use serde::Serialize;

/// The progress of a teacher in a study, as the page shows it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Progress {
    /// The study.
    pub(crate) study: StudyId,
    /// Answers the teacher has given in it.
    pub(crate) given: u64,
    /// Answers that are asked of them; `None`: as many as they like.
    pub(crate) goal: Option<u64>,
    /// Own path of the page that comes now, in the place of another execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Whether a teacher may have an execution of a run.
pub(crate) enum Gate {
    /// The run belongs to no study that has begun.
    Open,
    /// The teacher is in the study, and this run is the one they teach now.
    Teaching(Progress),
    /// Something else comes first: own path of the page.
    Elsewhere(String),
}

/// Own path of a study's page for teachers.
pub(crate) fn path(study: &StudyId) -> String {
    format!("/study/{}", format::encode(study))
}

/// Own path of the page on which a run is taught.
pub(crate) fn teach_path(run: &RunId) -> String {
    format!("/teach/{}", format::encode(run))
}

/// How many attention checks come before answer number `given`.
fn checks_due(study: &Study, given: u64) -> u64 {
    match study.settings.attention.every {
        0 => 0,
        every => given / u64::from(every),
    }
}

/// The goal of a study; `None` where there is none.
pub(crate) fn goal(study: &Study) -> Option<u64> {
    (study.settings.goal > 0).then_some(u64::from(study.settings.goal))
}

/// The next step of a participant who teaches.
pub(crate) enum Next {
    /// They have given what was asked.
    Finish,
    /// An attention check.
    Check,
    /// An execution of this run.
    Teach(RunId),
    /// The study has no run.
    Nothing,
}

/// Says which step comes after `given` answers. An attention check that cannot be made is passed over.
pub(crate) async fn next(state: &AppState, study: &Study, who: &Participant, given: u64) -> Result<Next> {
    if goal(study).is_some_and(|goal| given >= goal) {
        return Ok(Next::Finish);
    }
    let answered = who.attention_passed + who.attention_missed;
    if checks_due(study, given) > answered
        && state.store.attention_item(&study.id, (who.id, who.teacher), answered).await?.is_some()
    {
        return Ok(Next::Check);
    }
    let runs: Vec<RunId> = study.arms.iter().map(|arm| arm.run.clone()).collect();
    Ok(crate::store::Store::arm_of_next(who, &runs, given).map_or(Next::Nothing, Next::Teach))
}

/// Whether a visitor may have an execution of `run` now.
pub(crate) async fn gate(state: &AppState, run: &RunId, visitor: Option<&Visitor>) -> Result<Gate> {
    let Some(id) = state.store.study_of_run(run).await? else { return Ok(Gate::Open) };
    let study = state.store.study(&id).await?;
    if study.state == StudyState::Draft {
        return Ok(Gate::Open);
    }
    let elsewhere = || Ok(Gate::Elsewhere(path(&id)));
    let Some(visitor) = visitor else { return elsewhere() };
    let Some(who) = state.store.participant(&id, visitor.teacher.id).await? else { return elsewhere() };
    if who.state != ParticipantState::Teaching || study.state != StudyState::Open {
        return elsewhere();
    }
    let given = state.store.answers_in_study(&id, who.teacher).await?;
    match next(state, &study, &who, given).await? {
        Next::Teach(wanted) if wanted == *run => {
            Ok(Gate::Teaching(Progress { study: id, given, goal: goal(&study), next: None }))
        }
        Next::Teach(other) => Ok(Gate::Elsewhere(teach_path(&other))),
        Next::Check => Ok(Gate::Elsewhere(format!("{}/check", path(&id)))),
        Next::Finish | Next::Nothing => elsewhere(),
    }
}

/// How a teacher stands after an answer: what the page shows, and where it goes when something else than an execution of this run
/// comes now. `None`: the run is in no study.
pub(crate) async fn progress(state: &AppState, run: &RunId, visitor: &Visitor) -> Result<Option<Progress>> {
    let Some(id) = state.store.study_of_run(run).await? else { return Ok(None) };
    let Some(who) = state.store.participant(&id, visitor.teacher.id).await? else { return Ok(None) };
    let study = state.store.study(&id).await?;
    let given = state.store.answers_in_study(&id, who.teacher).await?;
    let next = match gate(state, run, Some(visitor)).await? {
        Gate::Elsewhere(path) => Some(path),
        Gate::Open | Gate::Teaching(_) => None,
    };
    Ok(Some(Progress { study: id, given, goal: goal(&study), next }))
}

/// Whether a teacher of a study sees previews: `None` without a study, and `Some(None)` in one that shows them to nobody.
pub(crate) async fn preview_arm(state: &AppState, run: &RunId, teacher: TeacherId) -> Result<Option<Option<bool>>> {
    let Some(id) = state.store.study_of_run(run).await? else { return Ok(None) };
    let Some(who) = state.store.participant(&id, teacher).await? else { return Ok(None) };
    let study = state.store.study(&id).await?;
    Ok(Some((study.settings.preview != Preview::Off).then_some(who.preview)))
}

/// Ends a participation, with the code that belongs to its end.
pub(crate) async fn end(
    state: &AppState,
    study: &Study,
    who: &Participant,
    how: ParticipantState,
) -> Result<Participant> {
    let code = match how {
        ParticipantState::Finished => Some(completion::code(study)?),
        ParticipantState::ScreenedOut => {
            Some(study.settings.completion.screened_out_code.clone()).filter(|c| !c.is_empty())
        }
        _ => None,
    };
    Ok(state.store.set_participant_state(who, how, code.as_deref(), SELF).await?)
}
