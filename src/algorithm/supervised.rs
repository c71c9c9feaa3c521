//! Supervised learning: maximum likelihood of the gold execution given the request. Not in the paper's tables; it says
//! what the model can reach when every request comes with its answer.

use crate::algorithm::learner::{Learner, Losses, Tensors};
use crate::algorithm::{Algorithm, AlgorithmState};
use crate::config::run::AlgorithmConfig;
use crate::protocol::Utterance;
use crate::protocol::{Agent, Example, Lesson};
use crate::protocol::{Task, World};
use candle_core::Result;
use std::sync::Arc;

/// The policy, and the world that knows the gold executions.
pub struct Supervised<W: World> {
    world: Arc<W>,
    theta: Learner<W>,
    losses: Losses,
}

impl<W: World> Supervised<W> {
    /// The policy starts from `pretrained`.
    pub fn new(world: Arc<W>, pretrained: Box<dyn Agent<W>>, settings: &AlgorithmConfig) -> Result<Self> {
        let theta = Learner::new(pretrained, settings.learning_rate, settings.average)?;
        Ok(Self { world, theta, losses: Losses::default() })
    }
}

impl<W: World> Algorithm<W> for Supervised<W> {
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    /// The gold executions.
    fn explore(&self, tasks: &[Task<W::Start>], _first: u64) -> Result<Vec<W::Execution>> {
        Ok(tasks.iter().map(|t| self.world.gold(t.split, t.index)).collect())
    }

    fn acts(&self) -> bool {
        false
    }

    fn learn_words(&mut self, heard: &[Utterance]) -> Result<usize> {
        self.theta.learn_words(heard)
    }

    /// −log π_θ(e* | s1, d*).
    fn learn_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let examples: Vec<Example<W>> = tasks
            .iter()
            .zip(executions)
            .map(|(t, e)| Example { start: t.start.clone(), words: t.request.clone(), execution: e.clone() })
            .collect();
        let loss = self.theta.step(&Lesson::Likelihood(&[(&examples, 1.0)]))?;
        self.losses.add(loss)
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
