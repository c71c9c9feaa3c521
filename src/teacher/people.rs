//! Simulated people: they describe, demonstrate and rate as people do, with slips and at a person's pace.
//!
//! The task says which answer is right: the paper's simulated teacher describes, the gold execution is demonstrated, and the world
//! says how good an execution is. `people.simulated` ([`PeopleModel`]) says how often they go wrong. The same person gives the same
//! answer to the same question: every draw is a function of the seed, the person and the number of the answer.

use super::noise::{normal, rating, seconds, sentence};
use super::simulated::describe;
use crate::config::run::{Draw, PeopleModel, Pragmatics, RatingScale, RunConfig, not_by_people};
use crate::family::Family;
use crate::protocol::{Episode, Medium, Task, Teacher, World};
use crate::rng::{self, Stream};
use anyhow::Context;
use candle_core::Device;
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::Value;
use std::sync::Arc;

/// Draws among which a wrong demonstration is the one that is nearest to the right one, where the world names no slips.
const NEAR: usize = 40;

/// An answer of a simulated person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulatedAnswer {
    /// Description; empty in other media.
    pub text: String,
    /// Demonstration as a page sends it, before it is checked; null in other media.
    pub demonstration: Value,
    /// Rating from 0 to 1.
    pub rating: Option<f64>,
    /// Whether this person gives no answer: "I can't describe this".
    pub cannot: bool,
    /// Whether the answer is another one than this person would give with more care.
    pub mistaken: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

/// People without the family's types, as those hold them who rehearse a study.
pub trait AnswersAsPeople: Send {
    /// The medium in which they answer.
    fn medium(&self) -> Medium;

    /// The answer of a person to an execution, which `trace` holds as the store has it. `number` counts the answers of this person.
    ///
    /// # Errors
    /// When the trace is none of the family, or the teacher's models do not compute.
    fn answer(&self, trace: &Value, person: u64, number: u64) -> anyhow::Result<SimulatedAnswer>;
}

/// The simulated people of a run.
pub struct People<K: Family> {
    family: &'static K,
    world: Arc<K::World>,
    models: Option<Box<dyn Teacher<K::World>>>,
    medium: Medium,
    config: RunConfig,
}

impl<K: Family> People<K> {
    /// The people who would teach a run of this configuration.
    ///
    /// # Errors
    /// When world or teacher cannot be made, people cannot teach the algorithm, or a describer is missing.
    pub fn new(family: &'static K, config: &RunConfig) -> anyhow::Result<Self> {
        let medium = config.algorithm.name.medium();
        let medium = medium.with_context(|| not_by_people(config.algorithm.name))?;
        let world = family.world(config, &|_, _| {})?;
        let models = match medium {
            Medium::Description => {
                let models = family.teacher(config, &world, &Device::Cpu)?;
                Some(
                    models
                        .context("simulated people describe with the teacher's models, and teacher.models has none")?,
                )
            }
            Medium::Demonstration | Medium::Rating => None,
        };
        Ok(Self { family, world, models, medium, config: config.clone() })
    }

    fn model(&self) -> &PeopleModel {
        &self.config.people.simulated
    }

    /// Draws of a person: for the person alone, or for one of their answers.
    fn stream(&self, purpose: &str, person: u64, number: u64) -> Stream {
        let seed = self.config.seed ^ person.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        rng::stream(seed, purpose, number)
    }

    /// The answer to an episode.
    ///
    /// # Errors
    /// When the teacher's models do not compute.
    pub fn answer_to(&self, episode: &Episode<K::World>, person: u64, number: u64) -> anyhow::Result<SimulatedAnswer> {
        let model = self.model();
        let mut habits = self.stream("person", person, 0);
        // Some are quicker than others, and some kinder.
        let (pace, bias) = ((model.people_spread * normal(&mut habits)).exp(), model.bias * normal(&mut habits));
        let mut draws = self.stream("person-answer", person, number);
        let median = match self.medium {
            Medium::Description => model.describe_seconds,
            Medium::Demonstration => model.demonstrate_seconds,
            Medium::Rating => model.rate_seconds,
        };
        let seconds = seconds(median * pace, model.seconds_spread, &mut draws);
        if draws.random_bool(model.cannot) {
            return Ok(SimulatedAnswer { cannot: true, seconds, ..SimulatedAnswer::default() });
        }
        let answer = match self.medium {
            Medium::Description => self.description(episode, person, number, &mut draws)?,
            Medium::Demonstration => self.demonstration(episode, &mut draws),
            Medium::Rating => self.rating(episode, bias, &mut draws),
        };
        Ok(SimulatedAnswer { seconds, ..answer })
    }

    fn description(
        &self,
        episode: &Episode<K::World>,
        person: u64,
        number: u64,
        draws: &mut Stream,
    ) -> anyhow::Result<SimulatedAnswer> {
        let Some(models) = &self.models else { anyhow::bail!("there is no describer") };
        let pragmatics = Pragmatics { draw: Draw::First, ..self.config.teacher.pragmatics };
        let seed = self.config.seed ^ person.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let said = describe(&*self.world, &**models, &pragmatics, std::slice::from_ref(episode), seed, number)?;
        let said = said.into_iter().next().unwrap_or_default();
        let others: Vec<&String> = said.candidates.iter().filter(|(_, fits)| *fits).map(|(text, _)| text).collect();
        let meant = match draws.random_bool(self.model().phrasing) {
            true => others.choose(draws).map_or(said.description.clone(), |text| (*text).clone()),
            false => said.description,
        };
        if meant.is_empty() {
            return Ok(SimulatedAnswer { cannot: true, ..SimulatedAnswer::default() });
        }
        let (text, mistaken) = sentence(&meant, self.model(), draws);
        Ok(SimulatedAnswer { text, mistaken, ..SimulatedAnswer::default() })
    }

    fn demonstration(&self, episode: &Episode<K::World>, draws: &mut Stream) -> SimulatedAnswer {
        let (world, task) = (&*self.world, &episode.task);
        let right = world.gold(task.split, task.index);
        let slip = draws.random_bool(self.model().mistake).then(|| self.near(task, &right, draws)).flatten();
        let shown = slip.as_ref().unwrap_or(&right);
        let demonstration = self.family.demonstration_from(world, &task.start, shown);
        let cannot = demonstration.is_null();
        SimulatedAnswer { demonstration, cannot, mistaken: slip.is_some(), ..SimulatedAnswer::default() }
    }

    /// A wrong execution that is easily taken for the right one.
    fn near(
        &self,
        task: &Task<<K::World as World>::Start>,
        right: &<K::World as World>::Execution,
        draws: &mut Stream,
    ) -> Option<<K::World as World>::Execution> {
        let world = &*self.world;
        if let Some(slip) = world.slip(&task.start, right, draws) {
            return Some(slip);
        }
        let wrong = |e: &<K::World as World>::Execution| {
            world.describable(&task.start, e) && !world.understood(&task.start, e, right, 1.0)
        };
        let drawn: Vec<_> = (0..NEAR).map(|_| world.sample_marginal(&task.start, draws)).filter(wrong).collect();
        let score = |e: &<K::World as World>::Execution| world.continuous_reward(task, e);
        drawn.into_iter().reduce(|best, next| if score(&next) > score(&best) { next } else { best })
    }

    fn rating(&self, episode: &Episode<K::World>, bias: f64, draws: &mut Stream) -> SimulatedAnswer {
        let (world, task, scale) = (&*self.world, &episode.task, self.config.people.rating);
        let gold = world.gold(task.split, task.index);
        let tau = self.config.teacher.pragmatics.tau;
        let quality = match scale {
            RatingScale::Binary => f64::from(u8::from(world.performs(&task.start, &episode.execution, &gold, tau))),
            RatingScale::Stars => world.continuous_reward(task, &episode.execution).clamp(0.0, 1.0),
        };
        let (given, mistaken) = rating(quality, scale, bias, self.model(), draws);
        SimulatedAnswer { rating: Some(given), mistaken, ..SimulatedAnswer::default() }
    }
}

impl<K: Family> AnswersAsPeople for People<K> {
    fn medium(&self) -> Medium {
        self.medium
    }

    fn answer(&self, trace: &Value, person: u64, number: u64) -> anyhow::Result<SimulatedAnswer> {
        let episode: Episode<K::World> =
            serde_json::from_value(trace.clone()).context("the trace is none of this family")?;
        self.answer_to(&episode, person, number)
    }
}
