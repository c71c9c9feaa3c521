//! The paper's first algorithm, which nobody can carry out in the world: executions come from the true marginal
//! P*(e | s1), the teacher describes them, and the policy is their maximum-likelihood fit. It says what ADEL would reach
//! if the agent's executions were already those that people want.

use crate::algorithm::learner::{Learner, Losses, Tensors};
use crate::algorithm::{Algorithm, AlgorithmState, StepContext};
use crate::config::run::AlgorithmConfig;
use crate::protocol::DescribedEpisode;
use crate::protocol::Utterance;
use crate::protocol::{Agent, Example, Lesson};
use crate::protocol::{Task, World};
use candle_core::Result;
use std::sync::Arc;

/// The policy, and the world whose gold executions are the draws.
pub struct TrueMarginal<W: World> {
    world: Arc<W>,
    theta: Learner<W>,
    losses: Losses,
}

impl<W: World> TrueMarginal<W> {
    /// The policy starts from `pretrained`.
    pub fn new(world: Arc<W>, pretrained: Box<dyn Agent<W>>, settings: &AlgorithmConfig) -> Result<Self> {
        let theta = Learner::new(pretrained, settings.learning_rate, settings.average)?;
        Ok(Self { world, theta, losses: Losses::default() })
    }
}

impl<W: World> Algorithm<W> for TrueMarginal<W> {
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    /// ê ~ P*(e | s1): a task is drawn, and what its requester had in mind is done. The request itself is not used.
    fn explore(&self, tasks: &[Task<W::Start>], _first: u64) -> Result<Vec<W::Execution>> {
        Ok(tasks.iter().map(|t| self.world.gold(t.split, t.index)).collect())
    }

    fn acts(&self) -> bool {
        false
    }

    fn learn_words(&mut self, heard: &[Utterance]) -> Result<usize> {
        self.theta.learn_words(heard)
    }

    /// −log π_θ(ê | s1, d̂).
    fn learn(&mut self, described: &[DescribedEpisode<W>], at: StepContext) -> Result<()> {
        if described.is_empty() {
            return Ok(());
        }
        let examples: Vec<Example<W>> = described.iter().map(|d| d.example.clone()).collect();
        let loss = self.theta.step(&Lesson::Likelihood(&[(&examples, 1.0)]))?;
        if at.fresh { self.losses.add(loss) } else { Ok(()) }
    }

    fn replays(&self) -> bool {
        true
    }

    fn take_loss(&mut self) -> Result<(f64, u64)> {
        self.losses.take()
    }

    fn tensors(&self) -> Result<Tensors> {
        let mut all = Tensors::new();
        self.theta.tensors("theta", &mut all)?;
        Ok(all)
    }

    fn saved(&self) -> AlgorithmState {
        let (steps, blueprint) = (self.theta.steps(), self.theta.agent().blueprint());
        AlgorithmState { steps, blueprint, state: serde_json::Value::Null }
    }

    fn restore(&mut self, tensors: &Tensors, saved: &AlgorithmState) -> Result<()> {
        self.theta.restore("theta", tensors, saved.steps, &saved.blueprint)
    }
}
