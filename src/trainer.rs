//! The trainer: one thread that owns the models of a run. Commands come in between two updates; events go out. The store and
//! the pages only listen to these events.
//!
//! An update is an iteration of the loop. Its input comes either from the simulated teacher (a batch of fresh
//! episodes) or from people (answers that arrived since). An update is a function of the weights, the seed, and its record
//! in the store; so a killed run makes the lost updates again and reaches the same state.

mod after_update;
mod batch;
pub mod checkpoint;
mod clock;
mod commands;
mod comprehension;
pub mod curve;
pub mod description_log;
mod event_sink;
mod gradient_steps;
mod human_update;
pub mod imported;
mod loading;
pub mod meters;
pub mod milestones;
mod practice;
mod progress;
mod query_selector;
mod rebuild;
mod recovery;
mod replay_buffer;
mod retry;
mod review;
mod rollouts;
mod setup;
mod simulated_update;
mod store_writer;
mod supply;
mod training_loop;
mod transient;
mod validation;

use crate::config::run::{AlgorithmName, Feedback, RunConfig, TeacherMode};
use crate::family::Family;
use crate::ids::RunId;
use crate::protocol::Rate;
use crate::run::{Event, Reached, RunHandle, RunState, Status};
use crate::store::Store;
use anyhow::Context;
use event_sink::EventSink;
use retry::train_with_retry;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};
use training_loop::Trainer;

/// Gets every event of a run, in order, on the trainer's thread.
pub type Listener = Box<dyn Fn(&Arc<Event>) + Send>;

/// Everything that a run needs to start or to be resumed.
pub struct Launch {
    /// Run id.
    pub id: RunId,
    /// Configuration. A resumed run goes by its checkpoint's, and takes only the number of episodes after which it ends from
    /// here.
    pub config: RunConfig,
    /// Folder of checkpoints, description log and curve.
    pub folder: PathBuf,
    /// Device.
    pub device: candle_core::Device,
    /// Store and the runtime it lives on; `None` for offline runs.
    pub store: Option<(Store, tokio::runtime::Handle)>,
    /// The store's teacher mode, which takes precedence over the checkpoint's.
    pub teacher: Option<TeacherMode>,
    /// Gets every event, in order, before the broadcast does.
    pub listener: Option<Listener>,
}

/// The results of a finished run.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct FinalReport {
    /// Run id.
    pub run: RunId,
    /// Learning algorithm.
    pub algorithm: AlgorithmName,
    /// The kind of teaching that `descriptions` counts.
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
/// When the thread cannot be started. Later errors are published as [`RunState::Failed`] and returned by the join handle.
pub fn spawn<K: Family>(
    family: &'static K,
    launch: Launch,
) -> anyhow::Result<(RunHandle, std::thread::JoinHandle<anyhow::Result<FinalReport>>)> {
    let (commands, inbox) = std::sync::mpsc::channel();
    let (events, _) = broadcast::channel(1024);
    let status = Status {
        run: launch.id.clone(),
        state: RunState::Starting { what: "Getting ready".into(), done: None, seconds_left: None },
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
        practice: 0,
    };
    let (status_sender, status_receiver) = watch::channel(status);
    let handle = RunHandle {
        id: launch.id.clone(),
        family: family.name(),
        commands,
        events: events.clone(),
        status: status_receiver,
    };
    let mut sink = EventSink::new(events, status_sender, launch.listener);
    let launch = Launch { listener: None, ..launch };
    let name = format!("trainer {}", launch.id);
    // The trainer is one of its own pool's threads: it does those shares of its work itself that no other thread has taken. On
    // a busy machine it would otherwise wait for a thread to be woken at every matrix product.
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
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    train_with_retry(family, launch, &inbox, &mut sink)
                }))
                .unwrap_or_else(|panic| {
                    let what = panic.downcast_ref::<String>().cloned();
                    let what = what.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
                    Err(anyhow::anyhow!("the trainer broke: {}", what.unwrap_or_default()))
                });
                if let Err(error) = &outcome {
                    tracing::error!("run failed: {error:#}");
                    sink.publish_state(RunState::Failed { message: format!("Training ended by an error: {error:#}") });
                }
                outcome
            })
        })
        .context("cannot start the trainer's thread")?;
    Ok((handle, thread))
}
