//! The trainer: one thread that owns the models of a run. Commands come in between two updates; events go out. Saving,
//! recording and rendering are siblings that listen.
//!
//! An update is an iteration of the loop. It takes its input either from the simulated teacher (a batch of fresh
//! episodes) or from people (answers that arrived since). Everything an update does is a function of the weights, the
//! seed, and what its record holds; so a killed run makes the lost updates again and stands where it stood.

mod asking;
pub mod checkpoint;
mod conduct;
mod iteration;
pub mod journal;
pub mod meters;
pub mod milestones;
mod out;
mod passing;
mod people;
mod persist;
mod progress;
mod rebuild;
mod rollouts;

use crate::algorithm::query_selection::Tallies;
use crate::algorithm::{self, Algorithm};
use crate::config::run::TeacherMode;
use crate::config::run::{AlgorithmName, Feedback};
use crate::config::run::{RunConfig, only_described};
use crate::family::Family;
use crate::ids::RunId;
use crate::output::lock::FolderLock;
use crate::protocol::Rate;
use crate::protocol::Teacher;
use crate::protocol::evaluation;
use crate::run::Reached;
use crate::run::{Command, Event, RunHandle, RunState, Status};
use crate::store::Store;
use anyhow::Context;
use checkpoint::Counters;
use iteration::BrokenOff;
use journal::{Notes, Record};
use meters::{Meters, Speed};
use milestones::Milestones;
use out::Out;
use passing::Passing;
use rollouts::{Numbers, Rollouts};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;
use tokio::sync::{broadcast, watch};

/// Gets every event of a run, in order, on the trainer's thread.
pub type Listener = Box<dyn Fn(&Arc<Event>) + Send>;

/// What a run needs to start or to go on.
pub struct Launch {
    /// Run id.
    pub id: RunId,
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
    pub run: RunId,
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
pub fn spawn<K: Family>(
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
        spare_words: None,
    };
    let (status_sender, status_receiver) = watch::channel(status);
    let handle = RunHandle {
        id: launch.id.clone(),
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
        ending: None,
    };
    let launch = Launch { listener: None, ..launch };
    let name = format!("trainer {}", launch.id);
    // The trainer is one of its own pool's threads: what it shares out and nobody has taken up, it does itself, at once. On
    // a busy machine it would else wait for a thread to be woken at every product of matrices.
    crate::nn::sharing::watch();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(crate::nn::sharing::threads())
        // Candle's backward pass walks the graph recursively.
        .stack_size(64 << 20)
        .thread_name(|n| format!("trainer's {n}"))
        .build()
        .context("cannot start the trainer's threads")?;
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            pool.install(move || {
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
        })
        .context("cannot start the trainer's thread")?;
    Ok((handle, thread))
}

struct Trainer<'a, K: Family> {
    kit: &'static K,
    id: RunId,
    config: RunConfig,
    folder: PathBuf,
    world: Arc<K::World>,
    algorithm: Box<dyn Algorithm<K::World>>,
    teacher: Option<Box<dyn Teacher<K::World>>>,
    mode: TeacherMode,
    counters: Counters,
    record: Record<K::World>,
    notes: Option<Notes>,
    meters: Meters,
    tallies: Tallies,
    /// The next free number of an episode.
    numbers: Numbers,
    /// Executes for people beside the learning.
    rollouts: Option<Rollouts<K::World>>,
    inbox: &'a Receiver<Command>,
    /// Commands that were taken out of the inbox and are still to be carried out.
    early: VecDeque<Command>,
    /// Whether the evaluation that is due was broken off.
    owed: bool,
    speed: Speed,
    validation: Option<Rate>,
    /// Update of the policy that `validation` was read of.
    validated: Option<u64>,
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

fn live<K: Family>(
    kit: &'static K,
    launch: Launch,
    inbox: &Receiver<Command>,
    mut early: VecDeque<Command>,
    out: &mut Out,
) -> anyhow::Result<FinalReport> {
    std::fs::create_dir_all(&launch.folder).with_context(|| format!("cannot make {}", launch.folder.display()))?;
    let _lock = lock(&launch.folder)?;
    checkpoint::clear_drafts(&launch.folder)
        .with_context(|| format!("cannot tidy up in {}", launch.folder.display()))?;
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
    let (agent, header, tensors) = match found {
        Some((header, tensors)) => {
            (kit.agent_from(&config, &world, &header.blueprint, &launch.device)?, Some(header), Some(tensors))
        }
        None => {
            let mut new = kit.agent(&config, &world, &launch.device)?;
            if !new.pretrained {
                let done = crate::algorithm::pretrain(&*world, &mut *new.agent, &config, |share| {
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
    let held = capacity.max(algorithm.recall());
    let opened = Record::open(&launch.folder, counters.recorded, held);
    let mut record = match (opened, &launch.store) {
        (Ok(record), _) => record,
        (Err(error), Some((store, runtime))) if Passing::of(&error).is_none() => {
            let place = (launch.folder.as_path(), counters.update, counters.recorded);
            let made = runtime.block_on(rebuild::record(&*world, &config, (store, &launch.id), place));
            made.with_context(|| format!("{error:#}; it cannot be made again from the database"))?;
            out.log(format!(
                "The record of descriptions was made again from the database, all {} of them: {error:#}",
                counters.recorded
            ));
            Record::open(&launch.folder, counters.recorded, held)?
        }
        (Err(error), _) => return Err(error),
    };
    if algorithm.recall() > 0 {
        algorithm.remember(record.last(algorithm.recall()));
        record.limit(capacity);
    }
    let notes = launch.store.map(|(store, runtime)| Notes::new(store, runtime, launch.id.clone()));
    let mut curve = progress::open_curve(&launch.folder, counters.update)?;
    if let (false, Some(notes)) = (curve.whole, &notes) {
        let place = (notes.store(), &launch.id);
        let count = notes.wait(rebuild::curve(place, &launch.folder, counters.update))?;
        out.log(format!("The file of the curve was lost or damaged; its {count} points were taken from the database."));
        curve = progress::open_curve(&launch.folder, counters.update)?;
    }
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
        numbers: Numbers::from(counters.next.unwrap_or(counters.episodes).max(counters.episodes)),
        rollouts: None,
        inbox,
        early,
        owed: header.as_ref().is_none_or(|h| h.owed),
        speed: Speed::default(),
        validation: header.as_ref().and_then(|h| h.validation),
        validated: header.as_ref().and_then(|h| h.validated),
        best: header.as_ref().and_then(|h| h.best),
        milestones: header
            .as_ref()
            .map_or_else(|| Milestones::new(kit.levels()), |header| Milestones::of(header, kit.levels())),
        seconds: header.as_ref().map_or(0.0, |h| h.seconds),
        since: Instant::now(),
        out,
        curve: curve.file,
        again: false,
        tries: std::cell::Cell::default(),
        config,
    };
    if header.as_ref().is_some_and(|h| h.counters.next.is_none()) {
        trainer.recount()?;
    }
    if trainer.owed {
        trainer.evaluate_and_tell()?;
    }
    if header.is_none() {
        trainer.checkpoint()?;
    }
    match trainer.carry_on() {
        Ok(end) => {
            trainer.out.ending = Some(end.command());
            trainer.finish(end)
        }
        Err(error) if error.is::<BrokenOff>() => trainer.break_off(),
        Err(error) => Err(error),
    }
}

/// Locks the run's folder, so that no second trainer writes into it.
fn lock(folder: &std::path::Path) -> anyhow::Result<FolderLock> {
    let path = folder.join("run.lock");
    FolderLock::acquire(&path)
        .with_context(|| format!("cannot write {}", path.display()))?
        .with_context(|| format!("another program is training the run in {}", folder.display()))
}

/// Ends a run that was told to while it warmed up: nothing has been learnt that could be saved.
fn stopped_early(
    id: &RunId,
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
        run: id.clone(),
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
