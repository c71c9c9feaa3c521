//! Nothing that a page, a lease, an answer or the trainer's loop asks for costs more with the number of rows.
//!
//! Counted are the steps of SQLite's machine, in a small store and in one with many times as many rows of every kind, a
//! third of them by one teacher. Steps are the same on every computer.

use crate::support::{Bench, RUN, TTL, answer, execution, simulated};
use iliad::ids::{AnswerId, TeacherId};
use iliad::protocol::Rate;
use iliad::run::{CheckpointRow, Point};
use iliad::store::{Store, UpdateRecord};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

#[path = "../support/filled.rs"]
mod filled;

/// How many rows of every kind the large store has.
const LARGE: i64 = 60_000;

/// And the small one.
const SMALL: i64 = 200;

/// Fills the store; the teacher who gave every third answer.
async fn fill(bench: &Bench, n: i64) -> TeacherId {
    let teachers = [bench.teacher("busy").await, bench.teacher("b").await, bench.teacher("c").await];
    filled::fill(&bench.file(), &RUN, teachers, n).await;
    teachers[0]
}

/// A name, and the steps that it took.
type Costs = Vec<(&'static str, u64)>;

/// Does everything a page, a lease, an answer or the trainer does, several times, and counts each.
async fn costs(bench: &Bench, n: i64, busy: TeacherId) -> Costs {
    async fn of<T>(store: &Store, costs: &mut Costs, name: &'static str, calls: impl AsyncFn(u64) -> T) {
        let before = store.steps();
        for call in 0..10 {
            calls(call).await;
        }
        costs.push((name, store.steps() - before));
    }
    let (store, mut all, n) = (&bench.store, Costs::new(), n as u64);
    let costs = &mut all;
    of(store, costs, "what is remembered of an ended run", async |_| store.standing(&RUN).await.unwrap()).await;
    of(store, costs, "a run", async |_| store.run(&RUN).await.unwrap()).await;
    of(store, costs, "runs", async |_| store.runs().await.unwrap()).await;
    of(store, costs, "number of runs", async |_| store.run_count().await.unwrap()).await;
    of(store, costs, "a teacher", async |_| store.teacher("busy").await.unwrap()).await;
    of(store, costs, "a teacher's figures", async |_| store.teacher_counts(&RUN, busy).await.unwrap()).await;
    of(store, costs, "own answers", async |_| store.own_answers(&RUN, busy, 20).await.unwrap()).await;
    of(store, costs, "own readings", async |_| store.readings(&RUN, busy, 50).await.unwrap()).await;
    of(store, costs, "readings of all", async |_| store.readings_of_all(&RUN, 100).await.unwrap()).await;
    of(store, costs, "the latest attempt", async |_| store.latest_comprehension(&RUN, busy).await.unwrap()).await;
    of(store, costs, "the newest description", async |_| store.newest_description(&RUN, busy).await.unwrap()).await;
    of(store, costs, "what was learnt", async |_| store.learnt_descriptions(&RUN, busy, 50).await.unwrap()).await;
    of(store, costs, "points", async |_| assert_eq!(store.points(&RUN, 50).await.unwrap().len(), 50)).await;
    of(store, costs, "episodes", async |_| assert_eq!(store.recent_episodes(&RUN, 40).await.unwrap().len(), 40)).await;
    of(store, costs, "checkpoints", async |_| {
        let listed = store.checkpoints(&RUN).await.unwrap();
        assert!(listed.len() <= 101 && listed.iter().any(|row| row.best));
    })
    .await;
    for run in [None, Some(&*RUN)] {
        of(store, costs, "the head of an export", async |_| {
            assert_eq!(store.export_count(run).await.unwrap(), 2 * n);
        })
        .await;
        of(store, costs, "a page of an export", async |i| {
            store.export_page(run, AnswerId((2 * n / 11 * i) as i64), 20).await.unwrap()
        })
        .await;
    }
    of(store, costs, "the pool", async |_| store.pool(&RUN).await.unwrap()).await;
    of(store, costs, "unused answers", async |_| store.unused_answers(&RUN, 32).await.unwrap()).await;
    of(store, costs, "the next episode", async |_| store.next_episode(&RUN).await.unwrap()).await;
    of(store, costs, "the last update", async |_| store.last_update(&RUN).await.unwrap()).await;
    of(store, costs, "retiring", async |_| store.retire_stale(&RUN, n - 1).await.unwrap()).await;
    of(store, costs, "offering", async |i| {
        store.offer(&RUN, &[execution(10 * n + i, n), execution(20 * n + i, n)]).await.unwrap()
    })
    .await;
    of(store, costs, "a lease, an answer and its correction", async |i| {
        let leased = store.lease(&RUN, busy, &[], TTL).await.unwrap().unwrap();
        store.renew(leased.execution, busy, TTL).await.unwrap();
        let stored = store.answer(&answer(leased.execution, busy, &format!("a {i}"))).await.unwrap();
        store.correct(stored.answer, &answer(leased.execution, busy, &format!("b {i}"))).await.unwrap();
    })
    .await;
    of(store, costs, "an update", async |i| {
        let keys = store.unused_answers(&RUN, 1).await.unwrap().iter().map(|answer| answer.answer).collect();
        let record = UpdateRecord { update: n + 1 + i, data: ().into(), answers: keys };
        store.record_update(&RUN, &record).await.unwrap();
    })
    .await;
    of(store, costs, "simulated episodes", async |i| {
        store.record_simulated(&RUN, &[simulated(30 * n + i, Some(n), "sim")]).await.unwrap()
    })
    .await;
    of(store, costs, "a point", async |i| {
        let validation = (i % 2 == 0).then_some(Rate { value: 0.5, n: 9, low: 0.1, high: 0.9 });
        store.record_points(&RUN, &[Point { update: n + 1 + i, validation, ..Point::default() }]).await.unwrap()
    })
    .await;
    of(store, costs, "a checkpoint", async |i| {
        let row = CheckpointRow {
            name: format!("new {i}"),
            update: n + i,
            episodes: 1,
            descriptions: 1,
            validation: None,
            bytes: 1,
            written_at: "2027".into(),
            best: true,
        };
        store.record_checkpoint(&RUN, &row).await.unwrap();
    })
    .await;
    all
}

#[tokio::test]
async fn nothing_that_people_wait_for_costs_more_with_the_number_of_rows() {
    let (small, large) = (Bench::in_a_file().await, Bench::new().await);
    let few = fill(&small, SMALL).await;
    let many = fill(&large, LARGE).await;
    let (small, large) = (costs(&small, SMALL, few).await, costs(&large, LARGE, many).await);
    for ((name, small), (_, large)) in small.into_iter().zip(large) {
        // Counted in hundreds, and by rounding: small figures may differ by a few of those.
        assert!(large <= small * 3 / 2 + 1_000, "{name}: {small} steps in a small store, {large} in a large one");
    }
}

/// A person who skips everything must not make their own next lease, or anybody's, dearer with every skip.
#[tokio::test]
async fn skipping_everything_makes_nothing_dearer() {
    let bench = Bench::in_a_file().await;
    let teacher = bench.teacher("skips").await;
    let skip = async |rounds: std::ops::Range<u64>| {
        for episode in rounds {
            bench.offer([(episode, 1)]).await;
            let leased = bench.lease(teacher).await.unwrap();
            let skipped = iliad::store::NewAnswer {
                kind: iliad::store::AnswerKind::Skipped,
                ..answer(leased.execution, teacher, "")
            };
            bench.store.answer(&skipped).await.unwrap();
        }
    };
    let cost = async |rounds| {
        let before = bench.store.steps();
        skip(rounds).await;
        bench.store.steps() - before
    };
    skip(0..450).await;
    let before = cost(450..500).await;
    skip(500..1_500).await;
    let after = cost(1_500..1_550).await;
    assert!(after <= before * 3 / 2, "{before} steps for 50 skips at first, {after} later");
}

/// Nor must one who corrects the same answer for ever.
#[tokio::test]
async fn correcting_for_ever_makes_nothing_dearer() {
    let bench = Bench::in_a_file().await;
    let teacher = bench.teacher("corrects").await;
    bench.offer([(1, 1)]).await;
    let execution = bench.lease(teacher).await.unwrap().execution;
    let cost = async |rounds: std::ops::Range<u64>| {
        let before = bench.store.steps();
        for round in rounds {
            bench.store.answer(&answer(execution, teacher, &format!("version {round}"))).await.unwrap();
        }
        bench.store.steps() - before
    };
    cost(0..100).await;
    let before = cost(100..150).await;
    cost(150..2_000).await;
    let after = cost(2_000..2_050).await;
    assert!(after <= before * 3 / 2, "{before} steps for 50 corrections at first, {after} later");
}

/// The counters agree with the rows, whatever became of them.
#[tokio::test]
async fn counters_agree_with_the_rows() {
    let bench = Bench::in_a_file().await;
    let store = &bench.store;
    bench.offer((0..6).map(|episode| (episode, 1))).await;
    let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
    let first = bench.describe(a, "first").await;
    let second = bench.describe(b, "second").await;
    let third = bench.describe(a, "third").await;
    let record = UpdateRecord { update: 1, data: ().into(), answers: vec![first, second] };
    store.record_update(&RUN, &record).await.unwrap();
    store.record_update(&RUN, &record).await.unwrap();
    // A used and an unused answer are corrected, one becomes a skip, simulated ones come.
    let own = store.own_answers(&RUN, a, 9).await.unwrap();
    for old in own {
        store.correct(old.answer, &answer(old.execution, a, &format!("better {}", old.answer))).await.unwrap();
    }
    assert_ne!(third, first);
    let skipped = bench.lease(b).await.unwrap().execution;
    let skip = iliad::store::NewAnswer { kind: iliad::store::AnswerKind::Skipped, ..answer(skipped, b, "") };
    store.answer(&skip).await.unwrap();
    store.record_simulated(&RUN, &[simulated(50, Some(1), "sim"), simulated(51, Some(1), "")]).await.unwrap();

    let options = SqliteConnectOptions::new().filename(bench.file());
    let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
    for teacher in [a, b] {
        let counted: (i64, i64) = sqlx::query_as(
            "SELECT count(*), count(used_in_update) FROM answers
             WHERE teacher = ? AND superseded_by IS NULL AND kind = 'described'",
        )
        .bind(teacher)
        .fetch_one(&mut raw)
        .await
        .unwrap();
        let counts = store.teacher_counts(&RUN, teacher).await.unwrap();
        assert_eq!((counts.described as i64, counts.used as i64), counted);
    }
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM answers").fetch_one(&mut raw).await.unwrap();
    assert_eq!(store.export_count(None).await.unwrap() as i64, rows);
    assert_eq!(store.export_count(Some(&RUN)).await.unwrap() as i64, rows);
    let standing = store.standing(&RUN).await.unwrap();
    assert_eq!((standing.people, standing.simulated), (2, 1));
}
