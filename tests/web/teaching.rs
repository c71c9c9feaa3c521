//! Describing: leases, answers stored once, corrections, the plain form.

use crate::{Server, attribute};
use axum::http::StatusCode;
use iliad::config::run::TeacherMode;
use iliad::ids::AnswerId;
use iliad::store::{ExportRow, Store};
use iliad::web::WebSettings;
use serde_json::{Value, json};

async fn stored(store: &Store) -> Vec<ExportRow> {
    store.export_page(Some(&"study".into()), AnswerId::default(), 1000).await.unwrap()
}

fn answer(leased: &Value, text: &str) -> Value {
    json!({
        "client_key": leased["client_key"],
        "execution": leased["execution"],
        "kind": "described",
        "text": text,
        "shown_at": leased["shown_at"],
        "active_ms": 1500,
    })
}

#[tokio::test]
async fn an_answer_is_stored_as_typed_and_thanked_for() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let text = "  es verdoppelt das \u{201e}e\u{201c} \u{1f642}\n\u{4e2d}\u{6587} <b>&amp;  ";
    let reply = server.post("/api/runs/study/answers", &cookie, &answer(&leased, text)).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    assert!(reply.json()["thanks"].as_str().unwrap().starts_with("Thank you"));
    let rows = stored(&server.state.store).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].text.as_str(), rows[0].active_ms), (text, Some(1500)));
    assert!(rows[0].shown_at.is_some() && !rows[0].request_shown);
}

#[tokio::test]
async fn sending_many_times_at_once_stores_once() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let body = answer(&leased, "add an e");
    let all = futures::future::join_all((0..20).map(|_| server.post("/api/runs/study/answers", &cookie, &body))).await;
    assert!(all.iter().all(|reply| reply.status.is_success()));
    assert_eq!(all.iter().filter(|reply| reply.status == StatusCode::CREATED).count(), 1);
    let keys: Vec<Value> = all.iter().map(|reply| reply.json()["answer"].clone()).collect();
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(stored(&server.state.store).await.len(), 1);
}

#[tokio::test]
async fn a_known_key_with_other_words_is_refused_and_a_new_key_replaces() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    server.post("/api/runs/study/answers", &cookie, &answer(&leased, "first")).await;
    let mut other = answer(&leased, "second");
    let refused = server.post("/api/runs/study/answers", &cookie, &other).await;
    assert_eq!((refused.status, refused.json()["code"].clone()), (StatusCode::CONFLICT, "key-reused".into()));
    assert_eq!(refused.header("content-type"), "application/problem+json");
    other["client_key"] = "another".into();
    assert_eq!(server.post("/api/runs/study/answers", &cookie, &other).await.status, StatusCode::CREATED);
    let rows = stored(&server.state.store).await;
    assert_eq!(
        rows.iter().filter(|row| row.superseded_by.is_none()).map(|row| row.text.as_str()).collect::<Vec<_>>(),
        ["second"]
    );
}

#[tokio::test]
async fn two_teachers_never_hold_the_same_execution_and_one_page_never_gets_it_twice() {
    let server = Server::new().await;
    let (one, two) = (server.teacher().await, server.teacher().await);
    let first = server.lease(&one, &[]).await["execution"].as_i64().unwrap();
    let ahead = server.lease(&one, &[first]).await["execution"].as_i64().unwrap();
    let other = server.lease(&two, &[]).await["execution"].as_i64().unwrap();
    assert!(first != ahead && other != first && other != ahead);
    assert_eq!(server.lease(&one, &[]).await["execution"].as_i64(), Some(first), "a reload shows what was there");
}

#[tokio::test]
async fn leases_are_renewed_and_given_back() {
    let server = Server::new().await;
    let (one, two) = (server.teacher().await, server.teacher().await);
    let execution = server.lease(&one, &[]).await["execution"].as_i64().unwrap();
    let path = |what: &str| format!("/api/runs/study/executions/{execution}/{what}");
    let renewed = server.post(&path("renew"), &one, &json!({})).await;
    assert_eq!(renewed.status, StatusCode::OK);
    assert!(renewed.json()["expires_at"].as_str().unwrap().contains('T'));
    let foreign = server.post(&path("renew"), &two, &json!({})).await;
    assert_eq!((foreign.status, foreign.json()["code"].clone()), (StatusCode::CONFLICT, "lease-lost".into()));
    // As navigator.sendBeacon sends it: no body, no content type.
    let headers = [("cookie", one.as_str()), ("sec-fetch-site", "same-origin")];
    let released = server.call(axum::http::Method::POST, &path("release"), &headers, "").await;
    assert_eq!(released.status, StatusCode::NO_CONTENT);
    assert_eq!(server.lease(&two, &[]).await["execution"].as_i64(), Some(execution));
}

#[tokio::test]
async fn what_has_to_be_changed_is_said_and_nothing_is_stored() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    for (text, code) in [(" \n ".to_owned(), "empty"), ("x".repeat(5001), "too-long")] {
        let reply = server.post("/api/runs/study/answers", &cookie, &answer(&leased, &text)).await;
        assert_eq!((reply.status, reply.json()["code"].clone()), (StatusCode::UNPROCESSABLE_ENTITY, code.into()));
    }
    let cases = [
        (json!({}), StatusCode::BAD_REQUEST),
        (
            json!({"client_key": "", "execution": leased["execution"], "kind": "described", "text": "x"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"client_key": "k", "execution": leased["execution"], "kind": "shouted", "text": "x"}),
            StatusCode::BAD_REQUEST,
        ),
        (json!({"client_key": "k", "execution": 999_999, "kind": "described", "text": "x"}), StatusCode::NOT_FOUND),
    ];
    for (body, status) in cases {
        let reply = server.post("/api/runs/study/answers", &cookie, &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
    assert_eq!(stored(&server.state.store).await.len(), 0);
}

#[tokio::test]
async fn without_a_cookie_an_answer_would_be_nobodys() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let reply = server.post("/api/runs/study/answers", "", &answer(&leased, "text")).await;
    assert_eq!((reply.status, reply.json()["code"].clone()), (StatusCode::FORBIDDEN, "no-cookie".into()));
    for broken in [
        "iliad_teacher=",
        "iliad_teacher=x",
        "iliad_teacher=' OR 1=1",
        "iliad_teacher=zz345678901234567890123456789012",
    ] {
        let reply = server.post("/api/runs/study/answers", broken, &answer(&leased, "text")).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{broken}");
    }
}

#[tokio::test]
async fn an_answer_can_be_corrected_by_its_teacher_only() {
    let server = Server::new().await;
    let (cookie, stranger) = (server.teacher().await, server.teacher().await);
    let leased = server.lease(&cookie, &[]).await;
    let first =
        server.post("/api/runs/study/answers", &cookie, &answer(&leased, "frist")).await.json()["answer"].clone();
    let path = format!("/api/runs/study/answers/{first}/correct");
    let mut body = answer(&leased, "first");
    body["client_key"] = "correction".into();
    assert!(server.post(&path, &stranger, &body).await.status.is_client_error());
    let corrected = server.post(&path, &cookie, &body).await;
    assert_eq!(corrected.status, StatusCode::CREATED, "{}", corrected.text);
    assert_eq!(server.post(&path, &cookie, &body).await.status, StatusCode::OK, "a retry is the same correction");
    let own = server.get("/api/runs/study/answers", &cookie).await.json();
    assert_eq!(own.as_array().unwrap().len(), 1);
    assert_eq!(own[0]["text"], "first");
    assert_eq!(server.get("/api/runs/study/answers", &stranger).await.json(), json!([]));
    let rows = stored(&server.state.store).await;
    assert_eq!(rows.len(), 2, "the old version stays");
}

#[tokio::test]
async fn skipping_says_why_and_can_be_taken_back() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let key = leased["client_key"].as_str().unwrap();
    let body =
        format!("execution={}&client_key={key}&kind=skipped&text=&reason=Something+looks+broken", leased["execution"]);
    assert_eq!(server.form("/teach/study", &cookie, &body).await.status, StatusCode::SEE_OTHER);
    let page = server.page("/teach/study/answers", &cookie).await.text;
    assert!(
        page.contains("You skipped this")
            && page.contains("Something looks broken")
            && page.contains("Describe it after all")
    );
    assert_ne!(server.lease(&cookie, &[]).await["execution"], leased["execution"]);
}

#[tokio::test]
async fn the_plain_form_teaches_without_a_script() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let page = server.page("/teach/study", &cookie).await.text;
    let execution = attribute(&page, "name=\"execution\"", "value");
    let key = attribute(&page, "name=\"client_key\"", "value");
    let body = format!("execution={execution}&client_key={key}&kind=described&text=put+caf%C3%A9%0D%0Ain+front");
    for _ in 0..2 {
        let sent = server.form("/teach/study", &cookie, &body).await;
        assert_eq!((sent.status, sent.header("location")), (StatusCode::SEE_OTHER, "/teach/study?said=described"));
    }
    let rows = stored(&server.state.store).await;
    assert_eq!(rows.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(), ["put caf\u{e9}\nin front"]);
    let next = server.page("/teach/study?said=described", &cookie).await.text;
    assert!(next.contains("Thank you."));
    assert_ne!(attribute(&next, "name=\"execution\"", "value"), execution);
    // The browser's back button, other words, sent again from the same form: the last words count.
    let body = format!("execution={execution}&client_key={key}&kind=described&text=better");
    assert_eq!(server.form("/teach/study", &cookie, &body).await.status, StatusCode::SEE_OTHER);
    let rows = stored(&server.state.store).await;
    assert_eq!(
        rows.iter().filter(|row| row.superseded_by.is_none()).map(|row| row.text.as_str()).collect::<Vec<_>>(),
        ["better"]
    );
}

#[tokio::test]
async fn a_refused_form_comes_back_with_the_words_in_the_box() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let page = server.page("/teach/study", &cookie).await.text;
    let execution = attribute(&page, "name=\"execution\"", "value");
    let long = "word+%3Cb%3E+".repeat(700);
    let body = format!("execution={execution}&client_key=k&kind=described&text={long}");
    let again = server.form("/teach/study", &cookie, &body).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(again.text.contains("and 5,000 fit") && again.text.contains("<textarea"));
    assert!(again.text.matches("word &#60;b&#62; ").count() == 700, "the words are there, escaped");
    assert_eq!(attribute(&again.text, "name=\"execution\"", "value"), execution);
    // Without a cookie nothing can be stored, but the words still come back.
    let body = format!("execution={execution}&client_key=k&kind=described&text=kept+words");
    let again = server.form("/teach/study", "", &body).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
    assert!(again.text.contains("kept words") && again.text.contains("Send again"));
    assert_eq!(stored(&server.state.store).await.len(), 0);
}

#[tokio::test]
async fn the_back_page_corrects_and_keeps_words_that_cannot_be_stored() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let id = server.post("/api/runs/study/answers", &cookie, &answer(&leased, "frist")).await.json()["answer"].clone();
    let (path, execution) = (format!("/teach/study/answers/{id}"), &leased["execution"]);
    let empty = server.form(&path, &cookie, &format!("execution={execution}&client_key=a&text=+")).await;
    assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(empty.text.contains("Write a sentence first"));
    let done = server.form(&path, &cookie, &format!("execution={execution}&client_key=a&text=first")).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let stale = server.form(&path, &cookie, &format!("execution={execution}&client_key=b&text=from+a+stale+tab")).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    assert!(stale.text.contains("from a stale tab") && stale.text.contains("first"));
}

#[tokio::test]
async fn an_empty_queue_says_so_and_why() {
    let server = Server::with(WebSettings::default(), TeacherMode::Simulated).await;
    let cookie = server.teacher().await;
    let offer = server.lease(&cookie, &[]).await;
    assert!(offer["execution"].is_null());
    assert!(offer["message"].as_str().unwrap().contains("simulated teacher"));
    let page = server.page("/teach/study", &cookie).await.text;
    assert!(page.contains("switch the teacher to people"));
}

#[tokio::test]
async fn an_ended_run_takes_words_still_being_typed() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    server.state.runs.remove(&"study".into());
    assert_eq!(server.lease(&cookie, &[]).await["ended"], true);
    let reply = server.post("/api/runs/study/answers", &cookie, &answer(&leased, "late")).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    assert!(server.page("/teach/study", &cookie).await.text.contains("This run has ended"));
}

#[tokio::test]
async fn the_request_and_the_expression_are_never_shown_to_a_teacher() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let row = crate::support::execution(7, 1, 0);
    let page = server.page("/teach/study", &cookie).await.text;
    let offers = [server.lease(&cookie, &[]).await.to_string(), page];
    for text in offers {
        // The placeholder is a fixed example, so it is no leak.
        let text = text.replace("put an e at the end of every word", "");
        assert!(!text.contains(&row.request) && !text.contains(&row.summary), "{text}");
    }
}

#[tokio::test]
async fn a_run_may_show_the_request_and_the_dataset_says_so() {
    let server = Server::new().await;
    let mut row = crate::support::run_row("open", TeacherMode::Human);
    row.config = json!({"pool": {"show_request": true}});
    server.state.runs.add(crate::support::start_run(&server.state.store, row).await);
    let cookie = server.teacher().await;
    let page = server.page("/teach/open", &cookie).await.text;
    assert!(
        page.contains("It was asked to: <q id=\"asked-words\" lang=\"\" translate=\"no\" dir=\"auto\">")
            && !page.contains("<p id=\"asked\" class=\"asked\" hidden")
    );
    let leased = server.post("/api/runs/open/lease", &cookie, &json!({})).await.json();
    assert!(page.contains(leased["request"].as_str().unwrap()));
    server.post("/api/runs/open/answers", &cookie, &answer(&leased, "text")).await;
    let rows = server.state.store.export_page(Some(&"open".into()), AnswerId::default(), 10).await.unwrap();
    assert!(rows[0].request_shown);
    let other = server.page("/teach/study", &cookie).await.text;
    assert!(other.contains("<p id=\"asked\" class=\"asked\" hidden"));
}
