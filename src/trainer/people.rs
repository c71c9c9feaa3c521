//! The trainer's side of human teaching: learning from answers, and making updates again after a kill. Executions for
//! people come from the roll-out thread ([`super::rollouts`]), in mixed mode also from the iterations.

use super::Trainer;
use super::checkpoint::Counters;
use super::rollouts::{Rollouts, Workplace, ready};
use crate::config::run::RunConfig;
use crate::family::Family;
use crate::ids::{AnswerId, TeacherId};
use crate::protocol::DescribedEpisode;
use crate::protocol::Episode;
use crate::protocol::Example;
use crate::protocol::Utterance;
use crate::protocol::World;
use crate::run::{Event, Source};
use crate::store::{AnswerKind, NewExecution, StoreError, TrainerAnswer, UpdateRecord};
use anyhow::Context;

/// An episode as it comes into the pool. Its trace is the whole of it.
pub(super) fn execution_for_people<W: World>(
    world: &W,
    config: &RunConfig,
    episode: &Episode<W>,
    update: u64,
) -> anyhow::Result<NewExecution> {
    let Episode { number, task, execution } = episode;
    let gold = world.gold(task.split, task.index);
    Ok(NewExecution {
        success: world.performs(&task.start, execution, &gold, config.teacher.pragmatics.tau),
        episode: *number,
        update,
        request: task.request.clone(),
        view: world.view(&task.start, execution),
        summary: world.summary(execution),
        wanted: config.pool.overlap,
        trace: serde_json::to_value(episode)?,
    })
}

impl<K: Family> Trainer<'_, K> {
    /// Takes executions of policies that are too old out of the pool.
    pub(super) fn retire(&self) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        let oldest = self.counters.update.saturating_sub(self.config.pool.max_age);
        notes.wait(notes.store().retire_stale(&self.id, oldest))?;
        Ok(())
    }

    /// Free places in the pool.
    pub(super) fn room(&self) -> anyhow::Result<usize> {
        let Some(notes) = &self.notes else { return Ok(0) };
        let pool = notes.wait(notes.store().pool(&self.id))?;
        Ok(ready(self.config.pool.size, 0).saturating_sub(pool.open as usize))
    }

    /// Puts episodes into the pool.
    pub(super) fn offer(&mut self, episodes: &[Episode<K::World>]) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        if episodes.is_empty() {
            return Ok(());
        }
        let offered = episodes
            .iter()
            .map(|e| execution_for_people(&*self.world, &self.config, e, self.counters.update))
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(notes.wait(notes.store().offer(&self.id, &offered))?)
    }

    /// Starts the roll-out thread where people may teach.
    pub(super) fn start_rollouts(&mut self) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        if !self.config.algorithm.name.taught_by_people() {
            return Ok(());
        }
        let place = Workplace {
            run: self.id.clone(),
            config: self.config.clone(),
            world: self.world.clone(),
            store: notes.store().clone(),
            runtime: notes.runtime().clone(),
            numbers: self.numbers.clone(),
        };
        self.rollouts = Some(Rollouts::start(place, self.mode, self.counters.update)?);
        self.meet_rollouts()
    }

    /// Tells the roll-out thread where the run is, counts what it executed, and gives it the present policy if it asks.
    pub(super) fn meet_rollouts(&mut self) -> anyhow::Result<()> {
        let Some(rollouts) = &mut self.rollouts else { return Ok(()) };
        let update = self.counters.update;
        let made = rollouts.meet(self.mode, update)?;
        self.meters.executions(made.executions, made.valid, made.successes);
        if let Some(spare) = rollouts.wants(update)
            && let Some(explorer) = self.algorithm.explorer(spare)?
        {
            rollouts.publish(explorer, self.tallies.clone(), update);
        }
        Ok(())
    }

    /// Learns from descriptions that no update has used, and takes in the other answers since; `false` when there are no
    /// descriptions. Other answers alone make no update: a person who can describe nothing must not end the run.
    pub(super) fn human_update(&mut self) -> anyhow::Result<bool> {
        let Some(notes) = &mut self.notes else { return Ok(false) };
        let limit = self.config.algorithm.batch as u32;
        let answers = notes.wait(notes.store().answers_to_learn_from(&self.id, limit))?;
        if answers.is_empty() {
            return Ok(false);
        }
        // The record comes first: a kill after it makes the update again, a kill before it leaves the answers unused.
        let data = serde_json::json!({ "kind": "human" });
        let keys = answers.iter().map(|a| a.answer).collect();
        let record = UpdateRecord { update: self.counters.update + 1, data, answers: keys };
        if let Err(error) = notes.human_update(&record) {
            // A person took one of them back just now: nothing was recorded, and the next turn takes the others.
            return if matches!(error.downcast_ref(), Some(StoreError::Superseded)) { Ok(true) } else { Err(error) };
        }
        self.learn_from(answers)?;
        self.after_update()?;
        Ok(true)
    }

    fn learn_from(&mut self, answers: Vec<TrainerAnswer>) -> anyhow::Result<()> {
        if let Some(notes) = &self.notes {
            // An episode is spent when it is described, once, however many people do so and however often they correct it.
            let keys: Vec<AnswerId> = answers.iter().map(|a| a.answer).collect();
            let update = self.counters.update + 1;
            self.counters.episodes += notes.wait(notes.store().newly_answered(update, &keys))?;
        }
        let mut described = Vec::new();
        let mut rows = Vec::new();
        let mut teachers = Vec::new();
        for answer in answers {
            let episode: Episode<K::World> = serde_json::from_value(answer.trace)
                .with_context(|| format!("the stored execution of episode {} cannot be read", answer.episode))?;
            let gold = self.world.gold(episode.task.split, episode.task.index);
            let tau = self.config.teacher.pragmatics.tau;
            let success = self.world.performs(&episode.task.start, &episode.execution, &gold, tau);
            let mut row = self.row(answer.episode, &episode.task, &episode.execution, success, true);
            row.source = Some(Source::Human);
            row.update = Some(self.counters.update + 1);
            let is_described = answer.kind == AnswerKind::Described && !answer.text.trim().is_empty();
            if is_described {
                row.description = answer.text.clone();
            }
            rows.push(row);
            self.note_asked(&episode.task, &episode.execution, is_described);
            if is_described {
                let example = Example { start: episode.task.start, words: answer.text, execution: episode.execution };
                described.push(DescribedEpisode { episode: answer.episode, example });
                teachers.push(answer.teacher.unwrap_or_default());
            }
        }
        self.learn_words(&described, &teachers)?;
        self.counters.human += described.len() as u64;
        self.learn(&described)?;
        if !self.again {
            for row in rows {
                self.out.send(Event::Episode(row));
            }
        }
        Ok(())
    }

    /// Lets the agent read the words of descriptions, and says in the log what became of new ones.
    fn learn_words(&mut self, described: &[DescribedEpisode<K::World>], teachers: &[TeacherId]) -> anyhow::Result<()> {
        let said = described.iter().zip(teachers);
        let heard: Vec<Utterance> = said
            .map(|(d, teacher)| Utterance { text: &d.example.words, episode: d.episode, teacher: teacher.0 })
            .collect();
        let before = self.algorithm.policy().spare_words();
        let learnt = self.algorithm.learn_words(&heard)?;
        if learnt == 0 || self.again {
            return Ok(());
        }
        let plural = if learnt == 1 { "" } else { "s" };
        self.out.log(format!("The agent learnt {learnt} new word{plural}, each of which it had met before."));
        let now = self.algorithm.policy().spare_words();
        if now.taken == now.rows && before.taken < before.rows {
            self.out.log(format!(
                "All {} rows for words of people are taken. Further words replace those that are used least.",
                now.rows
            ));
        }
        Ok(())
    }

    /// Makes the updates again that were recorded after the checkpoint, unless the program ends meanwhile. Numbers of
    /// episodes that people hold already stay theirs.
    pub(super) fn catch_up(&mut self) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        // A database from another time than the checkpoint would have examples learnt twice, or leave some out.
        let Counters { update, human, .. } = self.counters;
        if let Some(why) = notes.wait(notes.store().checkpoint_mismatch(&self.id, update, human))? {
            anyhow::bail!("{why}")
        }
        let lost = notes.wait(notes.store().updates_after(&self.id, self.counters.update))?;
        if !lost.is_empty() {
            self.out.log(format!("Making {} updates again that the last checkpoint did not have.", lost.len()));
        }
        self.again = true;
        for record in lost {
            if self.leaving() {
                break;
            }
            if record.update != self.counters.update + 1 {
                anyhow::bail!(
                    "the record of updates has a gap: update {} follows {}",
                    record.update,
                    self.counters.update
                )
            }
            if record.data["kind"] == "human" {
                let Some(notes) = &self.notes else { break };
                let answers = notes.wait(notes.store().answers(&record.answers))?;
                self.learn_from(answers)?;
                self.after_update()?;
            } else {
                let first = record.data["first"].as_u64().context("an update's record lacks its first episode")?;
                self.numbers.set(first);
                let share = record.data["share"].as_f64().unwrap_or(0.0);
                let room = record.data["room"].as_u64().unwrap_or(0) as usize;
                self.simulated_update(share, room)?;
            }
        }
        self.again = false;
        // Episodes that wait for people, or were answered, keep their numbers.
        let Some(notes) = &self.notes else { return Ok(()) };
        let next = notes.wait(notes.store().next_episode(&self.id))?;
        self.numbers.set(self.numbers.next().max(next));
        Ok(())
    }

    /// Episodes spent, for a checkpoint of a program that counted what people were only offered: where nobody but people
    /// taught, they are those that an update has used an answer to.
    pub(super) fn recount(&mut self) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        if self.counters.simulated == 0 && self.counters.episodes > 0 {
            let answered = notes.wait(notes.store().answered_by(&self.id, self.counters.update))?;
            self.counters.episodes = self.counters.episodes.min(answered);
        }
        Ok(())
    }
}
