//! Storing, correcting and using answers.

use crate::support::{AWKWARD, Bench, RUN, TTL, answer, execution, run, simulated};
use iliad::ids::{AnswerId, ExecutionId, TeacherId};
use iliad::store::{AnswerKind, NewAnswer, StoreError, Stored, TeacherCounts, UpdateRecord};
use serde_json::json;

fn record(update: u64, answers: &[AnswerId]) -> UpdateRecord {
    UpdateRecord { update, data: json!({"mode": "human"}), answers: answers.to_vec() }
}

#[tokio::test]
async fn text_is_kept_exactly_as_typed() {
    let bench = Bench::new().await;
    let teacher = bench.teacher("a").await;
    bench.offer((0..AWKWARD.len() as u64).map(|e| (e, 1))).await;
    for text in AWKWARD {
        bench.describe(teacher, text).await;
    }
    let taken = bench.store.unused_answers(&RUN, 99).await.unwrap();
    assert_eq!(taken.iter().map(|a| a.text.as_str()).collect::<Vec<_>>(), AWKWARD);
    let mut own = bench.store.own_answers(&RUN, teacher, 99).await.unwrap();
    own.reverse();
    assert_eq!(own.iter().map(|a| a.text.as_str()).collect::<Vec<_>>(), AWKWARD);
}

#[tokio::test]
async fn the_trainer_gets_back_what_it_offered() {
    let bench = Bench::new().await;
    bench.offer([(7, 3)]).await;
    let teacher = bench.teacher("a").await;
    let key = bench.describe(teacher, "replace n with c").await;
    let taken = bench.store.unused_answers(&RUN, 9).await.unwrap().remove(0);
    let offered = execution(7, 3);
    assert_eq!((taken.answer, taken.episode, taken.kind), (key, 7, AnswerKind::Described));
    assert_eq!((taken.request, taken.trace), (offered.request, offered.trace));
    assert_eq!((taken.view, taken.summary), (offered.view, offered.summary));
    assert_eq!(taken.used_in_update, None);
}

#[tokio::test]
async fn a_key_with_other_words_is_not_taken_for_the_same_answer() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let teacher = bench.teacher("a").await;
    let first = answer(bench.lease(teacher).await.unwrap().execution, teacher, "one");
    let stored = bench.store.answer(&first).await.unwrap();
    assert_eq!(bench.store.answer(&first).await.unwrap(), Stored { answer: stored.answer, again: true });
    let edited = NewAnswer { text: "one, better".into(), ..first.clone() };
    match bench.store.answer(&edited).await {
        Err(StoreError::KeyReused { answer }) => assert_eq!(answer, stored.answer),
        other => panic!("{other:?}"),
    }
    // The page then sends the same words as a correction, under a key of their own.
    let corrected = NewAnswer { client_key: "fresh".into(), ..edited };
    assert!(!bench.store.correct(stored.answer, &corrected).await.unwrap().again);
    // Another person may happen to have the same key.
    let other = bench.teacher("b").await;
    let execution = bench.lease(other).await.unwrap().execution;
    let theirs = NewAnswer { teacher: other, execution, text: "mine".into(), ..first };
    assert!(!bench.store.answer(&theirs).await.unwrap().again);
}

#[tokio::test]
async fn keys_must_have_1_to_64_characters() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let good = answer(bench.lease(teacher).await.unwrap().execution, teacher, "x");
    for key in [String::new(), "k".repeat(65)] {
        let bad = NewAnswer { client_key: key, ..good.clone() };
        assert!(matches!(bench.store.answer(&bad).await, Err(StoreError::Invalid(_))));
        assert!(matches!(bench.store.correct(AnswerId(1), &bad).await, Err(StoreError::Invalid(_))));
    }
    bench.store.answer(&NewAnswer { client_key: "é".repeat(64), ..good }).await.unwrap();
}

#[tokio::test]
async fn an_unknown_execution_or_teacher_is_named() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let id = bench.lease(teacher).await.unwrap().execution;
    let missing = bench.store.answer(&answer(ExecutionId(4711), teacher, "x")).await.unwrap_err();
    assert_eq!(missing.to_string(), "the execution does not exist");
    let missing = bench.store.answer(&answer(id, TeacherId(4711), "x")).await.unwrap_err();
    assert_eq!(missing.to_string(), "the teacher does not exist");
    assert!(bench.store.unused_answers(&RUN, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_correction_leaves_the_old_row_and_takes_its_place() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let old = bench.describe(a, "teh word").await;
    let id = bench.store.own_answers(&RUN, a, 1).await.unwrap()[0].execution;
    let better = answer(id, a, "the word");
    assert!(matches!(
        bench.store.correct(old, &NewAnswer { teacher: b, ..better.clone() }).await,
        Err(StoreError::NotFound("the answer"))
    ));
    let new = bench.store.correct(old, &better).await.unwrap();
    assert_eq!(bench.store.correct(old, &better).await.unwrap(), Stored { answer: new.answer, again: true });
    assert!(matches!(bench.store.correct(old, &answer(id, a, "third")).await, Err(StoreError::Superseded)));
    let own = bench.store.own_answers(&RUN, a, 9).await.unwrap();
    assert_eq!(own.iter().map(|o| (o.answer, o.text.as_str())).collect::<Vec<_>>(), [(new.answer, "the word")]);
    let unused = bench.store.unused_answers(&RUN, 9).await.unwrap();
    assert_eq!(unused.iter().map(|u| u.answer).collect::<Vec<_>>(), [new.answer]);
    let rows = bench.store.export_page(None, AnswerId::default(), 9).await.unwrap();
    assert_eq!(
        rows.iter().map(|r| (r.supersedes, r.superseded_by)).collect::<Vec<_>>(),
        [(None, Some(new.answer)), (Some(old), None)]
    );
    assert_eq!(rows[0].text, "teh word");
}

#[tokio::test]
async fn a_correction_of_a_used_answer_is_a_new_answer() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let old = bench.describe(teacher, "first").await;
    bench.store.record_update(&RUN, &record(1, &[old])).await.unwrap();
    assert_eq!(bench.store.teacher_counts(&RUN, teacher).await.unwrap(), TeacherCounts { described: 1, used: 1 });
    let id = bench.store.own_answers(&RUN, teacher, 1).await.unwrap()[0].execution;
    let new = bench.store.correct(old, &answer(id, teacher, "second")).await.unwrap().answer;
    assert_eq!(bench.store.teacher_counts(&RUN, teacher).await.unwrap(), TeacherCounts { described: 1, used: 0 });
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap()[0].answer, new);
    bench.store.record_update(&RUN, &record(2, &[new])).await.unwrap();
    let memory = bench.store.used_answers(&RUN, 2).await.unwrap();
    assert_eq!(
        memory.iter().map(|a| (a.answer, a.used_in_update)).collect::<Vec<_>>(),
        [(old, Some(1)), (new, Some(2))]
    );
}

#[tokio::test]
async fn a_skip_can_be_turned_into_a_description_but_never_replaces_one_by_itself() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let id = bench.lease(a).await.unwrap().execution;
    let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(id, a, "what?") };
    let skipped = bench.store.answer(&skip).await.unwrap().answer;
    assert!(bench.store.unused_answers(&RUN, 9).await.unwrap().is_empty(), "the trainer gets no skips");
    assert!(bench.lease(a).await.is_none());
    let described = bench.store.correct(skipped, &answer(id, a, "now I see")).await.unwrap().answer;
    assert!(bench.lease(b).await.is_none(), "it is answered now");
    // A stale tab skips.
    let stale = NewAnswer { kind: AnswerKind::Skipped, ..answer(id, a, "what? again") };
    bench.store.answer(&stale).await.unwrap();
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap()[0].answer, described);
    // Taken back on purpose, it goes to others.
    bench.store.correct(described, &NewAnswer { kind: AnswerKind::Skipped, ..answer(id, a, "no") }).await.unwrap();
    assert!(bench.store.unused_answers(&RUN, 9).await.unwrap().is_empty());
    assert!(bench.lease(a).await.is_none());
    assert_eq!(bench.lease(b).await.unwrap().execution, id);
    assert_eq!(bench.store.export_count(Some(&RUN)).await.unwrap(), 4, "every word of it is kept");
}

#[tokio::test]
async fn an_answer_is_used_in_exactly_one_update_and_recording_again_is_harmless() {
    let bench = Bench::new().await;
    let teacher = bench.teacher("a").await;
    bench.offer((0..4).map(|e| (e, 1))).await;
    let mut keys = Vec::new();
    for text in ["a", "b", "c", "d"] {
        keys.push(bench.describe(teacher, text).await);
    }
    let store = &bench.store;
    let first = record(1, &[keys[1], keys[0]]);
    store.record_update(&RUN, &first).await.unwrap();
    store.record_update(&RUN, &first).await.expect("the same again after a kill");
    assert!(matches!(store.record_update(&RUN, &record(2, &[keys[2], keys[0]])).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store.record_update(&RUN, &record(1, &[keys[0], keys[1]])).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store.record_update(&RUN, &record(1, &[keys[1]])).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store.record_update(&RUN, &record(2, &[keys[2], keys[2]])).await, Err(StoreError::Conflict(_))));
    assert!(matches!(
        store.record_update(&RUN, &record(2, &[AnswerId(4711)])).await,
        Err(StoreError::NotFound("the answer"))
    ));
    assert!(matches!(
        store.record_update(&"nowhere".into(), &record(2, &[])).await,
        Err(StoreError::NotFound("the run"))
    ));
    let unused: Vec<AnswerId> = store.unused_answers(&RUN, 9).await.unwrap().iter().map(|a| a.answer).collect();
    assert_eq!(unused, keys[2..], "a refused record leaves nothing behind");

    store.record_update(&RUN, &record(3, &[])).await.unwrap();
    store.record_update(&RUN, &record(2, &[keys[3]])).await.unwrap();
    assert_eq!(store.updates_after(&RUN, 0).await.unwrap(), [first.clone(), record(2, &[keys[3]]), record(3, &[])]);
    assert_eq!(store.updates_after(&RUN, 2).await.unwrap(), [record(3, &[])]);
    let memory: Vec<AnswerId> = store.used_answers(&RUN, 2).await.unwrap().iter().map(|a| a.answer).collect();
    assert_eq!(memory, [keys[1], keys[0], keys[3]]);
    assert_eq!(store.used_answers(&RUN, 1).await.unwrap().len(), 2);
    let asked: Vec<AnswerId> =
        store.answers(&[keys[3], keys[0], keys[3]]).await.unwrap().iter().map(|a| a.answer).collect();
    assert_eq!(asked, [keys[3], keys[0], keys[3]]);
    assert!(matches!(store.answers(&[keys[0], AnswerId(4711)]).await, Err(StoreError::NotFound("the answer"))));
}

#[tokio::test]
async fn skips_and_other_runs_answers_cannot_be_used() {
    let bench = Bench::new().await;
    let teacher = bench.teacher("a").await;
    bench.offer([(0, 1), (1, 1)]).await;
    let id = bench.lease(teacher).await.unwrap().execution;
    let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(id, teacher, "") };
    let skipped = bench.store.answer(&skip).await.unwrap().answer;
    let described = bench.describe(teacher, "x").await;
    bench.store.create_run(&run("run-2")).await.unwrap();
    bench.store.record_simulated(&RUN, &[simulated(9, Some(1), "sim")]).await.unwrap();
    let sim = bench.store.export_page(None, described, 1).await.unwrap()[0].answer;
    assert!(matches!(bench.store.record_update(&RUN, &record(1, &[skipped])).await, Err(StoreError::Invalid(_))));
    assert!(matches!(
        bench.store.record_update(&"run-2".into(), &record(1, &[described])).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(bench.store.record_update(&RUN, &record(1, &[sim])).await, Err(StoreError::NotFound(_))));
    assert!(bench.store.updates_after(&RUN, 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn cannot_describe_and_nothing_changed_go_to_the_trainer_and_end_the_execution() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    for kind in [AnswerKind::CannotDescribe, AnswerKind::NothingChanged] {
        let id = bench.lease(a).await.unwrap().execution;
        bench.store.answer(&NewAnswer { kind, ..answer(id, a, "") }).await.unwrap();
    }
    let kinds: Vec<AnswerKind> = bench.store.unused_answers(&RUN, 9).await.unwrap().iter().map(|u| u.kind).collect();
    assert_eq!(kinds, [AnswerKind::CannotDescribe, AnswerKind::NothingChanged]);
    assert!(bench.lease(b).await.is_none());
    assert_eq!(bench.store.teacher_counts(&RUN, a).await.unwrap(), TeacherCounts::default());
}

#[tokio::test]
async fn answers_to_a_finished_run_are_still_stored() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let id = bench.lease(teacher).await.unwrap().execution;
    bench.store.set_active(&RUN, false).await.unwrap();
    bench.store.answer(&answer(id, teacher, "after the end")).await.unwrap();
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap()[0].text, "after the end");
}

#[tokio::test]
async fn the_stored_answer_says_whether_the_request_was_shown_and_what_the_page_measured() {
    let bench = Bench::new().await;
    let teacher = bench.teacher("a").await;
    let mut shown = run("shown");
    shown.config = json!({"pool": {"show_request": true}});
    let mut hidden = run("hidden");
    hidden.config = json!({"pool": {"show_request": false}});
    for run in [&shown, &hidden] {
        bench.store.create_run(run).await.unwrap();
        bench.store.offer(&run.id, &[execution(0, 4)]).await.unwrap();
        let id = bench.store.lease(&run.id, teacher, &[], TTL).await.unwrap().unwrap().execution;
        let timed = NewAnswer {
            shown_at: Some(bench.clock.now() - time::Duration::seconds(8)),
            active_ms: Some(5_200),
            ..answer(id, teacher, "x")
        };
        bench.store.answer(&timed).await.unwrap();
    }
    let rows = bench.store.export_page(None, AnswerId::default(), 9).await.unwrap();
    assert_eq!(rows.iter().map(|r| r.request_shown).collect::<Vec<_>>(), [true, false]);
    for row in rows {
        assert_eq!(row.shown_at, Some(bench.clock.now() - time::Duration::seconds(8)));
        assert_eq!((row.active_ms, row.created_at, row.policy_update), (Some(5_200), bench.clock.now(), 4));
    }
}

#[tokio::test]
async fn several_updates_are_recorded_all_or_none() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let teacher = bench.teacher("a").await;
    let keys = [bench.describe(teacher, "a").await, bench.describe(teacher, "b").await];
    let bad = [record(1, &[]), record(2, &[keys[0]]), record(3, &[keys[0]])];
    assert!(matches!(bench.store.record_updates(&RUN, &bad).await, Err(StoreError::Conflict(_))));
    assert!(bench.store.updates_after(&RUN, 0).await.unwrap().is_empty());
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap().len(), 2);
    let good = [record(1, &[]), record(2, &[keys[0]]), record(3, &[keys[1]])];
    bench.store.record_updates(&RUN, &good).await.unwrap();
    bench.store.record_updates(&RUN, &good).await.unwrap();
    assert_eq!(bench.store.updates_after(&RUN, 1).await.unwrap(), good[1..]);
}
