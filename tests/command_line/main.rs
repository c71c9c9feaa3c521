//! The program as it is typed: what it prints where, and how it ends.

mod accounts;
mod backup;
mod closed_output;
mod cluster;
mod damaged_input;
mod data_in;
mod dataset;
mod poison;
mod rehearsal;
mod studies;
#[path = "../support/texts.rs"]
mod texts;
mod tokens;
mod whole_files;

use iliad::config::run::TeacherMode;
use iliad::run::{EpisodeRow, Source};
use iliad::store::{Run, Store};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use time::OffsetDateTime;

/// The program in a folder of its own, untouched by the settings of whoever runs the tests.
fn iliad(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    command.current_dir(folder);
    command
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn run_with_input(command: &mut Command, input: &str) -> (i32, String, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A run as the store has it, which has ended.
fn stored_run() -> Run {
    Run {
        id: "regex-tiny-1".into(),
        family: "regex".into(),
        preset: "tiny".into(),
        config: json!({}),
        seed: 1,
        teacher: TeacherMode::Simulated,
        active: false,
        created_at: OffsetDateTime::now_utc(),
    }
}

/// A data folder with one run and so many simulated descriptions.
fn filled(folder: &Path, rows: u64) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&folder.join("iliad-data").join("iliad.sqlite")).await.unwrap();
        let run = stored_run();
        store.create_run(&run).await.unwrap();
        let rows: Vec<EpisodeRow> = (0..rows)
            .map(|episode| EpisodeRow {
                episode,
                update: Some(1),
                request: "replace n with c".into(),
                view: json!({"pairs": [["a", "b"]]}),
                summary: "()(n)()@c".into(),
                source: Some(Source::Simulated),
                description: format!("=description, {episode}\n\"quoted\" ünïcödé"),
                candidates: vec![],
                success: true,
                reference: None,
            })
            .collect();
        store.record_simulated(&"regex-tiny-1".into(), &rows).await.unwrap();
        store.close().await;
    });
}

#[test]
fn help_and_version_end_with_0_and_slips_with_2() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [&["--help"][..], &["-h"], &["--version"], &["help", "train"], &["teacher", "train", "--help"]] {
        let (code, out, err) = run(iliad(home.path()).args(arguments));
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        assert!(!out.is_empty());
    }
    for arguments in
        [&["frobnicate"][..], &["train", "--seed", "x"], &["evaluate"], &["--port"], &["train", "--resume"]]
    {
        let (code, out, err) = run(iliad(home.path()).args(arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains("For more information, try '--help'") || err.contains("Usage"), "{err}");
    }
}

#[test]
fn settings_are_shown_with_their_sources() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("iliad.toml"), "port = 1111\ndevice = \"cpu\"\n").unwrap();
    let mut command = iliad(home.path());
    command.env("ILIAD_PORT", "2222").args(["--print-config", "--data-dir", "there"]);
    let (code, out, _) = run(&mut command);
    assert_eq!(code, 0);
    let line = |key: &str| out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("port").contains("2222") && line("port").ends_with("# ILIAD_PORT"), "{out}");
    assert!(line("data_dir").contains("\"there\"") && line("data_dir").ends_with("# --data-dir"), "{out}");
    assert!(line("device").contains("\"cpu\"") && line("device").ends_with("# ./iliad.toml"), "{out}");
    assert!(line("log_level").ends_with("# default"), "{out}");
    assert_eq!(run(iliad(home.path()).args(["serve", "--print-config"])).0, 0);
    assert!(!home.path().join("there").exists(), "showing writes nothing");

    std::fs::write(home.path().join("iliad.toml"), "prot = 1111\n").unwrap();
    let (code, _, err) = run(iliad(home.path()).arg("--print-config"));
    assert_eq!(code, 2);
    assert!(err.contains("unknown key `prot`"), "{err}");
}

#[test]
fn descriptions_are_exported_to_the_standard_output_and_to_a_file() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), 1_234);
    let (code, out, err) = run(iliad(home.path()).arg("export"));
    assert_eq!((code, err.as_str()), (0, ""));
    let rows: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 1_234);
    assert_eq!(rows[7]["description"], "=description, 7\n\"quoted\" ünïcödé");

    let (code, out, err) = run(iliad(home.path()).args(["export", "-o", "all.csv", "--run", "regex-tiny-1"]));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "1234 rows in all.csv\n"));
    let mut csv = csv::Reader::from_path(home.path().join("all.csv")).unwrap();
    let at = csv.headers().unwrap().iter().position(|name| name == "description").unwrap();
    let cells: Vec<String> = csv.records().map(|record| record.unwrap()[at].to_owned()).collect();
    assert_eq!(cells[7], "'=description, 7\n\"quoted\" ünïcödé", "a spreadsheet does not execute it");
    let texts: Vec<&str> = cells.iter().map(|cell| iliad::output::spreadsheet::text(cell)).collect();
    assert_eq!(texts, rows.iter().map(|row| row["description"].as_str().unwrap()).collect::<Vec<_>>());
    assert!(!home.path().join("all.csv.part").exists());
}

#[test]
fn what_cannot_be_exported_is_said_and_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, err) = run(iliad(home.path()).arg("export"));
    assert_eq!(code, 2);
    assert!(err.contains("there is no database in iliad-data"), "{err}");
    assert!(!home.path().join("iliad-data").exists());

    filled(home.path(), 3);
    std::fs::write(home.path().join("old.jsonl"), "the last export").unwrap();
    let (code, _, err) = run(iliad(home.path()).args(["export", "--run", "other", "-o", "old.jsonl"]));
    assert_eq!(code, 2);
    assert!(err.contains("there is no run \"other\"; there is regex-tiny-1"), "{err}");
    assert_eq!(std::fs::read_to_string(home.path().join("old.jsonl")).unwrap(), "the last export");
    assert!(!home.path().join("old.jsonl.part").exists());
    let (code, _, err) = run(iliad(home.path()).args(["export", "-o", "missing/folder/x.jsonl"]));
    assert_eq!(code, 1);
    assert!(err.contains("cannot write missing/folder/x.jsonl: there is no folder missing/folder"), "{err}");

    std::fs::write(home.path().join("iliad-data/iliad.sqlite"), "damaged").unwrap();
    let (code, _, err) = run(iliad(home.path()).arg("export"));
    assert_eq!(code, 1);
    assert!(err.contains("is no database"), "{err}");
}

#[test]
fn expressions_are_executed_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let input = [
        r#"{"expression": "()(n)()@c", "word": "embolden"}"#,
        r#"{"expression": "((n)()@c", "word": "embolden"}"#,
        "{}",
        r#"{"expression": "()(e)($)@", "word": "apple"}"#,
    ];
    let (code, out, err) = run_with_input(iliad(home.path()).args(["execute", "regex"]), &input.join("\n"));
    assert_eq!(code, 2, "one line was bad");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({"output": "emboldec"}));
    assert_eq!(lines[1], json!({"output": null}));
    assert!(lines[2]["error"].is_string() && err.starts_with("line 3: "), "{err}");
    assert_eq!(lines[3], json!({"output": "appl"}));
    let good = run_with_input(iliad(home.path()).args(["execute", "regex"]), input[0]);
    assert_eq!((good.0, good.2.as_str()), (0, ""));
}

#[test]
fn the_doctor_finds_problems_and_its_code_says_so() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), 2);
    let look = |home: &Path| {
        let (code, out, _) = run(iliad(home).args(["doctor", "--json", "--port", "0", "--device", "cpu"]));
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(out.lines().count(), 1);
        assert_eq!(code == 0, found["ok"] == true, "{found}");
        found["checks"].as_array().unwrap().iter().map(|c| (c["name"].clone(), c.clone())).collect::<Vec<_>>()
    };
    let check = |checks: &[(Value, Value)], name: &str| checks.iter().find(|c| c.0 == name).unwrap().1.clone();
    let checks = look(home.path());
    for name in ["data folder", "database", "teacher", "pages", "device", "port"] {
        assert_eq!(check(&checks, name)["ok"], true, "{checks:?}");
    }
    assert!(check(&checks, "database")["found"].as_str().unwrap().contains("1 run, 2 answers"));
    std::fs::write(home.path().join("iliad-data/iliad.sqlite"), "damaged").unwrap();
    let database = check(&look(home.path()), "database");
    assert_eq!(database["ok"], false);
    assert!(database["advice"].as_str().unwrap().contains("keep a copy"), "{database}");
    let (code, out, _) = run(iliad(home.path()).arg("doctor"));
    assert_eq!(code, 1);
    assert!(out.contains("PROBLEM  database"), "{out}");
}

#[test]
fn the_papers_bound_is_checked_and_drawn() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, err) = run(iliad(home.path()).args(["dev", "theory", "--epochs", "50", "--plot", "theory.svg"]));
    assert_eq!((code, err.as_str()), (0, "plot in theory.svg\n"));
    assert!(out.contains("The bound held at every t from 1 to 50 in every start (150 checks)."), "{out}");
    assert!(std::fs::read_to_string(home.path().join("theory.svg")).unwrap().starts_with("<svg"));

    let small = "dev theory --json --epochs 3 --actions 4 --descriptions 3";
    let (_, out, _) = run(iliad(home.path()).args(small.split(' ')));
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((found["applies"].as_bool(), found["rows"][0]["bound"].is_null()), (Some(false), true));
    assert_eq!(run(iliad(home.path()).args(["dev", "theory", "--inconsistent", "2"])).0, 2);
}

#[test]
fn a_report_is_one_file_and_says_what_it_lacks() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("results")).unwrap();
    std::fs::write(home.path().join("results/speed.json"), r#"{"value": 41.7, "unit": "lines/min"}"#).unwrap();
    let (code, out, err) = run(iliad(home.path()).args(["report", "--results", "results"]));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "1 results and 0 runs in report.html\n"));
    assert!(std::fs::read_to_string(home.path().join("report.html")).unwrap().contains("41.7 lines/min"));
    for arguments in [&["report"][..], &["report", "--results", "absent"], &["report", "--run", "results"]] {
        assert_eq!(run(iliad(home.path()).args(arguments)).0, 2, "{arguments:?}");
    }
}
