//! Complaints about similar tools, each by name.

use crate::support::{AWKWARD, Bench, RUN, TTL, answer, execution, simulated};
use iliad::export::{Format, Snapshot, write};
use iliad::registry::Registry;
use iliad::store::{AnswerKind, Filter, NewAnswer};
use serde_json::json;
use std::time::Instant;
use time::Duration;

#[tokio::test]
async fn two_people_never_get_the_same_item() {
    let bench = Bench::new().await;
    bench.offer((0..30).map(|e| (e, e / 10))).await;
    let mut taken = std::collections::HashSet::new();
    for n in 0..30 {
        let teacher = bench.teacher(&format!("teacher {n}")).await;
        assert!(taken.insert(bench.lease(teacher).await.unwrap().execution));
    }
}

#[tokio::test]
async fn the_queue_is_not_empty_because_others_hold_something() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1), (2, 1)]).await;
    let (a, b, c) = (bench.teacher("a").await, bench.teacher("b").await, bench.teacher("c").await);
    bench.lease(a).await.unwrap();
    bench.lease(b).await.unwrap();
    assert_eq!(bench.lease(c).await.unwrap().episode, 2);
}

#[tokio::test]
async fn opened_and_left_an_item_comes_back() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let id = bench.lease(a).await.unwrap().execution;
    assert!(bench.lease(b).await.is_none());
    bench.clock.turn(TTL);
    assert_eq!(bench.lease(b).await.unwrap().execution, id);
}

#[tokio::test]
async fn answered_and_skipped_items_do_not_come_back_to_the_same_person() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let skipped = bench.lease(a).await.unwrap().execution;
    let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(skipped, a, "unclear") };
    bench.store.answer(&skip).await.unwrap();
    bench.describe(a, "x").await;
    for _ in 0..3 {
        assert!(bench.lease(a).await.is_none());
        bench.clock.turn(TTL * 2);
    }
    assert_eq!(bench.lease(b).await.unwrap().execution, skipped, "the skipped one goes to others");
    bench.describe(b, "y").await;
    assert!(bench.lease(b).await.is_none(), "the answered one goes to nobody");
}

#[tokio::test]
async fn a_quarter_of_an_hour_of_thinking_is_not_lost() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let id = bench.lease(a).await.unwrap().execution;
    bench.clock.turn(Duration::minutes(15));
    bench.describe(b, "quick").await;
    let slow = bench.store.answer(&answer(id, a, "thought through")).await.unwrap();
    assert!(!slow.again);
    let texts: Vec<String> = bench.store.unused_answers(&RUN, 9).await.unwrap().into_iter().map(|u| u.text).collect();
    assert_eq!(texts, ["quick", "thought through"]);
}

#[tokio::test]
async fn a_stale_page_loses_nothing() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let a = bench.teacher("a").await;
    let id = bench.lease(a).await.unwrap().execution;
    bench.store.release(id, a).await.unwrap();
    bench.store.retire_stale(&RUN, 99).await.unwrap();
    bench.store.answer(&answer(id, a, "typed on a page from yesterday")).await.unwrap();
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_double_click_a_retry_and_a_second_tab_store_once() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let a = bench.teacher("a").await;
    let sent = answer(bench.lease(a).await.unwrap().execution, a, "replace n with c");
    let first = bench.store.answer(&sent).await.unwrap();
    for _ in 0..3 {
        let again = bench.store.answer(&sent).await.unwrap();
        assert_eq!((again.answer, again.again), (first.answer, true));
    }
    let second_tab = NewAnswer { client_key: "of the second tab".into(), ..sent };
    let again = bench.store.answer(&second_tab).await.unwrap();
    assert_eq!((again.answer, again.again), (first.answer, true));
    assert_eq!(bench.store.export_count(None).await.unwrap(), 1);
}

#[tokio::test]
async fn two_tabs_with_different_words_leave_one_standing_answer_and_keep_both_texts() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let a = bench.teacher("a").await;
    let id = bench.lease(a).await.unwrap().execution;
    let first = answer(id, a, "first tab");
    bench.store.answer(&first).await.unwrap();
    bench.store.answer(&answer(id, a, "second tab")).await.unwrap();
    bench.store.answer(&first).await.expect("a retry of the first tab changes nothing");
    let standing: Vec<String> =
        bench.store.unused_answers(&RUN, 9).await.unwrap().into_iter().map(|u| u.text).collect();
    assert_eq!(standing, ["second tab"]);
    assert_eq!(bench.store.export_count(None).await.unwrap(), 2);
}

#[tokio::test]
async fn a_hasty_send_can_be_corrected_and_a_skipped_item_had_again() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let a = bench.teacher("a").await;
    bench.describe(a, "hasty").await;
    let id = bench.lease(a).await.unwrap().execution;
    bench.store.answer(&NewAnswer { kind: AnswerKind::Skipped, ..answer(id, a, "") }).await.unwrap();
    for own in bench.store.own_answers(&RUN, a, 5).await.unwrap() {
        bench.store.correct(own.answer, &answer(own.execution, a, "careful")).await.unwrap();
    }
    let texts: Vec<String> = bench.store.unused_answers(&RUN, 9).await.unwrap().into_iter().map(|u| u.text).collect();
    assert_eq!(texts, ["careful", "careful"]);
}

#[tokio::test]
async fn counts_are_ones_own_and_never_beyond_the_total() {
    let bench = Bench::new().await;
    bench.offer((0..5).map(|e| (e, 1))).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    for text in ["1", "2", "3"] {
        bench.describe(a, text).await;
    }
    bench.describe(b, "4").await;
    let own = bench.store.own_answers(&RUN, a, 9).await.unwrap();
    bench.store.correct(own[0].answer, &answer(own[0].execution, a, "3!")).await.unwrap();
    let (a, b) =
        (bench.store.teacher_counts(&RUN, a).await.unwrap(), bench.store.teacher_counts(&RUN, b).await.unwrap());
    assert_eq!((a.described, b.described), (3, 1));
    assert_eq!((a.used, b.used), (0, 0));
}

#[tokio::test]
async fn large_columns_do_not_slow_the_queue_and_the_lists() {
    let bench = Bench::new().await;
    let large = "x".repeat(200_000);
    let new: Vec<_> = (0..300)
        .map(|e| iliad::store::NewExecution { view: json!(large), trace: json!(large), ..execution(e, 1) })
        .collect();
    bench.store.offer(&RUN, &new).await.unwrap(); // 120 MB
    let teacher = bench.teacher("a").await;
    let begin = Instant::now();
    for _ in 0..50 {
        bench.store.pool(&RUN).await.unwrap();
        bench.lease(teacher).await.unwrap();
        bench.store.teacher_counts(&RUN, teacher).await.unwrap();
    }
    // Reading the large columns through would take minutes; the bound leaves room for a busy machine.
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn fifty_thousand_rows_are_exported_in_seconds_and_all_of_them() {
    let bench = Bench::new().await;
    for batch in 0..100u64 {
        let rows: Vec<_> = (0..500)
            .map(|i| simulated(batch * 500 + i, Some(batch + 1), AWKWARD[i as usize % AWKWARD.len()]))
            .collect();
        bench.store.record_simulated(&RUN, &rows).await.unwrap();
    }
    let counted = bench.store.export_count(Some(&RUN)).await.unwrap();
    assert_eq!(counted, 50_000);
    for format in [Format::Jsonl, Format::Csv] {
        let begin = Instant::now();
        let mut told = Vec::new();
        let mut bytes = Vec::new();
        let snapshot = Snapshot::take(&bench.store, Registry::builtin(), Filter::of_run(&RUN)).await.unwrap();
        let written = write(snapshot, format, &mut bytes, |p| told.push(p.done)).await.unwrap();
        assert_eq!(written, counted);
        assert!(told.len() >= 100 && told.is_sorted(), "progress is told on the way");
        assert!(begin.elapsed().as_secs() < 30, "{format:?} took {:?}", begin.elapsed());
    }
}
