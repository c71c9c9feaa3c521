//! Supervised learning: maximum likelihood of the gold execution given the request. It is not in the paper's tables; it
//! shows what the model can reach when every request comes with its gold execution.

use super::single_policy::{Rule, SinglePolicy, gold_executions};
use super::{Learning, LearnsFromEpisodes};
use crate::protocol::{Agent, Example, Lesson, Task, World};
use candle_core::Result;

/// The rule of supervised learning.
pub struct Supervised;

impl<W: World> Rule<W> for Supervised {
    type State = ();

    const EXECUTES_OWN_POLICY: bool = false;

    /// The gold executions.
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
        Learning::Episodes(algorithm)
    }
}

impl<W: World> LearnsFromEpisodes<W> for SinglePolicy<W, Supervised> {
    /// −log π_θ(e* | s1, d*).
    fn learn_from_episodes(&mut self, tasks: &[Task<W::Start>], executions: &[W::Execution]) -> Result<()> {
        let examples: Vec<Example<W>> = tasks
            .iter()
            .zip(executions)
            .map(|(t, e)| Example { start: t.start.clone(), words: t.request.clone(), execution: e.clone() })
            .collect();
        let loss = self.step(&Lesson::Varied(&[(&examples, 1.0)], self.augmentation_of_episodes()))?;
        self.count(loss)
    }
}
