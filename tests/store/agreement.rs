//! A database and a checkpoint that belong together, and some that do not.

use crate::support::{Bench, RUN};
use iliad::store::UpdateRecord;

async fn with_updates(updates: impl IntoIterator<Item = u64>) -> Bench {
    let bench = Bench::new().await;
    let teacher = bench.teacher("a").await;
    for update in updates {
        bench.offer([(update, 1)]).await;
        let key = bench.describe(teacher, &format!("answer {update}")).await;
        let record = UpdateRecord { update, data: ().into(), answers: vec![key] };
        bench.store.record_update(&RUN, &record).await.unwrap();
    }
    bench
}

#[tokio::test]
async fn a_record_that_reaches_beyond_the_checkpoint_is_made_again() {
    let bench = with_updates(1..=6).await;
    for (update, people) in [(0, 0), (3, 3), (6, 6)] {
        assert_eq!(bench.store.checkpoint_mismatch(&RUN, update, people).await.unwrap(), None);
    }
    assert_eq!(bench.store.last_update(&RUN).await.unwrap(), Some(6));
}

#[tokio::test]
async fn records_of_simulated_updates_that_a_power_cut_took_are_no_reason() {
    let bench = with_updates(1..=6).await;
    assert_eq!(bench.store.checkpoint_mismatch(&RUN, 9, 6).await.unwrap(), None);
}

#[tokio::test]
async fn a_database_older_than_the_checkpoint_is_said_with_what_to_do() {
    let bench = with_updates(1..=6).await;
    let why = bench.store.checkpoint_mismatch(&RUN, 9, 9).await.unwrap().unwrap();
    for part in ["older than this run's checkpoint", "9 descriptions", "knows of 6", "iliad restore"] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[tokio::test]
async fn a_hole_in_the_record_is_said_with_what_to_do() {
    for updates in [vec![1, 2, 3, 5, 6], vec![1, 2, 4, 5]] {
        let bench = with_updates(updates).await;
        let why = bench.store.checkpoint_mismatch(&RUN, 2, 2).await.unwrap().unwrap();
        assert!(why.contains("hole") && why.contains("iliad restore"), "{why}");
    }
}
