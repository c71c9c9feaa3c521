//! A family from outside the crate (examples/line) learns, goes on from a checkpoint, and is taught through the pages. And
//! docs/adding-a-task.md shows it as it is.

#[path = "../examples/line/agent.rs"]
mod agent;
#[path = "../examples/line/commands.rs"]
mod commands;
#[path = "line/device_failure.rs"]
mod device_failure;
#[path = "../examples/line/family.rs"]
mod family;
#[path = "../examples/line/teacher.rs"]
mod teacher;
#[path = "../examples/line/world.rs"]
mod world;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use candle_core::{Device, Tensor};
use family::LineFamily;
use iliad::command_line::Exit;
use iliad::config::run::TeacherMode;
use iliad::family::{Audience, Family};
use iliad::protocol::{Decoding, Split, Task, World};
use iliad::registry::Registry;
use iliad::rng;
use iliad::run::{Command, Event, RunState, Status};
use iliad::store::{Run, Store};
use iliad::trainer::{FinalReport, Launch, checkpoint};
use iliad::web::{AppState, Runs, WebSettings, router};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use world::{LineWorld, Place, Walk};

const FAMILIES: Registry = Registry::new(&[&LineFamily]);

fn launch(folder: &Path, preset: &str, overrides: &[&str]) -> Launch {
    let set: Vec<String> = overrides.iter().map(|setting| setting.to_string()).collect();
    let config = FAMILIES.configure(preset, 1, &set).unwrap();
    FAMILIES.family("line").unwrap().check(&config).unwrap();
    let (folder, device) = (folder.to_owned(), Device::Cpu);
    Launch { id: "walks".into(), config, folder, device, store: None, teacher: None, listener: None }
}

/// Trains with the simulated teacher to the end: the readings of validation success, and the report.
fn train(folder: &Path, overrides: &[&str]) -> (Vec<f64>, FinalReport) {
    let readings = Arc::new(Mutex::new(Vec::new()));
    let seen = readings.clone();
    let mut launch = launch(folder, "line/simulated", overrides);
    launch.listener = Some(Box::new(move |event| {
        if let Event::Point(point) = &**event
            && let Some(rate) = point.validation
        {
            seen.lock().unwrap().push(rate.value);
        }
    }));
    let (_handle, thread) = FAMILIES.family("line").unwrap().spawn(launch).unwrap();
    let report = thread.join().unwrap().unwrap();
    let readings = readings.lock().unwrap().clone();
    (readings, report)
}

/// Every tensor of the newest checkpoint, as bits.
fn weights(folder: &Path) -> Vec<(String, Vec<u32>)> {
    let bits = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
    let (found, complaints) = checkpoint::newest(folder).unwrap();
    assert!(complaints.is_empty(), "{complaints:?}");
    found.unwrap().1.into_iter().map(|(name, tensor)| (name, bits(tensor))).collect()
}

#[test]
fn it_learns_from_descriptions_and_not_from_shuffled_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (readings, report) = train(&dir.path().join("a"), &["schedule.episodes=2400"]);
    assert!(readings[0] < 0.5, "it begins with little: {readings:?}");
    assert!(report.validation.value > 0.8 && report.test.value > 0.8, "{readings:?} {report:?}");
    assert!(report.complete && report.descriptions > 300, "{report:?}");
    let best = dir.path().join("a").join(checkpoint::BEST);
    let evaluated = FAMILIES
        .family("line")
        .unwrap()
        .evaluate(&iliad::registry::AgentFile::of(&best), Split::Test, 0, &Device::Cpu, &|_, _| {})
        .unwrap();
    assert_eq!(evaluated.success.value, report.test.value, "a checkpoint holds the agent");
    let (blind, _) = train(&dir.path().join("b"), &["algorithm.shuffle_descriptions=true"]);
    assert!(blind.iter().all(|value| *value < 0.6), "{blind:?}");
}

#[test]
fn every_algorithm_trains_it() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["dagger", "reinforce-binary", "reinforce-continuous", "supervised", "epoch-adel", "true-marginal"] {
        let settings = [&*format!("algorithm.name={name}"), "schedule.episodes=1600", "algorithm.word_dropout=0.05"];
        let replay = if name == "epoch-adel" { "algorithm.replay=0" } else { "algorithm.replay=1" };
        let (readings, report) = train(&dir.path().join(name), &[&settings[..], &[replay]].concat());
        assert!(report.complete && report.updates > 0, "{name}: {report:?}");
        // Imitation of the demonstrations themselves is quick.
        let told = ["dagger", "supervised"].contains(&name);
        assert!(!told || report.validation.value > 0.6, "{name}: {readings:?}");
    }
}

#[test]
fn a_run_that_was_killed_ends_bit_identical_to_one_that_was_not() {
    let dir = tempfile::tempdir().unwrap();
    let length = ["schedule.episodes=1600", "schedule.checkpoint_every=10"];
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    train(&whole, &length);
    // A kill leaves the first checkpoint and a log that is longer than it.
    std::fs::create_dir(&broken).unwrap();
    let newer: Vec<PathBuf> = checkpoint::list(&whole).into_iter().skip(1).collect();
    for entry in std::fs::read_dir(&whole).unwrap().flatten().filter(|entry| !newer.contains(&entry.path())) {
        std::fs::copy(entry.path(), broken.join(entry.file_name())).unwrap();
    }
    let kept = checkpoint::newest(&broken).unwrap().0.unwrap().0.counters.update;
    let (_, report) = train(&broken, &length);
    assert!(kept < report.updates, "there was something to make again: {kept} of {}", report.updates);
    assert_eq!(weights(&broken), weights(&whole));
}

#[test]
fn greedy_walks_do_not_depend_on_the_batch_and_sampled_ones_come_from_the_stream() {
    let config = FAMILIES.configure("line/walk", 1, &[]).unwrap();
    let agent = LineFamily.agent(&config, &Arc::new(LineWorld), &Device::Cpu).unwrap().agent;
    let starts: Vec<Place> = (0..10).map(|at| Place { at }).collect();
    let requests = ["go 2 to the left", "", "wander about until you are tired"];
    let tasks: Vec<(&Place, &str)> = starts.iter().zip(requests.into_iter().cycle()).collect();
    let act = |tasks: &[(&Place, &str)], how| agent.act(tasks, how, &mut rng::stream(1, "walks", 0)).unwrap();
    let alone = tasks.iter().flat_map(|task| act(&[*task], Decoding::Greedy)).collect::<Vec<_>>();
    assert_eq!(act(&tasks, Decoding::Greedy), alone);
    assert_eq!(act(&tasks, Decoding::Sample), act(&tasks, Decoding::Sample));
}

#[test]
fn every_walk_is_shown_and_damaged_views_are_errors() {
    let start = Place { at: 1 };
    for (steps, text) in [("ll", "left the line"), ("r", "from place 1 to place 2"), ("rl", "stayed at place 1")] {
        let walk = Walk { steps: steps.into() };
        let view = LineWorld.view(&start, &walk);
        assert_eq!(LineWorld.execution_of(&start, &view, steps), Some(walk));
        assert!(Family::render_text(&LineFamily, &view).unwrap().contains(text), "{view}");
        assert!(Family::render(&LineFamily, &view, Audience::Teacher).unwrap().contains(text), "{view}");
    }
    for damaged in [json!(null), json!({}), json!({"from": 10, "to": 1}), json!({"from": "<b>", "to": 1})] {
        assert!(Family::render(&LineFamily, &damaged, Audience::Researcher).is_err(), "{damaged}");
    }
    for split in [Split::Train, Split::Validation, Split::Test] {
        for index in 0..LineWorld.len(split) {
            let task = LineWorld.task(split, index);
            assert!(LineWorld.score(&task, &LineWorld.gold(split, index)).success, "{task:?}");
        }
    }
}

#[test]
fn its_own_command_stands_among_those_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tasks.jsonl");
    let run = |arguments: &[&str]| iliad::cli::run([&["line"], arguments].concat(), FAMILIES);
    assert_eq!(run(&["line", "tasks", "--output", file.to_str().unwrap()]), Exit::Done);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<(Task<Place>, Walk)> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3 * LineWorld.len(Split::Train));
    for (task, walk) in &lines {
        assert!(LineWorld.score(task, walk).success, "{task:?} {walk:?}");
    }
    assert_eq!(run(&["line", "tasks"]), Exit::Usage, "a flag is missing");
    // Groups to which no family of the registry brings anything are not there.
    for other in [["execute", "--help"], ["data", "--help"], ["nav", "--help"]] {
        assert_eq!(run(&other), Exit::Usage, "{other:?}");
    }
    assert_eq!(run(&["presets"]), Exit::Done);
}

/// The application with a run of LINE that people teach.
struct Server {
    state: AppState,
    thread: std::thread::JoinHandle<anyhow::Result<FinalReport>>,
    _folder: tempfile::TempDir,
}

impl Server {
    async fn new() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
        let mut launch = launch(&folder.path().join("run"), "walk", &["algorithm.batch=1"]);
        let run = Run {
            id: launch.id.clone(),
            family: "line".into(),
            preset: "walk".into(),
            config: serde_json::to_value(&launch.config).unwrap(),
            seed: 1,
            teacher: TeacherMode::Human,
            active: true,
            created_at: time::OffsetDateTime::now_utc(),
        };
        store.create_run(&run).await.unwrap();
        launch.store = Some((store.clone(), tokio::runtime::Handle::current()));
        let (handle, thread) = FAMILIES.family("line").unwrap().spawn(launch).unwrap();
        let runs = Runs::default();
        runs.add(handle);
        let state = AppState {
            store,
            families: FAMILIES.families(),
            runs,
            works: Default::default(),
            uploads: Default::default(),
            launcher: None,
            settings: Arc::new(WebSettings::default()),
            shutdown: CancellationToken::new(),
        };
        Server { state, thread, _folder: folder }
    }

    /// A request of a browser on this machine: status, the cookie of a new visitor, and the body.
    async fn call(
        &self,
        method: Method,
        path: &str,
        cookie: &str,
        kind: &str,
        body: String,
    ) -> (StatusCode, String, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1:8080")
            .header("accept", "text/html")
            .header("cookie", cookie)
            .header("content-type", kind)
            .header("sec-fetch-site", "same-origin");
        let response = router(self.state.clone()).oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let set = response.headers().get("set-cookie").map_or("", |value| value.to_str().unwrap());
        let (status, cookie) = (response.status(), set.split(';').next().unwrap_or_default().to_owned());
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, cookie, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn page(&self, path: &str, cookie: &str) -> String {
        let (status, _, html) = self.call(Method::GET, path, cookie, "text/plain", String::new()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {html}");
        html
    }

    async fn post(&self, path: &str, cookie: &str, body: Value) -> Value {
        let (status, _, text) = self.call(Method::POST, path, cookie, "application/json", body.to_string()).await;
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn until(&self, goal: &str, condition: impl Fn(&Status) -> bool) {
        let mut status = self.state.runs.get(&"walks".into()).unwrap().status;
        let waited = tokio::time::timeout(
            Duration::from_secs(300),
            status.wait_for(|s| condition(s) || matches!(s.state, RunState::Failed { .. })),
        )
        .await;
        let status = waited.map(|seen| seen.unwrap().clone());
        assert!(status.as_ref().is_ok_and(condition), "waited until {goal}: {status:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_teach_it_through_the_pages() {
    let server = Server::new().await;
    for _ in 0..600 {
        if server.state.store.pool(&"walks".into()).await.unwrap().open > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let pool = server.state.store.pool(&"walks".into()).await.unwrap();
    let status = server.state.runs.get(&"walks".into()).unwrap().status.borrow().clone();
    assert!(pool.open > 0, "walks wait for people: {pool:?} {status:?}");
    let (_, cookie, guide) = server.call(Method::GET, "/teach/walks", "", "text/plain", String::new()).await;
    assert!(guide.contains("It walked from place 4 to place 2."), "the guide shows a walk: {guide}");
    let form = "application/x-www-form-urlencoded";
    let (seen, ..) = server.call(Method::POST, "/teach/walks/guide", &cookie, form, String::new()).await;
    assert_eq!(seen, StatusCode::SEE_OTHER);
    let html = server.page("/teach/walks", &cookie).await;
    assert!(html.contains("How did the agent walk?") && html.contains("○"), "{html}");

    for n in 1..=3u64 {
        let leased = server.post("/api/runs/walks/lease", &cookie, json!({ "except": [] })).await;
        let answer = json!({
            "client_key": leased["client_key"],
            "execution": leased["execution"],
            "kind": "described",
            "text": "stroll two paces leftwards",
            "shown_at": leased["shown_at"],
            "active_ms": 1500,
        });
        server.post("/api/runs/walks/answers", &cookie, answer).await;
        server.state.runs.get(&"walks".into()).unwrap().commands.send(Command::DescriptionArrived).unwrap();
        server.until("the answer is used", |status| status.descriptions_human >= n).await;
    }
    let answers = server.page("/teach/walks/answers", &cookie).await;
    assert!(answers.contains("stroll two paces leftwards"), "{answers}");
    let dashboard = server.page("/runs/walks", "").await;
    assert!(dashboard.contains("Walking") && dashboard.contains("Where it stands, 0 to 9"), "{dashboard}");
    let tried = json!({ "request": "2 steps left", "start": { "at": "7" } });
    let tried = server.post("/api/runs/walks/try", "", tried).await;
    assert!(tried.to_string().contains("place 7"), "{tried}");
    let export = server.page("/runs/walks/export.jsonl", "").await;
    assert!(export.contains("stroll two paces leftwards"), "{export}");

    server.state.runs.get(&"walks".into()).unwrap().commands.send(Command::Shutdown).unwrap();
    let report = tokio::task::spawn_blocking(move || server.thread.join().unwrap().unwrap()).await.unwrap();
    assert_eq!(report.descriptions, 3);
}

/// Lines without their indentation: a part of an `impl` is shown without it.
fn flush(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_documentation_shows_the_example_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: PathBuf| flush(&std::fs::read_to_string(path).unwrap());
    let sources: Vec<String> =
        std::fs::read_dir(folder.join("examples/line")).unwrap().map(|entry| read(entry.unwrap().path())).collect();
    let page = read(folder.join("docs/adding-a-task.md"));
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default()).collect();
    assert!(blocks.len() >= 5, "{} blocks", blocks.len());
    for block in blocks {
        assert!(sources.iter().any(|source| source.contains(block)), "examples/line does not have:\n{block}");
    }
}
