//! Query selection in the loop: it decides which episodes of a batch a teacher is asked about.

use super::batch::{Batch, ExecutionOf, TaskOf};
use crate::algorithm::query_selection::{Candidate, KindCounts, disagreement};
use crate::config::run::{QuerySelection, RunConfig};
use crate::protocol::World;

/// Counters of roll-outs that only measure disagreement have this bit; those of episodes never do.
const DISAGREEMENT_BIT: u64 = 1 << 63;

/// The selection by a run's settings, with the counts that it follows.
#[derive(Clone)]
pub(super) struct QuerySelector {
    settings: QuerySelection,
    counts: KindCounts,
    /// Whether executions for people are chosen by the kinds of task that they were told about least, and these kinds' counts.
    for_people: bool,
    told: KindCounts,
}

/// The kind of all executions that no task asks for.
const NO_TASK: &str = "none";

impl QuerySelector {
    pub(super) fn new(config: &RunConfig, counts: KindCounts, told: KindCounts) -> Self {
        Self { settings: config.algorithm.ask, counts, for_people: config.pool.candidates > 1, told }
    }

    /// How often people were asked about each kind of task, for checkpoints.
    pub(super) fn told(&self) -> &KindCounts {
        &self.told
    }

    /// Episodes to execute so that `room` of them can be offered to people.
    pub(super) fn episodes_for_people(&self, config: &RunConfig, room: usize, most: usize) -> usize {
        match self.for_people {
            true => room.clamp(1, most) * config.pool.candidates,
            false => (2 * room).clamp(8, most.max(config.algorithm.batch)) * config.algorithm.ask.candidates,
        }
    }

    /// The kind by which an execution is counted when people are asked about it.
    pub(super) fn kind_for_people<W: World>(&self, world: &W, task: &TaskOf<W>, execution: &ExecutionOf<W>) -> String {
        match self.for_people {
            true => world.task_kind(&task.start, execution).unwrap_or_else(|| NO_TASK.to_owned()),
            false => world.kind(&task.start, execution),
        }
    }

    /// Which of the episodes people are asked about: at most `most` of the kinds of task that they have told least about, or
    /// those that [`QuerySelector::select`] chooses.
    pub(super) fn select_for_people<W: World>(
        &self,
        world: &W,
        batch: &Batch<W>,
        pending: &[String],
        most: usize,
        explore: impl Fn(&[TaskOf<W>], u64) -> candle_core::Result<Vec<ExecutionOf<W>>>,
    ) -> anyhow::Result<Vec<bool>> {
        if !self.for_people {
            return self.select(world, batch, pending, most, explore);
        }
        let episodes = batch.tasks.iter().zip(&batch.executions);
        let (positions, candidates): (Vec<usize>, Vec<Candidate>) = episodes
            .enumerate()
            .filter(|(_, (task, execution))| {
                world.describable(&task.start, execution) && world.worth_showing(&task.start, execution)
            })
            .map(|(i, (task, execution))| {
                (i, Candidate { kind: self.kind_for_people(world, task, execution), disagreement: 1.0 })
            })
            .unzip();
        Ok(marked(batch.tasks.len(), &positions, &self.told.choose(&candidates, pending, most)))
    }

    /// Counts that a person was asked about an execution, and whether it was described.
    pub(super) fn record_told<W: World>(
        &mut self,
        world: &W,
        task: &TaskOf<W>,
        execution: &ExecutionOf<W>,
        described: bool,
    ) {
        if self.for_people {
            self.told.record(&self.kind_for_people(world, task, execution), described);
        }
        self.record(world, task, execution, described);
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
        Ok(marked(tasks.len(), &positions, &self.counts.choose(&candidates, pending, most)))
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

/// A mark for each of `length` episodes: whether it is one of the chosen candidates, which stand at these positions.
fn marked(length: usize, positions: &[usize], chosen: &[usize]) -> Vec<bool> {
    let mut marks = vec![false; length];
    for candidate in chosen {
        marks[positions[*candidate]] = true;
    }
    marks
}
