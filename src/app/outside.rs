//! Runs whose agent lives in another program: a thread that takes the commands of pages, and no trainer.

use crate::config::run::TeacherMode;
use crate::ids::RunId;
use crate::registry::{ELSEWHERE, OUTSIDE};
use crate::run::{Command, Event, RunHandle, RunState, Status};
use crate::store::{Run, Store};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};

/// Events that a slow listener may miss before it is told to fetch a snapshot.
const EVENTS: usize = 1_024;

/// Told of every event, for the run's log.
pub type Listener = Box<dyn Fn(&Event) + Send>;

struct Host {
    store: Store,
    runtime: Handle,
    status: Status,
    tell: watch::Sender<Status>,
    events: broadcast::Sender<Arc<Event>>,
    listener: Listener,
}

/// The id of a run that begins now.
pub fn new_id() -> RunId {
    let now = time::OffsetDateTime::now_utc();
    let format = time::macros::format_description!("[year][month][day]-[hour][minute][second]");
    format!("{OUTSIDE}-{}", now.format(&format).unwrap_or_default()).into()
}

/// The row of a new run.
pub fn row(id: RunId, show_request: bool) -> Run {
    Run {
        id,
        family: OUTSIDE.to_owned(),
        preset: OUTSIDE.to_owned(),
        config: serde_json::json!({"family": OUTSIDE, "pool": {"show_request": show_request}}),
        seed: 0,
        teacher: TeacherMode::Human,
        active: true,
        created_at: time::OffsetDateTime::now_utc(),
    }
}

/// Hosts a stored run: pages see it as alive until it is stopped.
///
/// # Errors
/// When the system gives no further thread.
pub fn host(store: Store, runtime: Handle, run: &RunId, listener: Listener) -> std::io::Result<RunHandle> {
    let status = Status {
        run: run.clone(),
        state: RunState::Running,
        teacher: TeacherMode::Human,
        simulated_available: false,
        device: "another program".to_owned(),
        update: 0,
        episodes: 0,
        descriptions_human: 0,
        descriptions_simulated: 0,
        lambda: 0.0,
        episodes_per_second: 0.0,
        validation: None,
        best_validation: None,
        seconds: 0.0,
        spare_words: None,
        waiting: 0,
        practice: 0,
    };
    let (commands, received) = channel();
    let (tell, watched) = watch::channel(status.clone());
    let (events, _) = broadcast::channel(EVENTS);
    let handle = RunHandle { id: run.clone(), family: OUTSIDE, commands, events: events.clone(), status: watched };
    let host = Host { store, runtime, status, tell, events, listener };
    std::thread::Builder::new().name(format!("outside-{run}")).spawn(move || host.work(&received))?;
    Ok(handle)
}

impl Host {
    /// Takes commands until the run is stopped or nobody can send one.
    fn work(mut self, commands: &Receiver<Command>) {
        self.refresh();
        self.publish();
        while let Ok(command) = commands.recv() {
            match command {
                Command::Pause => self.status.state = RunState::Paused,
                Command::Resume => self.status.state = RunState::Running,
                Command::Stop => {
                    self.status.state = RunState::Stopped;
                    if let Err(error) = self.runtime.block_on(self.store.set_active(&self.status.run, false)) {
                        tracing::warn!(run = %self.status.run, %error, "it was not noted that the run was stopped");
                    }
                    self.publish();
                    return;
                }
                Command::Checkpoint(reply) => drop(reply.send(Err(ELSEWHERE.to_owned()))),
                Command::Try { reply, .. } => drop(reply.send(Err(ELSEWHERE.to_owned()))),
                Command::Review { reply, .. } => drop(reply.send(Err(ELSEWHERE.to_owned()))),
                Command::CarryOut { reply, .. } => drop(reply.send(Err(ELSEWHERE.to_owned()))),
                Command::SetTeacher(_) => {}
                Command::DescriptionArrived => self.refresh(),
                Command::Shutdown | Command::Conclude => return,
            }
            self.publish();
        }
    }

    /// Reads the run's figures from the store.
    fn refresh(&mut self) {
        let run = self.status.run.clone();
        let read = self.runtime.block_on(async {
            Ok::<_, crate::store::StoreError>((
                self.store.standing(&run).await?,
                self.store.execution_count(&run).await?,
                self.store.waiting_answers(&run).await?,
            ))
        });
        match read {
            Ok((standing, executions, waiting)) => {
                let last = standing.last.unwrap_or_default();
                self.status.update = last.update;
                self.status.seconds = last.seconds;
                self.status.episodes = executions;
                self.status.waiting = waiting;
                self.status.descriptions_human = standing.people;
                self.status.validation = standing.validation;
                self.status.best_validation = standing.best;
            }
            Err(error) => tracing::debug!(%run, %error, "the figures of a run were not read"),
        }
    }

    fn publish(&self) {
        self.tell.send_replace(self.status.clone());
        let event = Event::Status(self.status.clone());
        (self.listener)(&event);
        let _ = self.events.send(Arc::new(event));
    }
}
