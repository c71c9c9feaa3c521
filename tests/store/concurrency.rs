//! People and the trainer at work at the same time.

use crate::support::{Bench, RUN, TTL, answer, execution, simulated};
use iliad::ids::AnswerId;
use iliad::run::Point;
use iliad::store::{AnswerKind, NewAnswer, StoreError, UpdateRecord};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const TEACHERS: usize = 8;
const ANSWERS_EACH: usize = 120;

/// One person: lease, heartbeat, send (now and then twice at once), sometimes skip or correct. What was acknowledged.
async fn teach(bench: Arc<Bench>, name: usize) -> HashMap<AnswerId, String> {
    let store = &bench.store;
    let teacher = bench.teacher(&format!("teacher {name}")).await;
    let mut acknowledged = HashMap::new();
    let mut sent = 0;
    while sent < ANSWERS_EACH {
        let Some(leased) = store.lease(&RUN, teacher, &[], TTL).await.unwrap() else {
            tokio::task::yield_now().await; // the trainer will offer more
            continue;
        };
        match store.renew(leased.execution, teacher, TTL).await {
            Ok(_) => {}
            // Somebody turned their skip of it into a description this moment; what is typed is taken all the same.
            Err(StoreError::LeaseLost) => {}
            Err(other) => panic!("{other:?}"),
        }
        let text = format!("{name}: description {sent}");
        let mut new = answer(leased.execution, teacher, &text);
        if sent % 10 == 9 {
            new.kind = AnswerKind::Skipped;
        }
        let stored = if sent % 4 == 0 {
            // A double click: both requests are under way at once.
            let (one, two) = tokio::join!(store.answer(&new), store.answer(&new));
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_eq!(one.answer, two.answer);
            assert!(one.again != two.again, "exactly one of them stored it");
            one
        } else {
            store.answer(&new).await.unwrap()
        };
        acknowledged.insert(stored.answer, text);
        if sent % 7 == 3 {
            let text = format!("{name}: correction {sent}");
            let corrected = NewAnswer { kind: AnswerKind::Described, ..answer(leased.execution, teacher, &text) };
            let (one, two) =
                tokio::join!(store.correct(stored.answer, &corrected), store.correct(stored.answer, &corrected));
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_eq!(one.answer, two.answer);
            acknowledged.insert(one.answer, text);
        }
        store.teacher_counts(&RUN, teacher).await.unwrap();
        store.own_answers(&RUN, teacher, 5).await.unwrap();
        sent += 1;
    }
    acknowledged
}

/// The trainer: keeps the pool filled, uses what was said, tells points and simulated episodes. What it used.
async fn train(bench: Arc<Bench>, people_done: Arc<AtomicBool>) -> (u64, Vec<AnswerId>) {
    let store = &bench.store;
    let (mut update, mut episode, mut used) = (0, 0, Vec::new());
    loop {
        let last_round = people_done.load(Ordering::SeqCst);
        update += 1;
        let pool = store.pool(&RUN).await.unwrap();
        let room = 24u64.saturating_sub(pool.open + pool.leased);
        let fresh: Vec<_> = (0..room).map(|i| execution(episode + i, update)).collect();
        episode += room;
        store.offer(&RUN, &fresh).await.unwrap();
        store.retire_stale(&RUN, update.saturating_sub(40)).await.unwrap();
        let answers: Vec<AnswerId> = store.unused_answers(&RUN, 32).await.unwrap().iter().map(|a| a.answer).collect();
        let nothing_left = answers.is_empty();
        let record = UpdateRecord { update, data: "mixed".into(), answers: answers.clone() };
        store.record_update(&RUN, &record).await.unwrap();
        used.extend(answers);
        let rows: Vec<_> = (0..4).map(|i| simulated(1_000_000 + update * 4 + i, Some(update), "simulated")).collect();
        store.record_simulated(&RUN, &rows).await.unwrap();
        store.record_points(&RUN, &[Point { update, ..Point::default() }]).await.unwrap();
        store.recent_episodes(&RUN, 10).await.unwrap();
        if last_round && nothing_left {
            return (update, used);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_people_and_the_trainer_lose_no_row_and_lock_nobody_out() {
    let bench = Arc::new(Bench::new().await);
    let people_done = Arc::new(AtomicBool::new(false));
    let trainer = tokio::spawn(train(bench.clone(), people_done.clone()));
    let people: Vec<_> = (0..TEACHERS).map(|name| tokio::spawn(teach(bench.clone(), name))).collect();
    let mut acknowledged = HashMap::new();
    for person in people {
        acknowledged.extend(person.await.unwrap());
    }
    people_done.store(true, Ordering::SeqCst);
    let (updates, used) = trainer.await.unwrap();

    let rows = bench.store.export_page(Some(&RUN), AnswerId::default(), u32::MAX).await.unwrap();
    assert_eq!(rows.len() as u64, bench.store.export_count(Some(&RUN)).await.unwrap());
    let stored: HashMap<AnswerId, String> =
        rows.iter().filter(|r| r.teacher.is_some()).map(|r| (r.answer, r.text.clone())).collect();
    assert_eq!(stored, acknowledged, "exactly what was acknowledged is there");
    assert_eq!(rows.len() - stored.len(), updates as usize * 4, "every simulated row is there");
    assert_eq!(bench.store.points(&RUN, usize::MAX).await.unwrap().len() as u64, updates);

    let unique: HashSet<AnswerId> = used.iter().copied().collect();
    assert_eq!(unique.len(), used.len(), "no answer was used twice");
    for row in rows.iter().filter(|row| row.teacher.is_some()) {
        let usable = row.superseded_by.is_none() && row.kind != AnswerKind::Skipped;
        // An execution that three people answer, since skips of it became descriptions, teaches with two answers.
        let used = rows.iter().filter(|other| other.episode == row.episode && unique.contains(&other.answer));
        let heard = used.map(|other| other.teacher).collect::<HashSet<_>>().len();
        assert!(!usable || unique.contains(&row.answer) || heard >= 2, "every standing answer was used: {row:?}");
        assert_eq!(row.used_in_update.is_some(), unique.contains(&row.answer));
    }
    // One standing answer per person and execution.
    let standing: Vec<_> = rows
        .iter()
        .filter(|row| row.teacher.is_some() && row.superseded_by.is_none())
        .map(|row| (row.episode, row.teacher))
        .collect();
    assert_eq!(standing.len(), TEACHERS * ANSWERS_EACH);
    assert_eq!(standing.iter().collect::<HashSet<_>>().len(), standing.len());
    bench.store.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_key_sent_many_times_at_once_stores_once() {
    let bench = Arc::new(Bench::new().await);
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let new = answer(bench.lease(teacher).await.unwrap().execution, teacher, "once");
    let senders: Vec<_> = (0..32)
        .map(|_| {
            let (bench, new) = (bench.clone(), new.clone());
            tokio::spawn(async move { bench.store.answer(&new).await.unwrap() })
        })
        .collect();
    let mut stored = Vec::new();
    for sender in senders {
        stored.push(sender.await.unwrap());
    }
    assert!(stored.iter().all(|s| s.answer == stored[0].answer));
    assert_eq!(stored.iter().filter(|s| !s.again).count(), 1);
    assert_eq!(bench.store.export_count(None).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_corrections_at_once_one_wins_and_the_other_is_told() {
    let bench = Arc::new(Bench::new().await);
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let old = bench.describe(teacher, "old").await;
    let id = bench.store.own_answers(&RUN, teacher, 1).await.unwrap()[0].execution;
    let (left, right) = (answer(id, teacher, "left"), answer(id, teacher, "right"));
    let (one, two) = tokio::join!(bench.store.correct(old, &left), bench.store.correct(old, &right));
    let lost = [&one, &two].into_iter().filter(|r| matches!(r, Err(StoreError::Superseded))).count();
    assert_eq!(lost, 1, "{one:?} {two:?}");
    assert_eq!(bench.store.own_answers(&RUN, teacher, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cookie_seen_first_in_many_requests_at_once_is_one_teacher() {
    let bench = Arc::new(Bench::new().await);
    let asking: Vec<_> = (0..16)
        .map(|_| {
            let bench = bench.clone();
            tokio::spawn(async move { bench.teacher("the same cookie").await })
        })
        .collect();
    let mut ids = HashSet::new();
    for one in asking {
        ids.insert(one.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_second_process_on_the_same_database_waits_its_turn() {
    let bench = Arc::new(Bench::new().await);
    bench.offer((0..200).map(|e| (e, 1))).await;
    let other = bench.open_again().await;
    let teacher = bench.teacher("a").await;
    let writing = tokio::spawn({
        let bench = bench.clone();
        async move {
            for n in 0..200 {
                bench.describe(teacher, &n.to_string()).await;
            }
        }
    });
    for update in 0..200 {
        other.record_points(&RUN, &[Point { update, ..Point::default() }]).await.unwrap();
    }
    writing.await.unwrap();
    assert_eq!(other.export_count(None).await.unwrap(), 200);
}

#[tokio::test]
async fn a_request_that_is_dropped_half_way_leaves_the_writer_free() {
    let bench = Bench::new().await;
    bench.offer((0..50).map(|e| (e, 1))).await;
    let teacher = bench.teacher("a").await;
    for n in 0..40 {
        // The connection breaks after n polls of the handler.
        let new = answer(bench.lease(teacher).await.unwrap().execution, teacher, &format!("dropped {n}"));
        let mut call = Box::pin(bench.store.answer(&new));
        for _ in 0..n {
            if futures::poll!(&mut call).is_ready() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
        drop(call);
        let stored = bench.store.answer(&new).await.expect("the retry is stored");
        assert_eq!(bench.store.answer(&new).await.unwrap().answer, stored.answer);
    }
    assert_eq!(bench.store.export_count(None).await.unwrap(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_file_can_be_opened_by_many_at_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = crate::support::file(folder.path());
        let opening: Vec<_> = (0..6)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { iliad::store::Store::open(&path).await })
            })
            .collect();
        for store in opening {
            store.await.unwrap().unwrap();
        }
    }
}
