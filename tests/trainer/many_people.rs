//! Many people at once, beside long updates.

use crate::support::{Live, go_live, wait_for_work, weights};
use iliad::config::run::TeacherMode;
use iliad::run::{Command, RunState};
use iliad::store::{AnswerKind, NewAnswer};
use std::time::Duration;

/// Counts of the leases that many scripted people asked for.
#[derive(Default)]
struct Met {
    served: u64,
    /// Times that somebody who had been served before found nothing.
    nothing: u64,
}

/// `people` teachers who each describe `rounds` executions and think `think` milliseconds about each, one and a half times
/// as long at most.
async fn many_teach(live: &Live, people: u64, rounds: u64, think: u64) -> Met {
    let mut all = Vec::new();
    for person in 0..people {
        let (store, commands) = (live.store.clone(), live.handle.commands.clone());
        let teacher = store.teacher(&format!("person {person}")).await.unwrap().id;
        all.push(tokio::spawn(async move {
            let mut met = Met::default();
            for round in 0..rounds {
                let lease = loop {
                    let lease = store.lease(&"live".into(), teacher, &[], time::Duration::minutes(3)).await.unwrap();
                    if let Some(lease) = lease {
                        break lease;
                    }
                    met.nothing += u64::from(round > 0);
                    tokio::time::sleep(Duration::from_millis(250)).await;
                };
                met.served += 1;
                // Not all at once: people think for different times.
                tokio::time::sleep(Duration::from_millis(think + (person * 37 + round * 91) % (think / 2))).await;
                let answer = NewAnswer {
                    client_key: format!("{person} {round}"),
                    execution: lease.execution,
                    teacher,
                    kind: AnswerKind::Described,
                    text: "remove the last letter".into(),
                    response: iliad::store::Response::Text,
                    shown_at: None,
                    active_ms: None,
                    ..NewAnswer::default()
                };
                store.answer(&answer).await.unwrap();
                commands.send(Command::DescriptionArrived).unwrap();
            }
            met
        }));
    }
    let mut sum = Met::default();
    for person in all {
        let met = tokio::time::timeout(Duration::from_secs(300), person).await.expect("everybody is served").unwrap();
        (sum.served, sum.nothing) = (sum.served + met.served, sum.nothing + met.nothing);
    }
    eprintln!("{} were served, {} times there was nothing", sum.served, sum.nothing);
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_teachers_do_not_wait_for_updates() {
    let dir = tempfile::tempdir().unwrap();
    // Updates take long, as they do where two cores train a larger agent.
    let live = go_live(dir.path(), &["algorithm.replay=200", "schedule.evaluate_every=1000"]).await;
    wait_for_work(&live).await;
    let met = many_teach(&live, 60, 4, 3000).await;
    assert_eq!(met.served, 240);
    assert!(met.nothing * 3 <= met.served, "{} of {} found nothing", met.nothing, met.served + met.nothing);
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_served_beside_the_simulated_teacher() {
    let dir = tempfile::tempdir().unwrap();
    let live =
        go_live(dir.path(), &["algorithm.replay=200", "schedule.episodes=0", "schedule.evaluate_every=1000"]).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Mixed { share: 0.05 })).unwrap();
    wait_for_work(&live).await;
    let met = many_teach(&live, 30, 4, 3000).await;
    assert!(met.nothing * 3 <= met.served, "{} of {} found nothing", met.nothing, met.served + met.nothing);
    live.end(Command::Shutdown).await;
}

/// Updates take in several batches where many answers wait, and no practice comes between them. A recovery makes the same updates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_falls_behind_catches_up_with_larger_updates() {
    let overrides = [
        "algorithm.batch=2",
        "algorithm.catch_up=3",
        "algorithm.practice.most=8",
        "algorithm.practice.least=2",
        "algorithm.practice.batch=4",
        "schedule.checkpoint_every=1000",
        "schedule.evaluate_every=1000",
    ];
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &overrides).await;
    wait_for_work(&live).await;
    live.handle.commands.send(Command::Pause).unwrap();
    live.until("the pause", |s| s.state == RunState::Paused).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..14 {
        wait_for_work(&live).await;
        assert!(live.answer(teacher, &format!("key {i}"), "remove every [ e ]").await);
    }
    live.until("all to be counted", |s| s.waiting == 14).await;
    live.handle.commands.send(Command::Resume).unwrap();
    live.until("all to be learned from", |s| s.descriptions_human == 14 && s.waiting == 0 && s.practice == 8).await;
    let records = live.store.updates_after(&"live".into(), 0).await.unwrap();
    let of_each: Vec<(usize, Option<u64>)> =
        records.iter().map(|record| (record.answers.len(), record.data["practice"].as_u64())).collect();
    // Eight wait after the first update; after the second it is one batch, and practice comes first again.
    assert_eq!(of_each, [(6, Some(0)), (6, Some(0)), (2, Some(2))]);
    live.end(Command::Shutdown).await;
    let expected = weights(&dir.path().join("run"));

    for file in std::fs::read_dir(dir.path().join("run")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("update-") && name != "update-00000000.safetensors" {
            std::fs::remove_file(path).unwrap();
        }
    }
    let again = go_live(dir.path(), &overrides).await;
    again
        .until("the updates to be made again", |s| s.state == RunState::Running && s.update == 3 && s.practice == 8)
        .await;
    again.end(Command::Shutdown).await;
    assert_eq!(weights(&dir.path().join("run")), expected);
}

/// The priorities of this process's threads whose names begin so; 19 is the lowest.
#[cfg(target_os = "linux")]
fn niceness_of(name: &str) -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let read = |folder: std::path::PathBuf, file| std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    threads
        .map(|thread| thread.unwrap().path())
        .filter(|thread| read(thread.clone(), "comm").starts_with(name))
        .filter_map(|thread| read(thread, "stat").rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok())
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn training_gives_way_to_pages() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &[]).await;
    wait_for_work(&live).await;
    let pages = niceness_of("tokio").into_iter().max().expect("threads that serve pages");
    let (training, rollouts) = (niceness_of("trainer's"), niceness_of("roll-outs"));
    assert!(training.iter().any(|niceness| *niceness >= pages + 5), "{training:?} beside {pages}");
    assert!(rollouts.iter().any(|niceness| *niceness >= pages + 5), "{rollouts:?} beside {pages}");
    live.end(Command::Shutdown).await;
}
