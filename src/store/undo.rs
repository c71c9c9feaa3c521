//! Answers that their teachers took back.
//!
//! The row stays, as all rows do. It gets the time at which it was taken back and points to itself by `superseded_by`:
//! whatever passes over superseded answers (the trainer, counts, the list of one's own answers) passes over it, too.

use super::answers::count_given;
use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos};
use super::error::{Result, StoreError};
use super::leases::{HELD, end_of_lease, length_of_lease};
use super::sql::{On, Transaction, query, query_as, query_scalar, row};
use super::{AnswerKind, Response, Store};
use crate::ids::{AnswerId, ExecutionId, RunId, TeacherId};
use time::OffsetDateTime;

/// An answer that its teacher wanted to take back, and the execution that it describes.
#[derive(Clone, Debug)]
pub struct WithdrawnAnswer {
    /// Key of the answer.
    pub answer: AnswerId,
    /// Its kind.
    pub kind: AnswerKind,
    /// Its text, exactly as typed.
    pub text: String,
    /// The demonstration or the rating.
    pub response: Response,
    /// The update that learnt from it before it could be taken back: the answer then stands as before, and a new one about
    /// the same execution takes its place. `None`: it was taken back, and no update will ever take it.
    pub learnt_in: Option<u64>,
    /// Execution it is about.
    pub execution: ExecutionId,
    /// Episode of the execution.
    pub episode: u64,
    /// The view that was shown.
    pub view: serde_json::Value,
    /// Whether it said that the execution did what was asked.
    pub fulfilled: bool,
    /// The request d*, only when the teacher can see it.
    pub request: Option<String>,
    /// When the teacher's renewed lease on the execution ends; it lies in the past when somebody else has it now.
    pub expires_at: OffsetDateTime,
}

row! {
    struct Row {
        id: AnswerId,
        kind: String,
        text: String,
        demonstration: Option<String>,
        rating: Option<f64>,
        used_in_update: Option<i64>,
        superseded_by: Option<AnswerId>,
        withdrawn_at: Option<i64>,
        execution: ExecutionId,
        episode: i64,
        view: String,
        request: Option<String>,
        fulfilled: bool,
    }
}

impl Row {
    fn kind(&self) -> Result<AnswerKind> {
        AnswerKind::parse(&self.kind)
    }

    /// Whether the agent has learnt from it: of the kinds only descriptions are learnt from, though an update takes in others.
    fn learnt(&self) -> Result<bool> {
        Ok(self.used_in_update.is_some() && self.kind()? == AnswerKind::Described)
    }

    fn read(self, learnt_in: Option<i64>, expires_at: i64) -> Result<WithdrawnAnswer> {
        Ok(WithdrawnAnswer {
            answer: self.id,
            kind: self.kind()?,
            view: from_json("an execution's view", &self.view)?,
            text: self.text,
            response: Response::read(self.demonstration, self.rating)?,
            learnt_in: learnt_in.map(from_int),
            execution: self.execution,
            episode: from_int(self.episode),
            fulfilled: self.fulfilled,
            request: self.request,
            expires_at: from_nanos(expires_at),
        })
    }
}

/// The teacher's answer with what is shown of its execution.
async fn select_answer(
    executor: impl Into<On<'_>>,
    run: &RunId,
    answer: AnswerId,
    teacher: TeacherId,
) -> Result<Option<Row>> {
    let row = query_as!(
        Row,
        r#"SELECT answers.id AS "id!: AnswerId", answers.kind AS "kind!", answers.text AS "text!",
               answers.demonstration, answers.rating, answers.used_in_update, answers.superseded_by AS "superseded_by?: AnswerId", answers.withdrawn_at,
               answers.execution AS "execution!: ExecutionId", answers.episode AS "episode!", body.view AS "view!",
               iif(runs.request_shown = 1 OR EXISTS (SELECT 1 FROM leases
                       WHERE leases.execution = answers.execution AND leases.teacher = answers.teacher
                           AND leases.revealed = 1),
                   executions.request, NULL) AS "request?: String",
               answers.fulfilled AS "fulfilled!: bool"
           FROM answers
           CROSS JOIN executions ON executions.id = answers.execution
           CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
           CROSS JOIN runs ON runs.id = answers.run
           WHERE answers.id = ? AND answers.run = ? AND answers.teacher = ?"#,
        answer,
        run,
        teacher,
    );
    Ok(row.fetch_optional(executor).await?)
}

impl Store {
    /// Takes an answer of this teacher back, durably, and gives the execution to them again. Doing it twice does it once.
    ///
    /// An answer that an update has learnt from cannot be taken back: nothing is written then, and
    /// [`WithdrawnAnswer::learnt_in`] names the update.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when it is not this teacher's, [`StoreError::Superseded`] when another answer has taken
    /// its place.
    pub async fn undo(
        &self,
        run: &RunId,
        answer: AnswerId,
        teacher: TeacherId,
        ttl: time::Duration,
    ) -> Result<WithdrawnAnswer> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let row = select_answer(&mut tx, run, answer, teacher).await?.ok_or(StoreError::NotFound("the answer"))?;
        let now = self.now();
        if row.withdrawn_at.is_some() {
            return row.read(None, now);
        }
        if row.superseded_by.is_some() {
            return Err(StoreError::Superseded);
        }
        if row.learnt()? {
            let update = row.used_in_update;
            return row.read(update, now);
        }
        query!("UPDATE answers SET withdrawn_at = ?2, superseded_by = id WHERE id = ?1", answer, now)
            .execute(&mut tx)
            .await?;
        count_given(&mut tx, row.execution).await?;
        let held = hold_again(&mut tx, run, row.execution, teacher, self.monotonic_now(), ttl).await?;
        tx.commit().await?;
        row.read(None, held.map_or(now, |ttl| end_of_lease(now, ttl)))
    }

    /// An answer that this teacher took back and has not replaced by another, so that a page shows it again. `None` for
    /// any other.
    pub async fn withdrawn_answer(
        &self,
        run: &RunId,
        answer: AnswerId,
        teacher: TeacherId,
    ) -> Result<Option<WithdrawnAnswer>> {
        let row = select_answer(self.readers(), run, answer, teacher).await?;
        let Some(row) = row.filter(|row| row.withdrawn_at.is_some()) else { return Ok(None) };
        let answered = query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM answers INDEXED BY answers_standing
                   WHERE execution = ? AND teacher = ? AND superseded_by IS NULL AND execution IS NOT NULL)
                   AS "answered!: bool""#,
            row.execution,
            teacher,
        )
        .fetch_one(self.readers())
        .await?;
        if answered {
            return Ok(None);
        }
        row.read(None, self.now()).map(Some)
    }

    /// The view of an execution that people are shown.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none of that key.
    pub async fn view(&self, execution: ExecutionId) -> Result<serde_json::Value> {
        let view = query_scalar!("SELECT view FROM execution_bodies WHERE execution = ?", execution)
            .fetch_optional(self.readers())
            .await?;
        from_json("an execution's view", &view.ok_or(StoreError::NotFound("the execution"))?)
    }
}

/// Gives the teacher the execution again, before all else they hold, so that a page that is loaded anew shows it, and takes
/// back what is beyond the two that a teacher may hold of a run. How long it is theirs; `None` when somebody else has its last
/// place: an answer to it then comes late.
async fn hold_again(
    tx: &mut Transaction<'_>,
    run: &RunId,
    execution: ExecutionId,
    teacher: TeacherId,
    now: i64,
    ttl: time::Duration,
) -> Result<Option<time::Duration>> {
    row! {
        struct Row {
            has_place: bool,
            answered: bool,
        }
    }
    let state = query_as!(
        Row,
        r#"SELECT given + (SELECT count(*) FROM leases
               WHERE leases.execution = executions.id AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                   AND leases.teacher <> ?2) < wanted AS "has_place!: bool",
               teachers.answered AS "answered!: bool"
           FROM executions CROSS JOIN teachers ON teachers.id = ?2 WHERE executions.id = ?1"#,
        execution,
        teacher,
        now,
    )
    .fetch_one(&mut *tx)
    .await?;
    let ttl = length_of_lease(ttl, state.answered);
    let expires_at = if state.has_place { end_of_lease(now, ttl) } else { now };
    query!(
        "INSERT INTO leases (execution, teacher, taken_at, renewed_at, expires_at)
         VALUES (?1, ?2, coalesce((SELECT min(leases.taken_at) - 1
                 FROM leases CROSS JOIN executions ON executions.id = leases.execution
                 WHERE leases.teacher = ?2 AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                     AND executions.run = ?5 AND executions.state = 'open'), ?3), ?3, ?4)
         ON CONFLICT (execution, teacher) DO UPDATE SET taken_at = excluded.taken_at, renewed_at = excluded.renewed_at,
             expires_at = excluded.expires_at",
        execution,
        teacher,
        now,
        expires_at,
        run,
    )
    .execute(&mut *tx)
    .await?;
    query!(
        "UPDATE leases SET expires_at = 0
         WHERE teacher = ?1 AND execution IN (
             SELECT leases.execution FROM leases CROSS JOIN executions ON executions.id = leases.execution
             WHERE leases.teacher = ?1 AND leases.renewed_at <= ?2 AND leases.expires_at > ?2
                 AND executions.run = ?4 AND executions.state = 'open'
             ORDER BY leases.taken_at, leases.execution LIMIT 9223372036854775807 OFFSET ?3)",
        teacher,
        now,
        HELD,
        run,
    )
    .execute(&mut *tx)
    .await?;
    Ok(state.has_place.then_some(ttl))
}
