//! The trainer's side of human teaching: keeping the pool of fresh executions filled, learning from answers, and making
//! updates again after a kill.

use super::checkpoint::Counters;
use super::{Trainer, rng};
use crate::agent::Example;
use crate::algorithm::Described;
use crate::run::{Event, Source, TeacherMode};
use crate::store::{AnswerKind, NewExecution, TrainerAnswer, UpdateRecord};
use crate::task::kit::TaskKit;
use crate::task::{Split, World};
use crate::teacher::Episode;
use anyhow::Context;

impl<K: TaskKit> Trainer<'_, K> {
    /// Takes executions of policies that are too old out of the pool.
    pub(super) fn retire(&self) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        let oldest = self.counters.update.saturating_sub(self.config.pool.max_age);
        notes.wait(notes.store().retire_stale(&self.id, oldest))?;
        Ok(())
    }

    /// Free places in the pool.
    pub(super) fn room(&self) -> anyhow::Result<usize> {
        self.retire()?;
        let Some(notes) = &self.notes else { return Ok(0) };
        let pool = notes.wait(notes.store().pool(&self.id))?;
        Ok(self.config.pool.size.saturating_sub((pool.open + pool.leased) as usize))
    }

    /// Puts episodes into the pool. An execution's trace is the whole episode.
    pub(super) fn offer(&mut self, episodes: Vec<Episode<K::World>>) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        if episodes.is_empty() {
            return Ok(());
        }
        let offered = episodes
            .into_iter()
            .map(|e| {
                let gold = self.world.gold(e.task.split, e.task.index);
                let tau = self.config.teacher.pragmatics.tau;
                Ok(NewExecution {
                    success: self.world.performs(&e.task.start, &e.execution, &gold, tau),
                    episode: e.number,
                    update: self.counters.update,
                    request: e.task.request.clone(),
                    view: self.world.view(&e.task.start, &e.execution),
                    summary: self.world.summary(&e.execution),
                    wanted: self.config.pool.overlap,
                    trace: serde_json::to_value(&e)?,
                })
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(notes.wait(notes.store().offer(&self.id, &offered))?)
    }

    /// Executes fresh episodes until the pool is full (or a few batches gave nothing to describe).
    pub(super) fn fill_pool(&mut self) -> anyhow::Result<()> {
        for _ in 0..4 {
            let room = self.room()?;
            if room == 0 {
                break;
            }
            let (seed, first) = (self.config.seed, self.counters.episodes);
            let n = (2 * room).clamp(8, self.config.algorithm.batch.max(8));
            let n = (n * self.config.algorithm.ask.candidates) as u64;
            let tasks: Vec<_> = (first..first + n)
                .map(|e| self.world.sample_task(Split::Train, &mut rng::stream(seed, "task", e)))
                .collect();
            let executions = self.to_describe(&tasks, self.algorithm.explore(&tasks, first)?);
            let waiting = self.offered.make_contiguous().to_vec();
            let asked = self.to_be_asked(&tasks, &executions, first, &waiting, room)?;
            self.counters.episodes += n;
            let tau = self.config.teacher.pragmatics.tau;
            let mut fresh = Vec::new();
            for (i, (task, execution)) in tasks.into_iter().zip(executions).enumerate() {
                let gold = self.world.gold(task.split, task.index);
                let success = self.world.performs(&task.start, &execution, &gold, tau);
                self.meters.execution(self.world.valid(&task.start, &execution), success);
                if fresh.len() < room && asked[i] {
                    self.offered.push_back(self.world.kind(&task.start, &execution));
                    fresh.push(Episode { number: first + i as u64, task, execution });
                }
            }
            self.offer(fresh)?;
            let beyond = self.offered.len().saturating_sub(self.config.pool.size);
            self.offered.drain(..beyond);
        }
        Ok(())
    }

    /// Learns from answers that no update has used; `false` when there are none.
    pub(super) fn human_update(&mut self) -> anyhow::Result<bool> {
        let Some(notes) = &mut self.notes else { return Ok(false) };
        let limit = self.config.algorithm.batch as u32;
        let answers = notes.wait(notes.store().unused_answers(&self.id, limit))?;
        if answers.is_empty() {
            return Ok(false);
        }
        // The record comes first: a kill after it makes the update again, a kill before it leaves the answers unused.
        let data = serde_json::json!({ "kind": "human" });
        let keys = answers.iter().map(|a| a.answer).collect();
        notes.human_update(&UpdateRecord { update: self.counters.update + 1, data, answers: keys })?;
        self.learn_from(answers)?;
        self.after_update()?;
        Ok(true)
    }

    fn learn_from(&mut self, answers: Vec<TrainerAnswer>) -> anyhow::Result<()> {
        let mut described = Vec::new();
        let mut rows = Vec::new();
        for answer in answers {
            let episode: Episode<K::World> = serde_json::from_value(answer.trace)
                .with_context(|| format!("the stored execution of episode {} cannot be read", answer.episode))?;
            let gold = self.world.gold(episode.task.split, episode.task.index);
            let tau = self.config.teacher.pragmatics.tau;
            let success = self.world.performs(&episode.task.start, &episode.execution, &gold, tau);
            let mut row = self.row(answer.episode, &episode.task, &episode.execution, success, true);
            row.source = Some(Source::Human);
            row.description = answer.text.clone();
            row.update = Some(self.counters.update + 1);
            rows.push(row);
            let is_described = answer.kind == AnswerKind::Described && !answer.text.trim().is_empty();
            self.note_asked(&episode.task, &episode.execution, is_described);
            if is_described {
                let example = Example { start: episode.task.start, words: answer.text, execution: episode.execution };
                described.push(Described { episode: answer.episode, example });
            }
        }
        let texts: Vec<&str> = described.iter().map(|d| d.example.words.as_str()).collect();
        let learnt = self.algorithm.learn_words(&texts);
        if learnt > 0 && !self.again {
            self.out.log(format!("The agent met {learnt} new word{}.", if learnt == 1 { "" } else { "s" }));
        }
        self.counters.human += described.len() as u64;
        self.learn(&described)?;
        if !self.again {
            for row in rows {
                self.out.send(Event::Episode(row));
            }
        }
        Ok(())
    }

    /// Makes the updates again that were recorded after the checkpoint, and counts episodes that people hold already.
    pub(super) fn catch_up(&mut self) -> anyhow::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        // A database from another time than the checkpoint would have examples learnt twice, or leave some out.
        let Counters { update, human, .. } = self.counters;
        if let Some(why) = notes.wait(notes.store().disagreement(&self.id, update, human))? {
            anyhow::bail!("{why}")
        }
        let lost = notes.wait(notes.store().updates_after(&self.id, self.counters.update))?;
        if !lost.is_empty() {
            self.out.log(format!("Making {} updates again that the last checkpoint did not have.", lost.len()));
        }
        self.again = true;
        for record in lost {
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
                self.counters.episodes = first;
                let share = record.data["share"].as_f64().unwrap_or(0.0);
                let room = record.data["room"].as_u64().unwrap_or(0) as usize;
                self.simulated_update(share, room)?;
            }
        }
        self.again = false;
        // Episodes that wait for people, or were answered, keep their numbers.
        let Some(notes) = &self.notes else { return Ok(()) };
        let next = notes.wait(notes.store().next_episode(&self.id))?;
        self.counters.episodes = self.counters.episodes.max(next);
        if self.mode == TeacherMode::Human {
            self.fill_pool()?;
        }
        Ok(())
    }
}
