//! Evaluation: greedy roll-outs of π_θ on a split, scored by the task's own criterion.

use crate::protocol::{Agent, Decoding};
use crate::protocol::{Grouping, Score, Split, Task, World};
use crate::rng::stream;
use candle_core::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A share with its sample size and 95% Wilson interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rate {
    /// Successes divided by `n`.
    pub value: f64,
    /// Sample size.
    pub n: u64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Evaluation {
    /// Share of successful tasks.
    pub success: Rate,
    /// Share of valid executions.
    pub valid: Rate,
    /// Means of the family's named figures.
    pub figures: BTreeMap<String, f64>,
}

/// The success on the tasks of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSuccess {
    /// Name of the group.
    pub group: String,
    /// Share of its tasks that succeeded.
    pub success: Rate,
}

/// A share of `k` in `n` with its 95% Wilson interval.
pub fn rate(k: u64, n: u64) -> Rate {
    if n == 0 {
        return Rate { value: 0.0, n: 0, low: 0.0, high: 1.0 };
    }
    let (p, n_f, z) = (k as f64 / n as f64, n as f64, 1.959_964);
    let denominator = 1.0 + z * z / n_f;
    let centre = (p + z * z / (2.0 * n_f)) / denominator;
    let half = z * (p * (1.0 - p) / n_f + z * z / (4.0 * n_f * n_f)).sqrt() / denominator;
    Rate { value: p, n, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
}

/// Is told how many tasks of an evaluation are done, and how many there are.
pub type TasksDone<'a> = dyn Fn(u64, u64) + 'a;

/// Evaluates on at most `limit` tasks (0: all), spread evenly over the split and always the same ones.
pub fn evaluate<W: World>(
    world: &W,
    agent: &dyn Agent<W>,
    split: Split,
    limit: usize,
    progress: &TasksDone<'_>,
) -> Result<Evaluation> {
    let found = evaluate_while(world, agent, split, limit, going_on(progress))?;
    found.ok_or_else(|| candle_core::Error::msg("the evaluation was broken off"))
}

/// Evaluates as [`evaluate`] does, and counts success by the groups of a grouping. Groups without a task are left out.
pub fn evaluate_by<W: World>(
    world: &W,
    agent: &dyn Agent<W>,
    split: Split,
    limit: usize,
    grouping: &Grouping,
    progress: &TasksDone<'_>,
) -> Result<(Evaluation, Vec<GroupSuccess>)> {
    let mut counts = vec![(0, 0); grouping.groups.len()];
    let note = |task: &Task<W::Start>, score: &Score| {
        if let Some((success, n)) = world.group(grouping.name, task.split, task.index).and_then(|at| counts.get_mut(at))
        {
            *success += u64::from(score.success);
            *n += 1;
        }
    };
    let found = evaluate_noting(world, agent, split, limit, going_on(progress), note)?;
    let found = found.ok_or_else(|| candle_core::Error::msg("the evaluation was broken off"))?;
    let groups = grouping.groups.iter().zip(counts).filter(|(_, (_, n))| *n > 0);
    let groups = groups.map(|(group, (k, n))| GroupSuccess { group: (*group).to_owned(), success: rate(k, n) });
    Ok((found, groups.collect()))
}

/// Tells the progress, and goes on.
fn going_on(progress: &TasksDone<'_>) -> impl FnMut(u64, u64) -> bool {
    |done, tasks| {
        progress(done, tasks);
        true
    }
}

/// Evaluates as [`evaluate`] does; the result is `None` once `go_on`, asked between its parts with the tasks that are done and all of
/// them, says no.
pub fn evaluate_while<W: World>(
    world: &W,
    agent: &dyn Agent<W>,
    split: Split,
    limit: usize,
    go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Option<Evaluation>> {
    evaluate_noting(world, agent, split, limit, go_on, |_, _| {})
}

/// Evaluates as [`evaluate_while`] does and hands every task with its score to `note`.
fn evaluate_noting<W: World>(
    world: &W,
    agent: &dyn Agent<W>,
    split: Split,
    limit: usize,
    mut go_on: impl FnMut(u64, u64) -> bool,
    mut note: impl FnMut(&Task<W::Start>, &Score),
) -> Result<Option<Evaluation>> {
    let len = world.len(split);
    let n = if limit == 0 { len } else { limit.min(len) };
    let tasks: Vec<_> = (0..n).map(|i| world.task(split, i * len / n)).collect();
    let (mut success, mut valid) = (0, 0);
    let mut figures: BTreeMap<String, f64> = BTreeMap::new();
    // A GPU wants long batches.
    let rows = if agent.params().device().is_cpu() { 256 } else { 2048 };
    for (part, chunk) in tasks.chunks(rows).enumerate() {
        if !go_on((part * rows) as u64, n as u64) {
            return Ok(None);
        }
        let batch: Vec<_> = chunk.iter().map(|t| (&t.start, t.request.as_str())).collect();
        let executions = agent.act(&batch, Decoding::Greedy, &mut stream(0, "evaluation", 0))?;
        for (task, execution) in chunk.iter().zip(&executions) {
            let score = world.score(task, execution);
            note(task, &score);
            success += u64::from(score.success);
            valid += u64::from(world.valid(&task.start, execution));
            for (name, value) in score.figures {
                *figures.entry(name).or_default() += value / n as f64;
            }
        }
    }
    Ok(Some(Evaluation { success: rate(success, n as u64), valid: rate(valid, n as u64), figures }))
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn the_wilson_interval_of_a_known_case() {
        // 8 of 10: (0.4902, 0.9433), a textbook value.
        let r = rate(8, 10);
        assert!((r.low - 0.4902).abs() < 1e-4 && (r.high - 0.9433).abs() < 1e-4, "{r:?}");
        assert_eq!(rate(0, 0).n, 0);
        assert!(rate(0, 20).low == 0.0 && rate(20, 20).high == 1.0);
    }
}
