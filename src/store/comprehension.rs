//! How the agent took what people said, before it learned from it and after.
//!
//! A reading counts what the agent understood *before it was told*. So it leaves out answers that no longer stand (another
//! took their place), those of which the agent had learned before in other words of the same person, and those about executions
//! that people are not shown any more.

use super::Store;
use super::connection::Durability;
use super::convert::{from_int, from_json, to_int, to_json};
use super::error::{Missing, Result};
use super::sql::{query, query_as, row};
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::run::{Attempt, Comprehension, OwnDescription};

row! {
    /// Whether the agent understood a description before it was told.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Reading {
        /// The answer.
        pub answer: AnswerId,
        /// Whether it did what the description says.
        pub understood: bool,
    }
}

/// A reading among those of all teachers of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TeacherReading {
    /// The answer.
    pub answer: AnswerId,
    /// Who gave it.
    pub teacher: TeacherId,
    /// Update that learned from it.
    pub update: u64,
    /// Episodes by then.
    pub episodes: u64,
    /// Descriptions that the agent had learned from before.
    pub descriptions: u64,
    /// Training seconds by then.
    pub seconds: f64,
    /// Whether the agent understood it before.
    pub understood: bool,
    /// Whether it did right after learning from it; `None` where nobody looked.
    pub understood_after: Option<bool>,
}

/// A person's newest description that the agent has carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct LatestComprehension {
    /// The answer.
    pub answer: AnswerId,
    /// The description, exactly as typed.
    pub text: String,
    /// Update that learns from it.
    pub update: u64,
    /// The agent's attempt before it learned.
    pub before: Attempt,
    /// Its attempt afterwards; `None` while it is learning, and where nobody looked.
    pub after: Option<Attempt>,
}

/// A person's newest description that still stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestDescription {
    /// The answer.
    pub answer: AnswerId,
    /// The description, exactly as typed.
    pub text: String,
    /// Update that learned from it, or is learning from it.
    pub used_in_update: Option<u64>,
}

impl Store {
    /// Records how the agent took descriptions; of one that is there only the outcome after the update is added.
    pub async fn record_comprehension(&self, run: &RunId, rows: &[Comprehension]) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        for row in rows {
            let update = to_int("the update", row.update)?;
            let episodes = to_int("the number of episodes", row.episodes)?;
            let descriptions = to_int("the number of descriptions", row.descriptions)?;
            let before_view = to_json(&row.before.view)?;
            let after_understood = row.after.as_ref().map(|after| after.understood);
            let after_summary = row.after.as_ref().map(|after| after.summary.as_str());
            let after_view = row.after.as_ref().map(|after| to_json(&after.view)).transpose()?;
            query!(
                "INSERT INTO comprehension (answer, run, teacher, update_no, episodes, descriptions, seconds, told_before,
                     before_understood, before_summary, before_view, after_understood, after_summary, after_view)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
                     iif(EXISTS (SELECT 1 FROM answers AS mine
                             CROSS JOIN answers AS other ON other.execution = mine.execution AND other.teacher = mine.teacher
                             WHERE mine.id = ?1 AND other.id <> ?1 AND other.kind = 'described'
                                 AND other.used_in_update < ?4), 1, 0),
                     ?8, ?9, ?10, ?11, ?12, ?13)
                 ON CONFLICT (answer) DO UPDATE SET after_understood = excluded.after_understood,
                     after_summary = excluded.after_summary, after_view = excluded.after_view
                 WHERE excluded.after_view IS NOT NULL",
                row.answer,
                run,
                row.teacher,
                update,
                episodes,
                descriptions,
                row.seconds,
                row.before.understood,
                row.before.summary,
                before_view,
                after_understood,
                after_summary,
                after_view,
            )
            .execute(&mut tx)
            .await
            .or_missing("the answer")?;
        }
        Ok(tx.commit().await?)
    }

    /// The executions whose descriptions count as readings of a run, as they are stored.
    pub async fn executions_of_readings(&self, run: &RunId) -> Result<Vec<(AnswerId, serde_json::Value)>> {
        row! {
            struct Row {
                answer: AnswerId,
                trace: String,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT comprehension.answer AS "answer!: AnswerId", body.trace AS "trace!"
               FROM comprehension INDEXED BY comprehension_of_run
               CROSS JOIN answers ON answers.id = comprehension.answer
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE comprehension.run = ? AND told_before = 0"#,
            run,
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter().map(|row| Ok((row.answer, from_json("an execution's trace", &row.trace)?))).collect()
    }

    /// Leaves answers out of the readings, as if the agent had been told before.
    pub async fn leave_out_of_readings(&self, answers: &[AnswerId]) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        for answer in answers {
            query!("UPDATE comprehension SET told_before = 1 WHERE answer = ?", answer).execute(&mut tx).await?;
        }
        Ok(tx.commit().await?)
    }

    /// The latest readings of one teacher in a run, oldest first.
    pub async fn readings(&self, run: &RunId, teacher: TeacherId, limit: u32) -> Result<Vec<Reading>> {
        let mut readings = query_as!(
            Reading,
            r#"SELECT comprehension.answer AS "answer!: AnswerId", before_understood AS "understood!: bool"
               FROM comprehension INDEXED BY comprehension_of_teacher
               CROSS JOIN answers ON answers.id = comprehension.answer
               WHERE comprehension.run = ? AND comprehension.teacher = ? AND told_before = 0
                   AND answers.superseded_by IS NULL
               ORDER BY comprehension.answer DESC LIMIT ?"#,
            run,
            teacher,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        readings.reverse();
        Ok(readings)
    }

    /// The latest readings of all teachers of a run, oldest first.
    pub async fn readings_of_all(&self, run: &RunId, limit: u32) -> Result<Vec<TeacherReading>> {
        row! {
            struct Row {
                answer: AnswerId,
                teacher: TeacherId,
                update_no: i64,
                episodes: i64,
                descriptions: i64,
                seconds: f64,
                understood: bool,
                understood_after: Option<bool>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT comprehension.answer AS "answer!: AnswerId", comprehension.teacher AS "teacher!: TeacherId",
                   update_no AS "update_no!", episodes AS "episodes!", descriptions AS "descriptions!",
                   seconds AS "seconds!", before_understood AS "understood!: bool",
                   after_understood AS "understood_after?: bool"
               FROM comprehension INDEXED BY comprehension_of_run
               CROSS JOIN answers ON answers.id = comprehension.answer
               WHERE comprehension.run = ? AND told_before = 0 AND answers.superseded_by IS NULL
               ORDER BY comprehension.answer DESC LIMIT ?"#,
            run,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        let read = rows.into_iter().rev().map(|row| TeacherReading {
            answer: row.answer,
            teacher: row.teacher,
            update: from_int(row.update_no),
            episodes: from_int(row.episodes),
            descriptions: from_int(row.descriptions),
            seconds: row.seconds,
            understood: row.understood,
            understood_after: row.understood_after,
        });
        Ok(read.collect())
    }

    /// The newest description of a teacher that still stands and that the agent has carried out.
    pub async fn latest_comprehension(&self, run: &RunId, teacher: TeacherId) -> Result<Option<LatestComprehension>> {
        row! {
            struct Row {
                answer: AnswerId,
                text: String,
                update_no: i64,
                before_understood: bool,
                before_summary: String,
                before_view: String,
                after_understood: Option<bool>,
                after_summary: Option<String>,
                after_view: Option<String>,
            }
        }
        let row = query_as!(
            Row,
            r#"SELECT comprehension.answer AS "answer!: AnswerId", answers.text AS "text!", update_no AS "update_no!",
                   before_understood AS "before_understood!: bool", before_summary AS "before_summary!",
                   before_view AS "before_view!", after_understood AS "after_understood?: bool", after_summary,
                   after_view
               FROM comprehension INDEXED BY comprehension_of_teacher
               CROSS JOIN answers ON answers.id = comprehension.answer
               WHERE comprehension.run = ? AND comprehension.teacher = ? AND answers.superseded_by IS NULL
                   AND answers.retracted_at IS NULL
               ORDER BY comprehension.answer DESC LIMIT 1"#,
            run,
            teacher,
        )
        .fetch_optional(self.readers())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let attempt = |understood: bool, summary: String, view: &str| {
            Ok::<_, super::StoreError>(Attempt { view: from_json("an attempt's view", view)?, summary, understood })
        };
        let after = match (row.after_understood, row.after_summary, row.after_view) {
            (Some(understood), Some(summary), Some(view)) => Some(attempt(understood, summary, &view)?),
            _ => None,
        };
        Ok(Some(LatestComprehension {
            answer: row.answer,
            text: row.text,
            update: from_int(row.update_no),
            before: attempt(row.before_understood, row.before_summary, &row.before_view)?,
            after,
        }))
    }

    /// The newest description of a teacher that stands and that an update learns from.
    pub async fn newest_description(&self, run: &RunId, teacher: TeacherId) -> Result<Option<NewestDescription>> {
        row! {
            struct Row {
                answer: AnswerId,
                text: String,
                used_in_update: Option<i64>,
            }
        }
        let row = query_as!(Row, r#"SELECT id AS "answer!: AnswerId", text AS "text!", used_in_update FROM answers INDEXED BY answers_of_teacher
               WHERE run = ? AND teacher = ? AND superseded_by IS NULL AND kind = 'described' AND late < 2
                   AND passed_over = 0 AND retracted_at IS NULL
               ORDER BY id DESC LIMIT 1"#,
            run,
            teacher,
        )
        .fetch_optional(self.readers())
        .await?;
        Ok(row.map(|row| NewestDescription {
            answer: row.answer,
            text: row.text,
            used_in_update: row.used_in_update.map(from_int),
        }))
    }

    /// The newest descriptions of a teacher that stand and that updates have learned from.
    pub async fn learnt_descriptions(
        &self,
        run: &RunId,
        teacher: TeacherId,
        limit: u32,
    ) -> Result<Vec<OwnDescription>> {
        row! {
            struct Row {
                text: String,
                trace: String,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT answers.text AS "text!", body.trace AS "trace!" FROM answers INDEXED BY answers_of_teacher
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE run = ? AND teacher = ? AND superseded_by IS NULL AND kind = 'described'
                   AND used_in_update IS NOT NULL AND retracted_at IS NULL
               ORDER BY id DESC LIMIT ?"#,
            run,
            teacher,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter()
            .map(|row| Ok(OwnDescription { text: row.text, trace: from_json("an execution's trace", &row.trace)? }))
            .collect()
    }
}
