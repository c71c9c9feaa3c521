//! One visitor cannot take from others, and visitors whose browser keeps its cookie to itself are served.

use crate::Server;
use crate::support::{run_row, start_run};
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How many teachers the store has ever made.
async fn teachers(server: &Server) -> i64 {
    server.state.store.teacher("the one who counts").await.unwrap().id.0 - 1
}

fn described(execution: &Value, key: &str) -> Value {
    json!({"client_key": key, "execution": execution, "kind": "described", "text": "some words"})
}

#[tokio::test]
async fn a_visit_writes_nothing_and_the_cookie_that_comes_back_makes_one_teacher() {
    let server = Server::new().await;
    let mut cookies = BTreeSet::new();
    for path in ["/teach/study", "/teach/study/guide", "/teach/study/answers"] {
        for _ in 0..20 {
            let page = server.page(path, "").await;
            assert_eq!(page.status, StatusCode::OK);
            cookies.insert(page.cookie("iliad_teacher").expect("a cookie comes with the page"));
        }
    }
    assert_eq!(cookies.len(), 60);
    let cookie = cookies.first().unwrap();
    for path in ["/teach/study", "/teach/study/answers", "/api/runs/study/answers"] {
        let page = server.page(path, cookie).await;
        assert_eq!((page.status, page.cookie("iliad_teacher")), (StatusCode::OK, None), "{path}: it is recognised");
    }
    for _ in 0..3 {
        assert!(server.lease(cookie, &[]).await["execution"].is_i64());
    }
    assert_eq!(teachers(&server).await, 1);
}

#[tokio::test]
async fn blocked_cookies_are_said_plainly_and_lead_nowhere_in_circles() {
    let server = Server::new().await;
    assert!(server.page("/teach/study", "").await.text.contains("Start teaching"));
    let form = ("content-type", "application/x-www-form-urlencoded");
    let ways: [&[(&str, &str)]; 3] = [
        &[form, ("accept", "text/html"), ("sec-fetch-site", "same-origin")],
        &[form, ("accept", "text/html"), ("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "iframe")],
        // An old browser.
        &[form, ("accept", "text/html,*/*"), ("origin", "http://127.0.0.1:8080"), ("cookie", "other=1")],
    ];
    for headers in ways {
        let told = server.call(Method::POST, "/teach/study/guide", headers, "").await;
        assert_eq!((told.status, told.header("content-type")), (StatusCode::FORBIDDEN, "text/html; charset=utf-8"));
        for words in ["Your browser sent no cookie", "Allow cookies for this site", "in a tab of its own", "Try again"]
        {
            assert!(told.text.contains(words), "{words}: {}", told.text);
        }
        assert!(told.text.contains("href=\"/teach/study\""), "and there is a way on");
    }
    let problem = server.post("/teach/study/guide", "", &json!({})).await;
    assert_eq!((problem.status, problem.json()["code"].as_str()), (StatusCode::FORBIDDEN, Some("no-cookie")));
    assert_eq!(problem.header("content-type"), "application/problem+json");
    // A correction by the plain form comes back to be copied.
    let body = "execution=1&client_key=k&text=words+to+keep";
    let kept = server.form("/teach/study/answers/1", "", body).await;
    assert_eq!(kept.status, StatusCode::FORBIDDEN);
    assert!(kept.text.contains("words to keep") && kept.text.contains("Allow cookies"));
    assert_eq!(teachers(&server).await, 0);
}

#[tokio::test]
async fn a_lease_costs_a_visit_of_the_page() {
    let (server, foreign) = (Server::new().await, Server::new().await);
    let foreign = foreign.page("/teach/study", "").await.cookie("iliad_teacher").unwrap();
    let ours = server.page("/teach/study", "").await.cookie("iliad_teacher").unwrap();
    let mut altered = ours.clone();
    let last = altered.pop().unwrap();
    altered.push(if last == '0' { '1' } else { '0' });
    let made_up = [
        String::new(),
        format!("iliad_teacher={}", "0123456789abcdef".repeat(2)),
        format!("iliad_teacher={}", "0123456789abcdef".repeat(4)),
        altered,
        foreign,
    ];
    for cookie in &made_up {
        let refused = server.post("/api/runs/study/lease", cookie, &json!({"except": []})).await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::FORBIDDEN, Some("no-cookie")));
        assert_eq!(refused.cookie("iliad_teacher"), None, "it comes with the page only");
        assert!(server.page("/teach/study", cookie).await.cookie("iliad_teacher").is_some(), "which replaces it");
    }
    assert_eq!((teachers(&server).await, server.state.store.pool(&"study".into()).await.unwrap().leased), (0, 0));
    assert!(server.lease(&ours, &[]).await["execution"].is_i64());
}

#[tokio::test]
async fn cookies_of_before_stay_good_and_two_servers_on_one_host_share_the_cookie() {
    let (one, two) = (Server::new().await, Server::new().await);
    // As it was made before tokens were signed.
    let token = "00112233445566778899aabbccddeeff";
    let teacher = one.state.store.teacher(token).await.unwrap();
    one.state.store.set_seen_guide(teacher.id).await.unwrap();
    let old = format!("iliad_teacher={token}");
    let page = one.page("/teach/study", &old).await;
    assert!(page.text.contains("<textarea") && page.cookie("iliad_teacher").is_none());

    let both = two.page("/teach/study", &old).await.cookie("iliad_teacher").expect("the other server adds its own");
    assert!(two.lease(&both, &[]).await["execution"].is_i64());
    assert!(one.page("/teach/study", &both).await.text.contains("<textarea"), "and the first still knows its own");
    let mut cookie = both;
    for _ in 0..6 {
        let another = Server::new().await;
        cookie = another.page("/teach/study", &cookie).await.cookie("iliad_teacher").unwrap();
        assert!(another.lease(&cookie, &[]).await["execution"].is_i64());
    }
    assert!(cookie.len() < 300, "it does not grow for ever: {}", cookie.len());
}

#[tokio::test]
async fn one_cookie_holds_what_one_person_can_look_at() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let mut had = Vec::new();
    for _ in 0..30 {
        had.extend(server.lease(&cookie, &had).await["execution"].as_i64());
    }
    assert!(had.len() > 2);
    assert_eq!(server.state.store.pool(&"study".into()).await.unwrap().leased, 2);
    let many: Vec<i64> = (0..10_000).collect();
    let refused = server.post("/api/runs/study/lease", &cookie, &json!({ "except": many })).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::BAD_REQUEST, Some("unreadable")));
}

#[tokio::test]
async fn executions_that_were_never_leased_cannot_be_answered_by_counting() {
    let server = Server::new().await;
    let (holder, guesser) = (server.teacher().await, server.teacher().await);
    let held = server.lease(&holder, &[]).await;
    let mut codes = BTreeSet::new();
    for execution in 1..30 {
        let body = described(&execution.into(), &format!("key {execution}"));
        let refused = server.post("/api/runs/study/answers", &guesser, &body).await;
        assert!(refused.status.is_client_error(), "{execution}: {}", refused.text);
        codes.insert(refused.json()["code"].as_str().unwrap().to_owned());
    }
    assert_eq!(codes, ["never-yours", "not-found"].map(str::to_owned).into());
    assert_eq!(server.state.store.export_count(None).await.unwrap(), 0);
    // The plain form gives the words back.
    let body = format!("execution={}&client_key=k&kind=described&text=words+to+keep", held["execution"]);
    let kept = server.form("/teach/study", &guesser, &body).await;
    assert_eq!(kept.status, StatusCode::FORBIDDEN);
    assert!(kept.text.contains("words to keep") && kept.text.contains("never shown to you"));
    // Who holds it was not disturbed.
    let renew = format!("/api/runs/study/executions/{}/renew", held["execution"]);
    assert_eq!(server.post(&renew, &holder, &json!({})).await.status, StatusCode::OK);
    let stored = server.post("/api/runs/study/answers", &holder, &described(&held["execution"], "mine")).await;
    assert_eq!(stored.status, StatusCode::CREATED);
}

#[tokio::test]
async fn every_address_takes_its_own_runs_executions_only() {
    let server = Server::new().await;
    server.state.runs.add(start_run(&server.state.store, run_row("other", TeacherMode::Human)).await);
    let cookie = server.teacher().await;
    let held = server.lease(&cookie, &[]).await["execution"].clone();
    for what in ["renew", "release"] {
        let foreign = server.post(&format!("/api/runs/other/executions/{held}/{what}"), &cookie, &json!({})).await;
        assert_eq!((foreign.status, foreign.json()["code"].as_str()), (StatusCode::NOT_FOUND, Some("not-found")));
    }
    let foreign = server.post("/api/runs/other/answers", &cookie, &described(&held, "k")).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    let form = format!("execution={held}&client_key=k&kind=described&text=words+to+keep");
    let foreign = server.form("/teach/other", &cookie, &form).await;
    assert!(foreign.status == StatusCode::NOT_FOUND && foreign.text.contains("words to keep"), "{}", foreign.text);
    assert_eq!(server.state.store.pool(&"study".into()).await.unwrap().leased, 1, "it is still held");
    let stored = server.post("/api/runs/study/answers", &cookie, &described(&held, "k")).await.json();
    let correct = |run: &str| format!("/api/runs/{run}/answers/{}/correct", stored["answer"]);
    let mut better = described(&held, "another key");
    better["text"] = "better words".into();
    assert_eq!(server.post(&correct("other"), &cookie, &better).await.status, StatusCode::NOT_FOUND);
    assert_eq!(server.post(&correct("study"), &cookie, &better).await.status, StatusCode::CREATED);
}
