//! The roll-out thread: it executes episodes for people beside the learning, with a copy of the exploration policy, so that
//! nobody waits for an update to end. How many it keeps ready follows the people who are there.
//!
//! What it does decides what people are shown, and nothing of what is learnt from their answers: an answer's execution
//! carries the whole episode. It therefore needs no place in checkpoints but the next free number of an episode.

use super::asking::{Batch, TaskOf};
use super::passing::Passing;
use super::people::execution_for_people;
use crate::algorithm::explorer::Explorer;
use crate::algorithm::query_selection::Tallies;
use crate::config::run::RunConfig;
use crate::config::run::TeacherMode;
use crate::ids::{AnswerId, RunId};
use crate::protocol::Episode;
use crate::protocol::{Split, World};
use crate::rng;
use crate::store::Store;
use anyhow::Context;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Executions kept ready for each person: the one that follows, and one in reserve.
const PER_PERSON: u64 = 2;

/// Most people whom the pool's size follows.
const MOST_PEOPLE: u64 = 1000;

/// Episodes of one batch at most, before those that are chosen among.
const LARGEST_BATCH: usize = 128;

/// Fresh executions a second and person that are made without an answer in return: for those who skip or go away. A person
/// who reads what they skip is hardly slowed down, and a program that skips cannot keep the machine busy.
const UNANSWERED: f64 = 0.5;

/// Most people for whom such executions are made at once.
const MOST_UNANSWERED: u64 = 40;

/// Between two looks at the pool while people are there, and while nobody is.
const LOOK: Duration = Duration::from_millis(60);
const LOOK_SELDOM: Duration = Duration::from_millis(500);

/// Executions that somebody skipped and others may still want, for each that the pool's setting keeps ready.
const SKIPPED: u64 = 20;

/// Between two looks for executions of policies that are too old.
const RETIRE: Duration = Duration::from_secs(1);

/// Executions to keep ready, beside those that somebody is at, when so many people are there.
pub(super) fn ready(size: usize, people: u64) -> usize {
    size.max((PER_PERSON * people.min(MOST_PEOPLE)) as usize)
}

/// The next free number of an episode, shared by all who execute.
#[derive(Clone, Debug)]
pub(super) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    pub(super) fn from(next: u64) -> Self {
        Self(Arc::new(AtomicU64::new(next)))
    }

    /// Takes `n` numbers in a row; the first of them.
    pub(super) fn take(&self, n: u64) -> u64 {
        self.0.fetch_add(n, Ordering::Relaxed)
    }

    /// The next free number.
    pub(super) fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Goes on from another number.
    pub(super) fn set(&self, next: u64) {
        self.0.store(next, Ordering::Relaxed);
    }
}

/// Executions that were made for people since the trainer last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    pub(super) executions: u64,
    pub(super) valid: u64,
    pub(super) successes: u64,
}

/// What executes, and what else decides what is offered.
struct Policy<W: World> {
    explorer: Explorer<W>,
    tallies: Tallies,
    update: u64,
}

/// What trainer and roll-out thread lay out for each other.
struct Desk<W: World> {
    /// A newer policy than the thread has.
    fresh: Option<Policy<W>>,
    /// A copy that the thread is done with.
    spare: Option<Explorer<W>>,
    /// Whether the thread could use a newer policy.
    wanted: bool,
    mode: TeacherMode,
    /// Update that the trainer is at.
    update: u64,
    made: Made,
    /// Why the thread had to end.
    failed: Option<anyhow::Error>,
    leave: bool,
}

struct Shared<W: World> {
    desk: Mutex<Desk<W>>,
    bell: Condvar,
}

impl<W: World> Shared<W> {
    fn desk(&self) -> MutexGuard<'_, Desk<W>> {
        self.desk.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// What the thread works with.
pub(super) struct Workplace<W: World> {
    pub(super) run: RunId,
    pub(super) config: RunConfig,
    pub(super) world: Arc<W>,
    pub(super) store: Store,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) numbers: Numbers,
}

/// The trainer's hold on its roll-out thread, which ends when this is dropped.
pub(super) struct Rollouts<W: World> {
    shared: Arc<Shared<W>>,
    thread: Option<std::thread::JoinHandle<()>>,
    published: u64,
}

impl<W: World> Rollouts<W> {
    /// Starts the thread. It executes nothing before it has a policy.
    pub(super) fn start(place: Workplace<W>, mode: TeacherMode, update: u64) -> anyhow::Result<Self> {
        let (fresh, spare, failed) = (None, None, None);
        let desk = Desk { fresh, spare, wanted: true, mode, update, made: Made::default(), failed, leave: false };
        let shared = Arc::new(Shared { desk: Mutex::new(desk), bell: Condvar::new() });
        // Its products stay on its own thread: they are small, and the learner's threads are busy.
        let alone = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .thread_name(|_| "roll-outs".into())
            .build()
            .context("cannot start the roll-out thread")?;
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("roll-outs".into())
            .spawn(move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    alone.install(|| Thread::new(&theirs, place).work())
                }))
                .unwrap_or_else(|_| Err(anyhow::anyhow!("the roll-out thread broke")));
                theirs.desk().failed = outcome.err();
            })
            .context("cannot start the roll-out thread")?;
        Ok(Self { shared, thread: Some(thread), published: u64::MAX })
    }

    /// Tells the thread where the trainer is, and what it is owed: the executions made since the last call.
    ///
    /// # Errors
    /// With what the thread ended by.
    pub(super) fn meet(&mut self, mode: TeacherMode, update: u64) -> anyhow::Result<Made> {
        let mut desk = self.shared.desk();
        if let Some(error) = desk.failed.take() {
            return Err(error.context("executions for people cannot be made"));
        }
        if desk.mode != mode || desk.update != update {
            (desk.mode, desk.update) = (mode, update);
            self.shared.bell.notify_all();
        }
        Ok(std::mem::take(&mut desk.made))
    }

    /// Wakes the thread: somebody answered.
    pub(super) fn ring(&self) {
        self.shared.bell.notify_all();
    }

    /// Whether a copy of the policy of `update` is wanted, and a copy whose memory it may use.
    pub(super) fn wants(&self, update: u64) -> Option<Option<Explorer<W>>> {
        let mut desk = self.shared.desk();
        (desk.wanted && desk.mode != TeacherMode::Simulated && self.published != update).then(|| desk.spare.take())
    }

    /// Lays out the policy of `update`.
    pub(super) fn publish(&mut self, explorer: Explorer<W>, tallies: Tallies, update: u64) {
        self.published = update;
        let mut desk = self.shared.desk();
        (desk.fresh, desk.wanted) = (Some(Policy { explorer, tallies, update }), false);
        self.shared.bell.notify_all();
    }
}

impl<W: World> Drop for Rollouts<W> {
    fn drop(&mut self) {
        self.shared.desk().leave = true;
        self.shared.bell.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own side.
struct Thread<'a, W: World> {
    shared: &'a Shared<W>,
    place: Workplace<W>,
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
    fn new(shared: &'a Shared<W>, place: Workplace<W>) -> Self {
        let allowance = Allowance::new(place.config.pool.size);
        Self {
            shared,
            place,
            policy: None,
            offered: VecDeque::new(),
            allowance,
            answer: AnswerId::default(),
            retired: None,
        }
    }

    fn work(&mut self) -> anyhow::Result<()> {
        let mut failed = 0;
        loop {
            let (mode, update) = {
                let mut desk = self.shared.desk();
                if desk.leave {
                    return Ok(());
                }
                if let Some(fresh) = desk.fresh.take() {
                    desk.spare = self.policy.replace(fresh).map(|old| old.explorer);
                }
                (desk.mode, desk.update)
            };
            let pause = match self.look(mode, update) {
                Ok(pause) => {
                    failed = 0;
                    pause
                }
                Err(error) => match Passing::of(&error) {
                    Some(trouble) => {
                        if failed == 0 {
                            tracing::warn!("executions for people wait for {}: {error:#}", trouble.awaited());
                        }
                        failed += 1;
                        trouble.pause(failed)
                    }
                    None => return Err(error),
                },
            };
            if !pause.is_zero() {
                let desk = self.shared.desk();
                if !desk.leave && desk.fresh.is_none() {
                    drop(self.shared.bell.wait_timeout(desk, pause));
                }
            }
        }
    }

    /// Looks at the pool and fills it; how long to wait before the next look.
    fn look(&mut self, mode: TeacherMode, update: u64) -> anyhow::Result<Duration> {
        if mode == TeacherMode::Simulated {
            return Ok(LOOK_SELDOM);
        }
        self.retire(update)?;
        let Workplace { store, runtime, run, .. } = &self.place;
        let pool = runtime.block_on(store.pool(run))?;
        let people = pool.people;
        let supply = runtime.block_on(store.answers_since(run, self.answer))?;
        self.allowance.answered(supply.answered);
        self.allowance.pass(people);
        self.answer = supply.newest;
        // In mixed mode some episodes of each iteration go to people anyhow; without people that is enough.
        if people == 0 && matches!(mode, TeacherMode::Mixed { .. }) {
            return Ok(LOOK_SELDOM);
        }
        let wanted = ready(self.place.config.pool.size, people);
        self.allowance.most(wanted);
        let room = wanted.saturating_sub(pool.open as usize).min(self.allowance.left());
        if room == 0 {
            return Ok(if people > 0 { LOOK } else { LOOK_SELDOM });
        }
        let Some(policy) = &self.policy else { return Ok(LOOK) };
        if policy.update != update {
            self.shared.desk().wanted = true;
        }
        let made = self.execute(room, wanted)?;
        self.allowance.spend(made);
        // A policy that does nothing describable must not keep the thread from sleeping.
        Ok(if made == 0 || made >= room { LOOK } else { Duration::ZERO })
    }

    /// Takes executions of policies that are too old out of the pool.
    fn retire(&mut self, update: u64) -> anyhow::Result<()> {
        if self.retired.is_some_and(|(_, when)| when.elapsed() < RETIRE) {
            return Ok(());
        }
        let Workplace { store, runtime, run, config, .. } = &self.place;
        if self.retired.is_none_or(|(at, _)| at != update) {
            runtime.block_on(store.retire_stale(run, update.saturating_sub(config.pool.max_age)))?;
        }
        // Without updates nothing grows too old, however much is skipped.
        runtime.block_on(store.retire_skipped(run, SKIPPED * config.pool.size as u64))?;
        self.retired = Some((update, Instant::now()));
        Ok(())
    }

    /// Executes a batch of fresh episodes and offers at most `room` of them; how many were offered.
    fn execute(&mut self, room: usize, wanted: usize) -> anyhow::Result<usize> {
        let Some(policy) = &self.policy else { return Ok(0) };
        let Workplace { run, config, world, store, runtime, numbers } = &self.place;
        let n = (2 * room).clamp(8, LARGEST_BATCH.max(config.algorithm.batch)) * config.algorithm.ask.candidates;
        let first = numbers.take(n as u64);
        let tasks: Vec<TaskOf<W>> = (first..first + n as u64)
            .map(|e| world.sample_task(Split::Train, &mut rng::stream(config.seed, "task", e)))
            .collect();
        let executed = policy.explorer.explore(&tasks, first)?;
        let executions: Vec<_> = tasks.iter().zip(executed).map(|(t, e)| world.to_describe(&t.start, e)).collect();
        let waiting = self.offered.make_contiguous();
        let batch = Batch { tasks: &tasks, executions: &executions, first, waiting, most: room };
        let asked =
            batch.asked(&**world, config.algorithm.ask, &policy.tallies, |t, n| policy.explorer.explore(t, n))?;
        let mut made = Made::default();
        let mut fresh = Vec::new();
        for (i, (task, execution)) in tasks.into_iter().zip(executions).enumerate() {
            let gold = world.gold(task.split, task.index);
            let success = world.performs(&task.start, &execution, &gold, config.teacher.pragmatics.tau);
            made.executions += 1;
            made.valid += u64::from(world.valid(&task.start, &execution));
            made.successes += u64::from(success);
            if fresh.len() < room && asked[i] {
                self.offered.push_back(world.kind(&task.start, &execution));
                let episode = Episode { number: first + i as u64, task, execution };
                fresh.push(execution_for_people(&**world, config, &episode, policy.update)?);
            }
        }
        let beyond = self.offered.len().saturating_sub(wanted);
        self.offered.drain(..beyond);
        if !fresh.is_empty() {
            runtime.block_on(store.offer(run, &fresh))?;
        }
        let mut desk = self.shared.desk();
        desk.made.executions += made.executions;
        desk.made.valid += made.valid;
        desk.made.successes += made.successes;
        Ok(fresh.len())
    }
}

/// How many executions may be made: one for each that was answered, and some for those that were not.
struct Allowance {
    left: f64,
    most: f64,
    seen: Instant,
}

impl Allowance {
    fn new(size: usize) -> Self {
        let most = 2.0 * size as f64;
        Self { left: most, most, seen: Instant::now() }
    }

    /// How much can be saved up when so many are kept ready: the whole pool, twice.
    fn most(&mut self, ready: usize) {
        let most = 2.0 * ready as f64;
        // More people come with what they find.
        self.left += (most - self.most).max(0.0);
        self.most = most;
        self.left = self.left.min(most);
    }

    fn answered(&mut self, answers: u64) {
        self.left = (self.left + answers as f64).min(self.most);
    }

    /// Time passes while so many people are there.
    fn pass(&mut self, people: u64) {
        let seconds = self.seen.elapsed().as_secs_f64();
        self.seen = Instant::now();
        self.left = (self.left + seconds * UNANSWERED * people.clamp(1, MOST_UNANSWERED) as f64).min(self.most);
    }

    fn left(&self) -> usize {
        self.left as usize
    }

    fn spend(&mut self, executions: usize) {
        self.left = (self.left - executions as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_follows_the_people() {
        assert_eq!((ready(24, 0), ready(24, 12), ready(24, 60), ready(24, 1 << 40)), (24, 24, 120, 2000));
    }

    #[test]
    fn answers_bring_executions_and_skips_do_not() {
        let mut allowance = Allowance::new(10);
        assert_eq!(allowance.left(), 20);
        for _ in 0..1000 {
            allowance.spend(1);
            allowance.answered(1);
        }
        assert_eq!(allowance.left(), 20, "who answers is never kept waiting");
        allowance.spend(50);
        assert_eq!(allowance.left(), 0, "who only skips comes to an end");
        allowance.most(30);
        assert_eq!(allowance.left(), 40, "more people find more");
        allowance.most(10);
        assert_eq!(allowance.left(), 20);
    }
}
