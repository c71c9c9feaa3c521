//! The NAV worlds: generated houses with their requests, and the real ones where they are at hand.

use iliad::protocol::{Split, World};
use iliad::rng::stream;
use iliad::task::nav::action::{Pose, actions};
use iliad::task::nav::corpus::Item;
use iliad::task::nav::generated::Size;
use iliad::task::nav::house::House;
use iliad::task::nav::marginal::Marginal;
use iliad::task::nav::observation::{GEOMETRY, NAMES, SCALE};
use iliad::task::nav::phrasing::trace::{Fact, Side, Thing, Trace, Tracer, Turn};
use iliad::task::nav::phrasing::{Request, ambiguity_of, requests};
use iliad::task::nav::world::NavWorld;
use iliad::task::nav::{Start, Walk};
use rand::RngExt;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::LazyLock;

const SPLITS: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

static TINY: LazyLock<NavWorld> = LazyLock::new(|| NavWorld::builtin(1, &Size::tiny()));

/// Everything a world promises about its tasks.
fn check_tasks(world: &NavWorld, every: usize) {
    for split in SPLITS {
        assert!(!world.is_empty(split));
        for index in (0..world.len(split)).step_by(every) {
            let task = world.task(split, index);
            let gold = world.gold(split, index);
            assert!(world.valid(&task.start, &gold) && world.describable(&task.start, &gold), "{split:?} {index}");
            let score = world.score(&task, &gold);
            assert!(score.success && score.figures[1..3].iter().all(|(_, x)| *x == 1.0), "{score:?}");
            assert!(world.performs(&task.start, &gold, &gold, 1.0));
            assert_eq!(world.continuous_reward(&task, &gold), 1.0);
            let requests = world.requests(split, index);
            assert_eq!((requests.len(), &requests[0]), (if split == Split::Train { 3 } else { 1 }, &task.request));
            let view = world.view(&task.start, &gold);
            assert_eq!(view["path"].as_array().unwrap().len(), gold.viewpoints.len());
            assert_eq!(view["words"].as_array().unwrap().len(), gold.viewpoints.len() + 1);
            assert!(!view.to_string().contains(&task.request), "the request is not shown");
            let stay = Walk { viewpoints: vec![task.start.viewpoint.clone()] };
            assert!(world.valid(&task.start, &stay) && !world.describable(&task.start, &stay));
            assert_eq!(world.continuous_reward(&task, &stay), 0.0);
            assert!(!world.score(&task, &stay).success || world.score(&task, &stay).figures[3].1 <= 3.0);
        }
        let mut chance = stream(1, "world test", 0);
        for _ in 0..50 {
            let task = world.sample_task(split, &mut chance);
            assert!(world.requests(split, task.index).contains(&task.request));
            let walk = world.sample_marginal(&task.start, &mut chance);
            assert!(world.valid(&task.start, &walk) && (2..=7).contains(&walk.viewpoints.len()), "{walk:?}");
            let stored = serde_json::to_string(&(&task.start, &walk)).unwrap();
            assert_eq!(serde_json::from_str::<(Start, Walk)>(&stored).unwrap(), (task.start, walk));
        }
    }
}

#[test]
fn the_builtin_world_keeps_its_promises() {
    let world = &*TINY;
    assert_eq!(SPLITS.map(|split| world.len(split)), [3 * 12, 3 * 3 * 4, 2 * 3 * 6]);
    check_tasks(world, 1);
    let houses = |split| world.corpus().split(split).iter().map(|i| i.scan.clone()).collect::<HashSet<_>>();
    assert!(houses(Split::Test).is_disjoint(&houses(Split::Train)));
    assert_eq!(houses(Split::Validation), houses(Split::Train));
    let paths = |split| world.corpus().split(split).iter().map(|i| i.path.clone()).collect::<HashSet<_>>();
    assert!(paths(Split::Validation).is_disjoint(&paths(Split::Train)));
    let ids: HashSet<&String> = SPLITS.iter().flat_map(|s| world.corpus().split(*s)).map(|i| &i.id).collect();
    assert_eq!(ids.len(), SPLITS.iter().map(|s| world.len(*s)).sum::<usize>());
    for grouping in world.groupings() {
        let group = |index| world.group(grouping.name, Split::Test, index).unwrap();
        let found: HashSet<usize> = (0..world.len(Split::Test)).map(group).collect();
        assert!(found.len() > 1 && found.iter().all(|g| *g < grouping.groups.len()), "{grouping:?} {found:?}");
    }
    let moves = |index: usize| world.corpus().split(Split::Test)[index].path.len() - 1;
    assert!((0..world.len(Split::Test)).all(|i| world.group("moves", Split::Test, i) == Some(moves(i) - 3)));
    let again = NavWorld::builtin(1, &Size::tiny());
    assert_eq!(again.corpus(), world.corpus());
    assert_ne!(NavWorld::builtin(2, &Size::tiny()).corpus(), world.corpus());
    let long = |item: &Item| item.distance >= 5.0 && (5..=7).contains(&item.path.len());
    assert!(SPLITS.iter().flat_map(|s| world.corpus().split(*s)).all(long));
}

#[test]
fn what_is_no_walk_is_told_apart() {
    let world = &*TINY;
    let task = world.task(Split::Train, 0);
    let other = world.scenes().iter().find(|s| s.name != task.start.scan).unwrap();
    let with = |more: &[&str]| Walk {
        viewpoints: [task.start.viewpoint.as_str()].iter().chain(more).map(|v| (*v).to_owned()).collect(),
    };
    let far = world.gold(Split::Train, 0).viewpoints[3].clone();
    for walk in [
        with(&[&far]),
        with(&["nowhere"]),
        with(&[other.graph.id(0)]),
        Walk { viewpoints: vec![far.clone()] },
        Walk { viewpoints: vec![] },
    ] {
        assert!(!world.valid(&task.start, &walk) && !world.describable(&task.start, &walk), "{walk:?}");
        let score = world.score(&task, &walk);
        assert!(!score.success && score.figures[0].1 == 0.0 && score.figures[3].1 >= 5.0, "{score:?}");
        assert_eq!(world.continuous_reward(&task, &walk), 0.0);
        assert_eq!(world.view(&task.start, &walk)["path"].as_array().unwrap().len(), 0);
        world.summary(&walk);
    }
    let gold = world.gold(Split::Train, 0).viewpoints;
    let there_and_back = Walk { viewpoints: vec![gold[0].clone(), gold[1].clone(), gold[0].clone()] };
    assert!(world.valid(&task.start, &there_and_back) && !world.describable(&task.start, &there_and_back));
    assert_eq!(world.without_loops(&task.start, &there_and_back), with(&[]));
    // With its loop cut out, a detour does what the gold walk does.
    let mut detour = gold.clone();
    detour.splice(1..1, [gold[1].clone(), gold[0].clone()]);
    let detour = Walk { viewpoints: detour };
    assert!(world.performs(&task.start, &detour, &Walk { viewpoints: gold }, 1.0));
}

#[test]
fn walks_that_stay_are_described_where_the_settings_say_so() {
    let world = NavWorld::builtin(1, &Size::tiny()).with_unmoved(true);
    let task = world.task(Split::Train, 0);
    let with = |ends: &[&str]| Walk { viewpoints: ends.iter().map(|v| (*v).to_owned()).collect() };
    let gold = world.gold(Split::Train, 0).viewpoints;
    assert!(world.describable(&task.start, &with(&[&gold[0]])));
    assert!(world.describable(&task.start, &with(&[&gold[0], &gold[1], &gold[0]])));
    assert!(!world.describable(&task.start, &with(&[&gold[0], "nowhere"])));
}

#[test]
fn views_differ_between_places_and_fit_the_settings() {
    let world = &*TINY;
    assert_eq!(world.names().iter().collect::<HashSet<_>>().len(), world.names().len());
    let dim = world.names().len() + GEOMETRY + 7;
    let semantic = world.semantic(dim, SCALE).unwrap();
    assert!(world.semantic(10, SCALE).is_err());
    let scene = &world.scenes()[0];
    let mut seen = HashSet::new();
    let (mut length, mut views) = (0.0, 0);
    for viewpoint in (0..scene.graph.len()).step_by(3) {
        let vectors = scene.vectors(&semantic, viewpoint);
        assert!(vectors.len() == 36 * dim && vectors.iter().all(|x| x.is_finite()));
        for view in vectors.chunks(dim) {
            length += view.iter().map(|x| x * x).sum::<f32>().sqrt();
            views += 1;
            assert!(view[dim - 7..].iter().all(|x| *x == 0.0));
        }
        seen.insert(vectors.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    }
    let mean = length / views as f32;
    println!("mean length of a view's vector {mean}");
    assert!(seen.len() == scene.graph.len().div_ceil(3) && (8.0..40.0).contains(&mean));
}

#[test]
fn walks_are_told_in_words_as_they_are_shown() {
    let world = &*TINY;
    for index in 0..12 {
        let task = world.task(Split::Train, index);
        let gold = world.gold(Split::Train, index);
        let words = world.in_words(&task.start, &gold);
        println!("{}\n   {}\n   {}", task.request, words.join(" "), world.summary(&gold));
        let (scene, path) = world.path(&task.start, &gold).unwrap();
        let first = actions(&scene.graph, Pose { viewpoint: path[0], heading: task.start.heading })
            .into_iter()
            .find(|a| a.viewpoint == path[1])
            .unwrap();
        let degrees = first.rel_heading.to_degrees();
        if (50.0..140.0).contains(&degrees.abs()) {
            let side = if degrees > 0.0 { "It turned right" } else { "It turned left" };
            assert!(words[1].starts_with(side), "{degrees}: {}", words[1]);
        }
        assert!(words[0].starts_with("It started") && words[words.len() - 1].starts_with("It stopped"));
    }
}

fn told(seed: u64, trials: u64, mut check: impl FnMut(&Tracer, u8, &[usize], Vec<Request>)) {
    let house = House::generate(seed);
    let graph = house.graph().unwrap();
    let tracer = Tracer::look(&house, &graph);
    for trial in 0..trials {
        let mut chance = stream(seed, "phrasing test", trial);
        let (start, heading) = (chance.random_range(0..graph.len()), chance.random_range(0..12u8));
        let path = Marginal::ShortestPaths.sample(&graph, start, &mut chance);
        if path.len() >= 5 {
            let requests = requests(&tracer, heading, &path, &mut chance);
            check(&tracer, heading, &path, requests);
        }
    }
}

#[test]
fn requests_are_true_clear_and_worded_like_peoples() {
    let (mut count, mut words, mut sentences, mut astray, mut alike) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut vocabulary, mut texts) = (HashSet::new(), HashSet::new());
    for seed in 100..106 {
        told(seed, 60, |tracer, heading, path, requests| {
            let trace = tracer.trace(heading, path);
            assert_eq!(requests.len(), 3);
            for request in requests {
                assert!(trace.has(&request.facts), "{request:?}");
                assert_eq!(ambiguity_of(tracer, heading, path, &request.facts), request.ambiguity);
                let others = request.ambiguity.others.max(1) as f64;
                count += 1.0;
                astray += request.ambiguity.astray as f64 / others;
                alike += request.ambiguity.alike as f64 / others;
                words += request.text.split(' ').count() as f64;
                sentences += request.text.matches('.').count() as f64;
                assert!(
                    request.text.ends_with('.') && !request.text.contains("  ") && request.text.split(' ').count() < 80
                );
                vocabulary.extend(request.text.split(' ').map(|w| w.trim_matches(['.', ',']).to_lowercase()));
                texts.insert(request.text);
            }
        });
    }
    println!(
        "{count} requests, {} distinct; {:.1} words, {:.2} sentences, {} words in all; also true of {:.4} of the others, {:.4} astray",
        texts.len(),
        words / count,
        sentences / count,
        vocabulary.len(),
        alike / count,
        astray / count
    );
    assert!(count > 400.0 && texts.len() as f64 > 0.99 * count, "hardly any request comes twice");
    assert!((20.0..32.0).contains(&(words / count)), "people use 26 words: {}", words / count);
    assert!((1.8..3.4).contains(&(sentences / count)), "people use 2.5 sentences: {}", sentences / count);
    assert!(vocabulary.len() > 220, "{}", vocabulary.len());
    assert!(astray / count < 0.01 && alike / count < 0.05, "{astray} {alike} of {count}");
}

#[test]
fn requests_would_be_unclear_if_they_said_less() {
    // The measure can fail: the end alone, or nothing at all, leaves other paths open.
    let (mut nothing, mut end, mut count) = (0.0, 0.0, 0.0);
    told(100, 60, |tracer, heading, path, requests| {
        let all = ambiguity_of(tracer, heading, path, &[]);
        assert_eq!(all.alike, all.others);
        let last: Vec<Fact> = requests[0].facts.iter().copied().filter(Fact::ends).take(1).collect();
        let others = all.others.max(1) as f64;
        nothing += all.alike as f64 / others;
        end += ambiguity_of(tracer, heading, path, &last).alike as f64 / others;
        count += 1.0;
    });
    assert!(nothing / count > 0.8 && end / count > 0.05, "{nothing} {end} of {count}");
}

#[test]
fn facts_are_matched_in_order_and_may_say_less() {
    let couch = |colour| Thing { kind: "couch", colour };
    let trace = Trace {
        slots: vec![
            vec![Fact::Turn(Turn::To(Side::Left))],
            vec![Fact::Leave("kitchen"), Fact::Enter("hallway"), Fact::Pass(couch(Some("red")), Some(Side::Left))],
            vec![Fact::Turn(Turn::To(Side::Right))],
            vec![Fact::Up],
            vec![Fact::Inside("hallway"), Fact::Top],
        ],
    };
    let (left, right) = (Fact::Turn(Turn::To(Side::Left)), Fact::Turn(Turn::To(Side::Right)));
    assert!(trace.has(&[left, Fact::Enter("hallway"), right, Fact::Up, Fact::Top]));
    assert!(trace.has(&[]) && trace.has(&[right]) && trace.has(&[Fact::Up, Fact::Inside("hallway")]));
    assert!(!trace.has(&[right, left]) && !trace.has(&[Fact::Up, Fact::Enter("hallway")]) && !trace.has(&[left, left]));
    assert!(trace.has(&[Fact::Pass(couch(None), None)]) && trace.has(&[Fact::Pass(couch(Some("red")), None)]));
    assert!(!trace.has(&[Fact::Pass(couch(Some("blue")), None)]));
    assert!(!trace.has(&[Fact::Pass(couch(None), Some(Side::Right))]) && !trace.has(&[Fact::Inside("kitchen")]));
}

#[test]
fn the_real_world_keeps_its_promises() {
    let folder =
        std::env::var_os("ILIAD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from).join("nav");
    if !folder.exists() {
        println!("skipped: no NAV data at {}", folder.display());
        return;
    }
    let world = NavWorld::load(&folder).expect("the data is intact");
    assert_eq!(SPLITS.map(|split| world.len(split)), [4315, 2100, 2349]);
    assert_eq!(world.names().len(), NAMES);
    check_tasks(&world, 50);
    let task = world.task(Split::Test, 0);
    println!("{}\n{}", task.request, world.in_words(&task.start, &world.gold(Split::Test, 0)).join("\n"));
}
