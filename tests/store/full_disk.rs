//! A small file system that fills up and gets room again, over and over, while everybody writes: what was acknowledged
//! is there, what was refused was refused as something that passes, and everything goes on.

use crate::small_disk::SmallDisk;
use crate::support::{RUN, TTL, answer, execution, file, run, simulated};
use iliad::ids::AnswerId;
use iliad::run::{CheckpointRow, Point};
use iliad::store::{Store, StoreError, UpdateRecord};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The results that the writers saw.
#[derive(Default)]
struct Seen {
    acknowledged: Mutex<HashMap<AnswerId, String>>,
    refused: AtomicU64,
    stop: AtomicBool,
    next: AtomicU64,
}

impl Seen {
    /// Notes an outcome; what was refused must be something that passes.
    fn note<T>(&self, what: &str, outcome: Result<T, StoreError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                assert!(error.is_transient(), "{what}: {error:?}");
                self.refused.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }
}

/// One of several people and trainers that write all the time.
async fn write_all_kinds(store: Store, seen: Arc<Seen>, who: u64) {
    let name = format!("person {who}");
    let mut teacher = None;
    while !seen.stop.load(Ordering::SeqCst) {
        let n = seen.next.fetch_add(1, Ordering::SeqCst);
        if teacher.is_none() {
            teacher = seen.note("a teacher", store.teacher(&name).await).map(|teacher| teacher.id);
        }
        seen.note("an offer", store.offer(&RUN, &[execution(n, 1)]).await);
        if let Some(teacher) = teacher
            && let Some(Some(leased)) = seen.note("a lease", store.lease(&RUN, teacher, &[], TTL).await)
        {
            seen.note("a heartbeat", store.renew(leased.execution, teacher, TTL).await);
            let text = format!("{name} says {n} {}", "at length ".repeat(20));
            if let Some(stored) = seen.note("an answer", store.answer(&answer(leased.execution, teacher, &text)).await)
            {
                seen.acknowledged.lock().unwrap().insert(stored.answer, text);
                let record = UpdateRecord { update: n + 1, data: ().into(), answers: vec![stored.answer] };
                seen.note("an update", store.record_update(&RUN, &record).await);
            }
        }
        seen.note("episodes", store.record_simulated(&RUN, &[simulated(1_000_000 + n, Some(1), "sim")]).await);
        seen.note("a point", store.record_points(&RUN, &[Point { update: n, ..Point::default() }]).await);
        let row = CheckpointRow {
            name: format!("c{who}"),
            update: n,
            episodes: 1,
            descriptions: 1,
            validation: None,
            bytes: 1,
            written_at: String::new(),
            best: false,
        };
        seen.note("a checkpoint", store.record_checkpoint(&RUN, &row).await);
        seen.note("retiring", store.retire_stale(&RUN, 0).await);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_on_after_a_full_disk_again_and_again() {
    let Some(small) = SmallDisk::of(24 << 10) else { return };
    let store = Store::open(&file(small.path())).await.unwrap();
    store.create_run(&run(&RUN)).await.unwrap();
    let seen = Arc::new(Seen::default());
    let writers: Vec<_> = (0..6).map(|who| tokio::spawn(write_all_kinds(store.clone(), seen.clone(), who))).collect();
    for round in 0..6 {
        // Full until many calls were refused.
        let before = seen.refused.load(Ordering::SeqCst);
        for _ in 0..3_000 {
            small.fill();
            if seen.refused.load(Ordering::SeqCst) > before + 40 || writers.iter().any(|writer| writer.is_finished()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(seen.refused.load(Ordering::SeqCst) > before, "round {round}: the disk was full");
        small.free();
        // Then answers are taken again, from everybody.
        let before = seen.acknowledged.lock().unwrap().len();
        for _ in 0..3_000 {
            if seen.acknowledged.lock().unwrap().len() > before + 12
                || writers.iter().any(|writer| writer.is_finished())
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(seen.acknowledged.lock().unwrap().len() > before, "round {round}: nobody could answer with room again");
        assert!(writers.iter().all(|writer| !writer.is_finished()), "round {round}");
    }
    seen.stop.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }
    store.check().await.unwrap();
    let rows = store.export_page(Some(&RUN), AnswerId::default(), u32::MAX).await.unwrap();
    let stored: HashMap<AnswerId, String> = rows.into_iter().map(|row| (row.answer, row.text)).collect();
    let acknowledged = seen.acknowledged.lock().unwrap().clone();
    for (key, text) in acknowledged.iter() {
        assert_eq!(stored.get(key), Some(text), "answer {key} was acknowledged");
    }
    println!("{} answers acknowledged, {} calls refused", acknowledged.len(), seen.refused.load(Ordering::SeqCst));
    drop(acknowledged);
    store.close().await;
    // Opening needs little room, and says so when there is none at all.
    small.fill();
    match Store::open(&file(small.path())).await {
        Ok(store) => store.close().await,
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("iliad.sqlite") && said.contains("disk is full"), "{error:?}");
        }
    }
    small.free();
    Store::open(&file(small.path())).await.unwrap().close().await;
    drop(small);
}
