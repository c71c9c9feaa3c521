//! The built-in corpus: paths in generated houses with the project's own requests, in splits as R2R's.
//!
//! Training and validation paths lie in the same houses and are distinct; test paths lie in houses of their own. A
//! training path is one task with three requests; a validation or test path is three tasks with one request each.

use super::action::HEADINGS;
use super::corpus::{Corpus, Item, MIN_COUNT, Words};
use super::graph::Graph;
use super::house::House;
use super::phrasing::requests;
use super::phrasing::trace::Tracer;
use super::scene::{Content, Scene};
use super::tokenise::tokenise;
use crate::family::Loaded;
use crate::rng::stream;
use rand::RngExt;
use rand::seq::IndexedRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Edges of a path, as of R2R's.
const EDGES: std::ops::RangeInclusive<usize> = 4..=6;

/// A path is at least so long, in metres, as of R2R's.
const LEAST: f64 = 5.0;

/// Share of the other paths of its length from its start that a request may also be true of, if they lead astray.
const MOST_ASTRAY: f64 = 0.05;

/// The size of the built-in corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Size {
    /// Houses of the training and validation splits.
    pub seen: usize,
    /// Houses of the test split.
    pub unseen: usize,
    /// Training paths in each seen house.
    pub train_paths: usize,
    /// Validation paths in each seen house.
    pub validation_paths: usize,
    /// Test paths in each unseen house.
    pub test_paths: usize,
}

impl Default for Size {
    fn default() -> Self {
        Size { seen: 60, unseen: 12, train_paths: 40, validation_paths: 4, test_paths: 20 }
    }
}

impl Size {
    /// A few small splits that are made in a second.
    pub fn tiny() -> Size {
        Size { seen: 3, unseen: 2, train_paths: 12, validation_paths: 4, test_paths: 6 }
    }
}

/// Houses, paths with requests, and the words of the training split.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Seen houses, then unseen ones.
    pub scenes: Vec<Scene>,
    /// Requests and paths.
    pub corpus: Corpus,
    /// Words of the training split.
    pub words: Words,
}

impl Generated {
    /// The corpus of a seed. `told` hears how many of the houses are made.
    pub fn new(seed: u64, size: &Size, told: &Loaded<'_>) -> Generated {
        let (all, done) = (size.seen + size.unseen, AtomicU64::new(0));
        let one = |number| {
            let house = house(seed, number, size);
            told(1 + done.fetch_add(1, Ordering::Relaxed), all as u64);
            house
        };
        let made: Vec<(Scene, [Vec<Item>; 3])> = (0..all).into_par_iter().filter_map(one).collect();
        let mut corpus = Corpus::default();
        let mut scenes = Vec::new();
        for (scene, [train, validation, test]) in made {
            scenes.push(scene);
            corpus.train.extend(train);
            corpus.validation.extend(validation);
            corpus.test.extend(test);
        }
        let words = Words::count(&corpus.train, MIN_COUNT);
        Generated { scenes, corpus, words }
    }
}

/// The house of a number with its items by split.
fn house(seed: u64, number: usize, size: &Size) -> Option<(Scene, [Vec<Item>; 3])> {
    // Houses of different seeds differ; those of one seed are numbered on.
    let house = House::generate(seed.wrapping_mul(100_000).wrapping_add(number as u64));
    let scene = Scene::generated(house).ok()?;
    let Content::Generated { house, sights, .. } = &scene.content else { return None };
    let tracer = Tracer::new(house, &scene.graph, sights);
    let mut told = HashSet::new();
    let unseen = number >= size.seen;
    let splits = if unseen {
        [Vec::new(), Vec::new(), paths(&tracer, &scene, size.test_paths, "nav test", &mut told)]
    } else {
        let train = paths(&tracer, &scene, size.train_paths, "nav train", &mut told);
        [train, paths(&tracer, &scene, size.validation_paths, "nav validation", &mut told), Vec::new()]
    };
    let [train, validation, test] = splits;
    let singles = |items: Vec<Item>| items.into_iter().flat_map(single).collect();
    let splits = [train, singles(validation), singles(test)];
    Some((scene, splits))
}

/// Draws paths that were not told before, with requests that are clear.
fn paths(tracer: &Tracer, scene: &Scene, count: usize, purpose: &str, told: &mut HashSet<(usize, usize)>) -> Vec<Item> {
    let graph = &scene.graph;
    let seed = scene.house().map_or(0, |house| house.seed);
    let mut items = Vec::new();
    // A house has thousands of paths; the limit is for one that hardly has any.
    for trial in 0..20 * count as u64 {
        if items.len() == count {
            break;
        }
        let mut chance = stream(seed, purpose, trial);
        let start = chance.random_range(0..graph.len());
        let goals: Vec<usize> = (0..graph.len()).filter(|goal| fits(graph, start, *goal)).collect();
        let heading = chance.random_range(0..HEADINGS as u8);
        let Some(&goal) = goals.choose(&mut chance) else { continue };
        let Some(path) = graph.shortest_path(start, goal) else { continue };
        let requests = requests(tracer, heading, &path, &mut chance);
        let clear = requests.iter().all(|r| r.ambiguity.astray as f64 <= MOST_ASTRAY * r.ambiguity.others as f64);
        let texts: Vec<String> = requests.into_iter().map(|request| request.text).collect();
        let distinct: HashSet<&String> = texts.iter().collect();
        if !clear || distinct.len() < texts.len() || !told.insert((start, goal)) {
            continue;
        }
        let path_id = seed.wrapping_mul(1000).wrapping_add(told.len() as u64 - 1);
        items.push(Item {
            id: path_id.to_string(),
            path_id,
            origin: "generated".into(),
            scan: scene.name.clone(),
            heading: f64::from(heading) * super::action::VIEW_STEP,
            distance: graph.distance(start, goal),
            path: path.iter().map(|viewpoint| graph.id(*viewpoint).to_owned()).collect(),
            tokens: texts.iter().map(|text| tokenise(text).join(" ")).collect(),
            requests: texts,
        });
    }
    items
}

fn fits(graph: &Graph, start: usize, goal: usize) -> bool {
    graph.edges(start, goal).is_some_and(|edges| EDGES.contains(&edges)) && graph.distance(start, goal) >= LEAST
}

/// An item with three requests as three items with one.
pub(super) fn single(item: Item) -> Vec<Item> {
    let one = |(k, (request, tokens)): (usize, (&String, &String))| Item {
        id: format!("{}_{k}", item.path_id),
        requests: vec![request.clone()],
        tokens: vec![tokens.clone()],
        ..item.clone()
    };
    item.requests.iter().zip(&item.tokens).enumerate().map(one).collect()
}
