//! The pool of executions that people are asked to describe.

use super::connection::Durability;
use super::convert::{from_int, from_json, to_int, to_json};
use super::error::{Missing, Result, StoreError};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{AnswersSince, NewExecution, PoolCounts, Store, overlap};
use crate::ids::{AnswerId, ExecutionId, RunId, TeacherId};

/// How many executions a run keeps that somebody has passed over and that wait for others. Everybody who asks for an
/// execution passes through them, so they must not become more with every skip.
const KEPT_SKIPPED: u32 = 400;

/// Up to how many fresh executions of a pool are counted.
const MOST_COUNTED: u32 = 20_000;

impl Store {
    /// Adds executions to the run's pool (an episode already there is left as it is). Where the run's study asks several teachers
    /// about the same execution, they want as many answers.
    pub async fn offer(&self, run: &RunId, executions: &[NewExecution]) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        let study = overlap::open_study(&mut tx, run).await?;
        for execution in executions {
            let wanted = overlap::wanted(study.as_ref(), execution.episode, execution.wanted);
            offer_one(&mut tx, run, execution, wanted, now).await?;
        }
        retire_oldest_skipped(&mut tx, run, self.monotonic_now()).await?;
        Ok(tx.commit().await?)
    }

    /// Retires open executions made by policies before `oldest_update`, unless somebody is at them. Returns how many.
    pub async fn retire_stale(&self, run: &RunId, oldest_update: u64) -> Result<u64> {
        let oldest = to_int("the update", oldest_update)?;
        let now = self.monotonic_now();
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let deleted = query!(
            "DELETE FROM executions WHERE run = ? AND state = 'open' AND policy_update < ? AND shown = 0",
            run,
            oldest,
        )
        .execute(&mut tx)
        .await?;
        let retired = query!(
            "UPDATE executions SET state = 'retired'
             WHERE run = ?1 AND state = 'open' AND policy_update < ?2 AND NOT EXISTS
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id
                     AND leases.renewed_at <= ?3 AND leases.expires_at > ?3)",
            run,
            oldest,
            now,
        )
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(deleted.rows_affected() + retired.rows_affected())
    }

    /// Retires the oldest executions that somebody has skipped and nobody is at, except the newest `keep` of them.
    /// Returns how many.
    pub async fn retire_skipped(&self, run: &RunId, keep: u64) -> Result<u64> {
        let keep = to_int("the number", keep)?;
        let now = self.monotonic_now();
        let beyond = query_scalar!(
            r#"SELECT id AS "id!: ExecutionId" FROM executions INDEXED BY executions_touched
               WHERE run = ? AND state = 'open' AND touched = 1 ORDER BY id DESC LIMIT 1 OFFSET ?"#,
            run,
            keep,
        )
        .fetch_optional(self.readers())
        .await?;
        let Some(beyond) = beyond else { return Ok(0) };
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let retired = query!(
            "UPDATE executions SET state = 'retired'
             WHERE run = ?1 AND state = 'open' AND touched = 1 AND given = 0 AND id <= ?2 AND NOT EXISTS
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id
                     AND leases.renewed_at <= ?3 AND leases.expires_at > ?3)",
            run,
            beyond,
            now,
        )
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(retired.rows_affected())
    }

    /// Pool sizes (expired leases count as open), and how many people are there. Of the open ones 20,000 are counted at
    /// most: the trainer asks often, and another program may have posted very many.
    pub async fn pool(&self, run: &RunId) -> Result<PoolCounts> {
        let now = self.monotonic_now();
        row! {
            struct Row {
                open: i64,
                leased: i64,
            }
        }
        let counts = query_as!(
            Row,
            r#"SELECT (SELECT count(*) FROM (SELECT 1 FROM executions INDEXED BY executions_fresh
                           WHERE run = ?1 AND state = 'open' AND touched = 0 LIMIT ?3) AS fresh)
                       - count(*) FILTER (WHERE touched = 0) AS "open!: i64",
                   count(*) AS "leased!: i64"
               FROM (SELECT DISTINCT executions.id, executions.touched
                     FROM leases INDEXED BY leases_live CROSS JOIN executions ON executions.id = leases.execution
                     WHERE leases.expires_at > ?2 AND leases.renewed_at <= ?2
                         AND executions.run = ?1 AND executions.state = 'open') AS leased"#,
            run,
            now,
            MOST_COUNTED,
        )
        .fetch_one(self.readers())
        .await?;
        let holders = query_scalar!(
            r#"SELECT leases.teacher AS "teacher!: TeacherId"
               FROM leases INDEXED BY leases_live CROSS JOIN executions ON executions.id = leases.execution
               WHERE leases.expires_at > ?2 AND leases.renewed_at <= ?2
                   AND executions.run = ?1 AND executions.state = 'open'"#,
            run,
            now,
        )
        .fetch_all(self.readers())
        .await?;
        let mut people = self.visitors().present(run, now);
        people.extend(holders);
        Ok(PoolCounts {
            open: from_int(counts.open.max(0)),
            leased: from_int(counts.leased),
            people: people.len() as u64,
        })
    }

    /// Answers of people that came after the answer `after` (0: none of them counts), and the newest of all. The
    /// trainer fills the pool by them.
    pub async fn answers_since(&self, run: &RunId, after: AnswerId) -> Result<AnswersSince> {
        if after == AnswerId::default() {
            let newest = query_scalar!(r#"SELECT max(id) AS "id?: AnswerId" FROM answers WHERE run = ?"#, run)
                .fetch_one(self.readers())
                .await?;
            return Ok(AnswersSince { answered: 0, newest: newest.unwrap_or_default() });
        }
        row! {
            struct Row {
                answered: i64,
                newest: Option<AnswerId>,
            }
        }
        let supply = query_as!(
            Row,
            r#"SELECT count(*) FILTER (WHERE teacher IS NOT NULL AND kind <> 'skipped' AND supersedes IS NULL)
                   AS "answered!: i64", max(id) AS "newest?: AnswerId"
               FROM answers WHERE run = ? AND id > ?"#,
            run,
            after,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(AnswersSince { answered: from_int(supply.answered), newest: supply.newest.unwrap_or(after) })
    }

    /// One more than the largest episode number of the run's executions for people; 0 without any. (Executions that
    /// nobody had seen when they were retired are not counted: their numbers are free again.)
    pub async fn next_episode(&self, run: &RunId) -> Result<u64> {
        // Two reads at the ends of the two indexes.
        let largest = query_scalar!(
            r#"SELECT max(largest) AS "largest?: i64" FROM (
                   SELECT max(episode) AS largest FROM executions WHERE run = ?1 AND state <> 'withdrawn'
                   UNION ALL SELECT max(episode) FROM executions WHERE run = ?1 AND state = 'withdrawn') AS episodes"#,
            run,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(largest.map_or(0, |episode| from_int(episode) + 1))
    }

    /// The trainer's own trace of an execution, by which simulated people answer.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is none of that key.
    pub async fn trace(&self, execution: ExecutionId) -> Result<serde_json::Value> {
        let trace = query_scalar!("SELECT trace FROM execution_bodies WHERE execution = ?", execution)
            .fetch_optional(self.readers())
            .await?;
        from_json("an execution's trace", &trace.ok_or(StoreError::NotFound("the execution"))?)
    }

    /// [`StoreError::NotFound`] unless the execution is one of the run.
    pub async fn execution_in(&self, run: &RunId, execution: ExecutionId) -> Result<()> {
        query_scalar!(r#"SELECT 1 AS "found!: i64" FROM executions WHERE id = ? AND run = ?"#, execution, run)
            .fetch_optional(self.readers())
            .await?
            .map(|_| ())
            .ok_or(StoreError::NotFound("the execution"))
    }
}

/// Adds an execution; its key, or `None` where the episode was there already.
pub(super) async fn offer_one(
    tx: &mut Transaction<'_>,
    run: &RunId,
    new: &NewExecution,
    wanted: u32,
    now: i64,
) -> Result<Option<ExecutionId>> {
    let (episode, update) = (to_int("the episode", new.episode)?, to_int("the update", new.update)?);
    let (view, trace) = (to_json(&new.view)?, to_json(&new.trace)?);
    let known = query_scalar!(
        r#"SELECT 1 AS "known!: i64" FROM executions WHERE run = ? AND episode = ? AND state <> 'withdrawn'"#,
        run,
        episode,
    )
    .fetch_optional(&mut *tx)
    .await?;
    if known.is_some() {
        return Ok(None);
    }
    let id = query_scalar!(
        r#"INSERT INTO executions (run, episode, policy_update, wanted, success, request, summary, offered_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id AS "id!: ExecutionId""#,
        run,
        episode,
        update,
        wanted,
        new.success,
        new.request,
        new.summary,
        now,
    )
    .fetch_one(&mut *tx)
    .await
    .or_missing("the run")?;
    let reference = new.reference.as_ref().map(to_json).transpose()?;
    query!(
        "INSERT INTO execution_bodies (execution, view, trace, reference) VALUES (?, ?, ?, ?)",
        id,
        view,
        trace,
        reference,
    )
    .execute(&mut *tx)
    .await?;
    Ok(Some(id))
}

/// Retires all but the newest executions that were skipped (or answered by the first of several people), unless
/// somebody is at them by the clock of leases. Late answers are still taken.
pub(super) async fn retire_oldest_skipped(tx: &mut Transaction<'_>, run: &RunId, now: i64) -> Result<()> {
    query!(
        "UPDATE executions SET state = 'retired'
         WHERE run = ?1 AND state = 'open' AND touched = 1
             AND id <= (SELECT id FROM executions WHERE run = ?1 AND state = 'open' AND touched = 1
                 ORDER BY id DESC LIMIT 1 OFFSET ?2)
             AND NOT EXISTS
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id
                      AND leases.renewed_at <= ?3 AND leases.expires_at > ?3)",
        run,
        KEPT_SKIPPED,
        now,
    )
    .execute(&mut *tx)
    .await?;
    Ok(())
}
