//! The programs of docs/examples, run against a server. They need python3, and are passed over with a sentence where it is missing.

use crate::v1::server_with;
use crate::{Server, support};
use axum::routing::post;
use axum::{Json, Router};
use iliad::config::run::TeacherMode;
use iliad::web::WebSettings;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

/// How long a program may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name)
}

/// Whether python3 is there, and with it `module`.
fn python_has(module: &str) -> bool {
    let tried = std::process::Command::new("python3").args(["-c", &format!("import {module}")]).output();
    let there = tried.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("python3 with {module} is missing here, so this example was not run");
    }
    there
}

/// Serves on a port of its own; the address.
async fn serve(server: &Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(iliad::web::serve(server.state.clone(), listener));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outside_agent_learns_from_what_people_say() {
    outside_agent(&[], "edit-pair").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outside_agent_walks_and_learns_from_what_people_say() {
    outside_agent(&["--walks"], "data-walk").await;
}

/// Lets the outside agent learn from two descriptions. `drawn`: a part of the drawings of its executions.
async fn outside_agent(more: &[&str], drawn: &str) {
    if !python_has("json") {
        return;
    }
    let server = server_with(WebSettings::default()).await;
    let address = serve(&server).await;
    let mut agent = Command::new("python3")
        .arg(example("outside_agent.py"))
        .args(["--descriptions", "2", "--executions", "2"])
        .args(more)
        .env("ILIAD_URL", &address)
        .env_remove("ILIAD_TOKEN")
        .env_remove("ILIAD_RUN")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("run elsewhere"));
    let cookie = server.page("/teach/elsewhere", "").await.cookie("iliad_teacher").unwrap();
    let mut told = 0;
    let begun = std::time::Instant::now();
    while told < 2 {
        assert!(begun.elapsed() < PATIENCE, "executions come");
        let leased = server.post("/api/v1/runs/elsewhere/lease", &cookie, &json!({})).await.json();
        if !leased["execution"].is_i64() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        told += 1;
        assert!(leased["html"].as_str().unwrap().contains(drawn), "{leased}");
        let answer = json!({"client_key": leased["client_key"], "execution": leased["execution"], "kind": "described",
            "text": format!("do as I say, {told}")});
        assert_eq!(server.post("/api/v1/runs/elsewhere/answers", &cookie, &answer).await.status.as_u16(), 201);
    }
    let ended = tokio::time::timeout(PATIENCE, agent.wait()).await.expect("it ends").unwrap();
    assert!(ended.success());
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        said.push(line);
    }
    assert!(said.len() == 2 && said[1].contains("do as I say, 2"), "{said:?}");
    let run = server.get("/api/v1/runs/elsewhere", "").await.json();
    let points = server.get("/api/v1/runs/elsewhere/points", "").await.json();
    assert_eq!(points["items"].as_array().unwrap().len(), 2, "{run} {points}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_language_model_teaches() {
    if !python_has("json") {
        return;
    }
    let mut server = Server::with(WebSettings::default(), TeacherMode::Human).await;
    let address = serve(&server).await;
    // The stand-in of a language model says in which words it was asked.
    let reply = |Json(asked): Json<Value>| async move {
        let shown = asked["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
        let words = format!("make it so that {}", shown.split(';').next().unwrap_or_default());
        Json(json!({"choices": [{"message": {"role": "assistant", "content": words}}]}))
    };
    let model = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let model_address = format!("http://{}/v1", model.local_addr().unwrap());
    let router = Router::new().route("/v1/chat/completions", post(reply));
    tokio::spawn(async move { axum::serve(model, router).await });
    let token = format!("iliad_{:032x}", 7);
    let scopes = [iliad::store::Scope::Teach];
    server.state.store.create_api_token(&token, "language model", &scopes, "a test", None).await.unwrap();
    let teacher = Command::new("python3")
        .arg(example("language_model_teacher.py"))
        .args(["--descriptions", "3", "--wait", "0.1"])
        .env("ILIAD_URL", &address)
        .env("ILIAD_RUN", "study")
        .env("ILIAD_TOKEN", &token)
        .env("LM_URL", &model_address)
        .env_remove("LM_KEY")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, teacher).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let given = server.state.store.descriptions(&"study".into(), Default::default(), 10).await.unwrap();
    assert!(given.len() == 3 && given.iter().all(|one| one.text.starts_with("make it so that")), "{given:?}");
    server.state.shutdown.cancel();
    server.state = support::app_state(server.state.store.clone(), WebSettings::default());
}

#[test]
fn checkpoints_are_read_in_python() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("model_store/shipped/regex-tiny-policy.safetensors");
    let run = |arguments: &[&str]| {
        let mut python = std::process::Command::new("python3");
        let output = python.arg(example("load_checkpoint.py")).args(arguments).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    if python_has("json") {
        let names = run(&["--names"]);
        assert!(names.lines().any(|line| line.starts_with("predictor.output.weight F")), "{names}");
    }
    if python_has("torch") {
        let loaded = run(&[]);
        assert!(loaded.contains("decoder: LSTM("), "{loaded}");
    }
}
