//! `kill -9` at any moment: what was acknowledged is there.
//!
//! The test runs this very test binary a second time, as the process that is killed.

use crate::support::{RUN, TTL, answer, execution, file, run};
use iliad::ids::{AnswerId, ExecutionId, TeacherId};
use iliad::store::Store;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for the process that is killed: the folder it works in.
const FOLDER: &str = "ILIAD_TEST_KILLED_PROCESS_FOLDER";

/// The process that is killed: two people and the trainer, until the end. Prints each answer after it was acknowledged.
async fn work_until_killed(folder: &Path) -> ! {
    let store = Store::open(&file(folder)).await.unwrap();
    let known = store.export_count(None).await.unwrap();
    for round in known.. {
        store.offer(&RUN, &[execution(round * 2, round), execution(round * 2 + 1, round)]).await.unwrap();
        for name in ["a", "b"] {
            let teacher = store.teacher(name).await.unwrap().id;
            let Some(leased) = store.lease(&RUN, teacher, &[], TTL).await.unwrap() else { continue };
            let text = format!("{name} says: ünïcödé {round}");
            let stored = store.answer(&answer_with_key(leased.execution, teacher, &text)).await.unwrap();
            #[allow(clippy::disallowed_methods)] // The reader of this pipe is the test itself.
            let mut out = std::io::stdout().lock();
            writeln!(out, "stored\t{}\t{text}", stored.answer).unwrap();
            out.flush().unwrap();
        }
    }
    unreachable!("it is killed long before")
}

fn answer_with_key(execution: ExecutionId, teacher: TeacherId, text: &str) -> iliad::store::NewAnswer {
    // The counter behind `answer` starts again with the process.
    iliad::store::NewAnswer { client_key: format!("{execution}-{teacher}"), ..answer(execution, teacher, text) }
}

#[tokio::test]
async fn kill_nine_takes_no_acknowledged_answer() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        work_until_killed(&PathBuf::from(folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&file(folder.path())).await.unwrap();
    store.create_run(&run(&RUN)).await.unwrap();
    store.close().await;
    let mut acknowledged: HashMap<AnswerId, String> = HashMap::new();
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::kill_nine_takes_no_acknowledged_answer", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reading = std::thread::spawn(move || {
            let parse = |line: String| {
                let mut fields = line.split('\t').skip_while(|field| !field.ends_with("stored")).skip(1);
                Some((fields.next()?.parse::<AnswerId>().ok()?, fields.next()?.to_owned()))
            };
            lines.map_while(Result::ok).filter_map(parse).collect::<Vec<_>>()
        });
        std::thread::sleep(Duration::from_millis(400 + 171 * round));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let seen = reading.join().unwrap();
        acknowledged.extend(seen);
        let store = Store::open(&file(folder.path())).await.expect("the file is whole");
        store.check().await.unwrap();
        let rows = store.export_page(None, AnswerId::default(), u32::MAX).await.unwrap();
        let stored: HashMap<AnswerId, String> = rows.into_iter().map(|row| (row.answer, row.text)).collect();
        for (key, text) in &acknowledged {
            assert_eq!(stored.get(key), Some(text), "answer {key} was acknowledged");
        }
        // At most the two that were under way are there without having been acknowledged, in each round.
        assert!(stored.len() <= acknowledged.len() + 2 * (round as usize + 1));
        store.close().await;
    }
    assert!(acknowledged.len() > 10, "the process did some work: {}", acknowledged.len());
}
