//! How the agent takes what people say: the execution policy carries out each description of an update from the start of the
//! execution that it describes, before the update learns from it and after. It is told and stored for people to see; nothing
//! of it goes into learning, it draws from no stream that learning draws from, and what goes wrong with it is logged.

use super::Trainer;
use crate::family::Family;
use crate::ids::{AnswerId, TeacherId};
use crate::protocol::DescribedEpisode;
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
        self.tell_comprehension(&rows);
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
        self.tell_comprehension(&rows);
    }

    /// The greedy executions of the descriptions, in one batch; `None` when the policy cannot be computed.
    fn attempts(&self, described: &[DescribedEpisode<K::World>]) -> Option<Vec<Attempt>> {
        let cases: Vec<_> = described
            .iter()
            .map(|DescribedEpisode { example, .. }| (example.words.as_str(), &example.start, &example.execution))
            .collect();
        match self.attempts_at(&cases) {
            Ok(attempts) => Some(attempts),
            Err(error) => {
                tracing::warn!(%error, "descriptions could not be carried out");
                None
            }
        }
    }

    /// Stores the rows, so that a page which comes later finds them, and publishes them.
    fn tell_comprehension(&mut self, rows: &[Comprehension]) {
        if let Some(store) = &self.store
            && let Err(error) = store.wait(store.store().record_comprehension(&self.run.id, rows))
        {
            tracing::warn!(%error, "how the agent took a description could not be stored");
        }
        self.events.send(Event::Comprehension(rows.to_vec()));
    }
}
