//! Executions that somebody has passed over and that wait for others.

use super::error::Result;
use sqlx::{Sqlite, Transaction};

/// How many of them a run keeps. Everybody who asks for an execution passes through them, so they must not become more
/// with every skip.
const KEPT: u32 = 400;

/// Retires all but the newest that were skipped (or answered by the first of several people), unless somebody is at
/// them by the clock of leases. Late answers are still taken.
pub(super) async fn retire_oldest(tx: &mut Transaction<'_, Sqlite>, run: &str, now: i64) -> Result<()> {
    sqlx::query(
        "UPDATE executions SET state = 'retired'
         WHERE run = ?1 AND state = 'open' AND touched = 1
             AND id <= (SELECT id FROM executions WHERE run = ?1 AND state = 'open' AND touched = 1
                 ORDER BY id DESC LIMIT 1 OFFSET ?2)
             AND NOT EXISTS
                 (SELECT 1 FROM leases WHERE leases.execution = executions.id
                      AND leases.renewed_at <= ?3 AND leases.expires_at > ?3)",
    )
    .bind(run)
    .bind(KEPT)
    .bind(now)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
