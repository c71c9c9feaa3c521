//! One iteration of the loop without people's answers: explore, have it described by the simulated teacher, learn; or
//! explore and learn at once, for algorithms that need no description.

use super::Trainer;
use super::batch::{Batch, BatchSettings, TaskOf};
use super::human_update::{execution_for_people, reference};
use crate::config::run::Feedback;
use crate::family::Family;
use crate::protocol::{DescribedEpisode, Description, Episode, Example, World};
use crate::run::{EpisodeRow, Source};
use crate::store::UpdateRecord;
use crate::teacher::simulated::describe;
use crate::{rng, stages};
use rand::RngExt;

/// The episodes of a batch by where they go.
struct Routed<W: World> {
    /// Episodes that people are asked about.
    to_people: Vec<Episode<W>>,
    /// Whether each of them was judged a success.
    successes: Vec<bool>,
    /// Episodes that the simulated teacher describes, in the order of their rows.
    to_teacher: Vec<Episode<W>>,
    /// Rows of all episodes that people are not asked about; those of the simulated teacher have a source.
    rows: Vec<EpisodeRow>,
}

impl<K: Family> Trainer<'_, K> {
    /// An iteration with the simulated teacher; each episode goes to people instead with probability `share`
    /// while there is `room` in their pool.
    pub(super) fn simulated_update(&mut self, share: f64, room: usize) -> anyhow::Result<()> {
        let config = &self.run.config;
        let (batch_size, candidates) = (config.algorithm.batch, config.algorithm.ask.candidates);
        let described = config.algorithm.name.feedback() == Feedback::Descriptions;
        let n = (batch_size * if described { candidates } else { 1 }) as u64;
        let first = self.supply.numbers.take(n);
        let settings = BatchSettings { seed: config.seed, tau: config.teacher.pragmatics.tau, to_describe: described };
        let explore = |tasks: &[TaskOf<K::World>], first| self.algorithm.explore(tasks, first);
        let batch = Batch::execute(&*self.run.world, settings, (first, n), explore)?;
        if self.algorithm.executes_own_policy() {
            batch.judgements.iter().for_each(|j| self.progress.meters.execution(j.valid, j.success));
        }
        if !described {
            return self.update_from_episodes(batch);
        }
        let explore = |tasks: &[TaskOf<K::World>], first| self.algorithm.explore(tasks, first);
        let selected = self.selector.select(&*self.run.world, &batch, &[], batch_size, explore)?;
        let Routed { to_people, successes, to_teacher, mut rows } = self.route(batch, &selected, share, room);
        stages::end("judge");
        let described = self.describe_simulated(to_teacher, &mut rows, first)?;
        // Episodes that people are asked about are spent when they have answered.
        self.progress.counters.episodes += n - to_people.len() as u64;
        self.offer(&to_people, &successes)?;
        self.progress.counters.simulated += described.len() as u64;
        stages::end("choose");
        let practice = self.progress.counters.practice;
        self.learn(&described, Source::Simulated)?;
        stages::end("learn");
        if let Some(store) = &mut self.store
            && !self.recovering
        {
            let mut data = serde_json::json!({ "kind": "simulated", "first": first, "share": share, "room": room });
            if practice > 0 {
                data["practice"] = practice.into();
            }
            store.add_update(UpdateRecord { update: self.progress.counters.update, data, answers: Vec::new() });
            for row in rows.iter().filter(|row| row.source.is_some()) {
                store.add_episode(row.clone());
            }
        }
        self.publish_last(&rows);
        let (update, people) = (self.progress.counters.update - 1, to_people.len());
        tracing::trace!(update, described = described.len(), people, "simulated iteration");
        let done = self.after_update();
        stages::end("afterwards");
        done
    }

    /// Decides for each episode whether people or the simulated teacher are asked about it, if anybody is.
    fn route(&self, batch: Batch<K::World>, selected: &[bool], share: f64, room: usize) -> Routed<K::World> {
        let seed = self.run.config.seed;
        // Nobody looks at most episodes of an offline run, so their views are not made.
        let seen = self.store.is_some() || self.events.episodes_due();
        let mut routed =
            Routed { to_people: Vec::new(), successes: Vec::new(), to_teacher: Vec::new(), rows: Vec::new() };
        let Batch { first, tasks, executions, judgements } = batch;
        for (i, (task, execution)) in tasks.into_iter().zip(executions).enumerate() {
            let (number, success) = (first + i as u64, judgements[i].success);
            let people = share > 0.0
                && routed.to_people.len() < room
                && rng::stream(seed, "route", number).random::<f64>() < share;
            if selected[i] && people && self.run.world.worth_showing(&task.start, &execution) {
                routed.to_people.push(Episode { number, task, execution });
                routed.successes.push(success);
                continue;
            }
            let mut row = self.row(number, &task, &execution, success, seen);
            if selected[i] {
                row.source = Some(Source::Simulated);
                routed.to_teacher.push(Episode { number, task, execution });
            }
            routed.rows.push(row);
        }
        routed
    }

    /// Has the simulated teacher describe episodes, and fills in their rows. Returns those that got a description.
    fn describe_simulated(
        &mut self,
        episodes: Vec<Episode<K::World>>,
        rows: &mut [EpisodeRow],
        first: u64,
    ) -> anyhow::Result<Vec<DescribedEpisode<K::World>>> {
        let (config, update) = (&self.run.config, self.progress.counters.update);
        let mut descriptions = match &self.teacher {
            Some(models) if !episodes.is_empty() => {
                let pragmatics = &config.teacher.pragmatics;
                describe(&*self.run.world, &**models, pragmatics, &episodes, config.seed, first)?
            }
            _ => Vec::new(),
        };
        if config.algorithm.shuffle_descriptions {
            derange(&mut descriptions, &mut rng::stream(config.seed, "shuffle", update));
        }
        let mut described = Vec::new();
        let described_rows = rows.iter_mut().filter(|row| row.source.is_some());
        for ((row, given), episode) in described_rows.zip(descriptions).zip(episodes) {
            let Description { description, gold, candidates } = given;
            self.progress.meters.described(gold);
            row.description = description.clone();
            row.candidates = candidates;
            let Episode { number, task, execution } = episode;
            self.selector.record(&*self.run.world, &task, &execution, !description.is_empty());
            if !description.is_empty() {
                row.update = Some(update + 1);
                let example = Example { start: task.start, words: description, execution };
                described.push(DescribedEpisode { episode: number, example });
            }
        }
        Ok(described)
    }

    /// Puts episodes into the pool.
    fn offer(&self, episodes: &[Episode<K::World>], successes: &[bool]) -> anyhow::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let (world, update) = (&*self.run.world, self.progress.counters.update);
        let offered = episodes
            .iter()
            .zip(successes)
            .map(|(episode, success)| execution_for_people(world, &self.run.config, episode, *success, update))
            .collect::<anyhow::Result<Vec<_>>>()?;
        store.offer(&offered)
    }

    /// Publishes the last two episodes, at most a few times a second.
    fn publish_last(&mut self, rows: &[EpisodeRow]) {
        let last = &rows[rows.len().saturating_sub(2)..];
        let seen = last.iter().all(|row| !row.view.is_null());
        if seen && self.events.episodes_due() && !self.recovering {
            self.events.publish_episodes(last.iter().cloned());
        }
    }

    /// The rest of an iteration that needs no description: the algorithm learns from the episodes themselves, each of
    /// which has cost one demonstration or reward.
    fn update_from_episodes(&mut self, batch: Batch<K::World>) -> anyhow::Result<()> {
        let Batch { first, tasks, executions, judgements } = batch;
        let n = tasks.len() as u64;
        self.progress.counters.episodes += n;
        let mut rows = Vec::new();
        for i in tasks.len().saturating_sub(2)..tasks.len() {
            let mut row = self.row(first + i as u64, &tasks[i], &executions[i], judgements[i].success, true);
            row.update = Some(self.progress.counters.update + 1);
            rows.push(row);
        }
        match self.algorithm.learning().from_episodes() {
            Some(algorithm) => algorithm.learn_from_episodes(&tasks, &executions)?,
            None => anyhow::bail!("the algorithm learns from descriptions, and this update has none"),
        }
        self.progress.counters.simulated += n;
        self.progress.counters.update += 1;
        if let Some(store) = &mut self.store
            && !self.recovering
        {
            let data = serde_json::json!({ "kind": "simulated", "first": first });
            store.add_update(UpdateRecord { update: self.progress.counters.update, data, answers: Vec::new() });
        }
        self.publish_last(&rows);
        self.after_update()
    }

    /// An episode as it is shown. Its view is made only where somebody may see it.
    pub(super) fn row(
        &self,
        number: u64,
        task: &TaskOf<K::World>,
        execution: &<K::World as World>::Execution,
        success: bool,
        seen: bool,
    ) -> EpisodeRow {
        let world = &self.run.world;
        EpisodeRow {
            episode: number,
            update: None,
            request: task.request.clone(),
            view: if seen { world.view(&task.start, execution) } else { serde_json::Value::Null },
            summary: if seen { world.summary(execution) } else { String::new() },
            source: None,
            description: String::new(),
            candidates: Vec::new(),
            success,
            // Only a store keeps it.
            reference: self.store.as_ref().and_then(|_| reference(&**world, task).ok()),
        }
    }
}

/// Permutes the descriptions at random so that no episode keeps its own. The only description of a batch is dropped.
fn derange(descriptions: &mut [Description], stream: &mut rng::Stream) {
    // Sattolo's algorithm: a uniform cyclic permutation leaves nothing in its place.
    for i in (1..descriptions.len()).rev() {
        descriptions.swap(i, stream.random_range(0..i));
    }
    if let [only] = descriptions {
        only.description.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derangement_leaves_nothing_in_its_place() {
        for n in 1..20 {
            let mut descriptions: Vec<Description> =
                (0..n).map(|i| Description { description: i.to_string(), ..Description::default() }).collect();
            derange(&mut descriptions, &mut rng::stream(1, "misdeal", n));
            for (i, d) in descriptions.iter().enumerate() {
                assert_ne!(d.description, i.to_string(), "{n}");
            }
        }
    }
}
