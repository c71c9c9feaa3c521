//! Descriptions that were made to break something, and descriptions in every script: an agent learns from all of them, and neither
//! fails nor gets weights that are no numbers.

use crate::support::{go_live, wait_for_work, weights};
use crate::texts::{Fate, poisons};
use iliad::run::{Command, RunState};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_learns_from_poison_and_stays_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.checkpoint_every=10", "algorithm.batch=8"]).await;
    let teacher = live.store.teacher("poisoner").await.unwrap().id;
    // Files of descriptions bring in what the page refuses, so the store takes all of them.
    let poisons = poisons();
    let mut taught = 0;
    for (n, poison) in poisons.iter().enumerate() {
        wait_for_work(&live).await;
        assert!(live.answer(teacher, &format!("poison {n}"), &poison.text).await, "{}", poison.name);
        // There is nothing to learn from blanks.
        taught += u64::from(poison.fate != Fate::Blank);
    }
    live.until("all of them to be used", |s| s.descriptions_human >= taught || !matches!(s.state, RunState::Running))
        .await;
    let status = live.handle.status.borrow().clone();
    assert_eq!((status.state, status.descriptions_human), (RunState::Running, taught));
    let store = live.store.clone();
    live.end(Command::Shutdown).await;
    let rows = store.export_page(None, Default::default(), 10_000).await.unwrap();
    let stored: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(stored, poisons.iter().map(|poison| poison.text.as_str()).collect::<Vec<_>>());
    let finite = |bits: &u32| f32::from_bits(*bits).is_finite();
    for (name, values) in weights(&dir.path().join("run")) {
        assert!(values.iter().all(finite), "{name} is finite");
    }
}
