//! The REGEX worlds: built-in, tiny, and the real corpus where it is at hand.

use iliad::protocol::{Split, World};
use iliad::rng::stream;
use iliad::task::regex::world::RegexWorld;
use iliad::task::regex::{Edit, PAIRS, Words};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

const SPLITS: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

/// Everything a world promises about its tasks.
fn check_tasks(world: &RegexWorld) -> [HashSet<String>; 3] {
    let characters: HashSet<String> = world.char_vocab().into_iter().collect();
    let symbols: HashSet<String> = world.expression_vocab().into_iter().collect();
    let tokens: HashSet<String> = world.request_vocab().into_iter().collect();
    let mut requests: Vec<HashSet<String>> = Vec::new();
    for split in SPLITS {
        assert!(!world.is_empty(split));
        for grouping in world.groupings() {
            let within = |index| world.group(grouping.name, split, index).is_some_and(|g| g < grouping.groups.len());
            assert!((0..world.len(split)).all(within), "every task is in a group of {}", grouping.name);
        }
        assert_eq!(world.group("colour", split, 0), None);
        let mut seen = HashSet::new();
        let (mut all, mut unknown) = (0, 0);
        for index in 0..world.len(split) {
            let task = world.task(split, index);
            assert_eq!((task.split, task.index, task.start.words.len()), (split, index, PAIRS));
            let gold = world.gold(split, index);
            assert_eq!(gold, Edit::of(&gold.expression, &task.start), "{split:?} {index}");
            let outputs = gold.outputs.as_ref().expect("gold executions are valid");
            assert_ne!(outputs[0], task.start.words[0], "{split:?} {index}: the first word is changed");
            let changed = outputs.iter().zip(&task.start.words).filter(|(out, word)| out != word).count();
            assert!(changed >= 3, "{split:?} {index}: {changed} words changed");
            assert!(outputs.iter().all(|out| !out.is_empty() && out.len() <= 30));
            assert!(world.describable(&task.start, &gold) && world.valid(&task.start, &gold));
            assert!(world.performs(&task.start, &gold, &gold, 1.0));
            let score = world.score(&task, &gold);
            assert!(score.success && score.figures == [("similarity".to_owned(), 1.0)], "{score:?}");
            let all_requests = world.requests(split, index);
            assert_eq!(all_requests[0], task.request);
            assert!((1..=3).contains(&all_requests.len()));
            assert!(split == Split::Train || all_requests.len() == 1);
            for request in all_requests {
                all += request.split(' ').count();
                unknown += request.split(' ').filter(|token| !tokens.contains(*token)).count();
                seen.insert(request);
            }
            for (text, vocabulary) in
                [(&gold.expression, &symbols), (&task.start.words[0], &characters), (&outputs[0], &characters)]
            {
                let strange = text.chars().find(|c| !vocabulary.contains(&c.to_string()));
                assert_eq!(strange, None, "{text}");
            }
        }
        assert!(split != Split::Train || unknown == 0, "{unknown} unknown training tokens");
        assert!((unknown as f64) < 0.02 * all as f64, "{split:?}: {unknown} of {all} tokens are unknown");
        println!("{split:?}: {unknown} of {all} request tokens are unknown");
        requests.push(seen);
    }
    requests.try_into().expect("three splits")
}

fn check_disjoint(requests: &[HashSet<String>; 3]) {
    assert!(requests[0].is_disjoint(&requests[1]) && requests[0].is_disjoint(&requests[2]));
    assert!(requests[1].is_disjoint(&requests[2]));
}

fn check_vocabularies(world: &RegexWorld) {
    for vocabulary in [world.char_vocab(), world.request_vocab(), world.expression_vocab()] {
        assert_eq!(vocabulary[..4], ["<PAD>", "<UNK>", "<", ">"]);
        assert_eq!(vocabulary.iter().collect::<HashSet<_>>().len(), vocabulary.len(), "a symbol is there twice");
    }
}

fn check_draws(world: &RegexWorld) {
    for episode in 0..300 {
        let task = world.sample_task(Split::Train, &mut stream(5, "test tasks", episode));
        assert_eq!(task, world.sample_task(Split::Train, &mut stream(5, "test tasks", episode)));
        assert!(world.requests(Split::Train, task.index).contains(&task.request));
        let draw = || world.sample_marginal(&task.start, &mut stream(5, "test marginal", episode));
        let edit = draw();
        assert_eq!(edit, draw());
        assert_ne!(edit.outputs.expect("valid")[0], task.start.words[0]);
    }
}

#[test]
fn the_built_in_world_keeps_its_promises() {
    let world = RegexWorld::builtin(1);
    assert_eq!(SPLITS.map(|split| world.len(split)), [8000, 600, 600]);
    check_vocabularies(&world);
    let requests = check_tasks(&world);
    check_disjoint(&requests);
    check_draws(&world);
    for letter in 'a'..='z' {
        for vocabulary in [world.char_vocab(), world.expression_vocab(), world.request_vocab()] {
            assert!(vocabulary.contains(&letter.to_string()), "{letter}");
        }
    }
}

#[test]
fn the_tiny_world_keeps_its_promises() {
    let world = RegexWorld::tiny(1);
    assert_eq!(SPLITS.map(|split| world.len(split)), [1500, 200, 200]);
    check_vocabularies(&world);
    // The tiny world's splits share phrasings, so that its requests need not be disjoint.
    check_tasks(&world);
    check_draws(&world);
    assert!(world.words().iter().all(|word| (3..=6).contains(&word.len())));
}

#[test]
fn a_seed_makes_the_same_world_and_another_seed_another() {
    let tasks = |seed| {
        let world = RegexWorld::tiny(seed);
        (0..100).map(|index| (world.task(Split::Test, index), world.gold(Split::Test, index))).collect::<Vec<_>>()
    };
    assert_eq!(tasks(3), tasks(3));
    assert_ne!(tasks(3), tasks(4));
}

#[test]
fn scores_and_performance() {
    let world = RegexWorld::tiny(1);
    let task = world.task(Split::Test, 0);
    let gold = world.gold(Split::Test, 0);
    let nothing = Edit { expression: "(".into(), outputs: None };
    let score = world.score(&task, &nothing);
    assert!(!score.success && score.figures[0].1 < 1.0);
    assert!(!world.performs(&task.start, &nothing, &gold, 1.0) && !world.performs(&task.start, &gold, &nothing, 0.0));
    assert!(!world.valid(&task.start, &nothing) && !world.describable(&task.start, &nothing));
    let mut other = gold.clone();
    if let Some(outputs) = &mut other.outputs {
        outputs[4].push('x');
    }
    assert!(world.score(&task, &other).success, "success looks at the first word");
    assert!(!world.performs(&task.start, &other, &gold, 1.0), "perf looks at all words");
    assert!(!world.performs(&task.start, &other, &gold, PAIRS as f64), "τ = J in the paper's counting");
    assert!(world.performs(&task.start, &other, &gold, 0.8));
    let still = Edit::of("()(q)()@x", &Words { words: vec!["banana".into(); PAIRS] });
    assert!(world.valid(&task.start, &still));
    assert!(!world.describable(&Words { words: vec!["banana".into(); PAIRS] }, &still));
}

#[test]
fn a_view_shows_the_words_and_where_they_changed() {
    let world = RegexWorld::tiny(1);
    let start = Words { words: vec!["banana".into(), "kiwi".into()] };
    let view = world.view(&start, &Edit::of("()(V)()@o", &start));
    let marks = |at: &[usize]| at.iter().map(|&at| serde_json::json!([at, at + 1, "o"])).collect::<Vec<_>>();
    let pairs = serde_json::json!([
        {"in": "banana", "out": "bonono", "marks": marks(&[1, 3, 5])},
        {"in": "kiwi", "out": "kowo", "marks": marks(&[1, 3])},
    ]);
    assert_eq!(view, serde_json::json!({ "pairs": pairs }));
    let invalid = world.view(&start, &Edit { expression: "(".into(), outputs: None });
    assert_eq!(invalid["pairs"][0], serde_json::json!({"in": "banana", "out": "banana"}));
}

#[test]
fn the_real_corpus_keeps_its_promises() {
    let folder =
        std::env::var_os("ILIAD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from).join("regex");
    if !folder.exists() {
        println!("skipped: no corpus at {}", folder.display());
        return;
    }
    let begun = Instant::now();
    let world = RegexWorld::load(&folder).expect("the corpus is intact");
    println!("loaded in {:?}", begun.elapsed());
    assert_eq!(SPLITS.map(|split| world.len(split)), [114_503, 6_429, 6_429]);
    assert_eq!([world.request_vocab().len(), world.char_vocab().len(), world.expression_vocab().len()], [353, 31, 39]);
    check_vocabularies(&world);
    let requests = check_tasks(&world);
    check_disjoint(&requests);
    check_draws(&world);
}

#[test]
fn kinds_forget_letters_and_further_words_are_changed_ones() {
    let world = RegexWorld::builtin(1);
    let start = Words { words: vec!["banana".into()] };
    let edit = Edit::of("()(n)()@\\2\\2n", &start);
    assert_eq!(world.kind(&start, &edit), "()({1})()@\\2\\2{1}");
    assert_eq!(world.elsewhere(&start, &edit, &mut stream(1, "test", 0)), None);
    let world = world.with_more_words(4);
    let (words, more) = world.elsewhere(&start, &edit, &mut stream(1, "test", 0)).unwrap();
    assert_eq!((words.words.len(), &words.words[0]), (5, &start.words[0]));
    assert_eq!(more, Edit::of(&edit.expression, &words));
    assert!(words.words.iter().zip(more.outputs.unwrap()).all(|(word, output)| *word != output));
    // An expression that changes no word gives none, and the search ends.
    let idle = Edit::of("()(0)()@", &start);
    assert_eq!(world.elsewhere(&start, &idle, &mut stream(1, "test", 0)), Some((start, idle)));
}

#[test]
fn an_edit_is_done_elsewhere_and_understood_on_all_words() {
    let world = RegexWorld::tiny(1);
    let (task, gold) = (world.task(Split::Train, 0), world.gold(Split::Train, 0));
    let (start, there) = world.another_start(&task.start, &gold, &mut stream(1, "test", 0)).unwrap();
    assert_eq!((start.words.len(), &there.expression), (PAIRS, &gold.expression));
    assert!(start != task.start && there == Edit::of(&gold.expression, &start) && world.describable(&start, &there));
    let again = world.another_start(&task.start, &gold, &mut stream(1, "test", 0)).unwrap();
    assert_eq!(again, (start.clone(), there.clone()));
    // Four words of five are enough for the simulated teacher, and not for a person who described all five.
    let mut nearly = there.clone();
    nearly.outputs.as_mut().unwrap()[1].push('q');
    assert!(world.performs(&start, &nearly, &there, 0.5) && !world.understood(&start, &nearly, &there, 0.5));
    assert!(world.understood(&start, &there, &there, 0.5));
    let invalid = Edit { outputs: None, ..there.clone() };
    assert!(!world.understood(&start, &invalid, &there, 0.5));
}
