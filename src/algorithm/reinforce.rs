//! REINFORCE (Williams 1992), the paper's reinforcement-learning baseline: sampled executions, a reward each, the running
//! mean of all rewards as baseline, and an entropy bonus. On REGEX the paper reports that it learns nothing.

use super::single_policy::{Rule, SinglePolicy};
use super::{Learning, LearnsFromEpisodes, LearnsFromRatings, starts_and_requests};
use crate::config::run::{AlgorithmConfig, AlgorithmName};
use crate::protocol::{Agent, Decoding, Lesson, RatedEpisode, Task, World};
use crate::rng;
use candle_core::Result;
use serde::{Deserialize, Serialize};

/// The mean of all rewards so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Sum of all rewards.
    sum: f64,
    /// Their number.
    count: u64,
}

impl Baseline {
    /// Adds a batch of rewards and returns each minus the mean of all rewards so far, this batch included.
    pub fn advantages(&mut self, rewards: &[f64]) -> Vec<f32> {
        self.sum += rewards.iter().sum::<f64>();
        self.count += rewards.len() as u64;
        let mean = self.sum / self.count.max(1) as f64;
        rewards.iter().map(|r| (r - mean) as f32).collect()
    }
}

/// The rule of REINFORCE.
pub struct Reinforce {
    continuous: bool,
    entropy: f32,
    seed: u64,
}

impl Reinforce {
    /// The rule with the settings of a run.
    pub fn new(settings: &AlgorithmConfig, seed: u64) -> Self {
        let continuous = settings.name == AlgorithmName::ReinforceContinuous;
        Self { continuous, entropy: settings.reinforce.entropy as f32, seed }
    }

    fn reward<W: World>(&self, world: &W, task: &Task<W::Start>, execution: &W::Execution) -> f64 {
        if self.continuous {
            world.continuous_reward(task, execution)
        } else {
            f64::from(u8::from(world.score(task, execution).success))
        }
    }
}

impl<W: World> Rule<W> for Reinforce {
    type State = Baseline;

    const EXECUTES_OWN_POLICY: bool = true;
    const TAUGHT_BY_PEOPLE: bool = true;

    fn learning_rate(settings: &AlgorithmConfig) -> f64 {
        settings.reinforce.learning_rate
    }

    /// ê ~ π_θ(· | s1, d*).
    fn explore(
        &self,
        _world: &W,
        policy: &dyn Agent<W>,
        tasks: &[Task<W::Start>],
        first: u64,
    ) -> Result<Vec<W::Execution>> {
        policy.act(&starts_and_requests(tasks), Decoding::Sample, &mut rng::stream(self.seed, "rollout", first))
    }

    fn learning(algorithm: &mut SinglePolicy<W, Self>) -> Learning<'_, W> {
        Learning::Ratings(algorithm)
    }
}

impl<W: World> LearnsFromEpisodes<W> for SinglePolicy<W, Reinforce> {
    /// −(r − b)·log π_θ(ê) − entropy·H(π_θ), b the running mean of rewards.
    fn learn_from_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let rewards: Vec<f64> =
            tasks.iter().zip(executions).map(|(t, e)| self.rule.reward(&*self.world, t, e)).collect();
        let advantages = self.state.advantages(&rewards);
        let (tasks, entropy) = (starts_and_requests(tasks), self.rule.entropy);
        let loss = self.step(&Lesson::Reward { tasks: &tasks, executions, advantages: &advantages, entropy })?;
        self.count(loss)
    }
}

impl<W: World> LearnsFromRatings<W> for SinglePolicy<W, Reinforce> {
    /// REINFORCE's loss with a person's rating as the reward. The execution was sampled from an earlier policy, since people take
    /// their time; its likelihood is that of the present one, and no importance weight corrects it (`docs/deviations.md`).
    fn learn_from_ratings(&mut self, rated: &[RatedEpisode<W>]) -> Result<()> {
        if rated.is_empty() {
            return Ok(());
        }
        let ratings: Vec<f64> = rated.iter().map(|r| r.rating).collect();
        let advantages = self.state.advantages(&ratings);
        let tasks: Vec<_> = rated.iter().map(|r| (&r.example.start, r.example.words.as_str())).collect();
        let executions: Vec<W::Execution> = rated.iter().map(|r| r.example.execution.clone()).collect();
        let entropy = self.rule.entropy;
        let lesson = Lesson::Reward { tasks: &tasks, executions: &executions, advantages: &advantages, entropy };
        let loss = self.step(&lesson)?;
        self.count(loss)
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
