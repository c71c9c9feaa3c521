//! Attention checks are made of something that a teacher has described, and executions that they could take it for.

use super::Store;
use super::convert::from_json;
use super::error::Result;
use crate::ids::{AnswerId, ExecutionId, ParticipantId, StudyId, TeacherId};
use crate::study::draw;

/// A question with a known answer: which of these executions did the teacher describe in these words?
#[derive(Clone, Debug)]
pub struct AttentionItem {
    /// The teacher's own words.
    pub text: String,
    /// Family of the executions.
    pub family: String,
    /// The executions, each with its key and view, in the order in which they are shown.
    pub choices: Vec<(ExecutionId, serde_json::Value)>,
    /// The one that was described.
    pub right: ExecutionId,
}

/// Executions that are shown beside the right one.
const OTHERS: i64 = 2;
/// How far from the right one, in keys, they are looked for.
const NEARBY: i64 = 40;

impl Store {
    /// The check that comes after `at` others. The same participant gets the same at every reload. `None`: the teacher has described
    /// nothing yet, or there is nothing that it could be taken for.
    pub async fn attention_item(
        &self,
        study: &StudyId,
        (participant, teacher): (ParticipantId, TeacherId),
        at: u64,
    ) -> Result<Option<AttentionItem>> {
        let mut own = sqlx::query!(
            r#"SELECT answers.id AS "id!: AnswerId", answers.execution AS "execution!: ExecutionId", answers.text
               FROM study_arms CROSS JOIN answers
               ON answers.run = study_arms.run AND answers.teacher = ?2 AND answers.superseded_by IS NULL
                   AND answers.teacher IS NOT NULL AND answers.kind = 'described' AND answers.medium = 'description' AND answers.text <> ''
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
        let right = chosen.execution;
        let mut near = sqlx::query!(
            r#"SELECT executions.id AS "id!: ExecutionId", body.view, runs.family FROM executions
               JOIN execution_bodies AS body ON body.execution = executions.id
               JOIN runs ON runs.id = executions.run
               WHERE executions.id BETWEEN ?1 - ?2 AND ?1 + ?2 AND (executions.id = ?1 OR (
                   executions.run = (SELECT run FROM executions WHERE id = ?1)
                   AND executions.summary <> (SELECT summary FROM executions WHERE id = ?1)))"#,
            right,
            NEARBY,
        )
        .fetch_all(self.readers())
        .await?;
        near.sort_by_key(|row| ((row.id.0 - right.0).abs(), row.id));
        let Some(described) = near.first().filter(|row| row.id == right) else { return Ok(None) };
        let family = described.family.clone();
        let mut choices = Vec::new();
        for row in &near {
            if choices.len() as i64 <= OTHERS && choices.iter().all(|(_, view)| view != &row.view) {
                choices.push((row.id, row.view.clone()));
            }
        }
        if choices.len() < 2 {
            return Ok(None);
        }
        let place = drawn("place", choices.len());
        choices.swap(0, place);
        let choices = choices
            .into_iter()
            .map(|(id, view)| Ok((id, from_json("an execution's view", &view)?)))
            .collect::<Result<_>>()?;
        Ok(Some(AttentionItem { text: chosen.text.clone(), family, choices, right }))
    }
}
