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
        assert_eq!((row["text"].as_str(), row["view"]["pairs"][0]["in"].as_str()), (Some(text), Some(text)));
    }
    let table = iliad(home.path(), &["export", "--format", "csv"]);
    let mut table = csv::Reader::from_reader(&table[..]);
    let texts: Vec<String> = table.records().map(|record| record.unwrap()[10].to_owned()).collect();
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
                    typed("teacher", "Int64") && typed("text", "string") && typed("created_at", "datetime64[ns, UTC]"),
                    "{said}"
                );
            }
            _ => assert!(said.contains('8'), "{said}"),
        }
    }
}
