//! The runs that are alive in this process.

use super::run_log::{LogLine, RunLog};
use crate::ids::RunId;
use crate::run::{Event, RunHandle};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

type SharedLog = Arc<Mutex<RunLog>>;

fn append(log: &SharedLog, event: &Event) {
    log.lock().unwrap_or_else(PoisonError::into_inner).append(event);
}

#[derive(Default)]
struct Living {
    handles: BTreeMap<RunId, RunHandle>,
    logs: BTreeMap<RunId, SharedLog>,
    /// Runs that could not be resumed, with the reason.
    refused: BTreeMap<RunId, String>,
    /// Told whenever a run comes or goes.
    changed: watch::Sender<()>,
    /// Told whenever somebody has answered.
    answered: watch::Sender<()>,
}

/// The runs alive in this process. Runs come and go while the server is up; clones share one map.
#[derive(Clone, Default)]
pub struct Runs(Arc<RwLock<Living>>);

impl Runs {
    /// Begins to keep the log of a run that is about to start (or goes on with one there is): give every event of the
    /// run to what this returns. A subscriber that comes after the start would miss the first lines.
    pub fn keep_log(&self, id: &RunId) -> impl Fn(&Event) + Send + use<> {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let log = living.logs.entry(id.clone()).or_default().clone();
        move |event| append(&log, event)
    }

    /// Adds a run (replacing one of the same id). Unless [`Runs::keep_log`] does so already, its log is kept from here
    /// on. Call it within a Tokio runtime.
    pub fn add(&self, handle: RunHandle) {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let id = handle.id.clone();
        if !living.logs.contains_key(&id) {
            let log = living.logs.entry(id.clone()).or_default().clone();
            let mut events = handle.events.subscribe();
            tokio::spawn(async move {
                loop {
                    match events.recv().await {
                        Ok(event) => append(&log, &event),
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => break,
                    }
                }
            });
        }
        living.refused.remove(&id);
        living.handles.insert(id, handle);
        living.changed.send_replace(());
    }

    /// Remembers why a stored run could not be resumed, as a sentence for its pages.
    pub fn refuse(&self, id: &RunId, reason: String) {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let log = living.logs.entry(id.clone()).or_default().clone();
        append(&log, &Event::Log { message: reason.clone() });
        living.refused.insert(id.clone(), reason);
        living.changed.send_replace(());
    }

    /// The reason why a run that is not alive could not be resumed when this was last tried.
    pub fn refusal(&self, id: &RunId) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).refused.get(id).cloned()
    }

    /// Tells when a run comes or goes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).changed.subscribe()
    }

    /// Says that somebody has answered.
    pub(crate) fn tell_answer(&self) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).answered.send_replace(());
    }

    /// Tells when somebody has answered.
    pub(crate) fn answers(&self) -> watch::Receiver<()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).answered.subscribe()
    }

    /// Removes a run; its pages then show what the store has of it.
    pub fn remove(&self, id: &RunId) {
        let mut living = self.0.write().unwrap_or_else(PoisonError::into_inner);
        living.handles.remove(id);
        living.logs.remove(id);
        living.changed.send_replace(());
    }

    /// The runs that are alive or could not be resumed.
    pub fn ids(&self) -> Vec<RunId> {
        let living = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let refused = living.refused.keys().filter(|id| !living.handles.contains_key(*id));
        living.handles.keys().chain(refused).cloned().collect()
    }

    /// The handle of a live run.
    pub fn get(&self, id: &RunId) -> Option<RunHandle> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).handles.get(id).cloned()
    }

    /// The kept log of a run, oldest first; empty when nothing was told since the server started.
    pub fn log(&self, id: &RunId) -> Vec<LogLine> {
        let living = self.0.read().unwrap_or_else(PoisonError::into_inner);
        living.logs.get(id).map(|log| log.lock().unwrap_or_else(PoisonError::into_inner).lines()).unwrap_or_default()
    }
}
