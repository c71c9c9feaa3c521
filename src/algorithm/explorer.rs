//! The exploration policy as it is at one moment, for threads that execute beside the learning.

use super::starts_and_requests;
use crate::protocol::{Agent, Decoding};
use crate::protocol::{Task, World};
use crate::rng;
use candle_core::{Device, Result};
use rand::RngExt;

/// A deep copy of the policies that an algorithm explores with. It stays as it is while they learn on. It is on the CPU:
/// a GPU is busy with the learning, and what it records there must not be disturbed.
pub struct Explorer<W: World> {
    /// π_β first; then the sample that stands for the running average, where there is one (EpochADEL).
    policies: Vec<Box<dyn Agent<W>>>,
    seed: u64,
}

impl<W: World> Explorer<W> {
    /// A copy of `policies`. `old`, a copy that nobody needs any more, gives its memory.
    ///
    /// # Errors
    /// When a copy cannot be made.
    pub fn of(policies: &[&dyn Agent<W>], seed: u64, old: Option<Self>) -> Result<Self> {
        let mut copies = old.map(|old| old.policies).unwrap_or_default();
        copies.truncate(policies.len());
        for (copy, policy) in copies.iter_mut().zip(policies) {
            copy.restore_blueprint(&policy.blueprint()).map_err(candle_core::Error::msg)?;
            copy.params().copy_from(policy.params())?;
        }
        for policy in &policies[copies.len()..] {
            copies.push(policy.duplicate_on(&Device::Cpu)?);
        }
        Ok(Self { policies: copies, seed })
    }

    /// Executions of the tasks, which are the episodes from number `first` on; what the algorithm itself would have done
    /// with these policies.
    ///
    /// # Errors
    /// When the tensors do not compute.
    pub fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>> {
        let policies: Vec<&dyn Agent<W>> = self.policies.iter().map(|p| &**p).collect();
        explore(&policies, self.seed, tasks, first)
    }
}

/// Whether an episode of EpochADEL rolls in with the running average.
pub(super) fn averaged(episode: u64) -> bool {
    episode % 2 == 1
}

/// Executions of the tasks by π_β, the first of the policies. Where there are more of them, episodes of odd numbers are
/// executed by one of these, drawn for the batch. `first` keys the draws.
pub(super) fn explore<W: World>(
    policies: &[&dyn Agent<W>],
    seed: u64,
    tasks: &[Task<W::Start>],
    first: u64,
) -> Result<Vec<W::Execution>> {
    let [beta, average @ ..] = policies else { candle_core::bail!("there is no policy to explore with") };
    if average.is_empty() {
        return beta.act(&starts_and_requests(tasks), Decoding::Sample, &mut rng::stream(seed, "rollout", first));
    }
    let mut executions: Vec<Option<W::Execution>> = vec![None; tasks.len()];
    let place = rng::stream(seed, "epoch-average", first).random_range(0..average.len());
    for odd in [false, true] {
        let own: Vec<usize> = (0..tasks.len()).filter(|i| averaged(first + *i as u64) == odd).collect();
        if own.is_empty() {
            continue;
        }
        let batch: Vec<_> = own.iter().map(|&i| (&tasks[i].start, tasks[i].request.as_str())).collect();
        let (agent, purpose) = if odd { (average[place], "rollout-average") } else { (*beta, "rollout") };
        let rolled = agent.act(&batch, Decoding::Sample, &mut rng::stream(seed, purpose, first))?;
        for (i, execution) in own.into_iter().zip(rolled) {
            executions[i] = Some(execution);
        }
    }
    Ok(executions.into_iter().flatten().collect())
}
