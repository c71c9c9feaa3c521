//! Pretraining on the approximate marginal: the policy learns the form of executions from draws of P_ω paired with
//! unrelated requests, without any labelled execution (`docs/models.md`).

use crate::config::run::RunConfig;
use crate::protocol::{Agent, Example, Lesson};
use crate::protocol::{Split, World};
use crate::rng;

/// Runs `algorithm.pretrain_updates` updates. `progress` gets the share done and says whether to go on.
/// `false` when it was asked to stop.
pub fn pretrain<W: World>(
    world: &W,
    agent: &mut dyn Agent<W>,
    config: &RunConfig,
    mut progress: impl FnMut(f64) -> bool,
) -> anyhow::Result<bool> {
    let a = &config.algorithm;
    agent.begin_learning(a.learning_rate)?;
    for update in 0..a.pretrain_updates {
        let mut stream = rng::stream(config.seed, "pretrain", update);
        let examples: Vec<Example<W>> = (0..a.pretrain_batch)
            .map(|_| {
                let task = world.sample_task(Split::Train, &mut stream);
                let execution = world.sample_marginal(&task.start, &mut stream);
                Example { start: world.solo(&task.start), words: task.request, execution }
            })
            .collect();
        agent.step(&Lesson::Likelihood(&[(&examples, 1.0)]))?;
        if update % 10 == 0 && !progress(update as f64 / a.pretrain_updates as f64) {
            return Ok(false);
        }
    }
    Ok(true)
}
