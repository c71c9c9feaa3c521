//! A backup of a server that learns and is taught meanwhile, put back, and what comes of mixing two times.

use crate::{iliad, run};
use iliad::ids::{AnswerId, RunId};
use iliad::store::{AnswerKind, NewAnswer, Store};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(480);

/// A server in a process of its own.
struct Served {
    child: Child,
    log: Option<std::thread::JoinHandle<String>>,
}

impl Served {
    /// Starts it and waits until its pages are up.
    fn start(home: &Path, data: &str) -> Served {
        let mut command = iliad(home);
        command.args(["--port", "0", "--data-dir", data, "--preset", "tiny", "--set", "schedule.checkpoint_every=2"]);
        command.args(["--set", "schedule.evaluate_every=100000"]);
        command.args(["--set", r#"teacher.mode={"mode":"mixed","share":0.5}"#]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = Vec::new();
            let _ = stderr.read_to_end(&mut log);
            String::from_utf8_lossy(&log).into_owned()
        });
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains("Iliad is ready"), "{first}");
        Served { child, log: Some(log) }
    }

    /// Ends it in an orderly way; what it logged.
    fn stop(mut self) -> String {
        let told = std::process::Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(told.success());
        assert!(self.child.wait().unwrap().success(), "an orderly end");
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody who answers what the run has to describe; each answer's key and text once it is acknowledged.
async fn teach(store: &Store, run: &RunId, answers: usize) -> HashMap<AnswerId, String> {
    let teacher = store.teacher("0123").await.unwrap().id;
    let mut acknowledged = HashMap::new();
    let begin = Instant::now();
    while acknowledged.len() < answers {
        assert!(begin.elapsed() < PATIENCE, "only {} answers could be given", acknowledged.len());
        let Some(leased) = store.lease(run, teacher, &[], time::Duration::minutes(3)).await.unwrap() else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let text = format!("replace the letter at {} with q", leased.execution);
        let answer = NewAnswer {
            client_key: format!("key {}", leased.execution),
            execution: leased.execution,
            teacher,
            kind: AnswerKind::Described,
            text: text.clone(),
            response: iliad::store::Response::Text,
            shown_at: None,
            active_ms: None,
            ..NewAnswer::default()
        };
        let stored = store.answer(&answer).await.unwrap();
        acknowledged.insert(stored.answer, text);
    }
    acknowledged
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < PATIENCE, "waited for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn only_run(store: &Store) -> RunId {
    store.runs().await.unwrap().pop().unwrap().id
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_live_server_goes_on_where_it_was() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { home.path().join(name) };
    let server = Served::start(home.path(), "data");
    let store = Store::open(&at("data/iliad.sqlite")).await.unwrap();
    let id = only_run(&store).await;
    let before = teach(&store, &id, 12).await;
    until("a checkpoint", async || store.last_update(&id).await.unwrap().unwrap_or(0) >= 5).await;

    // Backed up while people answer and the agent learns.
    let backing_up = {
        let home = home.path().to_owned();
        std::thread::spawn(move || run(iliad(&home).args(["backup", "--data-dir", "data", "-o", "backup"])))
    };
    while !backing_up.is_finished() {
        teach(&store, &id, 1).await;
    }
    let (code, out, said) = backing_up.join().unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("backup has the database and 1 run"), "{out}");
    teach(&store, &id, 5).await;
    store.close().await;
    drop(server); // killed

    let (code, _, said) = run(iliad(home.path()).args(["restore", "backup", "--data-dir", "restored"]));
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = run(iliad(home.path()).args(["restore", "backup", "--data-dir", "restored"]));
    assert!(code == 1 && said.contains("restored holds something already"), "{code} {said}");
    let server = Served::start(home.path(), "restored");
    let store = Store::open(&at("restored/iliad.sqlite")).await.unwrap();
    let known = store.export_count(None).await.unwrap();
    let after = teach(&store, &id, 6).await;
    until("all answers to be learnt from", async || store.unused_answers(&id, 9).await.unwrap().is_empty()).await;
    store.close().await;
    server.stop();

    // The one file has it all, and every answer is in one update.
    assert!(!at("restored/iliad.sqlite-wal").exists(), "an orderly end leaves one file");
    let store = Store::open(&at("restored/iliad.sqlite")).await.unwrap();
    assert!(store.export_count(None).await.unwrap() > known);
    let rows = store.export_page(None, AnswerId::default(), u32::MAX).await.unwrap();
    let texts: HashMap<AnswerId, &str> = rows.iter().map(|row| (row.answer, row.text.as_str())).collect();
    for (key, text) in before.iter().chain(&after) {
        assert_eq!(texts.get(key), Some(&text.as_str()), "answer {key} was acknowledged");
    }
    let updates = store.updates_after(&id, 0).await.unwrap();
    let numbers: Vec<u64> = updates.iter().map(|record| record.update).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no hole");
    let record = std::fs::read_to_string(at("restored/runs").join(id.as_str()).join("descriptions.jsonl")).unwrap();
    let learnt: Vec<u64> = record
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["episode"].as_u64().unwrap())
        .collect();
    let different: BTreeSet<u64> = learnt.iter().copied().collect();
    assert_eq!(different.len(), learnt.len(), "no example was learnt twice");
    for row in rows.iter().filter(|row| row.teacher.is_some() && row.used_in_update.is_some()) {
        assert!(different.contains(&row.episode), "answer {} was learnt from", row.answer);
    }
    store.close().await;

    // Copying by hand may give newer files of the run beside an older database.
    copy_folder(&at("restored/runs"), &at("mixed/runs"));
    std::fs::copy(at("backup/iliad.sqlite"), at("mixed/iliad.sqlite")).unwrap();
    copy_folder(&at("restored/runs").join(id.as_str()), &at("mixed/runs/newer"));
    let server = Served::start(home.path(), "mixed");
    let mixed = Store::open(&at("mixed/iliad.sqlite")).await.unwrap();
    let answers = mixed.used_answers(&id, u64::MAX >> 1).await.unwrap().len();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(mixed.used_answers(&id, u64::MAX >> 1).await.unwrap().len(), answers, "nothing is learnt twice");
    mixed.close().await;
    let log = server.stop();
    assert!(log.contains("older than this run's checkpoint") && log.contains("iliad restore"), "{log}");
    assert!(log.contains("does not know the run in") && log.contains("newer"), "{log}");

    // A backup that lost a bit is refused, and leaves nothing behind.
    let list = std::fs::read_to_string(at("backup/backup.json")).unwrap();
    let file =
        list.lines().find_map(|line| line.trim().strip_prefix('"')?.strip_suffix("descriptions.jsonl\": {")).unwrap();
    std::fs::write(at("backup").join(format!("{file}descriptions.jsonl")), "other words\n").unwrap();
    let (code, _, said) = run(iliad(home.path()).args(["restore", "backup", "--data-dir", "damaged"]));
    assert!(code == 1 && said.contains("is not as it was backed up"), "{code} {said}");
    assert!(!std::fs::read_dir(at("damaged")).is_ok_and(|mut left| left.next().is_some()));
}

#[test]
fn there_is_nothing_to_back_up_or_restore() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, said) = run(iliad(home.path()).args(["backup", "-o", "b"]));
    assert!(code == 2 && said.contains("there is no database in iliad-data"), "{code} {said}");
    assert!(!home.path().join("b").exists());
    std::fs::create_dir(home.path().join("b")).unwrap();
    let (code, _, said) = run(iliad(home.path()).args(["restore", "b"]));
    assert!(code == 1 && said.contains("b is no backup that `iliad backup` made"), "{code} {said}");
    assert!(!home.path().join("iliad-data").exists());
}

/// Every command that opens the database leaves it whole in its one file, however the command ends.
#[test]
fn every_command_leaves_one_file() {
    let home = tempfile::tempdir().unwrap();
    crate::filled(home.path(), 30);
    for arguments in [
        &["export"][..],
        &["export", "--run", "none"],
        &["doctor"],
        &["backup", "-o", "b"],
        &["--port", "0", "--address", "203.0.113.7"],
    ] {
        run(iliad(home.path()).args(arguments));
        let mut left: Vec<_> = std::fs::read_dir(home.path().join("iliad-data"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("iliad.sqlite"))
            .collect();
        left.sort();
        assert_eq!(left, ["iliad.sqlite"], "{arguments:?}");
    }
}

#[test]
fn a_data_folder_that_may_only_be_read_is_exported() {
    let home = tempfile::tempdir().unwrap();
    crate::filled(home.path(), 30);
    let data = home.path().join("iliad-data");
    // The newest rows of a database that nobody closed are in the log.
    let open = tokio::runtime::Runtime::new().unwrap();
    let store = open.block_on(async {
        let store = Store::open(&data.join("iliad.sqlite")).await.unwrap();
        store.teacher("somebody").await.unwrap();
        store
    });
    for with_log in [true, false] {
        let copy = home.path().join(format!("copy-{with_log}"));
        copy_folder(&data, &copy);
        let _ = std::fs::remove_file(copy.join("iliad.sqlite-shm"));
        if !with_log {
            open.block_on(store.close());
            std::fs::remove_dir_all(&copy).unwrap();
            copy_folder(&data, &copy);
        }
        let mounted = std::process::Command::new("mount").args(["--bind", "-o", "ro"]).args([&copy, &copy]).output();
        let mounted = mounted.is_ok_and(|done| done.status.success());
        let is_read_only = std::fs::write(copy.join("probe"), "x").is_err();
        if !is_read_only {
            println!("skipped: a folder can only be mounted read-only by root on Linux");
            let _ = std::fs::remove_file(copy.join("probe"));
        } else {
            let name = copy.to_string_lossy().into_owned();
            let (code, out, said) = run(iliad(home.path()).args(["export", "--data-dir", &name]));
            let (backed, _, why) =
                run(iliad(home.path()).args(["backup", "--data-dir", &name, "-o", &format!("b-{with_log}")]));
            if mounted {
                let _ = std::process::Command::new("umount").arg("-l").arg(&copy).output();
            }
            assert_eq!((code, out.lines().count()), (0, 30), "{said}");
            assert_eq!(backed, 0, "{why}");
        }
    }
}

#[test]
fn a_database_that_is_empty_or_gone_beside_runs_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("iliad-data");
    std::fs::create_dir_all(data.join("runs/regex-tiny-1")).unwrap();
    std::fs::write(data.join("runs/regex-tiny-1/update-00000040.safetensors"), "weights").unwrap();
    for content in [None, Some(""), Some("x"), Some("SQLite format 3")] {
        let _ = std::fs::remove_file(data.join("iliad.sqlite"));
        if let Some(content) = content {
            std::fs::write(data.join("iliad.sqlite"), content).unwrap();
        }
        let (code, _, said) = run(iliad(home.path()).args(["--port", "0", "--preset", "tiny"]));
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("iliad.sqlite") && said.contains("iliad restore"), "{said}");
        assert_eq!(std::fs::read_to_string(data.join("iliad.sqlite")).ok().as_deref(), content, "nothing was changed");
    }
}

#[test]
fn uploaded_corpora_are_backed_up_and_what_is_half_uploaded_is_not() {
    let home = tempfile::tempdir().unwrap();
    crate::filled(home.path(), 2);
    for (folder, text) in [("words", "whole"), (".upload-x", "half")] {
        let folder = home.path().join("iliad-data/corpora").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("about.json"), text).unwrap();
    }
    let (code, _, said) = run(iliad(home.path()).args(["backup", "-o", "backup"]));
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = run(iliad(home.path()).args(["restore", "backup", "--data-dir", "restored"]));
    assert_eq!(code, 0, "{said}");
    let corpora = home.path().join("restored/corpora");
    assert_eq!(std::fs::read_to_string(corpora.join("words/about.json")).unwrap(), "whole");
    assert_eq!(std::fs::read_dir(corpora).unwrap().count(), 1);
}
