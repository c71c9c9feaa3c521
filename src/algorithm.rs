//! Learning algorithms: how executions are chosen and how the teacher's input changes the policies. Each algorithm has a
//! file of its own; the trainer knows them by the trait [`Algorithm`] alone.

pub mod adel;
pub mod dagger;
pub mod epoch_adel;
pub mod explorer;
pub mod learner;
mod practice;
mod pretraining;
pub mod query_selection;
pub mod reinforce;
pub mod single_policy;
pub mod supervised;
pub mod true_marginal;

use crate::config::run::{AlgorithmName, Mixing, RunConfig};
use crate::protocol::{Agent, DescribedEpisode, RatedEpisode, Task, Utterance, World};
use candle_core::Result;
use learner::Tensors;
pub use pretraining::{pretrain, teach_prior};
use serde::{Deserialize, Serialize};
use single_policy::SinglePolicy;
use std::sync::Arc;

/// The position of a gradient step in a run.
#[derive(Clone, Copy, Debug)]
pub struct StepContext {
    /// Updates (iterations) made before.
    pub update: u64,
    /// Number of the step among all of the run, which keys its random draws.
    pub counter: u64,
    /// Whether it learns from new descriptions (not from replayed ones), so that its loss counts in the curves.
    pub fresh: bool,
}

/// The state of an algorithm that a checkpoint holds beside the tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AlgorithmState {
    /// Optimiser steps made.
    pub steps: u64,
    /// Blueprint of the agent.
    pub blueprint: serde_json::Value,
    /// The algorithm's own state; null where it has none.
    pub state: serde_json::Value,
}

/// A learning algorithm of the loop: it chooses executions and learns from what the teacher gives.
///
/// Everything it does is a function of its tensors, its [`AlgorithmState`], the seed and its arguments, so that a resumed
/// run continues as if nothing had happened.
pub trait Algorithm<W: World>: Send {
    /// The policy that is evaluated, tried and reported.
    fn policy(&self) -> &dyn Agent<W>;

    /// The mixing of exploration with the approximate marginal; `None` for algorithms without one.
    fn mixing(&self) -> Option<&Mixing> {
        None
    }

    /// Executions of the tasks, which are the episodes from number `first` on. `first` keys the draws.
    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>>;

    /// The policies that [`Algorithm::explore`] executes with, in the order in which [`explorer::Explorer`] takes them;
    /// `None` where people cannot teach.
    fn exploration_policies(&self) -> Option<Vec<&dyn Agent<W>>> {
        None
    }

    /// Whether [`Algorithm::explore`] gives the agent's own executions, whose success is worth a curve.
    fn executes_own_policy(&self) -> bool;

    /// Reads new words of descriptions; those that have earned it take reserve rows in all policies. Returns how many did.
    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize>;

    /// The way in which the algorithm learns.
    fn learning(&mut self) -> Learning<'_, W>;

    /// Sum and number of the losses on new teaching since the last call, nats a sequence. Waits for the device.
    fn take_loss(&mut self) -> Result<(f64, u64)>;

    /// All tensors: weights, moments, averages. The evaluated policy's weights begin with `theta.weights.`, or with
    /// `average.weights.` where weights are averaged.
    fn tensors(&self) -> Result<Tensors>;

    /// The state that a checkpoint needs beside the tensors.
    fn state(&self) -> AlgorithmState;

    /// Restores what [`Algorithm::tensors`] and [`Algorithm::state`] gave.
    fn restore(&mut self, tensors: &Tensors, state: &AlgorithmState) -> Result<()>;
}

/// The input that an algorithm learns from, with the operations that this kind of learning has.
pub enum Learning<'a, W: World> {
    /// Gradient steps on described episodes, in every iteration.
    Descriptions(&'a mut dyn LearnsFromDescriptions<W>),
    /// Described episodes that are collected during an epoch and learnt from at its end.
    Epochs(&'a mut dyn LearnsInEpochs<W>),
    /// Gradient steps on episodes that need no description.
    Episodes(&'a mut dyn LearnsFromEpisodes<W>),
    /// The simulated iteration learns from gold executions; people's demonstrations are learnt from as descriptions are.
    Demonstrations(&'a mut dyn LearnsFromDemonstrations<W>),
    /// The simulated iteration learns from the world's rewards; people's ratings take their place.
    Ratings(&'a mut dyn LearnsFromRatings<W>),
}

impl<'a, W: World> Learning<'a, W> {
    /// The side that takes gradient steps on examples that a teacher made: of descriptions, or of demonstrations.
    pub fn from_examples(self) -> Option<&'a mut dyn LearnsFromDescriptions<W>> {
        match self {
            Self::Descriptions(algorithm) => Some(algorithm),
            Self::Demonstrations(algorithm) => Some(algorithm),
            Self::Epochs(_) | Self::Episodes(_) | Self::Ratings(_) => None,
        }
    }

    /// The side that learns from the episodes themselves.
    pub fn from_episodes(self) -> Option<&'a mut dyn LearnsFromEpisodes<W>> {
        match self {
            Self::Episodes(algorithm) => Some(algorithm),
            Self::Demonstrations(algorithm) => Some(algorithm),
            Self::Ratings(algorithm) => Some(algorithm),
            Self::Descriptions(_) | Self::Epochs(_) => None,
        }
    }
}

/// An algorithm that takes gradient steps on described episodes. Stored descriptions may be replayed to it in steps of
/// their own (`algorithm.replay`).
pub trait LearnsFromDescriptions<W: World> {
    /// One gradient step on described episodes. Does nothing when there are none.
    fn learn(&mut self, described: &[DescribedEpisode<W>], step: StepContext) -> Result<()>;

    /// One cheap step of one policy on stored descriptions, while people think.
    fn practise(&mut self, replayed: &[DescribedEpisode<W>], step: StepContext) -> Result<()>;

    /// −log π_θ(ê | d̂) of descriptions that are not practised, nats a sequence.
    fn practice_loss(&self, held_back: &[DescribedEpisode<W>]) -> Result<f32>;
}

/// An algorithm that collects described episodes and refits its policies at the end of an epoch.
pub trait LearnsInEpochs<W: World> {
    /// Collects described episodes; nothing is learnt before the epoch ends.
    fn collect(&mut self, described: &[DescribedEpisode<W>]);

    /// Refits the policies where the iteration after `update` others is the last of its epoch. To be called at the end of
    /// every iteration, described or not.
    fn end_iteration(&mut self, update: u64) -> Result<()>;

    /// How many of the newest logged descriptions [`LearnsInEpochs::restore_collected`] must be given after
    /// [`Algorithm::restore`].
    fn collected(&self) -> usize;

    /// Takes the newest logged descriptions back after a resume.
    fn restore_collected(&mut self, described: Vec<DescribedEpisode<W>>);
}

/// An algorithm that learns from the episodes themselves: from demonstrations or rewards.
pub trait LearnsFromEpisodes<W: World> {
    /// One gradient step on executed tasks.
    fn learn_from_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()>;
}

/// An algorithm that is shown what should have been done: by the gold executions of tasks, or by people. A person's demonstration
/// is an example of its request, learnt from and practised as an example of a description is.
pub trait LearnsFromDemonstrations<W: World>: LearnsFromEpisodes<W> + LearnsFromDescriptions<W> {}

/// An algorithm that is told how well it did: by the world's reward, or by people.
pub trait LearnsFromRatings<W: World>: LearnsFromEpisodes<W> {
    /// One gradient step on executions that people have rated. Does nothing when there are none.
    fn learn_from_ratings(&mut self, rated: &[RatedEpisode<W>]) -> Result<()>;
}

/// The algorithm that a configuration names. Its policies start from `pretrained` (π_ω learnt on the approximate
/// marginal, or random).
pub fn build<W: World>(
    world: Arc<W>,
    pretrained: Box<dyn Agent<W>>,
    config: &RunConfig,
) -> Result<Box<dyn Algorithm<W>>> {
    let (a, seed) = (&config.algorithm, config.seed);
    Ok(match a.name {
        AlgorithmName::Adel => Box::new(adel::Adel::new(world, pretrained, a, seed)?),
        AlgorithmName::Dagger => Box::new(SinglePolicy::new(world, pretrained, a, seed, dagger::Dagger::new(seed))?),
        AlgorithmName::ReinforceBinary | AlgorithmName::ReinforceContinuous => {
            Box::new(SinglePolicy::new(world, pretrained, a, seed, reinforce::Reinforce::new(a, seed))?)
        }
        AlgorithmName::Supervised => Box::new(SinglePolicy::new(world, pretrained, a, seed, supervised::Supervised)?),
        AlgorithmName::EpochAdel => Box::new(epoch_adel::EpochAdel::new(pretrained, a, seed)?),
        AlgorithmName::TrueMarginal => {
            Box::new(SinglePolicy::new(world, pretrained, a, seed, true_marginal::TrueMarginal)?)
        }
    })
}

/// Starts and requests of tasks, as lessons and agents take them.
fn starts_and_requests<S>(tasks: &[Task<S>]) -> Vec<(&S, &str)> {
    tasks.iter().map(|t| (&t.start, t.request.as_str())).collect()
}
