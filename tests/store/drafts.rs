//! Drafts: what was typed comes back with its execution, and goes when it is sent, discarded or old.

use crate::support::{Bench, RUN, TTL, answer, execution, run};
use iliad::ids::{ExecutionId, TeacherId};
use iliad::store::{AnswerKind, Draft, NewAnswer, Store, StoreError};
use time::Duration;

fn draft(execution: ExecutionId, teacher: TeacherId, version: u64, text: &str) -> Draft {
    Draft { execution, teacher, client_key: "page".into(), version, text: text.into() }
}

async fn text(store: &Store, execution: ExecutionId, teacher: TeacherId) -> Option<String> {
    store.draft(execution, teacher).await.unwrap().map(|draft| draft.text)
}

#[tokio::test]
async fn a_draft_comes_back_with_its_execution_after_a_restart_and_to_nobody_else() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    let (first, second) = (bench.lease(ada).await.unwrap().execution, bench.lease(eve).await.unwrap().execution);
    bench.store.save_draft(&draft(first, ada, 1, "half a sen")).await.unwrap();
    bench.store.save_draft(&draft(first, ada, 2, "half a sentence \u{1f600}")).await.unwrap();
    // A late save changes nothing; one of another page of the same person does.
    bench.store.save_draft(&draft(first, ada, 1, "half a sen")).await.unwrap();
    assert_eq!(text(&bench.store, first, ada).await.unwrap(), "half a sentence \u{1f600}");
    let elsewhere = Draft { client_key: "phone".into(), ..draft(first, ada, 0, "on the phone") };
    bench.store.save_draft(&elsewhere).await.unwrap();
    let again = bench.open_again().await;
    assert_eq!(text(&again, first, ada).await.unwrap(), "on the phone");
    assert_eq!(text(&again, first, eve).await, None);
    assert_eq!(again.drafts(&RUN, ada, 9).await.unwrap().len(), 1);
    assert!(again.drafts(&RUN, eve, 9).await.unwrap().is_empty());
    // Only about what one has or has had.
    assert!(matches!(again.save_draft(&draft(second, ada, 3, "x")).await, Err(StoreError::NeverYours)));
}

#[tokio::test]
async fn a_draft_goes_when_it_is_sent_or_discarded_and_stays_when_its_execution_is_skipped() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0), (3, 0)]).await;
    let ada = bench.teacher("ada").await;
    let sent = bench.lease(ada).await.unwrap().execution;
    bench.store.save_draft(&draft(sent, ada, 1, "it doubled")).await.unwrap();
    bench.store.answer(&answer(sent, ada, "it doubled the n")).await.unwrap();
    assert_eq!(text(&bench.store, sent, ada).await, None);
    // A save that was under way when the answer was stored.
    bench.store.save_draft(&draft(sent, ada, 2, "it doubled the n")).await.unwrap();
    assert_eq!(text(&bench.store, sent, ada).await, None);
    let skipped = bench.lease(ada).await.unwrap().execution;
    bench.store.save_draft(&draft(skipped, ada, 1, "perhaps")).await.unwrap();
    let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(skipped, ada, "too much") };
    bench.store.answer(&skip).await.unwrap();
    assert_eq!(text(&bench.store, skipped, ada).await.unwrap(), "perhaps");
    bench.store.save_draft(&draft(skipped, ada, 2, " \n")).await.unwrap();
    assert_eq!(text(&bench.store, skipped, ada).await, None);
}

#[tokio::test]
async fn old_drafts_go_and_the_latest_hundred_stay() {
    let bench = Bench::new().await;
    bench.offer((0..103).map(|episode| (episode, 0))).await;
    let ada = bench.teacher("ada").await;
    let mut all = Vec::new();
    for n in 0..103 {
        let execution = bench.lease(ada).await.unwrap().execution;
        bench.store.save_draft(&draft(execution, ada, 1, &format!("draft {n}"))).await.unwrap();
        let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(execution, ada, "next") };
        bench.store.answer(&skip).await.unwrap();
        all.push(execution);
        bench.clock.turn(Duration::seconds(1));
    }
    assert_eq!(text(&bench.store, all[0], ada).await, None);
    assert_eq!(text(&bench.store, all[102], ada).await.unwrap(), "draft 102");
    assert_eq!(bench.store.drafts(&RUN, ada, 200).await.unwrap().len(), 100);
    bench.clock.turn(Duration::days(61));
    bench.store.create_run(&run("later")).await.unwrap();
    bench.store.offer(&"later".into(), &[execution(0, 0)]).await.unwrap();
    let new = bench.store.lease(&"later".into(), ada, &[], TTL).await.unwrap().unwrap().execution;
    bench.store.save_draft(&draft(new, ada, 1, "new")).await.unwrap();
    assert!(bench.store.drafts(&RUN, ada, 200).await.unwrap().is_empty());
    assert_eq!(bench.store.drafts(&"later".into(), ada, 200).await.unwrap()[0].text, "new");
}

#[tokio::test]
async fn a_revealed_request_is_seen_by_who_asked_and_their_answer_says_so() {
    let bench = Bench::new().await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (bench.teacher("ada").await, bench.teacher("eve").await);
    let mine = bench.lease(ada).await.unwrap();
    assert_eq!((mine.request, bench.store.asked(mine.execution, ada).await.unwrap().visible), (None, false));
    assert!(matches!(bench.store.reveal(mine.execution, eve).await, Err(StoreError::NeverYours)));
    assert_eq!(bench.store.reveal(mine.execution, ada).await.unwrap(), "request 1");
    assert!(bench.store.asked(mine.execution, ada).await.unwrap().visible);
    assert!(!bench.store.asked(mine.execution, eve).await.unwrap().visible);
    assert_eq!(bench.lease(ada).await.unwrap().request.as_deref(), Some("request 1"), "also after a reload");
    let said = NewAnswer { fulfilled: true, idle_ms: Some(700), ..answer(mine.execution, ada, "request 1") };
    let said = bench.store.answer(&said).await.unwrap().answer;
    bench.describe(eve, "another").await;
    let rows = bench.store.export_page(Some(&RUN), Default::default(), 9).await.unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.fulfilled, row.request_shown, row.idle_ms)).collect();
    assert_eq!(told, [(true, true, Some(700)), (false, false, None)]);
    // It is a description like others: the trainer learns from it, and it can be taken back.
    assert_eq!(bench.store.unused_answers(&RUN, 9).await.unwrap()[0].text, "request 1");
    assert!(bench.store.own_answers(&RUN, ada, 9).await.unwrap()[0].fulfilled);
    let undone = bench.store.undo(&RUN, said, ada, TTL).await.unwrap();
    assert!(undone.fulfilled && undone.request.is_some());
}
