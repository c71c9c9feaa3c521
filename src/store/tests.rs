//! Trouble that only comes from inside: a disk that fills up, a connection that may not write.

use super::connection::Durability;
use super::{AnswerKind, NewAnswer, NewExecution, Run, Store, StoreError};
use crate::config::run::TeacherMode;
use crate::ids::{ExecutionId, TeacherId};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

async fn store_with_pool(executions: u64) -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
    let run = Run {
        id: "run".into(),
        family: "regex".into(),
        preset: "tiny".into(),
        config: serde_json::json!({}),
        seed: 1,
        teacher: TeacherMode::Human,
        active: true,
        created_at: OffsetDateTime::now_utc(),
    };
    store.create_run(&run).await.unwrap();
    let new: Vec<NewExecution> = (0..executions).map(execution).collect();
    store.offer(&"run".into(), &new).await.unwrap();
    (folder, store)
}

fn execution(episode: u64) -> NewExecution {
    NewExecution {
        episode,
        update: 1,
        request: "r".into(),
        trace: 1.into(),
        view: 2.into(),
        summary: "s".into(),
        success: false,
        wanted: 1,
        reference: None,
    }
}

fn long_answer(execution: ExecutionId, teacher: TeacherId, client_key: String) -> NewAnswer {
    NewAnswer {
        client_key,
        execution,
        teacher,
        kind: AnswerKind::Described,
        text: "long ".repeat(2_000),
        response: super::Response::Text,
        shown_at: None,
        active_ms: None,
        ..NewAnswer::default()
    }
}

/// Sets a limit on the writer's connection.
async fn pragma(store: &Store, pragma: &'static str) {
    sqlx::query(pragma).execute(store.sqlite().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_said_plainly_and_takes_nothing_that_was_acknowledged() {
    let (_folder, store) = store_with_pool(200).await;
    let teacher = store.teacher("a").await.unwrap().id;
    let mut next = 0;
    // Whatever the tables themselves take, there is room for a few answers.
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(store.sqlite().unwrap()).await.unwrap();
    let limit = format!("PRAGMA max_page_count = {}", pages + 40);
    sqlx::query(sqlx::AssertSqlSafe(limit)).execute(store.sqlite().unwrap()).await.unwrap();
    let (mut acknowledged, refused) = loop {
        next += 1;
        let leased = match store.lease(&"run".into(), teacher, &[], Duration::MINUTE).await {
            Ok(leased) => leased.unwrap(),
            Err(error) => break (next - 1, error),
        };
        match store.answer(&long_answer(leased.execution, teacher, next.to_string())).await {
            Ok(_) => {}
            Err(error) => break (next - 1, error),
        }
    };
    assert!(matches!(refused, StoreError::DiskFull), "{refused:?}");
    assert_eq!(refused.to_string(), "the disk is full");
    assert!(acknowledged > 0);
    assert_eq!(store.unused_answers(&"run".into(), 999).await.unwrap().len(), acknowledged, "reading goes on");
    store.check().await.unwrap();

    // The person makes room and presses Send again.
    pragma(&store, "PRAGMA max_page_count = 1000000").await;
    let leased = store.lease(&"run".into(), teacher, &[], Duration::MINUTE).await.unwrap().unwrap();
    store.answer(&long_answer(leased.execution, teacher, next.to_string())).await.unwrap();
    acknowledged += 1;
    assert_eq!(store.unused_answers(&"run".into(), 999).await.unwrap().len(), acknowledged);
    store.check().await.unwrap();
}

/// A full disk that makes a commit fail. SQLite then takes the transaction back without being asked.
#[tokio::test]
async fn writing_goes_on_after_sqlite_took_a_transaction_back_by_itself() {
    let (_folder, store) = store_with_pool(2).await;
    let teacher = store.teacher("a").await.unwrap().id;
    for durability in [Durability::Full, Durability::Normal] {
        let mut writer = store.writer(durability).await.unwrap();
        let mut tx = writer.begin().await.unwrap();
        sqlx::query("ROLLBACK").execute(tx.sqlite()).await.unwrap();
        drop(tx);
        drop(writer);
        let leased = store.lease(&"run".into(), teacher, &[], Duration::MINUTE).await.unwrap().unwrap();
        store.answer(&long_answer(leased.execution, teacher, leased.execution.to_string())).await.unwrap();
    }
    assert_eq!(store.unused_answers(&"run".into(), 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_database_that_cannot_be_written_is_said_plainly() {
    let (_folder, store) = store_with_pool(1).await;
    let teacher = store.teacher("a").await.unwrap().id;
    pragma(&store, "PRAGMA query_only = ON").await;
    let refused = store.lease(&"run".into(), teacher, &[], Duration::MINUTE).await.unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly), "{refused:?}");
    assert_eq!(store.pool(&"run".into()).await.unwrap().open, 1, "reading goes on");
}

#[tokio::test]
async fn readers_cannot_write() {
    let (_folder, store) = store_with_pool(1).await;
    let refused = sqlx::query("DELETE FROM leases").execute(store.readers().sqlite()).await.unwrap_err();
    assert!(matches!(refused.into(), StoreError::ReadOnly));
}

#[tokio::test]
async fn what_people_typed_is_synced_and_what_the_trainer_tells_is_not_waited_for() {
    let (_folder, store) = store_with_pool(1).await;
    for (durability, level) in [(Durability::Full, 2), (Durability::Normal, 1), (Durability::Full, 2)] {
        let mut writer = store.writer(durability).await.unwrap();
        let mut tx = writer.begin().await.unwrap();
        let set: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(tx.sqlite()).await.unwrap();
        assert_eq!(set, level);
    }
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(store.readers().sqlite()).await.unwrap();
    assert_eq!(mode, "wal");
}
