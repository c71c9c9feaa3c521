//! DAgger (Ross et al. 2011), the paper's imitation-learning baseline: the policy rolls in greedily, and the teacher
//! demonstrates, for each position of its roll-out, the action that should have been taken there.
//!
//! A person demonstrates the whole execution from the start instead; the policy is fitted to it by maximum likelihood
//! (`docs/deviations.md`).

use super::practice::{excerpts, for_prior, relocated};
use super::single_policy::{Rule, SinglePolicy, gold_executions};
use super::starts_and_requests;
use super::{Learning, LearnsFromDemonstrations, LearnsFromDescriptions, LearnsFromEpisodes, StepContext};
use crate::protocol::{Agent, Decoding, DescribedEpisode, Example, Lesson, Task, World};
use crate::rng;
use candle_core::Result;

/// The rule of DAgger.
pub struct Dagger {
    seed: u64,
}

impl Dagger {
    /// The rule for a run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }
}

impl<W: World> Rule<W> for Dagger {
    type State = ();

    const EXECUTES_OWN_POLICY: bool = true;
    const TAUGHT_BY_PEOPLE: bool = true;

    /// The policy's own most likely executions.
    fn explore(
        &self,
        _world: &W,
        policy: &dyn Agent<W>,
        tasks: &[Task<W::Start>],
        first: u64,
    ) -> Result<Vec<W::Execution>> {
        policy.act(&starts_and_requests(tasks), Decoding::RollIn, &mut rng::stream(self.seed, "rollout", first))
    }

    fn learning(algorithm: &mut SinglePolicy<W, Self>) -> Learning<'_, W> {
        Learning::Demonstrations(algorithm)
    }
}

impl<W: World> LearnsFromDemonstrations<W> for SinglePolicy<W, Dagger> {}

impl<W: World> LearnsFromEpisodes<W> for SinglePolicy<W, Dagger> {
    /// One demonstration an episode: the gold execution, aligned with the roll-out position by position.
    fn learn_from_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let shown = gold_executions(&*self.world, tasks);
        let tasks = starts_and_requests(tasks);
        let augmentation = self.augmentation_of_episodes();
        let loss = self.step(&Lesson::Imitation { tasks: &tasks, rolled: executions, shown: &shown, augmentation })?;
        self.count(loss)
    }
}

impl<W: World> LearnsFromDescriptions<W> for SinglePolicy<W, Dagger> {
    /// −log π_θ(e | s1, d*), e the execution that a person showed.
    fn learn(&mut self, demonstrated: &[DescribedEpisode<W>], step: StepContext) -> Result<()> {
        if demonstrated.is_empty() {
            return Ok(());
        }
        let own = relocated(&*self.world, demonstrated, &mut rng::stream(self.rule.seed, "elsewhere", step.counter));
        self.theta.learn_prior(&for_prior(&own, demonstrated, step))?;
        let loss = self.step(&Lesson::Varied(&[(&own, 1.0)], self.augmentation(step.counter)))?;
        if step.fresh { self.count(loss) } else { Ok(()) }
    }

    /// A step on a part of each demonstration; the prior takes one on each whole.
    fn practise(&mut self, replayed: &[DescribedEpisode<W>], step: StepContext) -> Result<()> {
        if replayed.is_empty() {
            return Ok(());
        }
        let own = excerpts(&*self.world, replayed, &mut rng::stream(self.rule.seed, "excerpt", step.counter));
        let whole: Vec<Example<W>> = replayed.iter().map(|d| d.example.clone()).collect();
        self.theta.learn_prior(&whole)?;
        self.step(&Lesson::Varied(&[(&own, 1.0)], self.augmentation(step.counter)))?;
        Ok(())
    }

    fn practice_loss(&self, held_back: &[DescribedEpisode<W>]) -> Result<f32> {
        let own = excerpts(&*self.world, held_back, &mut rng::stream(self.rule.seed, "excerpt", u64::MAX));
        self.theta.agent().loss(&Lesson::Likelihood(&[(&own, 1.0)]))?.to_scalar()
    }
}
