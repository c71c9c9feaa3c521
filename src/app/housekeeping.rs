//! The work that the server does from time to time: it takes up runs that commands made, and empties the trash of what has been in it for 30 days.

use super::manager::Manager;
use super::presets::failed;
use crate::ids::RunId;
use crate::launch::LaunchError;
use crate::store::{MadeBy, TRASH_KEEPS};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

/// How often the data folder and the trash are looked at.
const EVERY: Duration = Duration::from_secs(30);

/// Keeps house until the server ends.
pub(super) async fn keep(manager: Arc<Manager>, shutdown: CancellationToken) {
    let mut seen = BTreeMap::new();
    loop {
        manager.take_up_found_runs(&mut seen).await;
        manager.host_new_outside_runs().await;
        manager.empty_trash(OffsetDateTime::now_utc() - TRASH_KEEPS).await;
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

impl Manager {
    /// Removes for good what was put into the trash before a time.
    pub(super) async fn empty_trash(&self, before: OffsetDateTime) {
        let expired = match self.store().trashed_before(before).await {
            Ok(expired) => expired,
            Err(error) => return tracing::warn!(%error, "the trash could not be looked through"),
        };
        for run in expired {
            match self.remove_for_good(&run, &|_, _| {}).await {
                Ok(()) => tracing::info!("the run {run} was in the trash for 30 days and is removed"),
                Err(error) => tracing::warn!("the run {run} could not be removed from the trash: {error:#}"),
            }
        }
    }

    /// Removes a run of the trash before its time. `told` hears how many of how many rows are removed.
    ///
    /// # Errors
    /// When it is not in the trash.
    pub(super) async fn remove_now(&self, run: &RunId, told: &(dyn Fn(u64, u64) + Sync)) -> Result<(), LaunchError> {
        let label = self.store().run_label(run).await?;
        if label.trashed_at.is_none() {
            return Err(LaunchError::State("The run is not in the trash, so it is not removed.".to_owned()));
        }
        self.remove_for_good(run, told).await.map_err(failed)?;
        tracing::info!("the run {run} was removed from the trash before its time");
        Ok(())
    }

    /// Removes a run of the trash with its files. The files go first: a folder without rows would be taken for the run of a
    /// command.
    async fn remove_for_good(&self, run: &RunId, told: &(dyn Fn(u64, u64) + Sync)) -> anyhow::Result<()> {
        let of_reproduce = self.store().run_label(run).await?.made_by == MadeBy::Reproduce;
        if !of_reproduce {
            let folder = self.folder_of(run).await.map_err(|error| anyhow::anyhow!("{error}"))?;
            let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await?;
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            if let Some(copies) = self.copies() {
                copies.store().remove(run).await?;
            }
        }
        Ok(self.store().purge_run_telling(run, of_reproduce, told).await?)
    }
}
