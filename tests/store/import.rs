//! Descriptions from files into a store, and out again.

use crate::postgres::Database;
use crate::support::{AWKWARD, Bench, Clock, RUN, answer, execution, open_with_clocks, simulated};
use iliad::export::manifest::Description;
use iliad::export::{DescriptionsFile, Format, Snapshot};
use iliad::import::{Reading, check, check_telling};
use iliad::registry::Registry;
use iliad::run::{EpisodeRow, Reference};
use iliad::store::{AnswerKind, Filter, NewAnswer, NewExecution, Store};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn view(n: usize) -> Value {
    json!({"pairs": [{"in": format!("ab{n}"), "out": "b"}, {"in": "ca", "out": "c"}]})
}

/// Awkward texts, a correction, an answer that was taken back, one that was withdrawn, and a skip, of two people and of the simulated teacher.
async fn filled() -> Bench {
    let bench = Bench::new().await;
    let reference = Reference { summary: "()(a)()@".into(), execution: json!({"outputs": ["b", "c"]}) };
    let simulated: Vec<_> = AWKWARD
        .iter()
        .zip(100..)
        .map(|(text, n)| EpisodeRow { view: view(n as usize), ..simulated(n, Some(3), text) })
        .collect();
    bench.store.record_simulated(&RUN, &simulated[..2]).await.unwrap();
    let offered: Vec<_> = (0..AWKWARD.len() + 4)
        .map(|n| NewExecution {
            view: view(n),
            reference: Some(reference.clone()),
            wanted: 2,
            ..execution(n as u64, 1)
        })
        .collect();
    bench.store.offer(&RUN, &offered).await.unwrap();
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    for text in AWKWARD {
        bench.describe(ada, text).await;
        bench.describe(eve, text).await;
    }
    let own = bench.store.own_answers(&RUN, ada, 3).await.unwrap();
    let better = NewAnswer {
        shown_at: Some(bench.clock.now()),
        active_ms: Some(1234),
        idle_ms: Some(5),
        preview_arm: Some(true),
        first_text: Some(String::new()),
        ..answer(own[0].execution, ada, "better,\nlonger")
    };
    bench.store.correct(own[0].answer, &better).await.unwrap();
    bench.store.undo(&RUN, own[1].answer, ada, crate::support::TTL).await.unwrap();
    bench.store.retract(own[2].answer, ada).await.unwrap();
    let id = bench.lease(eve).await.unwrap().execution;
    bench.store.answer(&NewAnswer { kind: AnswerKind::Skipped, ..answer(id, eve, "=no") }).await.unwrap();
    bench.store.record_simulated(&RUN, &simulated[2..]).await.unwrap();
    bench
}

/// An export with its manifest; the file.
async fn exported(store: &Store, filter: Filter, format: Format, folder: &Path) -> PathBuf {
    let snapshot = Snapshot::take(store, Registry::builtin(), filter).await.unwrap();
    let mut file = DescriptionsFile::new(snapshot, format).unwrap();
    let mut bytes = Vec::new();
    while let Some((piece, _)) = file.next().await.unwrap() {
        bytes.extend(piece);
    }
    let path = folder.join(format!("rows.{}", format.extension()));
    std::fs::write(&path, bytes).unwrap();
    let manifest = file.manifest(Description::default(), "rows".into(), 0, String::new());
    std::fs::write(format!("{}.manifest.json", path.display()), manifest.text()).unwrap();
    path
}

/// The rows, with keys that are their numbers in the file.
async fn rows(store: &Store, filter: Filter) -> Vec<Value> {
    let snapshot = Snapshot::take(store, Registry::builtin(), filter).await.unwrap();
    let mut bytes = Vec::new();
    iliad::export::write(snapshot, Format::Jsonl, &mut bytes, |_| {}).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut keys, mut teachers) = (HashMap::new(), HashMap::new());
    for (n, row) in rows.iter().enumerate() {
        keys.insert(row["description_id"].as_i64(), n);
        let next = teachers.len();
        teachers.entry(row["teacher_id"].as_i64()).or_insert(next);
    }
    for row in &mut rows {
        for name in ["description_id", "supersedes", "superseded_by"] {
            // No row names one that the filter left out.
            row[name] = json!(keys.get(&row[name].as_i64()).filter(|_| !row[name].is_null()));
        }
        row["teacher_id"] = json!(teachers[&row["teacher_id"].as_i64()]);
    }
    rows
}

#[tokio::test]
async fn what_is_exported_comes_in_again_without_loss() {
    let bench = filled().await;
    for format in Format::ALL {
        for filter in
            [Filter::default(), Filter { kind: Some(AnswerKind::Described), standing: true, ..Filter::default() }]
        {
            let folder = tempfile::tempdir().unwrap();
            let file = exported(&bench.store, filter.clone(), format, folder.path()).await;
            let database = Database::new().await;
            let store = open_with_clocks(folder.path(), database.as_ref(), &Clock::default(), &Clock::default()).await;
            let checked = check(&file, Registry::builtin(), None).unwrap();
            assert_eq!(checked.bad, []);
            assert!(checked.other_configurations(Registry::builtin()).is_empty());
            let imported = checked.store(&store, Registry::builtin()).await.unwrap();
            let expected = rows(&bench.store, filter).await;
            assert_eq!((imported.answers, imported.teachers), (expected.len() as u64, 2));
            let mut back = rows(&store, Filter::default()).await;
            if expected.len() as u64 != bench.store.export_count(None).await.unwrap() {
                // A revision counts the answers that the filter left out, too.
                back.iter_mut().zip(&expected).for_each(|(new, old)| new["revision"] = old["revision"].clone());
            }
            for (new, old) in back.iter().zip(&expected) {
                assert_eq!(new, old, "{format:?}");
            }
            assert_eq!(back.len(), expected.len());
            let again = checked.store(&store, Registry::builtin()).await.unwrap_err().to_string();
            assert!(again.contains("there is a run named"), "{again}");
            assert_eq!(store.export_count(None).await.unwrap(), imported.answers, "all or none");
            let made_by = store.run_label(&RUN).await.unwrap().made_by;
            assert_eq!(made_by, iliad::store::MadeBy::Import);
            assert!(!made_by.goes_on_here(), "there is no agent");
            let copy = check(&file, Registry::builtin(), Some("copy".into())).unwrap();
            copy.store(&store, Registry::builtin()).await.unwrap();
            assert_eq!(store.export_count(Some(&"copy".into())).await.unwrap(), imported.answers);
        }
    }
}

#[tokio::test]
async fn every_bad_row_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.jsonl");
    let good = json!({"run_id": "own", "task": "regex", "episode_id": 1, "view": view(0), "description": "drop a", "teacher_id": 7});
    let with = |name: &str, value: Value| {
        let mut row = good.clone();
        row["episode_id"] = json!(2);
        row[name] = value;
        row.to_string()
    };
    let lines = [
        (good.to_string(), ""),
        (with("run_id", json!("../up")), "`run_id` is a name"),
        (with("task", json!("chess")), "there is no task"),
        (with("view", json!({"pairs": 3})), "`view` is none of the task regex"),
        (with("view", Value::Null), "`view` is never empty"),
        (with("kind", json!("said")), "`kind` is one of described"),
        (with("episode_id", json!(-1)), "`episode_id` is below zero"),
        (with("rating", json!(2)), "`rating` lies between 0 and 1"),
        (with("created_at", json!("today")), "`created_at` is a time"),
        (with("description", json!("")), "`description` is empty"),
        (with("schema_version", json!(1)), "reads version 2"),
        (with("source", json!("simulated")), "a simulated answer has a `teacher_id`"),
        (with("superseded_by", json!(99)), "names the answer 99, which is not there"),
        ("not json".to_owned(), "it is no JSON"),
        (with("episode_id", json!(1)), "has two answers about the episode 1"),
        (with("colour", json!("red")), ""),
    ];
    std::fs::write(&file, lines.iter().map(|(line, _)| format!("{line}\n")).collect::<String>()).unwrap();
    let checked = check(&file, Registry::builtin(), None).unwrap();
    for (n, (line, told)) in lines.iter().enumerate() {
        let found: Vec<&str> =
            checked.bad.iter().filter(|bad| bad.number == n as u64 + 1).map(|bad| bad.reason.as_str()).collect();
        match told.is_empty() {
            true => assert!(found.is_empty(), "{line}: {found:?}"),
            false => assert!(found.iter().any(|reason| reason.contains(told)), "{line}: {found:?}"),
        }
    }
    assert_eq!(checked.unknown, ["colour"]);
    let database = Database::new().await;
    let store = open_with_clocks(folder.path(), database.as_ref(), &Clock::default(), &Clock::default()).await;
    assert!(checked.store(&store, Registry::builtin()).await.is_err());
    assert_eq!(store.run_count().await.unwrap(), 0);
    // The good row by itself comes in, with its preset's configuration.
    std::fs::write(&file, good.to_string()).unwrap();
    check(&file, Registry::builtin(), None).unwrap().store(&store, Registry::builtin()).await.unwrap();
    let row = store.export_page(None, Default::default(), 9).await.unwrap().remove(0);
    assert_eq!((row.text.as_str(), row.run.as_str(), row.is_valid()), ("drop a", "own", true));
    assert_eq!(store.run(&row.run).await.unwrap().config["family"], "regex");
    for (name, told) in [("rows.txt", "ends in .jsonl"), ("missing.csv", "missing.csv")] {
        std::fs::write(folder.path().join("rows.txt"), "x").unwrap();
        let error = check(&folder.path().join(name), Registry::builtin(), None).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// Every format tells how much of the file is read, and how many rows are stored.
#[tokio::test]
async fn reading_and_storing_say_how_far_they_are() {
    let (bench, folder) = (filled().await, tempfile::tempdir().unwrap());
    for format in [Format::Jsonl, Format::Csv, Format::Parquet] {
        let filter = Filter { run: Some(RUN.to_owned()), ..Filter::default() };
        let path = exported(&bench.store, filter, format, folder.path()).await;
        let size = std::fs::metadata(&path).unwrap().len();
        let mut told: Vec<Reading> = Vec::new();
        let run = Some(format!("copy-{}", format.extension()).as_str().into());
        let checked = check_telling(&path, Registry::builtin(), run, u64::MAX, |at| told.push(at)).unwrap();
        let rows = checked.rows();
        assert_eq!(told.iter().map(|at| at.rows).collect::<Vec<_>>(), (1..=rows).collect::<Vec<_>>());
        assert!(told.is_sorted_by_key(|at| at.bytes) && told.iter().all(|at| at.of == size), "{format:?}: {told:?}");
        assert_eq!(told.last().unwrap().bytes, size, "{format:?}");
        let mut stored = Vec::new();
        checked.store_telling(&bench.store, Registry::builtin(), |done| stored.push(done)).await.unwrap();
        assert_eq!(stored, (1..=rows).collect::<Vec<_>>());
    }
}
