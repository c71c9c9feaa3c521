//! The page shows how the agent takes a person's words, and the dashboard has the curves of all teachers.

use crate::Server;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures::StreamExt;
use iliad::config::run::TeacherMode;
use iliad::web::{WebSettings, router};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

async fn describe(server: &Server, cookie: &str, text: &str) -> Value {
    let leased = server.lease(cookie, &[]).await;
    let body = json!({
        "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": text,
    });
    let reply = server.post("/api/runs/study/answers", cookie, &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    reply.json()
}

/// The teacher's state, once `wanted` holds of it.
async fn until(server: &Server, cookie: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let own = server.get("/api/runs/study/comprehension", cookie).await.json();
        if wanted(&own) {
            return own;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it did not come in time");
}

#[tokio::test]
async fn a_sentence_waits_and_is_then_carried_out_before_and_after() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let nobody = server.get("/api/runs/study/comprehension", "").await;
    assert_eq!((nobody.status, nobody.json()["code"].as_str()), (StatusCode::FORBIDDEN, Some("no-cookie")));
    let nothing = server.get("/api/runs/study/comprehension", &cookie).await.json();
    assert_eq!(
        (&nothing["latest"], &nothing["waiting"], &nothing["readings"]),
        (&Value::Null, &Value::Null, &json!([]))
    );
    // While the run is paused the sentence waits, and the page says for what.
    server.post("/api/runs/study/pause", "", &json!({})).await;
    let mut status = server.run.status.clone();
    status.wait_for(|status| status.state == iliad::run::RunState::Paused).await.unwrap();
    let thanks = describe(&server, &cookie, "<b>first</b>").await;
    assert!(thanks["thanks"].as_str().unwrap().contains("is paused and learns later"), "{thanks}");
    let own = server.get("/api/runs/study/comprehension", &cookie).await.json();
    assert_eq!(own["waiting"]["text"], "<b>first</b>");
    assert!(own["waiting"]["when"].as_str().unwrap().contains("paused"), "{own}");
    server.post("/api/runs/study/resume", "", &json!({})).await;
    let own = until(&server, &cookie, |own| !own["latest"]["after"].is_null()).await;
    assert_eq!((&own["waiting"], &own["latest"]["text"]), (&Value::Null, &json!("<b>first</b>")));
    assert_eq!(own["latest"]["after"]["understood"], true);
    assert!(own["latest"]["before"]["html"].as_str().unwrap().contains("<li>"));
    // The made-up agent understands every second of them before it is told.
    for n in 2..=5 {
        describe(&server, &cookie, &format!("sentence {n}")).await;
    }
    let own = until(&server, &cookie, |own| own["readings"].as_array().unwrap().len() == 5).await;
    let understood: Vec<_> = own["readings"].as_array().unwrap().iter().map(|r| r["understood"] == true).collect();
    assert_eq!(understood, [false, true, false, true, false]);
    // Somebody else sees nothing of it.
    let other = server.get("/api/runs/study/comprehension", &server.teacher().await).await.json();
    assert_eq!((&other["latest"], &other["readings"]), (&Value::Null, &json!([])));
    // The dashboard has the curve; the latest point is the mean of all five.
    let curves = server.get("/api/runs/study/readings", "").await.json();
    let points = curves[0]["points"].as_array().unwrap();
    assert_eq!((curves.as_array().unwrap().len(), points.len()), (1, 5));
    assert_eq!((points[4]["rate"]["value"].as_f64(), points[4]["rate"]["n"].as_u64()), (Some(0.4), Some(5)));
    assert_eq!(points[4]["understood_after"], true);
}

#[tokio::test]
async fn news_come_by_a_stream_of_ones_own() {
    let server = Server::new().await;
    let (cookie, other) = (server.teacher().await, server.teacher().await);
    describe(&server, &cookie, "before the stream").await;
    until(&server, &cookie, |own| !own["latest"]["after"].is_null()).await;
    let request = Request::get("/api/runs/study/comprehension/events").header("host", "127.0.0.1:8080");
    let request = request.header("cookie", &cookie).body(Body::empty()).unwrap();
    let response = router(server.state.clone()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut stream = response.into_body().into_data_stream();
    let mut text = String::new();
    // The first is there at once; another person's sentence brings nothing, one's own does.
    let mut read = async |wanted: &str| {
        while !text.contains(wanted) {
            let piece = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("in time");
            text.push_str(&String::from_utf8_lossy(&piece.unwrap().unwrap()));
        }
        text.clone()
    };
    read("before the stream").await;
    describe(&server, &other, "of somebody else").await;
    until(&server, &other, |own| !own["latest"]["after"].is_null()).await;
    describe(&server, &cookie, "through the stream").await;
    let all = read("through the stream").await;
    assert!(all.contains("event: comprehension") && !all.contains("of somebody else"), "{all}");
    server.state.runs.remove(&"study".into());
    let ended = server.get("/api/runs/study/comprehension/events", &cookie).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT);
    let unknown = server.get("/api/runs/nothing/comprehension/events", &cookie).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn ones_own_requests_are_carried_out_again_and_can_be_tried() {
    let settings = WebSettings {
        loopback: false,
        access_token: Some("a token of some length".to_owned()),
        ..WebSettings::default()
    };
    let server = Server::with(settings, TeacherMode::Human).await;
    let cookie = server.teacher().await;
    let body = json!({"request": "put un in front", "start": {"words": ["do"]}});
    let early = server.post("/api/runs/study/review", &cookie, &json!({})).await;
    assert_eq!((early.status, early.json()["code"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("empty")));
    assert_eq!(server.post("/api/runs/study/try", &cookie, &body).await.status, StatusCode::UNAUTHORIZED);
    for n in 1..=4 {
        describe(&server, &cookie, &format!("sentence {n}")).await;
    }
    until(&server, &cookie, |own| own["counts"]["used"] == 4).await;
    let review = server.post("/api/runs/study/review", &cookie, &json!({})).await.json();
    assert_eq!((review["described"].as_u64(), review["requests"].as_array().unwrap().len()), (Some(4), 3));
    for request in review["requests"].as_array().unwrap() {
        assert!(request["text"].as_str().unwrap().starts_with("sentence "), "{request}");
        assert!(request["start"]["words"].as_array().unwrap().len() == 5 && request["attempt"]["html"].is_string());
    }
    // Who teaches may try, and sees the drawing without the researchers' line.
    let tried = server.post("/api/runs/study/try", &cookie, &body).await.json();
    assert_eq!((tried["text"].as_str(), tried["summary"].as_str()), (Some("do becomes undo"), Some("")));
    assert_eq!(
        server.post("/api/runs/study/try", &server.teacher().await, &body).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_run_without_readings_shows_none() {
    let server = Server::new().await;
    assert_eq!(server.get("/api/runs/study/readings", "").await.json(), json!([]));
    assert_eq!(server.get("/api/runs/nothing/readings", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_point_of_a_curve_leads_to_the_words_that_were_learned() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let given = describe(&server, &cookie, "<i>put an e</i> at the end").await;
    until(&server, &cookie, |own| !own["latest"]["after"].is_null()).await;
    let row = &server.state.store.export_page(None, iliad::ids::AnswerId::default(), 9).await.unwrap()[0];
    let update = row.used_in_update.unwrap();
    let page = server.page(&format!("/runs/study/learned?from={update}&to={update}"), "").await.text;
    assert!(page.contains(&format!("Learned in update {update}")) && page.contains("1 answer of people"), "{page}");
    assert!(
        page.contains("&lt;i&gt;put an e&lt;/i&gt; at the end") || page.contains("&#60;i&#62;put an e&#60;/i&#62;"),
        "{page}"
    );
    assert!(page.contains("It understood these words before") || page.contains("right after it did"), "{page}");
    assert!(page.contains(&format!("id=\"answer-{}\"", given["answer"])), "{page}");
    // The page shows the attempts at these words, before and after.
    assert!(page.contains("asked in these words") && page.contains("Before: ") && page.contains("After: "), "{page}");
    assert!(page.contains(&format!("id=\"episode-{}\"", row.episode)), "{page}");
    let api = server.get(&format!("/api/v1/runs/study/learned?from={update}&to={update}"), "").await.json();
    let learned = &api["answers"][0];
    assert_eq!((&learned["answer"], &api["people"]), (&given["answer"], &serde_json::json!(1)));
    assert_eq!(learned["before"]["understood"].as_bool(), row.understood_before, "{learned}");
    assert_eq!(learned["after"]["understood"].as_bool(), row.understood_after, "{learned}");
    let listed = server.get("/api/v1/runs/study/descriptions", "").await.json();
    assert_eq!(listed["items"][0]["understood_before"].as_bool(), row.understood_before, "{listed}");
    let later = server.page(&format!("/runs/study/learned?from={}&to={}", update + 1000, update + 1001), "").await;
    assert!(later.text.contains("Nothing was learned from answers here"), "{}", later.text);
    // An empty run and a range the wrong way round are no errors.
    for query in ["", "?from=9&to=1", "?from=0&to=0"] {
        assert_eq!(server.page(&format!("/runs/study/learned{query}"), "").await.status, StatusCode::OK, "{query}");
    }
    assert_eq!(server.page("/runs/study/learned?from=-1", "").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(server.page("/runs/nobody/learned", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_page_of_charts_lists_the_runs() {
    let server = Server::new().await;
    let page = server.page("/charts", "").await.text;
    assert!(page.contains("value=\"study\"") && page.contains("Validation success"), "{page}");
    assert!(server.page("/runs", "").await.text.contains("href=\"/charts\""));
}

#[tokio::test]
async fn an_answer_that_was_learned_from_is_withdrawn_from_the_data_set() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let given = describe(&server, &cookie, "my private words").await;
    until(&server, &cookie, |own| !own["latest"]["after"].is_null()).await;
    let list = server.page("/teach/study/answers", &cookie).await.text;
    let path = format!("/teach/study/answers/{}/withdraw", given["answer"]);
    assert!(list.contains(&format!("action=\"{path}\"")) && list.contains("my private words"), "{list}");
    let stranger = server.teacher().await;
    assert_eq!(server.form(&path, &stranger, "").await.status, StatusCode::NOT_FOUND);
    let reply = server.form(&path, &cookie, "").await;
    assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.text);
    let list = server.page("/teach/study/answers?withdrawn=1", &cookie).await.text;
    assert!(!list.contains("my private words") && list.contains("your words are in no data set any more"), "{list}");
    let export = server.get("/runs/study/export.jsonl", "").await.text;
    assert!(!export.contains("my private words") && export.lines().count() == 1, "{export}");
}
