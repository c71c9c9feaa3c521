//! Attention checks are made of something that a teacher has answered, and of things that they could take it for.

use super::Store;
use super::convert::from_json;
use super::error::{Result, unreadable};
use super::sql::{query_as, row};
use crate::ids::{AnswerId, ExecutionId, ParticipantId, StudyId, TeacherId};
use crate::protocol::Medium;
use crate::study::draw;

/// A question with a known answer: which of these belongs to the text?
#[derive(Clone, Debug)]
pub struct AttentionItem {
    /// The medium of the answer that the check is about, which decides what `text` is and what is asked.
    pub medium: Medium,
    /// Of a description the teacher's own words; of a demonstration and of a rating the request.
    pub text: String,
    /// Family of the executions.
    pub family: String,
    /// The choices, each with the key of its execution, in the order in which they are shown.
    pub choices: Vec<(ExecutionId, Choice)>,
    /// The execution that the teacher described, demonstrated or rated.
    pub right: ExecutionId,
}

/// Something that a teacher chooses in an attention check.
#[derive(Clone, Debug)]
pub enum Choice {
    /// An execution, by its view.
    View(serde_json::Value),
    /// A demonstration, in words.
    Demonstration(String),
}

row! {
    /// An answer that a check can be about.
    struct Own {
        id: AnswerId,
        execution: ExecutionId,
        medium: String,
        text: String,
        request: String,
        family: String,
    }
}

/// Choices that are shown beside the right one.
const OTHERS: usize = 2;
/// How far from the right one, in keys, executions are looked for.
const NEARBY: i64 = 40;

impl Store {
    /// The check that comes after `at` others. The same participant gets the same at every reload. `None`: the teacher has given
    /// nothing yet that a check can be about, or there is nothing that it could be taken for.
    ///
    /// A description is asked for by its words, a demonstration by its request. A rating is asked about only where the teacher said
    /// that the agent did all of what was asked: the request then says what it did.
    pub async fn attention_item(
        &self,
        study: &StudyId,
        (participant, teacher): (ParticipantId, TeacherId),
        at: u64,
    ) -> Result<Option<AttentionItem>> {
        let mut own = query_as!(
            Own,
            r#"SELECT answers.id AS "id!: AnswerId", answers.execution AS "execution!: ExecutionId",
                   answers.medium AS "medium!", answers.text, executions.request, runs.family
               FROM study_arms CROSS JOIN answers
               ON answers.run = study_arms.run AND answers.teacher = ?2 AND answers.superseded_by IS NULL
                   AND answers.teacher IS NOT NULL AND answers.kind = 'described'
                   AND (answers.medium <> 'rating' OR answers.rating = 1) AND (answers.medium = 'rating' OR answers.text <> '')
               CROSS JOIN executions ON executions.id = answers.execution
               CROSS JOIN runs ON runs.id = answers.run
               WHERE study_arms.study = ?1 LIMIT 500"#,
            study,
            teacher,
        )
        .fetch_all(self.readers())
        .await?;
        own.sort_by_key(|row| row.id);
        // The last ones are in everybody's mind.
        let fresh = own.len() / 4;
        let candidates = &own[..own.len() - fresh];
        let key = |what: &str| [study.to_string(), participant.to_string(), at.to_string(), what.to_owned()];
        let drawn = |what: &str, n: usize| draw(&key(what).each_ref().map(String::as_str), n);
        let Some(chosen) = candidates.get(drawn("item", candidates.len())) else { return Ok(None) };
        let medium = Medium::named(&chosen.medium).ok_or_else(|| unreadable("an answer's medium", &chosen.medium))?;
        let mut choices = match medium {
            Medium::Demonstration => demonstrations(chosen, candidates),
            Medium::Description | Medium::Rating => self.executions_near(chosen).await?,
        };
        if choices.len() < 2 {
            return Ok(None);
        }
        let place = drawn("place", choices.len());
        choices.swap(0, place);
        let text = if medium == Medium::Description { &chosen.text } else { &chosen.request };
        Ok(Some(AttentionItem {
            medium,
            text: text.clone(),
            family: chosen.family.clone(),
            choices,
            right: chosen.execution,
        }))
    }

    /// The execution of an answer, and others near it that did something else on something else.
    async fn executions_near(&self, chosen: &Own) -> Result<Vec<(ExecutionId, Choice)>> {
        let right = chosen.execution;
        row! {
            struct Row {
                id: ExecutionId,
                view: String,
            }
        }
        let mut near = query_as!(
            Row,
            r#"SELECT executions.id AS "id!: ExecutionId", body.view FROM executions
               JOIN execution_bodies AS body ON body.execution = executions.id
               WHERE executions.id BETWEEN ?1 - ?2 AND ?1 + ?2 AND (executions.id = ?1 OR (
                   executions.run = (SELECT run FROM executions WHERE id = ?1)
                   AND executions.summary <> (SELECT summary FROM executions WHERE id = ?1)))"#,
            right,
            NEARBY,
        )
        .fetch_all(self.readers())
        .await?;
        near.sort_by_key(|row| ((row.id.0 - right.0).abs(), row.id));
        if near.first().is_none_or(|row| row.id != right) {
            return Ok(Vec::new());
        }
        let mut views: Vec<(ExecutionId, &str)> = Vec::new();
        for row in &near {
            if views.len() <= OTHERS && views.iter().all(|(_, view)| *view != row.view) {
                views.push((row.id, &row.view));
            }
        }
        views.into_iter().map(|(id, view)| Ok((id, Choice::View(from_json("an execution's view", view)?)))).collect()
    }
}

/// A demonstration, and the teacher's other ones of other requests, those next to it first.
fn demonstrations(chosen: &Own, own: &[Own]) -> Vec<(ExecutionId, Choice)> {
    let mut others: Vec<&Own> = own.iter().filter(|other| other.medium == chosen.medium).collect();
    others.sort_by_key(|other| (other.id.0 - chosen.id.0).abs());
    let mut found: Vec<&Own> = Vec::new();
    for other in others {
        let new = |one: &&Own| one.request != other.request && one.text != other.text;
        if found.len() <= OTHERS && found.iter().all(new) {
            found.push(other);
        }
    }
    found.into_iter().map(|one| (one.execution, Choice::Demonstration(one.text.clone()))).collect()
}
