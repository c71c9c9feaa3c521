//! The dashboard's addresses: status, commands, events, exports.

use crate::Server;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures::StreamExt;
use futures::future::BoxFuture;
use iliad::config::run::TeacherMode;
use iliad::ids::RunId;
use iliad::launch::{LaunchError, Launcher, NewRun, PresetInfo};
use iliad::run::{Event, RunState};
use iliad::web::{WebSettings, router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

/// Waits until the run's status is as wanted.
async fn until(server: &Server, wanted: impl Fn(&iliad::run::Status) -> bool) {
    let mut status = server.run.status.clone();
    tokio::time::timeout(Duration::from_secs(10), status.wait_for(wanted)).await.expect("in time").expect("alive");
}

#[tokio::test]
async fn commands_reach_the_trainer() {
    let server = Server::new().await;
    assert_eq!(server.post("/api/runs/study/pause", "", &json!({})).await.status, StatusCode::ACCEPTED);
    until(&server, |status| status.state == RunState::Paused).await;
    server.post("/api/runs/study/resume", "", &json!({})).await;
    until(&server, |status| status.state == RunState::Running).await;
    let mode = json!({"mode": "mixed", "share": 0.25});
    assert_eq!(server.post("/api/runs/study/teacher", "", &mode).await.status, StatusCode::ACCEPTED);
    until(&server, |status| status.teacher == TeacherMode::Mixed { share: 0.25 }).await;
    assert_eq!(server.state.store.run(&"study".into()).await.unwrap().teacher, TeacherMode::Mixed { share: 0.25 });
    for share in [json!(-0.1), json!(1.5)] {
        let reply = server.post("/api/runs/study/teacher", "", &json!({"mode": "mixed", "share": share})).await;
        assert_eq!((reply.status, reply.json()["code"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("share")));
    }
    let written = server.post("/api/runs/study/checkpoints", "", &json!({})).await;
    assert_eq!(written.status, StatusCode::CREATED);
    assert_eq!(server.get("/api/runs/study/checkpoints", "").await.json()[0]["name"], written.json()["name"]);
    server.post("/api/runs/study/stop", "", &json!({})).await;
    until(&server, |status| status.state == RunState::Stopped).await;
    let late = server.post("/api/runs/study/pause", "", &json!({})).await;
    assert_eq!((late.status, late.json()["code"].as_str()), (StatusCode::CONFLICT, Some("ended")));
}

#[tokio::test]
async fn the_agent_can_be_tried() {
    let server = Server::new().await;
    let body = json!({"request": "put un in front", "start": {"words": ["do", "<b>"]}});
    let tried = server.post("/api/runs/study/try", "", &body).await.json();
    assert_eq!(
        (tried["valid"].as_bool(), tried["text"].as_str()),
        (Some(true), Some("do becomes undo; <b> becomes un<b>"))
    );
    assert!(tried["html"].as_str().unwrap().contains("un&lt;b&gt;"));
    assert_eq!(tried["unknown"], json!([]));
    let new = json!({"request": "please frobnicate", "start": {"words": ["do"]}});
    assert_eq!(server.post("/api/runs/study/try", "", &new).await.json()["unknown"], json!(["frobnicate"]));
    let refused = server.post("/api/runs/study/try", "", &json!({"request": "x", "start": {}})).await;
    assert_eq!(refused.json()["detail"], "Give the agent some words to work on.");
    let empty = server.post("/api/runs/study/try", "", &json!({"request": " ", "start": {}})).await;
    assert_eq!(empty.json()["code"], "empty");
}

#[tokio::test]
async fn a_run_that_is_not_alive_is_shown_from_the_store() {
    let server = Server::with(WebSettings::default(), TeacherMode::Simulated).await;
    until(&server, |status| status.update >= 2).await;
    server.state.runs.remove(&"study".into());
    let run = server.get("/api/runs/study", "").await.json();
    assert_eq!((run["live"].as_bool(), run["status"]["state"].as_str()), (Some(false), Some("stopped")));
    assert!(run["status"]["episodes"].as_u64().unwrap() >= 2);
    let page = server.page("/runs/study", "").await;
    assert!(page.status == StatusCode::OK && page.text.contains("Ended"));
    assert_eq!(server.get("/runs/study/events", "").await.status, StatusCode::NO_CONTENT);
    assert!(server.page("/", "").await.text.contains("No agent is learning right now"));
}

/// Starts made-up runs, and remembers what was asked of it.
struct FakeLauncher {
    store: iliad::store::Store,
    runs: iliad::web::Runs,
    asked: std::sync::Mutex<Vec<NewRun>>,
}

impl Launcher for FakeLauncher {
    fn presets(&self) -> Vec<PresetInfo> {
        let preset = |name: &str, teacher| PresetInfo {
            name: format!("pairs/{name}"),
            title: "Pairs".to_owned(),
            about: format!("<{name}> for tests"),
            teacher,
            missing: None,
        };
        let missing = Some("There is no folder `corpus`; make it with `iliad data`.".to_owned());
        vec![
            preset("small", TeacherMode::Human),
            preset("tiny", TeacherMode::Simulated),
            PresetInfo { missing, ..preset("paper", TeacherMode::Simulated) },
        ]
    }

    fn create(&self, wish: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async move {
            match wish.preset.as_str() {
                "pairs/tiny" => {}
                "pairs/full" => return Err(LaunchError::Store(iliad::store::StoreError::DiskFull)),
                "pairs/broken" => return Err(LaunchError::Failed("the disk burns at /secret/place".to_owned())),
                other => return Err(LaunchError::Wish(format!("There is no preset {other}."))),
            }
            let mode = wish.teacher.unwrap_or(TeacherMode::Simulated);
            self.asked.lock().unwrap().push(wish);
            self.runs.add(crate::support::start(&self.store, "second", mode).await);
            Ok("second".into())
        })
    }

    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async move {
            if id == "spent" {
                return Err(LaunchError::State("It has used all of its episodes.".to_owned()));
            }
            let row = self.store.run(id).await.unwrap();
            self.runs.add(crate::support::start_run(&self.store, row).await);
            Ok(())
        })
    }
}

/// A server that can start runs.
async fn launching(settings: WebSettings) -> (Server, Arc<FakeLauncher>) {
    let mut server = Server::with(settings, TeacherMode::Human).await;
    let (store, runs) = (server.state.store.clone(), server.state.runs.clone());
    let launcher = Arc::new(FakeLauncher { store, runs, asked: Default::default() });
    server.launch_with(launcher.clone());
    (server, launcher)
}

#[tokio::test]
async fn runs_are_started_over_json() {
    let (server, launcher) = launching(WebSettings::default()).await;
    let presets = server.get("/api/presets", "").await.json();
    assert_eq!((&presets[1]["name"], &presets[1]["teacher"]["mode"]), (&json!("pairs/tiny"), &json!("simulated")));
    let wish = json!({"preset": "pairs/tiny", "seed": 12, "teacher": {"mode": "mixed", "share": 0.5}});
    let reply = server.post("/api/runs", "", &wish).await;
    assert_eq!((reply.status, reply.json()), (StatusCode::CREATED, json!({"id": "second", "seed": 12})));
    let asked = launcher.asked.lock().unwrap().remove(0);
    assert_eq!((asked.seed, asked.teacher), (12, Some(TeacherMode::Mixed { share: 0.5 })));
    assert_eq!(server.get("/api/runs/second", "").await.json()["live"], true);
    for (wish, status, code) in [
        (json!({"preset": "huge", "seed": 1}), 422, "wish"),
        // The seed is drawn where it is left out.
        (json!({"preset": "huge"}), 422, "wish"),
        (json!({"preset": "pairs/tiny", "seed": 1_u64 << 53}), 422, "seed"),
        (json!({"preset": "pairs/tiny", "seed": 1, "teacher": {"mode": "mixed", "share": 2}}), 422, "share"),
        (json!({"preset": "pairs/tiny", "seed": -1}), 400, "unreadable"),
        (json!({"preset": "pairs/tiny", "seed": 1, "sead": 2}), 400, "unreadable"),
        (json!({"preset": "pairs/broken", "seed": 1}), 500, "not-started"),
        (json!({"preset": "pairs/full", "seed": 1}), 507, "disk-full"),
    ] {
        let reply = server.post("/api/runs", "", &wish).await;
        assert_eq!((reply.status.as_u16(), reply.json()["code"].as_str()), (status, Some(code)), "{wish}");
        assert!(!reply.text.contains("secret"), "causes stay in the log");
    }
    assert!(launcher.asked.lock().unwrap().is_empty());
    let set = json!({"preset": "pairs/tiny", "seed": 3, "set": ["teacher.models=here"]});
    assert_eq!(server.post("/api/runs", "", &set).await.status, StatusCode::CREATED);
    assert_eq!(launcher.asked.lock().unwrap().remove(0).set, ["teacher.models=here"]);
}

#[tokio::test]
async fn what_a_preset_needs_first_is_said_before_it_is_started() {
    let (server, _) = launching(WebSettings::default()).await;
    let page = server.page("/runs", "").await.text;
    assert_eq!(page.matches("Needs something first.").count(), 1);
    assert!(page.contains("There is no folder corpus; make it with iliad data."), "{page}");
    assert!(server.get("/api/presets", "").await.json()[2]["missing"].is_string());
    let refused = server.form("/runs", "", "preset=pairs%2Fhuge&seed=3&mode=human&settings=a.b%3Dc").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("There is no preset pairs/huge.") && refused.text.contains("a.b=c"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_run_that_an_error_ended_or_kept_from_going_on_says_why_on_its_page_and_at_home() {
    let (server, _) = launching(WebSettings::default()).await;
    crate::support::ended_run(&server.state.store, crate::support::run_row("kept", TeacherMode::Human)).await;
    server.state.runs.refuse(&"kept".into(), "There is no folder of houses.".to_owned());
    let failed = crate::support::run_row("broke", TeacherMode::Simulated);
    server.state.store.create_run(&failed).await.unwrap();
    let message = "The corpus has no words.".to_owned();
    let (handle, _sender) = still(&server, "broke", RunState::Failed { message }).await;
    server.state.runs.add(handle);
    for (run, why) in [("kept", "There is no folder of houses."), ("broke", "The corpus has no words.")] {
        let page = server.page(&format!("/runs/{run}"), "").await.text;
        assert!(page.contains(why) && page.contains("Stopped by an error"), "{run}: {page}");
        assert!(server.page("/", "").await.text.contains(why), "{run} at home");
        assert!(server.page("/runs", "").await.text.contains(why), "{run} in the list");
        let json = server.get(&format!("/api/runs/{run}"), "").await.json();
        assert_eq!((&json["status"]["state"], &json["status"]["message"]), (&json!("failed"), &json!(why)));
    }
    let log = server.get("/api/runs/kept", "").await.json()["log"].clone();
    assert_eq!(log[0]["message"], "There is no folder of houses.");
    assert_eq!(server.get("/api/runs/kept", "").await.json()["status"]["episodes"], 120, "what the store has of it");
    assert_eq!(server.post("/api/runs/kept/go-on", "", &json!({})).await.status, StatusCode::ACCEPTED);
    assert_eq!(server.get("/api/runs/kept", "").await.json()["status"]["state"], "running");
}

/// A run whose trainer has counted nothing and does nothing; its status changes through what comes with it.
async fn still(
    server: &Server,
    id: &str,
    state: RunState,
) -> (iliad::run::RunHandle, tokio::sync::watch::Sender<iliad::run::Status>) {
    let now = server.run.status.borrow().clone();
    let status = iliad::run::Status {
        run: id.into(),
        state,
        update: 0,
        episodes: 0,
        descriptions_human: 0,
        descriptions_simulated: 0,
        best_validation: None,
        validation: None,
        ..now
    };
    let (sender, status) = tokio::sync::watch::channel(status);
    (iliad::run::RunHandle { id: id.into(), status, ..server.run.clone() }, sender)
}

#[tokio::test]
async fn home_says_what_was_learnt_and_described_while_a_run_gets_ready() {
    let server = Server::new().await;
    assert!(server.page("/", "").await.text.contains("the first description can be yours"));
    // A description that no update has used: the trainer rests.
    server.post("/api/runs/study/pause", "", &json!({})).await;
    until(&server, |status| status.state == RunState::Paused).await;
    let cookie = server.teacher().await;
    let lease = server.lease(&cookie, &[]).await;
    let answer = json!({
        "client_key": "k", "execution": lease["execution"], "kind": "described", "text": "add an e at the end",
    });
    assert_eq!(server.post("/api/runs/study/answers", &cookie, &answer).await.status, StatusCode::CREATED);
    let home = server.page("/", "").await.text;
    assert!(home.contains("has not learned from their descriptions yet"), "{home}");
    assert!(!home.contains("learned nothing"), "{home}");
    // An update uses it; then the server starts again, and the trainer has not read its checkpoint yet.
    server.post("/api/runs/study/resume", "", &json!({})).await;
    until(&server, |status| status.descriptions_human == 1).await;
    for state in [
        RunState::Starting { what: "Loading the task".into(), done: Some(0.4), seconds_left: Some(3.0) },
        RunState::Paused,
    ] {
        let (handle, _sender) = still(&server, "study", state.clone()).await;
        server.state.runs.add(handle);
        let home = server.page("/", "").await.text;
        assert!(!home.contains("learned nothing") && !home.contains("can be yours"), "{state:?}: {home}");
        let try_it = json!({"request": "add an e", "start": {"words": ["do"]}});
        if state != RunState::Paused {
            let reply = server.post("/api/runs/study/try", "", &try_it).await;
            assert_eq!((reply.status.as_u16(), reply.json()["code"].as_str()), (503, Some("busy")), "at once");
        }
    }
}

#[tokio::test]
async fn whoever_waits_for_a_run_is_told_how_far_its_loading_is() {
    let server = Server::new().await;
    let row = crate::support::run_row("loads", TeacherMode::Human);
    server.state.store.create_run(&row).await.unwrap();
    let state = RunState::Starting { what: "Loading the task".into(), done: Some(0.42), seconds_left: Some(11.7) };
    let (handle, _sender) = still(&server, "loads", state).await;
    server.state.runs.add(handle);
    let page = server.page("/teach/loads", "").await;
    let cookie = page.cookie("iliad_teacher").unwrap();
    let said = "The agent is getting ready (Loading the task, 42%, about 12 s left). Leave this page open";
    server.form("/teach/loads/guide", &cookie, "").await;
    let page = server.page("/teach/loads", &cookie).await.text;
    assert!(page.contains(said), "{page}");
    let leased = server.post("/api/v1/runs/loads/lease", &cookie, &json!({})).await;
    assert!(leased.text.contains(said), "{}", leased.text);
    let status = &server.get("/api/v1/runs/loads", "").await.json()["status"];
    assert_eq!((&status["done"], &status["seconds_left"]), (&json!(0.42), &json!(11.7)), "{status}");
}

#[tokio::test]
async fn what_is_not_learnt_from_descriptions_is_not_called_so() {
    let server = Server::new().await;
    let mut row = crate::support::run_row("copy", TeacherMode::Simulated);
    row.config = json!({"algorithm": {"name": "dagger"}});
    let handle = crate::support::start_run(&server.state.store, row).await;
    let mut status = handle.status.clone();
    server.state.runs.add(handle);
    let taught = status.wait_for(|status| status.descriptions_simulated > 0);
    tokio::time::timeout(Duration::from_secs(60), taught).await.expect("in time").expect("alive");
    let home = server.page("/", "").await.text;
    assert!(home.contains("demonstration") && !home.contains("by a simulated teacher"), "{home}");
    assert!(server.page("/runs/copy", "").await.text.contains("Simulated demonstrations"));
    let mut row = crate::support::run_row("copy", TeacherMode::Simulated);
    (row.id, row.config) = ("fit".into(), json!({"algorithm": {"name": "supervised"}}));
    server.state.runs.add(crate::support::start_run(&server.state.store, row).await);
    // Nobody can teach it: stored all the same, the wish would keep the run from going on at the next start.
    let reply = server.post("/api/runs/fit/teacher", "", &json!({"mode": "human"})).await;
    assert_eq!((reply.status.as_u16(), reply.json()["code"].as_str()), (422, Some("no-people")));
    assert_eq!(server.state.store.run(&"fit".into()).await.unwrap().teacher, TeacherMode::Simulated);
}

#[tokio::test]
async fn a_run_that_has_used_its_episodes_offers_no_going_on() {
    let (server, _) = launching(WebSettings::default()).await;
    for (id, budget) in [("spent", 120), ("open", 121)] {
        let mut row = crate::support::run_row(id, TeacherMode::Human);
        row.config = json!({"schedule": {"episodes": budget}});
        crate::support::ended_run(&server.state.store, row).await;
        let page = server.page(&format!("/runs/{id}"), "").await.text;
        let form = &page[page.find("<form id=\"resume\"").unwrap()..];
        let hidden = form[..form.find('>').unwrap()].ends_with(" hidden");
        assert_eq!(hidden, id == "spent", "{id}");
    }
}

#[tokio::test]
async fn the_form_starts_a_run_and_keeps_what_was_entered() {
    let (server, launcher) = launching(WebSettings::default()).await;
    let page = server.page("/runs", "").await.text;
    assert!(page.contains("&#60;tiny&#62; for tests") && page.contains("<form id=\"new-run\""), "{page}");
    assert_eq!(crate::attribute(&page, "id=\"seed\"", "value"), "8", "a seed that no run has yet");
    let bad = server.form("/runs", "", "preset=pairs%2Ftiny&seed=many&mode=mixed&share=45").await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(bad.text.contains("The seed must be a whole number") && bad.text.contains("value=\"many\""));
    assert!(bad.text.contains("value=\"45\"") && bad.text.contains("value=\"mixed\" checked"));
    assert!(launcher.asked.lock().unwrap().is_empty());
    let good = server.form("/runs", "", "preset=pairs%2Ftiny&seed=3&mode=mixed&share=45").await;
    assert_eq!((good.status, good.header("location")), (StatusCode::SEE_OTHER, "/runs/second"));
    let asked = launcher.asked.lock().unwrap().remove(0);
    assert_eq!((asked.seed, asked.teacher), (3, Some(TeacherMode::Mixed { share: 0.45 })));
}

#[tokio::test]
async fn an_ended_run_resumes_under_the_address_and_its_older_name() {
    for address in ["resume", "go-on"] {
        let (server, _) = launching(WebSettings::default()).await;
        let api = |run: &str| format!("/api/runs/{run}/{address}");
        server.post("/api/runs/study/stop", "", &json!({})).await;
        until(&server, |status| status.state == RunState::Stopped).await;
        assert!(server.page("/", "").await.text.contains("No agent is learning right now"));
        assert_eq!(server.post(&api("study"), "", &json!({})).await.status, StatusCode::ACCEPTED, "{address}");
        assert_eq!(server.get("/api/runs/study", "").await.json()["status"]["state"], "running");
        crate::support::ended_run(&server.state.store, crate::support::run_row("spent", TeacherMode::Human)).await;
        let spent = server.post(&api("spent"), "", &json!({})).await;
        assert_eq!((spent.status, spent.json()["code"].as_str()), (StatusCode::CONFLICT, Some("cannot-start")));
        let form = server.form(&format!("/runs/spent/{address}"), "", "").await;
        assert!(form.status == StatusCode::CONFLICT && form.text.contains("It has used all of its episodes."));
        assert_eq!(server.post(&api("nobody"), "", &json!({})).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_run_that_has_not_ended_resumes_from_its_pause() {
    let (server, _) = launching(WebSettings::default()).await;
    let older = server.post("/api/runs/study/go-on", "", &json!({})).await;
    assert_eq!((older.status, older.json()["code"].as_str()), (StatusCode::CONFLICT, Some("going")));
    for address in ["resume", "go-on"] {
        let form = server.form(&format!("/runs/study/{address}"), "", "").await;
        assert_eq!(form.status, StatusCode::CONFLICT, "{address}");
    }
    server.post("/api/runs/study/pause", "", &json!({})).await;
    until(&server, |status| status.state == RunState::Paused).await;
    assert_eq!(server.post("/api/runs/study/resume", "", &json!({})).await.status, StatusCode::ACCEPTED);
    until(&server, |status| status.state == RunState::Running).await;
}

#[tokio::test]
async fn starting_runs_is_steering() {
    let settings = WebSettings { access_token: Some("sesame".to_owned()), loopback: false, ..WebSettings::default() };
    let (server, launcher) = launching(settings).await;
    let wish = json!({"preset": "pairs/tiny", "seed": 1});
    let steering =
        ["/api/runs", "/api/runs/study/go-on", "/api/runs/study/resume", "/runs/study/go-on", "/runs/study/resume"];
    for path in steering {
        assert_eq!(server.post(path, "", &wish).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(server.form("/runs", "", "preset=pairs%2Ftiny&seed=1").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.get("/api/presets", "").await.status, StatusCode::UNAUTHORIZED);
    let headers =
        [("authorization", "Bearer sesame"), ("content-type", "application/json"), ("sec-fetch-site", "cross-site")];
    let foreign = server.call(axum::http::Method::POST, "/api/runs", &headers, wish.to_string()).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert!(launcher.asked.lock().unwrap().is_empty());
    let own = server.call(axum::http::Method::POST, "/api/runs", &headers[..2], wish.to_string()).await;
    assert_eq!(own.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_server_that_cannot_start_runs_offers_none() {
    let server = Server::new().await;
    assert!(!server.page("/runs", "").await.text.contains("New run"));
    assert_eq!(server.get("/api/presets", "").await.json(), json!([]));
    let reply = server.post("/api/runs", "", &json!({"preset": "pairs/tiny", "seed": 1})).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (StatusCode::CONFLICT, Some("cannot-start")));
}

#[tokio::test]
async fn lines_told_before_the_run_is_shown_are_in_its_log() {
    let server = Server::new().await;
    let keep = server.state.runs.keep_log(&"early".into());
    keep(&Event::Log { message: "Loading the agent".to_owned() });
    let handle = crate::support::start(&server.state.store, "early", TeacherMode::Human).await;
    server.state.runs.add(handle);
    keep(&Event::Log { message: "Ready".to_owned() });
    let log = server.get("/api/runs/early", "").await.json()["log"].clone();
    let lines: Vec<_> = log.as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(lines, ["Loading the agent", "Ready"]);
    let seen = events(&server, None, |seen| seen.iter().any(|(name, ..)| name == "log"));
    let (seen, _) = tokio::join!(seen, async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.post("/api/runs/study/pause", "", &json!({})).await
    });
    let line = &seen.iter().find(|(name, ..)| name == "log").unwrap().2["message"];
    assert!(line.as_str().unwrap().starts_with("Paused after update"), "{line}");
}

/// Reads events of a run's open stream until `enough` says so; (name, id, data) each.
async fn events(
    server: &Server,
    last: Option<&str>,
    enough: impl Fn(&[(String, String, Value)]) -> bool,
) -> Vec<(String, String, Value)> {
    events_at(server, "/runs/study/events", last, enough).await
}

async fn events_at(
    server: &Server,
    path: &str,
    last: Option<&str>,
    enough: impl Fn(&[(String, String, Value)]) -> bool,
) -> Vec<(String, String, Value)> {
    let mut request = Request::get(path).header("host", "localhost").header("accept-encoding", "gzip, br");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = router(server.state.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"), "a compressed stream would arrive in lumps");
    let mut body = response.into_body().into_data_stream();
    let (mut text, mut seen) = (String::new(), Vec::new());
    let read = async {
        while let Some(piece) = body.next().await {
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            while let Some(end) = text.find("\n\n") {
                let block: String = text.drain(..end + 2).collect();
                let field =
                    |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim().to_owned();
                if let Ok(data) = serde_json::from_str(&field("data:")) {
                    seen.push((field("event:"), field("id:"), data));
                }
            }
            if enough(&seen) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("in time");
    seen
}

#[tokio::test]
async fn one_stream_carries_several_runs_and_outlives_them() {
    let (server, _) = launching(WebSettings::default()).await;
    server.state.runs.add(crate::support::start(&server.state.store, "second", TeacherMode::Simulated).await);
    crate::support::ended_run(&server.state.store, crate::support::run_row("earlier", TeacherMode::Human)).await;
    let told = |seen: &[(String, String, Value)], run: &str, name: &str| {
        seen.iter().any(|(told, _, data)| told == name && data["run"] == run)
    };
    let all = |seen: &[(String, String, Value)]| {
        told(seen, "study", "status") && told(seen, "second", "point") && told(seen, "earlier", "absent")
    };
    let seen = events_at(&server, "/events?runs=study,second,earlier", None, all).await;
    assert!(seen.iter().all(|(_, id, data)| id.parse::<u64>().is_ok() && data["data"].is_object()));
    assert!(!seen.iter().any(|(name, ..)| name == "resync"), "nothing was missed");
    let point = seen.iter().find(|(name, ..)| name == "point").unwrap();
    assert!(point.2["data"]["episodes"].is_u64());
    // A client that comes back is told to fetch, of every run.
    let both = |seen: &[(String, String, Value)]| told(seen, "study", "resync") && told(seen, "second", "resync");
    events_at(&server, "/events?runs=study,second", Some("1"), both).await;
    // A run that comes alive, and one that another trainer takes up, go on in the same stream.
    let seen = events_at(&server, "/events?runs=earlier,study", None, |seen| {
        let again = seen.iter().filter(|(name, _, data)| name == "status" && data["run"] == "study").count() > 1;
        told(seen, "earlier", "status") && told(seen, "earlier", "resync") && told(seen, "study", "resync") && again
    });
    let goes_on = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(server.post("/api/runs/earlier/go-on", "", &json!({})).await.status, StatusCode::ACCEPTED);
        let (handle, _) = still(&server, "study", RunState::Paused).await;
        // Events of its own: the first trainer lets go of its channel.
        let (events, _) = tokio::sync::broadcast::channel(16);
        server.state.runs.add(iliad::run::RunHandle { events, ..handle });
    };
    tokio::join!(seen, goes_on);
}

#[tokio::test]
async fn a_shared_stream_says_what_it_cannot_carry() {
    let server = Server::new().await;
    assert_eq!(server.get("/events?runs=nobody", "").await.status, StatusCode::NOT_FOUND);
    let many: Vec<String> = (0..65).map(|i| format!("r{i}")).collect();
    for runs in ["", ",", &many.join(",")] {
        let reply = server.get(&format!("/events?runs={runs}"), "").await;
        assert_eq!((reply.status, reply.json()["code"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("runs")));
    }
}

#[tokio::test]
async fn events_begin_with_the_status_and_carry_ids() {
    let server = Server::with(WebSettings::default(), TeacherMode::Simulated).await;
    let seen = events(&server, None, |seen| seen.iter().any(|(name, ..)| name == "point")).await;
    assert_eq!((seen[0].0.as_str(), seen[0].2["run"].as_str()), ("status", Some("study")));
    assert!(seen.iter().all(|(_, id, _)| id.parse::<u64>().is_ok()));
    assert!(seen.iter().all(|(name, ..)| name != "resync"));
    let episode = seen.iter().find(|(name, ..)| name == "episode").expect("episodes are told");
    assert!(episode.2["html"].as_str().unwrap().contains("<ol"));
}

#[tokio::test]
async fn who_comes_back_or_lags_is_told_to_fetch_again() {
    let server = Server::new().await;
    let seen = events(&server, Some("3"), |seen| seen.len() >= 2).await;
    assert_eq!(seen[1].0, "resync");
    let state = server.state.clone();
    let flood = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for i in 0..600 {
            let _ = server.run.events.send(Arc::new(Event::Log { message: format!("line {i}") }));
        }
    };
    let (seen, ()) = tokio::join!(events(&server, None, |seen| seen.iter().any(|(name, ..)| name == "resync")), flood);
    assert!(seen.iter().any(|(name, _, data)| name == "resync" && data["missed"].as_u64() > Some(0)));
    assert!(state.runs.log(&"study".into()).len() <= 200);
}

#[tokio::test]
async fn event_streams_end_at_shutdown() {
    let server = Server::new().await;
    let shutdown = server.state.shutdown.clone();
    let stream = events(&server, None, |_| false);
    let (seen, ()) = tokio::join!(stream, async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        shutdown.cancel();
    });
    assert!(!seen.is_empty());
}

#[tokio::test]
async fn the_server_ends_with_an_open_stream() {
    let server = Server::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(iliad::web::serve(server.state.clone(), listener));
    let mut open = tokio::net::TcpStream::connect(address).await.unwrap();
    let ask = b"GET /runs/study/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut open, ask).await.unwrap();
    let mut some = [0; 64];
    tokio::io::AsyncReadExt::read_exact(&mut open, &mut some).await.unwrap();
    server.state.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(5), serving).await.expect("in time").unwrap().unwrap();
}

#[tokio::test]
async fn exports_have_every_row_exactly_as_typed() {
    let server = Server::with(WebSettings::default(), TeacherMode::Simulated).await;
    until(&server, |status| status.update >= 3).await;
    server.post("/api/runs/study/pause", "", &json!({})).await;
    until(&server, |status| status.state == RunState::Paused).await;
    let jsonl = server.get("/runs/study/export.jsonl", "").await;
    let total: usize = jsonl.header("x-total-count").parse().unwrap();
    assert!(total >= 3 && jsonl.header("content-disposition").contains("study.jsonl"));
    assert_eq!(jsonl.text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), total);
    let csv = server.get("/runs/study/export.csv", "").await;
    assert_eq!(csv::Reader::from_reader(csv.text.as_bytes()).records().filter(Result::is_ok).count(), total);
    assert_eq!(server.get("/runs/nobody/export.csv", "").await.status, StatusCode::NOT_FOUND);
}
