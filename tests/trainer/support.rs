//! Fixtures of the trainer's tests: offline runs, and runs with a store that people teach.

use candle_core::Device;
use iliad::config::run::TeacherMode;
use iliad::ids::{ExecutionId, TeacherId};
use iliad::registry::Registry;
use iliad::run::{Command, Event};
use iliad::store::{AnswerKind, Leased, NewAnswer, Response, Run, Store};
use iliad::trainer::{FinalReport, Launch, checkpoint};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub fn set(items: &[&str]) -> Vec<String> {
    items.iter().map(|s| s.to_string()).collect()
}

/// Runs a configuration offline to its end; the validation readings and the report.
pub fn train(folder: &Path, overrides: &[&str]) -> (Vec<f64>, FinalReport) {
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

/// Every tensor of the newest checkpoint, as bits.
pub fn weights(folder: &Path) -> Vec<(String, Vec<u32>)> {
    let (found, complaints) = checkpoint::newest(folder).unwrap();
    assert!(complaints.is_empty(), "{complaints:?}");
    let bits = |t: candle_core::Tensor| {
        t.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    };
    found.unwrap().1.into_iter().map(|(name, t)| (name, bits(t))).collect()
}

pub fn iliad() -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_iliad"));
    command.env("RAYON_NUM_THREADS", "2").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A run with a store and people: its trainer, and hands to answer with.
pub struct Live {
    pub store: Store,
    pub handle: iliad::run::RunHandle,
    thread: std::thread::JoinHandle<anyhow::Result<FinalReport>>,
}

/// Starts the run `live` in a folder, or goes on with it. Most tests do not look at how well it learns: it replays nothing,
/// which makes an update four times as quick, unless an override says otherwise.
pub async fn go_live(folder: &Path, overrides: &[&str]) -> Live {
    let store = Store::open(&folder.join("test.sqlite")).await.unwrap();
    let overrides = [&["algorithm.replay=0"], overrides].concat();
    let config = Registry::builtin().configure("tiny", 3, &set(&overrides)).unwrap();
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
    pub async fn until(&self, what: &str, condition: impl Fn(&iliad::run::Status) -> bool) {
        let mut status = self.handle.status.clone();
        let waited = tokio::time::timeout(Duration::from_secs(300), status.wait_for(|s| condition(s))).await;
        assert!(waited.is_ok_and(|r| r.is_ok()), "waited for {what}; now {:?}", self.handle.status.borrow());
    }

    pub async fn answer(&self, teacher: TeacherId, key: &str, text: &str) -> bool {
        self.respond(teacher, key, |_| (text.to_owned(), Response::Text)).await
    }

    /// Answers in the run's medium: `say` makes text and response of what the teacher is shown.
    pub async fn respond(
        &self,
        teacher: TeacherId,
        key: &str,
        say: impl FnOnce(&Leased) -> (String, Response),
    ) -> bool {
        let lease = self.store.lease(&"live".into(), teacher, &[], time::Duration::minutes(2)).await.unwrap();
        let Some(lease) = lease else { return false };
        self.store_answer(teacher, lease.execution, key, AnswerKind::Described, say(&lease)).await;
        true
    }

    /// Stores an answer and tells the trainer.
    pub async fn store_answer(
        &self,
        teacher: TeacherId,
        execution: ExecutionId,
        key: &str,
        kind: AnswerKind,
        (text, response): (String, Response),
    ) {
        let answer = NewAnswer {
            client_key: key.into(),
            execution,
            teacher,
            kind,
            text,
            response,
            shown_at: None,
            active_ms: Some(1200),
            ..NewAnswer::default()
        };
        self.store.answer(&answer).await.unwrap();
        self.handle.commands.send(Command::DescriptionArrived).unwrap();
    }

    pub async fn end(self, command: Command) -> FinalReport {
        self.handle.commands.send(command).unwrap();
        tokio::task::spawn_blocking(move || self.thread.join().unwrap().unwrap()).await.unwrap()
    }
}

pub async fn wait_for_work(live: &Live) {
    for _ in 0..600 {
        if live.store.pool(&"live".into()).await.unwrap().open > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no execution came into the pool");
}
