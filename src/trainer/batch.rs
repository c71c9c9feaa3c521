//! A batch of fresh training episodes: tasks are drawn and executed, and the executions are judged. The iterations of the
//! loop and the roll-out thread both begin with one.

use crate::protocol::{Split, Task, World};
use crate::{rng, stages};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) type TaskOf<W> = Task<<W as World>::Start>;
pub(super) type ExecutionOf<W> = <W as World>::Execution;

/// The next free number of an episode, shared by all who execute.
#[derive(Clone, Debug)]
pub(super) struct EpisodeNumbers(Arc<AtomicU64>);

impl EpisodeNumbers {
    pub(super) fn starting_at(next: u64) -> Self {
        Self(Arc::new(AtomicU64::new(next)))
    }

    /// Takes `n` numbers in a row and returns the first of them.
    pub(super) fn take(&self, n: u64) -> u64 {
        self.0.fetch_add(n, Ordering::Relaxed)
    }

    /// The next free number.
    pub(super) fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Continues from another number.
    pub(super) fn set(&self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }
}

/// How an execution was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    /// Whether it is a valid execution at all.
    pub(super) valid: bool,
    /// Whether it does what the gold execution does.
    pub(super) success: bool,
}

/// Executed episodes. All lists are of equal length, position by position.
pub(super) struct Batch<W: World> {
    /// Number of the first episode.
    pub(super) first: u64,
    pub(super) tasks: Vec<TaskOf<W>>,
    pub(super) executions: Vec<ExecutionOf<W>>,
    pub(super) judgements: Vec<Judgement>,
}

/// The settings by which batches are executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSettings {
    /// The run's seed.
    pub(super) seed: u64,
    /// Threshold τ of perf(ê, e*).
    pub(super) tau: f64,
    /// Whether the executions are reduced to the part that is described ([`World::to_describe`]).
    pub(super) to_describe: bool,
}

impl<W: World> Batch<W> {
    /// Executes and judges the training episodes with the numbers from `first` on.
    ///
    /// # Errors
    /// When the policy cannot be computed.
    pub(super) fn execute(
        world: &W,
        settings: BatchSettings,
        (first, n): (u64, u64),
        explore: impl Fn(&[TaskOf<W>], u64) -> candle_core::Result<Vec<ExecutionOf<W>>>,
    ) -> candle_core::Result<Self> {
        let tasks: Vec<TaskOf<W>> = (first..first + n)
            .map(|number| world.sample_task(Split::Train, &mut rng::stream(settings.seed, "task", number)))
            .collect();
        stages::end("tasks");
        let mut executions = explore(&tasks, first)?;
        stages::end("explore");
        if settings.to_describe {
            executions = tasks.iter().zip(executions).map(|(t, e)| world.to_describe(&t.start, e)).collect();
        }
        let judgements = tasks.iter().zip(&executions).map(|(t, e)| judge(world, t, e, settings.tau)).collect();
        Ok(Self { first, tasks, executions, judgements })
    }
}

/// Judges an execution of a task.
pub(super) fn judge<W: World>(world: &W, task: &TaskOf<W>, execution: &ExecutionOf<W>, tau: f64) -> Judgement {
    let gold = world.gold(task.split, task.index);
    Judgement {
        valid: world.valid(&task.start, execution),
        success: world.performs(&task.start, execution, &gold, tau),
    }
}
