//! Texts that were made to break something in files of descriptions and of episodes, by the command line.

use super::{iliad, run};
use crate::texts::{Fate, poisons};
use iliad::export::schema::DESCRIPTIONS;
use iliad::output::spreadsheet;
use iliad::store::{ExportRow, Store};
use serde_json::json;
use std::path::Path;

/// The rows of the database of a data folder.
fn rows(folder: &Path) -> Vec<ExportRow> {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&folder.join("iliad-data/iliad.sqlite")).await.unwrap();
        let rows = store.export_page(None, Default::default(), 10_000).await.unwrap();
        store.close().await;
        rows
    })
}

/// A file of descriptions takes texts of any length: they were accepted where they come from.
#[test]
fn poison_comes_in_files_of_descriptions_letter_for_letter() {
    let view = json!({"pairs": [{"in": "ab", "out": "b"}]});
    let poisons = poisons();
    for ending in ["jsonl", "csv"] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(format!("poison.{ending}"));
        if ending == "jsonl" {
            let row = |(n, text): (usize, &str)| {
                json!({"run_id": "p", "task": "regex", "episode_id": n, "view": view, "description": text, "teacher_id": 1})
                    .to_string()
                    + "\n"
            };
            let lines: String = poisons.iter().map(|poison| poison.text.as_str()).enumerate().map(row).collect();
            std::fs::write(&file, lines).unwrap();
        } else {
            let names = ["run_id", "task", "episode_id", "view", "description", "teacher_id"];
            assert!(names.iter().all(|name| DESCRIPTIONS.iter().any(|column| column.name == *name)));
            let mut table = csv::Writer::from_path(&file).unwrap();
            table.write_record(names).unwrap();
            for (n, poison) in poisons.iter().enumerate() {
                let (n, view, text) = (n.to_string(), view.to_string(), spreadsheet::cell(&poison.text));
                table.write_record(["p", "regex", &n, &view, &text, "1"]).unwrap();
            }
            table.flush().unwrap();
        }
        let (code, out, err) = run(iliad(home.path()).arg("import").arg(&file));
        assert_eq!((code, out.as_str()), (0, ""), "{ending}: {err}");
        let stored = rows(home.path());
        assert_eq!(stored.len(), poisons.len());
        for (row, poison) in stored.iter().zip(&poisons) {
            assert_eq!(row.text, poison.text, "{ending}: {}", poison.name);
        }
        // Out again, as text in every line.
        let (code, out, err) = run(iliad(home.path()).args(["export", "--format", ending]));
        assert_eq!(code, 0, "{err}");
        if ending == "jsonl" {
            let said: Vec<String> = out
                .split_terminator('\n')
                .map(|line| {
                    serde_json::from_str::<serde_json::Value>(line).unwrap()["description"].as_str().unwrap().into()
                })
                .collect();
            assert_eq!(said, poisons.iter().map(|poison| poison.text.clone()).collect::<Vec<_>>());
        }
        let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing but the file and the data folder is there: {names:?}");
    }
}

#[test]
fn poison_comes_in_files_of_episodes_or_is_told_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let poisons = poisons();
    let file = home.path().join("poison.jsonl");
    let write = |fits: bool| {
        let fitting = poisons.iter().filter(|poison| (poison.fate == Fate::Stored) == fits);
        let rows = fitting.map(|poison| json!({"request": poison.text, "text": poison.text}).to_string() + "\n");
        let rows: Vec<String> = rows.collect();
        std::fs::write(&file, rows.concat()).unwrap();
        rows.len()
    };
    let import = || run(iliad(home.path()).args(["import", "--episodes", "poison.jsonl"]));
    let bad = write(false);
    let (code, out, err) = import();
    assert!(code == 2 && err.contains("nothing was stored"), "{err}");
    assert_eq!(out.lines().filter(|line| line.starts_with("poison.jsonl: line ")).count(), bad, "{out}");
    let good = write(true);
    let (code, _, err) = import();
    assert!(code == 0 && err.contains(&format!("{good} episodes came in")), "{err}");
}
