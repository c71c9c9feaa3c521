//! The NAV agent: the student with its words, in its world. It walks, and it learns from walks.

use super::environment::Around;
use super::mirror;
use super::ngram_prior::{self, Setting};
use super::settings::ModelSettings;
use super::tokenise::{each_token, tokenise};
use super::world::NavWorld;
use super::{Start, Walk};
use crate::config::run::PriorKind;
use crate::nn::adam::{Adam, begun, begun_mut, renew_rows};
use crate::nn::device::beside;
use crate::nn::log_linear::ParamsWithPrior;
use crate::nn::tokens::UNKNOWN;
use crate::protocol::{Agent, Augmentation, Decoding, Example, Lesson, Prior};
use crate::protocol::{LearnedWords, ReserveRows, Utterance};
use crate::protocol::{Optimizer, Parameters};
use crate::rng::Stream;
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::student::{self, Batch, NavStudent, Reading, as_read};
use crate::task::nav::model::views::ViewTable;
use crate::vocab::Vocabulary;
use candle_core::{Device, Result, Tensor};
use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The parameter that has a row for each word of requests. Its name is part of checkpoints.
const REQUEST_EMBEDDING: &str = "request_embedding.weight";

/// Everything but the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blueprint {
    /// Sizes.
    pub sizes: NavSizes,
    /// Words of requests and descriptions.
    pub words: Vocabulary,
    /// How requests are read.
    pub reading: Reading,
    /// Decisions at most.
    pub horizon: usize,
    /// Whether it learns from the mirror as well.
    #[serde(default)]
    pub mirror: bool,
    /// The prior beside the network.
    #[serde(default, skip_serializing_if = "no_prior")]
    pub prior: PriorKind,
    /// Probability that a name of things is hidden from a step of learning.
    #[serde(default, skip_serializing_if = "none_hidden")]
    pub name_dropout: f64,
    /// Walks that are sampled beside the likeliest one when the agent acts greedily.
    #[serde(default, skip_serializing_if = "no_votes")]
    pub votes: usize,
}

fn none_hidden(dropout: &f64) -> bool {
    *dropout == 0.0
}

fn no_votes(votes: &usize) -> bool {
    *votes == 0
}

fn no_prior(prior: &PriorKind) -> bool {
    *prior == PriorKind::None
}

impl Blueprint {
    /// The blueprint for a world whose views have `features` numbers.
    ///
    /// # Errors
    /// When the sizes do not fit each other.
    pub fn plan(world: &NavWorld, features: usize, model: &ModelSettings) -> std::result::Result<Self, String> {
        let words = world.words().vocabulary(model.reserve)?;
        let sizes = NavSizes {
            words: words.rows(),
            hidden: model.hidden,
            heads: model.heads,
            features,
            direction: model.direction,
        };
        sizes.check().map_err(|e| e.to_string())?;
        let reading = Reading { reference_padding: model.reference_padding, positions: model.positions };
        let ModelSettings { horizon, mirror, prior, name_dropout, votes, .. } = *model;
        Ok(Self { sizes, words, reading, horizon, mirror, prior, name_dropout, votes })
    }
}

impl Blueprint {
    /// Refuses what no agent in views of so many `features` can be, before anything is made of it.
    ///
    /// # Errors
    /// A plain sentence.
    pub fn check(&self, features: usize) -> std::result::Result<(), String> {
        if !(2..=MOST_DECISIONS).contains(&self.horizon) {
            return Err(format!("an agent's horizon lies between 2 and {MOST_DECISIONS}, not at {}", self.horizon));
        }
        if !(0.0..1.0).contains(&self.name_dropout) || self.votes > MOST_VOTES {
            return Err(format!(
                "an agent's name dropout is 0 or more and below 1, its votes are at most {MOST_VOTES}"
            ));
        }
        if self.sizes.words != self.words.rows() || self.sizes.features != features {
            return Err("the agent's sizes do not fit its words or the world's views".into());
        }
        Ok(())
    }
}

/// Decisions that an agent may be made for at most.
pub const MOST_DECISIONS: usize = 100;

/// Walks that may be sampled beside the likeliest one at most.
pub const MOST_VOTES: usize = 32;

/// Ids of the words of a text.
pub fn word_ids(text: &str, words: &Vocabulary) -> Vec<u32> {
    let mut ids = Vec::new();
    each_token(text, |token| ids.push(words.id(token)));
    if ids.is_empty() {
        ids.push(UNKNOWN);
    }
    ids
}

/// The agent.
pub struct NavAgent {
    pub(super) blueprint: Blueprint,
    pub(super) student: NavStudent,
    /// The optimizer, once the agent learns.
    adam: Option<Adam>,
    pub(super) around: Arc<Around>,
    /// The parameters of the network and of the prior beside it as one, where there is a prior.
    with_prior: Option<ParamsWithPrior>,
}

/// A lesson as the student takes it.
pub(super) struct Asked {
    pub batch: Batch,
    pub lesson: student::Lesson,
    /// The views, some names hidden where the settings say so.
    pub views: ViewTable,
}

impl NavAgent {
    /// An agent with fresh weights; its device is that of the views.
    pub fn new(blueprint: Blueprint, around: Arc<Around>, stream: &mut Stream) -> Result<Self> {
        blueprint.check(around.views.features()).map_err(candle_core::Error::msg)?;
        let student = NavStudent::new(blueprint.sizes, blueprint.reading, stream, around.views.device())?;
        let with_prior = (blueprint.prior == PriorKind::Ngrams)
            .then(|| ParamsWithPrior::new(student.params.clone(), ngram_prior::model()));
        Ok(Self { blueprint, student, adam: None, around, with_prior })
    }

    /// The world as the prior reads it.
    fn setting(&self) -> Setting<'_> {
        let moves = self.blueprint.horizon - 1;
        Setting { world: self.around.world(), facts: &self.around.facts, moves }
    }

    fn read(&self, text: &str) -> Vec<u32> {
        as_read(&word_ids(text, &self.blueprint.words))
    }

    /// Ids of the words of a text, with left and right exchanged where the world is mirrored, and with words dropped at random.
    fn heard(&self, text: &str, mirrored: bool, noise: Option<&mut (f64, Stream)>) -> Vec<u32> {
        let mut ids = if mirrored {
            let tokens: Vec<String> = tokenise(text).iter().map(|token| mirror::word(token).to_owned()).collect();
            word_ids(&tokens.join(" "), &self.blueprint.words)
        } else {
            word_ids(text, &self.blueprint.words)
        };
        if let Some((dropout, stream)) = noise
            && *dropout > 0.0
        {
            for id in &mut ids {
                if stream.random_bool(*dropout) {
                    *id = UNKNOWN;
                }
            }
        }
        as_read(&ids)
    }

    /// Groups of examples as one batch. Groups that differ in their walks alone share the reading of their requests.
    fn likelihood(&self, groups: &[(&[Example<NavWorld>], f32)], noise: Option<Augmentation>) -> Result<Asked> {
        let same = |a: &[Example<NavWorld>], b: &[Example<NavWorld>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.words == b.words && a.start == b.start)
        };
        let shared = groups.windows(2).all(|pair| same(pair[0].0, pair[1].0));
        let mut noise = noise.map(|n| (n.word_dropout, n.stream()));
        let mut batch = Batch::default();
        let mut shares = Vec::with_capacity(groups.len());
        let sides = self.sides();
        for (number, (examples, share)) in groups.iter().enumerate() {
            for &mirrored in sides {
                for example in *examples {
                    if number == 0 || !shared {
                        batch.requests.push(self.heard(&example.words, mirrored, noise.as_mut()));
                    }
                    let taken = self.around.taken(&example.start, &example.execution, self.blueprint.horizon)?;
                    batch.walks.push(if mirrored { mirror::walk(&taken, self.around.poses()) } else { taken });
                }
            }
            shares.push((sides.len() * examples.len(), *share));
        }
        let actions: Vec<_> = batch.walks.iter().map(|w| w.actions.clone()).collect();
        // Drawn behind the words, so that these are the same with and without it.
        let views = match &mut noise {
            Some((_, stream)) => self.varied_views(stream)?,
            None => self.around.views.clone(),
        };
        Ok(Asked { batch, lesson: student::Lesson::likelihood(&actions, &shares), views })
    }

    /// The sides from which a walk is learnt from: the house as it is, and in the mirror where the settings say so.
    fn sides(&self) -> &'static [bool] {
        if self.blueprint.mirror { &[false, true] } else { &[false] }
    }

    /// The walks with their requests, side by side and with words dropped at random, and the views with names hidden at random.
    fn varied_batch(
        &self,
        tasks: &[(&Start, &str)],
        walks: &[Walk],
        augmentation: Augmentation,
    ) -> Result<(Batch, ViewTable)> {
        let mut noise = (augmentation.word_dropout, augmentation.stream());
        let plain = self.batch(tasks, walks)?;
        let mut batch = Batch::default();
        for &mirrored in self.sides() {
            let heard = tasks.iter().map(|(_, request)| self.heard(request, mirrored, Some(&mut noise)));
            batch.requests.extend(heard);
            let poses = self.around.poses();
            batch.walks.extend(plain.walks.iter().map(|w| if mirrored { mirror::walk(w, poses) } else { w.clone() }));
        }
        Ok((batch, self.varied_views(&mut noise.1)?))
    }

    fn batch(&self, tasks: &[(&Start, &str)], walks: &[Walk]) -> Result<Batch> {
        let taken =
            |((start, _), walk): (&(&Start, &str), &Walk)| self.around.taken(start, walk, self.blueprint.horizon);
        Ok(Batch {
            requests: tasks.iter().map(|(_, request)| self.read(request)).collect(),
            walks: tasks.iter().zip(walks).map(taken).collect::<Result<_>>()?,
        })
    }

    /// A lesson as the student takes it.
    pub(super) fn lesson(&self, lesson: &Lesson<NavWorld>) -> Result<Asked> {
        match lesson {
            Lesson::Likelihood(groups) => self.likelihood(groups, None),
            Lesson::Varied(groups, noise) => self.likelihood(groups, Some(*noise)),
            // A demonstration shows where to go: from wherever the agent is, the next step of a shortest path to there.
            Lesson::Imitation { tasks, rolled, shown, augmentation } => {
                let (batch, views) = self.varied_batch(tasks, rolled, *augmentation)?;
                let ways = tasks.iter().zip(*rolled).zip(*shown);
                let targets = ways
                    .map(|(((start, _), walk), shown)| self.around.way(start, walk, shown, self.blueprint.horizon))
                    .collect::<Result<Vec<_>>>()?;
                // A mirror leaves the candidates' order as it is, so the targets are the same.
                let targets: Vec<_> = std::iter::repeat_n(targets, self.sides().len()).flatten().collect();
                Ok(Asked { batch, lesson: student::Lesson::likelihood(&targets, &[(targets.len(), 1.0)]), views })
            }
            Lesson::Reward { tasks, executions, advantages, entropy } => {
                let batch = self.batch(tasks, executions)?;
                let actions: Vec<_> = batch.walks.iter().map(|w| w.actions.clone()).collect();
                let lesson = student::Lesson::reward(&actions, advantages, *entropy);
                Ok(Asked { batch, lesson, views: self.around.views.clone() })
            }
        }
    }
}

impl Prior<NavWorld> for NavAgent {
    fn learn(&mut self, examples: &[Example<NavWorld>]) -> Result<()> {
        let Some(both) = &self.with_prior else { return Ok(()) };
        let (setting, mut model) = (self.setting(), both.prior());
        examples.iter().try_for_each(|e| setting.learn(&mut model, &e.start, &e.words, &e.execution))
    }
}

impl Agent<NavWorld> for NavAgent {
    fn act(&self, tasks: &[(&Start, &str)], how: Decoding, stream: &mut Stream) -> Result<Vec<Walk>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let starts: Vec<_> = tasks.iter().map(|(start, _)| *start).collect();
        let requests: Vec<_> = tasks.iter().map(|(_, request)| self.read(request)).collect();
        let mut walkers = self.around.walkers(&starts)?;
        if let (Some(both), Decoding::Greedy | Decoding::RollIn) = (&self.with_prior, how) {
            let prior = both.prior();
            if !prior.is_untaught() {
                let (setting, model) = (self.setting(), &*prior);
                return tasks.par_iter().map(|(start, words)| setting.choose(model, start, words)).collect();
            }
        }
        let whether = (self.blueprint.horizon, how == Decoding::Sample);
        self.student.lead(&requests, &mut walkers, &self.around.views, whether, stream)?;
        match how {
            Decoding::Greedy if self.blueprint.votes > 0 => self.voted(walkers.walks(), tasks, &requests),
            _ => Ok(walkers.walks()),
        }
    }

    fn loss(&self, lesson: &Lesson<NavWorld>) -> Result<Tensor> {
        let Asked { batch, lesson, views } = self.lesson(lesson)?;
        self.student.loss(&batch, &lesson, &views)
    }

    fn begin_learning(&mut self, learning_rate: f64) -> Result<()> {
        self.adam = Some(Adam::new(&self.student.params, learning_rate)?);
        Ok(())
    }

    fn optimizer(&self) -> Result<&dyn Optimizer> {
        Ok(begun(self.adam.as_ref())?)
    }

    fn optimizer_mut(&mut self) -> Result<&mut dyn Optimizer> {
        Ok(begun_mut(self.adam.as_mut())?)
    }

    fn step(&mut self, lesson: &Lesson<NavWorld>) -> Result<Tensor> {
        let Asked { batch, lesson, views } = self.lesson(lesson)?;
        let adam = begun_mut(self.adam.as_mut())?;
        self.student.step(&batch, &lesson, &views, adam)
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        let mut learned = LearnedWords::default();
        for utterance in utterances {
            learned.add(self.blueprint.words.read(*utterance, &tokenise(utterance.text)));
        }
        renew_rows(&self.student.params, self.adam.as_mut(), REQUEST_EMBEDDING, &learned.given_over)?;
        Ok(learned.words)
    }

    fn unknown_words(&self, request: &str) -> Vec<String> {
        self.blueprint.words.unknown(tokenise(request))
    }

    fn spare_words(&self) -> ReserveRows {
        self.blueprint.words.spare()
    }

    fn prior(&mut self) -> Option<&mut dyn Prior<NavWorld>> {
        if self.with_prior.is_some() { Some(self) } else { None }
    }

    fn params(&self) -> &dyn Parameters {
        match &self.with_prior {
            Some(both) => both,
            None => &self.student.params,
        }
    }

    fn blueprint(&self) -> serde_json::Value {
        serde_json::to_value(&self.blueprint).unwrap_or_default()
    }

    fn duplicate_on(&self, device: &Device) -> Result<Box<dyn Agent<NavWorld>>> {
        let around = if device.same_device(self.params().device()) {
            self.around.clone()
        } else {
            Arc::new(self.around.on(device)?)
        };
        let copy = Self::new(self.blueprint.clone(), around, &mut crate::rng::stream(0, "duplicate", 0))?;
        copy.params().copy_from(self.params())?;
        Ok(Box::new(copy))
    }

    fn duplicate_concurrent(&self) -> Result<Box<dyn Agent<NavWorld>>> {
        self.duplicate_on(&beside(self.student.params.device())?)
    }

    fn restore_blueprint(&mut self, blueprint: &serde_json::Value) -> std::result::Result<(), String> {
        let mut wanted: Blueprint = serde_json::from_value(blueprint.clone()).map_err(|e| e.to_string())?;
        wanted.words.settle(self.blueprint.words.spare().rows as usize);
        wanted.check(self.around.views.features())?;
        if wanted.sizes != self.blueprint.sizes {
            return Err("the checkpoint's agent has other sizes".into());
        }
        if wanted.prior != self.blueprint.prior {
            return Err("the checkpoint's agent has another prior".into());
        }
        self.blueprint = wanted;
        Ok(())
    }
}
