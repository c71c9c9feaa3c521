//! The environment of NAV tasks, in real and in generated houses.

use super::action::{VIEW_STEP, bearing, poses};
use super::corpus::{Corpus, Item, MIN_COUNT, NavData, Words};
use super::generated::{Generated, Size};
use super::graph::Graph;
use super::marginal::Marginal;
use super::metric::{PathScore, path_length, score, sdtw, succeeds, without_loops};
use super::observation::{NAMES, Semantic};
use super::scene::{Content, Scene, generated_names};
use super::settings::Perf;
use super::walk_words::Telling;
use super::{Start, Walk};
use crate::datafile::DataError;
use crate::family::Loaded;
use crate::protocol::{Grouping, Score, Split, Task, World};
use crate::rng::Stream;
use rand::RngExt;
use rustc_hash::FxHashMap;
use serde_json::json;
use std::path::Path;

/// Walks that are shorter, in metres, are not shown to people: there is nothing in them to describe.
const LEAST_SHOWN: f64 = 1.0;

/// Walks are grouped by the moves of the gold walk, and by its length.
const GROUPINGS: &[Grouping] = &[
    Grouping { name: "moves", groups: &["1 to 3 moves", "4 moves", "5 moves", "6 moves", "7 moves or more"] },
    Grouping { name: "distance", groups: &["under 5 m", "5 to 10 m", "10 to 15 m", "15 m or more"] },
];

/// Houses, tasks and P_ω of the navigation problem.
#[derive(Clone, Debug)]
pub struct NavWorld {
    scenes: Vec<Scene>,
    by_name: FxHashMap<String, usize>,
    /// House and index of every viewpoint.
    places: FxHashMap<String, (u32, u32)>,
    corpus: Corpus,
    words: Words,
    names: Vec<String>,
    marginal: Marginal,
    perf: Perf,
    unmoved: bool,
}

impl NavWorld {
    /// The world of a data folder ([`super::corpus`]).
    ///
    /// # Errors
    /// When the data cannot be read or is damaged; names file and place.
    pub fn load(folder: &Path) -> Result<NavWorld, DataError> {
        let NavData { graphs, mut objects, names, corpus, words } = NavData::load(folder)?;
        let scene = |(name, graph): (String, Graph)| {
            let content = Content::Real(objects.remove(&name).unwrap_or_default());
            Scene { name, graph, content }
        };
        let scenes = graphs.into_iter().map(scene).collect();
        let names = names.into_iter().take(NAMES).map(|name| name.name).collect();
        Ok(NavWorld::of(scenes, corpus, words, names))
    }

    /// The built-in world of a seed: generated houses and requests.
    pub fn builtin(seed: u64, size: &Size) -> NavWorld {
        NavWorld::builtin_telling(seed, size, &|_, _| {})
    }

    /// As [`NavWorld::builtin`]; `told` hears how many of the houses are made.
    pub fn builtin_telling(seed: u64, size: &Size, told: &Loaded<'_>) -> NavWorld {
        let Generated { scenes, corpus, words } = Generated::new(seed, size, told);
        NavWorld::of(scenes, corpus, words, generated_names())
    }

    /// A world of one house, without any task.
    pub fn of_house(scene: Scene) -> NavWorld {
        let words = Words { min_count: MIN_COUNT, words: Vec::new() };
        NavWorld::of(vec![scene], Corpus::default(), words, generated_names())
    }

    fn of(scenes: Vec<Scene>, corpus: Corpus, words: Words, names: Vec<String>) -> NavWorld {
        let by_name = scenes.iter().enumerate().map(|(i, scene)| (scene.name.clone(), i)).collect();
        let mut places = FxHashMap::default();
        for (house, scene) in scenes.iter().enumerate() {
            for (i, viewpoint) in scene.graph.viewpoints().iter().enumerate() {
                places.insert(viewpoint.id.clone(), (house as u32, i as u32));
            }
        }
        NavWorld {
            scenes,
            by_name,
            places,
            corpus,
            words,
            names,
            marginal: Marginal::default(),
            perf: Perf::default(),
            unmoved: false,
        }
    }

    /// This world with another P_ω.
    pub fn with_marginal(self, marginal: Marginal) -> NavWorld {
        NavWorld { marginal, ..self }
    }

    /// This world with another meaning of [`World::performs`].
    pub fn with_perf(self, perf: Perf) -> NavWorld {
        NavWorld { perf, ..self }
    }

    /// This world, with walks that end where they began described or left out.
    pub fn with_unmoved(self, unmoved: bool) -> NavWorld {
        NavWorld { unmoved, ..self }
    }

    /// Whether a walk ends within 3 m of where another does (along the edges of the house).
    pub fn reaches(&self, start: &Start, walk: &Walk, reference: &Walk) -> bool {
        match (self.path(start, walk), self.path(start, reference)) {
            (Some((scene, path)), Some((_, gold))) => succeeds(&scene.graph, &path, &gold),
            _ => false,
        }
    }

    /// The houses. [`NavWorld::place`] gives indices into them.
    pub fn scenes(&self) -> &[Scene] {
        &self.scenes
    }

    /// The house of a name.
    pub fn scene(&self, name: &str) -> Option<&Scene> {
        self.by_name.get(name).map(|i| &self.scenes[*i])
    }

    /// Index of the house of a viewpoint, and of the viewpoint in its graph.
    pub fn place(&self, viewpoint: &str) -> Option<(usize, usize)> {
        self.places.get(viewpoint).map(|(house, i)| (*house as usize, *i as usize))
    }

    /// Requests and paths by split.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Words of the requests to learn from.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Names that semantic vectors tell apart.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Makes semantic vectors of `dim` numbers for this world's views ([`Scene::vectors`]).
    ///
    /// # Errors
    /// When `dim` is too small for the names.
    pub fn semantic(&self, dim: usize, scale: f32) -> Result<Semantic, String> {
        Semantic::new(self.names.iter().map(String::as_str), dim, scale)
    }

    /// House and indices of a walk that goes along edges from a start; `None` for any other.
    pub fn path(&self, start: &Start, walk: &Walk) -> Option<(&Scene, Vec<usize>)> {
        let scene = self.scene(&start.scan)?;
        let path = walk.viewpoints.iter().map(|id| scene.graph.find(id)).collect::<Option<Vec<_>>>()?;
        let begins = walk.viewpoints.first() == Some(&start.viewpoint);
        let joined = path.windows(2).all(|pair| scene.graph.adjacent(pair[0], pair[1]));
        (begins && joined).then_some((scene, path))
    }

    /// Names of a path's viewpoints.
    fn walk(scene: &Scene, path: &[usize]) -> Walk {
        Walk { viewpoints: path.iter().map(|viewpoint| scene.graph.id(*viewpoint).to_owned()).collect() }
    }

    /// The walk without its loops, as it is described and compared.
    pub fn without_loops(&self, start: &Start, walk: &Walk) -> Walk {
        match self.path(start, walk) {
            Some((scene, path)) => NavWorld::walk(scene, &without_loops(&path)),
            None => walk.clone(),
        }
    }

    /// House and indices of the viewpoints that are known, of a walk from a known place.
    fn known(&self, walk: &Walk) -> Option<(&Scene, Vec<usize>)> {
        let (house, _) = walk.viewpoints.first().and_then(|id| self.place(id))?;
        let scene = &self.scenes[house];
        Some((scene, walk.viewpoints.iter().filter_map(|id| scene.graph.find(id)).collect()))
    }

    fn item(&self, split: Split, index: usize) -> &Item {
        &self.corpus.split(split)[index]
    }

    fn scored(&self, task: &Task<Start>, walk: &Walk) -> Option<PathScore> {
        let (scene, path) = self.path(&task.start, walk)?;
        let (_, gold) = self.path(&task.start, &self.gold(task.split, task.index))?;
        Some(score(&scene.graph, &path, &gold))
    }

    /// A walk in plain sentences: one for the start, one for each move, one for the end.
    pub fn in_words(&self, start: &Start, walk: &Walk) -> Vec<String> {
        match self.path(start, walk) {
            Some((scene, path)) => Telling::new(scene, &path, f64::from(start.heading) * VIEW_STEP).lines(),
            None => vec![NO_WALK.into()],
        }
    }

    /// A walk as an outline: a terse line for the start, for each move and for the end, in a form that programs read.
    pub fn outline(&self, start: &Start, walk: &Walk) -> Vec<String> {
        match self.path(start, walk) {
            Some((scene, path)) => Telling::new(scene, &path, f64::from(start.heading) * VIEW_STEP).outline(),
            None => vec![NO_WALK.into()],
        }
    }
}

/// Stands for the words of a walk that is none.
const NO_WALK: &str = "This walk cannot be shown: it does not go along the ways of its house.";

impl World for NavWorld {
    type Start = Start;
    type Execution = Walk;

    fn len(&self, split: Split) -> usize {
        self.corpus.split(split).len()
    }

    fn task(&self, split: Split, index: usize) -> Task<Start> {
        let item = self.item(split, index);
        Task { split, index, request: item.tokens[0].clone(), start: item.start() }
    }

    fn requests(&self, split: Split, index: usize) -> Vec<String> {
        self.item(split, index).tokens.clone()
    }

    fn gold(&self, split: Split, index: usize) -> Walk {
        self.item(split, index).gold()
    }

    fn groupings(&self) -> &'static [Grouping] {
        GROUPINGS
    }

    fn group(&self, grouping: &str, split: Split, index: usize) -> Option<usize> {
        let item = self.item(split, index);
        match grouping {
            "moves" => Some(item.path.len().saturating_sub(1).clamp(3, 7) - 3),
            "distance" => {
                let (scene, path) = self.path(&item.start(), &item.gold())?;
                let length = path_length(&scene.graph, &path);
                Some([5.0, 10.0, 15.0].iter().filter(|least| length >= **least).count())
            }
            _ => None,
        }
    }

    fn sample_task(&self, split: Split, stream: &mut Stream) -> Task<Start> {
        let index = stream.random_range(0..self.len(split));
        let item = self.item(split, index);
        let request = item.tokens[stream.random_range(0..item.tokens.len())].clone();
        Task { split, index, request, start: item.start() }
    }

    fn sample_marginal(&self, start: &Start, stream: &mut Stream) -> Walk {
        let found = self.scene(&start.scan).and_then(|scene| Some((scene, scene.graph.find(&start.viewpoint)?)));
        match found {
            Some((scene, from)) => NavWorld::walk(scene, &self.marginal.sample(&scene.graph, from, stream)),
            None => Walk { viewpoints: vec![start.viewpoint.clone()] },
        }
    }

    /// A walk that ends where it began, its loops cut out, has nothing to describe, unless the settings say so.
    fn describable(&self, start: &Start, execution: &Walk) -> bool {
        self.path(start, execution).is_some_and(|(_, path)| self.unmoved || path[0] != path[path.len() - 1])
    }

    /// People are shown walks of a metre or more. A walk that stays where it is counts as one where the settings have such walks
    /// described.
    fn worth_showing(&self, start: &Start, execution: &Walk) -> bool {
        self.path(start, execution).is_some_and(|(scene, path)| {
            let path = without_loops(&path);
            (self.unmoved && path.len() == 1) || path_length(&scene.graph, &path) >= LEAST_SHOWN
        })
    }

    fn valid(&self, start: &Start, execution: &Walk) -> bool {
        self.path(start, execution).is_some()
    }

    /// SDTW of the walk, its loops cut out, is at least τ; or it ends near, if the settings say so.
    fn performs(&self, start: &Start, execution: &Walk, reference: &Walk, tau: f64) -> bool {
        if self.perf == Perf::Success {
            return self.reaches(start, execution, reference);
        }
        match (self.path(start, execution), self.path(start, reference)) {
            (Some((scene, path)), Some((_, gold))) => {
                sdtw(&scene.graph, &without_loops(&path), &without_loops(&gold)) >= tau
            }
            _ => false,
        }
    }

    fn to_describe(&self, start: &Start, execution: Walk) -> Walk {
        self.without_loops(start, &execution)
    }

    /// A wrong turn at one of the places, after which it goes on for a step at most.
    fn slip(&self, start: &Start, right: &Walk, stream: &mut Stream) -> Option<Walk> {
        let (scene, path) = self.path(start, right)?;
        if path.len() < 2 {
            return None;
        }
        let at = stream.random_range(0..path.len() - 1);
        let others = |from: usize, not: &[usize]| -> Vec<usize> {
            let all = scene.graph.neighbours(from).iter().map(|next| *next as usize);
            all.filter(|next| !not.contains(next)).collect()
        };
        let turns = others(path[at], &path);
        let turn = *turns.get(stream.random_range(0..turns.len().max(1)))?;
        let mut wrong = path[..=at].to_vec();
        wrong.push(turn);
        let further = others(turn, &wrong);
        if at + 2 < path.len()
            && let Some(next) = further.get(stream.random_range(0..further.len().max(1)))
        {
            wrong.push(*next);
        }
        Some(NavWorld::walk(scene, &wrong))
    }

    fn score(&self, task: &Task<Start>, execution: &Walk) -> Score {
        let (success, figures) = match self.scored(task, execution) {
            Some(s) => (s.success, [s.spl, s.ndtw, s.sdtw, s.distance]),
            // An execution that is no walk has not moved.
            None => {
                let stay = Walk { viewpoints: vec![task.start.viewpoint.clone()] };
                (false, [0.0, 0.0, 0.0, self.scored(task, &stay).map_or(0.0, |s| s.distance)])
            }
        };
        let names = ["spl", "ndtw", "sdtw", "distance"];
        Score { success, figures: names.iter().map(|name| (*name).to_owned()).zip(figures).collect() }
    }

    /// The share of the way to the goal that the walk has covered: (d(s1, goal) − d(end, goal)) / d(s1, goal).
    fn continuous_reward(&self, task: &Task<Start>, execution: &Walk) -> f64 {
        let gold = self.gold(task.split, task.index);
        match (self.path(&task.start, execution), self.path(&task.start, &gold)) {
            (Some((scene, path)), Some((_, gold))) => {
                let goal = gold[gold.len() - 1];
                let whole = scene.graph.distance(path[0], goal);
                let left = scene.graph.distance(path[path.len() - 1], goal);
                if whole > 0.0 { (whole - left) / whole } else { f64::from(u8::from(left == 0.0)) }
            }
            _ => 0.0,
        }
    }

    fn view(&self, start: &Start, execution: &Walk) -> serde_json::Value {
        let words = self.in_words(start, execution);
        let Some((scene, path)) = self.path(start, execution) else {
            return json!({"house": start.scan, "path": [], "words": words});
        };
        let cm = |x: f64| (x * 100.0).round() / 100.0;
        let thousandth = |x: f64| (x * 1000.0).round() / 1000.0;
        let telling = Telling::new(scene, &path, f64::from(start.heading) * VIEW_STEP);
        let arrival = |i: usize| telling.arrivals().get(i);
        let stops: Vec<serde_json::Value> = poses(&scene.graph, start.heading, &path)
            .into_iter()
            .enumerate()
            .map(|(i, pose)| {
                let things: Vec<serde_json::Value> = scene
                    .landmarks(pose.viewpoint)
                    .into_iter()
                    .take(12)
                    .map(|thing| {
                        json!({
                            "name": thing.name, "position": thing.position.map(cm),
                            "bearing": thousandth(thing.bearing), "elevation": thousandth(thing.elevation),
                            "distance": cm(thing.distance),
                        })
                    })
                    .collect();
                let way = arrival(i).map_or(&[][..], |arrival| &arrival.way);
                let way: Vec<_> = way.iter().map(|(share, room)| (cm(*share), telling.kind(*room))).collect();
                json!({
                    "viewpoint": scene.graph.id(pose.viewpoint),
                    "position": scene.graph.position(pose.viewpoint).map(cm),
                    "heading": thousandth(f64::from(pose.heading) * VIEW_STEP),
                    "room": arrival(i).map(|arrival| telling.kind(arrival.room)),
                    "way": way,
                    "things": things,
                })
            })
            .collect();
        let look = telling.last_look();
        json!({
            "house": scene.name,
            "seed": scene.house().map(|house| house.seed),
            "length": cm(path_length(&scene.graph, &path)),
            "path": stops,
            "look": look.map(|look| [thousandth(look.heading), thousandth(look.pitch)]),
            "words": words,
            "outline": telling.outline(),
            "sentence": telling.sentence(),
        })
    }

    fn execution_of(&self, _start: &Start, view: &serde_json::Value, _summary: &str) -> Option<Walk> {
        let stops = view["path"].as_array()?;
        let viewpoints =
            stops.iter().map(|stop| stop["viewpoint"].as_str().map(str::to_owned)).collect::<Option<_>>()?;
        Some(Walk { viewpoints })
    }

    /// House, length and rooms: walks of one kind are counted together when executions are chosen for a teacher, also by
    /// checkpoints of before.
    fn kind(&self, _start: &Start, execution: &Walk) -> String {
        let Some((scene, path)) = self.known(execution) else { return "an unknown place".into() };
        let mut rooms: Vec<&str> = path.iter().filter_map(|viewpoint| scene.room(*viewpoint)).collect();
        rooms.dedup();
        let through = if rooms.is_empty() { String::new() } else { format!(": {}", rooms.join(" → ")) };
        format!("{}, {}{through}", scene.name, extent(scene, execution, &path))
    }

    fn summary(&self, execution: &Walk) -> String {
        let Some((scene, path)) = self.known(execution) else { return "It is in an unknown place.".into() };
        // The heading at the start is not in an execution. It would name the room of one who begins in a doorway.
        let ahead = path
            .windows(2)
            .next()
            .map_or(0.0, |pair| bearing(&scene.graph.position(pair[0]), &scene.graph.position(pair[1])));
        let sentence = Telling::new(scene, &path, ahead).sentence();
        format!("{} ({}, {})", sentence, scene.name, extent(scene, execution, &path))
    }
}

/// "5 moves, 7.3 m".
fn extent(scene: &Scene, walk: &Walk, path: &[usize]) -> String {
    let moves = walk.viewpoints.len() - 1;
    let plural = if moves == 1 { "" } else { "s" };
    format!("{moves} move{plural}, {:.1} m", path_length(&scene.graph, path))
}
