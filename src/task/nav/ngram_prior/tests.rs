use super::facts::{HouseFacts, MoveTold, PlaceTold};
use super::search::{Question, Search};
use super::sentence::Sentence;
use super::{COMPARED, MOST_MOVES, Setting, model};
use crate::config::run::RunConfig;
use crate::family::Family;
use crate::nn::log_linear::LogLinear;
use crate::protocol::{Agent, Decoding, Example, Split, World};
use crate::rng::stream;
use crate::task::nav::family::NAV;
use crate::task::nav::tokenise::tokenise;
use crate::task::nav::world::NavWorld;
use crate::task::nav::{Start, Walk};
use candle_core::Device;
use rustc_hash::FxHashSet;
use std::sync::Arc;

fn place(x: f64, y: f64, room: &str, near: &[&str], moves: Vec<MoveTold>) -> PlaceTold {
    let near = near.iter().map(|name| (*name).to_owned()).collect();
    PlaceTold { position: [x, y, 1.5], room: Some(room.into()), near, moves }
}

fn to(to: usize) -> MoveTold {
    MoveTold { to, ..MoveTold::default() }
}

/// A hall from south to north with a crossing, a kitchen in the west of it and an office in the east.
fn crossing() -> HouseFacts {
    let past = |name: &str, right| MoveTold { passed: vec![(name.to_owned(), right)], ..to(1) };
    let into = |there, room: &str| MoveTold {
        opening: Some("door".into()),
        enters: Some(room.into()),
        leaves: Some("hall".into()),
        ..to(there)
    };
    HouseFacts::new(&[
        place(0.0, 0.0, "hall", &[], vec![past("red sofa", true)]),
        place(0.0, 4.0, "hall", &["blue lamp"], vec![to(0), into(2, "kitchen"), into(3, "office"), to(4)]),
        place(-4.0, 4.0, "kitchen", &["white fridge"], vec![to(1)]),
        place(4.0, 4.0, "office", &["black desk"], vec![to(1)]),
        place(0.0, 8.0, "hall", &["tall clock"], vec![to(1)]),
    ])
}

fn names() -> FxHashSet<String> {
    "hall kitchen office door red sofa blue lamp white fridge black desk tall clock"
        .split(' ')
        .map(str::to_owned)
        .collect()
}

struct Asked {
    house: HouseFacts,
    names: FxHashSet<String>,
    sentence: Sentence,
    distances: Vec<f64>,
}

impl Asked {
    fn new(house: HouseFacts, words: &str) -> Self {
        let distances = vec![0.0; house.places.len()];
        Self { house, names: names(), sentence: Sentence::new(tokenise(words)), distances }
    }

    fn search<'a>(&'a self, model: &'a LogLinear, start: usize, mirrored: bool) -> Search<'a> {
        Search::new(Question {
            model,
            sentence: &self.sentence,
            house: &self.house,
            names: &self.names,
            start,
            heading: 0.0,
            mirrored,
            most_moves: MOST_MOVES,
            distances: &self.distances,
        })
    }

    fn step(&self, model: &mut LogLinear, mirrored: bool, end: usize) {
        let mut search = self.search(model, 0, mirrored);
        let candidates = search.candidates(None);
        let right: Vec<bool> = candidates.iter().map(|c| c.path.last() == Some(&end)).collect();
        let cuts: Vec<_> = candidates.iter().map(|c| search.cut(&c.path).unwrap()).collect();
        let given: Vec<f32> = cuts.iter().map(|cut| cut.given).collect();
        let features: Vec<_> = cuts.into_iter().map(|cut| cut.features).collect();
        model.step_given(&features, &given, &right);
    }
}

#[test]
fn no_ngram_spans_a_mark_and_parts_begin_after_marks_and_joining_words() {
    let sentence = Sentence::new(tokenise("Go left, then past the sofa and stop. Wait"));
    let begins: Vec<&str> = (0..sentence.tokens().len())
        .filter(|token| sentence.joint(*token).1)
        .map(|token| sentence.tokens()[token].as_str())
        .collect();
    assert_eq!(begins, ["then", "and", "wait"]);
    assert_eq!(sentence.likely_parts(), 4);
    let counts: Vec<usize> = (0..sentence.tokens().len()).map(|token| sentence.ngrams(token).len()).collect();
    assert_eq!(counts, [1, 2, 0, 1, 2, 3, 3, 3, 3, 0, 1]);
}

#[test]
fn names_tie_a_sentence_to_a_walk_before_anything_is_learnt() {
    let model = model();
    for (words, path) in [
        ("gnarp by the sofa, gnarp into the kitchen, gnarp at the fridge", vec![0, 1, 2]),
        ("gnarp by the sofa, gnarp office, gnarp desk", vec![0, 1, 3]),
        ("gnarp by the red sofa and gnarp at the lamp", vec![0, 1]),
    ] {
        let asked = Asked::new(crossing(), words);
        assert_eq!(asked.search(&model, 0, false).candidates(None)[0].path, path, "{words}");
    }
}

#[test]
fn a_sentence_is_cut_at_its_parts_along_a_walk() {
    let (model, asked) = (model(), Asked::new(crossing(), "by the sofa, into the kitchen, at the fridge"));
    let cut = asked.search(&model, 0, false).cut(&[0, 1, 2]).unwrap();
    assert_eq!(cut.parts, [0..4, 4..8, 8..11]);
    // A walk of which less is told: its moves share what there is, in order.
    let asked = Asked::new(crossing(), "at the fridge");
    let cut = asked.search(&model, 0, false).cut(&[0, 1, 2]).unwrap();
    assert!(cut.parts.windows(2).all(|pair| pair[0].end == pair[1].start) && cut.parts[2].end == 3, "{cut:?}");
    assert!(asked.search(&model, 0, false).cut(&[0, 2]).is_none(), "there is no such move");
}

#[test]
fn the_score_of_a_candidate_is_that_of_its_features() {
    let mut model = model();
    for (words, end) in [("flurb then zim", 2), ("flurb zam", 3), ("flurb", 1), ("by the sofa, zim", 2)] {
        for mirrored in [false, true] {
            Asked::new(crossing(), words).step(&mut model, mirrored, end);
        }
        let asked = Asked::new(crossing(), words);
        let mut search = asked.search(&model, 0, false);
        for candidate in search.candidates(None) {
            let cut = search.cut(&candidate.path).unwrap();
            let score = cut.given + model.score(&cut.features);
            assert!((score - candidate.score).abs() < 1e-3, "{words} {candidate:?} {score}");
        }
    }
}

#[test]
fn a_word_for_a_turn_is_learnt_and_holds_in_the_mirror_with_the_other() {
    let mut model = model();
    for _ in 0..20 {
        Asked::new(crossing(), "flurb, zim, there you are").step(&mut model, false, 2);
        Asked::new(crossing(), "flurb, zam, there you are").step(&mut model, false, 3);
    }
    let end = |words: &str, mirrored: bool| {
        *Asked::new(crossing(), words).search(&model, 0, mirrored).candidates(None)[0].path.last().unwrap()
    };
    assert_eq!([end("flurb, zim, there you are", false), end("flurb, zam, there you are", false)], [2, 3]);
    // Turns are in the mirror, rooms are where they were: both were learnt, so two turns decide.
    let asked = Asked::new(crossing(), "flurb, zim, there you are");
    let mut search = asked.search(&model, 0, true);
    let score = |search: &mut Search, path: &[usize]| {
        let cut = search.cut(path).unwrap();
        cut.given + model.score(&cut.features)
    };
    let gap_mirrored = score(&mut search, &[0, 1, 2]) - score(&mut search, &[0, 1, 3]);
    let mut search = asked.search(&model, 0, false);
    let gap = score(&mut search, &[0, 1, 2]) - score(&mut search, &[0, 1, 3]);
    assert!(gap > gap_mirrored + 0.1, "{gap} {gap_mirrored}");
}

#[test]
fn a_large_house_has_a_bounded_number_of_candidates() {
    let side = 15;
    let at = |x: usize, y: usize| y * side + x;
    let mut told = Vec::new();
    for y in 0..side {
        for x in 0..side {
            let mut moves = Vec::new();
            for (dx, dy) in [(-1i64, 0i64), (1, 0), (0, -1), (0, 1), (1, 1), (-1, -1)] {
                let (x, y) = (x as i64 + dx, y as i64 + dy);
                if (0..side as i64).contains(&x) && (0..side as i64).contains(&y) {
                    moves.push(to(at(x as usize, y as usize)));
                }
            }
            told.push(place(2.0 * x as f64, 2.0 * y as f64, "hall", &[], moves));
        }
    }
    let asked = Asked::new(HouseFacts::new(&told), "on and on and on and then to the lamp");
    let model = model();
    let wanted: Vec<usize> = (0..=MOST_MOVES).map(|i| at(7, 7 - i.min(7)) + usize::from(i == 8)).collect();
    let candidates = asked.search(&model, at(7, 7), false).candidates(Some(&wanted));
    assert!(candidates.len() < 6000, "{}", candidates.len());
    assert!(candidates.iter().any(|candidate| candidate.path == wanted), "the shown walk is one of them in any case");
    let again = asked.search(&model, at(7, 7), false).candidates(Some(&wanted));
    assert_eq!(candidates, again);
    assert!(candidates.len() > COMPARED);
}

fn tiny() -> (RunConfig, Arc<NavWorld>) {
    let config = crate::testing::configure("nav/tiny", 1, &["model.prior=ngrams".to_owned()]).unwrap();
    let world = NAV.world(&config, &|_, _| {}).unwrap();
    (config, world)
}

/// A wording of directions.
struct Wording {
    right: &'static str,
    left: &'static str,
    around: &'static str,
    straight: &'static str,
    through: &'static str,
    into: &'static str,
    past: &'static str,
    stop: &'static str,
    joint: &'static str,
    /// Whether things and rooms have names of this person's own.
    own_names: bool,
}

const FORMAL: Wording = Wording {
    right: "bear right",
    left: "bear left",
    around: "swing about",
    straight: "proceed",
    through: "by way of the",
    into: "until in the",
    past: "along the",
    stop: "you are there when you see the",
    joint: "; ",
    own_names: false,
};

const FOREIGN: Wording = Wording {
    right: "dextra",
    left: "sinistra",
    around: "retro",
    straight: "recta",
    through: "per",
    into: "in",
    past: "praeter",
    stop: "sta ad",
    joint: ", ",
    own_names: true,
};

/// Somebody's directions for a walk, from what the page tells in words.
fn directions(world: &NavWorld, start: &Start, walk: &Walk, wording: &Wording) -> String {
    let name = |name: &str| match wording.own_names {
        true => name.trim_end_matches('.').chars().rev().collect::<String>(),
        false => name.trim_end_matches('.').to_owned(),
    };
    let mut parts = Vec::new();
    for line in world.outline(start, walk).iter().skip(1) {
        if let Some(things) = line.strip_prefix("Stops near ") {
            parts.push(format!("{} {}", wording.stop, name(things.split(',').next().unwrap_or_default())));
            continue;
        }
        let head = line.split(';').next().unwrap_or_default().trim_end_matches('.');
        let turns = [("right", wording.right), ("left", wording.left), ("around", wording.around)];
        let turn = turns.iter().find(|(told, _)| head.contains(told)).map_or(wording.straight, |(_, said)| said);
        let mut said = vec![turn.to_owned()];
        if let Some((_, room)) = head.split_once("into the ") {
            said.push(format!("{} {}", wording.into, name(room)));
        } else if let Some((_, opening)) = head.split_once("through the ") {
            said.push(format!("{} {}", wording.through, name(opening)));
        }
        if let Some((thing, _)) = line.split_once("passes ").and_then(|(_, things)| things.split_once(" on the ")) {
            said.push(format!("{} {}", wording.past, name(thing)));
        }
        parts.push(said.join(" ").trim().to_owned());
    }
    parts.join(wording.joint)
}

/// Described walks of a split.
fn described(world: &NavWorld, count: usize, seed: u64, wording: &Wording) -> Vec<Example<NavWorld>> {
    let mut draws = stream(seed, "described walks", 0);
    let mut all = Vec::new();
    while all.len() < count {
        let start = world.sample_task(Split::Train, &mut draws).start;
        let execution = world.sample_marginal(&start, &mut draws);
        if execution.viewpoints.len() > 2 {
            let words = directions(world, &start, &execution, wording);
            all.push(Example { start, words, execution });
        }
    }
    all
}

fn right(agent: &dyn Agent<NavWorld>, world: &NavWorld, questions: &[Example<NavWorld>]) -> usize {
    let tasks: Vec<_> = questions.iter().map(|e| (&e.start, e.words.as_str())).collect();
    let walks = agent.act(&tasks, Decoding::Greedy, &mut stream(0, "right", 0)).unwrap();
    walks.iter().zip(questions).filter(|(walk, e)| world.reaches(&e.start, walk, &e.execution)).count()
}

#[test]
fn forty_descriptions_teach_most_walks_and_a_copy_and_a_restored_agent_do_the_same() {
    let (config, world) = tiny();
    let mut agent = NAV.agent(&config, &world, &Device::Cpu).unwrap().agent;
    let (shown, questions) = (described(&world, 40, 1, &FOREIGN), described(&world, 40, 2, &FOREIGN));
    let before = right(&*agent, &world, &questions);
    for _ in 0..3 {
        agent.prior().unwrap().learn(&shown).unwrap();
    }
    let after = right(&*agent, &world, &questions);
    assert!(after >= before + 16 && after >= 28, "{before} {after} of {}", questions.len());

    let tasks: Vec<_> = questions.iter().map(|e| (&e.start, e.words.as_str())).collect();
    let act = |agent: &dyn Agent<NavWorld>| agent.act(&tasks, Decoding::Greedy, &mut stream(0, "same", 0)).unwrap();
    let expected = act(&*agent);
    assert_eq!(act(&*agent.duplicate().unwrap()), expected);
    let mut restored = NAV.agent_from(&config, &world, &agent.blueprint(), &Device::Cpu).unwrap();
    restored.params().load(&agent.params().snapshot().unwrap()).unwrap();
    assert_eq!(act(&*restored), expected);
    // Both go on in step.
    agent.prior().unwrap().learn(&shown[..5]).unwrap();
    restored.prior().unwrap().learn(&shown[..5]).unwrap();
    let [a, b] = [&*agent, &*restored].map(|agent| agent.params().snapshot().unwrap());
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, tensor) in a.iter().filter(|(name, _)| name.starts_with("prior.")) {
        let equal = tensor.eq(&b[name]).unwrap().min_all().unwrap().to_scalar::<u8>().unwrap();
        assert_eq!(equal, 1, "{name}");
    }
}

#[test]
fn agents_without_a_prior_have_the_blueprint_and_parameters_that_they_had() {
    let config = crate::testing::configure("nav/tiny", 1, &[]).unwrap();
    let world = NAV.world(&config, &|_, _| {}).unwrap();
    let mut agent = NAV.agent(&config, &world, &Device::Cpu).unwrap().agent;
    assert!(agent.prior().is_none() && agent.blueprint().get("prior").is_none());
    assert!(!agent.params().snapshot().unwrap().keys().any(|name| name.starts_with("prior.")));
    let (with_prior, _) = tiny();
    let mut other = NAV.agent(&with_prior, &world, &Device::Cpu).unwrap().agent;
    assert!(other.restore_blueprint(&agent.blueprint()).is_err());
    assert!(other.prior().is_some());
}

#[test]
fn walks_that_are_none_are_refused() {
    let (config, world) = tiny();
    let mut agent = NAV.agent(&config, &world, &Device::Cpu).unwrap().agent;
    let mut example = described(&world, 1, 3, &FORMAL).remove(0);
    example.execution.viewpoints.push("nowhere".into());
    assert!(agent.prior().unwrap().learn(&[example.clone()]).is_err());
    example.start.viewpoint = "nowhere".into();
    let facts = super::told::WorldFacts::new(&world);
    let setting = Setting { world: &world, facts: &facts, moves: 9 };
    assert!(setting.choose(&model(), &example.start, "go").is_err());
    let start = described(&world, 1, 4, &FORMAL).remove(0).start;
    assert!(setting.choose(&model(), &start, "").is_ok_and(|walk| world.valid(&start, &walk)));
}
