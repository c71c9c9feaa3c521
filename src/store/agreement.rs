//! Whether the database and a run's checkpoint belong together. They do after a kill; a database that was put back from
//! another time does not know of answers that the checkpoint has learnt from, or lacks updates in between.

use super::Store;
use super::connection::{from_int, to_int};
use super::error::Result;
use std::path::Path;

impl Store {
    /// The newest update that is recorded for the run.
    pub async fn last_update(&self, run: &str) -> Result<Option<u64>> {
        let last: Option<i64> = sqlx::query_scalar("SELECT max(update_no) FROM updates WHERE run = ?")
            .bind(run)
            .fetch_one(self.readers())
            .await?;
        Ok(last.map(from_int))
    }

    /// Why the run cannot go on from a checkpoint of `update` that has learnt from `people` descriptions by people, in
    /// plain sentences; `None` when it can.
    ///
    /// Missing records of simulated updates before the checkpoint are no reason: a power cut may take the last of
    /// them, and nothing is learnt twice by it. Records of what people said are on disk before they are learnt from.
    pub async fn disagreement(&self, run: &str, update: u64, people: u64) -> Result<Option<String>> {
        let number = to_int("the update", update)?;
        let known: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM answers
             WHERE run = ? AND used_in_update <= ? AND used_position IS NOT NULL AND kind = 'described'",
        )
        .bind(run)
        .bind(number)
        .fetch_one(self.readers())
        .await?;
        let known = from_int(known);
        if known < people {
            let last = self.last_update(run).await?.unwrap_or(0);
            return Ok(Some(format!(
                "the database is older than this run's checkpoint: the checkpoint of update {update} has learnt from \
                 {people} descriptions by people, and the database knows of {known} of them (its last update is \
                 {last}). Going on would learn some of them twice. Nothing was changed. Restore the database and the \
                 folder runs from one backup (`iliad restore`), or move the checkpoints of this run that are newer \
                 than update {last} out of its folder, so that it goes on from an older one"
            )));
        }
        let (count, first, last): (i64, Option<i64>, Option<i64>) = sqlx::query_as(
            "SELECT count(*), min(update_no), max(update_no) FROM updates WHERE run = ? AND update_no > ?",
        )
        .bind(run)
        .bind(number)
        .fetch_one(self.readers())
        .await?;
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        if first == number + 1 && last - first + 1 == count {
            return Ok(None);
        }
        Ok(Some(format!(
            "there is a hole in the database's record of updates: the checkpoint is of update {update}, and of the \
             updates from there to {last} only {count} are recorded, the first being {first}. Making them again \
             would give another agent than the one that was. Nothing was changed. Restore the database and the \
             folder runs from one backup (`iliad restore`)"
        )))
    }

    /// As [`Store::disagreement`], for a database file that no store has open, and by the checkpoint's update alone:
    /// whether every update after it is recorded, and it is not newer than the record.
    pub(crate) async fn follows(&self, run: &str, update: u64) -> Result<bool> {
        let newest = self.last_update(run).await?.unwrap_or(0);
        Ok(newest >= update && self.disagreement(run, update, 0).await?.is_none())
    }

    /// Writes everything committed so far into a new file at `to`, as one database without side files. Writers go on
    /// meanwhile.
    pub async fn copy_to(&self, to: &Path) -> Result<()> {
        // Only the reading side of the file is locked by it, and that never waits.
        let mut connection = self.single().await?;
        sqlx::query("VACUUM INTO ?").bind(to.to_string_lossy().into_owned()).execute(&mut *connection).await?;
        Ok(())
    }
}
