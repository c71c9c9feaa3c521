//! Updates from people's answers. Executions for people come from the roll-out thread ([`super::rollouts`]), in mixed mode
//! also from the iterations.

use super::Trainer;
use super::batch::judge;
use crate::config::run::RunConfig;
use crate::family::Family;
use crate::ids::{AnswerId, TeacherId};
use crate::protocol::{DescribedEpisode, Episode, Example, Utterance, World};
use crate::run::{Event, Source};
use crate::store::{AnswerKind, NewExecution, StoreError, TrainerAnswer, UpdateRecord};
use anyhow::Context;

/// An episode as it comes into the pool. Its trace is the whole of it.
pub(super) fn execution_for_people<W: World>(
    world: &W,
    config: &RunConfig,
    episode: &Episode<W>,
    success: bool,
    update: u64,
) -> anyhow::Result<NewExecution> {
    let Episode { number, task, execution } = episode;
    Ok(NewExecution {
        success,
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
    /// Learns from descriptions that no update has used, and takes in the other answers since; `false` when there are no
    /// descriptions. Other answers alone make no update: a person who can describe nothing must not end the run.
    pub(super) fn human_update(&mut self) -> anyhow::Result<bool> {
        let Some(store) = &mut self.store else { return Ok(false) };
        let limit = self.run.config.algorithm.batch as u32;
        let answers = store.wait(store.store().answers_to_learn_from(&self.run.id, limit))?;
        if answers.is_empty() {
            return Ok(false);
        }
        // The update is recorded first: a kill after it makes the update again, a kill before it leaves the answers unused.
        let data = serde_json::json!({ "kind": "human", "practice": self.progress.counters.practice });
        let ids = answers.iter().map(|a| a.answer).collect();
        let record = UpdateRecord { update: self.progress.counters.update + 1, data, answers: ids };
        if let Err(error) = store.record_human_update(&record) {
            // A person took one of them back just now: nothing was recorded, and the next turn takes the others.
            return if matches!(error.downcast_ref(), Some(StoreError::Superseded)) { Ok(true) } else { Err(error) };
        }
        self.learn_from_answers(answers)?;
        self.after_update()?;
        Ok(true)
    }

    /// Learns from the descriptions among answers, and counts all of them.
    pub(super) fn learn_from_answers(&mut self, answers: Vec<TrainerAnswer>) -> anyhow::Result<()> {
        if let Some(store) = &self.store {
            // An episode is spent when it is described, once, however many people do so and however often they correct it.
            let ids: Vec<AnswerId> = answers.iter().map(|a| a.answer).collect();
            let update = self.progress.counters.update + 1;
            self.progress.counters.episodes += store.wait(store.store().newly_answered(update, &ids))?;
        }
        let mut described = Vec::new();
        let mut rows = Vec::new();
        let (mut teachers, mut ids) = (Vec::new(), Vec::new());
        for answer in answers {
            let Episode { task, execution, .. }: Episode<K::World> = serde_json::from_value(answer.trace)
                .with_context(|| format!("the stored execution of episode {} cannot be read", answer.episode))?;
            let tau = self.run.config.teacher.pragmatics.tau;
            let success = judge(&*self.run.world, &task, &execution, tau).success;
            let mut row = self.row(answer.episode, &task, &execution, success, true);
            row.source = Some(Source::Human);
            row.update = Some(self.progress.counters.update + 1);
            let is_described = answer.kind == AnswerKind::Described && !answer.text.trim().is_empty();
            if is_described {
                row.description = answer.text.clone();
            }
            rows.push(row);
            self.selector.record_told(&*self.run.world, &task, &execution, is_described);
            if is_described {
                let example = Example { start: task.start, words: answer.text, execution };
                described.push(DescribedEpisode { episode: answer.episode, example });
                teachers.push(answer.teacher.unwrap_or_default());
                ids.push(answer.answer);
            }
        }
        let comprehension = self.before_learning(&described, &ids, &teachers);
        self.learn_words(&described, &teachers)?;
        self.progress.counters.human += described.len() as u64;
        self.learn(&described, Source::Human)?;
        self.after_learning(&described, comprehension);
        if !self.recovering {
            for row in rows {
                self.events.send(Event::Episode(row));
            }
        }
        Ok(())
    }

    /// Lets the agent read the words of descriptions, and logs how many new ones it learnt.
    fn learn_words(&mut self, described: &[DescribedEpisode<K::World>], teachers: &[TeacherId]) -> anyhow::Result<()> {
        let utterances: Vec<Utterance> = described
            .iter()
            .zip(teachers)
            .map(|(d, teacher)| Utterance { text: &d.example.words, episode: d.episode, teacher: teacher.0 })
            .collect();
        let before = self.algorithm.policy().spare_words();
        let learnt = self.algorithm.learn_words(&utterances)?;
        if learnt == 0 || self.recovering {
            return Ok(());
        }
        let plural = if learnt == 1 { "" } else { "s" };
        self.events.log(format!("The agent learnt {learnt} new word{plural}, each of which it had met before."));
        let now = self.algorithm.policy().spare_words();
        if now.taken == now.rows && before.taken < before.rows {
            self.events.log(format!(
                "All {} rows for words of people are taken. Further words replace those that are used least.",
                now.rows
            ));
        }
        Ok(())
    }
}
