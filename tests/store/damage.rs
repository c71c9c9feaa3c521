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
    let bench = Bench::in_a_file().await;
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
    let bench = Bench::in_a_file().await;
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
    let bench = Bench::in_a_file().await;
    bench.store.close().await;
    let mut other = raw(&bench.file()).await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    assert!(refusal(&bench.file()).await.contains("another build of Iliad"));
}

#[tokio::test]
async fn damage_anywhere_in_the_file_is_found_when_it_is_opened() {
    let bench = Bench::in_a_file().await;
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
    let bench = Bench::in_a_file().await;
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
        let bench = Bench::in_a_file().await;
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

/// The database and its log as they lie there while the store is open, as after a kill: a folder of their own.
fn as_after_a_kill(bench: &Bench) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for name in ["iliad.sqlite", "iliad.sqlite-wal"] {
        std::fs::copy(bench.folder.path().join(name), to.path().join(name)).unwrap();
    }
    to
}

/// The texts of all answers, in their order.
async fn texts(store: &Store) -> Vec<String> {
    let rows = store.export_page(Some(&RUN), iliad::ids::AnswerId::default(), u32::MAX).await.unwrap();
    rows.into_iter().map(|row| row.text).collect()
}

#[tokio::test]
async fn a_damaged_log_is_kept_and_what_comes_before_the_damage_is_there() {
    let bench = Bench::in_a_file().await;
    bench.offer((0..16).map(|episode| (episode, 1))).await;
    let teacher = bench.teacher("a").await;
    let mut given = Vec::new();
    for number in 0..16 {
        given.push(format!("answer {number} {}", "at length ".repeat(40)));
        bench.describe(teacher, &given[number]).await;
    }
    let whole = std::fs::read(bench.folder.path().join("iliad.sqlite-wal")).unwrap();
    assert!(whole.len() > 200_000, "the log holds the answers: {}", whole.len());
    type Spoil = fn(&mut Vec<u8>);
    // Whether the log tells of its damage; one that was cut off ends as any other does.
    let cases: [(&str, bool, Spoil); 6] = [
        ("as it is", false, |_| {}),
        ("a bit towards the end", true, |log| {
            let at = log.len() * 9 / 10;
            log[at] ^= 1;
        }),
        ("a page of zeros", true, |log| {
            let at = log.len() * 8 / 10;
            log[at..at + 4096].fill(0);
        }),
        ("its header", true, |log| log[9] ^= 0x40),
        ("cut off within a page", false, |log| log.truncate(log.len() * 9 / 10)),
        ("nothing left", false, |log| log.clear()),
    ];
    for (what, told, spoil) in cases {
        let folder = as_after_a_kill(&bench);
        let mut log = whole.clone();
        spoil(&mut log);
        std::fs::write(folder.path().join("iliad.sqlite-wal"), &log).unwrap();
        let opened = Store::open(&file(folder.path())).await;
        let kept = std::fs::read(folder.path().join("iliad.sqlite-wal.damaged-1")).ok();
        assert_eq!(kept, told.then_some(log), "{what}: a copy of the damaged log");
        let store = match opened {
            Ok(store) => store,
            // Where the whole log is lost the tables may be, too.
            Err(StoreError::File { why, .. }) => {
                assert!(["its header", "nothing left"].contains(&what) && why.contains("restore"), "{what}: {why}");
                continue;
            }
            Err(other) => panic!("{what}: {other:?}"),
        };
        store.check().await.unwrap();
        let there = if store.run(&RUN).await.is_ok() { texts(&store).await } else { Vec::new() };
        assert_eq!(there, given[..there.len()], "{what}: what is there is the beginning of it");
        assert_eq!(there.len() == given.len(), what == "as it is", "{what}: {} answers", there.len());
        store.close().await;
        // The next start finds nothing new to complain of.
        Store::open(&file(folder.path())).await.unwrap().close().await;
        assert!(!folder.path().join("iliad.sqlite-wal.damaged-2").exists(), "{what}");
    }
}

#[tokio::test]
async fn damage_that_comes_while_the_file_is_open_is_told_by_whoever_meets_it() {
    let bench = Bench::in_a_file().await;
    bench.offer((0..600).map(|episode| (episode, 1))).await;
    let teacher = bench.teacher("a").await;
    bench.describe(teacher, "kept").await;
    bench.store.close().await;
    let store = Store::open(&bench.file()).await.unwrap();
    let mut bytes = std::fs::read(bench.file()).unwrap();
    let pages = bytes.len() / 4096;
    // All but what the store has read already: the schema.
    bytes[pages / 3 * 4096..].fill(0x5a);
    {
        use std::io::{Seek, Write};
        let mut file = std::fs::File::options().write(true).open(bench.file()).unwrap();
        file.seek(std::io::SeekFrom::Start((pages / 3 * 4096) as u64)).unwrap();
        file.write_all(&bytes[pages / 3 * 4096..]).unwrap();
    }
    let mut told = 0;
    let mut look = |what: &str, outcome: Result<(), StoreError>| match outcome {
        Ok(()) => {}
        Err(StoreError::Unusable(why)) => {
            assert!(why.contains("damaged") && why.contains("iliad restore"), "{what}: {why}");
            told += 1;
        }
        Err(other) => panic!("{what}: {other:?}"),
    };
    for episode in 0..20 {
        let except: Vec<ExecutionId> = (0..30 * episode).map(ExecutionId).collect();
        look("a lease", store.lease(&RUN, teacher, &except, crate::support::TTL).await.map(drop));
        look("an offer", store.offer(&RUN, &[execution(1000 + episode as u64, 1)]).await.map(drop));
        look(
            "an answer",
            store.answer(&answer(ExecutionId(30 * episode + 1), teacher, "x")).await.map(drop).or_else(|error| {
                // An execution that cannot be found was never this teacher's.
                if matches!(error, StoreError::NotFound(_) | StoreError::NeverYours) { Ok(()) } else { Err(error) }
            }),
        );
    }
    look("an export", store.export_page(Some(&RUN), iliad::ids::AnswerId::default(), u32::MAX).await.map(drop));
    look("a check", store.check().await);
    assert!(told > 1, "the damage was met");
    store.close().await;
    assert!(refusal(&bench.file()).await.contains("damaged"));
}
