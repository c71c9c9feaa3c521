//! The corpus of real houses: requests of people with the paths they describe.
//!
//! A folder as the data's README describes it: `graphs.json.gz` ([`super::graph`]), `r2r.json.gz` (items of three splits),
//! `vocab.json` (words of the simulation split), `objects.json.gz` and `object_names.json` ([`super::objects`]).

use super::action::heading_index;
use super::graph::{Graphs, load_graphs_noting};
use super::objects::{ObjectName, Objects, load_names, load_objects};
use super::tokenise::tokenise;
use super::{Start, Walk};
use crate::datafile::{DataError, Faults, read_json, write_json};
use crate::protocol::Split;
use crate::vocab::{SPECIAL, Vocabulary};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Words that the simulation split has less often are not in the vocabulary.
pub const MIN_COUNT: usize = 6;

/// One task: a path and what people wrote about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Unique name.
    pub id: String,
    /// R2R's number of the path.
    pub path_id: u64,
    /// R2R's split.
    pub origin: String,
    /// House.
    pub scan: String,
    /// Heading at the start in radians.
    pub heading: f64,
    /// Length of the path in metres, as R2R states it.
    pub distance: f64,
    /// Viewpoints from start to goal.
    pub path: Vec<String>,
    /// Requests as they were written.
    pub requests: Vec<String>,
    /// The requests as tokens, separated by single blanks.
    pub tokens: Vec<String>,
}

impl Item {
    /// The start state s1.
    pub fn start(&self) -> Start {
        let viewpoint = self.path.first().cloned().unwrap_or_default();
        Start { scan: self.scan.clone(), viewpoint, heading: heading_index(self.heading) }
    }

    /// The gold execution e*.
    pub fn gold(&self) -> Walk {
        Walk { viewpoints: self.path.clone() }
    }
}

/// Words of requests, most frequent first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Words that come less often are left out.
    pub min_count: usize,
    /// Words and how often they come.
    pub words: Vec<(String, usize)>,
}

impl Words {
    /// Counts the words of the items' requests; as frequent ones are in alphabetical order.
    pub fn count(items: &[Item], min_count: usize) -> Words {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for token in items.iter().flat_map(|item| item.tokens.iter().flat_map(|tokens| tokens.split(' '))) {
            *counts.entry(token).or_default() += 1;
        }
        let mut words: Vec<(String, usize)> =
            counts.into_iter().filter(|(_, n)| *n >= min_count).map(|(word, n)| (word.to_owned(), n)).collect();
        words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Words { min_count, words }
    }

    /// The vocabulary of the models: special symbols, the words, and `reserve` rows for words that people bring.
    ///
    /// # Errors
    /// When a word comes twice.
    pub fn vocabulary(&self, reserve: usize) -> Result<Vocabulary, String> {
        let words = self.words.iter().map(|(word, _)| word.as_str()).filter(|word| !SPECIAL.contains(word));
        Vocabulary::new(SPECIAL.iter().copied().chain(words).map(str::to_owned).collect(), reserve)
    }
}

/// Requests and paths by split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corpus {
    /// The simulation split: the agent practises on it, and simulated teachers learn from it. Three requests an item.
    pub train: Vec<Item>,
    /// Items that checkpoints are chosen by. One request an item.
    pub validation: Vec<Item>,
    /// Items that are reported, in houses that no other split has. One request an item.
    pub test: Vec<Item>,
}

/// Everything that a data folder holds.
#[derive(Clone, Debug)]
pub struct NavData {
    /// Navigation graphs by house.
    pub graphs: Graphs,
    /// Objects by house.
    pub objects: BTreeMap<String, Objects>,
    /// Names of objects, most frequent first.
    pub names: Vec<ObjectName>,
    /// Requests and paths.
    pub corpus: Corpus,
    /// Words of the simulation split.
    pub words: Words,
}

impl NavData {
    /// Reads a data folder and checks it.
    ///
    /// # Errors
    /// Names the file and the place in it, and says what is wrong.
    pub fn load(folder: &Path) -> Result<NavData, DataError> {
        Self::read(folder, &mut Faults::First, &|_| {})
    }

    /// Reads as much of a data folder as is right, and everything that is not. `told` gets the name of each file that is read.
    pub fn inspect(folder: &Path, told: &dyn Fn(&str)) -> (Option<NavData>, Vec<DataError>) {
        let mut all = Vec::new();
        let data = Self::read(folder, &mut Faults::All(&mut all), told);
        // With too many faults nothing more is read.
        (data.ok(), all)
    }

    fn read(folder: &Path, faults: &mut Faults<'_>, told: &dyn Fn(&str)) -> Result<NavData, DataError> {
        let read = load_graphs_noting(folder, faults);
        let graphs = faults.or_note(read)?.unwrap_or_default();
        told(FILES[0]);
        let read = Corpus::read(folder, &graphs, faults);
        let corpus = faults.or_note(read)?.unwrap_or_default();
        told(FILES[1]);
        let read = load_objects(folder, &graphs, faults);
        let objects = faults.or_note(read)?.unwrap_or_default();
        told(FILES[3]);
        let names = faults.or_note(load_names(folder))?.unwrap_or_default();
        told(FILES[4]);
        let path = folder.join("vocab.json");
        let words = read_json(&path).and_then(|words: Words| match words.vocabulary(0) {
            Ok(_) => Ok(words),
            Err(what) => Err(DataError::content(&path, what)),
        });
        let words = faults.or_note(words)?.unwrap_or(Words { min_count: MIN_COUNT, words: Vec::new() });
        told(FILES[2]);
        Ok(NavData { graphs, objects, names, corpus, words })
    }
}

/// Names of a data folder's files.
pub const FILES: [&str; 5] = ["graphs.json.gz", FILE, "vocab.json", "objects.json.gz", "object_names.json"];

/// Name of the file with requests and paths.
pub(super) const FILE: &str = "r2r.json.gz";

/// The splits' names in the file.
const SPLITS: [&str; 3] = ["simulation", "val", "test"];

impl Corpus {
    /// Items of a split.
    pub fn split(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
            Split::Test => &self.test,
        }
    }

    /// Reads `r2r.json.gz` of a data folder; every path must go along the edges of its house's graph.
    ///
    /// # Errors
    /// Names the file and the item, and says what is wrong.
    pub fn load(folder: &Path, graphs: &Graphs) -> Result<Corpus, DataError> {
        Self::read(folder, graphs, &mut Faults::First)
    }

    fn read(folder: &Path, graphs: &Graphs, faults: &mut Faults<'_>) -> Result<Corpus, DataError> {
        let path = folder.join(FILE);
        let mut stored: BTreeMap<String, Vec<serde_json::Value>> = read_json(&path)?;
        let mut read = |name: &str| -> Result<Vec<Item>, DataError> {
            let Some(items) = stored.remove(name) else {
                faults.note(DataError::content(&path, format!("the list `{name}` is missing")))?;
                return Ok(Vec::new());
            };
            let mut right = Vec::with_capacity(items.len());
            for (at, value) in items.into_iter().enumerate() {
                let item: Result<Item, String> = serde_json::from_value(value).map_err(|e| e.to_string());
                match item.and_then(|item| check(&item, graphs).map(|()| item)) {
                    Ok(item) => right.push(item),
                    Err(what) => faults.note(DataError::content(&path, format!("{name} item {}: {what}", at + 1)))?,
                }
            }
            Ok(right)
        };
        let [train, validation, test] = SPLITS.map(&mut read);
        Ok(Corpus { train: train?, validation: validation?, test: test? })
    }

    /// Writes `r2r.json.gz` into a data folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), DataError> {
        let splits = [&self.train, &self.validation, &self.test];
        let stored: serde_json::Map<String, serde_json::Value> =
            SPLITS.iter().zip(splits).map(|(name, items)| ((*name).to_owned(), serde_json::json!(items))).collect();
        write_json(&folder.join(FILE), &stored)
    }
}

fn check(item: &Item, graphs: &Graphs) -> Result<(), String> {
    let graph = graphs.get(&item.scan).ok_or_else(|| format!("there is no house {:?}", item.scan))?;
    let find = |id: &String| graph.find(id).ok_or_else(|| format!("house {} has no viewpoint {id:?}", item.scan));
    let path = item.path.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    if path.is_empty() {
        return Err("`path` is empty".into());
    }
    if let Some(at) = path.windows(2).position(|pair| !graph.adjacent(pair[0], pair[1])) {
        return Err(format!("no edge joins {} and {} of `path`", item.path[at], item.path[at + 1]));
    }
    if !item.heading.is_finite() {
        return Err("`heading` is not finite".into());
    }
    if item.requests.is_empty() || item.requests.len() != item.tokens.len() {
        return Err(format!("it has {} `requests` and {} `tokens`", item.requests.len(), item.tokens.len()));
    }
    match item.requests.iter().find(|request| tokenise(request).is_empty()) {
        Some(_) => Err("one of its `requests` is empty".into()),
        None => Ok(()),
    }
}
