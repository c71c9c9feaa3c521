//! Whether the database and a run's checkpoint belong together. They do after a kill; a database that was put back from
//! another time does not know of answers that the checkpoint has learnt from, or lacks updates in between.

use super::Store;
use super::convert::{from_int, to_int};
use super::error::Result;
use super::sql::{query_as, query_scalar, row};
use crate::ids::RunId;

impl Store {
    /// The newest update that is recorded for the run.
    pub async fn last_update(&self, run: &RunId) -> Result<Option<u64>> {
        let last = query_scalar!(r#"SELECT max(update_no) AS "last?: i64" FROM updates WHERE run = ?"#, run)
            .fetch_one(self.readers())
            .await?;
        Ok(last.map(from_int))
    }

    /// Why the run cannot go on from a checkpoint of `update` that has learnt from `people` descriptions by people, in
    /// plain sentences; `None` when it can.
    ///
    /// Missing records of simulated updates before the checkpoint are no reason: a power cut may take the last of
    /// them, and nothing is learnt twice by it. Answers of people are on disk before they are learnt from.
    pub async fn checkpoint_mismatch(&self, run: &RunId, update: u64, people: u64) -> Result<Option<String>> {
        let number = to_int("the update", update)?;
        let known = query_scalar!(
            r#"SELECT count(*) AS "known!: i64" FROM answers
               WHERE run = ? AND used_in_update <= ? AND used_position IS NOT NULL AND kind = 'described'"#,
            run,
            number,
        )
        .fetch_one(self.readers())
        .await?;
        // A run that continues another, or was found as a folder, had learned from answers before the store began to record it.
        let inherited = self.run_label(run).await?.inherited;
        let known = from_int(known) + inherited.people;
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
        row! {
            struct Row {
                count: i64,
                first: Option<i64>,
                last: Option<i64>,
            }
        }
        let after = query_as!(
            Row,
            r#"SELECT count(*) AS "count!: i64", min(update_no) AS "first?: i64", max(update_no) AS "last?: i64"
               FROM updates WHERE run = ? AND update_no > ?"#,
            run,
            number,
        )
        .fetch_one(self.readers())
        .await?;
        let (count, Some(first), Some(last)) = (after.count, after.first, after.last) else { return Ok(None) };
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

    /// Whether every update after the checkpoint's is recorded, and the checkpoint is not newer than the record. It needs
    /// only the number of the checkpoint's update, and serves database files that no store has open.
    pub(crate) async fn reaches_checkpoint(&self, run: &RunId, update: u64) -> Result<bool> {
        let inherited = self.run_label(run).await?.inherited.update;
        let newest = self.last_update(run).await?.unwrap_or(0).max(inherited);
        Ok(newest >= update && self.checkpoint_mismatch(run, update, 0).await?.is_none())
    }
}
