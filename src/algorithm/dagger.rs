//! DAgger (Ross et al. 2011), the paper's imitation-learning baseline: the policy rolls in greedily, and the teacher
//! demonstrates, for each position of its roll-out, what should have been done there.

use crate::algorithm::learner::{Learner, Losses, Tensors};
use crate::algorithm::{Algorithm, AlgorithmState, starts_and_requests};
use crate::config::run::AlgorithmConfig;
use crate::protocol::Utterance;
use crate::protocol::{Agent, Decoding, Lesson};
use crate::protocol::{Task, World};
use crate::rng;
use candle_core::Result;
use std::sync::Arc;

/// The policy, and the world that knows the gold executions.
pub struct Dagger<W: World> {
    world: Arc<W>,
    theta: Learner<W>,
    losses: Losses,
    seed: u64,
}

impl<W: World> Dagger<W> {
    /// The policy starts from `pretrained`.
    pub fn new(world: Arc<W>, pretrained: Box<dyn Agent<W>>, settings: &AlgorithmConfig, seed: u64) -> Result<Self> {
        let theta = Learner::new(pretrained, settings.learning_rate, settings.average)?;
        Ok(Self { world, theta, losses: Losses::default(), seed })
    }
}

impl<W: World> Algorithm<W> for Dagger<W> {
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    /// The policy's own most likely executions.
    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>> {
        let stream = &mut rng::stream(self.seed, "rollout", first);
        self.theta.agent().act(&starts_and_requests(tasks), Decoding::Greedy, stream)
    }

    fn learn_words(&mut self, heard: &[Utterance]) -> Result<usize> {
        self.theta.learn_words(heard)
    }

    /// One demonstration an episode: the gold execution, aligned with the roll-out position by position.
    fn learn_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let shown: Vec<W::Execution> = tasks.iter().map(|t| self.world.gold(t.split, t.index)).collect();
        let tasks = starts_and_requests(tasks);
        let loss = self.theta.step(&Lesson::Imitation { tasks: &tasks, rolled: executions, shown: &shown })?;
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
