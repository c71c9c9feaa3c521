//! Executions of agents that live in other programs. The store numbers their episodes, since several requests may come at once.

use super::connection::Durability;
use super::convert::{from_int, key_list, to_int};
use super::error::{Missing, Result, StoreError};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{NewExecution, Store, overlap, pool};
use crate::ids::{ExecutionId, RunId};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

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
    /// The number of people who should describe it.
    pub wanted: u32,
}

/// An execution from a file.
#[derive(Clone, Debug)]
pub struct ImportedEpisode {
    /// By which its row is recognised when the file comes again.
    pub key: String,
    /// SHA-256 of what the row says.
    pub digest: Vec<u8>,
    /// The execution.
    pub execution: OutsideExecution,
}

/// The counts of a file of episodes that came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpisodesImported {
    /// Rows that are stored now.
    pub stored: u64,
    /// Rows that came in before.
    pub known: u64,
    /// Rows for which there is no room until people have described others.
    pub left: u64,
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
        let open = waiting(&mut tx, run).await?;
        if open + executions.len() as u64 > MOST_OPEN {
            return Err(StoreError::Conflict(format!(
                "{open} executions of this run wait for people, and at most {MOST_OPEN} may; post more when some are described"
            )));
        }
        let posted = offer_all(&mut tx, run, executions, self.now()).await?;
        pool::retire_oldest_skipped(&mut tx, run, self.monotonic_now()).await?;
        tx.commit().await?;
        Ok(posted)
    }

    /// The rows among `keys` that came into a run before, with the SHA-256 of what they said.
    pub async fn imported_episodes(&self, run: &RunId, keys: &[&str]) -> Result<HashMap<String, Vec<u8>>> {
        let keys = key_list(keys);
        row! {
            struct Row {
                key: String,
                digest: Vec<u8>,
            }
        }
        let known = query_as!(
            Row,
            r#"SELECT key AS "key!", digest AS "digest!" FROM imported_episodes
               WHERE run = ?1 AND key IN (SELECT value FROM json_each(?2))"#,
            run,
            keys,
        );
        Ok(known.fetch_all(self.readers()).await?.into_iter().map(|row| (row.key, row.digest)).collect())
    }

    /// Adds the executions of a file to the pool of a run, as many as may wait, in their order. Rows that came in before are passed
    /// over.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when a row came in before and said something else; nothing is stored then.
    pub async fn import_episodes(&self, run: &RunId, episodes: &[ImportedEpisode]) -> Result<EpisodesImported> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let room = MOST_OPEN.saturating_sub(waiting(&mut tx, run).await?);
        let mut imported = EpisodesImported::default();
        let mut new = Vec::new();
        for episode in episodes {
            let known = query_scalar!(
                r#"SELECT digest AS "digest!" FROM imported_episodes WHERE run = ? AND key = ?"#,
                run,
                episode.key,
            );
            match known.fetch_optional(&mut tx).await? {
                Some(digest) if digest == episode.digest => imported.known += 1,
                Some(_) => {
                    return Err(StoreError::Conflict(format!(
                        "the row {} came in before and said something else",
                        episode.key
                    )));
                }
                None if new.len() as u64 >= room => imported.left += 1,
                None => new.push(episode),
            }
        }
        let executions: Vec<OutsideExecution> = new.iter().map(|episode| episode.execution.clone()).collect();
        let posted = offer_all(&mut tx, run, &executions, self.now()).await?;
        for (episode, posted) in new.iter().zip(&posted) {
            let number = to_int("the episode", posted.episode)?;
            query!(
                "INSERT INTO imported_episodes (run, key, digest, episode) VALUES (?, ?, ?, ?)",
                run,
                episode.key,
                episode.digest,
                number,
            )
            .execute(&mut tx)
            .await?;
        }
        pool::retire_oldest_skipped(&mut tx, run, self.monotonic_now()).await?;
        tx.commit().await?;
        imported.stored = posted.len() as u64;
        Ok(imported)
    }

    /// How many executions of a run people were or are asked about.
    pub async fn execution_count(&self, run: &RunId) -> Result<u64> {
        let count = query_scalar!(
            r#"SELECT count(*) AS "executions!: i64" FROM executions WHERE run = ? AND state <> 'withdrawn'"#,
            run
        );
        Ok(from_int(count.fetch_one(self.readers()).await?))
    }
}

/// The number of a run's executions that wait for people.
async fn waiting(tx: &mut Transaction<'_>, run: &RunId) -> Result<u64> {
    let open =
        query_scalar!(r#"SELECT count(*) AS "open!: i64" FROM executions WHERE run = ? AND state = 'open'"#, run);
    Ok(from_int(open.fetch_one(&mut *tx).await.or_missing("the run")?))
}

/// Adds executions to the pool of a run, with episodes numbered in their order.
async fn offer_all(
    tx: &mut Transaction<'_>,
    run: &RunId,
    executions: &[OutsideExecution],
    now: i64,
) -> Result<Vec<PostedExecution>> {
    let last = query_scalar!(
        r#"SELECT max(episode) AS "episode?: i64" FROM executions WHERE run = ? AND state <> 'withdrawn'"#,
        run
    );
    let first = last.fetch_one(&mut *tx).await?.map_or(1, |episode| from_int(episode) + 1);
    let study = overlap::open_study(tx, run).await?;
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
            reference: None,
            wanted: new.wanted,
        };
        let wanted = overlap::wanted(study.as_ref(), episode, new.wanted);
        let key = pool::offer_one(tx, run, &execution, wanted, now).await?;
        let execution = key.ok_or_else(|| StoreError::Conflict(format!("episode {episode} is there already")))?;
        posted.push(PostedExecution { execution, episode });
    }
    Ok(posted)
}
