//! Answers that their teachers took back.
//!
//! The row stays, as all rows do. It gets the time at which it was taken back and points to itself by `superseded_by`:
//! whatever passes over superseded answers (the trainer, counts, the list of one's own answers) passes over it, too.

use super::connection::{Durability, from_int, from_json, from_nanos};
use super::error::{Result, StoreError};
use super::pool::{HELD, end_of_lease, length_of_lease};
use super::{AnswerKind, Store};
use sqlx::{FromRow, Sqlite, Transaction};
use time::OffsetDateTime;

/// An answer that its teacher wanted to take back, with what it was about.
#[derive(Clone, Debug)]
pub struct Undone {
    /// Key of the answer.
    pub answer: i64,
    /// Its kind.
    pub kind: AnswerKind,
    /// Its text, exactly as typed.
    pub text: String,
    /// The update that learnt from it before it could be taken back: the answer then stands as before, and a new one about
    /// the same execution takes its place. `None`: it was taken back, and no update will ever take it.
    pub learnt_in: Option<u64>,
    /// Execution it is about.
    pub execution: i64,
    /// Episode of the execution.
    pub episode: u64,
    /// What was shown.
    pub view: serde_json::Value,
    /// The request d*, only when the run's configuration lets teachers see it.
    pub request: Option<String>,
    /// When the teacher's renewed lease on the execution ends; it lies in the past when somebody else has it now.
    pub expires_at: OffsetDateTime,
}

#[derive(FromRow)]
struct Row {
    id: i64,
    kind: String,
    text: String,
    used_in_update: Option<i64>,
    superseded_by: Option<i64>,
    withdrawn_at: Option<i64>,
    execution: i64,
    episode: i64,
    view: String,
    request: Option<String>,
}

impl Row {
    fn kind(&self) -> Result<AnswerKind> {
        AnswerKind::from_word(&self.kind)
    }

    /// Whether the agent has learnt from it: of the kinds only descriptions are learnt from, though an update takes in others.
    fn learnt(&self) -> Result<bool> {
        Ok(self.used_in_update.is_some() && self.kind()? == AnswerKind::Described)
    }

    fn read(self, learnt_in: Option<i64>, expires_at: i64) -> Result<Undone> {
        Ok(Undone {
            answer: self.id,
            kind: self.kind()?,
            view: from_json("an execution's view", &self.view)?,
            text: self.text,
            learnt_in: learnt_in.map(from_int),
            execution: self.execution,
            episode: from_int(self.episode),
            request: self.request,
            expires_at: from_nanos(expires_at),
        })
    }
}

/// The answer with what is shown of its execution.
const ANSWER: &str = "
    SELECT answers.id, answers.kind, answers.text, answers.used_in_update, answers.superseded_by, answers.withdrawn_at,
        answers.execution, answers.episode, body.view,
        iif(runs.config ->> '$.pool.show_request' IS 1, executions.request, NULL) AS request
    FROM answers
    CROSS JOIN executions ON executions.id = answers.execution
    CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
    CROSS JOIN runs ON runs.id = answers.run
    WHERE answers.id = ? AND answers.run = ? AND answers.teacher = ?";

impl Store {
    /// Takes an answer of this teacher back, durably, and gives the execution to them again. Doing it twice does it once.
    ///
    /// An answer that an update has learnt from cannot be taken back: nothing is written then, and
    /// [`Undone::learnt_in`] names the update.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when it is not this teacher's, [`StoreError::Superseded`] when another answer has taken
    /// its place.
    pub async fn undo(&self, run: &str, answer: i64, teacher: i64, ttl: time::Duration) -> Result<Undone> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let row: Row = sqlx::query_as(ANSWER)
            .bind(answer)
            .bind(run)
            .bind(teacher)
            .fetch_optional(&mut *tx)
            .await?
            .ok_or(StoreError::NotFound("the answer"))?;
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
        sqlx::query("UPDATE answers SET withdrawn_at = ?2, superseded_by = id WHERE id = ?1")
            .bind(answer)
            .bind(now)
            .execute(&mut *tx)
            .await?;
        reopen(&mut tx, row.execution).await?;
        let held = hold_again(&mut tx, row.execution, teacher, self.steady_now(), ttl).await?;
        tx.commit().await?;
        row.read(None, held.map_or(now, |ttl| end_of_lease(now, ttl)))
    }

    /// An answer that this teacher took back and has put no other in the place of: what a page shows again. `None` for
    /// any other.
    pub async fn taken_back(&self, run: &str, answer: i64, teacher: i64) -> Result<Option<Undone>> {
        let row: Option<Row> =
            sqlx::query_as(ANSWER).bind(answer).bind(run).bind(teacher).fetch_optional(self.readers()).await?;
        let Some(row) = row.filter(|row| row.withdrawn_at.is_some()) else { return Ok(None) };
        let answered: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM answers INDEXED BY answers_standing
                 WHERE execution = ? AND teacher = ? AND superseded_by IS NULL AND execution IS NOT NULL)",
        )
        .bind(row.execution)
        .bind(teacher)
        .fetch_one(self.readers())
        .await?;
        if answered {
            return Ok(None);
        }
        row.read(None, self.now()).map(Some)
    }

    /// What people are shown of an execution.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none of that key.
    pub async fn view(&self, execution: i64) -> Result<serde_json::Value> {
        let view: Option<String> = sqlx::query_scalar("SELECT view FROM execution_bodies WHERE execution = ?")
            .bind(execution)
            .fetch_optional(self.readers())
            .await?;
        from_json("an execution's view", &view.ok_or(StoreError::NotFound("the execution"))?)
    }
}

/// Lets the execution want the answer again that was taken away from it.
async fn reopen(tx: &mut Transaction<'_, Sqlite>, execution: i64) -> Result<()> {
    sqlx::query(
        "UPDATE executions SET given = (SELECT count(*) FROM answers INDEXED BY answers_standing
             WHERE execution = ?1 AND superseded_by IS NULL AND execution IS NOT NULL AND kind <> 'skipped' AND late = 0)
         WHERE id = ?1",
    )
    .bind(execution)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "UPDATE executions SET state = iif(given >= wanted, 'done', 'open') WHERE id = ?1 AND state IN ('open', 'done')",
    )
    .bind(execution)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Gives the teacher the execution again, before all else they hold, so that a page that is loaded anew shows it, and takes
/// back what is beyond the two that a teacher may hold. How long it is theirs; `None` when somebody else has its last
/// place: an answer to it then comes late.
async fn hold_again(
    tx: &mut Transaction<'_, Sqlite>,
    execution: i64,
    teacher: i64,
    now: i64,
    ttl: time::Duration,
) -> Result<Option<time::Duration>> {
    let (room, answered): (bool, bool) = sqlx::query_as(
        "SELECT given + (SELECT count(*) FROM leases
             WHERE leases.execution = executions.id AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                 AND leases.teacher <> ?2) < wanted,
             teachers.answered
         FROM executions CROSS JOIN teachers ON teachers.id = ?2 WHERE executions.id = ?1",
    )
    .bind(execution)
    .bind(teacher)
    .bind(now)
    .fetch_one(&mut **tx)
    .await?;
    let ttl = length_of_lease(ttl, answered);
    sqlx::query(
        "INSERT INTO leases (execution, teacher, taken_at, renewed_at, expires_at)
         VALUES (?1, ?2, coalesce((SELECT min(taken_at) - 1 FROM leases
                 WHERE teacher = ?2 AND renewed_at <= ?3 AND expires_at > ?3), ?3), ?3, ?4)
         ON CONFLICT (execution, teacher) DO UPDATE SET taken_at = excluded.taken_at, renewed_at = excluded.renewed_at,
             expires_at = excluded.expires_at",
    )
    .bind(execution)
    .bind(teacher)
    .bind(now)
    .bind(if room { end_of_lease(now, ttl) } else { now })
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "UPDATE leases SET expires_at = 0
         WHERE teacher = ?1 AND renewed_at <= ?2 AND expires_at > ?2 AND execution NOT IN (
             SELECT execution FROM leases WHERE teacher = ?1 AND renewed_at <= ?2 AND expires_at > ?2
             ORDER BY taken_at, execution LIMIT ?3)",
    )
    .bind(teacher)
    .bind(now)
    .bind(HELD as i64)
    .execute(&mut **tx)
    .await?;
    Ok(room.then_some(ttl))
}
