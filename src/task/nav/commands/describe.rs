//! `iliad data describe` for houses and walks.

use crate::command_line::{CliError, CliResult, Exit};
use crate::output::out;
use crate::task::nav::corpus::Item;
use crate::task::nav::generated::Size;
use crate::task::nav::world::NavWorld;
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;

/// Whether a folder is laid out as a corpus of walks.
pub(super) fn is_corpus(folder: &Path) -> bool {
    ["graphs.json.gz", "r2r.json.gz"].iter().all(|name| folder.join(name).is_file())
}

/// The contents of a split.
#[derive(Debug, Serialize)]
struct Holds {
    tasks: usize,
    requests: usize,
    houses: usize,
    /// Houses that the training split lacks.
    unseen_houses: usize,
    /// Means over tasks, and over requests.
    metres: f64,
    moves: f64,
    words: f64,
}

impl Holds {
    fn of(items: &[Item], trained: &HashSet<&str>) -> Self {
        let houses: HashSet<&str> = items.iter().map(|item| item.scan.as_str()).collect();
        let requests: Vec<&String> = items.iter().flat_map(|item| &item.tokens).collect();
        let mean = |total: f64, n: usize| if n == 0 { 0.0 } else { total / n as f64 };
        Self {
            tasks: items.len(),
            requests: requests.len(),
            unseen_houses: houses.iter().filter(|house| !trained.contains(*house)).count(),
            houses: houses.len(),
            metres: mean(items.iter().map(|item| item.distance).sum(), items.len()),
            moves: mean(items.iter().map(|item| item.path.len().saturating_sub(1) as f64).sum(), items.len()),
            words: mean(requests.iter().map(|text| text.split(' ').count() as f64).sum(), requests.len()),
        }
    }
}

/// Says what a corpus of walks, or the generated houses, hold.
pub(super) fn describe(folder: Option<&Path>, json: bool) -> CliResult {
    let world = match folder {
        Some(folder) => NavWorld::load(folder).map_err(|e| CliError::Usage(e.to_string()))?,
        None => NavWorld::builtin(1, &Size::default()),
    };
    let corpus = world.corpus();
    let trained: HashSet<&str> = corpus.train.iter().map(|item| item.scan.as_str()).collect();
    let splits = [("train", &corpus.train), ("validation", &corpus.validation), ("test", &corpus.test)];
    let splits = splits.map(|(name, items)| (name, Holds::of(items, &trained)));
    let viewpoints: usize = world.scenes().iter().map(|scene| scene.graph.len()).sum();
    let (houses, words) = (world.scenes().len(), world.words().words.len());
    if json {
        let splits: serde_json::Map<String, serde_json::Value> = splits
            .into_iter()
            .map(|(name, holds)| Ok((name.to_owned(), serde_json::to_value(holds)?)))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(anyhow::Error::from)?;
        out!(
            "{}",
            serde_json::json!({
                "splits": splits, "houses": houses, "viewpoints": viewpoints, "request_words": words,
                "names_of_objects": world.names().len(),
            })
        )?;
        return Ok(Exit::Done);
    }
    for (name, s) in &splits {
        out!(
            "{name:<11} {:>6} tasks {:>6} requests of {:.1} words  {:>3} houses ({} of them not practised in)  {:.1} m, {:.1} moves",
            s.tasks,
            s.requests,
            s.words,
            s.houses,
            s.unseen_houses,
            s.metres,
            s.moves
        )?;
    }
    out!("houses      {houses:>6} with {viewpoints} viewpoints")?;
    out!("vocabulary  {words:>6} request words, {} names of objects", world.names().len())?;
    if let Some(item) = corpus.train.first() {
        out!("\nfor example, from {} in {}:", item.path.first().map_or("", |id| id), item.scan)?;
        for request in &item.requests {
            out!("  {}", request.trim())?;
        }
    }
    Ok(Exit::Done)
}
