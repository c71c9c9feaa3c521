//! The trainer's access to the store: simulated episodes and updates are gathered and written in batches; everything else
//! is one call, which the trainer's thread waits for.

use super::rollouts::target_size;
use crate::ids::RunId;
use crate::run::EpisodeRow;
use crate::store::{NewExecution, Store, UpdateRecord};

/// Time between two writes of gathered rows.
const FLUSH_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Writes of one run.
pub(super) struct StoreWriter {
    store: Store,
    runtime: tokio::runtime::Handle,
    run: RunId,
    episodes: Vec<EpisodeRow>,
    updates: Vec<UpdateRecord>,
    flushed: std::time::Instant,
}

impl StoreWriter {
    /// A writer for `run`.
    pub(super) fn new(store: Store, runtime: tokio::runtime::Handle, run: RunId) -> Self {
        Self { store, runtime, run, episodes: Vec::new(), updates: Vec::new(), flushed: std::time::Instant::now() }
    }

    /// The store behind.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The runtime that store calls run on.
    pub(super) fn runtime(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    /// Waits for a store call from the trainer's thread.
    pub(super) fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Gathers a simulated episode.
    pub(super) fn add_episode(&mut self, row: EpisodeRow) {
        self.episodes.push(row);
    }

    /// Gathers an update that used nobody's typed answer.
    pub(super) fn add_update(&mut self, record: UpdateRecord) {
        self.updates.push(record);
    }

    /// Writes the gathered rows if a second has passed.
    pub(super) fn flush_if_due(&mut self) -> anyhow::Result<()> {
        if self.flushed.elapsed() < FLUSH_INTERVAL { Ok(()) } else { self.flush() }
    }

    /// Writes the gathered rows.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.flushed = std::time::Instant::now();
        if !self.episodes.is_empty() {
            self.wait(self.store.record_simulated(&self.run, &self.episodes))?;
            self.episodes.clear();
        }
        if !self.updates.is_empty() {
            self.wait(self.store.record_updates(&self.run, &self.updates))?;
            self.updates.clear();
        }
        Ok(())
    }

    /// Records an update that used typed answers, durably, after everything gathered before it.
    pub(super) fn record_human_update(&mut self, record: &UpdateRecord) -> anyhow::Result<()> {
        self.flush()?;
        Ok(self.wait(self.store.record_update(&self.run, record))?)
    }

    /// Takes executions of policies from before the update `oldest` out of the pool.
    pub(super) fn retire_stale(&self, oldest: u64) -> anyhow::Result<()> {
        self.wait(self.store.retire_stale(&self.run, oldest))?;
        Ok(())
    }

    /// Free places in a pool of this size.
    pub(super) fn free_places(&self, size: usize) -> anyhow::Result<usize> {
        let pool = self.wait(self.store.pool(&self.run))?;
        Ok(target_size(size, 0).saturating_sub(pool.open as usize))
    }

    /// Puts executions into the pool.
    pub(super) fn offer(&self, executions: &[NewExecution]) -> anyhow::Result<()> {
        if executions.is_empty() {
            return Ok(());
        }
        Ok(self.wait(self.store.offer(&self.run, executions))?)
    }
}
