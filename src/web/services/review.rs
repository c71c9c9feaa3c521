//! Facts about a study's answers for their reviewers: flags, the descriptions of the same execution, decisions.

use crate::ids::{AnswerId, ExecutionId, RunId, StudyId, TeacherId};
use crate::run::{Command, OwnDescription};
use crate::store::{Adjudication, AgreementAttempt, Participant, StudyAnswer};
use crate::study::agreement::{Described, Outcome};
use crate::study::quality::{self, Facts, Flagged};
use crate::web::error::{Error, Result};
use crate::web::page::run_view::RunView;
use crate::web::services::commands;
use crate::web::state::AppState;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use time::OffsetDateTime;
use tokio::sync::oneshot;

/// The answers of a study with everything that is known of them.
pub(crate) struct Known {
    /// Standing answers, oldest first.
    pub(crate) answers: Vec<StudyAnswer>,
    /// The participants.
    pub(crate) people: Vec<Participant>,
    /// Flags of single answers.
    pub(crate) flags: BTreeMap<AnswerId, Vec<Flagged>>,
    /// Flags of teachers.
    pub(crate) teacher_flags: BTreeMap<TeacherId, Vec<Flagged>>,
    /// The descriptions of each execution, oldest first.
    pub(crate) described: BTreeMap<ExecutionId, Vec<Described>>,
    /// The description that a reviewer chose.
    pub(crate) adjudications: HashMap<ExecutionId, Adjudication>,
    /// The run whose agent carried descriptions out, and when.
    pub(crate) agent: Option<(RunId, OffsetDateTime)>,
}

impl Known {
    /// Everything that is known of the answers of a study.
    pub(crate) async fn load(state: &AppState, study: &StudyId) -> Result<Known> {
        let answers = state.store.study_answers(study).await?;
        let people = state.store.participants(study).await?;
        let adjudications = state.store.adjudications(study).await?;
        let (agent, mut outcomes) = match state.store.agreement_attempts(study).await? {
            Some((agent, at, outcomes)) => (Some((agent, at)), outcomes),
            None => (None, HashMap::new()),
        };
        let mut of_teachers: BTreeMap<TeacherId, Vec<Facts>> = BTreeMap::new();
        let mut described: BTreeMap<ExecutionId, Vec<Described>> = BTreeMap::new();
        for answer in &answers {
            if !answer.retracted {
                of_teachers.entry(answer.teacher).or_default().push(answer.facts());
            }
            if answer.is_description() {
                described.entry(answer.execution).or_default().push(Described {
                    answer: answer.answer,
                    teacher: answer.teacher,
                    text: answer.text.clone(),
                    attempt: outcomes.remove(&answer.answer),
                });
            }
        }
        let flags = of_teachers.values().flat_map(|facts| quality::of_answers(facts)).collect();
        let mut teacher_flags = BTreeMap::new();
        for who in &people {
            let facts = of_teachers.get(&who.teacher).map_or(&[][..], Vec::as_slice);
            let raised = quality::of_teacher(facts, (who.attention_passed, who.attention_missed));
            if !raised.is_empty() {
                teacher_flags.insert(who.teacher, raised);
            }
        }
        Ok(Known { answers, people, flags, teacher_flags, described, adjudications, agent })
    }

    /// The descriptions of executions that several teachers have described.
    pub(crate) fn overlapping(&self) -> Vec<Vec<Described>> {
        self.described.values().filter(|described| described.len() > 1).cloned().collect()
    }

    /// How many flags a teacher's answers and the teacher have.
    pub(crate) fn flag_count(&self, teacher: TeacherId) -> usize {
        let own = self.teacher_flags.get(&teacher).map_or(0, Vec::len);
        let of_answers = self.answers.iter().filter(|answer| answer.teacher == teacher);
        own + of_answers.filter(|answer| self.flags.contains_key(&answer.answer)).count()
    }
}

/// Executions that an agent carries out at most, the newest.
pub(crate) const CARRIED_OUT: usize = 200;
/// Descriptions that it is asked for at once, about: those of one execution stay together, so that the same agent carries them out.
const AT_ONCE: usize = 48;

/// Has the agent of a run carry out the descriptions of executions that several teachers have described, and remembers what it did.
/// How many descriptions it carried out.
pub(crate) async fn work_out_agreement(state: &AppState, study: &StudyId, agent: &RunId, actor: &str) -> Result<usize> {
    let view = RunView::load(state, agent).await?;
    commands::is_ready(&view)?;
    let mut groups: BTreeMap<ExecutionId, Vec<StudyAnswer>> = BTreeMap::new();
    for answer in state.store.study_answers(study).await? {
        if answer.is_description() {
            groups.entry(answer.execution).or_default().push(answer);
        }
    }
    let mut families: HashMap<RunId, bool> = HashMap::new();
    for answer in groups.values().flatten() {
        if !families.contains_key(&answer.run) {
            let same = state.store.run(&answer.run).await?.family == view.run.family;
            families.insert(answer.run.clone(), same);
        }
    }
    let overlapping = groups.into_values().filter(|group| group.len() > 1 && families[&group[0].run]);
    let mut overlapping: Vec<Vec<AnswerId>> =
        overlapping.map(|group| group.iter().map(|answer| answer.answer).collect()).collect();
    overlapping.sort_unstable_by_key(|group| std::cmp::Reverse(group.last().copied()));
    overlapping.truncate(CARRIED_OUT);
    if overlapping.is_empty() {
        return Err(Error::conflict(
            "nothing-overlaps",
            "No execution of this study has been described by two teachers yet.",
        ));
    }
    let mut attempts = Vec::new();
    let mut batch = Vec::new();
    let last = overlapping.len() - 1;
    for (at, mut group) in overlapping.into_iter().enumerate() {
        batch.append(&mut group);
        if batch.len() >= AT_ONCE || at == last {
            attempts.append(&mut carry_out(state, agent, &batch).await?);
            batch.clear();
        }
    }
    state.store.record_agreement(study, agent, &attempts, actor).await?;
    Ok(attempts.len())
}

/// The agent of a run carries out the words of answers.
async fn carry_out(state: &AppState, agent: &RunId, answers: &[AnswerId]) -> Result<Vec<AgreementAttempt>> {
    let described = state.store.answers(answers).await?;
    let described = described.into_iter().map(|one| OwnDescription { text: one.text, trace: one.trace }).collect();
    let (reply, receiver) = oneshot::channel();
    commands::send(state, agent, Command::CarryOut { described, reply }).await?;
    let attempts = commands::reply(state, agent, receiver).await?;
    let outcome = |attempt: crate::run::Attempt| Outcome {
        digest: Sha256::digest(attempt.view.to_string()).to_vec(),
        understood: attempt.understood,
    };
    Ok(answers
        .iter()
        .zip(attempts)
        .map(|(answer, attempt)| AgreementAttempt { answer: *answer, outcome: outcome(attempt) })
        .collect())
}
