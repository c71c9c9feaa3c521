//! The paper's first algorithm, which cannot be carried out in the world: executions come from the true marginal
//! P*(e | s1), the teacher describes them, and the policy is their maximum-likelihood fit. It shows what ADEL would reach
//! if the agent's executions were already those that people want.

use super::Algorithm;
use super::single_policy::{Rule, SinglePolicy, gold_executions};
use super::{Learning, LearnsFromDescriptions, StepContext};
use crate::protocol::{Agent, DescribedEpisode, Example, Lesson, Task, World};
use candle_core::Result;

/// The rule of learning from the true marginal.
pub struct TrueMarginal;

impl<W: World> Rule<W> for TrueMarginal {
    type State = ();

    const EXECUTES_OWN_POLICY: bool = false;

    /// ê ~ P*(e | s1): a task is drawn, and its gold execution is taken. The request itself is not used.
    fn explore(
        &self,
        world: &W,
        _policy: &dyn Agent<W>,
        tasks: &[Task<W::Start>],
        _first: u64,
    ) -> Result<Vec<W::Execution>> {
        Ok(gold_executions(world, tasks))
    }

    fn learning(algorithm: &mut SinglePolicy<W, Self>) -> Learning<'_, W> {
        Learning::Descriptions(algorithm)
    }
}

impl<W: World> LearnsFromDescriptions<W> for SinglePolicy<W, TrueMarginal> {
    /// −log π_θ(ê | s1, d̂).
    fn learn(&mut self, described: &[DescribedEpisode<W>], step: StepContext) -> Result<()> {
        if described.is_empty() {
            return Ok(());
        }
        let examples: Vec<Example<W>> = described.iter().map(|d| d.example.clone()).collect();
        let loss = self.step(&Lesson::Varied(&[(&examples, 1.0)], self.augmentation(step.counter)))?;
        if step.fresh { self.count(loss) } else { Ok(()) }
    }

    /// People cannot teach this algorithm, so practice is the step that replay makes.
    fn practise(&mut self, replayed: &[DescribedEpisode<W>], step: StepContext) -> Result<()> {
        self.learn(replayed, StepContext { fresh: false, ..step })
    }

    fn practice_loss(&self, held_back: &[DescribedEpisode<W>]) -> Result<f32> {
        let examples: Vec<Example<W>> = held_back.iter().map(|d| d.example.clone()).collect();
        self.policy().loss(&Lesson::Likelihood(&[(&examples, 1.0)]))?.to_scalar()
    }
}
