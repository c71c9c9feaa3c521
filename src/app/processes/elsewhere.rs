//! Runs that live in other processes: handles like those of this one, fed by messages.

use super::announce::HEARTBEAT;
use super::wire::{self, CommandMessage, EventMessage, Replies};
use crate::app::manager::Manager;
use crate::ids::RunId;
use crate::launch::Evaluating;
use crate::run::{Command, Event, RunHandle, Status};
use crate::store::Bus;
use crate::web::Runs;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};

/// After how long without a status a run is taken for gone.
const SILENCE: Duration = HEARTBEAT.saturating_mul(5);

/// Events that a slow listener may be behind.
const EVENTS: usize = 256;

/// A run of another process.
struct Distant {
    status: watch::Sender<Status>,
    events: broadcast::Sender<Arc<Event>>,
    heard: Instant,
}

/// The evaluations of another process that are under way, or that failed.
struct Evaluations {
    all: Vec<(RunId, Evaluating)>,
    heard: Instant,
}

/// The runs of other processes.
pub(super) struct Elsewhere {
    bus: Bus,
    runs: Runs,
    manager: Arc<Manager>,
    replies: Arc<Replies>,
    known: Mutex<HashMap<RunId, Distant>>,
    /// The evaluations of each process.
    evaluations: Mutex<HashMap<String, Evaluations>>,
}

impl Elsewhere {
    pub(super) fn new(bus: Bus, runs: Runs, manager: Arc<Manager>, replies: Arc<Replies>) -> Elsewhere {
        Elsewhere { bus, runs, manager, replies, known: Mutex::default(), evaluations: Mutex::default() }
    }

    /// Whether a handle stands for a run of another process.
    pub(super) fn has(&self, handle: &RunHandle) -> bool {
        self.lock().get(&handle.id).is_some_and(|distant| distant.events.same_channel(&handle.events))
    }

    /// Takes up the status of a run; one that was not known before becomes known to the pages.
    pub(super) async fn status(&self, status: Status) {
        if let Some(distant) = self.lock().get_mut(&status.run) {
            distant.heard = Instant::now();
            distant.status.send_replace(status.clone());
            // It is no error when nobody has subscribed.
            let _ = distant.events.send(Arc::new(Event::Status(status)));
            return;
        }
        let run = status.run.clone();
        let Some(family) = self.manager.family_name(&run).await else { return };
        let (commands, received) = std::sync::mpsc::channel();
        let (events, _) = broadcast::channel(EVENTS);
        let (sender, receiver) = watch::channel(status);
        let handle = RunHandle { id: run.clone(), family, commands, events: events.clone(), status: receiver };
        self.lock().insert(run.clone(), Distant { status: sender, events, heard: Instant::now() });
        self.runs.add(handle);
        let (bus, replies, runtime) = (self.bus.clone(), self.replies.clone(), tokio::runtime::Handle::current());
        // The channel of commands is that of a trainer's thread, and blocks; so it has one here, too. The thread ends with the last handle.
        let forwarding = move || {
            while let Ok(command) = received.recv() {
                runtime.block_on(forward(&bus, &replies, &run, command));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("iliad-forward".into()).spawn(forwarding) {
            tracing::error!(%error, "commands cannot be sent to a run of another process");
        }
    }

    /// Takes up the evaluations of another process.
    pub(super) fn evaluations(&self, process: String, all: Vec<(RunId, Evaluating)>) {
        let mut evaluations = self.evaluations.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            evaluations.remove(&process);
        } else {
            evaluations.insert(process, Evaluations { all, heard: Instant::now() });
        }
    }

    /// The evaluations of a run that are under way in other processes, or that failed there.
    pub(super) fn evaluations_of(&self, run: &RunId) -> Vec<Evaluating> {
        let evaluations = self.evaluations.lock().unwrap_or_else(PoisonError::into_inner);
        let all = evaluations.values().flat_map(|process| &process.all);
        all.filter(|(of, _)| of == run).map(|(_, evaluation)| evaluation.clone()).collect()
    }

    /// Hands an event on to the pages.
    pub(super) fn event(&self, message: EventMessage) {
        if let Some(distant) = self.lock().get(&message.run) {
            let _ = distant.events.send(Arc::new(message.event));
        }
    }

    /// Forgets a run that has left its process.
    pub(super) fn gone(&self, run: &RunId) {
        if self.lock().remove(run).is_some() {
            self.runs.remove(run);
        }
    }

    /// Forgets the runs and evaluations of processes that have gone without a word.
    pub(super) fn forget_silent(&self) {
        let mut evaluations = self.evaluations.lock().unwrap_or_else(PoisonError::into_inner);
        evaluations.retain(|_, process| process.heard.elapsed() <= SILENCE);
        drop(evaluations);
        let silent: Vec<RunId> = {
            let known = self.lock();
            known.iter().filter(|(_, distant)| distant.heard.elapsed() > SILENCE).map(|(id, _)| id.clone()).collect()
        };
        for run in silent {
            tracing::warn!("nothing is heard of the run {run}: its process has gone, or cannot reach the database");
            self.gone(&run);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Distant>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn forward(bus: &Bus, replies: &Replies, run: &RunId, command: Command) {
    let Some((command, deliver)) = wire::remote(command) else { return };
    let message = CommandMessage { run: run.clone(), number: replies.expect(deliver), command };
    let body = serde_json::to_string(&message).unwrap_or_default();
    if let Err(error) = bus.send(wire::COMMAND, &body).await {
        tracing::warn!(%error, "a command could not be sent to the run {run}");
    }
}
