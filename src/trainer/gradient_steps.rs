//! The gradient steps of one update from descriptions, whoever gave them, and from people's demonstrations and ratings.

use super::Trainer;
use super::practice::PracticeProgress;
use crate::algorithm::{Learning, StepContext};
use crate::family::Family;
use crate::protocol::{DescribedEpisode, RatedEpisode};
use crate::rng;
use crate::run::Source;
use anyhow::Context;
use std::time::{Duration, Instant};

/// An update of which more than this is left is broken off when the program ends.
const LONG_UPDATE: Duration = Duration::from_secs(2);

/// The program ends in the midst of a long update. The weights are half learnt, so they are not saved: the update is made
/// again from the last checkpoint, as after a kill.
#[derive(Debug, thiserror::Error)]
#[error("the program ended in the midst of an update")]
pub(super) struct UpdateInterrupted;

impl<K: Family> Trainer<'_, K> {
    /// Learns from new descriptions of a `source` once, then from replayed ones, and ends the iteration.
    pub(super) fn learn(&mut self, described: &[DescribedEpisode<K::World>], source: Source) -> anyhow::Result<()> {
        let update = self.progress.counters.update;
        match self.algorithm.learning() {
            Learning::Epochs(algorithm) => {
                if !described.is_empty() {
                    algorithm.collect(described);
                    self.description_log.append(described)?;
                }
                algorithm.end_iteration(update)?;
            }
            learning if !described.is_empty() => {
                let algorithm = learning.from_examples().context("the algorithm does not learn from examples")?;
                let (a, seed) = (&self.run.config.algorithm, self.run.config.seed);
                // People's descriptions are practised while they think, so they need no replay. It does not depend on the mode, which
                // may have changed when an update is made again after a kill.
                let practised = source == Source::Human && a.practice.on();
                let steps = 1 + if practised { 0 } else { a.replays(self.progress.counters.recorded) };
                // An update that catches up makes a step for each batch, because a step's memory grows with its batch. Replay counts
                // from the other end of the update's counters.
                for (i, batch) in described.chunks(a.batch).enumerate() {
                    let counter = if i == 0 { update * 1001 } else { (update + 1) * 1001 - i as u64 };
                    algorithm.learn(batch, StepContext { update, counter, fresh: true })?;
                }
                self.description_log.append(described)?;
                self.replay_buffer.extend(described);
                let begun = Instant::now();
                for i in 1..steps {
                    let left = begun.elapsed().div_f64(i as f64).mul_f64((steps - i) as f64);
                    if left > LONG_UPDATE && self.commands.shutdown_requested() {
                        return Err(UpdateInterrupted.into());
                    }
                    let counter = update * 1001 + i;
                    let replayed = self.replay_buffer.draw(a.batch, &mut rng::stream(seed, "replay", counter));
                    algorithm.learn(&replayed, StepContext { update, counter, fresh: false })?;
                }
            }
            _ => {}
        }
        self.progress.counters.recorded += described.len() as u64;
        self.end_update();
        Ok(())
    }

    /// Learns from ratings of people in one step, and ends the iteration.
    pub(super) fn learn_rated(&mut self, rated: &[RatedEpisode<K::World>]) -> anyhow::Result<()> {
        let Learning::Ratings(algorithm) = self.algorithm.learning() else {
            anyhow::bail!("the algorithm does not learn from ratings")
        };
        algorithm.learn_from_ratings(rated)?;
        self.description_log.append(rated)?;
        self.progress.counters.recorded += rated.len() as u64;
        self.end_update();
        Ok(())
    }

    fn end_update(&mut self) {
        self.progress.counters.update += 1;
        self.progress.counters.practice = 0;
        self.practice = PracticeProgress::default();
    }
}
