//! Rebuilds lost files of a run from the store: the description log and the curve.
//!
//! An answer of a person carries its whole episode, so its example is there exactly. Of a simulated episode the store has
//! its view and its description: the task is drawn again by its number, and the execution is read back from the view.
//! Both are checked against the stored rows; an example that cannot be rebuilt exactly is not made up, and the run says so.

use super::description_log;
use super::human_update::{LessonOf, lesson_of};
use crate::config::run::RunConfig;
use crate::family::Family;
use crate::ids::RunId;
use crate::nn::artifact::write_atomically;
use crate::output::json;
use crate::protocol::DescribedEpisode;
use crate::protocol::Episode;
use crate::protocol::Example;
use crate::protocol::{Split, World};
use crate::rng;
use crate::store::Store;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Rebuilds the log of the first `lines` descriptions, as they were used in updates up to `update`.
///
/// # Errors
/// When the store does not have all of them, or the file cannot be written.
pub(super) async fn description_log<K: Family>(
    family: &K,
    world: &K::World,
    config: &RunConfig,
    (store, run): (&Store, &RunId),
    (folder, update, lines): (&Path, u64, u64),
) -> anyhow::Result<()> {
    // Each line as it was written, by the update that used it.
    let mut by_update: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for answer in store.used_answers(run, update).await? {
        let episode: Episode<K::World> = serde_json::from_value(answer.trace.clone())
            .with_context(|| format!("the stored execution of episode {} cannot be read", answer.episode))?;
        let line = match lesson_of(family, world, &answer, &episode) {
            None => continue,
            Some(LessonOf::Example(example)) => {
                json::line(&DescribedEpisode::<K::World> { episode: answer.episode, example })?
            }
            Some(LessonOf::Rating(rated)) => json::line(&rated)?,
        };
        by_update.entry(answer.used_in_update.unwrap_or_default()).or_default().push(line);
    }
    for row in store.simulated_descriptions(run, update).await? {
        let task = world.sample_task(Split::Train, &mut rng::stream(config.seed, "task", row.episode));
        let execution = world
            .execution_of(&task.start, &row.view, &row.summary)
            .filter(|e| task.request == row.request && holds(&world.view(&task.start, e), &row.view))
            .with_context(|| format!("what was stored of episode {} does not give its execution", row.episode))?;
        let example = Example { start: task.start, words: row.description, execution };
        let used = row.update.unwrap_or_default();
        let described = DescribedEpisode::<K::World> { episode: row.episode, example };
        by_update.entry(used).or_default().push(json::line(&described)?);
    }
    let found: u64 = by_update.values().map(|all| all.len() as u64).sum();
    if found != lines {
        anyhow::bail!("the store has {found} of the {lines} descriptions that the checkpoint has used")
    }
    let mut text = Vec::new();
    for line in by_update.values().flatten() {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    Ok(write_atomically(&folder.join(description_log::FILE_NAME), &text)?)
}

/// Whether a view has all that a stored one has. An earlier version may have stored fewer members.
fn holds(view: &Value, stored: &Value) -> bool {
    match (view, stored) {
        (Value::Object(view), Value::Object(stored)) => {
            stored.iter().all(|(name, stored)| view.get(name).is_some_and(|view| holds(view, stored)))
        }
        (Value::Array(view), Value::Array(stored)) => {
            view.len() == stored.len() && view.iter().zip(stored).all(|(view, stored)| holds(view, stored))
        }
        _ => view == stored,
    }
}

/// Rebuilds the points of the curve up to `update`. Returns their number.
///
/// # Errors
/// When the store cannot be read or the file not be written.
pub(super) async fn curve((store, run): (&Store, &RunId), folder: &Path, update: u64) -> anyhow::Result<usize> {
    let points = store.points(run, usize::MAX).await?;
    let mut text = Vec::new();
    let known = points.iter().filter(|point| point.update <= update);
    let count = known.clone().count();
    for point in known {
        serde_json::to_writer(&mut text, point)?;
        text.push(b'\n');
    }
    write_atomically(&folder.join(super::curve::FILE_NAME), &text)?;
    Ok(count)
}
