//! Episodes of agents elsewhere, from files.

use crate::support::{Bench, RUN};
use iliad::app::outside;
use iliad::ids::RunId;
use iliad::import::episodes::{read, refusal};
use iliad::store::{EpisodesImported, MOST_OPEN, StoreError};
use serde_json::json;

const FAR: &str = "outside-1";

async fn bench() -> (Bench, RunId) {
    let bench = Bench::new().await;
    bench.store.create_run(&outside::row(FAR.into(), false)).await.unwrap();
    (bench, FAR.into())
}

fn rows(numbers: impl IntoIterator<Item = u64>) -> String {
    let row = |n: u64| format!("{}\n", json!({"id": n, "request": format!("do {n}"), "text": format!("it did {n}")}));
    numbers.into_iter().map(row).collect()
}

#[tokio::test]
async fn the_same_file_comes_in_once_and_a_longer_one_adds_its_new_rows() {
    let (bench, far) = bench().await;
    let import = async |text: &str| read(text.as_bytes()).unwrap().store(&bench.store, &far).await;
    assert_eq!(import(&rows(1..4)).await.unwrap(), EpisodesImported { stored: 3, known: 0, left: 0 });
    assert_eq!(import(&rows(1..4)).await.unwrap(), EpisodesImported { stored: 0, known: 3, left: 0 });
    assert_eq!(import(&rows((1..6).rev())).await.unwrap(), EpisodesImported { stored: 2, known: 3, left: 0 });
    assert_eq!(bench.store.execution_count(&far).await.unwrap(), 5);
    let changed = rows(1..3).replace("it did 2", "it did not");
    let mut found = read(changed.as_bytes()).unwrap();
    assert_eq!(found.compare(&bench.store, &far).await.unwrap(), 1);
    assert!(found.bad.len() == 1 && found.bad[0].line == 2 && found.bad[0].reason.contains("\"2\""), "{:?}", found.bad);
    let refused = import(&(changed + &rows(7..9))).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(bench.store.execution_count(&far).await.unwrap(), 5, "all or none");
    // Rows of another run have nothing to do with it.
    bench.store.create_run(&outside::row("outside-2".into(), false)).await.unwrap();
    let other = read(rows(1..4).as_bytes()).unwrap().store(&bench.store, &"outside-2".into()).await.unwrap();
    assert_eq!(other.stored, 3);
    bench.store.trash_run(&far).await.unwrap();
    bench.store.purge_run(&far, false).await.unwrap();
}

#[tokio::test]
async fn as_many_wait_as_may_and_the_rest_comes_in_later() {
    let (bench, far) = bench().await;
    let text = rows(0..MOST_OPEN + 30);
    let import = async || read(text.as_bytes()).unwrap().store(&bench.store, &far).await.unwrap();
    assert_eq!(import().await, EpisodesImported { stored: MOST_OPEN, known: 0, left: 30 });
    assert_eq!(import().await, EpisodesImported { stored: 0, known: MOST_OPEN, left: 30 });
    let teacher = bench.teacher("ada").await;
    for n in 0..10 {
        let leased = bench.store.lease(&far, teacher, &[], crate::support::TTL).await.unwrap().unwrap();
        let answer = crate::support::answer(leased.execution, teacher, &format!("words {n}"));
        bench.store.answer(&answer).await.unwrap();
    }
    assert_eq!(import().await, EpisodesImported { stored: 10, known: MOST_OPEN, left: 20 });
}

#[tokio::test]
async fn runs_that_take_no_episodes_say_why() {
    let (bench, far) = bench().await;
    let why = async |run: &RunId| refusal(&bench.store, run).await.unwrap();
    assert_eq!(why(&far).await, None);
    assert!(why(&RUN).await.unwrap().contains("lives in this server"));
    bench.store.set_active(&far, false).await.unwrap();
    assert!(why(&far).await.unwrap().contains("ended"));
    bench.store.trash_run(&far).await.unwrap();
    assert!(why(&far).await.unwrap().contains("trash"));
    assert!(matches!(refusal(&bench.store, &"nowhere".into()).await, Err(StoreError::NotFound(_))));
}
