//! The addresses of programs: their document, pages of lists, tokens, keys, and limits.

use crate::{Reply, Server, support};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use futures::future::BoxFuture;
use iliad::app::outside;
use iliad::config::run::TeacherMode;
use iliad::ids::{RunId, StudyId};
use iliad::launch::{
    CheckpointFile, Continuation, Evaluating, EvaluationRequest, LaunchError, Launcher, NewOutsideRun, NewRun,
    PresetInfo,
};
use iliad::protocol::Split;
use iliad::store::{Scope, Store, StudyArm};
use iliad::study::StudySettings;
use iliad::web::{Runs, WebSettings};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Starts made-up runs that show previews, and hosts outside runs as the server does.
pub struct MadeUp {
    pub store: Store,
    pub runs: Runs,
    /// Holds the one checkpoint that every run has.
    pub folder: tempfile::TempDir,
}

const CHECKPOINT: &str = "best.safetensors";

impl Launcher for MadeUp {
    fn presets(&self) -> Vec<PresetInfo> {
        vec![PresetInfo {
            name: "pairs/tiny".to_owned(),
            title: "Pairs".to_owned(),
            about: "for tests".to_owned(),
            teacher: TeacherMode::Human,
            missing: None,
        }]
    }

    fn create(&self, wish: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async move {
            let mut row = support::run_row("second", wish.teacher.unwrap_or(TeacherMode::Human));
            row.config["pool"] = json!({"preview": "on"});
            self.runs.add(support::start_run(&self.store, row).await);
            Ok("second".into())
        })
    }

    fn create_outside(&self, wish: NewOutsideRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async move {
            let id = RunId::from("elsewhere");
            self.store.create_run(&outside::row(id.clone(), wish.show_request)).await?;
            let log = self.runs.keep_log(&id);
            let runtime = tokio::runtime::Handle::current();
            self.runs.add(outside::host(self.store.clone(), runtime, &id, Box::new(log)).unwrap());
            Ok(id)
        })
    }

    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async move { Err(LaunchError::State(format!("{id} is not resumed here."))) })
    }

    fn extend<'a>(&'a self, _: &'a RunId, _: u64) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async { Ok(()) })
    }

    fn continue_from<'a>(&'a self, _: &'a RunId, _: Continuation) -> BoxFuture<'a, Result<RunId, LaunchError>> {
        Box::pin(async { Ok("third".into()) })
    }

    fn evaluate<'a>(&'a self, _: &'a RunId, _: EvaluationRequest) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async { Ok(()) })
    }

    fn checkpoint_files<'a>(&'a self, _: &'a RunId) -> BoxFuture<'a, Result<Vec<CheckpointFile>, LaunchError>> {
        let path = self.folder.path().join(CHECKPOINT);
        Box::pin(async { Ok(vec![CheckpointFile { name: CHECKPOINT.to_owned(), bytes: 7, path }]) })
    }

    fn remove<'a>(
        &'a self,
        id: &'a RunId,
        told: &'a (dyn Fn(u64, u64) + Sync),
    ) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async move { Ok(self.store.purge_run_telling(id, false, told).await?) })
    }

    fn evaluating(&self, _: &RunId) -> Vec<Evaluating> {
        let request = EvaluationRequest { checkpoint: "best.safetensors".into(), split: Split::Test, limit: 5 };
        vec![Evaluating { request, done: 2, tasks: 5, seconds_left: Some(1.5), failed: None }]
    }
}

/// A server that starts runs.
pub async fn server_with(settings: WebSettings) -> Server {
    let mut server = Server::with(settings, TeacherMode::Human).await;
    let (store, runs) = (server.state.store.clone(), server.state.runs.clone());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CHECKPOINT), "weights").unwrap();
    server.launch_with(Arc::new(MadeUp { store, runs, folder }));
    server
}

/// A program, with or without a token.
pub struct Program<'a> {
    pub server: &'a Server,
    pub bearer: Option<String>,
}

impl Program<'_> {
    pub async fn send(&self, method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Reply {
        let mut headers = vec![("content-type", "application/json")];
        if let Some(bearer) = &self.bearer {
            headers.push(("authorization", bearer));
        }
        if let Some(key) = key {
            headers.push(("idempotency-key", key));
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.server.call(method, path, &headers, body).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, None, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, None, Some(body)).await
    }
}

pub fn program(server: &Server) -> Program<'_> {
    Program { server, bearer: None }
}

pub async fn with_token<'a>(server: &'a Server, scopes: &[Scope]) -> Program<'a> {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let token = format!("iliad_{:032x}", NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    server.state.store.create_api_token(&token, "a program", scopes, "a test", None).await.unwrap();
    Program { server, bearer: Some(format!("Bearer {token}")) }
}

#[tokio::test]
async fn the_document_is_the_checked_in_one() {
    let server = Server::new().await;
    let served = program(&server).get("/api/v1/openapi.json").await;
    assert_eq!((served.status, served.header("content-type")), (StatusCode::OK, "application/json"));
    assert!(served.json()["openapi"].as_str().unwrap().starts_with("3.1"), "{}", served.json()["openapi"]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    if std::env::var_os("WRITE_OPENAPI").is_some() {
        std::fs::write(&file, &served.text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == served.text,
        "docs/openapi.json is not current; WRITE_OPENAPI=1 cargo test --test web -- the_document writes it anew"
    );
}

/// Holds replies against the document, and remembers which operations were asked.
struct Contract<'a> {
    program: Program<'a>,
    document: Value,
    asked: Mutex<BTreeSet<(String, String)>>,
}

impl Contract<'_> {
    /// Sends a request to an address of the document whose parameters are filled in, and checks the reply.
    async fn ask(
        &self,
        method: Method,
        template: &str,
        filled: &[(&str, &str)],
        body: Option<Value>,
        status: u16,
    ) -> Value {
        let template = format!("/api/v1{template}");
        let path =
            filled.iter().fold(template.clone(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value));
        let reply = self.program.send(method.clone(), &path, None, body.as_ref()).await;
        assert_eq!(reply.status.as_u16(), status, "{method} {path}: {}", reply.text);
        assert!(
            !reply.header("ratelimit-policy").is_empty() && !reply.header("ratelimit").is_empty(),
            "{method} {path}"
        );
        let name = template.split('?').next().unwrap();
        let operation = &self.document["paths"][name][method.as_str().to_lowercase()];
        assert!(operation.is_object(), "{method} {name} is not in the document");
        self.asked.lock().unwrap().insert((name.to_owned(), method.to_string()));
        let described = &operation["responses"];
        let kind = reply.header("content-type").to_owned();
        let response =
            described.get(status.to_string()).filter(|_| reply.status.is_success()).unwrap_or(&described["default"]);
        let Some(content) = response["content"].as_object() else {
            assert!(reply.text.is_empty(), "{method} {name} says nothing by the document: {}", reply.text);
            return Value::Null;
        };
        let plain = kind.split(';').next().unwrap().to_owned();
        let schema = content.get(&plain).unwrap_or_else(|| panic!("{method} {name}: {kind} is not in {content:?}"));
        if plain != "application/json" && !plain.ends_with("+json") {
            return Value::String(reply.text);
        }
        let value = reply.json();
        self.check(&schema["schema"], &value, &format!("{method} {name}"));
        value
    }

    fn check(&self, schema: &Value, value: &Value, what: &str) {
        let mut root = schema.clone();
        root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        root["components"] = self.document["components"].clone();
        let validator = jsonschema::validator_for(&root).unwrap_or_else(|error| panic!("{what}: {error}"));
        let errors: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path())).collect();
        assert!(errors.is_empty(), "{what}: {errors:?}\n{value:#}");
    }
}

#[tokio::test]
async fn what_the_server_says_fits_the_document_and_every_operation_is_tried() {
    let server = server_with(WebSettings::default()).await;
    let document = program(&server).get("/api/v1/openapi.json").await.json();
    let contract = Contract { program: program(&server), document, asked: Mutex::default() };
    let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
    let run = [("run", "second")];
    contract.ask(get.clone(), "/openapi.json", &[], None, 200).await;
    contract.ask(get.clone(), "/presets", &[], None, 200).await;
    contract.ask(post.clone(), "/runs", &[], Some(json!({"preset": "pairs/tiny", "seed": 3})), 201).await;
    contract.ask(get.clone(), "/runs", &[], None, 200).await;
    contract.ask(get.clone(), "/runs/{run}", &run, None, 200).await;
    contract.ask(get.clone(), "/runs/{run}", &[("run", "nowhere")], None, 404).await;
    contract.ask(post.clone(), "/runs", &[], Some(json!({"preset": 3})), 400).await;

    // The teacher.
    let leased = contract.ask(post.clone(), "/runs/{run}/lease", &run, Some(json!({})), 200).await;
    let execution = leased["execution"].to_string();
    let here = [("run", "second"), ("execution", execution.as_str())];
    contract.ask(post.clone(), "/runs/{run}/executions/{execution}/renew", &here, None, 200).await;
    let draft = json!({"client_key": leased["client_key"], "version": 1, "text": "add"});
    contract.ask(put, "/runs/{run}/executions/{execution}/draft", &here, Some(draft), 204).await;
    contract.ask(get.clone(), "/runs/{run}/drafts", &run, None, 200).await;
    contract.ask(post.clone(), "/runs/{run}/executions/{execution}/reveal", &here, None, 200).await;
    let words = json!({"text": "put un in front"});
    contract.ask(post.clone(), "/runs/{run}/executions/{execution}/preview", &here, Some(words), 200).await;
    contract.ask(get.clone(), "/runs/{run}/comprehension", &run, None, 200).await;
    let mut answer = json!({"client_key": "one", "execution": leased["execution"], "kind": "described",
        "text": "put un in front of it"});
    let given = contract.ask(post.clone(), "/runs/{run}/answers", &run, Some(answer.clone()), 201).await;
    contract.ask(post.clone(), "/runs/{run}/answers", &run, Some(answer.clone()), 200).await;
    contract.ask(get.clone(), "/runs/{run}/answers", &run, None, 200).await;
    let key = given["answer"].to_string();
    let about = [("run", "second"), ("answer", key.as_str())];
    (answer["client_key"], answer["text"]) = (json!("two"), json!("add an e at the end"));
    let corrected = contract.ask(post.clone(), "/runs/{run}/answers/{answer}/correct", &about, Some(answer), 201).await;
    let key = corrected["answer"].to_string();
    let about = [("run", "second"), ("answer", key.as_str())];
    let next = contract
        .ask(post.clone(), "/runs/{run}/lease", &run, Some(json!({"except": [leased["execution"]]})), 200)
        .await;
    let other = next["execution"].to_string();
    let there = [("run", "second"), ("execution", other.as_str())];
    contract.ask(post.clone(), "/runs/{run}/executions/{execution}/release", &there, None, 204).await;
    // The agent learns from it, and says how it took it.
    for _ in 0..400 {
        if contract.ask(get.clone(), "/runs/{run}/comprehension", &run, None, 200).await["latest"]["after"].is_object()
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    contract.ask(post.clone(), "/runs/{run}/answers/{answer}/undo", &about, None, 200).await;
    contract.ask(get.clone(), "/runs/{run}/answers", &run, None, 200).await;
    contract.ask(post.clone(), "/runs/{run}/review", &run, None, 200).await;

    // The analyst.
    contract.ask(get.clone(), "/runs/{run}/readings", &run, None, 200).await;
    contract.ask(get.clone(), "/runs/{run}/descriptions", &run, None, 200).await;
    contract.ask(get.clone(), "/runs/{run}/episodes", &run, None, 200).await;
    contract.ask(get.clone(), "/runs/{run}/points", &run, None, 200).await;
    contract.ask(post.clone(), "/runs/{run}/checkpoints", &run, None, 201).await;
    contract.ask(get.clone(), "/runs/{run}/checkpoints", &run, None, 200).await;
    let wish = json!({"request": "put un in front", "start": {"words": ["do"]}});
    contract.ask(post.clone(), "/runs/{run}/try", &run, Some(wish), 200).await;
    contract.ask(post.clone(), "/runs/{run}/pause", &run, None, 202).await;
    contract.ask(post.clone(), "/runs/{run}/resume", &run, None, 202).await;
    let mode = json!({"mode": "mixed", "share": 0.5});
    contract.ask(post.clone(), "/runs/{run}/teacher", &run, Some(mode), 202).await;
    contract.ask(get.clone(), "/runs/{run}", &run, None, 200).await;
    contract.ask(post.clone(), "/runs/{run}/stop", &run, None, 202).await;
    contract.ask(get.clone(), "/runs/{run}", &[("run", "study")], None, 200).await;

    let learned = contract.ask(get.clone(), "/runs/{run}/learned?from=1&to=9", &run, None, 200).await;
    assert!(learned["people"].is_u64() && learned["answers"].is_array(), "{learned}");
    let thinned = contract.ask(get.clone(), "/runs/{run}/points?thin=2", &run, None, 200).await;
    assert!(thinned["items"].as_array().unwrap().len() <= 2 && thinned["next"].is_null(), "{thinned}");
    let draft = json!({"client_key": leased["client_key"], "version": 2, "text": ""});
    let path = "/runs/{run}/executions/{execution}/draft";
    contract.ask(post.clone(), path, &here, Some(draft), 204).await;
    let file = [("run", "second"), ("name", CHECKPOINT)];
    let weights = contract.ask(get.clone(), "/runs/{run}/checkpoints/{name}", &file, None, 200).await;
    assert_eq!(weights, json!("weights"));

    // The data set.
    contract.ask(get.clone(), "/export/count?run=second", &[], None, 200).await;
    for name in ["descriptions.jsonl", "descriptions.csv", "descriptions.parquet", "dataset.tar", "pairs.jsonl"] {
        let file = [("file", name)];
        contract.ask(get.clone(), "/export/{file}?run=second&licence=CC0-1.0", &file, None, 200).await;
        contract.ask(get.clone(), "/export/{file}/manifest?run=second&licence=CC0-1.0", &file, None, 200).await;
    }
    contract.ask(get.clone(), "/export/{file}/manifest", &[("file", "schema.json")], None, 404).await;
    contract.ask(get.clone(), "/export/{file}", &[("file", "descriptions.xlsx")], None, 404).await;

    // Descriptions from a file.
    let row = |run: &str, view: Value| json!({"run_id": run, "task": "pairs", "episode_id": 1, "teacher_id": 1, "description": "add an e", "view": view});
    let (bad, good) = (row("brought", json!(3)), row("brought", support::pairs_view(&[("a".into(), "ae".into())])));
    let path = "/import/descriptions?format=jsonl";
    let dry = format!("{path}&dry_run=true");
    let found = contract.ask(post.clone(), &dry, &[], Some(bad.clone()), 200).await;
    assert_eq!((&found["bad_rows"], &found["bad"][0]["row"]), (&json!(1), &json!(1)), "{found}");
    contract.ask(post.clone(), path, &[], Some(bad), 422).await;
    contract.ask(post.clone(), path, &[], Some(good.clone()), 201).await;
    contract.ask(post.clone(), path, &[], Some(good), 409).await;

    // A run that has ended.
    let mut status = server.state.runs.get(&"second".into()).unwrap().status;
    let stopped = status.wait_for(|status| status.state == iliad::run::RunState::Stopped);
    tokio::time::timeout(Duration::from_secs(30), stopped).await.unwrap().unwrap();
    let label = json!({"name": "Pilot", "tags": ["a", "b"], "archived": false});
    contract.ask(Method::PATCH, "/runs/{run}", &run, Some(label), 200).await;
    let measured = json!({"checkpoint": "best.safetensors", "split": "test", "limit": 5});
    contract.ask(post.clone(), "/runs/{run}/evaluations", &run, Some(measured), 202).await;
    contract.ask(get.clone(), "/runs/{run}/evaluations", &run, None, 200).await;
    let from = json!({"checkpoint": "best.safetensors"});
    contract.ask(post.clone(), "/runs/{run}/continue", &run, Some(from), 201).await;
    contract.ask(post.clone(), "/runs/{run}/episodes", &run, Some(json!({"episodes": 9})), 202).await;
    contract.ask(get.clone(), "/runs/{run}/losses", &run, None, 200).await;
    contract.ask(Method::DELETE, "/runs/{run}", &run, None, 200).await;
    contract.ask(post.clone(), "/runs/{run}/restore", &run, None, 204).await;
    contract.ask(Method::DELETE, "/trash/{run}", &run, None, 404).await;
    contract.ask(Method::DELETE, "/runs/{run}", &run, None, 200).await;
    let trash = contract.ask(get.clone(), "/trash", &[], None, 200).await;
    assert_eq!((&trash["items"][0]["id"], &trash["items"][0]["losses"]["checkpoints"]), (&json!("second"), &json!(1)));
    contract.ask(Method::DELETE, "/trash/{run}", &run, None, 204).await;
    assert_eq!(contract.ask(get.clone(), "/trash", &[], None, 200).await["items"], json!([]));
    contract.ask(get.clone(), "/runs/{run}", &run, None, 404).await;

    // Studies.
    let study = StudyId::from("words");
    let settings = StudySettings { title: "Words".into(), ..StudySettings::default() };
    let arms = [StudyArm { run: "study".into(), name: "descriptions".into() }];
    server.state.store.create_study(&study, &settings, &arms, "secret", "a test").await.unwrap();
    let of = [("study", "words")];
    contract.ask(get.clone(), "/studies", &[], None, 200).await;
    contract.ask(get.clone(), "/studies/{study}", &of, None, 200).await;
    contract.ask(Method::PATCH, "/studies/{study}", &of, Some(json!({"goal": 7})), 200).await;
    contract.ask(get.clone(), "/studies/{study}/participants", &of, None, 200).await;
    contract.ask(get.clone(), "/studies/{study}/comparison", &of, None, 200).await;

    // The agent elsewhere.
    contract.ask(post.clone(), "/outside-runs", &[], Some(json!({})), 201).await;
    let away = [("run", "elsewhere")];
    let body = json!({"executions": [{"request": "greet", "text": "It waved."}]});
    contract.ask(post.clone(), "/runs/{run}/executions", &away, Some(body), 201).await;
    let leased = contract.ask(post.clone(), "/runs/{run}/lease", &away, Some(json!({})), 200).await;
    let answer = json!({"client_key": "away", "execution": leased["execution"], "kind": "described", "text": "wave"});
    contract.ask(post.clone(), "/runs/{run}/answers", &away, Some(answer), 201).await;
    let said = contract.ask(get.clone(), "/runs/{run}/descriptions", &away, None, 200).await;
    let update = json!({"update": 1, "descriptions": [said["items"][0]["id"]], "validation": {"right": 3, "of": 4}});
    contract.ask(post, "/runs/{run}/updates", &away, Some(update), 200).await;
    contract.ask(get.clone(), "/runs/{run}/points", &away, None, 200).await;
    contract.ask(get.clone(), "/runs/{run}", &away, None, 200).await;
    contract.ask(get, "/runs", &[], None, 200).await;

    let asked = contract.asked.lock().unwrap();
    let paths = contract.document["paths"].as_object().unwrap();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let stream = operation["responses"]["200"]["content"].get("text/event-stream").is_some();
            let tried = asked.contains(&(path.clone(), method.to_uppercase()));
            assert!(tried || stream, "{method} {path} was not tried");
            assert!(operation["operationId"].is_string() && operation["summary"].is_string(), "{method} {path}");
            let open = path.ends_with("openapi.json");
            assert_eq!(operation["security"].as_array().map(Vec::is_empty), Some(open), "{method} {path}");
        }
    }
    assert!(asked.len() > 35, "{asked:?}");
}

/// Read from the source: an address that is added otherwise has no place in the document.
#[test]
fn every_address_of_programs_is_documented() {
    let source = include_str!("../../src/web/router/api.rs");
    for part in source.split("\nfn ").filter(|part| !part.starts_with("older(")) {
        assert!(!part.contains(".route("), "{}", part.lines().next().unwrap());
    }
}

#[tokio::test]
async fn lists_come_in_pages() {
    let server = Server::with(WebSettings::default(), TeacherMode::Simulated).await;
    let mut status = server.run.status.clone();
    tokio::time::timeout(Duration::from_secs(30), status.wait_for(|status| status.update >= 7)).await.unwrap().unwrap();
    let program = program(&server);
    for list in ["points", "episodes"] {
        let (mut seen, mut query) = (Vec::new(), "?limit=3".to_owned());
        loop {
            let page = program.get(&format!("/api/v1/runs/study/{list}{query}")).await.json();
            let items = page["items"].as_array().unwrap();
            assert!(!items.is_empty() && items.len() <= 3, "{page}");
            let name = if list == "points" { "update" } else { "episode" };
            seen.extend(items.iter().map(|item| item[name].as_u64().unwrap()));
            match page["next"].as_str() {
                Some(next) if seen.len() < 7 => query = format!("?limit=3&cursor={next}"),
                _ => break,
            }
        }
        let (mut sorted, newest_first) = (seen.clone(), list == "episodes");
        sorted.sort_unstable();
        sorted.dedup();
        if newest_first {
            sorted.reverse();
        }
        assert!(seen == sorted && seen.len() >= 7, "{list}: {seen:?}");
    }
    let refused = program.get("/api/v1/runs?cursor=%21").await;
    assert_eq!((refused.status.as_u16(), refused.json()["code"].as_str()), (422, Some("cursor")));
    assert_eq!(refused.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn the_older_addresses_are_aliases_that_say_so() {
    let server = Server::new().await;
    let program = program(&server);
    let older = program.get("/api/runs/study").await;
    let current = program.get("/api/v1/runs/study").await;
    assert_eq!(older.json()["config"], current.json()["config"]);
    assert!(older.header("deprecation").starts_with('@'), "{:?}", older.headers);
    assert_eq!(current.header("deprecation"), "");
    let missing = program.get("/api/nothing").await;
    assert_eq!((missing.status, missing.header("deprecation")), (StatusCode::NOT_FOUND, ""));
}

#[tokio::test]
async fn tokens_give_their_scopes_and_no_more() {
    const ACCESS: &str = "correct horse battery staple";
    let remote = WebSettings { loopback: false, access_token: Some(ACCESS.to_owned()), ..WebSettings::default() };
    // With and without another way in, a token gives its scopes alone.
    for settings in [remote, WebSettings::default()] {
        let server = server_with(settings).await;
        let reader = with_token(&server, &[Scope::Read]).await;
        assert_eq!(reader.get("/api/v1/runs").await.status, StatusCode::OK);
        let refused = reader.post("/api/v1/runs/study/pause", &json!({})).await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::FORBIDDEN, Some("missing-scope")));
        assert_eq!(reader.post("/api/v1/runs/study/lease", &json!({})).await.status, StatusCode::FORBIDDEN);
        for path in ["/runs", "/tokens", "/people", "/runs/study/export.jsonl", "/api/v1/runs/study/descriptions"] {
            let reply = reader.get(path).await;
            assert!(matches!(reply.status.as_u16(), 401 | 403), "{path}: {}", reply.status);
        }
        assert_eq!(
            with_token(&server, &[Scope::Export]).await.get("/runs/study/export.jsonl").await.status,
            StatusCode::OK
        );
        let steering = with_token(&server, &[Scope::Steer]).await;
        assert_eq!(steering.post("/api/v1/runs/study/pause", &json!({})).await.status, StatusCode::ACCEPTED);
        let admin = with_token(&server, &[Scope::Admin]).await;
        assert_eq!(admin.get("/runs").await.status, StatusCode::OK);
        assert!(matches!(admin.get("/tokens").await.status.as_u16(), 401 | 403), "no token makes tokens");

        // Two tokens are two teachers, and neither needs a cookie.
        let (one, two) = (with_token(&server, &[Scope::Teach]).await, with_token(&server, &[Scope::Teach]).await);
        let first = one.post("/api/v1/runs/study/lease", &json!({})).await.json();
        let other = two.post("/api/v1/runs/study/lease", &json!({})).await.json();
        assert!(first["execution"].is_i64() && first["execution"] != other["execution"], "{first} {other}");
        let answer =
            json!({"client_key": "k", "execution": first["execution"], "kind": "described", "text": "add an e"});
        assert_eq!(two.post("/api/v1/runs/study/answers", &answer).await.status, StatusCode::FORBIDDEN);
        assert_eq!(one.post("/api/v1/runs/study/answers", &answer).await.status, StatusCode::CREATED);

        // A token that was revoked opens nothing, not even where nothing is needed otherwise.
        let known = server.state.store.api_tokens().await.unwrap();
        assert!(
            known.iter().all(|token| token.created_by == "a test") && known.iter().any(|token| token.used_at.is_some())
        );
        for token in known {
            server.state.store.revoke_api_token(token.id).await.unwrap();
        }
        assert_eq!(reader.get("/api/v1/runs").await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(one.post("/api/v1/runs/study/lease", &json!({})).await.status, StatusCode::UNAUTHORIZED);
    }
    let server = server_with(WebSettings::default()).await;
    let past = time::OffsetDateTime::now_utc() - time::Duration::minutes(1);
    let token = format!("iliad_{:032x}", 0);
    server.state.store.create_api_token(&token, "old", &[Scope::Read], "a test", Some(past)).await.unwrap();
    let expired = Program { server: &server, bearer: Some(format!("Bearer {token}")) };
    assert_eq!(expired.get("/api/v1/runs").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn tokens_are_made_and_revoked_on_a_page() {
    let server = Server::new().await;
    let refused = server.form("/tokens", "", "name=robot&days=30").await;
    assert!(
        refused.status == StatusCode::UNPROCESSABLE_ENTITY && refused.text.contains("value=\"robot\""),
        "{}",
        refused.text
    );
    let made = server.form("/tokens", "", "name=robot&days=30&scope-read=on&scope-agent=on").await;
    assert_eq!(made.status, StatusCode::CREATED);
    let token = crate::attribute(&made.text, "id=\"token\"", "value");
    let robot = Program { server: &server, bearer: Some(format!("Bearer {token}")) };
    assert_eq!(robot.get("/api/v1/runs").await.status, StatusCode::OK);
    let page = server.page("/tokens", "").await.text;
    assert!(page.contains("robot") && page.contains("Last used") && !page.contains(&token), "{page}");
    let revoked = server.form("/tokens/1/revoke", "", "").await;
    assert_eq!(revoked.header("location"), "/tokens?done=revoked");
    assert!(server.page("/tokens?done=revoked", "").await.text.contains("There is no token yet"));
    assert_eq!(robot.get("/api/v1/runs").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_request_with_a_key_is_carried_out_once() {
    let server = server_with(WebSettings::default()).await;
    let program = program(&server);
    server.state.launcher.as_ref().unwrap().create_outside(NewOutsideRun::default()).await.unwrap();
    let path = "/api/v1/runs/elsewhere/executions";
    let body = json!({"executions": [{"request": "greet", "text": "It waved."}]});
    let once = program.send(Method::POST, path, Some("first"), Some(&body)).await;
    let twice = program.send(Method::POST, path, Some("first"), Some(&body)).await;
    assert_eq!((once.status, twice.status), (StatusCode::CREATED, StatusCode::CREATED));
    assert_eq!((once.text.as_str(), twice.header("idempotency-replayed")), (twice.text.as_str(), "true"));
    assert_eq!(twice.header("content-type"), "application/json");
    assert_eq!(server.state.store.execution_count(&"elsewhere".into()).await.unwrap(), 1);
    let other = json!({"executions": [{"request": "greet", "text": "It bowed."}]});
    let refused = program.send(Method::POST, path, Some("first"), Some(&other)).await;
    assert_eq!((refused.status.as_u16(), refused.json()["code"].as_str()), (422, Some("key-of-another-request")));
    let elsewhere = program.send(Method::POST, "/api/v1/runs/study/pause", Some("first"), None).await;
    assert_eq!(elsewhere.status, StatusCode::UNPROCESSABLE_ENTITY, "the address belongs to the request");
    // A key is its sender's own.
    let agent = with_token(&server, &[Scope::Agent]).await;
    assert_eq!(agent.send(Method::POST, path, Some("first"), Some(&other)).await.status, StatusCode::CREATED);
    // A refusal is not kept under its key.
    let wrong = json!({"executions": []});
    assert_eq!(program.send(Method::POST, path, Some("second"), Some(&wrong)).await.status.as_u16(), 422);
    assert_eq!(program.send(Method::POST, path, Some("second"), Some(&other)).await.status, StatusCode::CREATED);
    assert_eq!(program.send(Method::POST, path, Some("a b"), Some(&other)).await.status, StatusCode::BAD_REQUEST);
    // Many at once are one, too.
    let sent = (0..8).map(|_| program.send(Method::POST, path, Some("third"), Some(&body)));
    let statuses: Vec<u16> = futures::future::join_all(sent).await.iter().map(|reply| reply.status.as_u16()).collect();
    assert!(statuses.iter().all(|status| matches!(status, 201 | 409)) && statuses.contains(&201), "{statuses:?}");
    assert_eq!(server.state.store.execution_count(&"elsewhere".into()).await.unwrap(), 4);
}

#[tokio::test]
async fn programs_are_told_how_they_stand() {
    let server = Server::new().await;
    let reply = program(&server).get("/api/v1/runs/study").await;
    assert!(reply.header("ratelimit-policy").starts_with("\"api\";q=1200"), "{:?}", reply.headers);
    assert!(reply.header("ratelimit").starts_with("\"api\";r=1199"), "{:?}", reply.headers);
    let token = with_token(&server, &[Scope::Read]).await;
    let own = token.get("/api/v1/runs/study").await;
    assert!(
        own.header("ratelimit").starts_with("\"api\";r=1199"),
        "a token has a bucket of its own: {:?}",
        own.headers
    );
}
