//! Learning from the simulated teacher.

use crate::support::{train, weights};

#[test]
fn adel_learns_and_learns_nothing_from_shuffled_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    // Half of it is enough to learn most of what this agent can learn; the other half shows that it stays.
    let length = ["schedule.episodes=1600", "schedule.evaluate_every=10"];
    let shuffled = [length[0], length[1], "algorithm.shuffle_descriptions=true"];
    let ((readings, report), (blind, _)) = std::thread::scope(|scope| {
        let blind = scope.spawn(|| train(&dir.path().join("b"), &shuffled));
        (train(&dir.path().join("a"), &length), blind.join().unwrap())
    });
    assert!(readings[0] < 0.03, "it begins with nothing: {readings:?}");
    let half = readings.len() / 2;
    let mean = |r: &[f64]| r.iter().sum::<f64>() / r.len() as f64;
    assert!(mean(&readings[half..]) > 0.25, "it learns: {readings:?}");
    assert!(report.validation.value > 0.25 && report.test.value > 0.15, "{report:?}");
    assert!(report.complete && report.episodes == 1600 && report.descriptions > 500);

    // Without a word understood, always making the same edit succeeds for its own kind, one in eight: so much can be had
    // from shuffled descriptions, and no more.
    assert!(blind.iter().all(|r| *r < 0.25), "nothing can be learnt from shuffled descriptions: {blind:?}");
    let last = readings.len() - 2;
    assert!(
        mean(&readings[last..]) > mean(&blind[last..]) + 0.1,
        "true descriptions teach more than shuffled ones: {readings:?} against {blind:?}"
    );
    eprintln!("validation success {readings:?}; with shuffled descriptions {blind:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, seed: &str| {
        let folder = dir.path().join(name);
        let (_, report) = train(&folder, &["schedule.episodes=96", seed]);
        (weights(&folder), report.descriptions)
    };
    let (a, b, c) = (run("a", "seed=1"), run("b", "seed=1"), run("c", "seed=2"));
    assert_eq!(a, b);
    assert_ne!(a.0, c.0);
}

/// The presets `warm` teach the prior requests of training tasks before the first episode.
#[test]
fn a_warm_start_understands_requests_before_anybody_taught_it() {
    let dir = tempfile::tempdir().unwrap();
    let before = |name: &str, examples: u64| {
        let number = format!("algorithm.prior_examples={examples}");
        let (readings, _) = train(&dir.path().join(name), &["model.prior=\"ngrams\"", "schedule.episodes=32", &number]);
        readings[0]
    };
    let (cold, warm) = (before("cold", 0), before("warm", 120));
    assert!(cold < 0.03 && warm > 0.3, "{cold} {warm}");
}
