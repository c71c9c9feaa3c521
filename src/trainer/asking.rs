//! The trainer's side of choosing what to ask: which episodes of a batch go to a teacher.

use super::Trainer;
use crate::algorithm::ask::{Candidate, doubt};
use crate::task::kit::TaskKit;
use crate::task::{Task, World};

type TaskOf<K> = Task<<<K as TaskKit>::World as World>::Start>;
type ExecutionOf<K> = <<K as TaskKit>::World as World>::Execution;

/// Counters of the roll-outs that only look for doubt have this bit; those of episodes never do.
const DOUBT: u64 = 1 << 63;

impl<K: TaskKit> Trainer<'_, K> {
    /// Which of a batch of executed tasks a teacher is asked about: all that can be described, or the most instructive
    /// `most` of them. `first` is the number of the batch's first episode.
    pub(super) fn to_be_asked(
        &self,
        tasks: &[TaskOf<K>],
        executions: &[ExecutionOf<K>],
        first: u64,
        waiting: &[String],
        most: usize,
    ) -> anyhow::Result<Vec<bool>> {
        let describable: Vec<bool> =
            tasks.iter().zip(executions).map(|(t, e)| self.world.describable(&t.start, e)).collect();
        let ask = self.config.algorithm.ask;
        if !ask.on() {
            return Ok(describable);
        }
        let places: Vec<usize> = (0..tasks.len()).filter(|i| describable[*i]).collect();
        let open: Vec<TaskOf<K>> = places.iter().map(|i| tasks[*i].clone()).collect();
        let mut kinds: Vec<Vec<String>> =
            places.iter().map(|i| vec![self.world.kind(&tasks[*i].start, &executions[*i])]).collect();
        for sample in 0..ask.samples as u64 {
            if open.is_empty() {
                break;
            }
            // Fewer than 2^47 episodes leave room for the number of the sample.
            let more = self.algorithm.explore(&open, DOUBT | sample << 48 | first)?;
            for ((kinds, task), execution) in kinds.iter_mut().zip(&open).zip(&more) {
                kinds.push(self.world.kind(&task.start, execution));
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
        for i in self.tallies.choose(&candidates, waiting, most) {
            chosen[places[i]] = true;
        }
        Ok(chosen)
    }

    /// Notes what became of asking.
    pub(super) fn note_asked(&mut self, task: &TaskOf<K>, execution: &ExecutionOf<K>, described: bool) {
        if self.config.algorithm.ask.on() {
            self.tallies.note(&self.world.kind(&task.start, execution), described);
        }
    }
}
