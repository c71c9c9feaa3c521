//! Updates from people's answers. Executions for people come from the roll-out thread ([`super::rollouts`]), in mixed mode
//! also from the iterations.

use super::Trainer;
use super::batch::judge;
use crate::config::run::RunConfig;
use crate::family::Family;
use crate::ids::{AnswerId, TeacherId};
use crate::protocol::{DescribedEpisode, Episode, Example, Medium, RatedEpisode, Task, Utterance, World};
use crate::run::{Event, Reference, Source};
use crate::store::{AnswerKind, NewExecution, Response, StoreError, TrainerAnswer, UpdateRecord};
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
        reference: Some(reference(world, task)?),
    })
}

/// The gold execution of a task, for the data set.
pub(super) fn reference<W: World>(world: &W, task: &Task<W::Start>) -> serde_json::Result<Reference> {
    let gold = world.gold(task.split, task.index);
    Ok(Reference { summary: world.summary(&gold), execution: serde_json::to_value(&gold)? })
}

/// The lessons of answers in the run's medium, with the answers themselves and who gave them.
struct Taught<W: World> {
    /// Descriptions or demonstrations.
    described: Vec<DescribedEpisode<W>>,
    rated: Vec<RatedEpisode<W>>,
    teachers: Vec<TeacherId>,
    answers: Vec<AnswerId>,
}

// Not derived: that would ask the world itself for a default.
impl<W: World> Default for Taught<W> {
    fn default() -> Self {
        Self { described: Vec::new(), rated: Vec::new(), teachers: Vec::new(), answers: Vec::new() }
    }
}

impl<W: World> Taught<W> {
    /// Adds an answer about an episode; what it says, in words. `None` where there is nothing to learn from it.
    fn add<K: Family<World = W>>(
        &mut self,
        family: &K,
        world: &W,
        config: &RunConfig,
        answer: &TrainerAnswer,
        episode: &Episode<W>,
    ) -> Option<String> {
        let said = match lesson_of(family, world, answer, episode)? {
            LessonOf::Example(example) => {
                self.described.push(DescribedEpisode { episode: answer.episode, example });
                match answer.response.demonstration() {
                    Some(demonstration) => family.demonstration_text(demonstration),
                    None => answer.text.clone(),
                }
            }
            LessonOf::Rating(rated) => {
                let said = format!("rated: {}", config.people.rating.words(rated.rating));
                self.rated.push(rated);
                said
            }
        };
        self.teachers.push(answer.teacher.unwrap_or_default());
        self.answers.push(answer.answer);
        Some(said)
    }
}

/// The lesson of one answer.
pub(super) enum LessonOf<W: World> {
    /// A description of the execution, or a demonstration of the request.
    Example(Example<W>),
    /// A rating of the execution.
    Rating(RatedEpisode<W>),
}

/// Reads the lesson of an answer about its episode; `None` where there is nothing to learn from it. It is a function of
/// what is stored alone, so that an update is made again with the same.
pub(super) fn lesson_of<K: Family>(
    family: &K,
    world: &K::World,
    answer: &TrainerAnswer,
    episode: &Episode<K::World>,
) -> Option<LessonOf<K::World>> {
    if answer.kind != AnswerKind::Described {
        return None;
    }
    let Episode { task, execution, .. } = episode;
    let example = |words: &str, execution| Example { start: task.start.clone(), words: words.to_owned(), execution };
    match &answer.response {
        Response::Text if answer.text.trim().is_empty() => None,
        Response::Text => Some(LessonOf::Example(example(&answer.text, execution.clone()))),
        Response::Demonstration(demonstration) => match family.demonstrated(world, &task.start, demonstration) {
            Ok(shown) => Some(LessonOf::Example(example(&task.request, shown))),
            Err(reason) => {
                tracing::warn!(answer = %answer.answer, reason, "nothing can be learnt from a demonstration");
                None
            }
        },
        Response::Rating(rating) => Some(LessonOf::Rating(RatedEpisode {
            episode: answer.episode,
            example: example(&task.request, execution.clone()),
            rating: *rating,
        })),
    }
}

impl<K: Family> Trainer<'_, K> {
    /// Learns from descriptions that no update has used, and takes in the other answers since; `false` when there are no
    /// descriptions. Other answers alone make no update: a person who can describe nothing must not end the run.
    pub(super) fn human_update(&mut self) -> anyhow::Result<bool> {
        let Some(store) = &mut self.store else { return Ok(false) };
        // Who falls behind catches up: one update takes in several batches where so many answers wait.
        let algorithm = &self.run.config.algorithm;
        let limit = (algorithm.batch * algorithm.catch_up) as u32;
        let answers = store.wait(store.store().answers_to_learn_from(&self.run.id, limit))?;
        self.progress.waiting = 0;
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
        self.count_waiting()?;
        self.learn_from_answers(answers)?;
        self.after_update()?;
        Ok(true)
    }

    /// Counts the answers that wait for an update; whether their number has changed.
    pub(super) fn count_waiting(&mut self) -> anyhow::Result<bool> {
        let Some(store) = &self.store else { return Ok(false) };
        let waiting = store.wait(store.store().waiting_answers(&self.run.id))?;
        Ok(std::mem::replace(&mut self.progress.waiting, waiting) != waiting)
    }

    /// Learns from the descriptions among answers, and counts all of them.
    pub(super) fn learn_from_answers(&mut self, answers: Vec<TrainerAnswer>) -> anyhow::Result<()> {
        if let Some(store) = &self.store {
            // An episode is spent when it is described, once, however many people do so and however often they correct it.
            let ids: Vec<AnswerId> = answers.iter().map(|a| a.answer).collect();
            let update = self.progress.counters.update + 1;
            self.progress.counters.episodes += store.wait(store.store().newly_answered(update, &ids))?;
        }
        let mut taught = Taught::default();
        let mut rows = Vec::new();
        for answer in answers {
            let episode: Episode<K::World> = serde_json::from_value(answer.trace.clone())
                .with_context(|| format!("the stored execution of episode {} cannot be read", answer.episode))?;
            let tau = self.run.config.teacher.pragmatics.tau;
            let success = judge(&*self.run.world, &episode.task, &episode.execution, tau).success;
            let mut row = self.row(answer.episode, &episode.task, &episode.execution, success, true);
            row.source = Some(Source::Human);
            row.update = Some(self.progress.counters.update + 1);
            let said = taught.add(self.run.family, &self.run.world, &self.run.config, &answer, &episode);
            self.selector.record_told(&*self.run.world, &episode.task, &episode.execution, said.is_some());
            row.description = said.unwrap_or_default();
            rows.push(row);
        }
        let Taught { described, rated, teachers, answers } = taught;
        match self.run.config.algorithm.name.medium() {
            Some(Medium::Rating) => {
                self.progress.counters.human += rated.len() as u64;
                self.learn_rated(&rated)?;
            }
            medium => {
                let comprehension = self.before_learning(&described, &answers, &teachers);
                // Requests are in the corpus' own words, which the agent has.
                if medium == Some(Medium::Description) {
                    self.learn_words(&described, &teachers)?;
                }
                self.progress.counters.human += described.len() as u64;
                self.learn(&described, Source::Human)?;
                self.after_learning(&described, comprehension);
            }
        }
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
