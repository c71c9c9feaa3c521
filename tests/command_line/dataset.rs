//! The dataset as other programs read it: the Python of docs/export.md, and lines that no reader cuts.

use iliad::run::{EpisodeRow, Source};
use iliad::store::Store;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Texts with everything that some reader takes for the end of a line, a field or a file.
const TEXTS: [&str; 8] = [
    "plain",
    "line\u{2028}separator and paragraph\u{2029}separator",
    "next\u{85}line",
    "vertical\u{b}tab, form\u{c}feed, \u{1c}\u{1d}\u{1e}",
    "lone\rcarriage return",
    "two\r\nlines\nand more",
    "\"quotes\", commas; =1+1",
    "NA",
];

/// A data folder whose first answers are simulated.
fn filled(home: &Path) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&home.join("iliad-data").join("iliad.sqlite")).await.unwrap();
        let run = super::stored_run();
        store.create_run(&run).await.unwrap();
        let rows: Vec<EpisodeRow> = (0..)
            .zip(TEXTS)
            .map(|(episode, text)| EpisodeRow {
                episode,
                update: (episode > 3).then_some(1),
                request: text.into(),
                view: json!({"pairs": [{"in": text, "out": "b"}]}),
                summary: text.into(),
                source: Some(Source::Simulated),
                description: text.into(),
                candidates: vec![],
                success: true,
                reference: None,
            })
            .collect();
        store.record_simulated(&"regex-tiny-1".into(), &rows).await.unwrap();
        store.close().await;
    });
}

fn iliad(home: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    let output = command.current_dir(home).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output.stdout
}

#[test]
fn no_reader_cuts_a_line_of_the_export() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let text = String::from_utf8(iliad(home.path(), &["export"])).unwrap();
    // Where Python's str.splitlines cuts.
    let cuts = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines: Vec<&str> = text.split(cuts).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), TEXTS.len());
    for (line, text) in lines.iter().zip(TEXTS) {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!((row["description"].as_str(), row["view"]["pairs"][0]["in"].as_str()), (Some(text), Some(text)));
    }
    let table = iliad(home.path(), &["export", "--format", "csv"]);
    let mut table = csv::Reader::from_reader(&table[..]);
    let at = table.headers().unwrap().iter().position(|name| name == "description").unwrap();
    let texts: Vec<String> = table.records().map(|record| record.unwrap()[at].to_owned()).collect();
    assert_eq!(texts, TEXTS);
}

/// Blocks of Python in a Markdown file.
fn python(text: &str) -> Vec<String> {
    text.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

fn can(program: &str, module: &str) -> bool {
    let mut command = Command::new(program);
    command.args(["-c", &format!("import {module}")]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn the_documented_python_reads_the_export() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    iliad(home.path(), &["export", "-o", "descriptions.jsonl"]);
    iliad(home.path(), &["export", "-o", "descriptions.csv"]);
    iliad(home.path(), &["export", "--schema", "-o", "schema.json"]);
    iliad(home.path(), &["export", "--format", "dataset", "-o", "my-data"]);
    let program = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let blocks = python(include_str!("../../docs/export.md"));
    assert!(blocks.len() >= 4, "{blocks:?}");
    for block in blocks {
        let module = ["datasets", "pandas"]
            .into_iter()
            .find(|m| block.contains(&format!("{m} import")) || block.contains(&format!("import {m}")));
        if !can(&program, module.unwrap_or("json")) {
            println!("skipped: {program} has no {}", module.unwrap_or("json"));
            continue;
        }
        let mut command = Command::new(&program);
        command
            .args(["-X", "utf8", "-c", &block])
            .current_dir(home.path())
            .env("HF_HOME", home.path())
            .env("HF_HUB_OFFLINE", "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{block}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
        match module {
            None => assert!(said.contains("8 rows, 8 descriptions that stand"), "{said}"),
            Some("pandas") if block.contains("Int64") || block.contains("types") => {
                let typed = |column: &str, kind: &str| {
                    said.lines().any(|line| line.starts_with(column) && line.ends_with(kind))
                };
                assert!(
                    typed("teacher_id", "Int64")
                        && typed("description", "string")
                        && typed("created_at", "datetime64[ns, UTC]"),
                    "{said}"
                );
            }
            _ => assert!(said.contains('8'), "{said}"),
        }
    }
}

/// Answers of people whom the agent understood better afterwards, and of the simulated teacher, as rows of a file.
fn described() -> String {
    let row = |n: usize, more: Value| {
        let mut row = json!({"run_id": "words", "task": "regex", "episode_id": n, "request": "r", "success": n.is_multiple_of(2),
            "view": {"pairs": [{"in": "a", "out": "b"}]}, "description": format!("make it so {n}"), "policy_version": n / 2});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{row}\n")
    };
    let told = |n| json!({"teacher_id": n % 2 + 1, "understood_before": n == 0, "understood_after": true, "used_in_updates": [n + 1]});
    (0..4).map(|n| row(n, told(n))).chain((4..6).map(|n| row(n, json!({"source": "simulated"})))).collect()
}

#[test]
fn the_notebook_is_whole_and_its_cells_run() {
    let text = include_str!("../../docs/examples/explore_dataset.ipynb");
    let notebook: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&notebook["nbformat"], &notebook["metadata"]["kernelspec"]["name"]), (&json!(4), &json!("python3")));
    let mut program = String::new();
    for cell in notebook["cells"].as_array().unwrap() {
        let lines: Vec<&str> = cell["source"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        if cell["cell_type"] == "code" {
            assert!(cell["outputs"] == json!([]) && cell["execution_count"].is_null(), "{cell}");
            program += &lines.concat();
            program += "\n";
        }
    }
    for machine in ["/home/", "/Users/", "/tmp", "/work", "C:\\"] {
        assert!(!text.contains(machine), "the notebook names the machine path {machine}");
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("words.jsonl"), described()).unwrap();
    iliad(home.path(), &["import", "words.jsonl"]);
    iliad(home.path(), &["export", "--format", "dataset", "-o", "my-data"]);
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    if !(can(&python, "pandas") && can(&python, "pyarrow")) {
        println!("skipped: {python} has no pandas or no pyarrow, so the cells of the notebook were not run");
        return;
    }
    let mut command = Command::new(&python);
    command.args(["-X", "utf8", "-W", "error", "-c", &program]).current_dir(home.path()).env_remove("DATASET");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "6 rows of 1 runs, by 2 people",
        "3 descriptions were new to the agent, and it did 100% of them",
        "over 3 updates",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

fn refused(home: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    let output = command.current_dir(home).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn exports_have_manifests_filters_and_forms() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let path = |name: &str| home.path().join(name);
    iliad(home.path(), &["export", "--source", "simulated", "--licence", "MIT", "-o", "all.parquet"]);
    let manifest: Value = serde_json::from_slice(&std::fs::read(path("all.parquet.manifest.json")).unwrap()).unwrap();
    assert_eq!((&manifest["licence"], &manifest["counts"]["descriptions"]), (&json!("MIT"), &json!(TEXTS.len())));
    assert_eq!((&manifest["filters"]["source"], &manifest["runs"][0]["preset"]), (&json!("simulated"), &json!("tiny")));
    assert_eq!(manifest["files"][0]["bytes"], std::fs::metadata(path("all.parquet")).unwrap().len());
    assert!(iliad(home.path(), &["export", "--source", "human"]).is_empty());
    let pairs = String::from_utf8(iliad(home.path(), &["export", "--form", "pairs"])).unwrap();
    assert_eq!(pairs.lines().count(), TEXTS.len());
    // A folder is replaced when that is asked for.
    iliad(home.path(), &["export", "--format", "dataset", "-o", "data-set"]);
    assert!(path("data-set/data/train-00000.parquet").is_file() && path("data-set/README.md").is_file());
    assert!(refused(home.path(), &["export", "--format", "dataset", "-o", "data-set"]).contains("--force"));
    iliad(home.path(), &["export", "--format", "dataset", "-o", "data-set", "--force"]);
    for (arguments, told) in [
        (&["export", "--format", "dataset"][..], "name it with -o"),
        (&["export", "--form", "pears"], "did you mean"),
        (&["export", "--from", "yesterday"], "2026-01-31"),
        (&["export", "--study", "none"], "there is no study"),
        (&["export", "--name", "a/b"], "letters, digits"),
    ] {
        let said = refused(home.path(), arguments);
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn a_data_set_comes_in_again_and_bad_rows_are_listed() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    iliad(home.path(), &["export", "--format", "dataset", "-o", "data-set"]);
    iliad(home.path(), &["import", "data-set", "--dry-run", "--data-dir", "new"]);
    assert!(!home.path().join("new").exists(), "a dry run makes nothing");
    iliad(home.path(), &["import", "data-set", "--data-dir", "new"]);
    let texts = |folder: &str| -> Vec<Value> {
        let text = String::from_utf8(iliad(home.path(), &["export", "--data-dir", folder])).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(texts("new"), texts("iliad-data"));
    assert!(refused(home.path(), &["import", "data-set", "--data-dir", "new"]).contains("--run"));
    std::fs::write(home.path().join("bad.jsonl"), "{}\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    let output = command.current_dir(home.path()).args(["import", "--dry-run", "bad.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("bad.jsonl: row 1: `episode_id` is never empty"),
        "{output:?}"
    );
}
