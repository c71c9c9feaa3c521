//! Requests of the teacher's page while somebody describes: drafts, the request, "it did what was asked", previews.

use crate::{Server, support};
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::ids::AnswerId;
use iliad::store::ExportRow;
use serde_json::{Value, json};

/// A server with a run called `study` whose pool has these settings.
async fn with_pool(pool: Value) -> Server {
    let server = Server::new().await;
    let mut row = support::run_row("other", TeacherMode::Human);
    row.config = json!({ "pool": pool });
    server.state.runs.add(support::start_run(&server.state.store, row).await);
    server
}

async fn lease(server: &Server, cookie: &str) -> Value {
    server.post("/api/runs/other/lease", cookie, &json!({})).await.json()
}

fn answer(leased: &Value, text: &str) -> Value {
    json!({
        "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": text,
        "active_ms": 900, "idle_ms": 100,
    })
}

/// An address of an execution.
fn of(leased: &Value, what: &str) -> String {
    format!("/api/runs/other/executions/{}/{what}", leased["execution"])
}

async fn rows(server: &Server) -> Vec<ExportRow> {
    server.state.store.export_page(Some(&"other".into()), AnswerId::default(), 50).await.unwrap()
}

#[tokio::test]
async fn a_draft_comes_back_with_its_execution_and_goes_with_the_answer() {
    let server = with_pool(json!({})).await;
    let (cookie, stranger) = (server.teacher().await, server.teacher().await);
    let leased = lease(&server, &cookie).await;
    assert!(leased.get("draft").is_none());
    let save = async |cookie: &str, version: u64, text: &str| {
        let body = json!({"client_key": leased["client_key"], "version": version, "text": text}).to_string();
        let headers = [("content-type", "application/json"), ("cookie", cookie), ("sec-fetch-site", "same-origin")];
        server.call(Method::PUT, &of(&leased, "draft"), &headers, body).await.status
    };
    assert_eq!(save(&cookie, 1, "half a sen").await, StatusCode::NO_CONTENT);
    assert_eq!(save(&cookie, 2, "half a sentence").await, StatusCode::NO_CONTENT);
    assert_eq!(save(&stranger, 1, "mine").await, StatusCode::FORBIDDEN);
    assert_eq!(save("", 1, "mine").await, StatusCode::FORBIDDEN);
    assert_eq!(save(&cookie, 3, &"x".repeat(10_001)).await, StatusCode::UNPROCESSABLE_ENTITY);
    // As a page that closes sends it.
    let body = json!({"client_key": leased["client_key"], "version": 3, "text": "half a sentence, or more"});
    assert_eq!(server.post(&of(&leased, "draft"), &cookie, &body).await.status, StatusCode::NO_CONTENT);
    let again = lease(&server, &cookie).await;
    assert_eq!(
        (&again["execution"], &again["draft"]["text"]),
        (&leased["execution"], &"half a sentence, or more".into())
    );
    let listed = server.get("/api/runs/other/drafts", &cookie).await.json();
    assert_eq!(listed[0]["execution"], leased["execution"]);
    assert_eq!(server.get("/api/runs/other/drafts", &stranger).await.json(), json!([]));
    server.post("/api/runs/other/answers", &cookie, &answer(&again, "a sentence")).await;
    assert_eq!(server.get("/api/runs/other/drafts", &cookie).await.json(), json!([]));
}

#[tokio::test]
async fn the_request_is_shown_to_who_says_that_it_was_fulfilled() {
    let server = with_pool(json!({})).await;
    let cookie = server.teacher().await;
    let leased = lease(&server, &cookie).await;
    let mut said = answer(&leased, "");
    said["fulfilled"] = true.into();
    let unseen = server.post("/api/runs/other/answers", &cookie, &said).await;
    assert_eq!((unseen.status, unseen.json()["code"].clone()), (StatusCode::UNPROCESSABLE_ENTITY, "hidden".into()));
    let stranger = server.teacher().await;
    assert_eq!(server.post(&of(&leased, "reveal"), &stranger, &json!({})).await.status, StatusCode::FORBIDDEN);
    let revealed = server.post(&of(&leased, "reveal"), &cookie, &json!({})).await.json();
    let request = support::execution(7, leased["episode"].as_u64().unwrap(), 0).request;
    assert_eq!(revealed["request"], request.as_str());
    assert_eq!(lease(&server, &cookie).await["request"], request.as_str(), "it stays there");
    // Whether it is true is not asked: what people say is data.
    let stored = server.post("/api/runs/other/answers", &cookie, &said).await;
    assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text);
    let row = rows(&server).await.remove(0);
    assert_eq!((row.text.as_str(), row.fulfilled, row.request_shown), (request.as_str(), true, true));
    assert_eq!((row.active_ms, row.idle_ms), (Some(900), Some(100)));
    let own = server.get("/api/runs/other/answers", &cookie).await.json();
    assert_eq!((&own[0]["fulfilled"], &own[0]["text"]), (&true.into(), &request.into()));
    assert!(server.page("/teach/other/answers", &cookie).await.text.contains("You said that it did what was asked"));
}

#[tokio::test]
async fn without_a_script_too() {
    let server = with_pool(json!({})).await;
    let cookie = server.teacher().await;
    let page = server.page("/teach/other", &cookie).await.text;
    let leased = lease(&server, &cookie).await;
    let request = support::execution(7, leased["episode"].as_u64().unwrap(), 0).request;
    assert!(!page.contains(&format!("dir=\"auto\">{request}")));
    let form = format!("execution={}&client_key=k&look=yes&text=typed", leased["execution"]);
    let looked = server.form("/teach/other", &cookie, &form).await;
    assert_eq!(looked.status, StatusCode::OK, "{}", looked.text);
    assert!(
        looked.text.contains(&format!("id=\"fulfilling-words\" lang=\"\" translate=\"no\" dir=\"auto\">{request}"))
    );
    assert!(looked.text.contains("typed</textarea>"), "and the words stay");
    let form = format!("execution={}&client_key=k&fulfilled=yes&text=typed", leased["execution"]);
    assert_eq!(server.form("/teach/other", &cookie, &form).await.status, StatusCode::SEE_OTHER);
    let row = rows(&server).await.remove(0);
    assert_eq!((row.text, row.fulfilled), (request, true));
}

#[tokio::test]
async fn a_copied_request_is_questioned_once_under_an_execution_that_did_something_else() {
    let server = with_pool(json!({"show_request": true})).await;
    let cookie = server.teacher().await;
    let (mut asked, mut believed) = (0, 0);
    for _ in 0..6 {
        let leased = lease(&server, &cookie).await;
        let success = support::execution(7, leased["episode"].as_u64().unwrap(), 0).success;
        let mut body = answer(&leased, &format!("Please {}.", leased["request"].as_str().unwrap()));
        let reply = server.post("/api/runs/other/answers", &cookie, &body).await;
        if success {
            assert_eq!(reply.status, StatusCode::CREATED);
            believed += 1;
            continue;
        }
        assert_eq!((reply.status, reply.json()["code"].clone()), (StatusCode::CONFLICT, "unconfirmed".into()));
        assert!(reply.json()["detail"].as_str().unwrap().contains("Is it also what it did?"));
        body["confirmed"] = true.into();
        assert_eq!(server.post("/api/runs/other/answers", &cookie, &body).await.status, StatusCode::CREATED);
        asked += 1;
    }
    assert!(asked > 0 && believed + asked == 6, "{asked} of 6 were asked about");
    // The plain form asks as well, and keeps the words.
    let failed = loop {
        let leased = lease(&server, &cookie).await;
        if !support::execution(7, leased["episode"].as_u64().unwrap(), 0).success {
            break leased;
        }
        server.post("/api/runs/other/answers", &cookie, &answer(&leased, "other words")).await;
    };
    let text = failed["request"].as_str().unwrap().replace(' ', "+");
    let form = format!("execution={}&client_key=form&kind=described&text={text}", failed["execution"]);
    let questioned = server.form("/teach/other", &cookie, &form).await;
    assert_eq!(questioned.status, StatusCode::CONFLICT);
    assert!(
        questioned.text.contains("Yes, it did that") && questioned.text.contains("name=\"confirmed\" value=\"yes\"")
    );
    let sure = format!("{form}&confirmed=yes");
    assert_eq!(server.form("/teach/other", &cookie, &sure).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn previews_are_for_those_whom_the_run_shows_them() {
    let server = with_pool(json!({"preview": "on"})).await;
    let (cookie, stranger) = (server.teacher().await, server.teacher().await);
    assert!(server.page("/teach/other", &cookie).await.text.contains(" data-previews"));
    let leased = lease(&server, &cookie).await;
    let body = json!({"text": "add an e at the end"});
    assert_eq!(server.post(&of(&leased, "preview"), &stranger, &body).await.status, StatusCode::FORBIDDEN);
    let seen = server.post(&of(&leased, "preview"), &cookie, &body).await;
    assert_eq!(seen.status, StatusCode::OK, "{}", seen.text);
    assert!(!seen.json()["html"].as_str().unwrap().is_empty() && seen.json().get("summary").is_none());
    let mut said = answer(&leased, "add an e");
    said["first_text"] = "add an e at the end".into();
    server.post("/api/runs/other/answers", &cookie, &said).await;
    let row = rows(&server).await.remove(0);
    assert_eq!((row.preview_arm, row.preview_shown), (Some(true), true));
    assert_eq!((row.first_text.as_deref(), row.text.as_str()), (Some("add an e at the end"), "add an e"));
    // Where the run shows none, none can be asked for.
    let other = server.lease(&cookie, &[]).await;
    let path = format!("/api/runs/study/executions/{}/preview", other["execution"]);
    assert_eq!(server.post(&path, &cookie, &body).await.json()["code"], "no-preview");
    assert!(!server.page("/teach/study", &cookie).await.text.contains(" data-previews"));
}

#[tokio::test]
async fn a_run_left_to_chance_shows_previews_to_some() {
    let server = with_pool(json!({"preview": "random"})).await;
    let mut arms = Vec::new();
    for _ in 0..24 {
        let cookie = server.teacher().await;
        let leased = lease(&server, &cookie).await;
        if leased["execution"].is_null() {
            break;
        }
        server.post("/api/runs/other/answers", &cookie, &answer(&leased, "words")).await;
    }
    for row in rows(&server).await {
        arms.push(row.preview_arm.expect("everybody has an arm"));
        assert!(!row.preview_shown);
    }
    assert!(arms.contains(&true) && arms.contains(&false), "{arms:?}");
}

#[tokio::test]
async fn a_teacher_is_told_how_far_they_are_and_gets_another_hint_each_time() {
    let server = with_pool(json!({})).await;
    let cookie = server.teacher().await;
    let leased = lease(&server, &cookie).await;
    assert!(!leased["progress"].as_str().unwrap().contains("You have given"));
    assert_eq!(leased["placeholder"], "put an e at the end of every word");
    let stored = server.post("/api/runs/other/answers", &cookie, &answer(&leased, "words")).await.json();
    assert!(stored["progress"].as_str().unwrap().starts_with("You have given 1 description so far."));
    assert!(server.page("/teach/other", &cookie).await.text.contains("You have given 1 description so far."));
}
