//! One iteration: explore, have it described by the simulated teacher, learn; or explore and learn at once, for
//! algorithms that need no description. Also the gradient steps that updates from people share.

use super::Trainer;
use super::asking::Batch;
use crate::algorithm::StepContext;
use crate::config::run::Feedback;
use crate::family::Family;
use crate::protocol::DescribedEpisode;
use crate::protocol::Example;
use crate::protocol::{Description, Episode};
use crate::protocol::{Split, Task, World};
use crate::rng;
use crate::run::{EpisodeRow, Event, Source};
use crate::stages;
use crate::store::UpdateRecord;
use crate::teacher::simulated::describe;
use rand::RngExt;
use std::time::{Duration, Instant};

/// Between two episodes that are told of.
const SELDOM: Duration = Duration::from_millis(400);

impl<K: Family> Trainer<'_, K> {
    /// An iteration with the simulated teacher; each episode goes to people instead with probability `share`
    /// while there is `room` in their pool.
    pub(super) fn simulated_update(&mut self, share: f64, room: usize) -> anyhow::Result<()> {
        let seed = self.config.seed;
        let batch = self.config.algorithm.batch;
        let described = self.config.algorithm.name.feedback() == Feedback::Descriptions;
        let n = (batch * if described { self.config.algorithm.ask.candidates } else { 1 }) as u64;
        let first = self.numbers.take(n);
        let tasks: Vec<_> = (first..first + n)
            .map(|e| self.world.sample_task(Split::Train, &mut rng::stream(seed, "task", e)))
            .collect();
        stages::end("tasks");
        let executions = self.algorithm.explore(&tasks, first)?;
        stages::end("explore");
        if !described {
            self.counters.episodes += n;
            return self.undescribed_update(tasks, executions, first);
        }
        let executions = self.to_describe(&tasks, executions);
        let ask = self.config.algorithm.ask;
        let chosen = Batch { tasks: &tasks, executions: &executions, first, waiting: &[], most: batch };
        let asked = chosen.asked(&*self.world, ask, &self.tallies, |t, n| self.algorithm.explore(t, n))?;
        let tau = self.config.teacher.pragmatics.tau;
        // Nobody looks at most episodes of an offline run, so they are not drawn up for it.
        let seen = self.notes.is_some() || self.out.episodes.elapsed() >= SELDOM;
        let (mut to_people, mut to_teacher, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (i, (task, execution)) in tasks.into_iter().zip(executions).enumerate() {
            let number = first + i as u64;
            let gold = self.world.gold(task.split, task.index);
            let success = self.world.performs(&task.start, &execution, &gold, tau);
            if self.algorithm.acts() {
                self.meters.execution(self.world.valid(&task.start, &execution), success);
            }
            let mut row = self.row(number, &task, &execution, success, seen);
            let people =
                share > 0.0 && to_people.len() < room && rng::stream(seed, "route", number).random::<f64>() < share;
            let episode = Episode { number, task, execution };
            if asked[i] && people {
                to_people.push(episode);
            } else if asked[i] {
                row.source = Some(Source::Simulated);
                to_teacher.push(episode);
                rows.push(row);
            } else {
                rows.push(row);
            }
        }
        let update = self.counters.update;
        stages::end("judge");
        let mut said = match &self.teacher {
            Some(models) if !to_teacher.is_empty() => {
                describe(&*self.world, &**models, &self.config.teacher.pragmatics, &to_teacher, seed, first)?
            }
            _ => Vec::new(),
        };
        if self.config.algorithm.shuffle_descriptions {
            misdeal(&mut said, &mut rng::stream(seed, "shuffle", update));
        }
        let mut described = Vec::new();
        let mut answers = said.into_iter();
        let mut episodes = to_teacher.into_iter();
        for row in rows.iter_mut().filter(|r| r.source.is_some()) {
            let (Some(said), Some(episode)) = (answers.next(), episodes.next()) else { continue };
            self.meters.described(said.gold);
            row.description = said.description.clone();
            row.candidates = said.candidates;
            self.note_asked(&episode.task, &episode.execution, !said.description.is_empty());
            if !said.description.is_empty() {
                row.update = Some(update + 1);
                let example =
                    Example { start: episode.task.start, words: said.description, execution: episode.execution };
                described.push(DescribedEpisode { episode: episode.number, example });
            }
        }
        let people = to_people.len();
        // What people are asked about is spent when they have answered.
        self.counters.episodes += n - people as u64;
        self.offer(&to_people)?;
        self.counters.simulated += described.len() as u64;
        stages::end("choose");
        self.learn(&described)?;
        stages::end("learn");
        if let Some(notes) = &mut self.notes
            && !self.again
        {
            let data = serde_json::json!({ "kind": "simulated", "first": first, "share": share, "room": room });
            notes.update(UpdateRecord { update: self.counters.update, data, answers: Vec::new() });
            for row in &rows {
                if row.source.is_some() {
                    notes.episode(row.clone());
                }
            }
        }
        self.tell_some(&rows);
        tracing::trace!(update, described = described.len(), people, "simulated iteration");
        let done = self.after_update();
        stages::end("afterwards");
        done
    }

    /// Executions as they are described and learnt from.
    pub(super) fn to_describe(
        &self,
        tasks: &[Task<<K::World as World>::Start>],
        executions: Vec<<K::World as World>::Execution>,
    ) -> Vec<<K::World as World>::Execution> {
        tasks.iter().zip(executions).map(|(t, e)| self.world.to_describe(&t.start, e)).collect()
    }

    /// Tells of the last two episodes, at most a few times a second.
    fn tell_some(&mut self, rows: &[EpisodeRow]) {
        let seen = rows.iter().rev().take(2).all(|row| !row.view.is_null());
        if seen && self.out.episodes.elapsed() >= SELDOM && !self.again {
            self.out.episodes = Instant::now();
            for row in rows.iter().rev().take(2).rev() {
                self.out.send(Event::Episode(row.clone()));
            }
        }
    }

    /// The rest of an iteration that needs no description: the algorithm learns from the episodes themselves, each of
    /// which has cost one piece of teaching.
    fn undescribed_update(
        &mut self,
        tasks: Vec<Task<<K::World as World>::Start>>,
        executions: Vec<<K::World as World>::Execution>,
        first: u64,
    ) -> anyhow::Result<()> {
        let tau = self.config.teacher.pragmatics.tau;
        let mut rows = Vec::new();
        for (i, (task, execution)) in tasks.iter().zip(&executions).enumerate() {
            let gold = self.world.gold(task.split, task.index);
            let success = self.world.performs(&task.start, execution, &gold, tau);
            if self.algorithm.acts() {
                self.meters.execution(self.world.valid(&task.start, execution), success);
            }
            if i + 2 >= tasks.len() {
                let mut row = self.row(first + i as u64, task, execution, success, true);
                row.update = Some(self.counters.update + 1);
                rows.push(row);
            }
        }
        self.algorithm.learn_episodes(&tasks, &executions)?;
        self.counters.simulated += tasks.len() as u64;
        self.counters.update += 1;
        if let Some(notes) = &mut self.notes
            && !self.again
        {
            let data = serde_json::json!({ "kind": "simulated", "first": first });
            notes.update(UpdateRecord { update: self.counters.update, data, answers: Vec::new() });
        }
        self.tell_some(&rows);
        self.after_update()
    }

    pub(super) fn row(
        &self,
        number: u64,
        task: &Task<<K::World as World>::Start>,
        execution: &<K::World as World>::Execution,
        success: bool,
        seen: bool,
    ) -> EpisodeRow {
        EpisodeRow {
            episode: number,
            update: None,
            request: task.request.clone(),
            view: if seen { self.world.view(&task.start, execution) } else { serde_json::Value::Null },
            summary: if seen { self.world.summary(execution) } else { String::new() },
            source: None,
            description: String::new(),
            candidates: Vec::new(),
            success,
        }
    }

    /// The gradient steps of one update: the new descriptions once, then replayed ones.
    pub(super) fn learn(&mut self, described: &[DescribedEpisode<K::World>]) -> anyhow::Result<()> {
        let update = self.counters.update;
        let a = self.config.algorithm.clone();
        let steps = if self.algorithm.replays() { 1 + a.replays(self.counters.recorded) } else { 1 };
        if !described.is_empty() {
            self.algorithm.learn(described, StepContext { update, counter: update * 1001, fresh: true })?;
            self.record.append(described)?;
            let begun = Instant::now();
            for i in 1..steps {
                let left = begun.elapsed().div_f64(i as f64).mul_f64((steps - i) as f64);
                if left > LONG && self.leaving() {
                    return Err(BrokenOff.into());
                }
                let counter = update * 1001 + i;
                let old = self.record.draw(a.batch, &mut rng::stream(self.config.seed, "replay", counter));
                self.algorithm.learn(&old, StepContext { update, counter, fresh: false })?;
            }
        }
        self.algorithm.end_iteration(update)?;
        self.counters.recorded += described.len() as u64;
        self.counters.update += 1;
        Ok(())
    }
}

/// The rest of an update that the end of the program waits for.
const LONG: Duration = Duration::from_secs(2);

/// The program ends in the midst of a long update. The weights are half learnt, so nothing is saved of them: the update is
/// made again from the last checkpoint, as after a kill.
#[derive(Debug, thiserror::Error)]
#[error("the program ended in the midst of an update")]
pub(super) struct BrokenOff;

/// Deals what was said to the wrong episodes: shuffled, and then so that nobody has their own. What is the only one of
/// its batch is dropped.
fn misdeal(said: &mut [Description], stream: &mut rng::Stream) {
    // Sattolo's algorithm: a uniform cyclic permutation leaves nothing in its place.
    for i in (1..said.len()).rev() {
        said.swap(i, stream.random_range(0..i));
    }
    if let [only] = said {
        only.description.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misdeal_leaves_nothing_in_its_place() {
        for n in 1..20 {
            let mut said: Vec<Description> =
                (0..n).map(|i| Description { description: i.to_string(), ..Description::default() }).collect();
            misdeal(&mut said, &mut rng::stream(1, "misdeal", n));
            for (i, s) in said.iter().enumerate() {
                assert_ne!(s.description, i.to_string(), "{n}");
            }
        }
    }
}
