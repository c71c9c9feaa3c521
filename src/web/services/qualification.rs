//! The qualification of a study: everybody describes the same few executions, and a researcher or an agent says who may teach.

use crate::ids::RunId;
use crate::run::{Attempt, Command, OwnDescription};
use crate::store::{Participant, QualificationAnswer, QualificationItem, SELF, Study};
use crate::study::{Judge, ParticipantState};
use crate::web::error::Result;
use crate::web::services::{commands, participation};
use crate::web::state::AppState;
use serde_json::Value;
use tokio::sync::oneshot;

/// An execution that a participant describes next.
pub(crate) struct Item {
    /// Its place, from 0.
    pub(crate) position: u64,
    /// How many there are.
    pub(crate) of: u64,
    /// Its family.
    pub(crate) family: String,
    /// The view that is shown.
    pub(crate) view: Value,
    item: QualificationItem,
}

/// How many executions the qualification has. They are chosen when somebody asks for the first time, from the first run.
pub(crate) async fn items(state: &AppState, study: &Study) -> Result<u64> {
    let wanted = study.settings.qualification.executions;
    let Some(first) = study.arms.first().filter(|_| wanted > 0) else { return Ok(0) };
    Ok(state.store.choose_qualification(&study.id, &first.run, wanted).await?)
}

/// The next item that a participant has not described.
pub(crate) async fn next_item(state: &AppState, study: &Study, who: &Participant) -> Result<Option<Item>> {
    let answered = state.store.qualification_answers(who.id).await?.len() as u64;
    let items = state.store.qualification_items(&study.id).await?;
    let of = items.len() as u64;
    let Some(item) = items.into_iter().find(|item| item.position >= answered) else { return Ok(None) };
    let family = state.store.run(&item.run).await?.family;
    Ok(Some(Item { position: item.position, of, family, view: item.view.clone(), item }))
}

/// Stores what a participant says of an item, judged at once where an agent judges.
pub(crate) async fn answer(state: &AppState, study: &Study, who: &Participant, item: &Item, text: &str) -> Result<()> {
    let judge = match study.settings.qualification.judge {
        Judge::Executor => study.settings.qualification.executor.clone().or(study.arms.first().map(|a| a.run.clone())),
        Judge::Researcher => None,
    };
    let passed = match &judge {
        Some(run) => carried_out(state, run, text, &item.item.trace).await,
        None => None,
    };
    let by = passed.and(judge.as_deref());
    Ok(state.store.answer_qualification(who.id, item.position, text, passed, by).await?)
}

/// Whether the agent of a run, asked in these words, does what the execution did. `None`: it cannot be asked now, so that a
/// researcher has to look.
async fn carried_out(state: &AppState, run: &RunId, text: &str, trace: &Value) -> Option<bool> {
    let handle = state.runs.get(run)?;
    let (reply, answer) = oneshot::channel();
    let described = vec![OwnDescription { text: text.to_owned(), trace: trace.clone() }];
    handle.commands.send(Command::CarryOut { described, reply }).ok()?;
    match commands::reply(state, run, answer).await {
        Ok(attempts) => attempts.first().map(|attempt: &Attempt| attempt.understood),
        Err(error) => {
            tracing::warn!(%error, "the agent could not judge a qualification");
            None
        }
    }
}

/// Whether enough descriptions have passed.
pub(crate) fn has_passed(study: &Study, answers: &[QualificationAnswer]) -> bool {
    let right = answers.iter().filter(|answer| answer.passed == Some(true)).count();
    right as u64 >= u64::from(study.settings.qualification.right)
}

/// Says how it goes on for a participant who has described all items, or whose descriptions were judged.
pub(crate) async fn decide(state: &AppState, study: &Study, who: &Participant) -> Result<Participant> {
    let answers = state.store.qualification_answers(who.id).await?;
    let open = answers.iter().filter(|answer| answer.passed.is_none()).count();
    if has_passed(study, &answers) && (open == 0 || study.settings.qualification.judge == Judge::Executor) {
        return Ok(state.store.set_participant_state(who, ParticipantState::Teaching, None, SELF).await?);
    }
    if open > 0 {
        return Ok(state.store.set_participant_state(who, ParticipantState::Waiting, None, SELF).await?);
    }
    participation::end(state, study, who, ParticipantState::ScreenedOut).await
}
