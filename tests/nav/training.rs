//! NAV in the trainer's loop: policies learn, the same seed gives the same run, an interrupted run stands where it stood,
//! and teachers are made, kept and refused.

use candle_core::Device;
use iliad::family::{Family, TeacherTraining};
use iliad::protocol::{Augmentation, Example, Lesson, Split, World};
use iliad::registry::AnyFamily;
use iliad::registry::Registry;
use iliad::run::Point;
use iliad::task::nav::family::NavFamily;
use iliad::trainer::{FinalReport, Launch, checkpoint};
use std::path::Path;

fn nav() -> &'static dyn AnyFamily {
    Registry::builtin().family("nav").unwrap()
}

fn overridden(overrides: &[&str]) -> Vec<String> {
    overrides.iter().map(|s| (*s).to_owned()).collect()
}

fn launch(folder: &Path, overrides: &[&str]) -> anyhow::Result<FinalReport> {
    let launch = Launch {
        id: "test".into(),
        config: Registry::builtin().configure("nav/tiny", 1, &overridden(overrides)).unwrap(),
        folder: folder.to_owned(),
        device: Device::Cpu,
        store: None,
        teacher: None,
        listener: None,
    };
    let (_handle, thread) = nav().spawn(launch)?;
    thread.join().unwrap()
}

fn weights(folder: &Path, update: u64) -> Vec<(String, Vec<u32>)> {
    let bits = |t: candle_core::Tensor| {
        t.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    };
    let tensors = checkpoint::load(&folder.join(format!("update-{update:08}.safetensors"))).unwrap().1;
    tensors.into_iter().map(|(name, t)| (name, bits(t))).collect()
}

fn points(folder: &Path) -> Vec<Point> {
    let text = std::fs::read_to_string(folder.join("curve.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A teacher of a few updates: it says little that is true, but it is asked and it answers.
fn teacher(path: &Path) {
    let config = Registry::builtin().configure("nav/tiny", 1, &[]).unwrap();
    let request = TeacherTraining {
        config: &config,
        executor_updates: 12,
        describer_updates: 60,
        batch: 16,
        evaluate_every: 30,
        output: path,
        half: true,
        seconds: 0.0,
        device: &Device::Cpu,
        progress: &|_, _| {},
    };
    let report = nav().train_teacher(&request).unwrap();
    assert!(report.n > 0 && report.some_qualifies >= report.greedy_qualifies, "{report:?}");
}

#[test]
fn dagger_learns_to_walk_as_it_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let report = launch(dir.path(), &["algorithm.name=dagger", "schedule.episodes=1600"]).unwrap();
    let success: Vec<f64> = points(dir.path()).iter().filter_map(|p| p.training_success).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (early, late) = (mean(&success[..2]), mean(&success[success.len() - 3..]));
    assert!(late > early + 0.08, "training success {early} at first, {late} in the end");
    assert_eq!((report.episodes, report.feedback.words()), (1600, "demonstrations"));
}

/// From a copy of a whole run everything after update 4 is taken away, as a kill would.
fn resumes_bit_identical(overrides: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    let length = ["schedule.episodes=256", "schedule.checkpoint_every=4", "schedule.evaluate_every=8"];
    let overrides = [&length[..], overrides].concat();
    launch(&whole, &overrides).unwrap();
    launch(&broken, &overrides).unwrap();
    let end = weights(&whole, 8);
    assert_eq!(end, weights(&broken, 8), "the same seed gives the same run");
    assert_ne!(end, weights(&whole, 4), "it learns");
    std::fs::remove_file(broken.join("update-00000008.safetensors")).unwrap();
    launch(&broken, &overrides).unwrap();
    assert_eq!(end, weights(&broken, 8), "an interrupted run ends where the whole one does");
}

/// Along a shortest path the action that leads to its end is the path's own, so imitation of a gold walk that is rolled in is its
/// likelihood: in the house as it is, and in the mirror.
#[test]
fn imitation_of_a_shortest_gold_walk_is_its_likelihood_in_mirrored_houses_too() {
    let loss_of = |mirror: &str| {
        let config = Registry::builtin().configure("nav/tiny", 1, &overridden(&[mirror])).unwrap();
        let world = NavFamily::default().world(&config, &|_, _| {}).unwrap();
        let agent = NavFamily::default().agent(&config, &world, &Device::Cpu).unwrap().agent;
        let tasks: Vec<_> = (0..12).map(|index| world.task(Split::Train, index)).collect();
        let gold: Vec<_> = (0..12).map(|index| world.gold(Split::Train, index)).collect();
        let asked: Vec<_> = tasks.iter().map(|task| (&task.start, task.request.as_str())).collect();
        let examples: Vec<_> = tasks
            .iter()
            .zip(&gold)
            .map(|(task, walk)| Example {
                start: task.start.clone(),
                words: task.request.clone(),
                execution: walk.clone(),
            })
            .collect();
        let augmentation = |word_dropout| Augmentation { word_dropout, seed: 1, purpose: "test", counter: 0 };
        let imitation = |dropout| {
            let augmentation = augmentation(dropout);
            let lesson = Lesson::Imitation { tasks: &asked, rolled: &gold, shown: &gold, augmentation };
            agent.loss(&lesson).unwrap().to_scalar::<f32>().unwrap()
        };
        let likelihood = agent.loss(&Lesson::Likelihood(&[(&examples, 1.0)])).unwrap().to_scalar::<f32>().unwrap();
        assert!((imitation(0.0) - likelihood).abs() < 1e-4, "{} {likelihood}", imitation(0.0));
        assert_ne!(imitation(0.9), imitation(0.0), "words are dropped");
        likelihood
    };
    assert_ne!(loss_of("model.mirror=false"), loss_of("model.mirror=true"));
}

#[test]
fn dagger_and_reinforce_resume_bit_identical() {
    resumes_bit_identical(&["algorithm.name=dagger"]);
    resumes_bit_identical(&["algorithm.name=dagger", "model.mirror=true", "algorithm.word_dropout=0.2"]);
    resumes_bit_identical(&["algorithm.name=dagger", "model.name_dropout=0.2", "model.votes=3"]);
    resumes_bit_identical(&["algorithm.name=reinforce-continuous"]);
}

#[test]
fn adel_learns_from_a_teacher_and_resumes_bit_identical() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("teacher.safetensors");
    teacher(&file);
    // Every description is taken, so that there is something to learn from.
    let models = format!("teacher.models={}", file.display());
    resumes_bit_identical(&[&models, "teacher.pragmatics.tau=0"]);
    resumes_bit_identical(&[&models, "teacher.pragmatics.tau=0", "model.name_dropout=0.2", "model.votes=3"]);
    let described = dir.path().join("described");
    let report = launch(&described, &[&models, "teacher.pragmatics.tau=0", "schedule.episodes=64"]).unwrap();
    assert!(report.descriptions > 30, "{report:?}");
    let first = std::fs::read_to_string(described.join("descriptions.jsonl")).unwrap();
    let example: serde_json::Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert!(example["example"]["words"].as_str().is_some_and(|w| !w.is_empty()), "{example}");

    let config = Registry::builtin().configure("nav/tiny", 1, &overridden(&[&models, "task.seed=2"])).unwrap();
    let told = nav().check(&config).err().map(|e| e.to_string());
    assert_eq!(told, None, "another house of the same kind has the same views");
}

#[test]
fn settings_that_no_run_can_begin_with_are_refused_in_words() {
    for (set, word) in [
        ("task.world=mars", "mars"),
        ("task.world=corpus", "task.path"),
        (r#"task={"x":1}"#, "task"),
        ("model.heads=3", "model.heads"),
        ("model.direction=6", "model.direction"),
        ("model.horizon=1", "model.horizon"),
        ("model.name_dropout=1", "model.name_dropout"),
        ("model.name_dropout=-0.1", "model.name_dropout"),
        ("model.votes=33", "model.votes"),
        ("model.views=nowhere", "model.views"),
        ("teacher.models=nowhere", "teacher.models"),
    ] {
        let config = Registry::builtin().configure("nav/tiny", 1, &overridden(&[set])).unwrap();
        let told = nav().check(&config).map_err(|e| format!("{e:#}")).unwrap_err();
        assert!(told.contains(word), "{set}: {told}");
    }
    // A teacher of the other task is told apart.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("teacher.safetensors");
    std::fs::write(&file, "no teacher").unwrap();
    let told = launch(&dir.path().join("run"), &[&format!("teacher.models={}", file.display())]).unwrap_err();
    assert!(format!("{told:#}").contains("teacher.safetensors"), "{told:#}");
}
