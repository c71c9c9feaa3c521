//! Data that come in by the command line: files of episodes, and weights that another program wrote.

use super::{iliad, run};
use iliad::nn::artifact;
use iliad::store::Store;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("model_store/shipped").join(name)
}

/// Float32 tensors by name, with their shapes.
type Weights = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// The header and the weights of a file of models.
fn weights(path: &Path) -> (Value, Weights) {
    let (header, tensors): (Value, BTreeMap<String, candle_core::Tensor>) = artifact::load(path).unwrap();
    let read =
        |tensor: candle_core::Tensor| (tensor.dims().to_vec(), tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap());
    (header, tensors.into_iter().map(|(name, tensor)| (name, read(tensor))).collect())
}

/// A file as another program writes it: no header of ours, float64.
fn foreign(path: &Path, weights: &Weights) {
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = weights
        .iter()
        .map(|(name, (shape, values))| (name, shape, values.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect()))
        .collect();
    let views = bytes
        .iter()
        .map(|(name, shape, bytes)| (name.as_str(), TensorView::new(Dtype::F64, (*shape).clone(), bytes).unwrap()));
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

const SMALL: [&str; 16] = [
    "--preset",
    "tiny",
    "--device",
    "cpu",
    "--log-level",
    "off",
    "--set",
    "schedule.episodes=32",
    "--set",
    "schedule.evaluate_every=1",
    "--set",
    "schedule.evaluate_tasks=4",
    "--set",
    "algorithm.pretrain_updates=1000000",
    "--set",
    "algorithm.batch=8",
];

#[test]
fn a_policy_and_a_teacher_of_another_program_are_taken_up() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let (header, policy) = weights(&shipped("regex-tiny-policy.safetensors"));
    foreign(&at("policy.safetensors"), &policy);
    let arguments = "model import policy.safetensors --preset tiny --as policy -o p.safetensors";
    let (code, out, err) = run(iliad(home.path()).args(arguments.split(' ')));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "The weights are in p.safetensors.\n", ""));
    let (made, back) = weights(&at("p.safetensors"));
    assert!(back == policy, "the same weights");
    assert_eq!(made["blueprint"]["sizes"], header["blueprint"]["sizes"]);
    assert_eq!(made["made"]["imported"], "policy.safetensors");
    // Pretraining would take hours with these settings: the run begins with the policy that it was given.
    let (code, _, err) =
        run(iliad(home.path()).arg("train").args(SMALL).args(["--set", "model.pretrained=p.safetensors", "--json"]));
    assert_eq!(code, 0, "{err}");

    let (_, teacher) = weights(&shipped("regex-tiny-teacher.safetensors"));
    foreign(&at("teacher.safetensors"), &teacher);
    let arguments = "model import teacher.safetensors --preset tiny --as teacher --half -o t.safetensors";
    let (code, _, err) = run(iliad(home.path()).args(arguments.split(' ')));
    assert_eq!(code, 0, "{err}");
    assert!(weights(&at("t.safetensors")).1 == teacher, "the shipped teacher is stored as float16, too");
    let more = ["--set", "model.pretrained=p.safetensors", "--set", "teacher.models=t.safetensors", "--json"];
    let (code, _, err) = run(iliad(home.path()).arg("train").args(SMALL).args(more));
    assert_eq!(code, 0, "{err}");
}

#[test]
fn a_checkpoint_of_another_program_is_evaluated_and_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let (_, policy) = weights(&shipped("regex-tiny-policy.safetensors"));
    foreign(&at("policy.safetensors"), &policy);
    let arguments = "model import policy.safetensors --as checkpoint --device cpu -o begun --preset tiny";
    let set = ["--set", "schedule.episodes=32", "--set", "schedule.evaluate_tasks=4", "--set", "algorithm.batch=8"];
    let teacher = ["--set", r#"teacher.mode={"mode":"simulated"}"#];
    let begin = || {
        let mut command = iliad(home.path());
        command.args(arguments.split(' ')).args(set).args(teacher);
        command
    };
    let (code, out, err) = run(&mut begin());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "The weights are in begun/update-00000000.safetensors.\n", ""));
    let (code, _, err) = run(&mut begin());
    assert!(code == 2 && err.contains("holds a run already"), "{err}");
    let evaluate = "evaluate begun/update-00000000.safetensors --limit 4 --device cpu --json";
    let (code, out, err) = run(iliad(home.path()).args(evaluate.split(' ')));
    assert_eq!(code, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["update"], 0);
    let (code, _, err) =
        run(iliad(home.path()).args(["train", "--device", "cpu", "--run-dir", "begun", "--resume", "--json"]));
    assert_eq!(code, 0, "{err}");
    let (header, trained) = weights(&at("begun/best.safetensors"));
    assert!(header["counters"]["update"].as_u64().is_some());

    // Weights of a checkpoint that another program has changed come back with its vocabularies, and no history.
    let reported = ["average.weights.", "theta.weights."]
        .iter()
        .map(|prefix| {
            trained.iter().filter_map(move |(name, w)| Some((name.strip_prefix(prefix)?.to_owned(), w.clone())))
        })
        .map(|part| part.collect::<Weights>())
        .find(|part| !part.is_empty())
        .unwrap();
    let mut tuned = reported;
    tuned.values_mut().for_each(|(_, values)| values.iter_mut().for_each(|x| *x *= 0.5));
    foreign(&at("tuned.safetensors"), &tuned);
    let like = "model import tuned.safetensors --like begun/best.safetensors -o tuned";
    let (code, _, err) = run(iliad(home.path()).args(like.split(' ')));
    assert_eq!(code, 0, "{err}");
    let (again, made) = weights(&at("tuned/update-00000000.safetensors"));
    assert_eq!((&again["blueprint"], &again["counters"]["update"]), (&header["blueprint"], &json!(0)));
    assert!(tuned.iter().all(|(name, w)| made[&format!("theta.weights.{name}")] == *w));
    let (code, _, err) =
        run(iliad(home.path()).args(["train", "--device", "cpu", "--run-dir", "tuned", "--resume", "--json"]));
    assert_eq!(code, 0, "{err}");
}

#[test]
fn weights_that_do_not_fit_are_told_one_by_one() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let (_, mut policy) = weights(&shipped("regex-tiny-policy.safetensors"));
    policy.remove("decoder.bias_hh");
    policy.insert("stranger".into(), (vec![1], vec![0.0]));
    policy.get_mut("predictor.output.bias").unwrap().1[0] = f32::NAN;
    policy.insert("predictor.hidden.bias".into(), (vec![3], vec![0.0; 3]));
    foreign(&at("policy.safetensors"), &policy);
    let import = |more: &str| {
        let arguments = format!("model import policy.safetensors --preset tiny --as policy -o p.safetensors{more}");
        run(iliad(home.path()).args(arguments.split(' ')))
    };
    let (code, out, err) = import("");
    assert!(code == 2 && err.contains("4 tensors do not fit"), "{err}");
    for part in ["`decoder.bias_hh` is missing", "`stranger` is unknown", "not finite", "the shape [3]"] {
        assert!(
            out.lines().any(|line| line.starts_with("policy.safetensors: ") && line.contains(part)),
            "{part}: {out}"
        );
    }
    assert_eq!(import(" --ignore stranger").1.lines().count(), 3);
    assert!(!at("p.safetensors").exists());
    let nav = "model import policy.safetensors --preset nav/tiny --as policy -o p.safetensors";
    let (code, _, err) = run(iliad(home.path()).args(nav.split(' ')));
    assert!(code != 0 && err.contains("import the weights as a checkpoint"), "{err}");
    std::fs::write(at("policy.safetensors"), "nonsense").unwrap();
    assert!(import("").2.contains("no whole safetensors file"));
}

fn has_python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The example writes what the example reads, with the standard library alone.
#[test]
fn the_example_writes_weights_that_are_taken_up() {
    if !has_python() {
        eprintln!("skipped: python3 is missing here, so the example was not run");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples/save_weights.py");
    let policy = shipped("regex-tiny-policy.safetensors");
    let mut python = Command::new("python3");
    python.current_dir(home.path()).arg(example).arg(&policy).arg("scaled.safetensors").args(["--scale", "2"]);
    let written = python.output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let arguments = "model import scaled.safetensors --preset tiny --as policy -o p.safetensors";
    let (code, out, err) = run(iliad(home.path()).args(arguments.split(' ')));
    assert_eq!(code, 0, "{out}{err}");
    let ((_, before), (_, after)) = (weights(&policy), weights(&home.path().join("p.safetensors")));
    assert!(before.iter().all(|(name, (shape, values))| {
        let (there, doubled) = &after[name];
        there == shape && values.iter().zip(doubled).all(|(x, y)| 2.0 * x == *y)
    }));
}

#[test]
fn a_file_of_episodes_comes_in_by_the_command_line() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let rows = "{\"request\":\"go\",\"text\":\"It went.\"}\n{\"request\":\"go\",\"text\":\"It went.\"}\n";
    std::fs::write(at("rows.jsonl"), rows).unwrap();
    std::fs::write(at("bad.jsonl"), format!("{rows}[]\n{{\"request\":\"go\"}}\n")).unwrap();
    let import =
        |arguments: &str| run(iliad(home.path()).args("import --episodes".split(' ').chain(arguments.split(' '))));
    let (code, out, err) = import("bad.jsonl --dry-run");
    assert_eq!((code, out.lines().count()), (2, 2), "{out}");
    assert!(
        out.contains("bad.jsonl: line 3: ") && err.contains("2 of 4 rows are bad; nothing was stored"),
        "{out}{err}"
    );
    let (code, _, err) = import("rows.jsonl --dry-run");
    assert!(code == 0 && err.contains("2 episodes could come in, 0 are there already"), "{err}");
    assert!(!at("iliad-data").exists(), "a dry run makes nothing");
    assert_eq!(import("rows.jsonl --run nowhere").0, 2);
    let (code, out, err) = import("rows.jsonl --show-request");
    let id = out.trim().to_owned();
    assert!(code == 0 && id.starts_with("outside-") && err.contains("2 episodes came in"), "{out}{err}");
    let (code, _, err) = import(&format!("rows.jsonl --run {id} --dry-run"));
    assert!(code == 0 && err.contains("0 episodes could come in, 2 are there already"), "{err}");
    let (code, _, err) = import(&format!("rows.jsonl --run {id}"));
    assert!(code == 0 && err.contains("0 episodes came in, 2 were there already"), "{err}");
    let (code, _, err) = import(&format!("bad.jsonl --run {id}"));
    assert!(code == 2 && err.contains("nothing was stored"), "{err}");
    let (code, _, err) = import("rows.jsonl --run nowhere");
    assert!(code == 2 && err.contains("there is no run nowhere"), "{err}");
    assert_eq!(import("absent.jsonl").0, 2);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&at("iliad-data/iliad.sqlite")).await.unwrap();
        let id = id.as_str().into();
        assert_eq!(store.execution_count(&id).await.unwrap(), 2);
        let run = store.run(&id).await.unwrap();
        assert!(run.active && run.config["pool"]["show_request"] == true, "{run:?}");
        store.close().await;
    });
}
