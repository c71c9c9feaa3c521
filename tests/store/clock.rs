//! The time of day jumps by hours, forwards and backwards, while people teach: answers are neither lost nor doubled, nobody waits
//! for hours, and who is signed in stays so.

use crate::postgres::Database;
use crate::support::{Clock, RUN, TTL, answer, execution, open_with_clocks, run};
use iliad::ids::AnswerId;
use iliad::store::{Joined, NewAnswer, Role, Scope, Store, UpdateRecord};
use std::collections::HashMap;
use tempfile::TempDir;
use time::Duration;

/// Jumps as corrections, changed time zones and resumed machines bring them.
const JUMPS: [Duration; 7] = [
    Duration::hours(3),
    Duration::hours(-7),
    Duration::hours(12),
    Duration::hours(-1),
    Duration::hours(-24),
    Duration::minutes(90),
    Duration::hours(26),
];

/// A store whose time of day jumps, beside a clock that goes on.
struct Jumpy {
    store: Store,
    day: Clock,
    steady: Clock,
    folder: TempDir,
    database: Option<Database>,
}

impl Jumpy {
    async fn new() -> Jumpy {
        let (folder, database) = (tempfile::tempdir().unwrap(), Database::new().await);
        let (day, steady) = (Clock::default(), Clock::default());
        let store = open_with_clocks(folder.path(), database.as_ref(), &day, &steady).await;
        store.create_run(&run(&RUN)).await.unwrap();
        Jumpy { store, day, steady, folder, database }
    }

    /// Both clocks go on.
    fn pass(&self, by: Duration) {
        self.day.turn(by);
        self.steady.turn(by);
    }
}

#[tokio::test]
async fn answers_over_a_jump_are_stored_once_and_learnt_from_once() {
    let bench = Jumpy::new().await;
    let store = &bench.store;
    let mut given: HashMap<AnswerId, String> = HashMap::new();
    for (round, jump) in (0u64..).zip(JUMPS.into_iter().cycle().take(21)) {
        store.offer(&RUN, &[execution(3 * round, round), execution(3 * round + 1, round)]).await.unwrap();
        let mut held = Vec::new();
        for name in ["a", "b"] {
            let teacher = store.teacher(name).await.unwrap().id;
            let leased = store.lease(&RUN, teacher, &[], TTL).await.unwrap().expect("each has one");
            held.push((teacher, leased.execution));
        }
        assert_ne!(held[0].1, held[1].1, "round {round}: nobody has what another has");
        bench.pass(TTL / 4);
        bench.day.turn(jump);
        for (teacher, execution) in held {
            store.renew(execution, teacher, TTL).await.unwrap_or_else(|e| panic!("round {round}, {jump}: {e}"));
            let text = format!("{teacher} says {round}");
            let sent = NewAnswer { client_key: format!("{teacher}-{round}"), ..answer(execution, teacher, &text) };
            let stored = store.answer(&sent).await.unwrap().answer;
            bench.day.turn(-jump);
            assert_eq!(store.answer(&sent).await.unwrap().answer, stored, "sent again over another jump");
            bench.day.turn(jump);
            given.insert(stored, text);
        }
        let unused = store.unused_answers(&RUN, 99).await.unwrap();
        let keys: Vec<AnswerId> = unused.iter().map(|one| one.answer).collect();
        assert_eq!(keys.len(), 2, "round {round}");
        let record = UpdateRecord { update: round + 1, data: ().into(), answers: keys };
        store.record_update(&RUN, &record).await.unwrap();
    }
    let rows = store.export_page(Some(&RUN), AnswerId::default(), u32::MAX).await.unwrap();
    assert_eq!(rows.len(), given.len());
    for row in rows {
        assert_eq!(given.get(&row.answer), Some(&row.text));
        assert!(row.used_in_update.is_some());
    }
}

#[tokio::test]
async fn nobody_waits_for_hours_after_a_jump_nor_after_a_restart_behind_it() {
    for jump in JUMPS {
        let bench = Jumpy::new().await;
        bench.store.offer(&RUN, &[execution(0, 1)]).await.unwrap();
        let [a, b] = [bench.store.teacher("a").await.unwrap().id, bench.store.teacher("b").await.unwrap().id];
        let leased = bench.store.lease(&RUN, a, &[], TTL).await.unwrap().unwrap();
        bench.day.turn(jump);
        assert!(bench.store.lease(&RUN, b, &[], TTL).await.unwrap().is_none(), "{jump}: it is held");
        bench.pass(TTL + Duration::SECOND);
        let found = bench.store.lease(&RUN, b, &[], TTL).await.unwrap().expect("its time is over");
        assert_eq!(found.execution, leased.execution, "{jump}");
        bench.store.close().await;
        // The next process begins with the time of day as it is by then.
        let steady = bench.day.clone();
        let store = open_with_clocks(bench.folder.path(), bench.database.as_ref(), &bench.day, &steady).await;
        bench.day.turn(TTL + Duration::SECOND);
        let again = store.lease(&RUN, a, &[], TTL).await.unwrap().expect("nobody holds it for hours");
        assert_eq!(again.execution, leased.execution, "{jump}");
    }
}

#[tokio::test]
async fn who_is_signed_in_stays_so_and_a_revoked_token_stays_revoked() {
    let bench = Jumpy::new().await;
    let store = &bench.store;
    store.invite("link", Role::Owner, None, std::time::Duration::from_secs(86_400)).await.unwrap();
    let Joined::Account(ada) = store.join("link", "ada", "hash").await.unwrap() else { panic!("ada is new") };
    store.open_session(ada, "browser", "Firefox").await.unwrap();
    store.open_session(ada, "lost", "Chrome").await.unwrap();
    let lost = store.session("lost").await.unwrap().unwrap().session;
    store.end_session(ada, lost).await.unwrap();
    let kept = bench.day.now() + Duration::days(30);
    store.create_api_token("kept", "robot", &[Scope::Read], "ada", Some(kept)).await.unwrap();
    let revoked = store.create_api_token("revoked", "robot", &[Scope::Read], "ada", None).await.unwrap();
    store.revoke_api_token(revoked).await.unwrap();
    for jump in JUMPS {
        bench.day.turn(jump);
        assert!(store.session("browser").await.unwrap().is_some(), "after a jump of {jump}");
        assert!(store.session("lost").await.unwrap().is_none(), "after a jump of {jump}");
        assert!(store.api_token("kept").await.unwrap().is_some(), "after a jump of {jump}");
        assert!(store.api_token("revoked").await.unwrap().is_none(), "after a jump of {jump}");
    }
}
