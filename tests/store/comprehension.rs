//! How the agent took what people said: stored before it learns, completed after, and counted once per execution.

use crate::support::{Bench, RUN, TTL, answer};
use iliad::ids::{AnswerId, TeacherId};
use iliad::run::{Attempt, Comprehension};
use iliad::store::{StoreError, UpdateRecord};
use serde_json::json;

fn attempt(understood: bool, summary: &str) -> Attempt {
    Attempt { view: json!({"pairs": [["a", summary]]}), summary: summary.into(), understood }
}

fn row(answer: AnswerId, teacher: TeacherId, update: u64, before: bool, after: Option<bool>) -> Comprehension {
    Comprehension {
        answer,
        teacher,
        update,
        episodes: update,
        descriptions: update - 1,
        seconds: update as f64 / 2.0,
        before: attempt(before, "before"),
        after: after.map(|understood| attempt(understood, "after")),
    }
}

async fn learn(bench: &Bench, update: u64, answer: AnswerId, teacher: TeacherId, before: bool) {
    let record = UpdateRecord { update, data: json!({}), answers: vec![answer] };
    bench.store.record_update(&RUN, &record).await.unwrap();
    for after in [None, Some(true)] {
        bench.store.record_comprehension(&RUN, &[row(answer, teacher, update, before, after)]).await.unwrap();
    }
}

async fn strip(bench: &Bench, teacher: TeacherId) -> Vec<(AnswerId, bool)> {
    let readings = bench.store.readings(&RUN, teacher, 50).await.unwrap();
    readings.iter().map(|reading| (reading.answer, reading.understood)).collect()
}

#[tokio::test]
async fn a_reading_is_there_before_the_agent_learns_and_is_completed_after() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let ada = bench.teacher("ada").await;
    assert_eq!(bench.store.latest_comprehension(&RUN, ada).await.unwrap(), None, "a run of before has none");
    let first = bench.describe(ada, " exactly as typed ").await;
    bench.store.record_comprehension(&RUN, &[row(first, ada, 1, false, None)]).await.unwrap();
    let latest = bench.store.latest_comprehension(&RUN, ada).await.unwrap().unwrap();
    assert_eq!(
        (latest.text.as_str(), &latest.before, &latest.after),
        (" exactly as typed ", &attempt(false, "before"), &None)
    );
    bench.store.record_comprehension(&RUN, &[row(first, ada, 1, true, Some(true))]).await.unwrap();
    // A late repetition without the outcome takes nothing away.
    bench.store.record_comprehension(&RUN, &[row(first, ada, 1, true, None)]).await.unwrap();
    let latest = bench.store.latest_comprehension(&RUN, ada).await.unwrap().unwrap();
    assert_eq!((latest.before, latest.after), (attempt(false, "before"), Some(attempt(true, "after"))));
    let exported = bench.store.export_page(Some(&RUN), AnswerId::default(), 10).await.unwrap().remove(0);
    assert_eq!((exported.understood_before, exported.understood_after), (Some(false), Some(true)));
    let unknown = bench.store.record_comprehension(&RUN, &[row(AnswerId(99), ada, 1, true, None)]).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
}

#[tokio::test]
async fn readings_are_ones_own_in_order_and_the_latest_of_them() {
    let bench = Bench::new().await;
    bench.offer((1..=8).map(|episode| (episode, 0))).await;
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    let mut expected = Vec::new();
    for update in 1..=6 {
        let teacher = if update % 3 == 0 { eve } else { ada };
        let answer = bench.describe(teacher, &format!("words {update}")).await;
        learn(&bench, update, answer, teacher, update % 2 == 0).await;
        if teacher == ada {
            expected.push((answer, update % 2 == 0));
        }
    }
    assert_eq!(strip(&bench, ada).await, expected);
    let newest = bench.store.readings(&RUN, ada, 2).await.unwrap();
    assert_eq!(newest.iter().map(|reading| reading.answer).collect::<Vec<_>>(), [expected[2].0, expected[3].0]);
    let all = bench.store.readings_of_all(&RUN, 5).await.unwrap();
    assert_eq!(all.iter().map(|reading| reading.update).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    assert_eq!(all.iter().filter(|reading| reading.teacher == eve).count(), 2);
    assert!(all.iter().all(|reading| reading.understood_after == Some(true)));
    assert_eq!((all[0].descriptions, all[0].seconds), (1, 1.0));
    assert!(bench.store.readings_of_all(&"another".into(), 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn corrected_answers_count_no_longer_and_what_was_told_before_counts_never() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let ada = bench.teacher("ada").await;
    // Corrected before the agent learned from it: the correction is what it was told.
    let leased = bench.lease(ada).await.unwrap();
    let hasty = bench.store.answer(&answer(leased.execution, ada, "hasty")).await.unwrap().answer;
    let considered = bench.store.correct(hasty, &answer(leased.execution, ada, "considered")).await.unwrap().answer;
    learn(&bench, 1, considered, ada, true).await;
    assert_eq!(strip(&bench, ada).await, [(considered, true)]);
    // Corrected afterwards: the agent has been told of this execution, so nobody can say what it knew before.
    let better = bench.store.correct(considered, &answer(leased.execution, ada, "better")).await.unwrap().answer;
    assert!(strip(&bench, ada).await.is_empty());
    assert_eq!(bench.store.latest_comprehension(&RUN, ada).await.unwrap(), None);
    learn(&bench, 2, better, ada, true).await;
    assert!(strip(&bench, ada).await.is_empty());
    assert_eq!(bench.store.latest_comprehension(&RUN, ada).await.unwrap().unwrap().text, "better");
    // Taken back: no update has it, so there is no reading; said again, there is one.
    let taken_back = bench.describe(ada, "mistaken").await;
    let again = bench.store.undo(&RUN, taken_back, ada, TTL).await.unwrap();
    let said = bench.store.answer(&answer(again.execution, ada, "meant")).await.unwrap().answer;
    learn(&bench, 3, said, ada, false).await;
    assert_eq!(strip(&bench, ada).await, [(said, false)]);
    assert_eq!(bench.store.readings_of_all(&RUN, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn answers_about_executions_that_are_passed_over_are_no_readings() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let ada = bench.teacher("ada").await;
    let short = bench.describe(ada, "it hardly moved").await;
    learn(&bench, 1, short, ada, true).await;
    let long = bench.describe(ada, "it walked").await;
    learn(&bench, 2, long, ada, false).await;
    let known: Vec<AnswerId> =
        bench.store.executions_of_readings(&RUN).await.unwrap().into_iter().map(|(answer, _)| answer).collect();
    assert_eq!(known, [short, long]);
    bench.store.leave_out_of_readings(&[short]).await.unwrap();
    // The attempt afterwards may still be added.
    bench.store.record_comprehension(&RUN, &[row(short, ada, 1, true, Some(true))]).await.unwrap();
    assert_eq!(strip(&bench, ada).await, [(long, false)]);
    assert_eq!(bench.store.readings_of_all(&RUN, 9).await.unwrap().len(), 1);
    assert_eq!(bench.store.executions_of_readings(&RUN).await.unwrap().len(), 1);
}
