//! Timing of REGEX's simulated teacher at the paper's sizes.

use super::setup::{new_teacher, world_of};
use super::teacher::Draws;
use crate::family::benchmark::{Benchmark, Profile, Timing, time};
use crate::nn::cuda::profile::profile as profiled;

/// Examples of an update, as the paper has them.
const BATCH: usize = 256;

/// Updates of the simulated teacher's executor and describer, examples and all.
///
/// # Errors
/// When the models cannot be made, or an update fails.
pub(super) fn teacher_updates(request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
    let Benchmark { config, device, effort, .. } = *request;
    let batch = request.batch.unwrap_or(BATCH);
    let world = &*world_of(config)?;
    let teacher = new_teacher(config, world, device)?;
    let (mut executor, mut describer) = teacher.optimisers(1e-3)?;
    let mut draws = Draws::new(world, 1, "executor", true);
    let first = time("regex-executor-update", device, effort, |update| {
        let examples = teacher.executor_batch(&mut draws, update, batch);
        teacher.train_executor(&examples, &mut executor)?;
        Ok(())
    })?;
    let mut draws = Draws::new(world, 1, "describer", true);
    let second = time("regex-describer-update", device, effort, |update| {
        let (items, texts) = teacher.describer_batch(&mut draws, update, batch);
        teacher.train_describer(&items, &texts, &mut describer)?;
        Ok(())
    })?;
    Ok(vec![first, second])
}

/// Where the GPU's time goes in one update of executor and describer, not recorded: a line for each kernel and size of
/// product.
///
/// # Errors
/// When an update fails.
pub(super) fn profile(request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
    let batch = request.batch.unwrap_or(BATCH);
    let world = &*world_of(request.config)?;
    let teacher = new_teacher(request.config, world, request.device)?;
    let (mut executor, mut describer) = teacher.optimisers(1e-3)?;
    let mut found = Vec::new();
    for (name, round) in [("warm", 1), ("update", 3)] {
        let mut draws = Draws::new(world, 1, "executor", true);
        let examples = teacher.executor_batch(&mut draws, round, batch);
        let lines = profiled(|| teacher.train_executor(&examples, &mut executor).map(drop))?;
        found.push((format!("executor {name}"), lines));
        let mut draws = Draws::new(world, 1, "describer", true);
        let (items, texts) = teacher.describer_batch(&mut draws, round, batch);
        let step = || teacher.train_describer(&items, &texts, &mut describer).map(drop);
        found.push((format!("describer {name}"), profiled(step)?));
    }
    Ok(found.split_off(2))
}
