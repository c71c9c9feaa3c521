//! Recovery from the store: updates and files that a crash or a damage has lost.

use crate::support::{go_live, wait_for_work, weights};
use iliad::config::run::TeacherMode;
use iliad::run::{Command, RunState};
use iliad::store::Store;
use iliad::trainer::checkpoint;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use std::path::Path;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_teach_and_their_answers_are_used_once_even_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let overrides = [
        "algorithm.replay=2",
        "algorithm.ask.candidates=3",
        "algorithm.ask.samples=1",
        "schedule.checkpoint_every=4",
        "schedule.evaluate_every=1000",
    ];
    let live = go_live(dir.path(), &overrides).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    wait_for_work(&live).await;
    for i in 0..7u64 {
        assert!(live.answer(teacher, &format!("key {i}"), "replace the zebra with [ q ]").await);
        live.until("the answer to be used", |s| s.descriptions_human > i).await;
        wait_for_work(&live).await;
    }
    let used = live.store.used_answers(&"live".into(), u64::MAX >> 1).await.unwrap();
    assert_eq!(used.len(), 7);
    let readings = live.store.readings_of_all(&"live".into(), 100).await.unwrap();
    assert_eq!(readings.iter().map(|r| r.update).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    // A crash leaves the store as it is and the checkpoint of update 4. The later updates are lost with the memory.
    let whole = copy(dir.path());
    live.end(Command::Shutdown).await;
    let expected = weights(&dir.path().join("run"));

    // Nothing looks at how the agent takes descriptions while updates are made again, so the same weights also show that
    // looking changes nothing of what is learnt.
    let database = whole.path().join("test.sqlite");
    Store::open(&database).await.unwrap().close().await;
    let options = SqliteConnectOptions::new().filename(&database);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("DELETE FROM comprehension").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let again = go_live(whole.path(), &overrides).await;
    again.until("the lost updates to be made again", |s| s.state == RunState::Running && s.update == 7).await;
    assert!(again.store.readings_of_all(&"live".into(), 100).await.unwrap().is_empty());
    assert_eq!(again.store.used_answers(&"live".into(), u64::MAX >> 1).await.unwrap().len(), 7);
    again.end(Command::Shutdown).await;
    assert_eq!(weights(&whole.path().join("run")), expected);
}

/// People's pauses decide how often the trainer practises between two updates. A run that is resumed after a kill practises as
/// often, and comes to the same weights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn practice_between_answers_is_made_again_as_often_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let overrides = [
        "algorithm.practice.most=40",
        "algorithm.practice.least=2",
        "algorithm.practice.batch=4",
        "algorithm.average=0.9",
        "model.prior=\"ngrams\"",
        "pool.candidates=4",
        "schedule.checkpoint_every=4",
        "schedule.evaluate_every=1000",
    ];
    let live = go_live(dir.path(), &overrides).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..8u64 {
        wait_for_work(&live).await;
        assert!(live.answer(teacher, &format!("key {i}"), "remove every [ e ]").await);
        live.until("the answer to be used", |s| s.descriptions_human > i).await;
        // Some pauses are longer than others.
        live.until("practice", |s| s.practice >= 3 * (i % 3)).await;
    }
    let whole = copy(dir.path());
    let lost = whole.path().join("run/update-00000008.safetensors");
    let expected = weights(&whole.path().join("run"));
    std::fs::remove_file(&lost).unwrap();
    let records = live.store.updates_after(&"live".into(), 4).await.unwrap();
    let practised: Vec<u64> = records.iter().filter_map(|record| record.data["practice"].as_u64()).collect();
    assert_eq!(practised.len(), 4);
    assert!(practised.iter().all(|steps| *steps >= 2), "the least number of steps follows each update: {practised:?}");
    live.end(Command::Shutdown).await;

    let again = go_live(whole.path(), &overrides).await;
    again.until("the lost updates to be made again", |s| s.state == RunState::Running && s.update == 8).await;
    assert!(lost.exists());
    let alone = tempfile::tempdir().unwrap();
    std::fs::copy(&lost, alone.path().join("update-00000008.safetensors")).unwrap();
    assert_eq!(weights(alone.path()), expected);
    again.end(Command::Shutdown).await;
}

/// A recovery that the program's end breaks off again and again keeps what it has made, and comes to the same weights; it writes
/// checkpoints on its way, so that a kill does not undo all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_is_ended_again_and_again_loses_nothing() {
    const STEPS: u64 = 25;
    let dir = tempfile::tempdir().unwrap();
    let overrides = [
        "algorithm.practice.most=25",
        "algorithm.practice.least=25",
        "algorithm.practice.batch=4",
        "algorithm.average=0.9",
        "pool.candidates=4",
        "schedule.checkpoint_every=1000",
        "schedule.evaluate_every=1000",
    ];
    let live = go_live(dir.path(), &overrides).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..8u64 {
        wait_for_work(&live).await;
        assert!(live.answer(teacher, &format!("key {i}"), "remove every [ e ]").await);
        live.until("the answer to be used, and practice", |s| s.update > i && s.practice >= STEPS).await;
    }
    let (whole, broken) = (copy(dir.path()), copy(dir.path()));
    live.end(Command::Shutdown).await;
    let expected = weights(&dir.path().join("run"));

    let again = go_live(whole.path(), &overrides).await;
    again.until("the lost updates to be made again", |s| s.state == RunState::Running && s.update == 8).await;
    // No practice comes before the first update: the hundredth step from the start on is made again for the fifth.
    assert!(whole.path().join("run/update-00000005.safetensors").exists(), "a checkpoint on the way");
    again.until("practice", |s| s.practice >= STEPS).await;
    again.end(Command::Shutdown).await;
    assert_eq!(weights(&whole.path().join("run")), expected);

    let run = broken.path().join("run");
    let made =
        || checkpoint::newest(&run).unwrap().0.map(|(header, _)| (header.counters.update, header.counters.practised));
    let mut before = made();
    assert_eq!(before, Some((0, 0)));
    for pause in [0, 100, 200, 400] {
        let again = go_live(broken.path(), &overrides).await;
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        again.end(Command::Shutdown).await;
        assert!(made() >= before, "{:?} after {before:?}", made());
        before = made();
    }
    let again = go_live(broken.path(), &overrides).await;
    again.until("everything to be made again", |s| s.update == 8 && s.practice >= STEPS).await;
    again.end(Command::Shutdown).await;
    assert_eq!(weights(&run), expected);
}

/// The folder as a kill at this moment would leave it: without the checkpoint that an orderly end writes.
pub fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    std::fs::create_dir(to.path().join("run")).unwrap();
    for folder in ["", "run"] {
        for entry in std::fs::read_dir(from.join(folder)).unwrap().flatten() {
            if entry.path().is_file() {
                std::fs::copy(entry.path(), to.path().join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    to
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_files_are_made_again_from_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = r#"teacher.mode={"mode":"mixed","share":0.3}"#;
    let overrides = [mixed, "schedule.checkpoint_every=5", "schedule.episodes=0", "schedule.point_every=2"];
    let live = go_live(dir.path(), &overrides).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Mixed { share: 0.3 })).unwrap();
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..5 {
        wait_for_work(&live).await;
        live.answer(teacher, &format!("key {i}"), "remove every [ e ]").await;
    }
    live.until("both to have taught", |s| s.descriptions_human == 5 && s.descriptions_simulated > 60).await;
    let store = live.store.clone();
    live.end(Command::Shutdown).await;
    store.set_teacher_mode(&"live".into(), TeacherMode::Human).await.unwrap();
    let run = dir.path().join("run");
    let record = std::fs::read_to_string(run.join("descriptions.jsonl")).unwrap();
    let curve = std::fs::read_to_string(run.join("curve.jsonl")).unwrap();
    let points: Vec<iliad::run::Point> = curve.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    store.record_points(&"live".into(), &points).await.unwrap();
    std::fs::write(run.join("update-00000001.4711.tmp"), "half").unwrap();
    let damages: [fn(&Path); 3] = [
        |run| {
            std::fs::remove_file(run.join("descriptions.jsonl")).unwrap();
            std::fs::remove_file(run.join("curve.jsonl")).unwrap();
        },
        |run| {
            let text = std::fs::read(run.join("descriptions.jsonl")).unwrap();
            std::fs::write(run.join("descriptions.jsonl"), &text[..text.len() / 2]).unwrap();
        },
        |run| std::fs::write(run.join("curve.jsonl"), "nonsense\n{}\n").unwrap(),
    ];
    for damage in damages {
        damage(&run);
        let again = go_live(dir.path(), &overrides).await;
        again.until("the run to go on", |s| s.state == RunState::Running).await;
        again.end(Command::Shutdown).await;
        assert_eq!(std::fs::read_to_string(run.join("descriptions.jsonl")).unwrap(), record);
        assert_eq!(std::fs::read_to_string(run.join("curve.jsonl")).unwrap(), curve);
    }
    assert!(!run.join("update-00000001.4711.tmp").exists(), "what a kill left half written is cleared away");
}
