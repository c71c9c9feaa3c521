//! The simulated teacher's language models, as a family brings them.

use super::World;
use crate::rng::Stream;
use candle_core::Result;

/// The language models of a simulated teacher: describer P̃_T(d | e) and executor π_T.
pub trait Teacher<W: World>: Send {
    /// Candidate descriptions of each execution: the greedy one first, then `samples` sampled ones. One that did not end
    /// within the horizon is empty, and never qualifies.
    fn propose(
        &self,
        executions: &[(&W::Start, &W::Execution)],
        samples: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Vec<String>>>;

    /// For each (start, execution, description): whether the executor, told the description, does what the execution
    /// did (perf ≥ τ).
    fn qualifies(&self, items: &[(&W::Start, &W::Execution, &str)], tau: f64) -> Result<Vec<bool>>;
}
