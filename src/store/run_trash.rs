//! The trash: runs that somebody deleted, which are kept for a while, can be put back, and are removed for good afterwards.

use super::Store;
use super::connection::Durability;
use super::convert::{from_int, to_nanos};
use super::error::{Missing, Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use crate::ids::{RunId, StudyId};
use serde::Serialize;
use std::time::Duration;
use time::OffsetDateTime;

/// How long the trash keeps a run.
pub const TRASH_KEEPS: Duration = Duration::from_secs(30 * 24 * 3600);

/// Rows of a large table that are removed by one statement.
const SLICE: i64 = 2_000;

/// The losses with a run, as far as the store knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RunLosses {
    /// Descriptions, demonstrations or ratings by people that stand.
    pub descriptions_by_people: u64,
    /// Everything that teachers said, simulated ones included.
    pub answers: u64,
    /// Points of its curves.
    pub points: u64,
    /// Studies that need it: it is an arm of them, or its agent decides in them.
    pub studies: Vec<StudyId>,
}

impl Store {
    /// Counts the rows that would be lost with a run.
    pub async fn run_losses(&self, run: &RunId) -> Result<RunLosses> {
        self.run(run).await?;
        row! {
            struct Row {
                described: Option<i64>,
                answers: Option<i64>,
                points: i64,
            }
        }
        let counts = query_as!(
            Row,
            r#"SELECT (SELECT sum(described) FROM teacher_counts WHERE run = ?1) AS "described?: i64",
                   (SELECT answers FROM run_counts WHERE run = ?1) AS "answers?: i64",
                   (SELECT count(*) FROM points WHERE run = ?1) AS "points!: i64""#,
            run,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(RunLosses {
            descriptions_by_people: from_int(counts.described.unwrap_or(0)),
            answers: from_int(counts.answers.unwrap_or(0)),
            points: from_int(counts.points),
            studies: self.studies_with(run).await?,
        })
    }

    /// The studies that need a run.
    async fn studies_with(&self, run: &RunId) -> Result<Vec<StudyId>> {
        let studies = query_scalar!(
            r#"SELECT study AS "study!: StudyId" FROM study_arms WHERE run = ?1
               UNION SELECT study FROM agreement_attempts WHERE agent = ?1
               UNION SELECT id FROM studies WHERE settings ->> '$.qualification.executor' = ?1"#,
            run,
        );
        Ok(studies.fetch_all(self.readers()).await?)
    }

    /// Puts a run into the trash. It is not resumed at the next start any more.
    pub async fn trash_run(&self, run: &RunId) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!(
            "INSERT INTO run_labels (run, trashed_at) VALUES (?1, ?2)
             ON CONFLICT (run) DO UPDATE SET trashed_at = coalesce(run_labels.trashed_at, ?2)",
            run,
            now,
        )
        .execute(&mut tx)
        .await
        .or_missing("the run")?;
        query!("UPDATE runs SET active = 0 WHERE id = ?", run).execute(&mut tx).await?;
        Ok(tx.commit().await?)
    }

    /// Takes a run out of the trash.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when it is not there, or its files are gone already.
    pub async fn restore_run(&self, run: &RunId) -> Result<()> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let restored = query!(
            "UPDATE run_labels SET trashed_at = NULL WHERE run = ? AND trashed_at IS NOT NULL AND purged_at IS NULL",
            run
        );
        if restored.execute(&mut tx).await?.rows_affected() == 0 {
            return Err(StoreError::NotFound("the run in the trash"));
        }
        Ok(tx.commit().await?)
    }

    /// The runs in the trash, the one that was deleted last first.
    pub async fn trashed_runs(&self) -> Result<Vec<RunId>> {
        let runs = query_scalar!(
            r#"SELECT run AS "run!: RunId" FROM run_labels
               WHERE trashed_at > 0 AND purged_at IS NULL ORDER BY trashed_at DESC, run"#
        );
        Ok(runs.fetch_all(self.readers()).await?)
    }

    /// The runs that were put into the trash before a time, and are still there.
    pub async fn trashed_before(&self, time: OffsetDateTime) -> Result<Vec<RunId>> {
        let time = to_nanos(time);
        let runs = query_scalar!(
            r#"SELECT run AS "run!: RunId" FROM run_labels
               WHERE trashed_at > 0 AND trashed_at < ? AND purged_at IS NULL ORDER BY trashed_at"#,
            time,
        );
        Ok(runs.fetch_all(self.readers()).await?)
    }

    /// Removes a run for good, after its files. Of a run that a study needs, and of one that another command made, the rows
    /// stay and are shown nowhere but in the study: what people said belongs to its dataset.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is not in the trash.
    pub async fn purge_run(&self, run: &RunId, keep_rows: bool) -> Result<()> {
        self.purge_run_telling(run, keep_rows, &|_, _| {}).await
    }

    /// Removes as [`Store::purge_run`] does, and tells `told` how many of how many rows are removed.
    ///
    /// # Errors
    /// As [`Store::purge_run`].
    pub async fn purge_run_telling(
        &self,
        run: &RunId,
        keep_rows: bool,
        told: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<()> {
        if self.run_label(run).await?.trashed_at.is_none() {
            return Err(StoreError::Conflict("only a run in the trash can be removed for good".to_owned()));
        }
        let (now, kept) = (self.now(), keep_rows || !self.studies_with(run).await?.is_empty());
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!("DELETE FROM checkpoints WHERE run = ?", run).execute(&mut tx).await?;
        if kept {
            query!("UPDATE run_labels SET purged_at = ? WHERE run = ?", now, run).execute(&mut tx).await?;
            return Ok(tx.commit().await?);
        }
        // The rows refer to each other in circles: what is left must fit when the transaction ends.
        tx.defer_foreign_keys().await?;
        query!("DELETE FROM reviews WHERE answer IN (SELECT id FROM answers WHERE run = ?)", run)
            .execute(&mut tx)
            .await?;
        query!("DELETE FROM adjudications WHERE execution IN (SELECT id FROM executions WHERE run = ?)", run)
            .execute(&mut tx)
            .await?;
        query!("DELETE FROM qualification_items WHERE execution IN (SELECT id FROM executions WHERE run = ?)", run)
            .execute(&mut tx)
            .await?;
        query!("DELETE FROM comprehension WHERE run = ?", run).execute(&mut tx).await?;
        let all = query_scalar!(
            r#"SELECT (SELECT count(*) FROM episodes WHERE run = ?1) + (SELECT count(*) FROM answers WHERE run = ?1)
                   AS "rows!: i64""#,
            run,
        );
        let (all, mut done) = (from_int(all.fetch_one(&mut tx).await?), 0);
        told(done, all);
        // The large tables go slice by slice, so that it can be told how far that is.
        macro_rules! remove_in_slices {
            ($statement:literal) => {
                loop {
                    let removed = query!($statement, run, SLICE).execute(&mut tx).await?.rows_affected();
                    if removed == 0 {
                        break;
                    }
                    done += removed;
                    told(done, all);
                }
            };
        }
        remove_in_slices!("DELETE FROM episodes WHERE id IN (SELECT id FROM episodes WHERE run = ? LIMIT ?)");
        remove_in_slices!("DELETE FROM answers WHERE id IN (SELECT id FROM answers WHERE run = ? LIMIT ?)");
        // These have no index by their run alone: a slice would look through all of them.
        query!("DELETE FROM executions WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM imported_episodes WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM updates WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM points WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM run_counts WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM teacher_counts WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM run_evaluations WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM run_labels WHERE run = ?", run).execute(&mut tx).await?;
        query!("DELETE FROM runs WHERE id = ?", run).execute(&mut tx).await?;
        Ok(tx.commit().await?)
    }
}
