//! The agent is asked in a person's words before an update learns from them and after; both attempts are kept.

use crate::support::{go_live, wait_for_work};
use iliad::ids::AnswerId;
use iliad::run::{Command, Comprehension, Event};
use std::collections::HashMap;

/// The outputs of the words, in order.
fn outputs(view: &serde_json::Value) -> Vec<String> {
    view["pairs"].as_array().unwrap().iter().map(|pair| pair["out"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descriptions_are_carried_out_before_and_after_the_agent_learns_from_them() {
    let dir = tempfile::tempdir().unwrap();
    let overrides =
        ["algorithm.replay=15", "algorithm.replay_fade=0", "algorithm.average=0", "schedule.evaluate_every=1000"];
    let live = go_live(dir.path(), &overrides).await;
    let mut events = live.handle.events.subscribe();
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..4u64 {
        wait_for_work(&live).await;
        assert!(live.answer(teacher, &format!("key {i}"), &format!("my words {i}")).await);
        live.until("the answer to be used", |s| s.descriptions_human > i).await;
    }
    let mut told: Vec<Vec<Comprehension>> = Vec::new();
    while told.len() < 8 {
        let event = tokio::time::timeout(std::time::Duration::from_secs(120), events.recv()).await.unwrap();
        match event.as_deref() {
            Ok(Event::Comprehension(rows)) => told.push(rows.clone()),
            // Other events may come faster than they are read here; these are few.
            _ => continue,
        }
    }
    let rows = live.store.export_page(None, AnswerId::default(), 100).await.unwrap();
    let shown: HashMap<AnswerId, Vec<String>> = rows.iter().map(|row| (row.answer, outputs(&row.view))).collect();
    let mut learnt = 0;
    for (update, pair) in (1..).zip(told.chunks(2)) {
        let [before, after] = pair else { panic!("one before and one after") };
        let (before, after) = (&before[0], &after[0]);
        assert_eq!((before.update, before.descriptions, &before.after), (update, update - 1, &None));
        assert_eq!((before.answer, before.teacher, &before.before), (after.answer, teacher, &after.before));
        let done = after.after.as_ref().unwrap();
        for attempt in [&before.before, done] {
            assert_eq!(attempt.understood, outputs(&attempt.view) == shown[&before.answer], "{attempt:?}");
        }
        learnt += usize::from(done.understood);
        let row = rows.iter().find(|row| row.answer == before.answer).unwrap();
        assert_eq!(
            (row.understood_before, row.understood_after),
            (Some(before.before.understood), Some(done.understood))
        );
    }
    assert!(learnt > 0, "fifteen steps on its few examples teach it some of them");
    assert_eq!(live.store.readings(&"live".into(), teacher, 50).await.unwrap().len(), 4);
    live.end(Command::Shutdown).await;
}
