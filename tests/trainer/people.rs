//! Runs that people teach.

use crate::support::{go_live, iliad, wait_for_work};
use iliad::config::run::TeacherMode;
use iliad::ids::AnswerId;
use iliad::run::{Command, RunState};
use iliad::store::{AnswerKind, NewAnswer};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_typed_before_the_simulated_teacher_took_over_is_learnt_from() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.checkpoint_every=10"]).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    wait_for_work(&live).await;
    let lease = live.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap().unwrap();
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Simulated)).unwrap();
    live.until("the simulated teacher", |s| s.descriptions_simulated > 0).await;
    let answer = NewAnswer {
        client_key: "late".into(),
        execution: lease.execution,
        teacher,
        kind: AnswerKind::Described,
        text: "remove the last letter".into(),
        response: iliad::store::Response::Text,
        shown_at: None,
        active_ms: None,
        ..NewAnswer::default()
    };
    live.store.answer(&answer).await.unwrap();
    live.until("the late answer to be used", |s| s.descriptions_human == 1).await;
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_has_one_trainer() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &[]).await;
    live.until("the run to begin", |s| s.state == RunState::Running).await;
    let second = iliad()
        .args(["train", "--resume", "--run-dir"])
        .arg(dir.path().join("run"))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(1) && said.contains("another program is training"), "{said}");
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_and_the_simulated_teacher_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.checkpoint_every=10"]).await;
    wait_for_work(&live).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Mixed { share: 0.3 })).unwrap();
    let mut keys = 0;
    for person in ["first", "second"] {
        let teacher = live.store.teacher(person).await.unwrap().id;
        for _ in 0..10 {
            wait_for_work(&live).await;
            keys += u64::from(live.answer(teacher, &format!("{person} {keys}"), "remove every [ e ]").await);
        }
    }
    assert_eq!(keys, 20);
    live.until("all answers to be used", |s| s.descriptions_human == 20 && s.descriptions_simulated > 50).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Human)).unwrap();
    live.until("people alone to teach", |s| s.teacher == TeacherMode::Human).await;
    let (reply, answer) = tokio::sync::oneshot::channel();
    let form = serde_json::json!({ "words-0": "Banana", "words-1": "" });
    live.handle.commands.send(Command::Try { request: "delete the last letter".into(), start: form, reply }).unwrap();
    let tried = answer.await.unwrap().unwrap();
    assert_eq!(tried.view["pairs"][0]["in"], "banana");
    let (reply, answer) = tokio::sync::oneshot::channel();
    let form = serde_json::json!({});
    live.handle.commands.send(Command::Try { request: "x".into(), start: form, reply }).unwrap();
    assert!(answer.await.unwrap().unwrap_err().contains("at least one word"));
    let store = live.store.clone();
    live.end(Command::Stop).await;
    assert!(!store.run(&"live".into()).await.unwrap().active, "a stopped run is not resumed");
    let rows = store.export_page(None, AnswerId::default(), 100_000).await.unwrap();
    assert_eq!(rows.len() as u64, store.export_count(None).await.unwrap());
    assert_eq!(rows.iter().filter(|r| r.source == iliad::run::Source::Human && r.used_in_update.is_some()).count(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_describes_nothing_spends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.episodes=12"]).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for n in 0..16 {
        wait_for_work(&live).await;
        let lease = live.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap().unwrap();
        let answer = NewAnswer {
            client_key: format!("nothing {n}"),
            execution: lease.execution,
            teacher,
            kind: if n % 2 == 0 { AnswerKind::CannotDescribe } else { AnswerKind::NothingChanged },
            text: String::new(),
            response: iliad::store::Response::Text,
            shown_at: None,
            active_ms: None,
            ..NewAnswer::default()
        };
        live.store.answer(&answer).await.unwrap();
        live.handle.commands.send(Command::DescriptionArrived).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = live.handle.status.borrow().clone();
    assert!(status.state == RunState::Running && status.episodes == 0 && status.update == 0, "{status:?}");
    // They go along with the first description.
    wait_for_work(&live).await;
    assert!(live.answer(teacher, "first", "remove the last letter").await);
    live.until("the description to be used", |s| s.descriptions_human == 1 && s.episodes == 1 && s.update == 1).await;
    assert!(live.store.unused_answers(&"live".into(), 99).await.unwrap().len() <= 16);
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skipping_spends_nothing_and_comes_to_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.episodes=64"]).await;
    wait_for_work(&live).await;
    let skipper = live.store.teacher("skipper").await.unwrap().id;
    let (mut skipped, mut nothing) = (0u64, 0);
    let begun = Instant::now();
    while nothing < 20 && skipped < 2000 {
        let Some(lease) = live.store.lease(&"live".into(), skipper, &[], time::Duration::minutes(2)).await.unwrap()
        else {
            nothing += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let answer = NewAnswer {
            client_key: format!("skip {skipped}"),
            execution: lease.execution,
            teacher: skipper,
            kind: AnswerKind::Skipped,
            text: "too long".into(),
            response: iliad::store::Response::Text,
            shown_at: None,
            active_ms: None,
            ..NewAnswer::default()
        };
        live.store.answer(&answer).await.unwrap();
        live.handle.commands.send(Command::DescriptionArrived).unwrap();
        skipped += 1;
    }
    // Two pools, and a little for each second that passed.
    let most = 2 * 24 + 8 + begun.elapsed().as_secs();
    assert!((24..=most).contains(&skipped), "one person's skips made the machine execute {skipped} episodes");
    let status = live.handle.status.borrow().clone();
    assert!(status.state == RunState::Running && status.episodes == 0, "{status:?}");
    // Somebody who describes finds what was skipped, and it counts.
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    assert!(live.answer(teacher, "first", "remove the last letter").await);
    live.until("the answer to be used", |s| s.descriptions_human == 1 && s.episodes == 1).await;
    live.end(Command::Shutdown).await;
    let again = go_live(dir.path(), &["schedule.episodes=64"]).await;
    again.until("the run to go on", |s| s.state == RunState::Running && s.episodes == 1).await;
    again.end(Command::Shutdown).await;
}
