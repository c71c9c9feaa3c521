//! Checkpoints as they are listed.

use super::Store;
use super::connection::Durability;
use super::convert::{from_int, to_int};
use super::error::{Missing, Result};
use super::points::rate;
use super::sql::{query, query_as, row};
use crate::ids::RunId;
use crate::run::CheckpointRow;

/// Checkpoints that are listed at most, beside the best.
const LISTED: u32 = 100;

row! {
    struct Row {
        name: String,
        update_no: i64,
        episodes: i64,
        descriptions: i64,
        validation: Option<f64>,
        validation_n: Option<i64>,
        validation_low: Option<f64>,
        validation_high: Option<f64>,
        bytes: i64,
        written_at: String,
        best: bool,
    }
}

impl From<Row> for CheckpointRow {
    fn from(row: Row) -> Self {
        CheckpointRow {
            name: row.name,
            update: from_int(row.update_no),
            episodes: from_int(row.episodes),
            descriptions: from_int(row.descriptions),
            validation: rate(row.validation, row.validation_n, row.validation_low, row.validation_high),
            bytes: from_int(row.bytes),
            written_at: row.written_at,
            best: row.best,
        }
    }
}

/// Selects [`Row`]s. The arguments are the rest of the statement and its parameters.
macro_rules! select_checkpoints {
    ($rest:literal, $($parameter:expr),+) => {
        query_as!(
            Row,
            r#"SELECT name AS "name!", update_no AS "update_no!", episodes AS "episodes!",
                   descriptions AS "descriptions!", validation, validation_n, validation_low, validation_high,
                   bytes AS "bytes!", written_at AS "written_at!", best AS "best!: bool"
               FROM checkpoints "# + $rest,
            $($parameter),+
        )
    };
}

impl Store {
    /// Remembers a checkpoint (same name: replaced). A best one takes the mark from the one before it.
    pub async fn record_checkpoint(&self, run: &RunId, row: &CheckpointRow) -> Result<()> {
        let update = to_int("the update", row.update)?;
        let episodes = to_int("the number of episodes", row.episodes)?;
        let descriptions = to_int("the number of descriptions", row.descriptions)?;
        let bytes = to_int("the size", row.bytes)?;
        let validation = row.validation.map(|rate| rate.value);
        let validation_n = row.validation.map(|rate| to_int("the sample", rate.n)).transpose()?;
        let validation_low = row.validation.map(|rate| rate.low);
        let validation_high = row.validation.map(|rate| rate.high);
        // FULL: with it everything that the trainer recorded before reaches the disk as well, as the weights have.
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if row.best {
            query!("UPDATE checkpoints INDEXED BY checkpoints_best SET best = 0 WHERE run = ? AND best = 1", run)
                .execute(&mut tx)
                .await?;
        }
        query!(
            "INSERT INTO checkpoints (run, name, update_no, episodes, descriptions, validation,
                 validation_n, validation_low, validation_high, bytes, written_at, best)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (run, name) DO UPDATE SET update_no = excluded.update_no, episodes = excluded.episodes,
                 descriptions = excluded.descriptions, validation = excluded.validation,
                 validation_n = excluded.validation_n, validation_low = excluded.validation_low,
                 validation_high = excluded.validation_high, bytes = excluded.bytes,
                 written_at = excluded.written_at, best = excluded.best",
            run,
            row.name,
            update,
            episodes,
            descriptions,
            validation,
            validation_n,
            validation_low,
            validation_high,
            bytes,
            row.written_at,
            row.best,
        )
        .execute(&mut tx)
        .await
        .or_missing("the run")?;
        Ok(tx.commit().await?)
    }

    /// Checkpoints, newest first: the newest hundred, and the best if it is older.
    pub async fn checkpoints(&self, run: &RunId) -> Result<Vec<CheckpointRow>> {
        let mut rows = select_checkpoints!("WHERE run = ? ORDER BY update_no DESC, name DESC LIMIT ?", run, LISTED)
            .fetch_all(self.readers())
            .await?;
        if !rows.iter().any(|row| row.best) {
            let best = select_checkpoints!("INDEXED BY checkpoints_best WHERE run = ? AND best = 1 LIMIT 1", run);
            rows.extend(best.fetch_optional(self.readers()).await?);
        }
        Ok(rows.into_iter().map(CheckpointRow::from).collect())
    }
}
