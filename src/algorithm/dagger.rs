//! DAgger (Ross et al. 2011), the paper's imitation-learning baseline: the policy rolls in greedily, and the teacher
//! demonstrates, for each position of its roll-out, the action that should have been taken there.

use super::single_policy::{Rule, SinglePolicy, gold_executions};
use super::{Learning, LearnsFromEpisodes, starts_and_requests};
use crate::protocol::{Agent, Decoding, Lesson, Task, World};
use crate::rng;
use candle_core::Result;

/// The rule of DAgger.
pub struct Dagger {
    /// The run's seed.
    pub seed: u64,
}

impl<W: World> Rule<W> for Dagger {
    type State = ();

    const EXECUTES_OWN_POLICY: bool = true;

    /// The policy's own most likely executions.
    fn explore(
        &self,
        _world: &W,
        policy: &dyn Agent<W>,
        tasks: &[Task<W::Start>],
        first: u64,
    ) -> Result<Vec<W::Execution>> {
        policy.act(&starts_and_requests(tasks), Decoding::Greedy, &mut rng::stream(self.seed, "rollout", first))
    }

    fn learning(algorithm: &mut SinglePolicy<W, Self>) -> Learning<'_, W> {
        Learning::Episodes(algorithm)
    }
}

impl<W: World> LearnsFromEpisodes<W> for SinglePolicy<W, Dagger> {
    /// One demonstration an episode: the gold execution, aligned with the roll-out position by position.
    fn learn(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let shown = gold_executions(&*self.world, tasks);
        let tasks = starts_and_requests(tasks);
        let loss = self.step(&Lesson::Imitation { tasks: &tasks, rolled: executions, shown: &shown })?;
        self.count(loss)
    }
}
