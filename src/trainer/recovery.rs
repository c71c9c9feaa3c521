//! Recovery after a kill: updates that were recorded after the last checkpoint are made again.

use super::Trainer;
use super::checkpoint::Counters;
use crate::family::Family;
use anyhow::Context;

/// Updates and practice steps that are made again between two checkpoints, so that a recovery which is ended again and again
/// comes to its end.
const STEPS_BETWEEN_CHECKPOINTS: u64 = 100;

impl<K: Family> Trainer<'_, K> {
    /// Makes the updates again that were recorded after the checkpoint, unless the program ends meanwhile. Numbers of
    /// episodes that people hold already stay theirs.
    pub(super) fn recover_updates(&mut self) -> anyhow::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        // A database from another time than the checkpoint would have examples learnt twice, or leave some out.
        let Counters { update, human, .. } = self.progress.counters;
        if let Some(reason) = store.wait(store.store().checkpoint_mismatch(&self.run.id, update, human))? {
            anyhow::bail!("{reason}")
        }
        let lost = store.wait(store.store().updates_after(&self.run.id, update))?;
        if !lost.is_empty() {
            self.events.log(format!("Making {} updates again that the last checkpoint did not have.", lost.len()));
        }
        self.recovering = true;
        let mut unsaved = 0;
        for record in lost {
            if self.commands.shutdown_requested() {
                break;
            }
            let update = self.progress.counters.update;
            if record.update != update + 1 {
                anyhow::bail!("the record of updates has a gap: update {} follows {update}", record.update)
            }
            let Some(practised) = self.repeat_practice(&record.data)? else { break };
            if record.data["kind"] == "human" {
                let Some(store) = &self.store else { break };
                let answers = store.wait(store.store().answers(&record.answers))?;
                self.learn_from_answers(answers)?;
                self.after_update()?;
            } else {
                let first = record.data["first"].as_u64().context("an update's record lacks its first episode")?;
                self.supply.numbers.set(first);
                let share = record.data["share"].as_f64().unwrap_or(0.0);
                let room = record.data["room"].as_u64().unwrap_or(0) as usize;
                self.simulated_update(share, room)?;
            }
            unsaved += 1 + practised;
            if unsaved >= STEPS_BETWEEN_CHECKPOINTS {
                self.checkpoint()?;
                unsaved = 0;
            }
        }
        self.recovering = false;
        // Episodes that wait for people, or were answered, keep their numbers.
        let Some(store) = &self.store else { return Ok(()) };
        let next = store.wait(store.store().next_episode(&self.run.id))?;
        let numbers = &self.supply.numbers;
        numbers.set(numbers.next().max(next));
        Ok(())
    }

    /// Corrects the episodes spent, for a checkpoint of a program that counted executions which people were only offered:
    /// where nobody but people taught, they are those that an update has used an answer to.
    pub(super) fn recount_episodes(&mut self) -> anyhow::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let counters = &mut self.progress.counters;
        if counters.simulated == 0 && counters.episodes > 0 {
            let answered = store.wait(store.store().answered_by(&self.run.id, counters.update))?;
            counters.episodes = counters.episodes.min(answered);
        }
        Ok(())
    }
}
