//! The pool of executions and who is at them.

use super::connection::{Durability, from_int, from_json, from_nanos, key_list, to_int, to_json};
use super::error::{Missing, Result, StoreError};
use super::{Leased, NewExecution, PoolCounts, Store};
use sqlx::{FromRow, Sqlite, Transaction};
use time::OffsetDateTime;

#[derive(FromRow)]
struct LeasedRow {
    id: i64,
    episode: i64,
    view: String,
}

/// What [`Store::renew`] has to know of an execution and of the asking teacher's lease.
#[derive(FromRow)]
struct Holding {
    expires_at: i64,
    done: bool,
    room: bool,
}

impl Store {
    /// Adds executions to the run's pool (an episode already there is left as it is).
    ///
    /// An execution that [`Store::withdraw_from`] took away while somebody had it comes back under its old key when
    /// it was made again exactly alike: who has it open does not notice that the run was resumed.
    pub async fn offer(&self, run: &str, executions: &[NewExecution]) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        for execution in executions {
            offer_one(&mut tx, run, execution, now).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Retires open executions made by policies before `oldest_update`, unless somebody is at them. How many.
    pub async fn retire_stale(&self, run: &str, oldest_update: u64) -> Result<u64> {
        let oldest = to_int("the update", oldest_update)?;
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let deleted =
            sqlx::query("DELETE FROM executions WHERE run = ? AND state = 'open' AND policy_update < ? AND shown = 0")
                .bind(run)
                .bind(oldest)
                .execute(&mut *tx)
                .await?;
        let retired = sqlx::query(
            "UPDATE executions SET state = 'retired'
             WHERE run = ?1 AND state = 'open' AND policy_update < ?2 AND NOT EXISTS
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id AND leases.expires_at > ?3)",
        )
        .bind(run)
        .bind(oldest)
        .bind(self.now())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(deleted.rows_affected() + retired.rows_affected())
    }

    /// Pool sizes (expired leases count as open).
    pub async fn pool(&self, run: &str) -> Result<PoolCounts> {
        let (open, leased): (i64, i64) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE NOT held AND NOT touched), count(*) FILTER (WHERE held) FROM
                 (SELECT touched, EXISTS (SELECT 1 FROM leases
                      WHERE leases.execution = executions.id AND leases.expires_at > ?2) AS held
                  FROM executions WHERE run = ?1 AND state = 'open')",
        )
        .bind(run)
        .bind(self.now())
        .fetch_one(self.readers())
        .await?;
        Ok(PoolCounts { open: from_int(open), leased: from_int(leased) })
    }

    /// Removes executions of episodes from `episode` on that nobody has answered (before they are made again by a
    /// resumed run). How many. One that somebody has seen is only taken out of the queue: an answer to it is still
    /// taken.
    pub async fn withdraw_from(&self, run: &str, episode: u64) -> Result<u64> {
        let episode = to_int("the episode", episode)?;
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let deleted =
            sqlx::query("DELETE FROM executions WHERE run = ? AND episode >= ? AND state <> 'withdrawn' AND shown = 0")
                .bind(run)
                .bind(episode)
                .execute(&mut *tx)
                .await?;
        let withdrawn = sqlx::query(
            "UPDATE executions SET state = 'withdrawn'
             WHERE run = ? AND episode >= ? AND state <> 'withdrawn' AND given = 0",
        )
        .bind(run)
        .bind(episode)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(deleted.rows_affected() + withdrawn.rows_affected())
    }

    /// One more than the largest episode number of the run's executions for people; 0 without any. (Executions that
    /// nobody has seen before they were retired or withdrawn are not counted: their numbers are free again.)
    pub async fn next_episode(&self, run: &str) -> Result<u64> {
        // Two reads at the ends of the two indexes.
        let largest: Option<i64> = sqlx::query_scalar(
            "SELECT max(largest) FROM (
                 SELECT max(episode) AS largest FROM executions WHERE run = ?1 AND state <> 'withdrawn'
                 UNION ALL SELECT max(episode) FROM executions WHERE run = ?1 AND state = 'withdrawn')",
        )
        .bind(run)
        .fetch_one(self.readers())
        .await?;
        Ok(largest.map_or(0, |episode| from_int(episode) + 1))
    }

    /// Gives the teacher an execution: one they hold already (not in `except`; its lease is extended), else an open
    /// one, newest policy first, then the one offered first; never one they answered or skipped, never more teachers
    /// at it than it wants. `None` when there is none. `except`: executions the page has already (it fetches one
    /// ahead).
    pub async fn lease(&self, run: &str, teacher: i64, except: &[i64], ttl: time::Duration) -> Result<Option<Leased>> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        let except = key_list(except);
        let held: Option<LeasedRow> = sqlx::query_as(
            "SELECT executions.id, executions.episode, body.view
             FROM leases
             CROSS JOIN executions ON executions.id = leases.execution
             CROSS JOIN execution_bodies AS body ON body.execution = executions.id
             WHERE leases.teacher = ?1 AND leases.expires_at > ?2 AND executions.run = ?3
                 AND executions.state = 'open' AND executions.id NOT IN (SELECT value FROM json_each(?4))
             ORDER BY leases.taken_at, executions.id LIMIT 1",
        )
        .bind(teacher)
        .bind(now)
        .bind(run)
        .bind(&except)
        .fetch_optional(&mut *tx)
        .await?;
        let found = match held {
            Some(held) => Some(held),
            None => {
                sqlx::query_as(
                    "SELECT executions.id, executions.episode, body.view
                     FROM executions
                     CROSS JOIN execution_bodies AS body ON body.execution = executions.id
                     WHERE executions.run = ?3 AND executions.state = 'open'
                         AND executions.id NOT IN (SELECT value FROM json_each(?4))
                         AND NOT EXISTS (SELECT 1 FROM answers
                             WHERE answers.execution = executions.id AND answers.teacher = ?1)
                         AND executions.given + (SELECT count(*) FROM leases
                             WHERE leases.execution = executions.id AND leases.expires_at > ?2
                                 AND leases.teacher <> ?1) < executions.wanted
                     ORDER BY executions.policy_update DESC, executions.id LIMIT 1",
                )
                .bind(teacher)
                .bind(now)
                .bind(run)
                .bind(&except)
                .fetch_optional(&mut *tx)
                .await?
            }
        };
        let Some(LeasedRow { id, episode, view }) = found else { return Ok(None) };
        let expires_at = end_of_lease(now, ttl);
        sqlx::query(
            "INSERT INTO leases (execution, teacher, taken_at, expires_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (execution, teacher) DO UPDATE SET
                 taken_at = iif(expires_at > ?3, taken_at, ?3), expires_at = ?4",
        )
        .bind(id)
        .bind(teacher)
        .bind(now)
        .bind(expires_at)
        .execute(&mut *tx)
        .await
        .or_missing("the teacher")?;
        sqlx::query("UPDATE executions SET shown = 1 WHERE id = ? AND shown = 0").bind(id).execute(&mut *tx).await?;
        let request: Option<String> = sqlx::query_scalar(
            "SELECT executions.request FROM executions CROSS JOIN runs ON runs.id = executions.run
             WHERE executions.id = ? AND runs.config ->> '$.pool.show_request' IS 1",
        )
        .bind(id)
        .fetch_optional(&mut *tx)
        .await?;
        tx.commit().await?;
        let view = from_json("an execution's view", &view)?;
        let (episode, expires_at) = (from_int(episode), from_nanos(expires_at));
        Ok(Some(Leased { execution: id, episode, view, request, expires_at }))
    }

    /// Extends a lease (the page's heartbeat). A lease that ran out is taken up again when nobody else has the
    /// execution.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when somebody else has it now, it is done, or the lease was given back.
    pub async fn renew(&self, execution: i64, teacher: i64, ttl: time::Duration) -> Result<OffsetDateTime> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        let holding: Option<Holding> = sqlx::query_as(
            "SELECT mine.expires_at, executions.state = 'done' AS done,
                 executions.given + (SELECT count(*) FROM leases
                     WHERE leases.execution = ?1 AND leases.expires_at > ?3 AND leases.teacher <> ?2)
                     < executions.wanted AS room
             FROM executions
             CROSS JOIN leases AS mine ON mine.execution = executions.id
             WHERE executions.id = ?1 AND mine.teacher = ?2",
        )
        .bind(execution)
        .bind(teacher)
        .bind(now)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(holding) = holding else { return Err(StoreError::LeaseLost) };
        if holding.done || (holding.expires_at <= now && !holding.room) {
            return Err(StoreError::LeaseLost);
        }
        let expires_at = end_of_lease(now, ttl);
        sqlx::query("UPDATE leases SET expires_at = ? WHERE execution = ? AND teacher = ?")
            .bind(expires_at)
            .bind(execution)
            .bind(teacher)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(from_nanos(expires_at))
    }

    /// Gives a lease back at once (the page closed). Harmless when there is none.
    pub async fn release(&self, execution: i64, teacher: i64) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        sqlx::query("DELETE FROM leases WHERE execution = ? AND teacher = ?")
            .bind(execution)
            .bind(teacher)
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }
}

/// When a lease taken or renewed at `now` ends.
fn end_of_lease(now: i64, ttl: time::Duration) -> i64 {
    let nanos = ttl.whole_nanoseconds().clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    now.saturating_add(nanos)
}

async fn offer_one(tx: &mut Transaction<'_, Sqlite>, run: &str, new: &NewExecution, now: i64) -> Result<()> {
    let (episode, update) = (to_int("the episode", new.episode)?, to_int("the update", new.update)?);
    let (view, trace) = (to_json(&new.view)?, to_json(&new.trace)?);
    let there: Option<i64> =
        sqlx::query_scalar("SELECT id FROM executions WHERE run = ? AND episode = ? AND state <> 'withdrawn'")
            .bind(run)
            .bind(episode)
            .fetch_optional(&mut **tx)
            .await?;
    if there.is_some() {
        return Ok(());
    }
    let alike: Option<i64> = sqlx::query_scalar(
        "SELECT executions.id FROM executions
         CROSS JOIN execution_bodies AS body ON body.execution = executions.id
         WHERE executions.run = ? AND executions.episode = ? AND executions.state = 'withdrawn'
             AND executions.request = ? AND body.view = ? AND body.trace = ?
         LIMIT 1",
    )
    .bind(run)
    .bind(episode)
    .bind(&new.request)
    .bind(&view)
    .bind(&trace)
    .fetch_optional(&mut **tx)
    .await?;
    if let Some(id) = alike {
        // It may have been answered while it was withdrawn.
        sqlx::query(
            "UPDATE executions SET policy_update = ?2, wanted = ?3, success = ?4,
                 state = iif(given >= ?3, 'done', 'open') WHERE id = ?1",
        )
        .bind(id)
        .bind(update)
        .bind(new.wanted)
        .bind(new.success)
        .execute(&mut **tx)
        .await?;
        return Ok(());
    }
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO executions (run, episode, policy_update, wanted, success, request, summary, offered_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
    )
    .bind(run)
    .bind(episode)
    .bind(update)
    .bind(new.wanted)
    .bind(new.success)
    .bind(&new.request)
    .bind(&new.summary)
    .bind(now)
    .fetch_one(&mut **tx)
    .await
    .or_missing("the run")?;
    sqlx::query("INSERT INTO execution_bodies (execution, view, trace) VALUES (?, ?, ?)")
        .bind(id)
        .bind(view)
        .bind(trace)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
