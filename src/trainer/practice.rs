//! Practice: while people think, the trainer goes on learning from the descriptions that are stored.
//!
//! A practice step is no update: it moves neither λ nor the ages of executions nor the schedule. How many were made between two
//! updates depends on how fast people are, so the record of each update has their number, and a resumed run makes as many.
//! A part of the descriptions is held back from practice; once they are no better understood, practice rests until the next
//! description.

use super::Trainer;
use super::replay_buffer::ReplayBuffer;
use crate::algorithm::StepContext;
use crate::config::run::{PracticeSettings, TeacherMode};
use crate::family::Family;
use crate::protocol::World;
use crate::rng;

/// Counters of practice steps have this bit; those of other steps never do.
const PRACTICE_BIT: u64 = 1 << 62;

/// Practice steps between two readings of the held-back descriptions.
const READ_EVERY: u64 = 8;

/// Readings in a row without a better one after which practice rests.
const PATIENCE: u32 = 4;

/// Held-back descriptions that are read at most, the newest ones, and at least: of fewer nothing can be told.
const MOST_READ: usize = 16;
const LEAST_READ: usize = 3;

/// A loss is better than another when it is smaller by this share.
const BETTER_BY: f32 = 0.002;

/// Whether practice still helps, judged since the last update.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PracticeProgress {
    best: Option<f32>,
    worse: u32,
}

impl PracticeProgress {
    /// Takes a reading of the held-back descriptions' loss.
    fn read(&mut self, loss: f32) {
        if self.best.is_none_or(|best| loss < best * (1.0 - BETTER_BY)) {
            (self.best, self.worse) = (Some(loss), 0);
        } else {
            self.worse += 1;
        }
    }

    fn rests(&self) -> bool {
        self.worse >= PATIENCE
    }
}

impl<K: Family> Trainer<'_, K> {
    fn practice_settings(&self) -> PracticeSettings {
        self.run.config.algorithm.practice
    }

    /// Whether answers have to wait for a practice step: each update is followed by the least number of them, unless more
    /// than a batch of answers waits already.
    pub(super) fn practice_comes_first(&self) -> bool {
        let algorithm = &self.run.config.algorithm;
        let behind = algorithm.catch_up > 1 && self.progress.waiting > algorithm.batch as u64;
        !behind && self.progress.counters.practice < self.practice_settings().least && self.can_practise()
    }

    /// Whether there is something to practise and it may still help.
    pub(super) fn practice_helps(&self) -> bool {
        self.progress.counters.practice < self.practice_settings().most && !self.practice.rests() && self.can_practise()
    }

    /// Only while people teach: the simulated teacher needs no time to think.
    fn can_practise(&self) -> bool {
        self.mode == TeacherMode::Human && self.replay_buffer.practised() > 0
    }

    /// One practice step.
    pub(super) fn practise(&mut self) -> anyhow::Result<()> {
        self.practice_step()?;
        if self.events.status_due() {
            self.publish_status();
        }
        if self.progress.counters.practice.is_multiple_of(READ_EVERY) {
            let held_back = self.replay_buffer.held_back(MOST_READ);
            if let Some(algorithm) = self.algorithm.learning().from_examples()
                && held_back.len() >= LEAST_READ
            {
                let loss = algorithm.practice_loss(&held_back)?;
                self.practice.read(loss);
                tracing::debug!(
                    steps = self.progress.counters.practice,
                    loss,
                    rests = self.practice.rests(),
                    "practice"
                );
            }
        }
        Ok(())
    }

    /// Makes the practice steps again that the record of an update counts before it; `None` when the program ends meanwhile. The
    /// state between two steps is a whole one, which a checkpoint can hold: the next start makes the rest of them.
    pub(super) fn repeat_practice(&mut self, data: &serde_json::Value) -> anyhow::Result<Option<u64>> {
        let recorded = data["practice"].as_u64().unwrap_or(0);
        let mut made = 0;
        while self.progress.counters.practice < recorded {
            if self.commands.shutdown_requested() {
                return Ok(None);
            }
            self.practice_step()?;
            made += 1;
        }
        Ok(Some(made))
    }

    fn practice_step(&mut self) -> anyhow::Result<()> {
        let (batch, seed) = (self.practice_settings().batch, self.run.config.seed);
        let counters = &mut self.progress.counters;
        let counter = PRACTICE_BIT | counters.practised;
        let replayed = self.replay_buffer.draw_practised(batch, &mut rng::stream(seed, "practice", counter));
        (counters.practice, counters.practised) = (counters.practice + 1, counters.practised + 1);
        let update = counters.update;
        match self.algorithm.learning().from_examples() {
            Some(algorithm) => Ok(algorithm.practise(&replayed, StepContext { update, counter, fresh: false })?),
            None => Ok(()),
        }
    }
}

/// Whether replay or practice wants stored descriptions.
pub(super) fn buffer_capacity(algorithm: &crate::config::run::AlgorithmConfig) -> usize {
    if algorithm.replay > 0 || algorithm.practice.on() { algorithm.memory } else { 0 }
}

/// One description in ten is held back, by its line in the log.
const HELD_BACK: u64 = 10;

fn is_held_back(line: u64) -> bool {
    line % HELD_BACK == HELD_BACK - 1
}

/// Practice's view of the replay buffer.
impl<W: World> ReplayBuffer<W> {
    /// Number of the descriptions that practice draws from.
    fn practised(&self) -> usize {
        self.lines().filter(|(line, _)| !is_held_back(*line)).count()
    }

    /// `n` of these, drawn uniformly with replacement.
    fn draw_practised(&self, n: usize, stream: &mut rng::Stream) -> Vec<crate::protocol::DescribedEpisode<W>> {
        self.draw_of(n, stream, |line| !is_held_back(line))
    }

    /// The newest `most` held-back descriptions.
    fn held_back(&self, most: usize) -> Vec<crate::protocol::DescribedEpisode<W>> {
        let mut all: Vec<_> = self.lines().filter(|(line, _)| is_held_back(*line)).map(|(_, d)| d.clone()).collect();
        all.split_off(all.len().saturating_sub(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn practice_rests_after_readings_that_are_no_better() {
        let mut progress = PracticeProgress::default();
        for loss in [3.0, 2.0, 1.999, 2.5, 2.1] {
            progress.read(loss);
        }
        assert!(!progress.rests(), "three readings that were no better");
        progress.read(1.998);
        assert!(progress.rests());
        let mut falling = PracticeProgress::default();
        (1..50).for_each(|n| falling.read(1.0 / n as f32));
        assert!(!falling.rests());
    }

    #[test]
    fn one_description_in_ten_is_held_back_and_not_the_first_ones() {
        let held: Vec<u64> = (0..40).filter(|line| is_held_back(*line)).collect();
        assert_eq!(held, [9, 19, 29, 39]);
    }
}
