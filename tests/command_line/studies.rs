//! `iliad study`: studies from files and back, and their states.

use super::{iliad, run, run_with_input};
use iliad::config::run::TeacherMode;
use iliad::store::{Run, Store};
use std::path::Path;
use time::OffsetDateTime;

/// A data folder with a run called `words-1`.
fn filled(home: &Path) {
    let run = Run {
        id: "words-1".into(),
        family: "regex".to_owned(),
        preset: "tiny".to_owned(),
        config: serde_json::json!({}),
        seed: 1,
        teacher: TeacherMode::Human,
        active: false,
        created_at: OffsetDateTime::now_utc(),
    };
    let database = home.join("iliad-data").join("iliad.sqlite");
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&database).await.unwrap();
        store.create_run(&run).await.unwrap();
        store.close().await;
    });
}

fn study(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(iliad(home).arg("study").args(arguments))
}

const FILE: &str = "\
title = \"Words of people\"
guidelines = \"Say what *and* where.\"
goal = 12

[qualification]
executions = 3
right = 2

[[arms]]
run = \"words-1\"
name = \"descriptions\"
";

#[test]
fn a_study_is_made_from_a_file_shown_as_one_and_opened() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, told) = study(home.path(), &["list"]);
    assert!(code == 2 && told.contains("there is no database in iliad-data"), "{told}");
    filled(home.path());
    let (code, listed, told) = study(home.path(), &["list"]);
    assert!(code == 0 && listed.is_empty() && told.contains("There is no study yet"), "{told}");
    std::fs::write(home.path().join("study.toml"), FILE).unwrap();
    let (code, made, told) = study(home.path(), &["create", "--file", "study.toml"]);
    assert_eq!((code, made.trim()), (0, "words-of-people"), "{told}");
    let (code, shown, told) = study(home.path(), &["show", "words-of-people"]);
    assert!(code == 0 && told.contains("in the state draft"), "{told}");
    assert!(shown.contains("goal = 12") && shown.contains("run = \"words-1\""), "{shown}");
    // The printed file makes another study, without the run that belongs to this one.
    let begin = shown.find("[[arms]]").unwrap();
    let again = ["study", "create", "--file", "-", "--id", "words-2"];
    let (code, made, told) = run_with_input(iliad(home.path()).args(again), &shown[..begin]);
    assert_eq!((code, made.trim()), (0, "words-2"), "{told}");
    let (code, _, told) = run_with_input(iliad(home.path()).args(again), &shown);
    assert!(code == 2 && told.contains("there is a study called words-2 already"), "{told}");
    let (code, _, told) = study(home.path(), &["state", "words-2", "open"]);
    assert!(code == 2 && told.contains("has no run"), "{told}");
    let (code, _, told) = study(home.path(), &["state", "words-of-people", "open"]);
    assert!(code == 0 && told.contains("is open"), "{told}");
    let (code, _, told) = study(home.path(), &["state", "words-of-people", "draft"]);
    assert!(code == 2 && told.contains("open, paused or closed"), "{told}");
    let (code, _, told) = study(home.path(), &["state", "words-of-peple", "closed"]);
    assert!(code == 2 && told.contains("did you mean `words-of-people`?"), "{told}");
    let (_, json, _) = study(home.path(), &["show", "words-of-people", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&shown["state"], &shown["settings"]["goal"]), (&"open".into(), &12.into()));
    assert!(!json.contains("secret"), "{json}");
    let (_, listed, _) = study(home.path(), &["list"]);
    assert!(listed.lines().count() == 2 && listed.contains("Words of people"), "{listed}");
}

#[test]
fn what_is_wrong_in_a_file_is_said() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let create = |text: &str| {
        std::fs::write(home.path().join("study.toml"), text).unwrap();
        let (code, _, told) = study(home.path(), &["create", "--file", "study.toml"]);
        assert_eq!(code, 2, "{told}");
        told
    };
    assert!(create("goal = 3").contains("Give the study a title"));
    assert!(create("title = 'x'\ngaol = 3").contains("gaol"));
    assert!(create(&FILE.replace("words-1", "words-9")).contains("the run is not there"));
    let (code, _, told) = study(home.path(), &["create", "--file", "none.toml"]);
    assert!(code == 2 && told.contains("none.toml cannot be read"), "{told}");
}
