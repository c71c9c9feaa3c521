//! Grids of runs as jobs of a scheduler: each job is an ordinary command that goes on where it was broken off, and what is collected
//! afterwards is what one process would have made.

use super::{iliad, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A grid of two rows and two seeds that takes seconds.
const GRID: [&str; 13] = [
    "reproduce",
    "regex",
    "--table",
    "main",
    "--preset",
    "tiny",
    "--row",
    "adel,dagger",
    "--seeds",
    "1,2",
    "--episodes",
    "160",
    "--set=schedule.checkpoint_every=2",
];

/// A folder with the jobs of the grid for a scheduler.
fn planned(scheduler: &str) -> tempfile::TempDir {
    let home = tempfile::Builder::new().prefix("it's a grid ").tempdir().unwrap();
    let (code, said, told) = run(iliad(home.path())
        .args(GRID)
        .args(["--run-dir", "runs", "--results", "results"])
        .args(["--device", "cpu", "--plan", scheduler, "-o", "jobs"]));
    assert_eq!(code, 0, "{told}");
    assert!(said.starts_with("4 runs in ") && said.contains("collect:"), "{said}");
    assert!(!home.path().join("runs").exists() && !home.path().join("results").exists(), "nothing is trained yet");
    home
}

/// The reports of the four runs, with the time of each.
fn reports(home: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    for row in ["adel", "dagger"] {
        for seed in [1, 2] {
            let report = home.join(format!("runs/main/{row}/seed-{seed}/report.json"));
            if let Ok(about) = report.metadata() {
                found.push((report, about.modified().unwrap()));
            }
        }
    }
    found
}

/// The rows of collected results, without what the clock says.
fn rows(results: &Path) -> Value {
    fn timeless(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("seconds");
                members.values_mut().for_each(timeless);
            }
            Value::Array(items) => items.iter_mut().for_each(timeless),
            _ => {}
        }
    }
    let text = std::fs::read_to_string(results.join("regex-main.json")).unwrap();
    let mut rows = serde_json::from_str::<Value>(&text).unwrap()["rows"].take();
    timeless(&mut rows);
    rows
}

/// Collects, and compares with the same grid in one process.
fn collected(home: &Path) {
    let done = Command::new("sh").arg(home.join("jobs/collect.sh")).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let (code, _, told) =
        run(iliad(home).args(GRID).args(["--run-dir", "alone", "--results", "alone", "--device", "cpu"]));
    assert_eq!(code, 0, "{told}");
    let of_jobs = rows(&home.join("results"));
    assert_eq!(of_jobs, rows(&home.join("alone")));
    assert!(of_jobs[0]["complete"] == 2 && of_jobs[1]["complete"] == 2, "{of_jobs}");
}

/// Whether a command is there and answers a question well.
fn answers(program: &str, arguments: &[&str]) -> bool {
    let asked = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

#[cfg(unix)]
#[test]
fn jobs_of_a_shell_go_on_where_they_were_broken_off_and_are_collected() {
    let home = planned("shell");
    let jobs = std::fs::read_to_string(home.path().join("jobs/jobs.txt")).unwrap();
    assert_eq!(jobs.lines().count(), 4);
    // One is killed after its first checkpoint but one.
    let mut first = Command::new("sh").args(["-c", &format!("exec {}", jobs.lines().next().unwrap())]).spawn().unwrap();
    let broken = home.path().join("runs/main/adel/seed-1");
    let begun = Instant::now();
    let newer = |folder: &Path| {
        iliad::trainer::checkpoint::list(folder).last().is_some_and(|p| !p.ends_with("update-00000000.safetensors"))
    };
    while !newer(&broken) && first.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(300), "the run makes no progress");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let start = || -> Output { Command::new("sh").arg(home.path().join("jobs/run.sh")).arg("2").output().unwrap() };
    let done = start();
    assert!(done.status.success(), "{done:?}");
    let before = reports(home.path());
    assert_eq!(before.len(), 4, "{done:?}");
    // Complete runs are passed over.
    assert!(start().status.success());
    assert_eq!(reports(home.path()), before);
    collected(home.path());
    // A job that fails is told.
    std::fs::write(home.path().join("runs/main/adel/seed-1/report.json"), "nonsense").unwrap();
    let done = start();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("some runs failed"), "{done:?}");
}

#[test]
fn jobs_of_slurm_are_an_array_that_is_collected() {
    if !answers("sinfo", &["--noheader"]) || !answers("sbatch", &["--version"]) {
        println!("skipped: no cluster of Slurm's is here");
        return;
    }
    let home = planned("slurm");
    let submitted = |arguments: &[&str]| {
        let mut command = Command::new("sbatch");
        command.args(["--wait", "--cpus-per-task=1"]).args(arguments).arg(home.path().join("jobs/run.sbatch"));
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    submitted(&[]);
    let before = reports(home.path());
    assert_eq!(before.len(), 4);
    submitted(&[]);
    assert_eq!(reports(home.path()), before, "what is complete is passed over");
    collected(home.path());
}

#[test]
fn tasks_of_ray_are_carried_out_and_collected() {
    if !answers("python3", &["-c", "import ray"]) {
        println!("skipped: Ray is not installed");
        return;
    }
    let home = planned("ray");
    let start = || Command::new("python3").arg(home.path().join("jobs/run.py")).args(["--cpus", "1"]).output().unwrap();
    let done = start();
    assert!(done.status.success(), "{done:?}");
    let before = reports(home.path());
    assert_eq!(before.len(), 4, "{done:?}");
    let again = start();
    assert!(again.status.success() && reports(home.path()) == before, "what is complete is passed over: {again:?}");
    collected(home.path());
}

#[test]
fn a_plan_that_cannot_be_is_told_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["--plan", "shell"][..], "--output"),
        (&["-o", "jobs"], "--plan"),
        (&["--plan", "pbs", "-o", "jobs"], "slurm"),
        (&["--plan", "shell", "-o", "jobs", "--collect"], "cannot be used with"),
        (&["--plan", "shell", "-o", "jobs", "--set", "task.world=nowhere"], "nowhere"),
    ] {
        let (code, _, told) = run(iliad(home.path()).args(GRID).args(arguments));
        assert!(code == 2 && told.contains(words), "{arguments:?}: {told}");
        assert!(!home.path().join("jobs").exists(), "{arguments:?}");
    }
}
