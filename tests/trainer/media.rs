//! Runs that people teach by demonstrations and by ratings: nothing is lost by a crash, and all media begin with the same
//! executions.

use crate::recovery::copy;
use crate::support::{Live, go_live, wait_for_work, weights};
use iliad::ids::TeacherId;
use iliad::registry::Registry;
use iliad::run::{Command, RunState};
use iliad::store::{AnswerKind, Leased, Response};
use iliad::teacher::people::AnswersAsPeople;
use serde_json::json;
use std::collections::BTreeMap;

/// A demonstration of some edit of the words, as a page would have had it checked.
fn demonstration(leased: &Leased) -> (String, Response) {
    let family = Registry::builtin().family("regex").unwrap();
    let given = if leased.episode.is_multiple_of(2) {
        json!({"expression": "(^)(.)()@z"})
    } else {
        json!({"expression": "()(.)($)@"})
    };
    let checked = family.check_demonstration(&leased.view, &given).unwrap();
    (checked.text, Response::Demonstration(checked.data))
}

fn rating(leased: &Leased) -> (String, Response) {
    (String::new(), Response::Rating((leased.episode % 5) as f64 / 4.0))
}

/// Teaches a run, kills it, and sees that it makes the lost updates again to the same bits; also with a lost description log.
async fn killed_and_made_again(overrides: &[&str], say: fn(&Leased) -> (String, Response), practises: bool) {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), overrides).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..7u64 {
        wait_for_work(&live).await;
        assert!(live.respond(teacher, &format!("key {i}"), say).await);
        live.until("the answer to be used", |s| s.descriptions_human > i && s.episodes > i).await;
        if practises {
            live.until("practice", |s| s.practice >= 3 * (i % 3)).await;
        }
    }
    let whole = copy(dir.path());
    let expected = weights(&whole.path().join("run"));
    let log = std::fs::read_to_string(dir.path().join("run/descriptions.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 6, "the lines that the checkpoint of update 6 counts");
    let lost = whole.path().join("run/update-00000006.safetensors");
    std::fs::remove_file(&lost).unwrap();
    live.end(Command::Shutdown).await;
    let log = std::fs::read_to_string(dir.path().join("run/descriptions.jsonl")).unwrap();

    let again = go_live(whole.path(), overrides).await;
    again.until("the lost updates to be made again", |s| s.state == RunState::Running && s.update == 7).await;
    let alone = tempfile::tempdir().unwrap();
    std::fs::copy(&lost, alone.path().join("update-00000006.safetensors")).unwrap();
    assert_eq!(weights(alone.path()), expected);
    assert_eq!(again.store.used_answers(&"live".into(), u64::MAX >> 1).await.unwrap().len(), 7);
    again.end(Command::Shutdown).await;

    std::fs::remove_file(whole.path().join("run/descriptions.jsonl")).unwrap();
    let rebuilt = go_live(whole.path(), overrides).await;
    rebuilt.until("the run to go on", |s| s.state == RunState::Running && s.update == 7).await;
    rebuilt.end(Command::Shutdown).await;
    assert_eq!(std::fs::read_to_string(whole.path().join("run/descriptions.jsonl")).unwrap(), log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demonstrations_are_used_once_even_after_a_crash() {
    let overrides = [
        "algorithm.name=dagger",
        "algorithm.replay=1",
        "algorithm.practice.most=40",
        "algorithm.practice.least=2",
        "algorithm.practice.batch=4",
        "algorithm.average=0.9",
        "model.prior=\"ngrams\"",
        "schedule.checkpoint_every=3",
        "schedule.evaluate_every=1000",
    ];
    killed_and_made_again(&overrides, demonstration, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ratings_are_used_once_even_after_a_crash() {
    let overrides = [
        "algorithm.name=reinforce-binary",
        "people.rating=stars",
        "schedule.checkpoint_every=3",
        "schedule.evaluate_every=1000",
    ];
    killed_and_made_again(&overrides, rating, false).await;
}

/// The pool of a run that nobody has taught: views and requests by episode.
async fn first_executions(live: &Live) -> BTreeMap<u64, (String, String)> {
    wait_for_work(live).await;
    let mut all = BTreeMap::new();
    for i in 0..6 {
        let teacher = live.store.teacher(&format!("looker {i}")).await.unwrap().id;
        let lease = live.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap();
        let leased = lease.expect("the pool holds more");
        all.insert(leased.episode, (leased.request.unwrap_or_default(), leased.view.to_string()));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_media_begin_with_the_same_executions_and_some_show_the_request() {
    let mut seen = Vec::new();
    for name in ["adel", "dagger", "reinforce-binary"] {
        let dir = tempfile::tempdir().unwrap();
        let live = go_live(dir.path(), &[&format!("algorithm.name={name}")]).await;
        seen.push(first_executions(&live).await);
        live.end(Command::Shutdown).await;
    }
    let views =
        |all: &BTreeMap<u64, (String, String)>| all.iter().map(|(n, (_, v))| (*n, v.clone())).collect::<Vec<_>>();
    assert_eq!(views(&seen[0]), views(&seen[1]));
    assert_eq!(views(&seen[0]), views(&seen[2]));
    assert!(seen[0].values().all(|(request, _)| request.is_empty()));
    assert!(seen[1].values().all(|(request, _)| !request.is_empty()));
    assert_eq!(seen[1], seen[2]);
}

/// A simulated person's next answer to what they are shown, as a page would have stored it; `false` when there is nothing to answer.
async fn answer_as_a_person(live: &Live, people: &dyn AnswersAsPeople, teacher: TeacherId, number: u64) -> bool {
    let lease = live.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap();
    let Some(leased) = lease else { return false };
    let trace = live.store.trace(leased.execution).await.unwrap();
    let said = people.answer(&trace, 1, number).unwrap();
    assert!(said.seconds > 0.0);
    assert_eq!(said, people.answer(&trace, 1, number).unwrap(), "the same person answers the same");
    let family = Registry::builtin().family("regex").unwrap();
    let checked = family.check_demonstration(&leased.view, &said.demonstration);
    let (text, response) = match (said.rating, checked) {
        (Some(rating), _) => (String::new(), Response::Rating(rating)),
        (None, Ok(checked)) => (checked.text, Response::Demonstration(checked.data)),
        (None, Err(_)) => (said.text, Response::Text),
    };
    let unfit = response == Response::Text && people.medium() != iliad::protocol::Medium::Description;
    let kind = if said.cannot || unfit { AnswerKind::CannotDescribe } else { AnswerKind::Described };
    live.store_answer(teacher, leased.execution, &format!("person {number}"), kind, (text, response)).await;
    true
}

/// Simulated people teach a run of the tiny word edits until it has learnt so many answers; its validation success before and
/// after.
async fn taught_by_people(overrides: &[&str], answers: u64) -> (f64, f64) {
    let dir = tempfile::tempdir().unwrap();
    let common = ["algorithm.replay=3", "schedule.evaluate_every=1000", "pool.candidates=4", "model.prior=\"ngrams\""];
    let all = [overrides, &common].concat();
    let live = go_live(dir.path(), &all).await;
    let config = Registry::builtin().configure("tiny", 3, &crate::support::set(&all)).unwrap();
    let people = Registry::builtin().family("regex").unwrap().people(&config).unwrap();
    let teacher = live.store.teacher("a person").await.unwrap().id;
    live.until("the first evaluation", |s| s.state == RunState::Running && s.validation.is_some()).await;
    let before = live.handle.status.borrow().validation.unwrap().value;
    let mut number = 0;
    while live.handle.status.borrow().descriptions_human < answers {
        wait_for_work(&live).await;
        // People are slower than a run that learns.
        while live.store.unused_answers(&"live".into(), 99).await.unwrap().len() >= 8 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        number += u64::from(answer_as_a_person(&live, &*people, teacher, number).await);
        assert!(number < 4 * answers, "most answers teach something");
    }
    let report = live.end(Command::Stop).await;
    (before, report.validation.value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulated_people_teach_by_descriptions() {
    let (before, after) = taught_by_people(&["algorithm.name=adel"], 60).await;
    assert!(after > before + 0.15, "from {before} to {after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulated_people_teach_by_demonstrations() {
    let (before, after) = taught_by_people(&["algorithm.name=dagger"], 60).await;
    assert!(after > before + 0.15, "from {before} to {after}");
}
