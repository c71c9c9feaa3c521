//! Query selection in the loop: it decides which episodes of a batch a teacher is asked about.

use super::batch::{Batch, ExecutionOf, TaskOf};
use crate::algorithm::query_selection::{Candidate, KindCounts, disagreement};
use crate::config::run::QuerySelection;
use crate::protocol::World;

/// Counters of roll-outs that only measure disagreement have this bit; those of episodes never do.
const DISAGREEMENT_BIT: u64 = 1 << 63;

/// The selection by a run's settings, with the counts that it follows.
#[derive(Clone)]
pub(super) struct QuerySelector {
    settings: QuerySelection,
    counts: KindCounts,
}

impl QuerySelector {
    pub(super) fn new(settings: QuerySelection, counts: KindCounts) -> Self {
        Self { settings, counts }
    }

    /// How often teachers were asked about each kind of execution, for checkpoints.
    pub(super) fn counts(&self) -> &KindCounts {
        &self.counts
    }

    /// Which of the episodes a teacher is asked about: all that can be described, or, where the settings select, the `most`
    /// most instructive ones. `pending` are the kinds that somebody is being asked about already. `explore` executes tasks
    /// again, to measure how much their executions disagree.
    pub(super) fn select<W: World>(
        &self,
        world: &W,
        batch: &Batch<W>,
        pending: &[String],
        most: usize,
        explore: impl Fn(&[TaskOf<W>], u64) -> candle_core::Result<Vec<ExecutionOf<W>>>,
    ) -> anyhow::Result<Vec<bool>> {
        let Batch { tasks, executions, first, .. } = batch;
        let describable: Vec<bool> =
            tasks.iter().zip(executions).map(|(t, e)| world.describable(&t.start, e)).collect();
        if !self.settings.on() {
            return Ok(describable);
        }
        let positions: Vec<usize> = (0..tasks.len()).filter(|i| describable[*i]).collect();
        let open: Vec<TaskOf<W>> = positions.iter().map(|i| tasks[*i].clone()).collect();
        let mut kinds: Vec<Vec<String>> =
            positions.iter().map(|i| vec![world.kind(&tasks[*i].start, &executions[*i])]).collect();
        for sample in 0..self.settings.samples as u64 {
            if open.is_empty() {
                break;
            }
            // Fewer than 2^47 episodes leave room for the number of the sample.
            let more = explore(&open, DISAGREEMENT_BIT | sample << 48 | first)?;
            for ((kinds, task), execution) in kinds.iter_mut().zip(&open).zip(&more) {
                kinds.push(world.kind(&task.start, execution));
            }
        }
        let candidates: Vec<Candidate> = kinds
            .into_iter()
            .map(|mut kinds| {
                let disagreement = disagreement(&kinds.iter().map(String::as_str).collect::<Vec<_>>());
                Candidate { kind: kinds.swap_remove(0), disagreement }
            })
            .collect();
        let mut selected = vec![false; tasks.len()];
        for i in self.counts.choose(&candidates, pending, most) {
            selected[positions[i]] = true;
        }
        Ok(selected)
    }

    /// Counts that a teacher was asked about an execution, and whether it was described.
    pub(super) fn record<W: World>(
        &mut self,
        world: &W,
        task: &TaskOf<W>,
        execution: &ExecutionOf<W>,
        described: bool,
    ) {
        if self.settings.on() {
            self.counts.record(&world.kind(&task.start, execution), described);
        }
    }
}
