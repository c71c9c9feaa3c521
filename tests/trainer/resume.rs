//! Resuming from checkpoints, also from those of a killed process.

use crate::support::{iliad, set, train, weights};
use candle_core::Device;
use iliad::registry::Registry;
use iliad::run::{Event, RunState};
use iliad::trainer::{Launch, checkpoint};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[test]
fn a_run_that_goes_on_says_while_it_loads_what_it_had_learnt() {
    let dir = tempfile::tempdir().unwrap();
    let (_, report) = train(dir.path(), &["schedule.episodes=64"]);
    let loading = Arc::new(Mutex::new(Vec::new()));
    let seen = loading.clone();
    let launch = Launch {
        id: "test".into(),
        config: Registry::builtin().configure("tiny", 1, &set(&["schedule.episodes=64"])).unwrap(),
        folder: dir.path().to_owned(),
        device: Device::Cpu,
        store: None,
        teacher: None,
        listener: Some(Box::new(move |event| {
            if let Event::Status(status) = &**event
                && matches!(status.state, RunState::Starting { .. })
            {
                seen.lock().unwrap().push((status.update, status.episodes, status.descriptions_simulated));
            }
        })),
    };
    let (_handle, thread) = Registry::builtin().family("regex").unwrap().spawn(launch).unwrap();
    thread.join().unwrap().unwrap();
    let loading = loading.lock().unwrap();
    assert!(!loading.is_empty());
    assert!(loading.iter().all(|told| *told == (report.updates, 64, report.descriptions)), "{loading:?}");
}

#[test]
fn a_killed_run_ends_bit_identical_to_one_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    // With every part that draws or remembers something.
    let common = [
        "schedule.episodes=960",
        "schedule.checkpoint_every=5",
        "algorithm.replay=1",
        "algorithm.word_dropout=0.1",
        "algorithm.ask.candidates=2",
        "algorithm.ask.samples=1",
        "model.letters=renamed",
        "task.more_words=1",
    ]
    .map(|setting| ["--set", setting]);
    let start = |folder: &Path| {
        let mut c = iliad();
        c.args(["train", "--preset", "tiny", "--seed", "7", "--run-dir"]).arg(folder).args(common.concat());
        c
    };
    let whole = dir.path().join("whole");
    assert!(start(&whole).status().unwrap().success());

    let broken = dir.path().join("broken");
    let mut child = start(&broken).spawn().unwrap();
    let mut kills = 0;
    let begin = Instant::now();
    loop {
        // Kill it whenever two new checkpoints have come, at whatever it is doing then.
        let before = newest_update(&broken);
        while newest_update(&broken) < before + 6 && child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(300), "the run makes no progress");
            std::thread::sleep(Duration::from_millis(15));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        let mut again = iliad();
        again.args(["train", "--resume", "--run-dir"]).arg(&broken);
        child = again.spawn().unwrap();
    }
    assert!(kills >= 1, "it was killed at least once");
    assert_eq!(weights(&whole), weights(&broken));
    let text = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(text(&whole, "descriptions.jsonl"), text(&broken, "descriptions.jsonl"));
}

fn newest_update(folder: &Path) -> u64 {
    let name = |p: &std::path::PathBuf| p.file_stem().unwrap().to_string_lossy()["update-".len()..].parse().unwrap();
    checkpoint::list(folder).last().map_or(0, name)
}

#[test]
fn a_broken_checkpoint_is_passed_over_and_only_broken_ones_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    train(dir.path(), &["schedule.episodes=192", "schedule.checkpoint_every=3"]);
    let all = checkpoint::list(dir.path());
    assert_eq!(all.len(), 2, "two are kept");
    let newest = std::fs::read(&all[1]).unwrap();
    std::fs::write(&all[1], &newest[..newest.len() / 2]).unwrap();
    let (found, complaints) = checkpoint::newest(dir.path()).unwrap();
    assert!(found.unwrap().0.counters.update == 3 && complaints.len() == 1);
    std::fs::write(&all[0], "nonsense").unwrap();
    assert!(checkpoint::newest(dir.path()).unwrap_err().to_string().contains("none of the run's checkpoints"));
}
