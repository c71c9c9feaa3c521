//! The trainer: one thread that owns the models of a run. Commands come in between two updates; events go out. Saving,
//! recording and rendering are siblings that listen.
//!
//! An update is an iteration of the loop. It takes its input either from the simulated teacher (a batch of fresh
//! episodes) or from people (answers that arrived since). Everything an update does is a function of the weights, the
//! seed, and what its record holds; so a killed run makes the lost updates again and stands where it stood.

mod asking;
pub mod checkpoint;
mod iteration;
pub mod journal;
pub mod meters;
pub mod milestones;
mod out;
mod people;
mod persist;
mod pretraining;
mod progress;

use crate::agent::Act;
use crate::algorithm::ask::Tallies;
use crate::algorithm::{self, Algorithm, AlgorithmName, Feedback};
use crate::config::run::{RunConfig, only_described};
use crate::evaluation::{self, evaluate};
use crate::experiment::results::Reached;
use crate::rng;
use crate::run::{Command, Event, Rate, RunHandle, RunState, Status, TeacherMode, Tried};
use crate::store::Store;
use crate::task::kit::TaskKit;
use crate::task::{Split, World};
use crate::teacher::simulated::TeacherModels;
use anyhow::Context;
use checkpoint::Counters;
use journal::{Notes, Record};
use meters::{Meters, Speed};
use milestones::Milestones;
use out::Out;
pub use pretraining::pretrain;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};

/// Gets every event of a run, in order, on the trainer's thread.
pub type Listener = Box<dyn Fn(&Arc<Event>) + Send>;

/// What a run needs to start or to go on.
pub struct Launch {
    /// Run id.
    pub id: String,
    /// Configuration (for a resumed run the checkpoint's own is used).
    pub config: RunConfig,
    /// Folder of checkpoints, record and curve.
    pub folder: PathBuf,
    /// Device.
    pub device: candle_core::Device,
    /// Store and the runtime it lives on; `None` for offline runs.
    pub store: Option<(Store, tokio::runtime::Handle)>,
    /// Mode set by the store, which outlives the checkpoint's.
    pub teacher: Option<TeacherMode>,
    /// Gets every event, in order, before the broadcast does.
    pub listener: Option<Listener>,
}

/// What a finished run achieved.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct FinalReport {
    /// Run id.
    pub run: String,
    /// What was learnt by.
    pub algorithm: AlgorithmName,
    /// What `descriptions` counts.
    pub feedback: Feedback,
    /// Validation success of the best policy, whole split.
    pub validation: Rate,
    /// Test success of that policy, whole split.
    pub test: Rate,
    /// Best trailing mean of validation success (`schedule.smooth`); the best raw reading where that is 1.
    pub validation_smoothed: Option<f64>,
    /// When validation success first reached 60, 75 and 85 %, by raw and by smoothed readings.
    pub reached: Vec<Reached>,
    /// Update of the best policy.
    pub best_update: u64,
    /// Updates made.
    pub updates: u64,
    /// Episodes.
    pub episodes: u64,
    /// Descriptions used (demonstrations, rewards: see `feedback`).
    pub descriptions: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Whether the run's budget of episodes was used up (false: stopped before).
    pub complete: bool,
}

/// Starts a run on its own thread.
///
/// # Errors
/// When the thread cannot be started. What goes wrong later is told as [`RunState::Failed`] and by the join handle.
pub fn spawn<K: TaskKit>(
    kit: &'static K,
    launch: Launch,
) -> anyhow::Result<(RunHandle, std::thread::JoinHandle<anyhow::Result<FinalReport>>)> {
    let (commands, inbox) = std::sync::mpsc::channel();
    let (events, _) = broadcast::channel(1024);
    let status = Status {
        run: launch.id.clone(),
        state: RunState::Starting { what: "Getting ready".into(), done: None },
        teacher: launch.teacher.unwrap_or(launch.config.teacher.mode),
        simulated_available: false,
        device: crate::nn::device::label(&launch.device),
        update: 0,
        episodes: 0,
        descriptions_human: 0,
        descriptions_simulated: 0,
        lambda: launch.config.algorithm.mixing.lambda,
        episodes_per_second: 0.0,
        validation: None,
        best_validation: None,
        seconds: 0.0,
    };
    let (status_sender, status_receiver) = watch::channel(status);
    let handle = RunHandle {
        id: launch.id.as_str().into(),
        family: kit.name(),
        commands,
        events: events.clone(),
        status: status_receiver,
    };
    let out = Out {
        events,
        status: status_sender,
        listener: launch.listener,
        told: Instant::now(),
        episodes: Instant::now(),
    };
    let launch = Launch { listener: None, ..launch };
    let thread = std::thread::Builder::new()
        .name(format!("trainer {}", launch.id))
        // Candle's backward pass walks the graph recursively.
        .stack_size(64 << 20)
        .spawn(move || {
            let mut out = out;
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                persist::live_on(kit, launch, &inbox, &mut out)
            }))
            .unwrap_or_else(|panic| {
                let what = panic.downcast_ref::<String>().cloned();
                let what = what.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
                Err(anyhow::anyhow!("the trainer broke: {}", what.unwrap_or_default()))
            });
            if let Err(error) = &outcome {
                tracing::error!("run failed: {error:#}");
                out.state(RunState::Failed { message: format!("Training ended by an error: {error:#}") });
            }
            outcome
        })
        .context("cannot start the trainer's thread")?;
    Ok((handle, thread))
}

/// What a turn of the loop did.
#[derive(PartialEq, Eq)]
enum Turn {
    /// An update was made.
    Worked,
    /// Nothing to do until somebody answers or commands.
    Idle,
}

/// Why the loop ended.
#[derive(PartialEq, Eq)]
enum End {
    Budget,
    Stopped,
    Shutdown,
    Concluded,
}

struct Trainer<'a, K: TaskKit> {
    kit: &'static K,
    id: String,
    config: RunConfig,
    folder: PathBuf,
    world: Arc<K::World>,
    algorithm: Box<dyn Algorithm<K::World>>,
    teacher: Option<Box<dyn TeacherModels<K::World>>>,
    mode: TeacherMode,
    counters: Counters,
    record: Record<K::World>,
    notes: Option<Notes>,
    meters: Meters,
    tallies: Tallies,
    /// Kinds of the executions that came into people's pool last, as many as it holds.
    offered: VecDeque<String>,
    speed: Speed,
    validation: Option<Rate>,
    best: Option<(Rate, u64)>,
    milestones: Milestones,
    seconds: f64,
    since: Instant,
    out: &'a mut Out,
    curve: std::fs::File,
    /// True while lost updates are made again: nothing is recorded twice.
    again: bool,
    /// Requests that somebody tried.
    tries: std::cell::Cell<u64>,
}

fn live<K: TaskKit>(
    kit: &'static K,
    launch: Launch,
    inbox: &Receiver<Command>,
    out: &mut Out,
) -> anyhow::Result<FinalReport> {
    std::fs::create_dir_all(&launch.folder).with_context(|| format!("cannot make {}", launch.folder.display()))?;
    let _lock = lock(&launch.folder)?;
    let (found, complaints) = checkpoint::newest(&launch.folder)?;
    for complaint in complaints {
        out.log(complaint);
    }
    let config = found.as_ref().map_or(launch.config, |(h, _)| h.config.clone());
    if let Some((header, _)) = &found {
        // Loading takes a while, and pages show meanwhile what was learnt.
        let (c, best) = (header.counters, header.best.map(|(rate, _)| rate));
        out.change(|s| {
            (s.update, s.episodes, s.seconds) = (c.update, c.episodes, header.seconds);
            (s.descriptions_human, s.descriptions_simulated) = (c.human, c.simulated);
            (s.validation, s.best_validation) = (header.validation, best);
        });
    }
    out.state(RunState::Starting { what: "Loading the task".into(), done: None });
    let world = kit.world(&config)?;
    out.state(RunState::Starting { what: "Loading the agent".into(), done: None });
    let a = &config.algorithm;
    let described = a.name.feedback() == Feedback::Descriptions;
    let teacher = if described { kit.teacher(&config, &world, &launch.device)? } else { None };
    // What is commanded while the agent warms up, to be done afterwards.
    let mut early = VecDeque::new();
    let (agent, header, tensors) = match found {
        Some((header, tensors)) => {
            (kit.agent_from(&config, &world, &header.blueprint, &launch.device)?, Some(header), Some(tensors))
        }
        None => {
            let mut new = kit.agent(&config, &world, &launch.device)?;
            if !new.pretrained {
                let done = pretraining::pretrain(&*world, &mut *new.agent, &config, |share| {
                    let what = "Warming up: practising the form of executions, without any description".to_owned();
                    out.state(RunState::Starting { what, done: Some(share) });
                    early.extend(inbox.try_iter());
                    !early.iter().any(|c| matches!(c, Command::Stop | Command::Shutdown | Command::Conclude))
                })?;
                if !done {
                    return stopped_early(&launch.id, a.name, launch.store.as_ref(), &early, out);
                }
            }
            (new.agent, None, None)
        }
    };
    let mut algorithm = algorithm::build(world.clone(), agent, &config)?;
    if let (Some(header), Some(tensors)) = (&header, tensors) {
        algorithm.restore(&tensors, &header.saved()).context("the checkpoint does not fit the run")?;
    }
    let counters = header.as_ref().map(|h| h.counters).unwrap_or_default();
    let capacity = if a.replay > 0 && algorithm.replays() { a.memory } else { 0 };
    let mut record = Record::open(&launch.folder, counters.recorded, capacity.max(algorithm.recall()))?;
    if algorithm.recall() > 0 {
        algorithm.remember(record.last(algorithm.recall()));
        record.limit(capacity);
    }
    let notes = launch.store.map(|(store, runtime)| Notes::new(store, runtime, launch.id.clone()));
    let curve = progress::open_curve(&launch.folder, counters.update)?;
    let mut mode = launch.teacher.or(header.as_ref().map(|h| h.teacher)).unwrap_or(config.teacher.mode);
    if !a.name.taught_by_people() && mode != TeacherMode::Simulated {
        anyhow::bail!("{}", only_described(a.name))
    }
    if described && teacher.is_none() && !a.name.taught_by_people() {
        anyhow::bail!("{} needs the simulated teacher, and teacher.models has none", a.name.typed())
    }
    if described && teacher.is_none() && mode != TeacherMode::Human {
        out.log("There is no simulated teacher for this run, so people teach.");
        mode = TeacherMode::Human;
    }
    if notes.is_none() && mode != TeacherMode::Simulated {
        anyhow::bail!("people can only teach a run that the server carries on; start it with `iliad serve`")
    }
    let mut trainer = Trainer {
        kit,
        id: launch.id,
        folder: launch.folder,
        world,
        algorithm,
        teacher,
        mode,
        counters,
        record,
        notes,
        meters: header.as_ref().map(|h| h.meters.clone()).unwrap_or_default(),
        tallies: header.as_ref().map(|h| h.tallies.clone()).unwrap_or_default(),
        offered: VecDeque::new(),
        speed: Speed::default(),
        validation: header.as_ref().and_then(|h| h.validation),
        best: header.as_ref().and_then(|h| h.best),
        milestones: header.as_ref().map_or_else(|| Milestones::new(kit.name()), Milestones::of),
        seconds: header.as_ref().map_or(0.0, |h| h.seconds),
        since: Instant::now(),
        out,
        curve,
        again: false,
        tries: std::cell::Cell::default(),
        config,
    };
    if header.is_none() {
        trainer.evaluate_and_tell()?;
        trainer.checkpoint()?;
    }
    trainer.catch_up()?;
    trainer.status(|s| s.state = RunState::Running);
    trainer.out.tell_status();
    let end = trainer.run(inbox, early)?;
    trainer.finish(end)
}

/// Keeps a second trainer from the run's folder for as long as the file is held.
fn lock(folder: &std::path::Path) -> anyhow::Result<std::fs::File> {
    let path = folder.join("run.lock");
    let file = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if file.try_lock().is_err() {
        anyhow::bail!("another program is training the run in {}", folder.display())
    }
    Ok(file)
}

/// Ends a run that was told to while it warmed up: nothing has been learnt that could be saved.
fn stopped_early(
    id: &str,
    algorithm: AlgorithmName,
    store: Option<&(Store, tokio::runtime::Handle)>,
    commands: &VecDeque<Command>,
    out: &mut Out,
) -> anyhow::Result<FinalReport> {
    if let Some((store, runtime)) = store
        && commands.iter().any(|c| matches!(c, Command::Stop))
    {
        runtime.block_on(store.set_active(id, false))?;
    } else if store.is_none() {
        anyhow::bail!("stopped while warming up; nothing was learnt yet")
    }
    out.state(RunState::Stopped);
    let none = evaluation::rate(0, 0);
    Ok(FinalReport {
        run: id.to_owned(),
        algorithm,
        feedback: algorithm.feedback(),
        validation: none,
        test: none,
        validation_smoothed: None,
        reached: Vec::new(),
        best_update: 0,
        updates: 0,
        episodes: 0,
        descriptions: 0,
        seconds: 0.0,
        complete: false,
    })
}

impl<K: TaskKit> Trainer<'_, K> {
    /// Carries on until something ends the run; commands in `early` come before those in `inbox`.
    fn run(&mut self, inbox: &Receiver<Command>, mut early: VecDeque<Command>) -> anyhow::Result<End> {
        let mut paused = false;
        let mut idle = false;
        loop {
            // Commands first; when there is nothing to do, wait for one.
            let wait = if paused || idle { Duration::from_millis(500) } else { Duration::ZERO };
            if paused || idle {
                self.rest();
            }
            let mut next = early.pop_front();
            if next.is_none() {
                next = match inbox.recv_timeout(wait) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Ok(End::Shutdown),
                };
            }
            if paused || idle {
                // Waiting is not training.
                self.since = Instant::now();
            }
            while let Some(command) = next {
                match command {
                    Command::Stop => return Ok(End::Stopped),
                    Command::Shutdown => return Ok(End::Shutdown),
                    Command::Conclude => return Ok(End::Concluded),
                    Command::Pause => {
                        paused = true;
                        self.speed.reset();
                        self.status(|s| s.state = RunState::Paused);
                        self.out.tell_status();
                    }
                    Command::Resume => {
                        paused = false;
                        self.speed.reset();
                        self.status(|s| s.state = RunState::Running);
                        self.out.tell_status();
                    }
                    Command::SetTeacher(mode) => self.set_mode(mode)?,
                    Command::Checkpoint(reply) => {
                        let row = self.checkpoint().map_err(|e| format!("The checkpoint was not written: {e:#}"));
                        let _ = reply.send(row);
                    }
                    Command::Try { request, start, reply } => {
                        let _ = reply.send(self.attempt(&request, &start));
                    }
                    Command::DescriptionArrived => {}
                }
                next = early.pop_front().or_else(|| inbox.try_recv().ok());
            }
            if paused {
                continue;
            }
            let budget = self.config.schedule.episodes;
            if budget > 0 && self.counters.episodes >= budget {
                return Ok(End::Budget);
            }
            idle = self.turn()? == Turn::Idle;
        }
    }

    /// Time that passes from here on is not training time.
    fn rest(&mut self) {
        self.seconds += self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        if self.speed.per_second() > 0.0 {
            self.speed.reset();
            self.status(|_| {});
            self.out.tell_status();
        }
    }

    /// Whether the run can go on without people.
    fn simulated_available(&self) -> bool {
        self.teacher.is_some() || self.config.algorithm.name.feedback() != Feedback::Descriptions
    }

    fn elapsed(&self) -> f64 {
        self.seconds + self.since.elapsed().as_secs_f64()
    }

    fn set_mode(&mut self, mode: TeacherMode) -> anyhow::Result<()> {
        let name = self.config.algorithm.name;
        if !name.taught_by_people() && mode != TeacherMode::Simulated {
            self.out.log(format!("The simulated teacher goes on: {}.", only_described(name)));
            self.out.tell_status();
            return Ok(());
        }
        if !self.simulated_available() && mode != TeacherMode::Human {
            self.out.log("There is no simulated teacher for this run; people go on teaching.");
            self.out.tell_status();
            return Ok(());
        }
        if self.notes.is_none() && mode != TeacherMode::Simulated {
            self.out.log("This run has no pages for people; the simulated teacher goes on.");
            return Ok(());
        }
        self.mode = mode;
        if let Some(notes) = &self.notes {
            notes.wait(notes.store().set_teacher_mode(&self.id, mode))?;
        }
        self.speed.reset();
        self.status(|_| {});
        self.out.tell_status();
        Ok(())
    }

    /// One turn of the loop: people's answers first, then their pool, then a simulated iteration.
    fn turn(&mut self) -> anyhow::Result<Turn> {
        let mut turn = Turn::Idle;
        // Whoever teaches now: what somebody typed before the switch is learnt from all the same.
        if self.human_update()? {
            turn = Turn::Worked;
        }
        match self.mode {
            TeacherMode::Human => self.fill_pool()?,
            TeacherMode::Simulated => {
                self.simulated_update(0.0, 0)?;
                turn = Turn::Worked;
            }
            TeacherMode::Mixed { share } => {
                let room = self.room()?;
                self.simulated_update(share, room)?;
                turn = Turn::Worked;
            }
        }
        if let Some(notes) = &mut self.notes {
            notes.flush(false)?;
        }
        Ok(turn)
    }

    /// Lets greedy π_θ carry out a request.
    fn attempt(&self, request: &str, form: &serde_json::Value) -> Result<Tried, String> {
        if request.trim().is_empty() {
            return Err("Type what the agent should do.".into());
        }
        // What is left open is another at each try.
        let tries = self.tries.get();
        self.tries.set(tries + 1);
        let start =
            self.kit.start_from_form(&self.world, form, &mut rng::stream(self.config.seed, "try form", tries))?;
        let executions = self
            .algorithm
            .policy()
            .act(&[(&start, request)], Act::Greedy, &mut rng::stream(0, "try", 0))
            .map_err(|e| format!("The agent could not try: {e}"))?;
        let execution = &executions[0];
        Ok(Tried {
            view: self.world.view(&start, execution),
            summary: self.world.summary(execution),
            valid: self.world.valid(&start, execution),
            update: self.counters.update,
        })
    }

    fn finish(&mut self, end: End) -> anyhow::Result<FinalReport> {
        self.seconds = self.elapsed();
        self.since = Instant::now();
        // Once an update, so that no reading counts twice in the smoothed curve.
        if end != End::Shutdown && self.milestones.at() != Some(self.counters.update) {
            self.evaluate_and_tell()?;
        }
        self.checkpoint()?;
        if let Some(notes) = &self.notes
            && end != End::Shutdown
        {
            notes.wait(notes.store().set_active(&self.id, false))?;
        }
        let mut report = FinalReport {
            run: self.id.clone(),
            algorithm: self.config.algorithm.name,
            feedback: self.config.algorithm.name.feedback(),
            validation_smoothed: self.milestones.best(),
            reached: self.milestones.reached.clone(),
            validation: self.validation.unwrap_or(evaluation::rate(0, 0)),
            test: evaluation::rate(0, 0),
            best_update: self.best.map_or(0, |(_, u)| u),
            updates: self.counters.update,
            episodes: self.counters.episodes,
            descriptions: self.counters.human + self.counters.simulated,
            seconds: self.seconds,
            complete: end == End::Budget,
        };
        if end == End::Budget || end == End::Concluded {
            // The reported policy is the one that did best on validation; test tasks are touched here only.
            let (header, tensors) = checkpoint::load(&self.folder.join(checkpoint::BEST))?;
            self.algorithm.restore(&tensors, &header.saved())?;
            report.validation = evaluate(&*self.world, self.algorithm.policy(), Split::Validation, 0)?.success;
            report.test = evaluate(&*self.world, self.algorithm.policy(), Split::Test, 0)?.success;
        }
        if end != End::Shutdown {
            self.status(|s| s.state = RunState::Stopped);
            self.out.tell_status();
        }
        Ok(report)
    }
}
