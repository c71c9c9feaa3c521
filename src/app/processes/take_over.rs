//! Runs whose process is gone: another one that trains takes them up from the copies of their checkpoints.

use super::Processes;
use crate::ids::RunId;
use crate::registry::OUTSIDE;
use crate::store::{Run, StoreError};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks for runs that no process has. A run is taken up at the second look that finds it so: a process that is started
/// again within seconds keeps its runs.
const LOOK: Duration = Duration::from_secs(10);

impl Processes {
    /// Looks for runs that should go on and that no process has, and takes them up, until the server ends.
    pub(super) async fn take_over(self: Arc<Self>) {
        let mut seen: HashSet<RunId> = HashSet::new();
        let mut given_up: HashSet<RunId> = HashSet::new();
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let orphaned = match self.orphaned().await {
                Ok(orphaned) => orphaned,
                Err(error) => {
                    tracing::debug!(%error, "runs that no process has could not be looked for");
                    continue;
                }
            };
            for run in &orphaned {
                if !seen.contains(&run.id) || given_up.contains(&run.id) {
                    continue;
                }
                if let Err(error) = self.manager.take_over(run).await {
                    // Another process may have what is missing here.
                    tracing::error!("the run {}, which no process has, cannot go on here: {error:#}", run.id);
                    given_up.insert(run.id.clone());
                }
            }
            seen = orphaned.into_iter().map(|run| run.id).collect();
        }
    }

    /// The stored runs that should go on, and of which neither this process nor another one has a handle.
    async fn orphaned(&self) -> Result<Vec<Run>, StoreError> {
        let mut runs = self.manager.store().runs().await?;
        runs.retain(|run| run.active && run.family != OUTSIDE && self.runs.get(&run.id).is_none());
        Ok(runs)
    }
}
