//! Who gets which execution.

use crate::support::{Bench, RUN, TTL, answer, execution};
use iliad::ids::{ExecutionId, TeacherId};
use iliad::store::{AnswerKind, NewAnswer, PoolCounts, StoreError};
use time::Duration;

#[tokio::test]
async fn the_newest_policy_comes_first_then_the_execution_offered_first() {
    let bench = Bench::new().await;
    bench.offer([(0, 5), (1, 7), (2, 6), (3, 7)]).await;
    let teacher = bench.teacher("a").await;
    let mut order = Vec::new();
    while let Some(leased) = bench.lease(teacher).await {
        order.push(leased.episode);
        bench.store.answer(&answer(leased.execution, teacher, "x")).await.unwrap();
    }
    assert_eq!(order, [1, 3, 2, 0]);
}

#[tokio::test]
async fn a_reload_gives_what_one_holds_and_fetching_ahead_gives_the_next() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1), (2, 1)]).await;
    let teacher = bench.teacher("a").await;
    let first = bench.lease(teacher).await.unwrap();
    bench.clock.turn(Duration::seconds(10));
    let again = bench.lease(teacher).await.unwrap();
    assert_eq!(again.execution, first.execution);
    assert_eq!(again.expires_at, bench.clock.now() + TTL, "the reload extends the lease");
    let ahead = bench.store.lease(&RUN, teacher, &[first.execution], TTL).await.unwrap().unwrap();
    assert_ne!(ahead.execution, first.execution);
    // Newer work that comes in does not push away what is on the screen.
    bench.offer([(3, 9)]).await;
    assert_eq!(bench.lease(teacher).await.unwrap().execution, first.execution);
    assert_eq!(bench.store.pool(&RUN).await.unwrap(), PoolCounts { open: 2, leased: 2, people: 1 });
}

#[tokio::test]
async fn never_two_at_one_execution_unless_it_wants_two() {
    let bench = Bench::new().await;
    bench
        .store
        .offer(&RUN, &[execution(0, 1), iliad::store::NewExecution { wanted: 2, ..execution(1, 1) }])
        .await
        .unwrap();
    let mut held = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let teacher = bench.teacher(name).await;
        held.push(bench.lease(teacher).await.map(|leased| leased.episode));
    }
    assert_eq!(held, [Some(0), Some(1), Some(1), None]);
}

#[tokio::test]
async fn an_execution_that_wants_two_gets_two_people_and_is_done_then() {
    let bench = Bench::new().await;
    bench.store.offer(&RUN, &[iliad::store::NewExecution { wanted: 2, ..execution(0, 1) }]).await.unwrap();
    let (a, b, c) = (bench.teacher("a").await, bench.teacher("b").await, bench.teacher("c").await);
    bench.describe(a, "one").await;
    assert!(bench.lease(a).await.is_none(), "not twice the same person");
    bench.describe(b, "two").await;
    assert!(bench.lease(c).await.is_none());
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_lease_can_be_renewed_until_somebody_else_has_the_execution() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let id = bench.lease(a).await.unwrap().execution;
    bench.clock.turn(Duration::seconds(50));
    assert_eq!(bench.store.renew(id, a, TTL).await.unwrap(), bench.clock.now() + TTL);
    bench.clock.turn(Duration::seconds(50));
    assert!(bench.lease(b).await.is_none(), "the renewed lease still holds");
    bench.clock.turn(Duration::seconds(50));
    assert_eq!(bench.store.pool(&RUN).await.unwrap(), PoolCounts { open: 1, leased: 0, people: 1 });
    bench.store.renew(id, a, TTL).await.expect("it ran out, but nobody else has it");
    bench.clock.turn(TTL + Duration::SECOND);
    assert_eq!(bench.lease(b).await.unwrap().execution, id);
    assert!(matches!(bench.store.renew(id, a, TTL).await, Err(StoreError::LeaseLost)));
    assert!(matches!(bench.store.renew(id, bench.teacher("c").await, TTL).await, Err(StoreError::LeaseLost)));
    bench.store.answer(&answer(id, b, "done")).await.unwrap();
    assert!(matches!(bench.store.renew(id, b, TTL).await, Err(StoreError::LeaseLost)));
    assert!(matches!(bench.store.renew(ExecutionId(9999), b, TTL).await, Err(StoreError::LeaseLost)));
}

#[tokio::test]
async fn a_lease_given_back_is_open_at_once() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let id = bench.lease(a).await.unwrap().execution;
    bench.store.release(id, b).await.expect("giving back what one has not is harmless");
    assert!(bench.lease(b).await.is_none());
    bench.store.release(id, a).await.unwrap();
    bench.store.release(id, a).await.unwrap();
    assert_eq!(bench.lease(b).await.unwrap().execution, id);
}

#[tokio::test]
async fn skipping_everything_never_blocks_the_pool() {
    let bench = Bench::new().await;
    let teacher = bench.teacher("a").await;
    for round in 0..20 {
        // The trainer keeps four fresh ones.
        let PoolCounts { open, leased, .. } = bench.store.pool(&RUN).await.unwrap();
        bench.offer((0..4 - open - leased).map(|i| (round * 10 + i, 1))).await;
        let leased = bench.lease(teacher).await.expect("there is always another one");
        let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(leased.execution, teacher, "too hard") };
        bench.store.answer(&skip).await.unwrap();
    }
}

#[tokio::test]
async fn stale_executions_retire_unless_somebody_is_at_them() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 2), (2, 3), (3, 4)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let held = bench.lease(a).await.unwrap();
    assert_eq!(held.episode, 3);
    assert_eq!(bench.store.retire_stale(&RUN, 10).await.unwrap(), 3);
    assert_eq!(bench.store.pool(&RUN).await.unwrap(), PoolCounts { open: 0, leased: 1, people: 1 });
    assert!(bench.lease(b).await.is_none());
    bench.clock.turn(TTL + Duration::SECOND);
    assert_eq!(bench.store.retire_stale(&RUN, 10).await.unwrap(), 1);
    // The answer about the execution that was on the screen meanwhile is still taken.
    let late = bench.store.answer(&answer(held.execution, a, "late")).await.unwrap();
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap()[0].answer, late.answer);
    assert_eq!(bench.store.retire_stale(&RUN, 10).await.unwrap(), 0);
}

#[tokio::test]
async fn an_episode_offered_twice_is_left_as_it_is() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    bench
        .store
        .offer(&RUN, &[iliad::store::NewExecution { summary: "another".into(), ..execution(0, 5) }])
        .await
        .unwrap();
    assert_eq!(bench.store.pool(&RUN).await.unwrap().open, 1);
    let teacher = bench.teacher("a").await;
    bench.describe(teacher, "x").await;
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap()[0].summary, execution(0, 1).summary);
    bench.offer([(0, 1)]).await;
    assert!(bench.lease(teacher).await.is_none(), "an answered episode does not come back");
}

#[tokio::test]
async fn runs_have_separate_queues() {
    let bench = Bench::new().await;
    bench.store.create_run(&crate::support::run("run-2")).await.unwrap();
    bench.offer([(0, 1)]).await;
    bench.store.offer(&"run-2".into(), &[execution(0, 9)]).await.unwrap();
    let teacher = bench.teacher("a").await;
    let mine = bench.lease(teacher).await.unwrap();
    let other = bench.store.lease(&"run-2".into(), teacher, &[], TTL).await.unwrap().unwrap();
    assert_ne!(mine.execution, other.execution);
    assert_eq!(bench.lease(teacher).await.unwrap().execution, mine.execution);
    assert!(matches!(
        bench.store.offer(&"nowhere".into(), &[execution(0, 9)]).await,
        Err(StoreError::NotFound("the run"))
    ));
    assert!(bench.store.lease(&"nowhere".into(), teacher, &[], TTL).await.unwrap().is_none());
    assert!(matches!(
        bench.store.lease(&"run-2".into(), TeacherId(77), &[], -TTL).await,
        Ok(None) | Err(StoreError::NotFound(_))
    ));
}

#[tokio::test]
async fn the_next_episode_follows_the_largest_that_people_could_have_seen() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.next_episode(&RUN).await.unwrap(), 0);
    bench.offer([(0, 1), (7, 3), (5, 2)]).await;
    assert_eq!(bench.store.next_episode(&RUN).await.unwrap(), 8);
    let teacher = bench.teacher("a").await;
    assert_eq!(bench.lease(teacher).await.unwrap().episode, 7);
    assert_eq!(bench.store.retire_stale(&RUN, 99).await.unwrap(), 2);
    assert_eq!(bench.store.next_episode(&RUN).await.unwrap(), 8, "somebody has 7 on the screen");
    assert_eq!(bench.store.next_episode(&"none".into()).await.unwrap(), 0);
}
