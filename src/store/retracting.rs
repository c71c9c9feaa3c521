//! Answers that their teachers withdraw from the data set, at any time.
//!
//! A retracted answer is not one that was taken back ([`Store::undo`]): an update may have learned from it, and what was learned stays
//! learned, so that a run resumes as it was. The answer stands, and keeps its place in every record of updates. Its text is
//! in no export and on no page of others, and where no update has used it yet, none will.

use super::answers::count_given;
use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, key_list};
use super::error::{Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use super::{AnswerKind, OwnAnswer, Response, Store};
use crate::ids::{AnswerId, ExecutionId, RunId, StudyId, TeacherId};
use time::OffsetDateTime;

/// The fate of an answer that was retracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retracted {
    /// The update that had learned from it before; `None`: no update will.
    pub learnt_in: Option<u64>,
}

/// An answer of a teacher in a study.
#[derive(Clone, Debug)]
pub struct StudyOwnAnswer {
    /// The run that it taught.
    pub run: RunId,
    /// Family of the run.
    pub family: String,
    /// The answer. The text of a retracted one is empty.
    pub own: OwnAnswer,
    /// When it was retracted.
    pub retracted_at: Option<OffsetDateTime>,
}

/// A teacher's answers in a study: one page of them.
#[derive(Clone, Debug)]
pub struct OwnPage {
    /// The answers, newest first.
    pub answers: Vec<StudyOwnAnswer>,
    /// How many there are on all pages.
    pub total: u64,
}

impl Store {
    /// Retracts an answer of this teacher, durably, with everything else that they said of its execution: earlier versions, and
    /// the reason of a skip. Doing it twice does it once.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when it is not this teacher's.
    pub async fn retract(&self, answer: AnswerId, teacher: TeacherId) -> Result<Retracted> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        row! {
            struct Row {
                execution: ExecutionId,
                kind: String,
                used_in_update: Option<i64>,
            }
        }
        let row = query_as!(
            Row,
            r#"SELECT execution AS "execution!: ExecutionId", kind, used_in_update FROM answers
               WHERE id = ? AND teacher = ? AND execution IS NOT NULL"#,
            answer,
            teacher,
        );
        let row = row.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the answer"))?;
        query!(
            "UPDATE answers SET retracted_at = coalesce(retracted_at, ?3),
                 passed_over = iif(used_in_update IS NULL, 1, passed_over)
             WHERE execution = ?1 AND teacher = ?2",
            row.execution,
            teacher,
            now,
        )
        .execute(&mut tx)
        .await?;
        query!("DELETE FROM drafts WHERE teacher = ? AND execution = ?", teacher, row.execution)
            .execute(&mut tx)
            .await?;
        count_given(&mut tx, row.execution).await?;
        tx.commit().await?;
        let learnt = row.used_in_update.filter(|_| row.kind == AnswerKind::Described.as_str());
        Ok(Retracted { learnt_in: learnt.map(from_int) })
    }

    /// A page of a teacher's standing answers in all runs of a study, newest first; pages count from 0.
    pub async fn own_answers_in_study(
        &self,
        study: &StudyId,
        teacher: TeacherId,
        page: u64,
        length: usize,
    ) -> Result<OwnPage> {
        let mut keys = query_scalar!(
            r#"SELECT answers.id AS "id!: AnswerId" FROM study_arms CROSS JOIN answers INDEXED BY answers_of_teacher
               ON answers.run = study_arms.run AND answers.teacher = ?2 AND answers.superseded_by IS NULL
                   AND answers.teacher IS NOT NULL
               WHERE study_arms.study = ?1"#,
            study,
            teacher,
        )
        .fetch_all(self.readers())
        .await?;
        let total = keys.len() as u64;
        keys.sort_unstable_by(|a, b| b.cmp(a));
        let first = usize::try_from(page).unwrap_or(usize::MAX).saturating_mul(length);
        let wanted = key_list(&keys.into_iter().skip(first).take(length).collect::<Vec<_>>());
        row! {
            struct Row {
                id: AnswerId,
                run: RunId,
                family: String,
                execution: ExecutionId,
                view: String,
                kind: String,
                text: String,
                demonstration: Option<String>,
                rating: Option<f64>,
                created_at: i64,
                used_in_update: Option<i64>,
                fulfilled: bool,
                retracted_at: Option<i64>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT answers.id AS "id!: AnswerId", answers.run AS "run!: RunId", runs.family AS "family!",
                   answers.execution AS "execution!: ExecutionId", body.view AS "view!", answers.kind AS "kind!",
                   iif(answers.retracted_at IS NULL, answers.text, '') AS "text!: String",
                   iif(answers.retracted_at IS NULL, answers.demonstration, NULL) AS "demonstration?: String",
                   iif(answers.retracted_at IS NULL, answers.rating, NULL) AS "rating?: f64",
                   answers.created_at AS "created_at!", answers.used_in_update, answers.fulfilled AS "fulfilled!: bool",
                   answers.retracted_at
               FROM answers
               CROSS JOIN runs ON runs.id = answers.run
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE answers.id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"#,
            wanted,
        )
        .fetch_all(self.readers())
        .await?;
        let mut answers = Vec::new();
        for row in rows {
            let own = OwnAnswer {
                answer: row.id,
                execution: row.execution,
                view: from_json("an execution's view", &row.view)?,
                kind: AnswerKind::parse(&row.kind)?,
                text: row.text,
                response: Response::read(row.demonstration, row.rating)?,
                created_at: from_nanos(row.created_at),
                used_in_update: row.used_in_update.map(from_int),
                fulfilled: row.fulfilled,
            };
            let retracted_at = row.retracted_at.map(from_nanos);
            answers.push(StudyOwnAnswer { run: row.run, family: row.family, own, retracted_at });
        }
        answers.sort_unstable_by_key(|answer| std::cmp::Reverse(answer.own.answer));
        Ok(OwnPage { answers, total })
    }

    /// [`StoreError::NotFound`] unless the answer is one of the study and of the teacher.
    pub async fn answer_in_study(&self, study: &StudyId, answer: AnswerId, teacher: TeacherId) -> Result<()> {
        query_scalar!(
            r#"SELECT 1 AS "found!: i64" FROM answers CROSS JOIN study_arms ON study_arms.run = answers.run
               WHERE answers.id = ? AND answers.teacher = ? AND study_arms.study = ?"#,
            answer,
            teacher,
            study,
        )
        .fetch_optional(self.readers())
        .await?
        .map(|_| ())
        .ok_or(StoreError::NotFound("the answer"))
    }
}
