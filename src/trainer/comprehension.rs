//! How the agent takes what people say: the execution policy carries out each description of an update from the start of the
//! execution that it describes, before the update learns from it and after. It is told and stored for people to see; nothing
//! of it goes into learning, it draws from no stream that learning draws from, and what goes wrong with it is logged.

use super::Trainer;
use crate::family::Family;
use crate::ids::{AnswerId, TeacherId};
use crate::protocol::{DescribedEpisode, Episode, World};
use crate::run::{Attempt, Comprehension, Event};

impl<K: Family> Trainer<'_, K> {
    /// Carries out descriptions of people that are about to be learnt from. All lists are of equal length, position by position.
    /// Nothing while lost updates are made again: their descriptions were carried out before.
    pub(super) fn before_learning(
        &mut self,
        described: &[DescribedEpisode<K::World>],
        answers: &[AnswerId],
        teachers: &[TeacherId],
    ) -> Vec<Comprehension> {
        if self.recovering || self.store.is_none() || described.is_empty() {
            return Vec::new();
        }
        let Some(attempts) = self.attempts(described) else { return Vec::new() };
        let counters = self.progress.counters;
        let seconds = self.progress.clock.elapsed();
        let rows = attempts.into_iter().zip(answers).zip(teachers).map(|((before, answer), teacher)| Comprehension {
            answer: *answer,
            teacher: *teacher,
            update: counters.update + 1,
            episodes: counters.episodes,
            descriptions: counters.human + counters.simulated,
            seconds,
            before,
            after: None,
        });
        let rows: Vec<Comprehension> = rows.collect();
        let shown = described
            .iter()
            .map(|DescribedEpisode { example, .. }| self.run.world.worth_showing(&example.start, &example.execution));
        let passed_over: Vec<AnswerId> =
            answers.iter().zip(shown).filter(|(_, shown)| !shown).map(|(answer, _)| *answer).collect();
        self.tell_comprehension(&rows, &passed_over);
        rows
    }

    /// Carries them out once more, after the update.
    pub(super) fn after_learning(&mut self, described: &[DescribedEpisode<K::World>], mut rows: Vec<Comprehension>) {
        if rows.is_empty() {
            return;
        }
        let Some(attempts) = self.attempts(described) else { return };
        for (row, after) in rows.iter_mut().zip(attempts) {
            row.after = Some(after);
        }
        self.tell_comprehension(&rows, &[]);
    }

    /// Leaves out of the readings what people said of executions that an earlier version showed and that are passed over now.
    pub(super) fn leave_out_passed_over(&self) -> anyhow::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut passed_over = Vec::new();
        for (answer, trace) in store.wait(store.store().executions_of_readings(&self.run.id))? {
            // One that cannot be read is named where it is learnt from.
            let Ok(Episode { task, execution, .. }) = serde_json::from_value::<Episode<K::World>>(trace) else {
                continue;
            };
            if !self.run.world.worth_showing(&task.start, &execution) {
                passed_over.push(answer);
            }
        }
        if !passed_over.is_empty() {
            store.wait(store.store().leave_out_of_readings(&passed_over))?;
        }
        Ok(())
    }

    /// The greedy executions of the descriptions; `None` when the policy cannot be computed.
    fn attempts(&self, described: &[DescribedEpisode<K::World>]) -> Option<Vec<Attempt>> {
        let cases: Vec<_> = described
            .iter()
            .map(|DescribedEpisode { example, .. }| (example.words.as_str(), &example.start, &example.execution))
            .collect();
        // As many at once as a step learns from: memory grows with them.
        let batches = cases.chunks(self.run.config.algorithm.batch).map(|cases| self.attempts_at(cases));
        match batches.collect::<Result<Vec<_>, _>>() {
            Ok(attempts) => Some(attempts.into_iter().flatten().collect()),
            Err(error) => {
                tracing::warn!(%error, "descriptions could not be carried out");
                None
            }
        }
    }

    /// Stores the rows, so that a page which comes later finds them, and publishes them. Answers about executions that are passed
    /// over are no readings.
    fn tell_comprehension(&mut self, rows: &[Comprehension], passed_over: &[AnswerId]) {
        if let Some(store) = &self.store {
            let stored = store.wait(async {
                store.store().record_comprehension(&self.run.id, rows).await?;
                match passed_over {
                    [] => Ok(()),
                    some => store.store().leave_out_of_readings(some).await,
                }
            });
            if let Err(error) = stored {
                tracing::warn!(%error, "how the agent took a description could not be stored");
            }
        }
        self.events.send(Event::Comprehension(rows.to_vec()));
    }
}
