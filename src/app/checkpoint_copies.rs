//! Copies of checkpoints, beside training: what a run has written goes to the object store, and a run whose folder is lost or older comes back
//! from there. Where processes share a database, a run is trained by the one that holds its claim.

use super::manager::{Manager, run_folder};
use crate::checkpoint_store::{CheckpointStore, CheckpointStoreError, Fetched};
use crate::ids::RunId;
use crate::launch::{CheckpointFile, CopyFigures, KeptCheckpoint, LaunchError};
use crate::run::{Command, Event};
use crate::store::{Alone, Bus, Run, StoreError};
use futures::StreamExt;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Between a checkpoint and its copy: the best one and the newest are often written one after the other.
const GATHERING: Duration = Duration::from_millis(200);

/// The pause after the first failure. It doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long a process waits for the claim of a run whose folder it has: the connection of a process that was killed may still be open.
const CLAIMING: Duration = Duration::from_secs(5);

/// How often the claims are looked at.
const GUARDING: Duration = Duration::from_secs(5);

/// A run whose newest checkpoint is not in the object store yet.
struct Due {
    folder: PathBuf,
    /// When it is copied.
    at: Instant,
    failures: u32,
    /// Counts the checkpoints, so that one that is written during a copy is not forgotten.
    written: u64,
}

/// A claim, and since when it is held.
struct Claim {
    alone: Alone,
    since: Instant,
}

/// The copies of a server's runs.
pub(super) struct Copies {
    store: CheckpointStore,
    /// The other processes, where the database is shared.
    bus: Option<Bus>,
    due: Mutex<BTreeMap<RunId, Due>>,
    wake: Notify,
    ending: AtomicBool,
    failures: AtomicU64,
    claims: tokio::sync::Mutex<HashMap<RunId, Claim>>,
    /// Runs that another process trains, whatever lies in the folder here.
    elsewhere: Mutex<HashSet<RunId>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copies {
    /// Copies to `store` from now on. To be called within a Tokio runtime.
    pub(super) fn begin(store: CheckpointStore, bus: Option<Bus>) -> Arc<Copies> {
        let copies = Arc::new(Copies {
            store,
            bus,
            due: Mutex::default(),
            wake: Notify::new(),
            ending: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            claims: tokio::sync::Mutex::default(),
            elsewhere: Mutex::default(),
            task: Mutex::default(),
        });
        *lock(&copies.task) = Some(tokio::spawn(copies.clone().work()));
        copies
    }

    /// The object store.
    pub(super) fn store(&self) -> &CheckpointStore {
        &self.store
    }

    /// Has a run copied soon. It waits for nothing, so that a trainer may call it.
    pub(super) fn mark(&self, run: &RunId, folder: &Path) {
        let fresh = || Due { folder: folder.to_owned(), at: Instant::now() + GATHERING, failures: 0, written: 0 };
        lock(&self.due).entry(run.clone()).or_insert_with(fresh).written += 1;
        self.wake.notify_one();
    }

    /// As [`Copies::mark`], for the events of a run.
    pub(super) fn hear(&self, run: &RunId, folder: &Path, event: &Event) {
        if matches!(event, Event::Checkpoint(_)) {
            self.mark(run, folder);
        }
    }

    /// Runs that wait for their copy, and copies that failed.
    pub(super) fn figures(&self) -> CopyFigures {
        CopyFigures { waiting: lock(&self.due).len() as u64, failures: self.failures.load(Ordering::Relaxed) }
    }

    /// Makes one copy after the other, until the server ends and none is due.
    async fn work(self: Arc<Self>) {
        loop {
            let ending = self.ending.load(Ordering::Relaxed);
            let first = lock(&self.due).iter().min_by_key(|(_, due)| due.at).map(|(run, due)| (run.clone(), due.at));
            match first {
                None if ending => return,
                None => self.wake.notified().await,
                Some((run, at)) if ending || at <= Instant::now() => {
                    if !self.copy(&run).await && ending {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                Some((_, at)) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.wake.notified() => {}
                },
            }
        }
    }

    /// Copies a run that is due; whether that is done with.
    async fn copy(&self, run: &RunId) -> bool {
        let Some((folder, written)) = lock(&self.due).get(run).map(|due| (due.folder.clone(), due.written)) else {
            return true;
        };
        let copied = self.store.copy(run, &folder).await;
        let mut all = lock(&self.due);
        let Some(due) = all.get_mut(run) else { return true };
        let error = match copied {
            Ok(_) => None,
            // Trying again would not help, and the other state is the later one.
            Err(error @ CheckpointStoreError::Superseded { .. }) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!("a checkpoint was not copied: {error}");
                None
            }
            Err(error) => Some(error),
        };
        let Some(error) = error else {
            if due.failures > 0 {
                tracing::info!("the checkpoints of the run {run} are copied again");
            }
            if due.written == written {
                all.remove(run);
            } else {
                (due.at, due.failures) = (Instant::now() + GATHERING, 0);
            }
            return true;
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        let pause = PAUSE.saturating_mul(1 << due.failures.min(6)).min(LONGEST_PAUSE);
        if !matches!(error, CheckpointStoreError::Changed(_)) {
            tracing::warn!("the checkpoints of the run {run} are not copied, and will be in {pause:?}: {error}");
        }
        due.failures += 1;
        due.at = Instant::now() + pause;
        false
    }

    /// Finishes the copies that are due, until a time at the latest.
    pub(super) async fn finish(&self, deadline: Instant) {
        self.ending.store(true, Ordering::Relaxed);
        self.wake.notify_one();
        let Some(mut task) = lock(&self.task).take() else { return };
        if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
            task.abort();
            let late: Vec<String> = lock(&self.due).keys().map(ToString::to_string).collect();
            tracing::warn!(
                "the last checkpoints of {} are not in the object store; the next start here copies them",
                late.join(", ")
            );
        }
    }

    /// Claims a run for this process; whether that succeeded. Nothing has to be claimed where the database is not shared.
    async fn claim(&self, run: &RunId, patience: Duration) -> Result<bool, StoreError> {
        let Some(bus) = &self.bus else { return Ok(true) };
        let mut claims = self.claims.lock().await;
        if let Some(claim) = claims.get_mut(run) {
            claim.since = Instant::now();
            return Ok(true);
        }
        let deadline = Instant::now() + patience;
        loop {
            if let Some(alone) = bus.claim(&claim_name(run)).await? {
                claims.insert(run.clone(), Claim { alone, since: Instant::now() });
                lock(&self.elsewhere).remove(run);
                return Ok(true);
            }
            if Instant::now() >= deadline {
                lock(&self.elsewhere).insert(run.clone());
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Whether another process trains a run, as far as this one has found out.
    fn is_elsewhere(&self, run: &RunId) -> bool {
        lock(&self.elsewhere).contains(run)
    }
}

fn claim_name(run: &RunId) -> String {
    format!("run {run}")
}

/// The error for pages where the object store is in the way.
fn unavailable(error: CheckpointStoreError) -> LaunchError {
    LaunchError::State(super::presets::sentence(error))
}

impl Manager {
    /// Makes a run ready to go on here: claims it, and fetches its folder where that is lost or older than the copy. `false`: it lives in
    /// another process.
    ///
    /// # Errors
    /// When there is no folder here and the copy cannot be had.
    pub(super) async fn bring_here(&self, run: &Run) -> Result<bool, LaunchError> {
        let here = self.is_here(run).await;
        // A file of rows belongs to one folder, and processes that share a database have folders of their own.
        let shared = self.store().file().is_none();
        let Some(copies) = self.copies().filter(|_| run.family != crate::registry::OUTSIDE) else {
            return Ok(here || !shared);
        };
        if !copies.claim(&run.id, if here { CLAIMING } else { Duration::ZERO }).await? {
            return Ok(false);
        }
        let folder = run_folder(self.data_dir(), &run.id);
        match copies.store.fetch(&run.id, &folder).await {
            Ok(Fetched::Update(update)) => {
                tracing::info!("the run {} goes on from the copy of its checkpoint at update {update}", run.id);
            }
            // It has never written a checkpoint, or its process copies none.
            Ok(Fetched::Nothing) if !here && shared => {
                copies.claims.lock().await.remove(&run.id);
                return Ok(false);
            }
            Ok(Fetched::Current | Fetched::Nothing) => {}
            // The database has what was recorded after the checkpoint here, so the run makes it again and loses nothing.
            Err(error) if here => {
                tracing::warn!("the run {} goes on from the checkpoint here: {error}", run.id);
            }
            Err(error) => return Err(unavailable(error)),
        }
        if here {
            copies.mark(&run.id, &folder);
        }
        Ok(true)
    }

    /// Goes on with a run that no process has, where its copy is to be had and no other process is faster. Where the database or the
    /// object store is away, nothing happens yet. What was claimed in vain is given back, so that another process may try.
    ///
    /// # Errors
    /// When it cannot go on here, for example because its data are missing on this machine.
    pub(super) async fn take_over(&self, run: &Run) -> Result<(), LaunchError> {
        let (later, gone_on) = match self.bring_here(run).await {
            Ok(true) => match self.go_on(run).await {
                Err(error @ LaunchError::Store(_)) => (Some(error), Ok(())),
                gone_on => (None, gone_on),
            },
            Ok(false) => return Ok(()),
            Err(error) => (Some(error), Ok(())),
        };
        if let Some(error) = &later {
            tracing::warn!("the run {}, which no process has, cannot be taken up yet: {error:#}", run.id);
        }
        // Somebody may have resumed it here meanwhile; then the claim is that run's.
        if !self.has_thread(&run.id)
            && let Some(copies) = self.copies()
        {
            copies.claims.lock().await.remove(&run.id);
        }
        gone_on
    }

    /// Claims a run that is made here.
    pub(super) async fn claim_new(&self, run: &RunId) -> Result<(), LaunchError> {
        match self.copies() {
            Some(copies) => Ok(copies.claim(run, CLAIMING).await.map(drop)?),
            None => Ok(()),
        }
    }

    /// Whether another process has a run, although its folder is here.
    pub(super) fn is_claimed_elsewhere(&self, run: &RunId) -> bool {
        self.copies().is_some_and(|copies| copies.is_elsewhere(run))
    }

    /// Gives claims back that are not needed any more, and ends a run whose claim was lost to another process.
    pub(super) async fn guard_claims(&self) {
        let Some(copies) = self.copies() else { return };
        let Some(bus) = &copies.bus else { return };
        let mut claims = copies.claims.lock().await;
        let ended = |run: &RunId, claim: &Claim| !self.has_thread(run) && claim.since.elapsed() > LONGEST_PAUSE;
        claims.retain(|run, claim| !ended(run, claim));
        let mut lost = Vec::new();
        for (run, claim) in claims.iter_mut() {
            if claim.alone.is_held().await {
                continue;
            }
            match bus.claim(&claim_name(run)).await {
                Ok(Some(alone)) => claim.alone = alone,
                Ok(None) => lost.push(run.clone()),
                Err(error) => {
                    tracing::warn!(%error, "the claim of the run {run} is made again when the database answers")
                }
            }
        }
        for run in lost {
            tracing::error!("another process has taken up the run {run} while the database was away; it ends here");
            claims.remove(&run);
            lock(&copies.elsewhere).insert(run.clone());
            if let Some(handle) = self.runs.get(&run) {
                let _ = handle.commands.send(Command::Shutdown);
            }
        }
    }

    /// Guards the claims until the server ends.
    pub(super) async fn keep_claims(&self, shutdown: tokio_util::sync::CancellationToken) {
        while self.copies().is_some_and(|copies| copies.bus.is_some()) {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(GUARDING) => {}
            }
            self.guard_claims().await;
        }
    }

    /// The checkpoints of a run that lie in the object store; `None` where there is none, or it has nothing of the run.
    pub(super) async fn copied_checkpoints(&self, run: &RunId) -> Result<Option<Vec<CheckpointFile>>, LaunchError> {
        let Some(copies) = self.copies() else { return Ok(None) };
        let manifest = copies.store.manifest(run).await.map_err(unavailable)?;
        Ok(manifest.map(|manifest| {
            let checkpoints = manifest.files.into_iter().filter(|file| crate::trainer::checkpoint::is_name(&file.name));
            checkpoints
                .map(|file| CheckpointFile { name: file.name, bytes: file.bytes, path: PathBuf::new() })
                .collect()
        }))
    }

    /// A checkpoint that lies in the object store.
    pub(super) async fn copied_checkpoint(
        &self,
        run: &RunId,
        name: &str,
    ) -> Result<Option<KeptCheckpoint>, LaunchError> {
        let Some(copies) = self.copies().filter(|_| crate::trainer::checkpoint::is_name(name)) else { return Ok(None) };
        let found = copies.store.read(run, name).await.map_err(unavailable)?;
        Ok(found.map(|(bytes, chunks)| KeptCheckpoint {
            bytes,
            chunks: chunks.map(|chunk| chunk.map_err(std::io::Error::other)).boxed(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::server::CheckpointAddress;

    fn copies(folder: &Path) -> Arc<Copies> {
        let store = CheckpointStore::open(&CheckpointAddress::Folder(folder.to_owned())).unwrap();
        Copies::begin(store, None)
    }

    /// A store that is away, and a run that wants to be copied there.
    fn trouble(home: &Path) -> (Arc<Copies>, RunId, PathBuf) {
        let (there, here) = (home.join("there"), home.join("here"));
        std::fs::create_dir(&here).unwrap();
        std::fs::write(here.join("update-00000001.safetensors"), "weights").unwrap();
        let copies = copies(&there);
        std::fs::remove_dir(&there).unwrap();
        std::fs::write(&there, "a file is in the way").unwrap();
        copies.mark(&"run".into(), &here);
        (copies, "run".into(), there)
    }

    #[tokio::test]
    async fn a_copy_is_tried_again_until_the_store_is_there() {
        let home = tempfile::tempdir().unwrap();
        let (copies, run, there) = trouble(home.path());
        while copies.figures().failures == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(copies.figures().waiting, 1);
        std::fs::remove_file(&there).unwrap();
        std::fs::create_dir(&there).unwrap();
        while copies.figures().waiting > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(copies.store().manifest(&run).await.unwrap().unwrap().update, 1);
    }

    #[tokio::test]
    async fn the_end_waits_for_copies_and_not_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let (waiting, run, there) = trouble(home.path());
        waiting.finish(Instant::now() + Duration::from_millis(300)).await;
        assert_eq!(waiting.figures().waiting, 1);
        std::fs::remove_file(&there).unwrap();
        let quick = copies(&there);
        quick.mark(&run, &home.path().join("here"));
        quick.finish(Instant::now() + LONGEST_PAUSE).await;
        assert_eq!(quick.figures().waiting, 0);
        assert_eq!(quick.store().manifest(&run).await.unwrap().unwrap().update, 1);
    }
}
