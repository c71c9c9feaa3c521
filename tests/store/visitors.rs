//! One visitor cannot take from others, and a clock that is set back takes from nobody.

use crate::postgres::Database;
use crate::support::{Bench, RUN, TTL, answer, execution, file, open_with_clocks, run};
use iliad::ids::{ExecutionId, TeacherId};
use iliad::store::{AnswerKind, NewAnswer, PoolCounts, Store, StoreError, UpdateRecord};
use sqlx::{Connection, SqliteConnection};
use std::collections::HashSet;
use time::Duration;

/// A teacher who has answered before.
async fn regular(bench: &Bench, name: &str) -> TeacherId {
    let teacher = bench.teacher(name).await;
    bench.store.create_run(&run(name)).await.unwrap();
    bench.store.offer(&name.into(), &[execution(0, 1)]).await.unwrap();
    let leased = bench.store.lease(&name.into(), teacher, &[], TTL).await.unwrap().unwrap();
    bench.store.answer(&answer(leased.execution, teacher, "once")).await.unwrap();
    teacher
}

async fn texts(bench: &Bench) -> Vec<String> {
    bench.store.unused_answers(&RUN, 99).await.unwrap().into_iter().map(|unused| unused.text).collect()
}

#[tokio::test]
async fn a_clock_that_is_set_back_frees_what_was_abandoned() {
    for back in [Duration::HOUR, Duration::DAY] {
        let bench = Bench::new().await;
        bench.offer([(0, 1)]).await;
        let (a, b) = (bench.teacher("a").await, bench.teacher("b").await);
        let id = bench.lease(a).await.unwrap().execution;
        bench.clock.turn(-back);
        bench.clock.turn(TTL);
        assert_eq!(bench.store.pool(&RUN).await.unwrap().leased, 0);
        assert_eq!(bench.lease(b).await.map(|leased| leased.execution), Some(id));
        assert_eq!(bench.store.pool(&RUN).await.unwrap(), PoolCounts { open: 0, leased: 1, people: 1 });
        assert!(bench.lease(a).await.is_none(), "and who has it now keeps it");
    }
}

#[tokio::test]
async fn a_clock_that_was_a_day_ahead_leaves_nothing_behind_through_a_restart() {
    let bench = Bench::new().await;
    bench.clock.turn(Duration::DAY);
    bench.offer((0..4).map(|episode| (episode, 1))).await;
    let a = bench.teacher("a").await;
    let held = bench.lease(a).await.unwrap().execution;
    bench.store.lease(&RUN, a, &[held], TTL).await.unwrap();
    bench.store.close().await;
    bench.clock.turn(-Duration::DAY);
    let store = bench.open_again().await;
    assert_eq!(store.pool(&RUN).await.unwrap(), PoolCounts { open: 4, leased: 0, people: 0 });
    let b = store.teacher("b").await.unwrap().id;
    assert_eq!(store.lease(&RUN, b, &[], TTL).await.unwrap().unwrap().execution, held);
    assert!(matches!(store.renew(held, a, TTL).await, Err(StoreError::LeaseLost)));
    assert_eq!(store.retire_stale(&RUN, 9).await.unwrap(), 3, "what nobody holds can retire");
}

/// As the program runs: the time of day may jump, leases go by a clock that does not.
#[tokio::test]
async fn a_lease_lasts_as_long_as_it_should_whatever_the_time_of_day_does() {
    let folder = tempfile::tempdir().unwrap();
    let (day, steady) = (crate::support::Clock::default(), crate::support::Clock::default());
    let database = Database::new().await;
    let store = open_with_clocks(folder.path(), database.as_ref(), &day, &steady).await;
    store.create_run(&run(&RUN)).await.unwrap();
    store.offer(&RUN, &[execution(0, 1)]).await.unwrap();
    let (a, b) = (store.teacher("a").await.unwrap().id, store.teacher("b").await.unwrap().id);
    let leased = store.lease(&RUN, a, &[], TTL).await.unwrap().unwrap();
    for jump in [-Duration::HOUR, Duration::DAY, -Duration::DAY, Duration::DAY * 400] {
        day.turn(jump);
        assert!(store.lease(&RUN, b, &[], TTL).await.unwrap().is_none(), "it is held after a jump of {jump}");
        assert_eq!(store.renew(leased.execution, a, TTL).await.unwrap(), day.now() + TTL, "told in the time of day");
    }
    steady.turn(TTL);
    assert_eq!(store.lease(&RUN, b, &[], TTL).await.unwrap().unwrap().execution, leased.execution);
}

#[tokio::test]
async fn lists_that_are_newest_first_go_by_what_came_later_and_not_by_the_time_of_day() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let teacher = bench.teacher("a").await;
    let keys = [bench.describe(teacher, "first").await, bench.describe(teacher, "second").await];
    bench.store.record_simulated(&RUN, &[crate::support::simulated(10, Some(1), "sim")]).await.unwrap();
    for (update, key) in [(2, keys[0]), (3, keys[1])] {
        bench.clock.turn(-Duration::HOUR);
        let record = UpdateRecord { update, data: ().into(), answers: vec![key] };
        bench.store.record_update(&RUN, &record).await.unwrap();
    }
    bench.clock.turn(-Duration::HOUR);
    bench.store.record_simulated(&RUN, &[crate::support::simulated(11, Some(4), "sim")]).await.unwrap();
    let recent = bench.store.recent_episodes(&RUN, 9).await.unwrap();
    assert_eq!(recent.iter().map(|row| row.update).collect::<Vec<_>>(), [Some(4), Some(3), Some(2), Some(1)]);

    let mut later = run("later");
    later.created_at -= Duration::DAY;
    bench.store.create_run(&later).await.unwrap();
    assert_eq!(bench.store.runs().await.unwrap()[0].id, "later");
}

#[tokio::test]
async fn a_teacher_holds_two_and_the_third_gives_back_the_first() {
    let bench = Bench::new().await;
    bench.offer((0..24).map(|episode| (episode, 1))).await;
    for teacher in [bench.teacher("new").await, regular(&bench, "regular").await] {
        let mut had = Vec::new();
        for _ in 0..8 {
            let leased = bench.store.lease(&RUN, teacher, &had, TTL).await.unwrap().unwrap();
            had.push(leased.execution);
            bench.clock.turn(Duration::SECOND);
        }
        assert_eq!(bench.store.pool(&RUN).await.unwrap().leased, 2);
        for id in &had[..6] {
            assert!(matches!(bench.store.renew(*id, teacher, TTL).await, Err(StoreError::LeaseLost)));
        }
        for id in &had[6..] {
            bench.store.renew(*id, teacher, TTL).await.unwrap();
            bench.store.release(*id, teacher).await.unwrap();
        }
        // Leases that ran out cannot be heaped up by renewing them either.
        let mut had = Vec::new();
        for _ in 0..8 {
            had.push(bench.store.lease(&RUN, teacher, &had, TTL).await.unwrap().unwrap().execution);
            bench.clock.turn(TTL);
        }
        let mut renewed = 0;
        for id in &had {
            renewed += u64::from(bench.store.renew(*id, teacher, TTL).await.is_ok());
        }
        assert_eq!((renewed, bench.store.pool(&RUN).await.unwrap().leased), (2, 2));
        bench.clock.turn(TTL);
    }
}

#[tokio::test]
async fn many_who_never_answer_do_not_keep_everything_from_those_who_do() {
    let bench = Bench::new().await;
    bench.offer((0..24).map(|episode| (episode, 1))).await;
    let (person, beginner) = (regular(&bench, "person").await, bench.teacher("beginner").await);
    // One visitor with twelve cookies, who never stops asking and renewing.
    let mut held = Vec::new();
    for n in 0..12 {
        let cookie = bench.teacher(&format!("cookie {n}")).await;
        let first = bench.lease(cookie).await.unwrap().execution;
        let second = bench.store.lease(&RUN, cookie, &[first], TTL).await.unwrap().unwrap().execution;
        held.extend([(first, cookie), (second, cookie)]);
    }
    assert_eq!(bench.store.pool(&RUN).await.unwrap().leased, 24);
    for round in 0..20 {
        let leased = bench.lease(person).await.unwrap_or_else(|| panic!("nothing in round {round}"));
        assert!(bench.lease(person).await.is_some_and(|again| again.execution == leased.execution));
        bench.clock.turn(Duration::seconds(5));
        for (id, cookie) in &held {
            let _ = bench.store.renew(*id, *cookie, TTL).await;
        }
        bench.store.answer(&answer(leased.execution, person, &format!("round {round}"))).await.unwrap();
        bench.offer([(100 + round, 1)]).await;
        let cookie = bench.teacher(&format!("another cookie {round}")).await;
        if let Some(leased) = bench.lease(cookie).await {
            held.push((leased.execution, cookie));
        }
    }
    assert_eq!(texts(&bench).await.len(), 20, "and every one of the answers counts");
    assert!(bench.lease(beginner).await.is_some(), "who comes for the first time gets something, too");
}

#[tokio::test]
async fn newcomers_among_themselves_keep_what_they_look_at() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let (a, b, c) = (bench.teacher("a").await, bench.teacher("b").await, regular(&bench, "c").await);
    let first = bench.lease(a).await.unwrap().execution;
    let ahead = bench.store.lease(&RUN, a, &[first], TTL).await.unwrap().unwrap().execution;
    assert_eq!(bench.lease(b).await.unwrap().execution, ahead, "nobody looks at what was fetched ahead");
    assert!(bench.lease(c).await.is_none(), "everybody may look for half a minute");
    bench.clock.turn(Duration::seconds(30));
    let taken = bench.lease(c).await.unwrap().execution;
    assert_eq!(taken, first, "who answers comes first");
    // The text that was typed meanwhile is kept, and disturbs nobody.
    bench.store.answer(&answer(first, a, "slow")).await.unwrap();
    bench.store.renew(first, c, TTL).await.unwrap();
    bench.store.answer(&answer(first, c, "quick")).await.unwrap();
    assert_eq!(texts(&bench).await, ["slow", "quick"]);
}

#[tokio::test]
async fn who_has_never_answered_holds_a_minute_at_most() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let (long, teacher) = (Duration::minutes(3), bench.teacher("a").await);
    let leased = bench.store.lease(&RUN, teacher, &[], long).await.unwrap().unwrap();
    assert_eq!(leased.expires_at, bench.clock.now() + Duration::MINUTE);
    assert_eq!(bench.store.renew(leased.execution, teacher, long).await.unwrap(), leased.expires_at);
    let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(leased.execution, teacher, "") };
    bench.store.answer(&skip).await.unwrap();
    assert!(!bench.store.teacher("a").await.unwrap().answered, "a skip is no answer");
    let regular = regular(&bench, "b").await;
    let leased = bench.store.lease(&RUN, regular, &[], long).await.unwrap().unwrap();
    assert_eq!(leased.expires_at, bench.clock.now() + long);
}

#[tokio::test]
async fn only_who_was_given_an_execution_can_answer_it() {
    let bench = Bench::new().await;
    bench.offer((0..20).map(|episode| (episode, 1))).await;
    let (holder, guesser) = (bench.teacher("holder").await, bench.teacher("guesser").await);
    let held = bench.lease(holder).await.unwrap().execution;
    for id in (held.0..held.0 + 20).map(ExecutionId) {
        let refused = bench.store.answer(&answer(id, guesser, "counted up")).await.unwrap_err();
        assert!(matches!(refused, StoreError::NeverYours), "{refused:?}");
        let skip = NewAnswer { kind: AnswerKind::Skipped, ..answer(id, guesser, "") };
        assert!(bench.store.answer(&skip).await.is_err());
    }
    assert_eq!(bench.store.export_count(None).await.unwrap(), 0);
    bench.store.renew(held, holder, TTL).await.expect("who holds it notices nothing");
    // Given back, run out and retired: who had it once may say what they saw.
    bench.store.release(held, holder).await.unwrap();
    bench.clock.turn(TTL * 99);
    bench.store.retire_stale(&RUN, 9).await.unwrap();
    bench.store.answer(&answer(held, holder, "typed")).await.unwrap();
    assert_eq!(texts(&bench).await, ["typed"]);
}

#[tokio::test]
async fn late_answers_are_all_kept_and_as_many_are_learnt_from_as_the_execution_wanted() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let mut had = Vec::new();
    for n in 0..6 {
        let teacher = bench.teacher(&format!("cookie {n}")).await;
        let leased = bench.lease(teacher).await.unwrap();
        bench.store.release(leased.execution, teacher).await.unwrap();
        had.push((leased.execution, teacher));
    }
    let holder = bench.teacher("holder").await;
    let held = bench.lease(holder).await.unwrap().execution;
    for (n, (id, teacher)) in had.iter().enumerate() {
        assert_eq!(*id, held);
        let first = bench.store.answer(&answer(*id, *teacher, &format!("late {n}"))).await.unwrap().answer;
        // Correcting it does not bring it forward.
        bench.store.correct(first, &answer(*id, *teacher, &format!("late {n}!"))).await.unwrap();
        bench.store.renew(held, holder, TTL).await.expect("late answers take nobody's place");
    }
    bench.store.answer(&answer(held, holder, "in time")).await.unwrap();
    assert_eq!(texts(&bench).await, ["late 0!", "in time"]);
    assert_eq!(bench.store.export_count(None).await.unwrap(), 13, "every word is in the dataset");
    assert!(bench.lease(bench.teacher("another").await).await.is_none(), "it is done");
}

#[tokio::test]
async fn runs_keep_their_executions_and_answers_apart() {
    let bench = Bench::new().await;
    bench.store.create_run(&run("run-2")).await.unwrap();
    bench.offer([(0, 1)]).await;
    let teacher = bench.teacher("a").await;
    let key = bench.describe(teacher, "x").await;
    let id = bench.store.own_answers(&RUN, teacher, 1).await.unwrap()[0].execution;
    bench.store.execution_in(&RUN, id).await.unwrap();
    bench.store.answer_in(&RUN, key, teacher).await.unwrap();
    for refused in [
        bench.store.execution_in(&"run-2".into(), id).await,
        bench.store.execution_in(&RUN, ExecutionId(4711)).await,
        bench.store.answer_in(&"run-2".into(), key, teacher).await,
        bench.store.answer_in(&RUN, key, bench.teacher("b").await).await,
    ] {
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn people_who_are_there_are_counted_even_when_they_find_nothing() {
    let bench = Bench::new().await;
    bench.offer([(0, 1)]).await;
    let names: HashSet<TeacherId> =
        [bench.teacher("a").await, bench.teacher("b").await, bench.teacher("c").await].into();
    for _ in 0..3 {
        for &teacher in &names {
            bench.lease(teacher).await;
        }
    }
    assert_eq!(bench.store.pool(&RUN).await.unwrap().people, 3);
    bench.clock.turn(Duration::minutes(2));
    assert_eq!(bench.store.pool(&RUN).await.unwrap().people, 0);
    bench.lease(bench.teacher("a").await).await.unwrap();
    assert_eq!(bench.store.pool(&RUN).await.unwrap(), PoolCounts { open: 0, leased: 1, people: 1 });
    assert_eq!(bench.store.pool(&"another run".into()).await.unwrap().people, 0);
}

#[tokio::test]
async fn the_key_of_the_cookies_outlives_the_process_and_belongs_to_one_database() {
    let (bench, another) = (Bench::new().await, Bench::new().await);
    let key = bench.store.visitor_key().await.unwrap().to_vec();
    assert_eq!(key.len(), 32);
    assert_ne!(another.store.visitor_key().await.unwrap(), key);
    bench.store.close().await;
    assert_eq!(bench.open_again().await.visitor_key().await.unwrap(), key);
}

/// A database as it was before leases were kept as history.
async fn old_database(path: &std::path::Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut file = SqliteConnection::connect_with(&options).await.unwrap();
    let all = sqlx::migrate!();
    let before = all.iter().filter(|migration| migration.version < 7).cloned().collect();
    sqlx::migrate::Migrator::with_migrations(before).run_direct(None, &mut file, false).await.unwrap();
    sqlx::query("PRAGMA application_id = 1229734212").execute(&mut file).await.unwrap();
    file
}

#[tokio::test]
async fn who_had_something_before_the_update_can_still_answer_and_correct_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut old = old_database(&file(folder.path())).await;
    // Seconds 1,000 of some day; teacher 1 holds execution 1 until long after the clock that was wrong then, teacher 2
    // let execution 2 go, teacher 3 answered execution 3.
    sqlx::raw_sql(
        "INSERT INTO runs VALUES ('run-1', 'regex', 'tiny', '{}', 1, '{\"mode\":\"human\"}', 1, 1);
         INSERT INTO teachers (id, token_hash, created_at) VALUES
             (1, zeroblob(32), 1), (2, randomblob(32), 1), (3, randomblob(32), 1), (4, randomblob(32), 1);
         INSERT INTO executions (id, run, episode, policy_update, wanted, given, state, shown, touched, success, request,
             summary, offered_at) VALUES
             (1, 'run-1', 1, 1, 1, 0, 'open', 1, 0, 0, 'r', 's', 1), (2, 'run-1', 2, 1, 1, 0, 'open', 1, 0, 0, 'r', 's', 1),
             (3, 'run-1', 3, 1, 1, 1, 'done', 1, 1, 0, 'r', 's', 1);
         INSERT INTO execution_bodies VALUES (1, '1', '1'), (2, '2', '2'), (3, '3', '3');
         INSERT INTO leases VALUES (1, 1, 1000, 9000000000000000000), (2, 2, 1000, 2000);
         INSERT INTO answers (id, run, episode, source, execution, teacher, client_key, kind, text, request_shown,
             policy_update, created_at) VALUES (1, 'run-1', 3, 'human', 3, 3, 'k', 'described', 'three', 0, 1, 1500);",
    )
    .execute(&mut old)
    .await
    .unwrap();
    old.close().await.unwrap();

    let store = Store::open(&file(folder.path())).await.unwrap();
    assert_eq!(store.pool(&RUN).await.unwrap(), PoolCounts { open: 2, leased: 0, people: 0 });
    store.answer(&answer(ExecutionId(1), TeacherId(1), "one")).await.unwrap();
    store.answer(&answer(ExecutionId(2), TeacherId(2), "two")).await.unwrap();
    store.answer(&answer(ExecutionId(3), TeacherId(3), "three, once more")).await.unwrap();
    for execution in 1..4 {
        let refused = store.answer(&answer(ExecutionId(execution), TeacherId(4), "never had it")).await.unwrap_err();
        assert!(matches!(refused, StoreError::NeverYours), "{refused:?}");
    }
    let unused: Vec<String> = store.unused_answers(&RUN, 9).await.unwrap().into_iter().map(|u| u.text).collect();
    assert_eq!(unused, ["one", "two", "three, once more"]);
    store.check().await.unwrap();
}
