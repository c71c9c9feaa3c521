//! Accounts, their sessions and their links: one name, one account; an end is an end; an owner stays.

use crate::support::Bench;
use iliad::ids::AccountId;
use iliad::store::{Joined, Role, Store, StoreError};
use std::time::Duration;
use time::Duration as Span;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn join(store: &Store, name: &str, role: Role) -> AccountId {
    store.invite(name, role, None, DAY).await.unwrap();
    let Joined::Account(id) = store.join(name, name, "a hash").await.unwrap() else { panic!("{name} is made") };
    id
}

#[tokio::test]
async fn a_name_has_one_account_however_it_is_written() {
    let Bench { store, .. } = &Bench::new().await;
    assert!(!store.has_accounts().await.unwrap());
    assert!(matches!(store.invite("x", Role::Teacher, None, DAY).await, Err(StoreError::Conflict(_))));
    let zoe = join(store, "Zoë Ådal", Role::Owner).await;
    assert!(store.has_accounts().await.unwrap());
    store.invite("again", Role::Teacher, Some(zoe), DAY).await.unwrap();
    for same in ["Zoë Ådal", " ZOË ådal ", "zoë ådal"] {
        assert_eq!(store.join("again", same, "another").await.unwrap(), Joined::NameTaken, "{same}");
        assert_eq!(store.credentials(same).await.unwrap().unwrap().account, zoe);
    }
    for odd in ["", "  ", "a\nb", &"x".repeat(101)] {
        assert!(matches!(store.join("again", odd, "another").await, Err(StoreError::Invalid(_))), "{odd:?}");
    }
    assert_eq!(store.open_invites().await.unwrap()[0].created_by.as_deref(), Some("Zoë Ådal"));
    assert!(matches!(store.join("again", &"é".repeat(100), "another").await, Ok(Joined::Account(_))));
    assert_eq!(store.join("again", "somebody", "another").await.unwrap(), Joined::Gone);
    let roles: Vec<Role> = store.list_accounts().await.unwrap().iter().map(|account| account.role).collect();
    assert_eq!(roles, [Role::Owner, Role::Teacher]);
    assert!(
        store.account_called("nobody").await.unwrap().is_none() && store.credentials("nobody").await.unwrap().is_none()
    );
}

#[tokio::test]
async fn links_run_out_and_are_taken_back() {
    let bench = Bench::new().await;
    let store = &bench.store;
    assert!(store.invite_first_owner("first").await.unwrap() && store.invite_first_owner("second").await.unwrap());
    assert_eq!(store.invited_role("first").await.unwrap(), None, "a new one takes its place");
    assert_eq!(store.invited_role("second").await.unwrap(), Some(Role::Owner));
    assert!(store.open_invites().await.unwrap().is_empty());
    // Two who open the link of the first owner at the same moment become one owner.
    let (one, other) = tokio::join!(store.join("second", "a", "hash"), store.join("second", "b", "hash"));
    let made = [one.unwrap(), other.unwrap()];
    assert_eq!(made.iter().filter(|made| **made == Joined::Gone).count(), 1, "{made:?}");
    let short = store.invite("short", Role::Reviewer, None, DAY).await.unwrap();
    let long = store.invite("long", Role::Reviewer, None, 2 * DAY).await.unwrap();
    bench.clock.turn(Span::hours(25));
    assert_eq!(store.open_invites().await.unwrap().iter().map(|invite| invite.id).collect::<Vec<_>>(), [long]);
    assert_eq!(store.join("short", "c", "hash").await.unwrap(), Joined::Gone);
    store.revoke_invite(long).await.unwrap();
    store.revoke_invite(long).await.unwrap();
    store.revoke_invite(short).await.unwrap();
    assert_eq!(store.join("long", "c", "hash").await.unwrap(), Joined::Gone);
    assert!(matches!(store.revoke_invite(iliad::store::InviteId(99)).await, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn a_session_lasts_while_its_browser_comes_and_no_longer_than_half_a_year() {
    let bench = Bench::new().await;
    let store = &bench.store;
    let ada = join(store, "ada", Role::Owner).await;
    let signed = store.open_session(ada, "browser", "Firefox on Linux").await.unwrap();
    store.open_session(ada, "left alone", "Chrome on Windows").await.unwrap();
    assert_eq!(store.session("browser").await.unwrap(), Some(signed.clone()));
    assert_eq!(store.session("another").await.unwrap(), None);
    for day in 1..=8 {
        bench.clock.turn(Span::days(20));
        assert!(store.session("browser").await.unwrap().is_some(), "after {} days", day * 20);
    }
    assert_eq!(store.session("left alone").await.unwrap(), None);
    let left = store.sessions_of(ada).await.unwrap();
    assert_eq!((left.len(), left[0].device.as_str(), left[0].seen_at), (1, "Firefox on Linux", bench.clock.now()));
    bench.clock.turn(Span::days(19));
    assert!(store.session("browser").await.unwrap().is_some());
    bench.clock.turn(Span::days(2));
    assert_eq!(store.session("browser").await.unwrap(), None, "after 181 days");
    assert_eq!(store.role_in_session(signed.session).await.unwrap(), None);
}

#[tokio::test]
async fn what_ends_a_session_ends_it_for_good() {
    let bench = Bench::new().await;
    let store = &bench.store;
    let (ada, eve) = (join(store, "ada", Role::Owner).await, join(store, "eve", Role::Researcher).await);
    let mut changes = store.account_changes();
    changes.mark_unchanged();
    for token in ["1", "2", "3"] {
        store.open_session(eve, token, "d").await.unwrap();
    }
    assert!(!changes.has_changed().unwrap());
    let open = async |token: &str| store.session(token).await.unwrap();
    let first = open("1").await.unwrap();
    assert!(matches!(store.end_session(ada, first.session).await, Err(StoreError::NotFound(_))), "it is not hers");
    store.end_session(eve, first.session).await.unwrap();
    assert!(open("1").await.is_none() && changes.has_changed().unwrap());
    let second = open("2").await.unwrap();
    assert_eq!(store.set_password(eve, "new hash", Some(second.session)).await.unwrap(), 1);
    assert!(open("3").await.is_none() && open("2").await.is_some());
    assert_eq!(store.credentials("eve").await.unwrap().unwrap().password_hash, "new hash");
    store.set_role(eve, Role::Teacher).await.unwrap();
    assert_eq!(open("2").await.unwrap().role, Role::Teacher, "a role counts at once");
    store.set_disabled(eve, true).await.unwrap();
    assert!(open("2").await.is_none() && store.credentials("eve").await.unwrap().unwrap().disabled);
    assert!(matches!(store.open_session(eve, "4", "d").await, Err(StoreError::NotFound(_))));
    store.set_disabled(eve, false).await.unwrap();
    assert!(open("2").await.is_none(), "what has ended does not come back");
    store.open_session(eve, "5", "d").await.unwrap();
    assert_eq!(store.end_other_sessions(eve, second.session).await.unwrap(), 1);
}

#[tokio::test]
async fn there_is_always_an_owner_who_can_sign_in() {
    let Bench { store, .. } = &Bench::new().await;
    let (ada, eve) = (join(store, "ada", Role::Owner).await, join(store, "eve", Role::Owner).await);
    // Both at the same moment: one of them stays.
    let (one, other) = tokio::join!(store.set_role(ada, Role::Teacher), store.set_disabled(eve, true));
    let refused = [one.is_err(), other.is_err()];
    assert_eq!(refused.iter().filter(|refused| **refused).count(), 1, "{refused:?}");
    let owners = async || {
        let all = store.list_accounts().await.unwrap();
        all.into_iter().filter(|account| account.role == Role::Owner && account.disabled_at.is_none()).count()
    };
    assert_eq!(owners().await, 1);
    for account in [ada, eve] {
        let _ = store.set_role(account, Role::Reviewer).await;
        let _ = store.set_disabled(account, true).await;
    }
    assert_eq!(owners().await, 1);
    assert!(matches!(store.set_role(AccountId(99), Role::Owner).await, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn the_file_lets_nobody_in() {
    let bench = Bench::in_a_file().await;
    let (token, link) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
    bench.store.invite(link, Role::Owner, None, DAY).await.unwrap();
    let Joined::Account(ada) = bench.store.join(link, "ada", "a hash").await.unwrap() else { panic!() };
    bench.store.open_session(ada, token, "d").await.unwrap();
    bench.store.close().await;
    let bytes = std::fs::read(bench.file()).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("a hash") && !holds(token) && !holds(link));
}
