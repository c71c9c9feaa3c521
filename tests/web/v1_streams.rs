//! Streams of events under the addresses of programs, and agents that live elsewhere.

use crate::Server;
use crate::v1::{program, server_with};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures::StreamExt;
use iliad::config::run::TeacherMode;
use iliad::web::WebSettings;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

/// Reads a stream of events until it holds all the parts.
async fn stream_until(server: &Server, path: &str, last: Option<&str>, parts: &[&str]) -> String {
    let mut request = Request::get(path).header("host", "127.0.0.1:8080");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().get("content-type").unwrap().to_str().unwrap().starts_with("text/event-stream"));
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while !parts.iter().all(|part| text.contains(part)) {
        let chunk = tokio::time::timeout(Duration::from_secs(60), body.next()).await.expect("in time");
        text.push_str(std::str::from_utf8(&chunk.expect("it goes on").unwrap()).unwrap());
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_tell_of_runs_and_go_on_after_the_last_event() {
    let server = Server::with(WebSettings::default(), TeacherMode::Simulated).await;
    crate::support::ended_run(&server.state.store, crate::support::run_row("old", TeacherMode::Human)).await;
    let own = "/api/v1/runs/study/events";
    let first = stream_until(&server, own, None, &["event: status", "event: point", "event: episode"]).await;
    assert!(first.trim_start().starts_with("event: status") || first.contains("retry: 2000"), "{first}");
    assert!(!first.contains("event: resync"), "{first}");
    let id = first.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap();
    stream_until(&server, own, Some(id), &["event: status", "event: resync"]).await;
    let shared = stream_until(
        &server,
        "/api/v1/events?runs=study,old",
        Some(id),
        &["event: absent", "event: resync", "{\"data\":{},\"run\":\"old\"}", "event: point"],
    );
    shared.await;
    // Rows that came meanwhile are in the lists, from the last page that the program has.
    let program = program(&server);
    let page = program.get("/api/v1/runs/study/points?limit=1").await.json();
    let later =
        program.get(&format!("/api/v1/runs/study/points?cursor={}", page["next"].as_str().unwrap())).await.json();
    assert!(later["items"][0]["update"].as_u64() > page["items"][0]["update"].as_u64(), "{later}");
    // Each kind of event is in the document.
    let document = program.get("/api/v1/openapi.json").await.json();
    let described = document["paths"]["/api/v1/runs/{run}/events"]["get"]["description"].as_str().unwrap();
    for name in ["status", "point", "episode", "checkpoint", "comprehension", "evaluating", "log", "resync"] {
        assert!(described.contains(&format!("- `{name}`")), "{name}: {described}");
    }
}

/// The events of a stream, as many as are wanted.
async fn events(server: &Server, path: &str, last: Option<i64>, wanted: usize) -> Vec<(String, Value)> {
    let mut request = Request::get(path).header("host", "127.0.0.1:8080");
    if let Some(last) = last {
        request = request.header("last-event-id", last.to_string());
    }
    let response = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body().into_data_stream();
    let (mut text, mut found) = (String::new(), Vec::new());
    while found.len() < wanted {
        let chunk = tokio::time::timeout(Duration::from_secs(60), body.next()).await.expect("in time");
        text.push_str(std::str::from_utf8(&chunk.expect("it goes on").unwrap()).unwrap());
        found = text
            .split("\n\n")
            .filter(|event| event.contains("event: description"))
            .map(|event| {
                let line =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
                (line("id:"), serde_json::from_str(&line("data:")).unwrap())
            })
            .collect();
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_elsewhere_posts_executions_and_gets_descriptions_as_they_come() {
    let server = server_with(WebSettings::default()).await;
    let agent = program(&server);
    let run = agent.post("/api/v1/outside-runs", &json!({"show_request": true})).await;
    assert_eq!((run.status, run.json()["id"].as_str()), (StatusCode::CREATED, Some("elsewhere")));
    let executions = json!({"executions": [
        {"request": "replace c with w", "pairs": [{"in": "castle", "out": "wastle"}], "update": 4},
        {"request": "tidy up", "text": "It took the <cup>.\nIt left.", "people": 2},
    ]});
    let posted = agent.post("/api/v1/runs/elsewhere/executions", &executions).await;
    assert_eq!(posted.status, StatusCode::CREATED, "{}", posted.text);
    assert_eq!(posted.json()["executions"][1]["episode"], 2);
    for wrong in [
        json!({"request": "x"}),
        json!({"request": "x", "text": "a", "pairs": []}),
        json!({"request": "", "text": "a"}),
        json!({"request": "x", "text": "a", "people": 0}),
    ] {
        let reply = agent.post("/api/v1/runs/elsewhere/executions", &json!({ "executions": [wrong] })).await;
        assert_eq!(reply.json()["code"], "execution", "{}", reply.text);
    }
    let own = agent.post("/api/v1/runs/study/executions", &executions).await;
    assert_eq!((own.status, own.json()["code"].as_str()), (StatusCode::CONFLICT, Some("not-outside")));

    // People teach it on the page, as any other run, and the dashboard says where the agent is.
    let page = server.page("/teach/elsewhere", "").await;
    let cookie = page.cookie("iliad_teacher").unwrap();
    server.form("/teach/elsewhere/guide", &cookie, "").await;
    assert!(server.page("/runs/elsewhere", "").await.text.contains("lives in another program"));
    assert!(server.page("/runs", "").await.text.contains("elsewhere"));
    let stream = events(&server, "/api/v1/runs/elsewhere/descriptions/events", None, 2);
    let teach = async {
        let mut drawn = String::new();
        for n in 0..2 {
            let leased = server.post("/api/v1/runs/elsewhere/lease", &cookie, &json!({})).await.json();
            drawn += leased["html"].as_str().unwrap();
            assert!(leased["request"].is_string(), "{leased}");
            let answer = json!({"client_key": format!("k{n}"), "execution": leased["execution"], "kind": "described",
                "text": format!("words {n}")});
            let reply = server.post("/api/v1/runs/elsewhere/answers", &cookie, &answer).await;
            assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        }
        assert!(drawn.contains("edit-pair") && drawn.contains("&lt;cup&gt;"), "{drawn}");
    };
    let (told, ()) = tokio::join!(stream, teach);
    assert_eq!((&told[0].1["text"], &told[1].1["text"]), (&json!("words 0"), &json!("words 1")));
    assert_eq!(told[0].1["state"], "standing");
    let first: i64 = told[0].0.parse().unwrap();
    let again = events(&server, "/api/v1/runs/elsewhere/descriptions/events", Some(first), 1).await;
    assert_eq!(again[0].0, told[1].0, "a stream that broke off goes on after the last one");
    let later = agent.get(&format!("/api/v1/runs/elsewhere/descriptions?after={first}")).await.json();
    assert_eq!((later["items"].as_array().unwrap().len(), &later["items"][0]["text"]), (1, &json!("words 1")));

    // Descriptions that it has learned from can no longer be undone, and teachers see it.
    let update = json!({"update": 1, "descriptions": [first], "validation": {"right": 1, "of": 2}, "seconds": 3.5});
    let point = agent.post("/api/v1/runs/elsewhere/updates", &update).await;
    assert_eq!((point.status, point.json()["validation"]["n"].as_u64()), (StatusCode::OK, Some(2)), "{}", point.text);
    assert_eq!(agent.post("/api/v1/runs/elsewhere/updates", &update).await.status, StatusCode::OK);
    let undone = server.post(&format!("/api/v1/runs/elsewhere/answers/{first}/undo"), &cookie, &json!({})).await.json();
    assert_eq!((&undone["undone"], &undone["used_in_update"]), (&json!(false), &json!(1)));
    let second = told[1].0.clone();
    server.post(&format!("/api/v1/runs/elsewhere/answers/{second}/undo"), &cookie, &json!({})).await;
    let gone = json!({"update": 2, "descriptions": [second.parse::<i64>().unwrap()]});
    let refused = agent.post("/api/v1/runs/elsewhere/updates", &gone).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::CONFLICT, Some("superseded")));

    // It is commanded as any other.
    assert_eq!(agent.post("/api/v1/runs/elsewhere/pause", &json!({})).await.status, StatusCode::ACCEPTED);
    let mut status = server.state.runs.get(&"elsewhere".into()).unwrap().status;
    let paused = status.wait_for(|status| status.state == iliad::run::RunState::Paused);
    let seen = tokio::time::timeout(Duration::from_secs(30), paused).await.unwrap().unwrap().clone();
    assert_eq!((seen.update, seen.episodes, seen.descriptions_human), (1, 2, 1));
    let waits = agent.post("/api/v1/runs/elsewhere/executions", &executions).await;
    assert_eq!(waits.json()["code"], "paused");
    let tried = agent.post("/api/v1/runs/elsewhere/try", &json!({"request": "x", "start": {}})).await;
    assert!(tried.text.contains("lives in another program"), "{}", tried.text);
}
