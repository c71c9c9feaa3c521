//! A finished run is worth something, on the server that trained it and on the next one.

use crate::app::manager::Manager;
use crate::app::manager::tests::{asked, server};
use crate::config::run::TeacherMode;
use crate::ids::RunId;
use crate::launch::Launcher;
use crate::registry::Registry;
use crate::run::RunState;
use crate::store::MadeBy;
use axum::Router;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// How long a tiny run may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

async fn get(router: &Router, path: &str) -> (u16, Value) {
    let (status, text) = asked(router, axum::http::Request::get(path), String::new()).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn post(router: &Router, path: &str, body: &Value) -> (u16, Value) {
    let request = axum::http::Request::post(path).header("content-type", "application/json");
    let (status, text) = asked(router, request, body.to_string()).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Waits until a run has ended; how many episodes it has seen.
async fn ended(manager: &Manager, id: &RunId) -> u64 {
    let mut status = manager.runs.get(id).expect("it was started").status;
    let over = status.wait_for(|status| matches!(status.state, RunState::Stopped | RunState::Failed { .. }));
    let now = tokio::time::timeout(PATIENCE, over).await.expect("in time").expect("it tells").clone();
    assert_eq!(now.state, RunState::Stopped);
    now.episodes
}

/// Waits until what runs told is in the store.
async fn recorded(manager: &Manager) {
    manager.shut_down().await;
}

/// Settings of a run that is over in seconds.
const SHORT: [&str; 4] =
    ["schedule.episodes=64", "schedule.evaluate_every=1", "schedule.evaluate_tasks=16", "schedule.checkpoint_every=1"];

async fn trained(manager: &Manager) -> RunId {
    let set = SHORT.map(str::to_owned);
    let config = Registry::builtin().configure("regex/tiny", 3, &set).unwrap();
    let id = manager.create(config).await.unwrap();
    assert_eq!(ended(manager, &id).await, 64);
    id
}

/// Everything that a finished run is good for.
async fn use_everything(manager: &Manager, router: &Router, id: &RunId) {
    let api = |rest: &str| format!("/api/runs/{id}{rest}");
    // Its agent is tried, the best one and any other that is kept.
    let body = json!({"request": "add an e at the end", "start": {"words": ["abc"]}});
    let (status, tried) = post(router, &api("/try"), &body).await;
    assert_eq!(status, 200, "{tried}");
    let (_, checkpoints) = get(router, &api("/checkpoints")).await;
    let kept: Vec<&Value> = checkpoints.as_array().unwrap().iter().filter(|row| row["kept"] == true).collect();
    assert!(kept.iter().any(|row| row["name"] == "best.safetensors") && kept.len() >= 2, "{checkpoints}");
    let newest = kept.iter().find(|row| row["name"] != "best.safetensors").unwrap();
    let mut body = body;
    body["checkpoint"] = newest["name"].clone();
    let (status, tried) = post(router, &api("/try"), &body).await;
    assert_eq!((status, &tried["update"]), (200, &newest["update"]), "{tried}");
    body["checkpoint"] = "../other.safetensors".into();
    assert_eq!(post(router, &api("/try"), &body).await.0, 409);
    // It is downloaded.
    let address = format!("/runs/{id}/checkpoints/best.safetensors");
    let request = axum::http::Request::get(&address).header("host", "localhost").body(axum::body::Body::empty());
    let reply = tower::ServiceExt::oneshot(router.clone(), request.unwrap()).await.unwrap();
    assert_eq!(reply.status().as_u16(), 200);
    let bytes = axum::body::to_bytes(reply.into_body(), 1 << 26).await.unwrap();
    let folder = manager.folder_of(id).await.unwrap();
    assert_eq!(bytes, std::fs::read(folder.join("best.safetensors")).unwrap());
    assert_eq!(get(router, &format!("/runs/{id}/checkpoints/run.lock")).await.0, 404);
    // Its success is measured.
    let request = json!({"checkpoint": "best.safetensors", "split": "test", "limit": 10});
    assert_eq!(post(router, &api("/evaluations"), &request).await.0, 202);
    let found = loop {
        let (_, found) = get(router, &api("/evaluations")).await;
        if found["pending"].as_array().is_some_and(Vec::is_empty) {
            break found;
        }
        let one = &found["pending"][0];
        assert!(one["failed"].is_null() && one["done"].as_u64() <= one["tasks"].as_u64(), "{found}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        (&found["done"][0]["evaluation"]["success"]["n"], &found["done"][0]["split"]),
        (&json!(10), &json!("test"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_run_is_tried_measured_downloaded_extended_and_continued_also_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let (manager, router) = server(home.path()).await;
    let id = trained(&manager).await;
    let (status, told) = post(&router, &format!("/api/runs/{id}/resume"), &json!({})).await;
    assert!(status == 409 && told["detail"].as_str().unwrap().contains("Raise their number"), "{told}");
    use_everything(&manager, &router, &id).await;
    recorded(&manager).await;
    // The next server knows the run from its store and folder alone.
    let (manager, router) = server(home.path()).await;
    use_everything(&manager, &router, &id).await;
    let (status, told) = post(&router, &format!("/api/runs/{id}/episodes"), &json!({"episodes": 64})).await;
    assert!(status == 422 && told["detail"].as_str().unwrap().contains("used 64 episodes already"), "{told}");
    assert_eq!(post(&router, &format!("/api/runs/{id}/episodes"), &json!({"episodes": 96})).await.0, 202);
    assert_eq!(ended(&manager, &id).await, 96);
    let stored = manager.store().run(&id).await.unwrap().config;
    assert_eq!(
        (&stored["schedule"]["episodes"], &stored["differences"]["schedule.episodes"]),
        (&json!(96), &json!(96))
    );
    // A checkpoint of it goes on as another run, with other settings.
    let wish = json!({"checkpoint": "best.safetensors", "set": ["schedule.episodes=160", "algorithm.replay=1"]});
    let (status, told) = post(&router, &format!("/api/runs/{id}/continue"), &wish).await;
    assert_eq!(status, 201, "{told}");
    let other = RunId::from(told["id"].as_str().unwrap());
    assert_eq!(ended(&manager, &other).await, 160);
    let label = manager.store().run_label(&other).await.unwrap();
    assert_eq!(label.parent.unwrap().run, id);
    assert!(label.inherited.update >= 1 && label.made_by == MadeBy::Server);
    recorded(&manager).await;
    let points = manager.store().points(&other, 1000).await.unwrap();
    assert!(points.first().unwrap().update <= label.inherited.update, "the curve begins where the other run did");
    assert_eq!(manager.store().run(&id).await.unwrap().config["schedule"]["episodes"], 96, "the first run stays");
    // A checkpoint that cannot be continued is refused with the reason.
    for (set, word) in [
        ("model.hidden=32", "model.hidden decides"),
        ("algorithm.name=dagger", "Another algorithm"),
        ("schedule.episodes=1", "has seen"),
        ("algorithm.batch=0", "algorithm.batch"),
    ] {
        let wish = json!({"checkpoint": "best.safetensors", "set": [set]});
        let (status, told) = post(&router, &format!("/api/runs/{id}/continue"), &wish).await;
        assert!(status == 422 && told["detail"].as_str().unwrap().contains(word), "{set}: {status} {told}");
    }
    let wish = json!({"checkpoint": "update-99999999.safetensors"});
    assert_eq!(post(&router, &format!("/api/runs/{id}/continue"), &wish).await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_commands_are_listed_and_the_trash_is_emptied_with_its_files() {
    let home = tempfile::tempdir().unwrap();
    let (manager, _) = server(home.path()).await;
    let id = trained(&manager).await;
    recorded(&manager).await;
    // A data folder in which commands wrote the same.
    let other = tempfile::tempdir().unwrap();
    let (manager, router) = server(other.path()).await;
    let copied = [other.path().join("runs/regex-tiny-mine"), other.path().join("reproduce/main/ADEL/seed-3")];
    for folder in &copied {
        std::fs::create_dir_all(folder).unwrap();
        for entry in std::fs::read_dir(home.path().join("runs").join(id.as_str())).unwrap().flatten() {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    let mut seen = std::collections::BTreeMap::new();
    manager.take_up_found_runs(&mut seen).await;
    manager.take_up_found_runs(&mut seen).await;
    let (_, runs) = get(&router, "/api/runs").await;
    let ids: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["reproduce-main-ADEL-seed-3", "regex-tiny-mine"]);
    assert_eq!((&runs[1]["status"]["episodes"], &runs[1]["label"]["made_by"]), (&json!(64), &json!("train")));
    assert_eq!(manager.store().run(&ids[1].into()).await.unwrap().teacher, TeacherMode::Simulated);
    for run in &ids {
        use_everything(&manager, &router, &(*run).into()).await;
    }
    let (status, told) = post(&router, &format!("/api/runs/{}/episodes", ids[0]), &json!({"episodes": 96})).await;
    assert!(status == 409 && told["detail"].as_str().unwrap().contains("iliad reproduce"), "{told}");
    let mine: RunId = ids[1].into();
    assert_eq!(post(&router, &format!("/api/runs/{mine}/episodes"), &json!({"episodes": 96})).await.0, 202);
    assert_eq!(ended(&manager, &mine).await, 96);
    recorded(&manager).await;
    // Both go into the trash. One is removed before its time, the other when it is over: the folder of a table stays.
    let early = Launcher::remove(&*manager, &mine, &|_, _| {}).await.unwrap_err();
    assert!(early.to_string().contains("not in the trash") && copied[0].exists(), "{early}");
    for run in [&mine, &RunId::from(ids[0])] {
        manager.store().trash_run(run).await.unwrap();
    }
    let resumed = Launcher::resume(&*manager, &mine).await;
    assert!(resumed.unwrap_err().to_string().contains("trash"));
    manager.empty_trash(time::OffsetDateTime::now_utc() - time::Duration::DAY).await;
    assert!(copied[0].exists());
    Launcher::remove(&*manager, &mine, &|_, _| {}).await.unwrap();
    assert!(!copied[0].exists() && copied[1].exists());
    manager.empty_trash(time::OffsetDateTime::now_utc() + time::Duration::DAY).await;
    assert!(!copied[0].exists() && copied[1].exists());
    manager.take_up_found_runs(&mut std::collections::BTreeMap::new()).await;
    let (_, runs) = get(&router, "/api/runs").await;
    assert_eq!(runs.as_array().unwrap().len(), 0, "{runs}");
    assert!(!Path::new(&copied[0]).exists());
}
