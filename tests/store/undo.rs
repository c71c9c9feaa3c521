//! Answers that are taken back: never learnt from, never lost, and their execution comes back.

use crate::support::{Bench, RUN, TTL, answer};
use iliad::ids::AnswerId;
use iliad::store::{AnswerKind, StoreError, UpdateRecord};
use serde_json::json;
use time::Duration;

async fn record(bench: &Bench, update: u64, answers: Vec<AnswerId>) -> iliad::store::Result<()> {
    bench.store.record_update(&RUN, &UpdateRecord { update, data: json!({}), answers }).await
}

#[tokio::test]
async fn an_answer_taken_back_is_learnt_from_never_and_its_execution_comes_back() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    let hasty = bench.describe(ada, "hasty").await;
    let ahead = bench.lease(ada).await.unwrap();
    let undone = bench.store.undo(&RUN, hasty, ada, TTL).await.unwrap();
    assert_eq!((undone.text.as_str(), undone.episode, undone.learnt_in), ("hasty", 1, None));
    assert!(bench.store.unused_answers(&RUN, 10).await.unwrap().is_empty());
    assert_eq!(bench.store.teacher_counts(&RUN, ada).await.unwrap().described, 0);
    assert!(bench.store.own_answers(&RUN, ada, 10).await.unwrap().is_empty());
    // It is hers again, before what she holds besides; nobody else gets it.
    assert_eq!(bench.lease(ada).await.unwrap().execution, undone.execution);
    assert_ne!(undone.execution, ahead.execution);
    assert!(bench.lease(eve).await.is_none());
    // Doing it twice does it once, and the row tells.
    bench.clock.turn(Duration::seconds(5));
    assert_eq!(bench.store.undo(&RUN, hasty, ada, TTL).await.unwrap().learnt_in, None);
    let row = bench.store.export_page(Some(&RUN), AnswerId::default(), 10).await.unwrap().remove(0);
    assert_eq!((row.text.as_str(), row.superseded_by, row.used_in_update), ("hasty", Some(hasty), None));
    assert!(row.withdrawn_at.is_some_and(|at| at < bench.clock.now()), "the first time counts");
    // The same words are an answer once more.
    let again = bench.store.answer(&answer(undone.execution, ada, "hasty")).await.unwrap();
    assert!(!again.again && again.answer != hasty);
    assert_eq!(bench.store.unused_answers(&RUN, 10).await.unwrap().len(), 1);
    assert!(bench.store.withdrawn_answer(&RUN, hasty, ada).await.unwrap().is_none(), "another is in its place");
}

#[tokio::test]
async fn the_key_of_an_answer_taken_back_stores_nothing_by_itself() {
    let bench = Bench::new().await;
    bench.offer([(1, 0)]).await;
    let ada = bench.teacher("ada").await;
    let leased = bench.lease(ada).await.unwrap();
    let hasty = answer(leased.execution, ada, "hasty");
    let stored = bench.store.answer(&hasty).await.unwrap();
    bench.store.undo(&RUN, stored.answer, ada, TTL).await.unwrap();
    // The same request once more (the browser's own back button): nobody is thanked for words that do not stand.
    let refused = bench.store.answer(&hasty).await.unwrap_err();
    assert!(matches!(refused, StoreError::KeyReused { answer } if answer == stored.answer), "{refused:?}");
}

#[tokio::test]
async fn an_update_and_an_undo_at_the_same_moment_exclude_each_other() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let ada = bench.teacher("ada").await;
    let (first, second) = (bench.describe(ada, "first").await, bench.describe(ada, "second").await);
    // The trainer has read both when one is taken back.
    let read = bench.store.unused_answers(&RUN, 10).await.unwrap();
    assert_eq!(read.len(), 2);
    bench.store.undo(&RUN, first, ada, TTL).await.unwrap();
    assert!(matches!(record(&bench, 1, vec![first, second]).await, Err(StoreError::Superseded)));
    assert_eq!(bench.store.answers(&[second]).await.unwrap()[0].used_in_update, None, "nothing of it was written");
    record(&bench, 1, vec![second]).await.unwrap();
    // And the other way round: what was learnt from stands, and it is said.
    let undone = bench.store.undo(&RUN, second, ada, TTL).await.unwrap();
    assert_eq!((undone.learnt_in, undone.text.as_str()), (Some(1), "second"));
    let row = bench.store.export_page(Some(&RUN), AnswerId::default(), 10).await.unwrap().remove(1);
    assert_eq!((row.superseded_by, row.withdrawn_at), (None, None));
}

#[tokio::test]
async fn answers_that_nothing_is_learnt_from_can_be_taken_back_after_an_update_too() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    let leased = bench.lease(ada).await.unwrap();
    let nothing = iliad::store::NewAnswer { kind: AnswerKind::NothingChanged, ..answer(leased.execution, ada, "") };
    let nothing = bench.store.answer(&nothing).await.unwrap().answer;
    record(&bench, 1, vec![nothing]).await.unwrap();
    assert_eq!(bench.store.undo(&RUN, nothing, ada, TTL).await.unwrap().learnt_in, None);
    // A resumed run makes that update again as it was.
    assert_eq!(bench.store.updates_after(&RUN, 0).await.unwrap()[0].answers, [nothing]);
    record(&bench, 1, vec![nothing]).await.unwrap();
    let described = bench.store.answer(&answer(leased.execution, ada, "it did change")).await.unwrap().answer;
    let unused: Vec<AnswerId> = bench.store.unused_answers(&RUN, 10).await.unwrap().iter().map(|a| a.answer).collect();
    assert_eq!(unused, [described]);
    // Only one's own, and only what stands.
    assert!(matches!(bench.store.undo(&RUN, described, eve, TTL).await, Err(StoreError::NotFound(_))));
    let better = bench.store.correct(described, &answer(leased.execution, ada, "it changed")).await.unwrap().answer;
    assert!(matches!(bench.store.undo(&RUN, described, ada, TTL).await, Err(StoreError::Superseded)));
    bench.store.undo(&RUN, better, ada, TTL).await.unwrap();
}

#[tokio::test]
async fn a_skip_taken_back_while_somebody_else_is_at_it_takes_no_place() {
    let bench = Bench::new().await;
    bench.offer([(1, 0)]).await;
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    let leased = bench.lease(ada).await.unwrap();
    let skip = iliad::store::NewAnswer { kind: AnswerKind::Skipped, ..answer(leased.execution, ada, "too much") };
    let skip = bench.store.answer(&skip).await.unwrap().answer;
    assert_eq!(bench.lease(eve).await.unwrap().execution, leased.execution);
    let undone = bench.store.undo(&RUN, skip, ada, TTL).await.unwrap();
    assert!(undone.expires_at <= bench.clock.now(), "eve has the only place");
    assert_eq!(bench.store.pool(&RUN).await.unwrap().leased, 1);
    bench.store.answer(&answer(leased.execution, ada, "described after all")).await.unwrap();
    // An execution that was left again without an answer is for everybody, also for the teacher who took an answer back.
    bench.offer([(2, 0)]).await;
    let second = bench.describe(ada, "second").await;
    let undone = bench.store.undo(&RUN, second, ada, TTL).await.unwrap();
    bench.store.release(undone.execution, ada).await.unwrap();
    assert_eq!(bench.lease(ada).await.unwrap().execution, undone.execution);
}
