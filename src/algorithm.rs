//! Learning algorithms: how executions are chosen and how what the teacher gave changes the policies. One file an
//! algorithm; the trainer knows them by the trait [`Algorithm`] alone.

pub mod adel;
pub mod dagger;
pub mod epoch_adel;
pub mod explorer;
pub mod learner;
mod pretraining;
pub mod query_selection;
pub mod reinforce;
pub mod supervised;
pub mod true_marginal;

use crate::config::run::{AlgorithmName, RunConfig};

use crate::protocol::{Agent, DescribedEpisode, Task, Utterance, World};
use candle_core::Result;
use explorer::Explorer;
use learner::Tensors;
pub use pretraining::pretrain;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where in a run a gradient step stands.
#[derive(Clone, Copy, Debug)]
pub struct StepContext {
    /// Updates (iterations) made before.
    pub update: u64,
    /// Number of the step among all of the run, for its random draws.
    pub counter: u64,
    /// Whether it learns from new descriptions (not from replayed ones), so that its loss counts in the curves.
    pub fresh: bool,
}

/// What else than tensors a checkpoint holds of an algorithm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AlgorithmState {
    /// Adam steps made.
    pub steps: u64,
    /// Blueprint of the agent.
    pub blueprint: serde_json::Value,
    /// The algorithm's own state; null where it has none.
    pub state: serde_json::Value,
}

/// A learning algorithm of the loop: it chooses executions and learns from what the teacher gives.
///
/// Everything it does is a function of its tensors, its [`AlgorithmState`] state, the seed and its arguments, so that a resumed
/// run goes on as if nothing had happened.
pub trait Algorithm<W: World>: Send {
    /// The policy that is evaluated, tried and reported.
    fn policy(&self) -> &dyn Agent<W>;

    /// Mixing weight λ at an update; 0 for algorithms without one.
    fn lambda(&self, _update: u64) -> f64 {
        0.0
    }

    /// Executions of the tasks, which are the episodes from number `first` on. `first` keys the draws.
    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>>;

    /// A copy of what [`Algorithm::explore`] executes with, as it is now, for another thread; `None` where people cannot
    /// teach. `old` is a copy whose memory may be used.
    fn explorer(&self, old: Option<Explorer<W>>) -> Result<Option<Explorer<W>>> {
        let _ = old;
        Ok(None)
    }

    /// Whether [`Algorithm::explore`] gives the agent's own executions, whose success is worth a curve.
    fn acts(&self) -> bool {
        true
    }

    /// Reads new words of descriptions; those that have earned it take reserve rows in all policies. How many did.
    fn learn_words(&mut self, heard: &[Utterance]) -> Result<usize>;

    /// One gradient step on described executions (description-based algorithms). Nothing when there are none.
    fn learn(&mut self, described: &[DescribedEpisode<W>], at: StepContext) -> Result<()> {
        let _ = (described, at);
        Ok(())
    }

    /// What is due at the end of every iteration of a description-based algorithm, described or not.
    fn end_iteration(&mut self, _update: u64) -> Result<()> {
        Ok(())
    }

    /// One gradient step on episodes that need no description (all other algorithms).
    fn learn_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let _ = (tasks, executions);
        Ok(())
    }

    /// Whether stored descriptions may be replayed in steps of their own (`algorithm.replay`).
    fn replays(&self) -> bool {
        false
    }

    /// Sum and number of the losses on new teaching since the last call, nats a sequence. Waits for the device.
    fn take_loss(&mut self) -> Result<(f64, u64)>;

    /// All tensors: weights, moments, averages. The evaluated policy's weights begin with `theta.weights.`, or with
    /// `average.weights.` where weights are averaged.
    fn tensors(&self) -> Result<Tensors>;

    /// What else is needed to go on.
    fn saved(&self) -> AlgorithmState;

    /// Restores what [`Algorithm::tensors`] and [`Algorithm::saved`] gave.
    fn restore(&mut self, tensors: &Tensors, saved: &AlgorithmState) -> Result<()>;

    /// How many of the newest recorded descriptions [`Algorithm::remember`] must be given after
    /// [`Algorithm::restore`].
    fn recall(&self) -> usize {
        0
    }

    /// Takes the newest recorded descriptions back after a resume.
    fn remember(&mut self, _described: Vec<DescribedEpisode<W>>) {}
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
        AlgorithmName::Dagger => Box::new(dagger::Dagger::new(world, pretrained, a, seed)?),
        AlgorithmName::ReinforceBinary | AlgorithmName::ReinforceContinuous => {
            Box::new(reinforce::Reinforce::new(world, pretrained, a, seed)?)
        }
        AlgorithmName::Supervised => Box::new(supervised::Supervised::new(world, pretrained, a)?),
        AlgorithmName::EpochAdel => Box::new(epoch_adel::EpochAdel::new(pretrained, a, seed)?),
        AlgorithmName::TrueMarginal => Box::new(true_marginal::TrueMarginal::new(world, pretrained, a)?),
    })
}

/// Starts and requests of tasks, as lessons and agents take them.
fn starts_and_requests<S>(tasks: &[Task<S>]) -> Vec<(&S, &str)> {
    tasks.iter().map(|t| (&t.start, t.request.as_str())).collect()
}
