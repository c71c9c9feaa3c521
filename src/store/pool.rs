//! The pool of executions and who is at them.

use super::connection::{Durability, from_int, from_json, from_nanos, key_list, to_int, to_json};
use super::error::{Missing, Result, StoreError};
use super::{Leased, NewExecution, PoolCounts, Store, skipped};
use sqlx::{FromRow, Sqlite, Transaction};
use std::collections::HashSet;
use time::OffsetDateTime;

/// How many executions of a run a teacher may hold: the one on the page, and the one fetched ahead.
pub(super) const HELD: usize = 2;

/// Longest lease of a teacher who has never answered. Their page renews it while somebody is at it.
const NEWCOMERS_LEASE: time::Duration = time::Duration::seconds(60);

/// How long a newcomer may look at an execution before it goes to another person when nothing else is free …
const NEWCOMERS_LOOK: i64 = 30_000_000_000;

/// … and how many executions of a run newcomers may hold between them before they give way to people who have
/// answered without that wait.
const CROWD: usize = 8;

#[derive(FromRow)]
struct LeasedRow {
    episode: i64,
    view: String,
    request: Option<String>,
}

/// What [`Store::renew`] has to know of an execution and of the asking teacher's lease.
#[derive(FromRow)]
struct Holding {
    live: bool,
    given_back: bool,
    done: bool,
    room: bool,
    answered: bool,
    others: i64,
}

/// A lease of a teacher who has never answered.
#[derive(FromRow)]
struct Newcomers {
    execution: i64,
    teacher: i64,
    taken_at: i64,
    /// Whether the asking teacher could have the execution in their place.
    fits: bool,
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
        skipped::retire_oldest(&mut tx, run, self.steady_now()).await?;
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
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id
                     AND leases.renewed_at <= ?3 AND leases.expires_at > ?3)",
        )
        .bind(run)
        .bind(oldest)
        .bind(self.steady_now())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(deleted.rows_affected() + retired.rows_affected())
    }

    /// Pool sizes (expired leases count as open), and how many people are there.
    pub async fn pool(&self, run: &str) -> Result<PoolCounts> {
        let now = self.steady_now();
        let (open, leased): (i64, i64) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE NOT held AND NOT touched), count(*) FILTER (WHERE held) FROM
                 (SELECT touched, EXISTS (SELECT 1 FROM leases WHERE leases.execution = executions.id
                      AND leases.renewed_at <= ?2 AND leases.expires_at > ?2) AS held
                  FROM executions WHERE run = ?1 AND state = 'open')",
        )
        .bind(run)
        .bind(now)
        .fetch_one(self.readers())
        .await?;
        let holders: Vec<i64> = sqlx::query_scalar(
            "SELECT leases.teacher FROM executions CROSS JOIN leases ON leases.execution = executions.id
             WHERE executions.run = ?1 AND executions.state = 'open'
                 AND leases.renewed_at <= ?2 AND leases.expires_at > ?2",
        )
        .bind(run)
        .bind(now)
        .fetch_all(self.readers())
        .await?;
        let mut people = self.visitors().present(run, now);
        people.extend(holders);
        Ok(PoolCounts { open: from_int(open), leased: from_int(leased), people: people.len() as u64 })
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
             WHERE run = ? AND episode >= ? AND state <> 'withdrawn' AND NOT EXISTS
                 (SELECT 1 FROM answers WHERE answers.execution = executions.id AND answers.superseded_by IS NULL
                      AND answers.kind <> 'skipped')",
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

    /// [`StoreError::NotFound`] unless the execution is one of the run.
    pub async fn execution_in(&self, run: &str, execution: i64) -> Result<()> {
        let found: Option<i64> = sqlx::query_scalar("SELECT 1 FROM executions WHERE id = ? AND run = ?")
            .bind(execution)
            .bind(run)
            .fetch_optional(self.readers())
            .await?;
        found.map(|_| ()).ok_or(StoreError::NotFound("the execution"))
    }

    /// Gives the teacher an execution: one they hold already (not in `except`; its lease is extended), else an open
    /// one, newest policy first, then the one offered first; never one they answered or skipped, never more teachers
    /// at it than it wants. `None` when there is none. `except`: executions the page has already (it fetches one
    /// ahead).
    ///
    /// A teacher holds two at most: with a third, the one they took first is given back. The lease of a teacher who
    /// has never answered lasts a minute at most, and when nothing is free it may go to the asking teacher, who then
    /// holds nothing yet (`yielding` has the rule).
    pub async fn lease(&self, run: &str, teacher: i64, except: &[i64], ttl: time::Duration) -> Result<Option<Leased>> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.steady_now();
        let answered: Option<bool> = sqlx::query_scalar("SELECT answered FROM teachers WHERE id = ?")
            .bind(teacher)
            .fetch_optional(&mut *tx)
            .await?;
        let answered = answered.ok_or(StoreError::NotFound("the teacher"))?;
        self.visitors().note(run, teacher, now);
        let held: Vec<i64> = sqlx::query_scalar(
            "SELECT executions.id FROM leases CROSS JOIN executions ON executions.id = leases.execution
             WHERE leases.teacher = ?1 AND leases.renewed_at <= ?2 AND leases.expires_at > ?2
                 AND executions.run = ?3 AND executions.state = 'open'
             ORDER BY leases.taken_at, executions.id",
        )
        .bind(teacher)
        .bind(now)
        .bind(run)
        .fetch_all(&mut *tx)
        .await?;
        let found = match held.iter().find(|id| !except.contains(id)) {
            Some(&held) => Some(held),
            None => match free(&mut tx, run, teacher, except, now).await? {
                Some(free) => Some(free),
                None if held.is_empty() => make_way(&mut tx, run, teacher, answered, except, now).await?,
                None => None,
            },
        };
        let Some(id) = found else { return Ok(None) };
        if !held.contains(&id) {
            for &first in held.iter().take((held.len() + 1).saturating_sub(HELD)) {
                give_back(&mut tx, first, teacher).await?;
            }
        }
        let ttl = length_of_lease(ttl, answered);
        sqlx::query(
            "INSERT INTO leases (execution, teacher, taken_at, renewed_at, expires_at) VALUES (?1, ?2, ?3, ?3, ?4)
             ON CONFLICT (execution, teacher) DO UPDATE SET
                 taken_at = iif(renewed_at <= ?3 AND expires_at > ?3, taken_at, ?3), renewed_at = ?3, expires_at = ?4",
        )
        .bind(id)
        .bind(teacher)
        .bind(now)
        .bind(end_of_lease(now, ttl))
        .execute(&mut *tx)
        .await?;
        sqlx::query("UPDATE executions SET shown = 1 WHERE id = ? AND shown = 0").bind(id).execute(&mut *tx).await?;
        let row: LeasedRow = sqlx::query_as(
            "SELECT executions.episode, body.view,
                 iif(runs.config ->> '$.pool.show_request' IS 1, executions.request, NULL) AS request
             FROM executions
             CROSS JOIN execution_bodies AS body ON body.execution = executions.id
             CROSS JOIN runs ON runs.id = executions.run
             WHERE executions.id = ?",
        )
        .bind(id)
        .fetch_one(&mut *tx)
        .await?;
        tx.commit().await?;
        let LeasedRow { episode, view, request } = row;
        let view = from_json("an execution's view", &view)?;
        let expires_at = from_nanos(end_of_lease(self.now(), ttl));
        Ok(Some(Leased { execution: id, episode: from_int(episode), view, request, expires_at }))
    }

    /// Extends a lease (the page's heartbeat). A lease that ran out is taken up again when nobody else has the
    /// execution, and the teacher does not hold two others meanwhile.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when somebody else has it now, it is done, or the lease was given back.
    pub async fn renew(&self, execution: i64, teacher: i64, ttl: time::Duration) -> Result<OffsetDateTime> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.steady_now();
        let holding: Option<Holding> = sqlx::query_as(
            "SELECT mine.renewed_at <= ?3 AND mine.expires_at > ?3 AS live, mine.expires_at = 0 AS given_back,
                 executions.state = 'done' AS done, teachers.answered,
                 executions.given + (SELECT count(*) FROM leases
                     WHERE leases.execution = ?1 AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                         AND leases.teacher <> ?2) < executions.wanted AS room,
                 (SELECT count(*) FROM leases CROSS JOIN executions AS other ON other.id = leases.execution
                     WHERE leases.teacher = ?2 AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                         AND leases.execution <> ?1 AND other.run = executions.run AND other.state = 'open') AS others
             FROM executions
             CROSS JOIN leases AS mine ON mine.execution = executions.id
             CROSS JOIN teachers ON teachers.id = mine.teacher
             WHERE executions.id = ?1 AND mine.teacher = ?2",
        )
        .bind(execution)
        .bind(teacher)
        .bind(now)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(holding) = holding else { return Err(StoreError::LeaseLost) };
        let again = holding.room && !holding.given_back && from_int(holding.others) < HELD as u64;
        if holding.done || !(holding.live || again) {
            return Err(StoreError::LeaseLost);
        }
        let ttl = length_of_lease(ttl, holding.answered);
        sqlx::query(
            "UPDATE leases SET taken_at = iif(renewed_at <= ?1 AND expires_at > ?1, taken_at, ?1), renewed_at = ?1,
                 expires_at = ?2
             WHERE execution = ?3 AND teacher = ?4",
        )
        .bind(now)
        .bind(end_of_lease(now, ttl))
        .bind(execution)
        .bind(teacher)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(from_nanos(end_of_lease(self.now(), ttl)))
    }

    /// Gives a lease back at once (the page closed). Harmless when there is none. What was typed meanwhile may still
    /// be sent.
    pub async fn release(&self, execution: i64, teacher: i64) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        give_back(&mut tx, execution, teacher).await?;
        Ok(tx.commit().await?)
    }
}

/// Ends a lease; that the teacher had the execution stays known.
async fn give_back(tx: &mut Transaction<'_, Sqlite>, execution: i64, teacher: i64) -> Result<()> {
    sqlx::query("UPDATE leases SET expires_at = 0 WHERE execution = ? AND teacher = ?")
        .bind(execution)
        .bind(teacher)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The first open execution with a place for the teacher.
async fn free(
    tx: &mut Transaction<'_, Sqlite>,
    run: &str,
    teacher: i64,
    except: &[i64],
    now: i64,
) -> Result<Option<i64>> {
    let free = sqlx::query_scalar(
        "SELECT executions.id FROM executions
         WHERE executions.run = ?3 AND executions.state = 'open'
             AND executions.id NOT IN (SELECT value FROM json_each(?4))
             AND NOT EXISTS (SELECT 1 FROM answers
                 WHERE answers.execution = executions.id AND answers.teacher = ?1
                     AND answers.withdrawn_at IS NULL)
             AND executions.given + (SELECT count(*) FROM leases
                 WHERE leases.execution = executions.id AND leases.renewed_at <= ?2 AND leases.expires_at > ?2
                     AND leases.teacher <> ?1) < executions.wanted
         ORDER BY executions.policy_update DESC, executions.id LIMIT 1",
    )
    .bind(teacher)
    .bind(now)
    .bind(run)
    .bind(key_list(except))
    .fetch_optional(&mut **tx)
    .await?;
    Ok(free)
}

/// Ends the lease of a newcomer who has to give way to the asking teacher. The execution that this frees.
async fn make_way(
    tx: &mut Transaction<'_, Sqlite>,
    run: &str,
    teacher: i64,
    answered: bool,
    except: &[i64],
    now: i64,
) -> Result<Option<i64>> {
    let leases: Vec<Newcomers> = sqlx::query_as(
        "SELECT leases.execution, leases.teacher, leases.taken_at,
             executions.id NOT IN (SELECT value FROM json_each(?4))
             AND NOT EXISTS (SELECT 1 FROM answers
                 WHERE answers.execution = executions.id AND answers.teacher = ?1
                     AND answers.withdrawn_at IS NULL)
             AND executions.given + (SELECT count(*) FROM leases AS other
                 WHERE other.execution = executions.id AND other.renewed_at <= ?2 AND other.expires_at > ?2
                     AND other.teacher NOT IN (?1, leases.teacher)) < executions.wanted AS fits
         FROM executions
         CROSS JOIN leases ON leases.execution = executions.id
         CROSS JOIN teachers AS holder ON holder.id = leases.teacher
         WHERE executions.run = ?3 AND executions.state = 'open' AND leases.teacher <> ?1
             AND leases.renewed_at <= ?2 AND leases.expires_at > ?2 AND holder.answered = 0",
    )
    .bind(teacher)
    .bind(now)
    .bind(run)
    .bind(key_list(except))
    .fetch_all(&mut **tx)
    .await?;
    let Some((execution, holder)) = yielding(leases, answered, now) else { return Ok(None) };
    // As if its time were over (and for good, should the clock go back): the page takes it up again when it is free.
    sqlx::query("UPDATE leases SET expires_at = renewed_at WHERE execution = ? AND teacher = ?")
        .bind(execution)
        .bind(holder)
        .execute(&mut **tx)
        .await?;
    Ok(Some(execution))
}

/// Which lease of a newcomer, somebody who has never answered, goes to a teacher who asks, holds nothing and finds
/// nothing free:
///
/// 1. what newcomers fetched ahead, since nobody looks at it;
/// 2. what newcomers have looked at for half a minute, when the asking teacher has answered before, or newcomers hold
///    many;
/// 3. when both is so, what newcomers look at, without that wait.
///
/// Of these, what was taken first. Cookies are cheap: without this rule, who never answers could hold everything by
/// asking with many of them.
fn yielding(mut leases: Vec<Newcomers>, answered: bool, now: i64) -> Option<(i64, i64)> {
    let crowd = leases.len() >= CROWD;
    leases.sort_by_key(|lease| (lease.taken_at, lease.execution));
    let mut looking = HashSet::new();
    let (looked_at, ahead): (Vec<_>, Vec<_>) = leases.into_iter().partition(|lease| looking.insert(lease.teacher));
    let long = |lease: &Newcomers| now.saturating_sub(lease.taken_at) >= NEWCOMERS_LOOK;
    let gives_way = |lease: &Newcomers| (answered && crowd) || ((answered || crowd) && long(lease));
    let ahead = ahead.into_iter().find(|lease| lease.fits);
    let found = ahead.or_else(|| looked_at.into_iter().find(|lease| lease.fits && gives_way(lease)))?;
    Some((found.execution, found.teacher))
}

/// How long a lease lasts that may last `ttl`.
pub(super) fn length_of_lease(ttl: time::Duration, answered: bool) -> time::Duration {
    if answered { ttl } else { ttl.min(NEWCOMERS_LEASE) }
}

/// When a lease taken or renewed at `now` ends.
pub(super) fn end_of_lease(now: i64, ttl: time::Duration) -> i64 {
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
