//! Several processes over one database of PostgreSQL: what one sends the others receive, and work that is asked for is done once.
//! Without a server (`tests/with-postgres`) there is nothing to test here.

use crate::postgres::Database;
use iliad::store::{Bus, Message, Store, Told};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);

async fn processes<const N: usize>(database: &Database) -> [Bus; N] {
    let mut buses = Vec::new();
    for n in 0..N {
        let store = Store::connect(&database.address()).await.unwrap();
        buses.push(store.bus(&format!("process {n}")).await.unwrap().expect("PostgreSQL has one"));
    }
    buses.try_into().unwrap()
}

#[tokio::test]
async fn a_file_has_no_other_processes() {
    let bench = crate::support::Bench::in_a_file().await;
    assert!(bench.store.bus("alone").await.unwrap().is_none());
}

#[tokio::test]
async fn every_other_process_hears_a_message_in_order_and_the_sender_does_not() {
    let Some(database) = Database::new().await else { return };
    let [a, b, c] = processes(&database).await;
    let (mut a_hears, mut b_hears, mut c_hears) =
        (a.listen().await.unwrap(), b.listen().await.unwrap(), c.listen().await.unwrap());
    // Longer than a notification may be, and as awkward as what people type.
    let long = "\u{1f600}\n'\"\\ ".repeat(5_000);
    for n in 0..20 {
        a.send("status", &format!("{n} {long}")).await.unwrap();
    }
    b.send("hello", "").await.unwrap();
    for hears in [&mut b_hears, &mut c_hears] {
        for n in 0..20 {
            let told = tokio::time::timeout(DEADLINE, hears.next()).await.unwrap().unwrap();
            let (sender, topic) = (a.process().to_owned(), "status".to_owned());
            assert_eq!(told, Told::Message(Message { sender, topic, body: format!("{n} {long}") }));
        }
    }
    for hears in [&mut a_hears, &mut c_hears] {
        let told = tokio::time::timeout(DEADLINE, hears.next()).await.unwrap().unwrap();
        assert!(matches!(told, Told::Message(Message { topic, .. }) if topic == "hello"), "not its own messages");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_is_taken_once_and_only_by_who_has_the_run() {
    let Some(database) = Database::new().await else { return };
    let [asking, first, second, third] = processes(&database).await;
    let mut asked = BTreeSet::new();
    for n in 0..60 {
        let run = ["one", "two"][n % 2];
        asked.insert(asking.request(Some(run).filter(|_| n % 3 > 0), &format!("{n} {run}")).await.unwrap());
    }
    let take = |bus: Bus, runs: Vec<String>| {
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Some(request) = bus.take_request(&runs).await.unwrap() {
                taken.push(request);
            }
            taken
        })
    };
    let taking = [take(first, vec!["one".into()]), take(second, vec!["two".into()]), take(third, vec![])];
    let (mut taken, mut count) = (BTreeSet::new(), 0);
    for (who, taking) in taking.into_iter().enumerate() {
        for request in taking.await.unwrap() {
            let (n, run) = request.body.split_once(' ').unwrap();
            let anybody = n.parse::<usize>().unwrap() % 3 == 0;
            assert!(anybody || [Some("one"), Some("two"), None][who] == Some(run), "{request:?} by {who}");
            assert_eq!(request.sender, asking.process());
            taken.insert(request.id);
            count += 1;
        }
    }
    assert_eq!((taken, count), (asked, 60));
    asking.request(None, "my own").await.unwrap();
    assert_eq!(asking.take_request(&[]).await.unwrap(), None, "nobody asks themselves");
}

#[tokio::test]
async fn what_one_process_does_for_all_goes_to_another_when_it_ends() {
    let Some(database) = Database::new().await else { return };
    let [a, b] = processes(&database).await;
    let held = a.alone("webhooks").await.unwrap();
    let other = b.alone("something else").await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(300), b.alone("webhooks")).await.is_err());
    drop((held, other));
    tokio::time::timeout(DEADLINE, b.alone("webhooks")).await.expect("it is free").unwrap();
}
