//! Leases: which teacher is at which execution, until when.

use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, key_list};
use super::error::{Result, StoreError};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{Leased, Store};
use crate::ids::{ExecutionId, RunId, TeacherId};
use std::collections::HashSet;
use time::OffsetDateTime;

/// How many executions of a run a teacher may hold: the one on the page, and the one fetched ahead.
pub(super) const HELD: u32 = 2;

/// Longest lease of a teacher who has never answered. Their page renews it while somebody is at it.
const NEWCOMERS_LEASE: time::Duration = time::Duration::seconds(60);

/// How long a newcomer may look at an execution, in nanoseconds, before it goes to another person when nothing else is
/// free.
const NEWCOMERS_LOOK: i64 = 30_000_000_000;

/// How many executions of a run newcomers may hold between them before they give way without that wait to people who
/// have answered.
const CROWD: usize = 8;

row! {
    /// A lease of a teacher who has never answered.
    struct NewcomerLease {
        execution: ExecutionId,
        teacher: TeacherId,
        taken_at: i64,
        /// Whether the asking teacher could have the execution in their place.
        fits: bool,
    }
}

impl Store {
    /// Gives the teacher an execution: one they hold already (not in `except`; its lease is extended), else an open
    /// one (first those that others have answered, then newest policy first, then the one offered first); never one they answered or skipped, never more teachers
    /// at it than it wants. `None` when there is none. `except`: executions the page has already (it fetches one
    /// ahead).
    ///
    /// A teacher holds two at most: with a third, the one they took first is given back. The lease of a teacher who
    /// has never answered lasts a minute at most, and when nothing is free it may go to the asking teacher, who then
    /// holds nothing yet (`yielding` has the rule).
    pub async fn lease(
        &self,
        run: &RunId,
        teacher: TeacherId,
        except: &[ExecutionId],
        ttl: time::Duration,
    ) -> Result<Option<Leased>> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.monotonic_now();
        let answered = query_scalar!(r#"SELECT answered AS "answered: bool" FROM teachers WHERE id = ?"#, teacher)
            .fetch_optional(&mut tx)
            .await?
            .ok_or(StoreError::NotFound("the teacher"))?;
        self.visitors().note(run, teacher, now);
        let held = query_scalar!(
            r#"SELECT executions.id AS "id!: ExecutionId"
               FROM leases CROSS JOIN executions ON executions.id = leases.execution
               WHERE leases.teacher = ?1 AND leases.renewed_at <= ?2 AND leases.expires_at > ?2
                   AND executions.run = ?3 AND executions.state = 'open'
               ORDER BY leases.taken_at, executions.id"#,
            teacher,
            now,
            run,
        )
        .fetch_all(&mut tx)
        .await?;
        let found = match held.iter().find(|id| !except.contains(id)) {
            Some(&held) => Some(held),
            None => match first_free(&mut tx, run, teacher, except, now).await? {
                Some(free) => Some(free),
                None if held.is_empty() => make_way(&mut tx, run, teacher, answered, except, now).await?,
                None => None,
            },
        };
        let Some(id) = found else { return Ok(None) };
        if !held.contains(&id) {
            for &first in held.iter().take((held.len() + 1).saturating_sub(HELD as usize)) {
                give_back(&mut tx, first, teacher).await?;
            }
        }
        let ttl = length_of_lease(ttl, answered);
        let expires_at = end_of_lease(now, ttl);
        query!(
            "INSERT INTO leases (execution, teacher, taken_at, renewed_at, expires_at) VALUES (?1, ?2, ?3, ?3, ?4)
             ON CONFLICT (execution, teacher) DO UPDATE SET
                 taken_at = iif(leases.renewed_at <= ?3 AND leases.expires_at > ?3, leases.taken_at, ?3), renewed_at = ?3, expires_at = ?4",
            id,
            teacher,
            now,
            expires_at,
        )
        .execute(&mut tx)
        .await?;
        query!("UPDATE executions SET shown = 1 WHERE id = ? AND shown = 0", id).execute(&mut tx).await?;
        row! {
            struct Row {
                episode: i64,
                view: String,
                request: Option<String>,
            }
        }
        let leased = query_as!(
            Row,
            r#"SELECT executions.episode AS "episode!", body.view AS "view!",
                   iif(runs.request_shown = 1 OR EXISTS (SELECT 1 FROM leases
                           WHERE leases.execution = executions.id AND leases.teacher = ?2 AND leases.revealed = 1),
                       executions.request, NULL) AS "request?: String"
               FROM executions
               CROSS JOIN execution_bodies AS body ON body.execution = executions.id
               CROSS JOIN runs ON runs.id = executions.run
               WHERE executions.id = ?1"#,
            id,
            teacher,
        )
        .fetch_one(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(Some(Leased {
            execution: id,
            episode: from_int(leased.episode),
            view: from_json("an execution's view", &leased.view)?,
            request: leased.request,
            expires_at: from_nanos(end_of_lease(self.now(), ttl)),
        }))
    }

    /// Extends a lease (the page's heartbeat). A lease that ran out is taken up again when nobody else has the
    /// execution, and the teacher does not hold two others meanwhile.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when somebody else has it now, it is done, or the lease was given back.
    pub async fn renew(
        &self,
        execution: ExecutionId,
        teacher: TeacherId,
        ttl: time::Duration,
    ) -> Result<OffsetDateTime> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.monotonic_now();
        row! {
            struct Row {
                live: bool,
                given_back: bool,
                done: bool,
                answered: bool,
                has_place: bool,
                others: i64,
            }
        }
        let holding = query_as!(
            Row,
            r#"SELECT mine.renewed_at <= ?3 AND mine.expires_at > ?3 AS "live!: bool",
                   mine.expires_at = 0 AS "given_back!: bool", executions.state = 'done' AS "done!: bool",
                   teachers.answered AS "answered!: bool",
                   executions.given + (SELECT count(*) FROM leases
                       WHERE leases.execution = ?1 AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                           AND leases.teacher <> ?2) < executions.wanted AS "has_place!: bool",
                   (SELECT count(*) FROM leases CROSS JOIN executions AS other ON other.id = leases.execution
                       WHERE leases.teacher = ?2 AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                           AND leases.execution <> ?1 AND other.run = executions.run AND other.state = 'open')
                       AS "others!: i64"
               FROM executions
               CROSS JOIN leases AS mine ON mine.execution = executions.id
               CROSS JOIN teachers ON teachers.id = mine.teacher
               WHERE executions.id = ?1 AND mine.teacher = ?2"#,
            execution,
            teacher,
            now,
        )
        .fetch_optional(&mut tx)
        .await?;
        let Some(holding) = holding else { return Err(StoreError::LeaseLost) };
        let again = holding.has_place && !holding.given_back && holding.others < HELD.into();
        if holding.done || !(holding.live || again) {
            return Err(StoreError::LeaseLost);
        }
        let ttl = length_of_lease(ttl, holding.answered);
        let expires_at = end_of_lease(now, ttl);
        query!(
            "UPDATE leases SET taken_at = iif(renewed_at <= ?1 AND expires_at > ?1, taken_at, ?1), renewed_at = ?1,
                 expires_at = ?2
             WHERE execution = ?3 AND teacher = ?4",
            now,
            expires_at,
            execution,
            teacher,
        )
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(from_nanos(end_of_lease(self.now(), ttl)))
    }

    /// [`StoreError::NeverYours`] unless the teacher has the execution or has had it.
    pub async fn held(&self, execution: ExecutionId, teacher: TeacherId) -> Result<()> {
        let held = query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM leases WHERE execution = ? AND teacher = ?) AS "held!: bool""#,
            execution,
            teacher,
        );
        if held.fetch_one(self.readers()).await? { Ok(()) } else { Err(StoreError::NeverYours) }
    }

    /// Gives a lease back at once (the page closed). Harmless when there is none. What was typed meanwhile may still
    /// be sent.
    pub async fn release(&self, execution: ExecutionId, teacher: TeacherId) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        give_back(&mut tx, execution, teacher).await?;
        Ok(tx.commit().await?)
    }
}

/// Ends a lease; that the teacher had the execution stays known.
async fn give_back(tx: &mut Transaction<'_>, execution: ExecutionId, teacher: TeacherId) -> Result<()> {
    query!("UPDATE leases SET expires_at = 0 WHERE execution = ? AND teacher = ?", execution, teacher)
        .execute(&mut *tx)
        .await?;
    Ok(())
}

/// The first open execution with a place for the teacher: of those that others have answered and that want more answers the one
/// offered first, else the newest policy's first. Without that order no execution would get the answers that overlap asks for.
async fn first_free(
    tx: &mut Transaction<'_>,
    run: &RunId,
    teacher: TeacherId,
    except: &[ExecutionId],
    now: i64,
) -> Result<Option<ExecutionId>> {
    let except = key_list(except);
    let answered = query_scalar!(
        r#"SELECT executions.id AS "id!: ExecutionId" FROM executions INDEXED BY executions_overlapping
           WHERE executions.run = ?3 AND executions.state = 'open' AND executions.given > 0
               AND executions.id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?4))
               AND NOT EXISTS (SELECT 1 FROM answers
                   WHERE answers.execution = executions.id AND answers.teacher = ?1
                       AND answers.withdrawn_at IS NULL)
               AND executions.given + (SELECT count(*) FROM leases
                   WHERE leases.execution = executions.id AND leases.renewed_at <= ?2 AND leases.expires_at > ?2
                       AND leases.teacher <> ?1) < executions.wanted
           ORDER BY executions.id LIMIT 1"#,
        teacher,
        now,
        run,
        except,
    );
    if let Some(found) = answered.fetch_optional(&mut *tx).await? {
        return Ok(Some(found));
    }
    let free = query_scalar!(
        r#"SELECT executions.id AS "id!: ExecutionId" FROM executions
           WHERE executions.run = ?3 AND executions.state = 'open'
               AND executions.id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?4))
               AND NOT EXISTS (SELECT 1 FROM answers
                   WHERE answers.execution = executions.id AND answers.teacher = ?1
                       AND answers.withdrawn_at IS NULL)
               AND executions.given + (SELECT count(*) FROM leases
                   WHERE leases.execution = executions.id AND leases.renewed_at <= ?2 AND leases.expires_at > ?2
                       AND leases.teacher <> ?1) < executions.wanted
           ORDER BY executions.policy_update DESC, executions.id LIMIT 1"#,
        teacher,
        now,
        run,
        except,
    );
    Ok(free.fetch_optional(&mut *tx).await?)
}

/// Ends the lease of a newcomer who has to give way to the asking teacher. The execution that this frees.
async fn make_way(
    tx: &mut Transaction<'_>,
    run: &RunId,
    teacher: TeacherId,
    answered: bool,
    except: &[ExecutionId],
    now: i64,
) -> Result<Option<ExecutionId>> {
    let except = key_list(except);
    let leases = query_as!(
        NewcomerLease,
        r#"SELECT leases.execution AS "execution!: ExecutionId", leases.teacher AS "teacher!: TeacherId",
               leases.taken_at AS "taken_at!",
               executions.id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?4))
               AND NOT EXISTS (SELECT 1 FROM answers
                   WHERE answers.execution = executions.id AND answers.teacher = ?1
                       AND answers.withdrawn_at IS NULL)
               AND executions.given + (SELECT count(*) FROM leases AS other
                   WHERE other.execution = executions.id AND other.renewed_at <= ?2 AND other.expires_at > ?2
                       AND other.teacher NOT IN (?1, leases.teacher)) < executions.wanted AS "fits!: bool"
           FROM executions
           CROSS JOIN leases ON leases.execution = executions.id
           CROSS JOIN teachers AS holder ON holder.id = leases.teacher
           WHERE executions.run = ?3 AND executions.state = 'open' AND leases.teacher <> ?1
               AND leases.renewed_at <= ?2 AND leases.expires_at > ?2 AND holder.answered = 0"#,
        teacher,
        now,
        run,
        except,
    )
    .fetch_all(&mut *tx)
    .await?;
    let Some((execution, holder)) = yielding(leases, answered, now) else { return Ok(None) };
    // As if its time were over (and for good, should the clock go back): the page takes it up again when it is free.
    query!("UPDATE leases SET expires_at = renewed_at WHERE execution = ? AND teacher = ?", execution, holder)
        .execute(&mut *tx)
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
fn yielding(mut leases: Vec<NewcomerLease>, answered: bool, now: i64) -> Option<(ExecutionId, TeacherId)> {
    let crowd = leases.len() >= CROWD;
    leases.sort_by_key(|lease| (lease.taken_at, lease.execution));
    let mut looking = HashSet::new();
    let (looked_at, ahead): (Vec<_>, Vec<_>) = leases.into_iter().partition(|lease| looking.insert(lease.teacher));
    let long = |lease: &NewcomerLease| now.saturating_sub(lease.taken_at) >= NEWCOMERS_LOOK;
    let gives_way = |lease: &NewcomerLease| (answered && crowd) || ((answered || crowd) && long(lease));
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
