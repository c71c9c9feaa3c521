//! REINFORCE (Williams 1992), the paper's reinforcement-learning baseline: sampled executions, a reward each, the running
//! mean of all rewards as baseline, and an entropy bonus. On REGEX the paper reports that it learns nothing.

use crate::algorithm::learner::{Learner, Losses, Tensors};
use crate::algorithm::{Algorithm, AlgorithmState, starts_and_requests};
use crate::config::run::AlgorithmConfig;
use crate::config::run::AlgorithmName;
use crate::protocol::Utterance;
use crate::protocol::{Agent, Decoding, Lesson};
use crate::protocol::{Task, World};
use crate::rng;
use candle_core::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The mean of all rewards so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Sum of all rewards.
    sum: f64,
    /// Their number.
    count: u64,
}

impl Baseline {
    /// Takes a batch of rewards in and gives each minus the mean of all rewards so far, this batch included.
    pub fn advantages(&mut self, rewards: &[f64]) -> Vec<f32> {
        self.sum += rewards.iter().sum::<f64>();
        self.count += rewards.len() as u64;
        let mean = self.sum / self.count.max(1) as f64;
        rewards.iter().map(|r| (r - mean) as f32).collect()
    }
}

/// The policy, its baseline, and the world that rewards.
pub struct Reinforce<W: World> {
    world: Arc<W>,
    theta: Learner<W>,
    losses: Losses,
    baseline: Baseline,
    continuous: bool,
    entropy: f32,
    seed: u64,
}

impl<W: World> Reinforce<W> {
    /// The policy starts from `pretrained`.
    pub fn new(world: Arc<W>, pretrained: Box<dyn Agent<W>>, settings: &AlgorithmConfig, seed: u64) -> Result<Self> {
        let own = settings.reinforce;
        Ok(Self {
            world,
            theta: Learner::new(pretrained, own.learning_rate, settings.average)?,
            losses: Losses::default(),
            baseline: Baseline::default(),
            continuous: settings.name == AlgorithmName::ReinforceContinuous,
            entropy: own.entropy as f32,
            seed,
        })
    }

    fn reward(&self, task: &Task<W::Start>, execution: &W::Execution) -> f64 {
        if self.continuous {
            self.world.continuous_reward(task, execution)
        } else {
            f64::from(u8::from(self.world.score(task, execution).success))
        }
    }
}

impl<W: World> Algorithm<W> for Reinforce<W> {
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    /// ê ~ π_θ(· | s1, d*).
    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>> {
        let stream = &mut rng::stream(self.seed, "rollout", first);
        self.theta.agent().act(&starts_and_requests(tasks), Decoding::Sample, stream)
    }

    fn learn_words(&mut self, heard: &[Utterance]) -> Result<usize> {
        self.theta.learn_words(heard)
    }

    /// −(r − b)·log π_θ(ê) − entropy·H(π_θ), b the running mean of rewards.
    fn learn_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let rewards: Vec<f64> = tasks.iter().zip(executions).map(|(t, e)| self.reward(t, e)).collect();
        let advantages = self.baseline.advantages(&rewards);
        let tasks = starts_and_requests(tasks);
        let lesson = Lesson::Reward { tasks: &tasks, executions, advantages: &advantages, entropy: self.entropy };
        let loss = self.theta.step(&lesson)?;
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
        let state = serde_json::to_value(self.baseline).unwrap_or_default();
        AlgorithmState { steps: self.theta.steps(), blueprint: self.theta.agent().blueprint(), state }
    }

    fn restore(&mut self, tensors: &Tensors, saved: &AlgorithmState) -> Result<()> {
        self.baseline = serde_json::from_value(saved.state.clone()).map_err(candle_core::Error::wrap)?;
        self.theta.restore("theta", tensors, saved.steps, &saved.blueprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_the_mean_of_all_rewards_with_the_present_ones() {
        let mut baseline = Baseline::default();
        // Mean of 1, 0, 0, 1 is 0.5.
        assert_eq!(baseline.advantages(&[1.0, 0.0, 0.0, 1.0]), [0.5, -0.5, -0.5, 0.5]);
        // Mean of 1, 0, 0, 1, -3, 7 is 1.
        assert_eq!(baseline.advantages(&[-3.0, 7.0]), [-4.0, 6.0]);
        let text = serde_json::to_string(&baseline).unwrap();
        assert_eq!(serde_json::from_str::<Baseline>(&text).unwrap(), baseline);
        assert_eq!(Baseline::default().advantages(&[]), [0f32; 0]);
    }
}
