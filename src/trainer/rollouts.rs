//! The roll-out thread: it executes episodes for people beside the learning, with a copy of the exploration policy, so that
//! nobody waits for an update to end. How many it keeps ready follows the people who are there.
//!
//! The thread decides what people are shown, and nothing of what is learnt from their answers: an answer's execution
//! carries the whole episode. It therefore needs no place in checkpoints but the next free number of an episode.

mod allowance;

use super::batch::{Batch, BatchSettings, EpisodeNumbers};
use super::human_update::execution_for_people;
use super::query_selector::QuerySelector;
use super::transient::Transient;
use crate::algorithm::explorer::Explorer;
use crate::config::run::{RunConfig, TeacherMode};
use crate::ids::{AnswerId, RunId};
use crate::protocol::{Episode, Medium, World};
use crate::store::Store;
use allowance::Allowance;
use anyhow::Context;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Executions kept ready for each person: the one that follows, and one in reserve.
const PER_PERSON: u64 = 2;

/// Most people whom the pool's size follows.
const MAX_PEOPLE: u64 = 1000;

/// Episodes of one batch at most, before those that are chosen among.
const MAX_BATCH: usize = 128;

/// Between two looks at the pool while people are there, and while nobody is.
const POLL: Duration = Duration::from_millis(60);
const SLOW_POLL: Duration = Duration::from_millis(500);

/// Executions that somebody skipped and others may still want, for each that the pool's setting keeps ready.
const SKIPPED: u64 = 20;

/// Between two looks for executions of policies that are too old.
const RETIRE_INTERVAL: Duration = Duration::from_secs(1);

/// Executions to keep ready, beside those that somebody has leased, when so many people are there.
pub(super) fn target_size(size: usize, people: u64) -> usize {
    size.max((PER_PERSON * people.min(MAX_PEOPLE)) as usize)
}

/// Counts of executions for people since the trainer last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RolloutCounts {
    pub(super) executions: u64,
    pub(super) valid: u64,
    pub(super) successes: u64,
}

/// The policy that executes, and the selection of the executions that are offered.
struct Policy<W: World> {
    explorer: Explorer<W>,
    selector: QuerySelector,
    update: u64,
}

/// The state that trainer and roll-out thread exchange.
struct Exchange<W: World> {
    /// A newer policy than the thread has.
    fresh: Option<Policy<W>>,
    /// A copy that the thread is done with.
    spare: Option<Explorer<W>>,
    /// Whether the thread could use a newer policy.
    wanted: bool,
    mode: TeacherMode,
    /// Update that the trainer is at.
    update: u64,
    counts: RolloutCounts,
    /// Why the thread had to end.
    failed: Option<anyhow::Error>,
    stop: bool,
}

struct Shared<W: World> {
    exchange: Mutex<Exchange<W>>,
    changed: Condvar,
}

impl<W: World> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, Exchange<W>> {
        self.exchange.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The run's parts that the thread works with.
pub(super) struct RolloutContext<W: World> {
    pub(super) run: RunId,
    pub(super) config: RunConfig,
    pub(super) world: Arc<W>,
    pub(super) store: Store,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) numbers: EpisodeNumbers,
}

/// The trainer's handle of its roll-out thread, which ends when this is dropped.
pub(super) struct Rollouts<W: World> {
    shared: Arc<Shared<W>>,
    thread: Option<std::thread::JoinHandle<()>>,
    published: u64,
}

impl<W: World> Rollouts<W> {
    /// Starts the thread. It executes nothing before it has a policy.
    pub(super) fn start(context: RolloutContext<W>, mode: TeacherMode, update: u64) -> anyhow::Result<Self> {
        let (fresh, spare, failed) = (None, None, None);
        let exchange = Exchange {
            fresh,
            spare,
            wanted: true,
            mode,
            update,
            counts: RolloutCounts::default(),
            failed,
            stop: false,
        };
        let shared = Arc::new(Shared { exchange: Mutex::new(exchange), changed: Condvar::new() });
        // Its matrix products stay on its own thread: they are small, and the learner's threads are busy.
        let own_pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .thread_name(|_| "roll-outs".into())
            .build()
            .context("cannot start the roll-out thread")?;
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("roll-outs".into())
            .spawn(move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    own_pool.install(|| Thread::new(&theirs, context).run())
                }))
                .unwrap_or_else(|_| Err(anyhow::anyhow!("the roll-out thread broke")));
                theirs.lock().failed = outcome.err();
            })
            .context("cannot start the roll-out thread")?;
        Ok(Self { shared, thread: Some(thread), published: u64::MAX })
    }

    /// Tells the thread the trainer's mode and update. Returns the counts of executions since the last call.
    ///
    /// # Errors
    /// The error by which the thread ended.
    pub(super) fn synchronise(&mut self, mode: TeacherMode, update: u64) -> anyhow::Result<RolloutCounts> {
        let mut exchange = self.shared.lock();
        if let Some(error) = exchange.failed.take() {
            return Err(error.context("executions for people cannot be made"));
        }
        if exchange.mode != mode || exchange.update != update {
            (exchange.mode, exchange.update) = (mode, update);
            self.shared.changed.notify_all();
        }
        Ok(std::mem::take(&mut exchange.counts))
    }

    /// Wakes the thread: somebody answered.
    pub(super) fn wake(&self) {
        self.shared.changed.notify_all();
    }

    /// Whether a copy of the policy of `update` is wanted, and a copy whose memory it may use.
    pub(super) fn wants(&self, update: u64) -> Option<Option<Explorer<W>>> {
        let mut exchange = self.shared.lock();
        (exchange.wanted && exchange.mode != TeacherMode::Simulated && self.published != update)
            .then(|| exchange.spare.take())
    }

    /// Gives the thread the policy of `update`.
    pub(super) fn publish(&mut self, explorer: Explorer<W>, selector: QuerySelector, update: u64) {
        self.published = update;
        let mut exchange = self.shared.lock();
        (exchange.fresh, exchange.wanted) = (Some(Policy { explorer, selector, update }), false);
        self.shared.changed.notify_all();
    }
}

impl<W: World> Drop for Rollouts<W> {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread itself.
struct Thread<'a, W: World> {
    shared: &'a Shared<W>,
    context: RolloutContext<W>,
    policy: Option<Policy<W>>,
    /// Kinds of the executions that came into the pool last, as many as it holds.
    offered: VecDeque<String>,
    allowance: Allowance,
    /// Newest answer seen.
    answer: AnswerId,
    /// Update at the last look for executions that are too old, and when that was.
    retired: Option<(u64, Instant)>,
}

impl<'a, W: World> Thread<'a, W> {
    fn new(shared: &'a Shared<W>, context: RolloutContext<W>) -> Self {
        let allowance = Allowance::new(context.config.pool.size);
        Self {
            shared,
            context,
            policy: None,
            offered: VecDeque::new(),
            allowance,
            answer: AnswerId::default(),
            retired: None,
        }
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut failed = 0;
        loop {
            let (mode, update) = {
                let mut exchange = self.shared.lock();
                if exchange.stop {
                    return Ok(());
                }
                if let Some(fresh) = exchange.fresh.take() {
                    exchange.spare = self.policy.replace(fresh).map(|old| old.explorer);
                }
                (exchange.mode, exchange.update)
            };
            let pause = match self.fill_pool(mode, update) {
                Ok(pause) => {
                    failed = 0;
                    pause
                }
                Err(error) => match Transient::of(&error) {
                    Some(cause) => {
                        if failed == 0 {
                            tracing::warn!("executions for people wait for {}: {error:#}", cause.awaited());
                        }
                        failed += 1;
                        cause.pause(failed)
                    }
                    None => return Err(error),
                },
            };
            if !pause.is_zero() {
                let exchange = self.shared.lock();
                if !exchange.stop && exchange.fresh.is_none() {
                    drop(self.shared.changed.wait_timeout(exchange, pause));
                }
            }
        }
    }

    /// Looks at the pool and fills it; how long to wait before the next look.
    fn fill_pool(&mut self, mode: TeacherMode, update: u64) -> anyhow::Result<Duration> {
        if mode == TeacherMode::Simulated {
            return Ok(SLOW_POLL);
        }
        self.retire(update)?;
        let RolloutContext { store, runtime, run, .. } = &self.context;
        let pool = runtime.block_on(store.pool(run))?;
        let people = pool.people;
        let supply = runtime.block_on(store.answers_since(run, self.answer))?;
        self.allowance.answered(supply.answered);
        self.allowance.pass(people);
        self.answer = supply.newest;
        // In mixed mode some episodes of each iteration go to people anyhow; without people that is enough.
        if people == 0 && matches!(mode, TeacherMode::Mixed { .. }) {
            return Ok(SLOW_POLL);
        }
        let wanted = target_size(self.context.config.pool.size, people);
        self.allowance.set_pool(wanted);
        let room = wanted.saturating_sub(pool.open as usize).min(self.allowance.left());
        if room == 0 {
            return Ok(if people > 0 { POLL } else { SLOW_POLL });
        }
        let Some(policy) = &self.policy else { return Ok(POLL) };
        if policy.update != update {
            self.shared.lock().wanted = true;
        }
        let made = self.execute(room, wanted)?;
        self.allowance.spend(made);
        // A policy that does nothing describable must not keep the thread from sleeping.
        Ok(if made == 0 || made >= room { POLL } else { Duration::ZERO })
    }

    /// Takes executions of policies that are too old out of the pool.
    fn retire(&mut self, update: u64) -> anyhow::Result<()> {
        if self.retired.is_some_and(|(_, when)| when.elapsed() < RETIRE_INTERVAL) {
            return Ok(());
        }
        let RolloutContext { store, runtime, run, config, .. } = &self.context;
        if self.retired.is_none_or(|(at, _)| at != update) {
            runtime.block_on(store.retire_stale(run, update.saturating_sub(config.pool.max_age)))?;
        }
        // Without updates nothing grows too old, however much is skipped.
        runtime.block_on(store.retire_skipped(run, SKIPPED * config.pool.size as u64))?;
        self.retired = Some((update, Instant::now()));
        Ok(())
    }

    /// Executes a batch of fresh episodes and offers at most `room` of them. Returns how many were offered.
    fn execute(&mut self, room: usize, wanted: usize) -> anyhow::Result<usize> {
        let Some(policy) = &self.policy else { return Ok(0) };
        let RolloutContext { run, config, world, store, runtime, numbers } = &self.context;
        let n = policy.selector.episodes_for_people(config, room, MAX_BATCH) as u64;
        // A rating is of the very execution whose likelihood it moves.
        let to_describe = config.algorithm.name.medium() != Some(Medium::Rating);
        let settings = BatchSettings { seed: config.seed, tau: config.teacher.pragmatics.tau, to_describe };
        let explore = |tasks: &[_], first| policy.explorer.explore(tasks, first);
        let batch = Batch::execute(&**world, settings, (numbers.take(n), n), explore)?;
        let selected =
            policy.selector.select_for_people(&**world, &batch, self.offered.make_contiguous(), room, explore)?;
        let mut counts = RolloutCounts::default();
        let mut fresh = Vec::new();
        let Batch { first, tasks, executions, judgements } = batch;
        for (i, (task, execution)) in tasks.into_iter().zip(executions).enumerate() {
            counts.executions += 1;
            counts.valid += u64::from(judgements[i].valid);
            counts.successes += u64::from(judgements[i].success);
            if fresh.len() < room && selected[i] && world.worth_showing(&task.start, &execution) {
                self.offered.push_back(policy.selector.kind_for_people(&**world, &task, &execution));
                let episode = Episode { number: first + i as u64, task, execution };
                fresh.push(execution_for_people(&**world, config, &episode, judgements[i].success, policy.update)?);
            }
        }
        let surplus = self.offered.len().saturating_sub(wanted);
        self.offered.drain(..surplus);
        if !fresh.is_empty() {
            runtime.block_on(store.offer(run, &fresh))?;
        }
        let mut exchange = self.shared.lock();
        exchange.counts.executions += counts.executions;
        exchange.counts.valid += counts.valid;
        exchange.counts.successes += counts.successes;
        Ok(fresh.len())
    }
}

#[cfg(test)]
mod tests {
    use super::target_size;

    #[test]
    fn the_pool_follows_the_people() {
        let sizes = [0, 12, 60, 1 << 40].map(|people| target_size(24, people));
        assert_eq!(sizes, [24, 24, 120, 2000]);
    }
}
