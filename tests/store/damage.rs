//! Files that cannot be used, and disks that cannot be written.

use crate::support::{Bench, RUN, answer, execution, file, run};
use iliad::ids::ExecutionId;
use iliad::store::{Store, StoreError};
use sqlx::{Connection, SqliteConnection};
use std::path::Path;

async fn refusal(path: &Path) -> String {
    match Store::open(path).await {
        Err(StoreError::File { file, why }) => {
            assert_eq!(file, path, "the file is named");
            why
        }
        other => panic!("{other:?}"),
    }
}

async fn raw(path: &Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    SqliteConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn a_store_can_be_closed_and_opened_again() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    bench.describe(teacher, "kept").await;
    bench.store.close().await;
    let left: Vec<_> = std::fs::read_dir(bench.folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left, ["iliad.sqlite"], "no side files stay");
    let store = Store::open(&bench.file()).await.unwrap();
    assert_eq!(store.unused_answers(&RUN, 9).await.unwrap()[0].text, "kept");
    assert_eq!(store.teacher("a").await.unwrap().id, teacher);
}

#[tokio::test]
async fn a_missing_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder.path().join("new").join("deeper"));
    Store::open(&path).await.unwrap().create_run(&run(&RUN)).await.unwrap();
    assert!(path.is_file());
}

#[tokio::test]
async fn something_that_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let text = "Dear diary,\n".repeat(1000);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(refusal(&path).await, "the file is not an SQLite database");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert!(refusal(folder.path()).await.contains("is a folder, not a file"));
    assert!(refusal(&file(&path)).await.contains("its folder"));
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let mut other = raw(&path).await;
    sqlx::query("CREATE TABLE bookmarks (url TEXT)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(refusal(&path).await, "it belongs to another program");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_file_from_a_newer_version_is_refused() {
    let bench = Bench::new().await;
    bench.store.close().await;
    let mut newer = raw(&bench.file()).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'of the future', 1, x'00', 1)",
    )
    .execute(&mut newer)
    .await
    .unwrap();
    newer.close().await.unwrap();
    let why = refusal(&bench.file()).await;
    assert_eq!(why, "a newer version of Iliad made it (migration 9999); use that version");
}

#[tokio::test]
async fn a_file_whose_migrations_differ_is_refused() {
    let bench = Bench::new().await;
    bench.store.close().await;
    let mut other = raw(&bench.file()).await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    assert!(refusal(&bench.file()).await.contains("another build of Iliad"));
}

#[tokio::test]
async fn damage_anywhere_in_the_file_is_found_when_it_is_opened() {
    let bench = Bench::new().await;
    bench.offer((0..200).map(|e| (e, 1))).await;
    bench.store.close().await;
    let whole = std::fs::read(bench.file()).unwrap();
    let pages = whole.len() / 4096;
    assert!(pages > 20);
    for page in [1, pages / 2, pages - 1] {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0x5a);
        std::fs::write(bench.file(), &bytes).unwrap();
        let why = refusal(&bench.file()).await;
        assert!(why.contains("damaged"), "page {page}: {why}");
    }
    // Cut off in the middle.
    std::fs::write(bench.file(), &whole[..pages / 2 * 4096 + 100]).unwrap();
    let why = refusal(&bench.file()).await;
    assert!(why.contains("damaged"), "{why}");
    std::fs::write(bench.file(), &whole).unwrap();
    Store::open(&bench.file()).await.unwrap().check().await.unwrap();
}

#[tokio::test]
async fn a_busy_file_says_so_in_plain_words() {
    assert_eq!(StoreError::from(sqlx::Error::PoolTimedOut).to_string(), "the database is busy; try again");
}

#[tokio::test]
async fn a_broken_rule_is_said_in_plain_words() {
    let bench = Bench::new().await;
    let none = iliad::store::NewExecution { wanted: 0, ..execution(0, 1) };
    let refused = bench.store.offer(&RUN, &[execution(1, 1), none]).await.unwrap_err();
    let said = refused.to_string();
    assert_eq!(said, "this cannot be stored, because the rule \"wants at least one answer\" is broken");
    assert_eq!(bench.store.pool(&RUN).await.unwrap().open, 0, "all or nothing");
    let huge = bench.store.offer(&RUN, &[execution(u64::MAX, 1)]).await.unwrap_err();
    assert!(matches!(huge, StoreError::Invalid(_)), "{huge}");
    let teacher = bench.teacher("a").await;
    let none = bench.store.answer(&answer(ExecutionId(1), teacher, "x")).await.unwrap_err();
    assert!(matches!(none, StoreError::NotFound("the execution")));
}

#[tokio::test]
async fn a_file_in_which_something_is_missing_is_refused_by_name() {
    for (drop, name) in [
        ("DROP TABLE leases", "the table leases is missing"),
        ("DROP INDEX answers_unused", "the index answers_unused is missing"),
        ("DROP TRIGGER answers_counted", "the trigger answers_counted is missing"),
        ("DROP TABLE _sqlx_migrations", "its tables are not as Iliad leaves them"),
    ] {
        let bench = Bench::new().await;
        bench.store.close().await;
        let mut other = raw(&bench.file()).await;
        sqlx::query(drop).execute(&mut other).await.unwrap();
        other.close().await.unwrap();
        let why = refusal(&bench.file()).await;
        assert!(why.contains(name) && why.contains("restore a backup"), "{why}");
    }
}

#[tokio::test]
async fn an_empty_file_or_none_beside_runs_that_have_learnt_is_no_new_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    std::fs::create_dir_all(folder.path().join("runs/a")).unwrap();
    std::fs::write(&path, "").unwrap();
    Store::open(&path).await.expect("a run without a checkpoint has nothing to lose").close().await;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(folder.path().join("runs/a/best.safetensors"), "weights").unwrap();
    for content in [None, Some(""), Some("x")] {
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let why = refusal(&path).await;
        assert!(why.contains("holds a run that has learnt") && why.contains("iliad restore"), "{why}");
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), content);
    }
}
