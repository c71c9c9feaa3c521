//! `iliad data describe` for corpora of words.

use crate::command_line::{CliError, CliResult, Exit};
use crate::output::out;
use crate::protocol::{Split, World};
use crate::task::regex::world::RegexWorld;
use std::path::Path;

/// Says what a corpus of words, or the built-in world, holds.
pub(super) fn describe(folder: Option<&Path>, json: bool) -> CliResult {
    let world = match folder {
        Some(folder) => RegexWorld::load(folder).map_err(|e| CliError::Usage(e.to_string()))?,
        None => RegexWorld::builtin(1),
    };
    let splits = [("train", Split::Train), ("validation", Split::Validation), ("test", Split::Test)];
    let counts: Vec<(&str, usize, usize)> = splits
        .into_iter()
        .map(|(name, split)| {
            (name, world.len(split), (0..world.len(split)).map(|i| world.requests(split, i).len()).sum())
        })
        .collect();
    if json {
        let splits: serde_json::Map<String, serde_json::Value> = counts
            .iter()
            .map(|(name, tasks, requests)| ((*name).into(), serde_json::json!({"tasks": tasks, "requests": requests})))
            .collect();
        let vocabularies = serde_json::json!({
            "characters": world.char_vocab().len(),
            "request_words": world.request_vocab().len(),
            "expressions": world.expression_vocab().len(),
        });
        out!(
            "{}",
            serde_json::json!({
                "splits": splits, "words": world.words().len(), "vocabularies": vocabularies,
            })
        )?;
        return Ok(Exit::Done);
    }
    for (name, tasks, requests) in counts {
        out!("{name:<11} {tasks:>7} tasks {requests:>7} requests")?;
    }
    out!("dictionary  {:>7} words", world.words().len())?;
    out!(
        "vocabulary  {:>7} request words, {} characters, {} characters of expressions",
        world.request_vocab().len(),
        world.char_vocab().len(),
        world.expression_vocab().len()
    )?;
    if world.len(Split::Train) > 0 {
        let task = world.task(Split::Train, 0);
        out!("\nfor example: {}", task.request)?;
        let edit = world.gold(Split::Train, 0);
        for (word, output) in task.start.words.iter().zip(edit.outputs.iter().flatten()) {
            out!("  {word} → {output}")?;
        }
    }
    Ok(Exit::Done)
}
