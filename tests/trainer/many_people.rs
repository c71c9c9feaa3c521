//! Many people at once, beside long updates.

use crate::support::{Live, go_live, wait_for_work};
use iliad::config::run::TeacherMode;
use iliad::run::Command;
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
