//! Executions of agents that live in other programs. The store numbers their episodes, since several requests may come at once.

use super::connection::Durability;
use super::convert::from_int;
use super::error::{Missing, Result, StoreError};
use super::{NewExecution, Store, overlap, pool};
use crate::ids::{ExecutionId, RunId};
use serde::Serialize;
use serde_json::Value;

/// Most executions of such a run that wait for people at once.
pub const MOST_OPEN: u64 = 1_000;

/// An execution that another program has made.
#[derive(Clone, Debug)]
pub struct OutsideExecution {
    /// The request that the agent was given.
    pub request: String,
    /// The view that people are shown.
    pub view: Value,
    /// One plain line for researchers.
    pub summary: String,
    /// Update of the policy that made it, as the program counts.
    pub update: u64,
    /// Whether it did what was asked.
    pub success: bool,
    /// How many people should describe it.
    pub wanted: u32,
}

/// An execution as it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PostedExecution {
    /// Key of the execution.
    pub execution: ExecutionId,
    /// Number of the episode in the run.
    pub episode: u64,
}

impl Store {
    /// Adds executions to the pool of a run, with episodes numbered in their order. All of them are stored, or none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when too many of the run wait already.
    pub async fn offer_outside(&self, run: &RunId, executions: &[OutsideExecution]) -> Result<Vec<PostedExecution>> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        let open = sqlx::query_scalar!(
            r#"SELECT count(*) AS "open!: i64" FROM executions WHERE run = ? AND state = 'open'"#,
            run
        );
        let open = from_int(open.fetch_one(&mut *tx).await.or_missing("the run")?);
        if open + executions.len() as u64 > MOST_OPEN {
            return Err(StoreError::Conflict(format!(
                "{open} executions of this run wait for people, and at most {MOST_OPEN} may; post more when some are described"
            )));
        }
        let last = sqlx::query_scalar!(
            r#"SELECT max(episode) AS "episode?: i64" FROM executions WHERE run = ? AND state <> 'withdrawn'"#,
            run
        );
        let first = last.fetch_one(&mut *tx).await?.map_or(1, |episode| from_int(episode) + 1);
        let study = overlap::open_study(&mut tx, run).await?;
        let mut posted = Vec::with_capacity(executions.len());
        for (episode, new) in (first..).zip(executions) {
            let execution = NewExecution {
                episode,
                update: new.update,
                request: new.request.clone(),
                trace: Value::Null,
                view: new.view.clone(),
                summary: new.summary.clone(),
                success: new.success,
                wanted: new.wanted,
            };
            let wanted = overlap::wanted(study.as_ref(), episode, new.wanted);
            let key = pool::offer_one(&mut tx, run, &execution, wanted, now).await?;
            let execution = key.ok_or_else(|| StoreError::Conflict(format!("episode {episode} is there already")))?;
            posted.push(PostedExecution { execution, episode });
        }
        pool::retire_oldest_skipped(&mut tx, run, self.monotonic_now()).await?;
        tx.commit().await?;
        Ok(posted)
    }

    /// How many executions of a run people were or are asked about.
    pub async fn execution_count(&self, run: &RunId) -> Result<u64> {
        let count = sqlx::query_scalar!(
            r#"SELECT count(*) AS "executions!: i64" FROM executions WHERE run = ? AND state <> 'withdrawn'"#,
            run
        );
        Ok(from_int(count.fetch_one(self.readers()).await?))
    }
}
