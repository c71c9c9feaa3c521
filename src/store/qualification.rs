//! The executions that everybody describes who wants to take part, and what was said of them.

use super::connection::Durability;
use super::convert::{from_int, from_json, to_int};
use super::error::{Result, StoreError};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{Store, audit};
use crate::ids::{ExecutionId, ParticipantId, RunId, StudyId};
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;

/// An execution of a qualification.
#[derive(Clone, Debug)]
pub struct QualificationItem {
    /// Place in the order in which they are shown.
    pub position: u64,
    /// The run whose agent made it.
    pub run: RunId,
    /// The view that is shown.
    pub view: serde_json::Value,
    /// The trainer's own trace, for an agent that judges.
    pub trace: serde_json::Value,
}

/// A participant's description of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QualificationAnswer {
    /// Place of the item.
    pub position: u64,
    /// The description, exactly as typed.
    pub text: String,
    /// Whether it passed; `None` until somebody has judged.
    pub passed: Option<bool>,
    /// Who judged.
    pub judged_by: Option<String>,
}

/// How many of a run's oldest executions a qualification is chosen from.
const LOOKED_THROUGH: u32 = 200;

impl Store {
    /// Takes up to `wanted` executions of a run as the study's qualification, the oldest that it has, of those that differ. A study
    /// that has its items keeps them. Says how many there are.
    pub async fn choose_qualification(&self, study: &StudyId, run: &RunId, wanted: u32) -> Result<u64> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let count = async |tx: &mut Transaction<'_>| -> Result<i64> {
            let n = query_scalar!(r#"SELECT count(*) AS "n!: i64" FROM qualification_items WHERE study = ?"#, study);
            Ok(n.fetch_one(tx).await?)
        };
        let answered = query_scalar!(
            r#"SELECT count(*) AS "n!: i64" FROM participants
               JOIN qualification_answers ON qualification_answers.participant = participants.id
               WHERE participants.study = ?"#,
            study
        )
        .fetch_one(&mut tx)
        .await?;
        // An item that somebody has described stays in everybody's qualification.
        if answered == 0 && count(&mut tx).await? < i64::from(wanted) {
            query!("DELETE FROM qualification_items WHERE study = ?", study).execute(&mut tx).await?;
            row! {
                struct Row {
                    id: ExecutionId,
                    summary: String,
                }
            }
            let oldest = query_as!(
                Row,
                r#"SELECT id AS "id!: ExecutionId", summary FROM executions
                   WHERE run = ? AND state <> 'withdrawn' ORDER BY episode LIMIT ?"#,
                run,
                LOOKED_THROUGH,
            )
            .fetch_all(&mut tx)
            .await?;
            let mut seen = HashSet::new();
            let differing = oldest.into_iter().filter(|row| seen.insert(row.summary.clone()));
            for (position, row) in differing.take(wanted as usize).enumerate() {
                let position = position as i64;
                query!(
                    "INSERT INTO qualification_items (study, position, execution) VALUES (?, ?, ?)",
                    study,
                    position,
                    row.id,
                )
                .execute(&mut tx)
                .await?;
            }
        }
        // Nobody meets them once more while they teach, and they are kept although nobody answers them in the pool.
        query!(
            "UPDATE executions SET shown = 1, state = CASE state WHEN 'open' THEN 'retired' ELSE state END WHERE id IN (SELECT execution FROM qualification_items WHERE study = ?)",
            study,
        )
        .execute(&mut tx)
        .await?;
        let chosen = count(&mut tx).await?;
        tx.commit().await?;
        Ok(from_int(chosen))
    }

    /// The items of a study's qualification.
    pub async fn qualification_items(&self, study: &StudyId) -> Result<Vec<QualificationItem>> {
        row! {
            struct Row {
                position: i64,
                run: RunId,
                view: String,
                trace: String,
            }
        }
        let rows = query_as!(Row, r#"SELECT item.position, executions.run AS "run!: RunId", body.view, body.trace FROM qualification_items AS item
               JOIN executions ON executions.id = item.execution
               JOIN execution_bodies AS body ON body.execution = item.execution
               WHERE item.study = ? ORDER BY item.position"#,
            study,
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(QualificationItem {
                    position: from_int(row.position),
                    run: row.run,
                    view: from_json("an execution's view", &row.view)?,
                    trace: from_json("an execution's trace", &row.trace)?,
                })
            })
            .collect()
    }

    /// Stores what a participant says of an item. What was said first stands.
    pub async fn answer_qualification(
        &self,
        participant: ParticipantId,
        position: u64,
        text: &str,
        passed: Option<bool>,
        judged_by: Option<&str>,
    ) -> Result<()> {
        let position = to_int("the position", position)?;
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!(
            "INSERT INTO qualification_answers (participant, position, text, passed, judged_by, created_at)
             VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (participant, position) DO NOTHING",
            participant,
            position,
            text,
            passed,
            judged_by,
            now,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// A participant's descriptions in the qualification.
    pub async fn qualification_answers(&self, participant: ParticipantId) -> Result<Vec<QualificationAnswer>> {
        row! {
            struct Row {
                position: i64,
                text: String,
                passed: Option<bool>,
                judged_by: Option<String>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT position, text, passed AS "passed?: bool", judged_by FROM qualification_answers
               WHERE participant = ? ORDER BY position"#,
            participant,
        )
        .fetch_all(self.readers())
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| QualificationAnswer {
                position: from_int(row.position),
                text: row.text,
                passed: row.passed,
                judged_by: row.judged_by,
            })
            .collect())
    }

    /// A researcher's judgement of one description.
    pub async fn judge_qualification(
        &self,
        study: &StudyId,
        participant: ParticipantId,
        position: u64,
        passed: bool,
        actor: &str,
    ) -> Result<()> {
        let place = to_int("the position", position)?;
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let judged = query!(
            "UPDATE qualification_answers SET passed = ?1, judged_by = ?2 WHERE participant = ?3 AND position = ?4
                 AND participant IN (SELECT id FROM participants WHERE study = ?5)",
            passed,
            actor,
            participant,
            place,
            study,
        )
        .execute(&mut tx)
        .await?;
        if judged.rows_affected() == 0 {
            return Err(StoreError::NotFound("the description"));
        }
        let detail = json!({ "participant": participant, "position": position, "passed": passed });
        audit::note(&mut tx, now, actor, study, "qualification_judged", &detail).await?;
        Ok(tx.commit().await?)
    }
}
