//! Pretraining on the approximate marginal: the policy learns the form of executions from draws of P_ω paired with
//! unrelated requests, without any labelled execution (`docs/models.md`). And the warm start of a
//! prior, which has labelled ones.

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

/// Examples of a warm start that the prior takes at once.
const AT_ONCE: u64 = 8;

/// Teaches the prior of a new agent `algorithm.prior_examples` requests of training tasks, each as a description of the execution that
/// it asks for. This is the warm start of the presets that are named so: labelled executions, in phrasings of the world's own.
/// `progress` gets the share done and says whether to go on; `false` when it was asked to stop.
pub fn teach_prior<W: World>(
    world: &W,
    agent: &mut dyn Agent<W>,
    config: &RunConfig,
    mut progress: impl FnMut(f64) -> bool,
) -> anyhow::Result<bool> {
    let number = config.algorithm.prior_examples;
    let Some(prior) = agent.prior().filter(|_| number > 0) else { return Ok(true) };
    for first in (0..number).step_by(AT_ONCE as usize) {
        let draw = |i: u64| {
            let task = world.sample_task(Split::Train, &mut rng::stream(config.seed, "warm start", i));
            let execution = world.gold(task.split, task.index);
            Example { start: task.start, words: task.request, execution }
        };
        let examples: Vec<Example<W>> = (first..number.min(first + AT_ONCE)).map(draw).collect();
        prior.learn(&examples)?;
        if !progress(first as f64 / number as f64) {
            return Ok(false);
        }
    }
    Ok(true)
}
