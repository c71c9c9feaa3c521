//! The trainer: it learns, it does not learn from shuffled descriptions, and a killed run stands where it stood.

use candle_core::Device;
use iliad::config::run::TeacherMode;
use iliad::ids::{AnswerId, TeacherId};
use iliad::registry::Registry;
use iliad::run::{Command, Event, RunState};
use iliad::store::{AnswerKind, NewAnswer, Run, Store};
use iliad::trainer::{FinalReport, Launch, checkpoint};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn set(items: &[&str]) -> Vec<String> {
    items.iter().map(|s| s.to_string()).collect()
}

/// Runs a configuration offline to its end; the validation readings and the report.
fn train(folder: &Path, overrides: &[&str]) -> (Vec<f64>, FinalReport) {
    let config = Registry::builtin().configure("tiny", 1, &set(overrides)).unwrap();
    let readings = Arc::new(Mutex::new(Vec::new()));
    let seen = readings.clone();
    let launch = Launch {
        id: "test".into(),
        config,
        folder: folder.to_owned(),
        device: Device::Cpu,
        store: None,
        teacher: None,
        listener: Some(Box::new(move |event| {
            if let Event::Point(point) = &**event
                && let Some(rate) = point.validation
            {
                seen.lock().unwrap().push(rate.value);
            }
        })),
    };
    let (_handle, thread) = Registry::builtin().family("regex").unwrap().spawn(launch).unwrap();
    let report = thread.join().unwrap().unwrap();
    let readings = readings.lock().unwrap().clone();
    (readings, report)
}

#[test]
fn adel_learns_and_learns_nothing_from_shuffled_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let length = ["schedule.episodes=4800", "schedule.evaluate_every=30"];
    let (readings, report) = train(&dir.path().join("a"), &length);
    assert!(readings[0] < 0.03, "it begins with nothing: {readings:?}");
    let half = readings.len() / 2;
    let mean = |r: &[f64]| r.iter().sum::<f64>() / r.len() as f64;
    assert!(mean(&readings[half..]) > 0.25, "it learns: {readings:?}");
    assert!(report.validation.value > 0.25 && report.test.value > 0.15, "{report:?}");
    assert!(report.complete && report.episodes == 4800 && report.descriptions > 500);

    // Without a word understood, always making the same edit succeeds for its own kind, one in eight: so much can be had
    // from shuffled descriptions, and no more.
    let shuffled = [length[0], length[1], "algorithm.shuffle_descriptions=true"];
    let (blind, _) = train(&dir.path().join("b"), &shuffled);
    assert!(blind.iter().all(|r| *r < 0.25), "nothing can be learnt from shuffled descriptions: {blind:?}");
    let last = readings.len() - 2;
    assert!(
        mean(&readings[last..]) > mean(&blind[last..]) + 0.1,
        "true descriptions teach more than shuffled ones: {readings:?} against {blind:?}"
    );
    eprintln!("validation success {readings:?}; with shuffled descriptions {blind:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, seed: &str| {
        let folder = dir.path().join(name);
        let (_, report) = train(&folder, &["schedule.episodes=160", seed]);
        (weights(&folder), report.descriptions)
    };
    let (a, b, c) = (run("a", "seed=1"), run("b", "seed=1"), run("c", "seed=2"));
    assert_eq!(a, b);
    assert_ne!(a.0, c.0);
}

#[test]
fn a_run_that_goes_on_says_while_it_loads_what_it_had_learnt() {
    let dir = tempfile::tempdir().unwrap();
    let (_, report) = train(dir.path(), &["schedule.episodes=64"]);
    let loading = Arc::new(Mutex::new(Vec::new()));
    let seen = loading.clone();
    let launch = Launch {
        id: "test".into(),
        config: Registry::builtin().configure("tiny", 1, &set(&["schedule.episodes=64"])).unwrap(),
        folder: dir.path().to_owned(),
        device: Device::Cpu,
        store: None,
        teacher: None,
        listener: Some(Box::new(move |event| {
            if let Event::Status(status) = &**event
                && matches!(status.state, RunState::Starting { .. })
            {
                seen.lock().unwrap().push((status.update, status.episodes, status.descriptions_simulated));
            }
        })),
    };
    let (_handle, thread) = Registry::builtin().family("regex").unwrap().spawn(launch).unwrap();
    thread.join().unwrap().unwrap();
    let loading = loading.lock().unwrap();
    assert!(!loading.is_empty());
    assert!(loading.iter().all(|told| *told == (report.updates, 64, report.descriptions)), "{loading:?}");
}

/// Every tensor of the newest checkpoint, as bits.
fn weights(folder: &Path) -> Vec<(String, Vec<u32>)> {
    let (found, complaints) = checkpoint::newest(folder).unwrap();
    assert!(complaints.is_empty(), "{complaints:?}");
    let bits = |t: candle_core::Tensor| {
        t.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    };
    found.unwrap().1.into_iter().map(|(name, t)| (name, bits(t))).collect()
}

fn iliad() -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_iliad"));
    command.env("RAYON_NUM_THREADS", "2").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn a_killed_run_ends_bit_identical_to_one_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    // With every part that draws or remembers something.
    let common = [
        "schedule.episodes=1536",
        "schedule.checkpoint_every=5",
        "algorithm.replay=1",
        "algorithm.word_dropout=0.1",
        "algorithm.ask.candidates=2",
        "algorithm.ask.samples=1",
        "model.letters=renamed",
        "task.more_words=1",
    ]
    .map(|setting| ["--set", setting]);
    let start = |folder: &Path| {
        let mut c = iliad();
        c.args(["train", "--preset", "tiny", "--seed", "7", "--run-dir"]).arg(folder).args(common.concat());
        c
    };
    let whole = dir.path().join("whole");
    assert!(start(&whole).status().unwrap().success());

    let broken = dir.path().join("broken");
    let mut child = start(&broken).spawn().unwrap();
    let mut kills = 0;
    let begin = Instant::now();
    loop {
        // Kill it whenever two new checkpoints have come, at whatever it is doing then.
        let before = newest_update(&broken);
        while newest_update(&broken) < before + 6 && child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(300), "the run makes no progress");
            std::thread::sleep(Duration::from_millis(15));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        let mut again = iliad();
        again.args(["train", "--resume", "--run-dir"]).arg(&broken);
        child = again.spawn().unwrap();
    }
    assert!(kills >= 1, "it was killed at least once");
    assert_eq!(weights(&whole), weights(&broken));
    let text = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(text(&whole, "descriptions.jsonl"), text(&broken, "descriptions.jsonl"));
}

fn newest_update(folder: &Path) -> u64 {
    let name = |p: &std::path::PathBuf| p.file_stem().unwrap().to_string_lossy()["update-".len()..].parse().unwrap();
    checkpoint::list(folder).last().map_or(0, name)
}

#[test]
fn a_broken_checkpoint_is_passed_over_and_only_broken_ones_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    train(dir.path(), &["schedule.episodes=192", "schedule.checkpoint_every=3"]);
    let all = checkpoint::list(dir.path());
    assert_eq!(all.len(), 2, "two are kept");
    let newest = std::fs::read(&all[1]).unwrap();
    std::fs::write(&all[1], &newest[..newest.len() / 2]).unwrap();
    let (found, complaints) = checkpoint::newest(dir.path()).unwrap();
    assert!(found.unwrap().0.counters.update == 3 && complaints.len() == 1);
    std::fs::write(&all[0], "nonsense").unwrap();
    assert!(checkpoint::newest(dir.path()).unwrap_err().to_string().contains("none of the run's checkpoints"));
}

/// A run with a store and people: its trainer, and hands to answer with.
struct Live {
    store: Store,
    handle: iliad::run::RunHandle,
    thread: std::thread::JoinHandle<anyhow::Result<FinalReport>>,
}

async fn go_live(folder: &Path, overrides: &[&str]) -> Live {
    let store = Store::open(&folder.join("test.sqlite")).await.unwrap();
    let config = Registry::builtin().configure("tiny", 3, &set(overrides)).unwrap();
    if store.runs().await.unwrap().is_empty() {
        let run = Run {
            id: "live".into(),
            family: "regex".into(),
            preset: "tiny".into(),
            config: serde_json::to_value(&config).unwrap(),
            seed: 3,
            teacher: TeacherMode::Human,
            active: true,
            created_at: time::OffsetDateTime::now_utc(),
        };
        store.create_run(&run).await.unwrap();
    }
    let launch = Launch {
        id: "live".into(),
        config,
        folder: folder.join("run"),
        device: Device::Cpu,
        store: Some((store.clone(), tokio::runtime::Handle::current())),
        teacher: Some(store.run(&"live".into()).await.unwrap().teacher),
        listener: None,
    };
    let (handle, thread) = Registry::builtin().family("regex").unwrap().spawn(launch).unwrap();
    Live { store, handle, thread }
}

impl Live {
    async fn until(&self, what: &str, condition: impl Fn(&iliad::run::Status) -> bool) {
        let mut status = self.handle.status.clone();
        let waited = tokio::time::timeout(Duration::from_secs(300), status.wait_for(|s| condition(s))).await;
        assert!(waited.is_ok_and(|r| r.is_ok()), "waited for {what}; now {:?}", self.handle.status.borrow());
    }

    async fn answer(&self, teacher: TeacherId, key: &str, text: &str) -> bool {
        let lease = self.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap();
        let Some(lease) = lease else { return false };
        let answer = NewAnswer {
            client_key: key.into(),
            execution: lease.execution,
            teacher,
            kind: AnswerKind::Described,
            text: text.into(),
            shown_at: None,
            active_ms: Some(1200),
        };
        self.store.answer(&answer).await.unwrap();
        self.handle.commands.send(Command::DescriptionArrived).unwrap();
        true
    }

    async fn end(self, command: Command) -> FinalReport {
        self.handle.commands.send(command).unwrap();
        tokio::task::spawn_blocking(move || self.thread.join().unwrap().unwrap()).await.unwrap()
    }
}

async fn wait_for_work(live: &Live) {
    for _ in 0..600 {
        if live.store.pool(&"live".into()).await.unwrap().open > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no execution came into the pool");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_teach_and_their_answers_are_used_once_even_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let overrides = [
        "algorithm.replay=2",
        "algorithm.ask.candidates=3",
        "algorithm.ask.samples=1",
        "schedule.checkpoint_every=4",
        "schedule.evaluate_every=1000",
    ];
    let live = go_live(dir.path(), &overrides).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    wait_for_work(&live).await;
    for i in 0..7u64 {
        assert!(live.answer(teacher, &format!("key {i}"), "replace the zebra with [ q ]").await);
        live.until("the answer to be used", |s| s.descriptions_human > i).await;
        wait_for_work(&live).await;
    }
    let used = live.store.used_answers(&"live".into(), u64::MAX >> 1).await.unwrap();
    assert_eq!(used.len(), 7);
    // What a crash leaves: the store as it is, the checkpoint of update 4. The later updates are lost with the memory.
    let whole = copy(dir.path());
    live.end(Command::Shutdown).await;
    let expected = weights(&dir.path().join("run"));

    let again = go_live(whole.path(), &overrides).await;
    again.until("the lost updates to be made again", |s| s.state == RunState::Running && s.update == 7).await;
    assert_eq!(again.store.used_answers(&"live".into(), u64::MAX >> 1).await.unwrap().len(), 7);
    again.end(Command::Shutdown).await;
    assert_eq!(weights(&whole.path().join("run")), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_typed_before_the_simulated_teacher_took_over_is_learnt_from() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.checkpoint_every=10"]).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    wait_for_work(&live).await;
    let lease = live.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap().unwrap();
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Simulated)).unwrap();
    live.until("the simulated teacher", |s| s.descriptions_simulated > 0).await;
    let answer = NewAnswer {
        client_key: "late".into(),
        execution: lease.execution,
        teacher,
        kind: AnswerKind::Described,
        text: "remove the last letter".into(),
        shown_at: None,
        active_ms: None,
    };
    live.store.answer(&answer).await.unwrap();
    live.until("the late answer to be used", |s| s.descriptions_human == 1).await;
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_has_one_trainer() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &[]).await;
    live.until("the run to begin", |s| s.state == RunState::Running).await;
    let second = iliad()
        .args(["train", "--resume", "--run-dir"])
        .arg(dir.path().join("run"))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(1) && said.contains("another program is training"), "{said}");
    live.end(Command::Shutdown).await;
}

/// The folder as a kill at this moment would leave it: without the checkpoint that an orderly end writes.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    std::fs::create_dir(to.path().join("run")).unwrap();
    for folder in ["", "run"] {
        for entry in std::fs::read_dir(from.join(folder)).unwrap().flatten() {
            if entry.path().is_file() {
                std::fs::copy(entry.path(), to.path().join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    to
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_and_the_simulated_teacher_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.checkpoint_every=10"]).await;
    wait_for_work(&live).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Mixed { share: 0.3 })).unwrap();
    let mut keys = 0;
    for person in ["first", "second"] {
        let teacher = live.store.teacher(person).await.unwrap().id;
        for _ in 0..10 {
            wait_for_work(&live).await;
            keys += u64::from(live.answer(teacher, &format!("{person} {keys}"), "remove every [ e ]").await);
        }
    }
    assert_eq!(keys, 20);
    live.until("all answers to be used", |s| s.descriptions_human == 20 && s.descriptions_simulated > 50).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Human)).unwrap();
    live.until("people alone to teach", |s| s.teacher == TeacherMode::Human).await;
    let (reply, answer) = tokio::sync::oneshot::channel();
    let form = serde_json::json!({ "words-0": "Banana", "words-1": "" });
    live.handle.commands.send(Command::Try { request: "delete the last letter".into(), start: form, reply }).unwrap();
    let tried = answer.await.unwrap().unwrap();
    assert_eq!(tried.view["pairs"][0]["in"], "banana");
    let (reply, answer) = tokio::sync::oneshot::channel();
    let form = serde_json::json!({});
    live.handle.commands.send(Command::Try { request: "x".into(), start: form, reply }).unwrap();
    assert!(answer.await.unwrap().unwrap_err().contains("at least one word"));
    let store = live.store.clone();
    live.end(Command::Stop).await;
    assert!(!store.run(&"live".into()).await.unwrap().active, "a stopped run is not resumed");
    let rows = store.export_page(None, AnswerId::default(), 100_000).await.unwrap();
    assert_eq!(rows.len() as u64, store.export_count(None).await.unwrap());
    assert_eq!(rows.iter().filter(|r| r.source == iliad::run::Source::Human && r.used_in_update.is_some()).count(), 20);
}

/// What many scripted people met.
#[derive(Default)]
struct Met {
    served: u64,
    /// Times that somebody who had been served before found nothing.
    nothing: u64,
}

/// `people` teachers who each describe `rounds` executions and think `think` milliseconds about each, one and a half times
/// as long at most.
async fn many_teach(live: &Live, people: u64, rounds: u64, think: u64) -> Met {
    let mut all = Vec::new();
    for person in 0..people {
        let (store, commands) = (live.store.clone(), live.handle.commands.clone());
        let teacher = store.teacher(&format!("person {person}")).await.unwrap().id;
        all.push(tokio::spawn(async move {
            let mut met = Met::default();
            for round in 0..rounds {
                let lease = loop {
                    let lease = store.lease(&"live".into(), teacher, &[], time::Duration::minutes(3)).await.unwrap();
                    if let Some(lease) = lease {
                        break lease;
                    }
                    met.nothing += u64::from(round > 0);
                    tokio::time::sleep(Duration::from_millis(250)).await;
                };
                met.served += 1;
                // Not all at once: people think for different times.
                tokio::time::sleep(Duration::from_millis(think + (person * 37 + round * 91) % (think / 2))).await;
                let answer = NewAnswer {
                    client_key: format!("{person} {round}"),
                    execution: lease.execution,
                    teacher,
                    kind: AnswerKind::Described,
                    text: "remove the last letter".into(),
                    shown_at: None,
                    active_ms: None,
                };
                store.answer(&answer).await.unwrap();
                commands.send(Command::DescriptionArrived).unwrap();
            }
            met
        }));
    }
    let mut sum = Met::default();
    for person in all {
        let met = tokio::time::timeout(Duration::from_secs(300), person).await.expect("everybody is served").unwrap();
        (sum.served, sum.nothing) = (sum.served + met.served, sum.nothing + met.nothing);
    }
    eprintln!("{} were served, {} times there was nothing", sum.served, sum.nothing);
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_teachers_do_not_wait_for_updates() {
    let dir = tempfile::tempdir().unwrap();
    // Updates take long, as they do where two cores train a larger agent.
    let live = go_live(dir.path(), &["algorithm.replay=200", "schedule.evaluate_every=1000"]).await;
    wait_for_work(&live).await;
    let met = many_teach(&live, 60, 4, 3000).await;
    assert_eq!(met.served, 240);
    assert!(met.nothing * 3 <= met.served, "{} of {} found nothing", met.nothing, met.served + met.nothing);
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_served_beside_the_simulated_teacher() {
    let dir = tempfile::tempdir().unwrap();
    let live =
        go_live(dir.path(), &["algorithm.replay=200", "schedule.episodes=0", "schedule.evaluate_every=1000"]).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Mixed { share: 0.05 })).unwrap();
    wait_for_work(&live).await;
    let met = many_teach(&live, 30, 4, 3000).await;
    assert!(met.nothing * 3 <= met.served, "{} of {} found nothing", met.nothing, met.served + met.nothing);
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_describes_nothing_spends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.episodes=12"]).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for n in 0..16 {
        wait_for_work(&live).await;
        let lease = live.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap().unwrap();
        let answer = NewAnswer {
            client_key: format!("nothing {n}"),
            execution: lease.execution,
            teacher,
            kind: if n % 2 == 0 { AnswerKind::CannotDescribe } else { AnswerKind::NothingChanged },
            text: String::new(),
            shown_at: None,
            active_ms: None,
        };
        live.store.answer(&answer).await.unwrap();
        live.handle.commands.send(Command::DescriptionArrived).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = live.handle.status.borrow().clone();
    assert!(status.state == RunState::Running && status.episodes == 0 && status.update == 0, "{status:?}");
    // They go along with the first description.
    wait_for_work(&live).await;
    assert!(live.answer(teacher, "first", "remove the last letter").await);
    live.until("the description to be used", |s| s.descriptions_human == 1 && s.episodes == 1 && s.update == 1).await;
    assert!(live.store.unused_answers(&"live".into(), 99).await.unwrap().len() <= 16);
    live.end(Command::Shutdown).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skipping_spends_nothing_and_comes_to_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let live = go_live(dir.path(), &["schedule.episodes=64"]).await;
    wait_for_work(&live).await;
    let skipper = live.store.teacher("skipper").await.unwrap().id;
    let (mut skipped, mut nothing) = (0u64, 0);
    let begun = Instant::now();
    while nothing < 20 && skipped < 2000 {
        let Some(lease) = live.store.lease(&"live".into(), skipper, &[], time::Duration::minutes(2)).await.unwrap()
        else {
            nothing += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let answer = NewAnswer {
            client_key: format!("skip {skipped}"),
            execution: lease.execution,
            teacher: skipper,
            kind: AnswerKind::Skipped,
            text: "too long".into(),
            shown_at: None,
            active_ms: None,
        };
        live.store.answer(&answer).await.unwrap();
        live.handle.commands.send(Command::DescriptionArrived).unwrap();
        skipped += 1;
    }
    // Two pools, and a little for each second that passed.
    let most = 2 * 24 + 8 + begun.elapsed().as_secs();
    assert!((24..=most).contains(&skipped), "one person's skips made the machine execute {skipped} episodes");
    let status = live.handle.status.borrow().clone();
    assert!(status.state == RunState::Running && status.episodes == 0, "{status:?}");
    // Somebody who describes finds what was skipped, and it counts.
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    assert!(live.answer(teacher, "first", "remove the last letter").await);
    live.until("the answer to be used", |s| s.descriptions_human == 1 && s.episodes == 1).await;
    live.end(Command::Shutdown).await;
    let again = go_live(dir.path(), &["schedule.episodes=64"]).await;
    again.until("the run to go on", |s| s.state == RunState::Running && s.episodes == 1).await;
    again.end(Command::Shutdown).await;
}

/// A small file system of its own, while it lives.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this user may not mount one.
    fn of(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_waited_for_again_and_again() {
    let Some(disk) = SmallDisk::of("24m") else {
        eprintln!("skipped: a small file system can be mounted by root only");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(disk.0.path(), dir.path().join("run")).unwrap();
    let often = ["schedule.checkpoint_every=2", "schedule.evaluate_every=1000", "schedule.point_every=1"];
    let live = go_live(dir.path(), &often).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    wait_for_work(&live).await;
    let ballast = disk.0.path().join("ballast");
    let mut used = 0;
    for round in 0..6u64 {
        // No byte is left: whatever the trainer writes next fails, each time something else.
        let mut file = std::fs::File::create(&ballast).unwrap();
        let mut size = 1 << 20;
        while size > 0 {
            if std::io::Write::write_all(&mut file, &vec![1; size]).is_err() {
                size /= 2;
            }
        }
        let waits = |s: &iliad::run::Status| matches!(&s.state, RunState::Starting { what, .. } if what.contains("room on the disk"));
        let mut answers = 0;
        while !waits(&live.handle.status.borrow()) {
            wait_for_work(&live).await;
            answers += u64::from(live.answer(teacher, &format!("{round} {answers}"), "remove every [ e ]").await);
            live.until("the answer to be used, or the run to wait", |s| {
                waits(s) || s.descriptions_human == used + answers
            })
            .await;
            assert!(answers < 100, "round {round}: the disk is full, and the run goes on");
        }
        used += answers;
        drop(file);
        std::fs::remove_file(&ballast).unwrap();
        live.until("the run to go on", |s| s.state == RunState::Running && s.descriptions_human == used).await;
    }
    live.end(Command::Shutdown).await;
    let record = std::fs::read_to_string(disk.0.path().join("descriptions.jsonl")).unwrap();
    assert_eq!(record.lines().count() as u64, used);
    for line in record.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_files_are_made_again_from_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = r#"teacher.mode={"mode":"mixed","share":0.3}"#;
    let overrides = [mixed, "schedule.checkpoint_every=5", "schedule.episodes=0", "schedule.point_every=2"];
    let live = go_live(dir.path(), &overrides).await;
    live.handle.commands.send(Command::SetTeacher(TeacherMode::Mixed { share: 0.3 })).unwrap();
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    for i in 0..5 {
        wait_for_work(&live).await;
        live.answer(teacher, &format!("key {i}"), "remove every [ e ]").await;
    }
    live.until("both to have taught", |s| s.descriptions_human == 5 && s.descriptions_simulated > 60).await;
    let store = live.store.clone();
    live.end(Command::Shutdown).await;
    store.set_teacher_mode(&"live".into(), TeacherMode::Human).await.unwrap();
    let run = dir.path().join("run");
    let record = std::fs::read_to_string(run.join("descriptions.jsonl")).unwrap();
    let curve = std::fs::read_to_string(run.join("curve.jsonl")).unwrap();
    let points: Vec<iliad::run::Point> = curve.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    store.record_points(&"live".into(), &points).await.unwrap();
    std::fs::write(run.join("update-00000001.4711.tmp"), "half").unwrap();
    let damages: [fn(&Path); 3] = [
        |run| {
            std::fs::remove_file(run.join("descriptions.jsonl")).unwrap();
            std::fs::remove_file(run.join("curve.jsonl")).unwrap();
        },
        |run| {
            let text = std::fs::read(run.join("descriptions.jsonl")).unwrap();
            std::fs::write(run.join("descriptions.jsonl"), &text[..text.len() / 2]).unwrap();
        },
        |run| std::fs::write(run.join("curve.jsonl"), "nonsense\n{}\n").unwrap(),
    ];
    for damage in damages {
        damage(&run);
        let again = go_live(dir.path(), &overrides).await;
        again.until("the run to go on", |s| s.state == RunState::Running).await;
        again.end(Command::Shutdown).await;
        assert_eq!(std::fs::read_to_string(run.join("descriptions.jsonl")).unwrap(), record);
        assert_eq!(std::fs::read_to_string(run.join("curve.jsonl")).unwrap(), curve);
    }
    assert!(!run.join("update-00000001.4711.tmp").exists(), "what a kill left half written is cleared away");
}
