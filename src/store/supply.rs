//! What the trainer has to know to keep the pool filled: what became of what was offered.

use super::connection::{Durability, from_int, to_int};
use super::error::Result;
use super::{Store, Supply};

impl Store {
    /// Answers of people that came after the answer `after` (0: none of them counts), and the newest of all.
    pub async fn supply(&self, run: &str, after: i64) -> Result<Supply> {
        if after == 0 {
            let newest: Option<i64> = sqlx::query_scalar("SELECT max(id) FROM answers WHERE run = ?")
                .bind(run)
                .fetch_one(self.readers())
                .await?;
            return Ok(Supply { answered: 0, newest: newest.unwrap_or(0) });
        }
        let (answered, newest): (i64, Option<i64>) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE teacher IS NOT NULL AND kind <> 'skipped' AND supersedes IS NULL), max(id)
             FROM answers WHERE run = ? AND id > ?",
        )
        .bind(run)
        .bind(after)
        .fetch_one(self.readers())
        .await?;
        Ok(Supply { answered: from_int(answered), newest: newest.unwrap_or(after) })
    }

    /// Takes the oldest executions out of the queue that somebody has skipped and nobody is at, but for the newest `keep`
    /// of them. How many.
    pub async fn retire_skipped(&self, run: &str, keep: u64) -> Result<u64> {
        let keep = to_int("the number", keep)?;
        let now = self.now();
        let beyond: Option<i64> = sqlx::query_scalar(
            "SELECT id FROM executions WHERE run = ? AND state = 'open' AND touched ORDER BY id DESC LIMIT 1 OFFSET ?",
        )
        .bind(run)
        .bind(keep)
        .fetch_optional(self.readers())
        .await?;
        let Some(beyond) = beyond else { return Ok(0) };
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let retired = sqlx::query(
            "UPDATE executions SET state = 'retired'
             WHERE run = ?1 AND state = 'open' AND touched AND given = 0 AND id <= ?2 AND NOT EXISTS
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id AND leases.expires_at > ?3)",
        )
        .bind(run)
        .bind(beyond)
        .bind(now)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(retired.rows_affected())
    }

    /// How many executions the answers describe of which no update before `update` has used a description.
    pub async fn newly_answered(&self, update: u64, answers: &[i64]) -> Result<u64> {
        let count: i64 = sqlx::query_scalar(
            "SELECT count(DISTINCT mine.execution) FROM answers AS mine
             WHERE mine.id IN (SELECT value FROM json_each(?1)) AND mine.kind = 'described' AND NOT EXISTS
                 (SELECT 1 FROM answers AS earlier
                  WHERE earlier.execution = mine.execution AND earlier.kind = 'described' AND earlier.used_in_update < ?2)",
        )
        .bind(super::connection::key_list(answers))
        .bind(to_int("the update", update)?)
        .fetch_one(self.readers())
        .await?;
        Ok(from_int(count))
    }

    /// Executions of a run of which updates up to `update` have used a description by people. Reads them all: for runs that an
    /// earlier version began.
    pub async fn answered_by(&self, run: &str, update: u64) -> Result<u64> {
        let count: i64 = sqlx::query_scalar(
            "SELECT count(DISTINCT execution) FROM answers
             WHERE run = ? AND used_in_update <= ? AND used_position IS NOT NULL AND kind = 'described'",
        )
        .bind(run)
        .bind(to_int("the update", update)?)
        .fetch_one(self.readers())
        .await?;
        Ok(from_int(count))
    }
}
