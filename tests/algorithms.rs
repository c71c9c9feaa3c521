//! The algorithms beside ADEL, in the same loop: they learn, the same seed gives the same run, and an interrupted run
//! stands where it stood. And grids of runs, which `iliad reproduce` carries out.

use candle_core::Device;
use iliad::config::run::TeacherMode;
use iliad::experiment::results::{Results, SeedResult};
use iliad::registry::Registry;
use iliad::trainer::{FinalReport, Launch, checkpoint};
use std::path::Path;
use std::process::{Command, Output};

fn launch(folder: &Path, overrides: &[&str], teacher: Option<TeacherMode>) -> anyhow::Result<FinalReport> {
    let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
    let launch = Launch {
        id: "test".into(),
        config: Registry::builtin().configure("tiny", 1, &overrides).unwrap(),
        folder: folder.to_owned(),
        device: Device::Cpu,
        store: None,
        teacher,
        listener: None,
    };
    let (_handle, thread) = Registry::builtin().family("regex").unwrap().spawn(launch).unwrap();
    thread.join().unwrap()
}

fn train(folder: &Path, overrides: &[&str]) -> FinalReport {
    launch(folder, overrides, None).unwrap()
}

/// Every tensor of a checkpoint whose name begins with `prefix`, as bits.
fn weights(path: &Path, prefix: &str) -> Vec<(String, Vec<u32>)> {
    let bits = |t: candle_core::Tensor| {
        t.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    };
    let tensors = checkpoint::load(path).unwrap().1;
    tensors.into_iter().filter(|(name, _)| name.starts_with(prefix)).map(|(name, t)| (name, bits(t))).collect()
}

fn at(folder: &Path, update: u64) -> std::path::PathBuf {
    folder.join(format!("update-{update:08}.safetensors"))
}

#[test]
fn dagger_learns() {
    let dir = tempfile::tempdir().unwrap();
    let length = ["schedule.episodes=9600", "schedule.evaluate_every=150", "algorithm.average=0.98"];
    let report = train(dir.path(), &[&["algorithm.name=dagger"], &length[..]].concat());
    assert!(report.validation.value > 0.15 && report.test.value > 0.1, "{report:?}");
    assert_eq!((report.descriptions, report.feedback.words()), (9600, "demonstrations"));
}

#[test]
fn supervised_learning_and_the_true_marginal_learn() {
    let dir = tempfile::tempdir().unwrap();
    for (name, episodes) in [("supervised", 2560), ("true-marginal", 1280)] {
        let (name, episodes) = (format!("algorithm.name={name}"), format!("schedule.episodes={episodes}"));
        let report = train(&dir.path().join(&name), &[&name, &episodes, "algorithm.replay=1"]);
        assert!(report.validation.value > 0.1, "{report:?}");
    }
}

/// One run is whole. From another's folder everything after update 6 is taken away, as a kill would; what it had
/// recorded by then stays.
fn resumes_bit_identical(overrides: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    let length = ["schedule.episodes=384", "schedule.checkpoint_every=6", "schedule.evaluate_every=12"];
    let overrides = [&length[..], overrides].concat();
    train(&whole, &overrides);
    train(&broken, &overrides);
    let end = weights(&at(&whole, 12), "");
    assert_eq!(end, weights(&at(&broken, 12), ""), "the same seed gives the same run");
    assert_ne!(end, weights(&at(&whole, 6), ""), "it learns");
    std::fs::remove_file(at(&broken, 12)).unwrap();
    train(&broken, &overrides);
    assert_eq!(end, weights(&at(&broken, 12), ""), "an interrupted run ends where the whole one does");
    let header = |folder: &Path| checkpoint::load(&at(folder, 12)).unwrap().0;
    let (a, b) = (header(&whole), header(&broken));
    assert_eq!(
        (a.algorithm_state(), a.counters, a.milestones, a.meters),
        (b.algorithm_state(), b.counters, b.milestones, b.meters)
    );
    let text = |folder: &Path| std::fs::read_to_string(folder.join("descriptions.jsonl")).unwrap();
    assert_eq!(text(&whole), text(&broken));
    train(&dir.path().join("other"), &[&overrides[..], &["seed=2"]].concat());
    assert_ne!(end, weights(&at(&dir.path().join("other"), 12), ""), "another seed gives another run");
}

#[test]
fn dagger_resumes_bit_identical() {
    resumes_bit_identical(&["algorithm.name=dagger", "algorithm.average=0.9", "schedule.smooth=3"]);
}

#[test]
fn a_vote_when_it_acts_changes_nothing_of_what_dagger_learns() {
    let dir = tempfile::tempdir().unwrap();
    let end = |votes: &str| {
        let folder = dir.path().join(votes);
        let length = ["schedule.episodes=192", "schedule.checkpoint_every=6", "schedule.evaluate_every=6"];
        train(&folder, &[&["algorithm.name=dagger", votes], &length[..]].concat());
        weights(&at(&folder, 6), "")
    };
    assert_eq!(end("model.votes=0"), end("model.votes=3"));
}

#[test]
fn every_learner_of_examples_augments_them_and_resumes_bit_identical() {
    let augmented = ["model.letters=renamed", "algorithm.word_dropout=0.3"];
    resumes_bit_identical(&["algorithm.name=dagger", augmented[0], augmented[1]]);
    for name in ["dagger", "supervised", "true-marginal"] {
        let name = format!("algorithm.name={name}");
        let dir = tempfile::tempdir().unwrap();
        let length = ["schedule.episodes=64", "schedule.checkpoint_every=2", "schedule.evaluate_every=2"];
        let end = |settings: &[&str]| {
            let folder = dir.path().join(settings.len().to_string());
            train(&folder, &[&[name.as_str()], &length[..], settings].concat());
            weights(&at(&folder, 2), "theta.weights.")
        };
        let (plain, renamed, both) = (end(&[]), end(&augmented[..1]), end(&augmented));
        assert!(plain != renamed && renamed != both, "{name} learns from its examples as they are");
    }
}

#[test]
fn reinforce_resumes_bit_identical() {
    resumes_bit_identical(&["algorithm.name=reinforce-continuous"]);
}

#[test]
fn epoch_adel_resumes_bit_identical_in_the_midst_of_an_epoch() {
    // Update 6 is two iterations into the second epoch.
    let epoch = r#"algorithm.epoch={"iterations":4,"passes":2,"snapshots":2}"#;
    resumes_bit_identical(&["algorithm.name=epoch-adel", epoch]);
}

#[test]
fn the_policies_of_epoch_adel_change_at_the_end_of_an_epoch_only() {
    let dir = tempfile::tempdir().unwrap();
    let epoch = r#"algorithm.epoch={"iterations":4,"passes":1,"snapshots":2}"#;
    let length = ["schedule.episodes=160", "schedule.checkpoint_every=1", "schedule.keep=9"];
    train(dir.path(), &[&["algorithm.name=epoch-adel", epoch], &length[..]].concat());
    for policy in ["theta.weights.", "beta.weights."] {
        let of = |update| weights(&at(dir.path(), update), policy);
        assert!(of(0) == of(3) && of(3) != of(4) && of(4) == of(5), "{policy}");
    }
    // The first policy and that of the second epoch stand for the average.
    let snapshot = |update, name| weights(&at(dir.path(), update), name);
    assert!(snapshot(3, "snapshot-1").is_empty() && !snapshot(4, "snapshot-1").is_empty());
    let values = |all: Vec<(String, Vec<u32>)>| all.into_iter().map(|(_, bits)| bits).collect::<Vec<_>>();
    assert_eq!(values(snapshot(4, "snapshot-1.")), values(snapshot(4, "beta.weights.")));
}

#[test]
fn algorithms_that_no_answer_fits_are_not_taught_by_people() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["supervised", "true-marginal"] {
        let told = launch(dir.path(), &[&format!("algorithm.name={name}")], Some(TeacherMode::Human)).unwrap_err();
        assert!(told.to_string().contains("people teach by describing"), "{told}");
    }
}

fn reproduce(folder: &Path, name: &str, more: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    command.current_dir(folder).args(["reproduce", "regex", "--table", "main", "--preset", "tiny", "--seeds", "1,2"]);
    command.args(["--row", "dagger,reinforce-binary", "--episodes", "320", "--jobs", "2", "--device", "cpu"]);
    command.args(["--run-dir", name, "--results", &format!("{name}-results")]).args(more);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code().unwrap(), said)
}

/// The results without what two runs of the same grid may differ in: times.
fn results(folder: &Path, name: &str) -> Results {
    let path = folder.join(format!("{name}-results/regex-main.json"));
    let mut results: Results = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    results.date.clear();
    for seed in results.rows.iter_mut().flat_map(|row| &mut row.seeds) {
        seed.seconds = 0.0;
        seed.curve.iter_mut().for_each(|point| point.seconds = 0.0);
    }
    results
}

/// A level, in percent, that the first row's best reading comes to.
fn level_of_the_best_reading(results: &Results) -> u8 {
    let readings = results.rows[0].seeds.iter().flat_map(|seed| &seed.curve).filter_map(|point| point.validation);
    let best = (100.0 * readings.fold(0.0, f64::max)).floor();
    assert!(best >= 1.0, "some request was understood");
    best as u8
}

/// Episodes of a run before the first reading at a level, in percent.
fn reached_first(seed: &SeedResult, level: f64) -> Option<u64> {
    seed.curve.iter().find(|p| p.validation.is_some_and(|v| 100.0 * v >= level)).map(|p| p.episodes)
}

#[test]
fn an_interrupted_grid_goes_on_and_gives_the_numbers_of_a_whole_one() {
    let dir = tempfile::tempdir().unwrap();
    let (code, said) = reproduce(dir.path(), "whole", &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("DAgger") && said.contains("93.0") && said.contains("2/2"), "{said}");

    let (code, said) = reproduce(dir.path(), "broken", &["--seconds", "0.2"]);
    assert_eq!(code, 3, "{said}");
    assert!(!results(dir.path(), "broken").complete);
    let (code, said) = reproduce(dir.path(), "broken", &[]);
    assert_eq!(code, 0, "{said}");
    let (a, b) = (results(dir.path(), "whole"), results(dir.path(), "broken"));
    assert!(a.complete && a.rows.len() == 2 && a.rows[0].seeds.len() == 2 && !a.rows[0].seeds[0].curve.is_empty());
    assert_eq!(a, b);

    // Nothing is repeated, and other settings are not mixed in.
    let (code, said) = reproduce(dir.path(), "broken", &[]);
    assert!(code == 0 && !said.contains("begins"), "{said}");
    let (code, said) = reproduce(dir.path(), "broken", &["--set", "algorithm.batch=16"]);
    assert!(code == 1 && said.contains("other settings (algorithm.batch)"), "{said}");
    let (code, _) = reproduce(dir.path(), "broken", &["--collect"]);
    assert_eq!((code, results(dir.path(), "broken")), (0, a.clone()));
    // Only readings until then count; a run that did not come so far has no part in it.
    for (until, runs) in [("32", 4), ("1000000", 0)] {
        let (code, said) = reproduce(dir.path(), "broken", &["--collect", "--until", until]);
        let path = dir.path().join(format!("broken-results/regex-main-until-{until}.json"));
        let found: Results = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let all: Vec<_> = found.rows.iter().flat_map(|row| &row.seeds).collect();
        assert_eq!((code, all.len()), (0, runs), "{said}");
        assert!(all.iter().all(|s| s.episodes <= 32 && s.test.is_none()) && said.contains("episodes"), "{said}");
    }
    // A level besides the family's own is told of, too.
    let level = level_of_the_best_reading(&a);
    let (code, said) = reproduce(dir.path(), "broken", &["--collect", "--level", &level.to_string()]);
    let told = results(dir.path(), "broken");
    let row = &told.rows[0];
    let first = row.seeds.iter().filter_map(|seed| reached_first(seed, f64::from(level)));
    let (episodes, n) = first.fold((0.0, 0), |(sum, n), episodes| (sum + episodes as f64, n + 1));
    assert!(code == 0 && told.levels.contains(&f64::from(level)) && said.contains(&format!("to {level}%")), "{said}");
    let of_level = row.reached.iter().find(|reached| reached.level == f64::from(level)).unwrap().episodes;
    assert!(n > 0 && of_level.n == n && (of_level.mean.unwrap() - episodes / n as f64).abs() < 1e-9, "{row:?}");
    assert_eq!(reproduce(dir.path(), "broken", &["--collect", "--level", "0"]).0, 2);
    assert_eq!(reproduce(dir.path(), "broken", &["--until", "32"]).0, 2);
    assert_eq!(reproduce(dir.path(), "broken", &["--row", "nobody"]).0, 2);
}

#[test]
fn runs_that_time_ends_report_test_success_and_can_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let some_seconds = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
        command.current_dir(dir.path()).args(["reproduce", "regex", "--table", "main", "--preset", "tiny"]);
        command.args(["--seeds", "1", "--row", "dagger", "--episodes", "1000000", "--device", "cpu"]);
        command.args(["--seconds", "3", "--conclude", "--run-dir", "ended", "--results", "ended-results"]);
        let Output { status, stderr, .. } = command.output().unwrap();
        assert_eq!(status.code(), Some(3), "{}", String::from_utf8_lossy(&stderr));
        results(dir.path(), "ended")
    };
    let (first, second) = (some_seconds(), some_seconds());
    assert!(first.command.ends_with("--seconds 3 --conclude"), "{}", first.command);
    for found in [&first, &second] {
        let row = &found.rows[0];
        assert!(!found.complete && row.complete == 0 && row.test.n == 1 && row.validation.n == 1, "{row:?}");
    }
    assert!(second.rows[0].seeds[0].updates > first.rows[0].seeds[0].updates);
}

#[test]
fn runs_in_processes_of_their_own_give_the_numbers_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (code, said) = reproduce(dir.path(), "threads", &["--isolation", "threads"]);
    assert_eq!(code, 0, "{said}");
    let processes = ["--isolation", "processes"];
    let (code, said) = reproduce(dir.path(), "processes", &[&processes[..], &["--seconds", "0.5"]].concat());
    assert_eq!(code, 3, "{said}");
    let (code, said) = reproduce(dir.path(), "processes", &processes);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("reinforce-binary seed 2: complete, validation"), "{said}");
    assert_eq!(results(dir.path(), "threads"), results(dir.path(), "processes"));
}

/// A grid without an end whose runs are processes, and the numbers of these processes once they train.
#[cfg(target_os = "linux")]
fn endless(folder: &Path) -> (std::process::Child, Vec<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    command.current_dir(folder).args(["reproduce", "regex", "--table", "main", "--preset", "tiny", "--seeds", "1"]);
    command.args(["--row", "dagger,reinforce-binary", "--episodes", "1000000", "--jobs", "2", "--device", "cpu"]);
    command.args(["--isolation", "processes", "--run-dir", "runs", "--results", "results"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let parent = command.spawn().unwrap();
    let begun = |row: &str| !checkpoint::list(&folder.join(format!("runs/main/{row}/seed-1"))).is_empty();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !(begun("dagger") && begun("reinforce-binary")) {
        assert!(std::time::Instant::now() < patience, "the workers do not begin");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let task = format!("/proc/{0}/task", parent.id());
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let children: String = std::fs::read_dir(task).unwrap().map(|thread| of(thread.unwrap())).collect();
    let children: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
    assert_eq!(children.len(), 2);
    (parent, children)
}

#[cfg(target_os = "linux")]
fn kill(process: &str) {
    assert!(Command::new("kill").args(["-9", process]).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn workers_save_and_end_when_their_command_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut parent, workers) = endless(dir.path());
    let newest = |row: &str| checkpoint::list(&dir.path().join(format!("runs/main/{row}/seed-1"))).last().cloned();
    kill(&parent.id().to_string());
    parent.wait().unwrap();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(120);
    // A process that has ended and waits for nobody is gone at once: its new parent sees to that, or it is a zombie.
    let lives = |worker: &String| {
        let state = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    while workers.iter().any(lives) {
        assert!(std::time::Instant::now() < patience, "the workers go on without their command");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Whole checkpoints are there, from which the grid goes on.
    for row in ["dagger", "reinforce-binary"] {
        checkpoint::load(&newest(row).unwrap()).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_is_killed_is_a_failed_run_and_the_other_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (parent, workers) = endless(dir.path());
    kill(&workers[0]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(Path::new(&format!("/proc/{}/stat", workers[1])).exists());
    assert!(Command::new("kill").args(["-INT", &parent.id().to_string()]).status().unwrap().success());
    let Output { status, stderr, .. } = parent.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("1 of 2 runs failed") && said.contains("its process ended with signal: 9"), "{said}");
    assert!(said.contains("seed 1: saved"), "{said}");
}
