//! Timing of NAV's simulated teacher: of its executor, which walks before it learns, and of its describer.

use super::setup::new_teacher;
use crate::family::benchmark::{Benchmark, Profile, Timing, time};
use crate::nn::cuda::profile::profile as profiled;
use crate::protocol::Teacher;
use crate::rng::stream;

/// Examples of an update, as the paper has them.
const BATCH: usize = 32;

/// Updates of executor and describer, tasks and all.
///
/// # Errors
/// When an update fails.
pub(super) fn teacher_updates(request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
    let Benchmark { config, device, effort, .. } = *request;
    let batch = request.batch.unwrap_or(BATCH);
    let teacher = new_teacher(config, device)?;
    let (mut executor, mut describer) = teacher.optimisers(1e-4)?;
    let first = time("nav-executor-update", device, effort, |update| {
        let mut draws = stream(1, "executor", update);
        let tasks = teacher.draw(batch, &mut draws);
        Ok(teacher.train_executor(&tasks, &mut executor, &mut draws).map(drop)?)
    })?;
    let second = time("nav-describer-update", device, effort, |update| {
        let tasks = teacher.draw(batch, &mut stream(1, "describer", update));
        Ok(teacher.train_describer(&tasks, &mut describer).map(drop)?)
    })?;
    Ok(vec![first, second])
}

/// Where the GPU's time goes, not recorded: a line for each kernel and size of product, of an update of each model, of six
/// walks of each task, and of six descriptions of each.
///
/// # Errors
/// When an update fails.
pub(super) fn profile(request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
    let batch = request.batch.unwrap_or(BATCH);
    let teacher = new_teacher(request.config, request.device)?;
    let (mut executor, mut describer) = teacher.optimisers(1e-4)?;
    let mut found = Vec::new();
    for round in 1..4 {
        let mut draws = stream(1, "profile", round);
        let tasks = teacher.draw(batch, &mut draws);
        found.clear();
        let walked: Vec<_> = (0..6).flat_map(|_| &tasks).map(|(start, text, _)| (start, text.as_str())).collect();
        found.push(("walks".to_owned(), profiled(|| teacher.executed(&walked).map(drop))?));
        let told: Vec<_> = tasks.iter().map(|(start, _, gold)| (start, gold)).collect();
        found.push(("descriptions".to_owned(), profiled(|| teacher.propose(&told, 5, &mut draws).map(drop))?));
        let step = || teacher.train_executor(&tasks, &mut executor, &mut draws).map(drop);
        found.push(("executor update".to_owned(), profiled(step)?));
        found.push((
            "describer update".to_owned(),
            profiled(|| teacher.train_describer(&tasks, &mut describer).map(drop))?,
        ));
    }
    Ok(found)
}
