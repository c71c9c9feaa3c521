//! Evaluations of checkpoints that somebody asked for on the page of a run.

use super::Store;
use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, to_int, to_json};
use super::error::{Missing, Result};
use super::sql::{query, query_as, row};
use crate::ids::RunId;
use crate::protocol::{Evaluation, Split};
use serde::Serialize;
use time::OffsetDateTime;

/// The success of a checkpoint on the tasks of a split.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct RunEvaluation {
    /// File name of the checkpoint.
    pub checkpoint: String,
    /// Update after which it was written.
    pub update: u64,
    /// Episodes by then.
    pub episodes: u64,
    /// The split.
    pub split: Split,
    /// Success and the family's figures.
    pub evaluation: Evaluation,
    /// When it was evaluated.
    #[serde(with = "time::serde::rfc3339")]
    pub evaluated_at: OffsetDateTime,
}

/// Evaluations of a run that are listed at most.
const LISTED: u32 = 50;

/// The stored word of a split.
fn word(split: Split) -> &'static str {
    match split {
        Split::Train => "train",
        Split::Validation => "validation",
        Split::Test => "test",
    }
}

impl Store {
    /// Remembers an evaluation; `evaluated_at` is taken as it is.
    pub async fn record_evaluation(&self, run: &RunId, row: &RunEvaluation) -> Result<()> {
        let update = to_int("the update", row.update)?;
        let episodes = to_int("the number of episodes", row.episodes)?;
        let (split, evaluation) = (word(row.split), to_json(&row.evaluation)?);
        let at = super::convert::to_nanos(row.evaluated_at);
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!(
            "INSERT INTO run_evaluations (run, checkpoint, update_no, episodes, split, evaluation, evaluated_at)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            run,
            row.checkpoint,
            update,
            episodes,
            split,
            evaluation,
            at,
        )
        .execute(&mut tx)
        .await
        .or_missing("the run")?;
        Ok(tx.commit().await?)
    }

    /// The evaluations of a run, newest first.
    pub async fn evaluations(&self, run: &RunId) -> Result<Vec<RunEvaluation>> {
        row! {
            struct Row {
                checkpoint: String,
                update_no: i64,
                episodes: i64,
                split: String,
                evaluation: String,
                evaluated_at: i64,
            }
        }
        let rows = query_as!(
            Row,
            "SELECT checkpoint, update_no, episodes, split, evaluation, evaluated_at FROM run_evaluations
             WHERE run = ? ORDER BY id DESC LIMIT ?",
            run,
            LISTED,
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(RunEvaluation {
                    checkpoint: row.checkpoint,
                    update: from_int(row.update_no),
                    episodes: from_int(row.episodes),
                    split: match row.split.as_str() {
                        "train" => Split::Train,
                        "validation" => Split::Validation,
                        _ => Split::Test,
                    },
                    evaluation: from_json("an evaluation", &row.evaluation)?,
                    evaluated_at: from_nanos(row.evaluated_at),
                })
            })
            .collect()
    }
}
