//! Choosing what to ask: which episodes of a batch go to a teacher.

use super::Trainer;
use crate::algorithm::query_selection::{Candidate, Tallies, doubt};
use crate::config::run::QuerySelection;
use crate::family::Family;
use crate::protocol::{Task, World};

pub(super) type TaskOf<W> = Task<<W as World>::Start>;
pub(super) type ExecutionOf<W> = <W as World>::Execution;

/// Counters of the roll-outs that only look for doubt have this bit; those of episodes never do.
const DOUBT: u64 = 1 << 63;

/// A batch of executed episodes, of which some are to be asked about.
pub(super) struct Batch<'a, W: World> {
    pub(super) tasks: &'a [TaskOf<W>],
    pub(super) executions: &'a [ExecutionOf<W>],
    /// Number of the first episode.
    pub(super) first: u64,
    /// Kinds that somebody is being asked about already.
    pub(super) waiting: &'a [String],
    /// How many are asked about at most, where they are chosen.
    pub(super) most: usize,
}

impl<W: World> Batch<'_, W> {
    /// Which of the episodes a teacher is asked about: all that can be described, or the most instructive ones. `explore`
    /// executes tasks again, to see whether their executions differ.
    pub(super) fn asked(
        &self,
        world: &W,
        ask: QuerySelection,
        tallies: &Tallies,
        explore: impl Fn(&[TaskOf<W>], u64) -> candle_core::Result<Vec<ExecutionOf<W>>>,
    ) -> anyhow::Result<Vec<bool>> {
        let Self { tasks, executions, first, .. } = *self;
        let describable: Vec<bool> =
            tasks.iter().zip(executions).map(|(t, e)| world.describable(&t.start, e)).collect();
        if !ask.on() {
            return Ok(describable);
        }
        let places: Vec<usize> = (0..tasks.len()).filter(|i| describable[*i]).collect();
        let open: Vec<TaskOf<W>> = places.iter().map(|i| tasks[*i].clone()).collect();
        let mut kinds: Vec<Vec<String>> =
            places.iter().map(|i| vec![world.kind(&tasks[*i].start, &executions[*i])]).collect();
        for sample in 0..ask.samples as u64 {
            if open.is_empty() {
                break;
            }
            // Fewer than 2^47 episodes leave room for the number of the sample.
            let more = explore(&open, DOUBT | sample << 48 | first)?;
            for ((kinds, task), execution) in kinds.iter_mut().zip(&open).zip(&more) {
                kinds.push(world.kind(&task.start, execution));
            }
        }
        let candidates: Vec<Candidate> = kinds
            .into_iter()
            .map(|mut kinds| {
                let doubt = doubt(&kinds.iter().map(String::as_str).collect::<Vec<_>>());
                Candidate { kind: kinds.swap_remove(0), doubt }
            })
            .collect();
        let mut chosen = vec![false; tasks.len()];
        for i in tallies.choose(&candidates, self.waiting, self.most) {
            chosen[places[i]] = true;
        }
        Ok(chosen)
    }
}

impl<K: Family> Trainer<'_, K> {
    /// Notes what became of asking.
    pub(super) fn note_asked(&mut self, task: &TaskOf<K::World>, execution: &ExecutionOf<K::World>, described: bool) {
        if self.config.algorithm.ask.on() {
            self.tallies.note(&self.world.kind(&task.start, execution), described);
        }
    }
}
