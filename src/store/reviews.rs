//! The answers of a study as reviewers see them, with their decisions. An answer is never altered: decisions stand beside it.

use super::answers::count_given;
use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, key_list};
use super::error::{Result, StoreError, unreadable};
use super::sql::{query, query_as, query_scalar, row};
use super::{AnswerKind, Store, audit};
use crate::ids::{AnswerId, ExecutionId, RunId, StudyId, TeacherId};
use crate::study::agreement::Outcome;
use crate::study::quality::Facts;
use crate::study::{ReviewState, StudySettings};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use time::OffsetDateTime;

/// A reviewer's decision about an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Review {
    /// The decision.
    pub state: ReviewState,
    /// Why; may be empty.
    pub reason: String,
    /// Who decided.
    pub reviewer: String,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// A standing answer of a participant, without the execution's drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyAnswer {
    /// The answer.
    pub answer: AnswerId,
    /// The run that it taught.
    pub run: RunId,
    /// Execution it is about.
    pub execution: ExecutionId,
    /// Who gave it.
    pub teacher: TeacherId,
    /// Their number in the study.
    pub number: u64,
    /// Kind.
    pub kind: AnswerKind,
    /// Text; empty where it was retracted.
    pub text: String,
    /// Whether it is a demonstration.
    pub demonstrated: bool,
    /// The rating, where it is one.
    pub rating: Option<f64>,
    /// Whether it says that the execution did what was asked.
    pub fulfilled: bool,
    /// The request of the execution.
    pub request: String,
    /// Whether the teacher could see it.
    pub request_shown: bool,
    /// One line that says what the execution did.
    pub summary: String,
    /// Milliseconds of activity.
    pub active_ms: Option<u64>,
    /// When it was stored.
    pub created_at: OffsetDateTime,
    /// The update that used it.
    pub used_in_update: Option<u64>,
    /// Whether the agent understood it before it had been told.
    pub understood_before: Option<bool>,
    /// Whether its teacher retracted it.
    pub retracted: bool,
    /// A reviewer's decision.
    pub review: Option<Review>,
}

impl StudyAnswer {
    /// Whether it is a description in words, and has not been retracted.
    pub fn is_description(&self) -> bool {
        let in_words = !self.demonstrated && self.rating.is_none() && !self.text.trim().is_empty();
        self.kind == AnswerKind::Described && !self.retracted && in_words
    }

    /// The facts by which its quality is judged.
    pub fn facts(&self) -> Facts {
        Facts {
            answer: self.answer,
            described: self.is_description(),
            passed_by: matches!(self.kind, AnswerKind::Skipped | AnswerKind::CannotDescribe),
            fulfilled: self.fulfilled,
            text: self.text.clone(),
            request: self.request_shown.then(|| self.request.clone()),
            summary: self.summary.clone(),
            active_ms: self.active_ms,
        }
    }
}

/// The description of an execution that a reviewer decided on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adjudication {
    /// The answer that was chosen; `None`: the reviewer's own words.
    pub answer: Option<AnswerId>,
    /// The description; empty where the chosen answer was retracted.
    pub text: String,
    /// Who decided.
    pub reviewer: String,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// The description that a reviewer chooses for an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// One of the answers.
    Answer(AnswerId),
    /// Words of their own.
    Words(String),
    /// Nothing any more.
    Nothing,
}

/// The execution of an agent that was asked in the words of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreementAttempt {
    /// The answer.
    pub answer: AnswerId,
    /// The execution.
    pub outcome: Outcome,
}

impl Store {
    /// The standing answers of a study's participants, oldest first.
    pub async fn study_answers(&self, study: &StudyId) -> Result<Vec<StudyAnswer>> {
        row! {
            struct Row {
                id: AnswerId,
                run: RunId,
                execution: ExecutionId,
                teacher: TeacherId,
                number: i64,
                kind: String,
                text: String,
                demonstrated: bool,
                rating: Option<f64>,
                fulfilled: bool,
                request: String,
                request_shown: bool,
                summary: String,
                active_ms: Option<i64>,
                created_at: i64,
                used_in_update: Option<i64>,
                understood_before: Option<bool>,
                retracted: bool,
                state: Option<String>,
                reason: Option<String>,
                reviewer: Option<String>,
                reviewed_at: Option<i64>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT answers.id AS "id!: AnswerId", answers.run AS "run!: RunId",
                   answers.execution AS "execution!: ExecutionId", answers.teacher AS "teacher!: TeacherId",
                   participants.number AS "number!", answers.kind AS "kind!",
                   iif(answers.retracted_at IS NULL, answers.text, '') AS "text!: String",
                   answers.demonstration IS NOT NULL AS "demonstrated!: bool", answers.rating,
                   answers.fulfilled AS "fulfilled!: bool", executions.request AS "request!",
                   answers.request_shown AS "request_shown!: bool", executions.summary AS "summary!", answers.active_ms,
                   answers.created_at AS "created_at!", answers.used_in_update,
                   comprehension.before_understood AS "understood_before?: bool",
                   answers.retracted_at IS NOT NULL AS "retracted!: bool",
                   reviews.state AS "state?", reviews.reason AS "reason?", reviews.reviewer AS "reviewer?",
                   reviews.reviewed_at AS "reviewed_at?"
               FROM study_arms
               CROSS JOIN participants ON participants.study = study_arms.study
               CROSS JOIN answers ON answers.run = study_arms.run AND answers.teacher = participants.teacher
                   AND answers.superseded_by IS NULL AND answers.teacher IS NOT NULL
               CROSS JOIN executions ON executions.id = answers.execution
               LEFT JOIN comprehension ON comprehension.answer = answers.id AND comprehension.told_before = 0
               LEFT JOIN reviews ON reviews.answer = answers.id
               WHERE study_arms.study = ?"#,
            study,
        )
        .fetch_all(self.readers())
        .await?;
        let mut answers = Vec::with_capacity(rows.len());
        for row in rows {
            let review = match (row.state, row.reason, row.reviewer, row.reviewed_at) {
                (Some(state), Some(reason), Some(reviewer), Some(at)) => {
                    let state =
                        ReviewState::parse(&state).ok_or_else(|| unreadable("the state of a review", &state))?;
                    Some(Review { state, reason, reviewer, at: from_nanos(at) })
                }
                _ => None,
            };
            answers.push(StudyAnswer {
                answer: row.id,
                run: row.run,
                execution: row.execution,
                teacher: row.teacher,
                number: from_int(row.number),
                kind: AnswerKind::parse(&row.kind)?,
                text: row.text,
                demonstrated: row.demonstrated,
                rating: row.rating,
                fulfilled: row.fulfilled,
                request: row.request,
                request_shown: row.request_shown,
                summary: row.summary,
                active_ms: row.active_ms.map(from_int),
                created_at: from_nanos(row.created_at),
                used_in_update: row.used_in_update.map(from_int),
                understood_before: row.understood_before,
                retracted: row.retracted,
                review,
            });
        }
        answers.sort_unstable_by_key(|answer| answer.answer);
        Ok(answers)
    }

    /// The views of executions by their keys.
    pub async fn views(&self, executions: &[ExecutionId]) -> Result<HashMap<ExecutionId, serde_json::Value>> {
        let keys = key_list(executions);
        row! {
            struct Row {
                execution: ExecutionId,
                view: String,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT execution AS "execution!: ExecutionId", view AS "view!" FROM execution_bodies
               WHERE execution IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"#,
            keys,
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter().map(|row| Ok((row.execution, from_json("an execution's view", &row.view)?))).collect()
    }

    /// Records a reviewer's decision about an answer of a study; `None` takes it back. Unless the study's agents learn from rejected
    /// answers all the same, updates pass over one that no update has used.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the study has no such answer.
    pub async fn review(
        &self,
        study: &StudyId,
        answer: AnswerId,
        decision: Option<(ReviewState, &str)>,
        reviewer: &str,
    ) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        row! {
            struct Row {
                execution: ExecutionId,
                settings: String,
                state: Option<String>,
            }
        }
        let row = query_as!(
            Row,
            r#"SELECT answers.execution AS "execution!: ExecutionId", studies.settings AS "settings!",
                   reviews.state AS "state?"
               FROM answers
               CROSS JOIN study_arms ON study_arms.run = answers.run
               CROSS JOIN studies ON studies.id = study_arms.study
               LEFT JOIN reviews ON reviews.answer = answers.id
               WHERE answers.id = ? AND studies.id = ? AND answers.execution IS NOT NULL"#,
            answer,
            study,
        );
        let row = row.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the answer"))?;
        let settings: StudySettings = from_json("a study's settings", &row.settings)?;
        match decision {
            Some((state, reason)) => {
                let word = state.as_str();
                query!(
                    "INSERT INTO reviews (answer, state, reason, reviewer, reviewed_at) VALUES (?, ?, ?, ?, ?)
                     ON CONFLICT (answer) DO UPDATE SET state = excluded.state, reason = excluded.reason,
                         reviewer = excluded.reviewer, reviewed_at = excluded.reviewed_at",
                    answer,
                    word,
                    reason,
                    reviewer,
                    now,
                )
                .execute(&mut tx)
                .await?;
            }
            None => {
                query!("DELETE FROM reviews WHERE answer = ?", answer).execute(&mut tx).await?;
            }
        }
        let rejected = matches!(decision, Some((ReviewState::Rejected, _))) && !settings.learn_rejected;
        query!(
            "UPDATE answers SET passed_over = iif(?2 = 1 OR retracted_at IS NOT NULL, 1, 0) WHERE id = ?1 AND used_in_update IS NULL",
            answer,
            rejected,
        )
        .execute(&mut tx)
        .await?;
        count_given(&mut tx, row.execution).await?;
        let detail = json!({
            "answer": answer, "from": row.state, "to": decision.map(|(state, _)| state),
            "reason": decision.map(|(_, reason)| reason),
        });
        audit::note(&mut tx, now, reviewer, study, "answer_reviewed", &detail).await?;
        Ok(tx.commit().await?)
    }

    /// Records the description of an execution that a reviewer decided on.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the study has no such execution, or the execution no such answer.
    pub async fn adjudicate(
        &self,
        study: &StudyId,
        execution: ExecutionId,
        chosen: &Chosen,
        reviewer: &str,
    ) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let known = query_scalar!(
            r#"SELECT 1 AS "known!: i64" FROM executions CROSS JOIN study_arms ON study_arms.run = executions.run
               WHERE executions.id = ? AND study_arms.study = ?"#,
            execution,
            study,
        );
        known.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the execution"))?;
        let (answer, text) = match chosen {
            Chosen::Answer(answer) => (Some(*answer), None),
            Chosen::Words(text) => (None, Some(text.as_str())),
            Chosen::Nothing => (None, None),
        };
        if let Some(answer) = answer {
            let about = query_scalar!(
                r#"SELECT 1 AS "about!: i64" FROM answers
                   WHERE id = ? AND execution = ? AND kind = 'described' AND retracted_at IS NULL"#,
                answer,
                execution,
            );
            about.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the answer"))?;
        }
        if *chosen == Chosen::Nothing {
            query!("DELETE FROM adjudications WHERE execution = ?", execution).execute(&mut tx).await?;
        } else {
            query!(
                "INSERT INTO adjudications (execution, study, answer, text, reviewer, adjudicated_at)
                 VALUES (?, ?, ?, ?, ?, ?)
                 ON CONFLICT (execution) DO UPDATE SET answer = excluded.answer, text = excluded.text,
                     reviewer = excluded.reviewer, adjudicated_at = excluded.adjudicated_at",
                execution,
                study,
                answer,
                text,
                reviewer,
                now,
            )
            .execute(&mut tx)
            .await?;
        }
        let detail = json!({ "execution": execution, "answer": answer, "text": text });
        audit::note(&mut tx, now, reviewer, study, "execution_adjudicated", &detail).await?;
        Ok(tx.commit().await?)
    }

    /// The reviewers' chosen descriptions, by executions of a study.
    pub async fn adjudications(&self, study: &StudyId) -> Result<HashMap<ExecutionId, Adjudication>> {
        row! {
            struct Row {
                execution: ExecutionId,
                answer: Option<AnswerId>,
                text: String,
                reviewer: String,
                adjudicated_at: i64,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT adjudications.execution AS "execution!: ExecutionId", adjudications.answer AS "answer?: AnswerId",
                   coalesce(adjudications.text, iif(answers.retracted_at IS NULL, answers.text, '')) AS "text!: String",
                   adjudications.reviewer, adjudications.adjudicated_at
               FROM adjudications LEFT JOIN answers ON answers.id = adjudications.answer
               WHERE adjudications.study = ?"#,
            study,
        )
        .fetch_all(self.readers())
        .await?;
        let read = rows.into_iter().map(|row| {
            let at = from_nanos(row.adjudicated_at);
            (row.execution, Adjudication { answer: row.answer, text: row.text, reviewer: row.reviewer, at })
        });
        Ok(read.collect())
    }

    /// Replaces what is known of a study's agreement by what one agent did in the words of answers.
    pub async fn record_agreement(
        &self,
        study: &StudyId,
        agent: &RunId,
        attempts: &[AgreementAttempt],
        actor: &str,
    ) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        query!("DELETE FROM agreement_attempts WHERE study = ?", study).execute(&mut tx).await?;
        for AgreementAttempt { answer, outcome } in attempts {
            query!(
                "INSERT INTO agreement_attempts (study, answer, agent, outcome, understood, tried_at)
                 VALUES (?, ?, ?, ?, ?, ?)",
                study,
                answer,
                agent,
                outcome.digest,
                outcome.understood,
                now,
            )
            .execute(&mut tx)
            .await?;
        }
        let detail = json!({ "agent": agent, "descriptions": attempts.len() });
        audit::note(&mut tx, now, actor, study, "agreement_worked_out", &detail).await?;
        Ok(tx.commit().await?)
    }

    /// The executions of an agent in the words of answers, as they were when a study's agreement was last worked out: the agent, when, and the outcomes.
    pub async fn agreement_attempts(
        &self,
        study: &StudyId,
    ) -> Result<Option<(RunId, OffsetDateTime, HashMap<AnswerId, Outcome>)>> {
        row! {
            struct Row {
                answer: AnswerId,
                agent: RunId,
                outcome: Vec<u8>,
                understood: bool,
                tried_at: i64,
            }
        }
        let rows = query_as!(Row, r#"SELECT answer AS "answer!: AnswerId", agent AS "agent!: RunId", outcome, understood AS "understood!: bool",
                   tried_at
               FROM agreement_attempts WHERE study = ?"#,
            study,
        )
        .fetch_all(self.readers())
        .await?;
        let Some((agent, at)) = rows.first().map(|row| (row.agent.clone(), from_nanos(row.tried_at))) else {
            return Ok(None);
        };
        let outcomes = rows
            .into_iter()
            .map(|row| (row.answer, Outcome { digest: row.outcome, understood: row.understood }))
            .collect();
        Ok(Some((agent, at, outcomes)))
    }

    /// The facts by which the quality of a teacher's standing answers in a run is judged. Retracted ones are left out.
    pub async fn quality_facts(&self, run: &RunId, teacher: TeacherId) -> Result<Vec<Facts>> {
        row! {
            struct Row {
                id: AnswerId,
                kind: String,
                text: String,
                medium: String,
                fulfilled: bool,
                request: Option<String>,
                summary: String,
                active_ms: Option<i64>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT answers.id AS "id!: AnswerId", answers.kind AS "kind!", answers.text AS "text!",
                   answers.medium AS "medium!", answers.fulfilled AS "fulfilled!: bool",
                   iif(answers.request_shown = 1, executions.request, NULL) AS "request?: String",
                   executions.summary AS "summary!", answers.active_ms
               FROM answers INDEXED BY answers_of_teacher
               CROSS JOIN executions ON executions.id = answers.execution
               WHERE answers.run = ? AND answers.teacher = ? AND answers.superseded_by IS NULL
                   AND answers.retracted_at IS NULL"#,
            run,
            teacher,
        )
        .fetch_all(self.readers())
        .await?;
        let facts = rows.into_iter().map(|row| {
            let kind = AnswerKind::parse(&row.kind)?;
            Ok(Facts {
                answer: row.id,
                // The program composes the text of a demonstration or a rating.
                described: kind == AnswerKind::Described && row.medium == "description",
                passed_by: matches!(kind, AnswerKind::Skipped | AnswerKind::CannotDescribe),
                fulfilled: row.fulfilled,
                text: row.text,
                request: row.request,
                summary: row.summary,
                active_ms: row.active_ms.map(from_int),
            })
        });
        facts.collect()
    }

    /// The attention checks that a teacher answered rightly and wrongly in the study of a run.
    pub async fn attention_of(&self, run: &RunId, teacher: TeacherId) -> Result<(u64, u64)> {
        row! {
            struct Row {
                attention_passed: i64,
                attention_missed: i64,
            }
        }
        let row = query_as!(
            Row,
            r#"SELECT attention_passed, attention_missed FROM study_arms
               CROSS JOIN participants ON participants.study = study_arms.study AND participants.teacher = ?2
               WHERE study_arms.run = ?1"#,
            run,
            teacher,
        )
        .fetch_optional(self.readers())
        .await?;
        Ok(row.map_or((0, 0), |row| (from_int(row.attention_passed), from_int(row.attention_missed))))
    }
}
