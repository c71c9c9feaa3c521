//! The supply of executions for people: the numbers of episodes, and the roll-out thread where people may teach.

use super::batch::EpisodeNumbers;
use super::query_selector::QuerySelector;
use super::rollouts::{RolloutCounts, Rollouts};
use crate::algorithm::Algorithm;
use crate::algorithm::explorer::Explorer;
use crate::config::run::TeacherMode;
use crate::protocol::World;

/// The next free number of an episode, and the roll-out thread, which runs beside the learning.
pub(super) struct Supply<W: World> {
    pub(super) numbers: EpisodeNumbers,
    thread: Option<Rollouts<W>>,
}

impl<W: World> Supply<W> {
    /// A supply without a thread, whose next episode has the number `next`.
    pub(super) fn starting_at(next: u64) -> Self {
        Self { numbers: EpisodeNumbers::starting_at(next), thread: None }
    }

    /// Takes the thread over.
    pub(super) fn attach(&mut self, thread: Rollouts<W>) {
        self.thread = Some(thread);
    }

    /// Ends the thread.
    pub(super) fn stop(&mut self) {
        self.thread = None;
    }

    /// Wakes the thread because somebody has answered.
    pub(super) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.wake();
        }
    }

    /// Tells the thread the trainer's mode and update, and gives it a copy of the present policy if it wants one. Returns the
    /// counts of its executions since the last call.
    pub(super) fn synchronise(
        &mut self,
        (mode, update): (TeacherMode, u64),
        (algorithm, seed): (&dyn Algorithm<W>, u64),
        selector: &QuerySelector,
    ) -> anyhow::Result<RolloutCounts> {
        let Some(thread) = &mut self.thread else { return Ok(RolloutCounts::default()) };
        let counts = thread.synchronise(mode, update)?;
        if let Some(spare) = thread.wants(update)
            && let Some(policies) = algorithm.exploration_policies()
        {
            thread.publish(Explorer::of(&policies, seed, spare)?, selector.clone(), update);
        }
        Ok(counts)
    }
}
