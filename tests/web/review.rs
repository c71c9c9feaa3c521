//! Reviewing a study's answers, the agreement of its teachers, and answers that teachers withdraw.

use crate::Server;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::ids::{AnswerId, StudyId};
use iliad::store::{Review, StudyAnswer, StudyArm};
use iliad::study::{ReviewState, StudySettings, StudyState};
use iliad::web::WebSettings;
use serde_json::{Value, json};

/// An open study in which two teachers are asked about each execution.
async fn server() -> Server {
    server_with(WebSettings::default()).await
}

async fn server_with(settings: WebSettings) -> Server {
    let server = Server::with(settings, TeacherMode::Human).await;
    let settings = StudySettings { title: "Words of people".into(), goal: 0, overlap: 2, ..StudySettings::default() };
    let arms = [StudyArm { run: "study".into(), name: "descriptions".into() }];
    let id = StudyId::from("words");
    server.state.store.create_study(&id, &settings, &arms, "secret", "a test").await.unwrap();
    server.state.store.set_study_state(&id, StudyState::Open, "a test").await.unwrap();
    server
}

async fn teacher(server: &Server) -> String {
    let cookie = server.page("/study/words", "").await.cookie("iliad_teacher").unwrap();
    server.form("/study/words/join", &cookie, "").await;
    server.form("/study/words/begin", &cookie, "").await;
    cookie
}

async fn describe(server: &Server, cookie: &str, text: &str) -> i64 {
    // The made-up run makes more executions a few times a second.
    let mut leased = server.lease(cookie, &[]).await;
    while !leased["execution"].is_i64() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        leased = server.lease(cookie, &[]).await;
    }
    let body = json!({
        "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": text,
        "active_ms": 6000,
    });
    let reply = server.post("/api/runs/study/answers", cookie, &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    reply.json()["answer"].as_i64().unwrap()
}

async fn answers(server: &Server) -> Vec<StudyAnswer> {
    server.state.store.study_answers(&"words".into()).await.unwrap()
}

async fn decision(server: &Server, answer: i64) -> Option<Review> {
    answers(server).await.into_iter().find(|one| one.answer == AnswerId(answer)).unwrap().review
}

async fn page(server: &Server, query: &str) -> String {
    let page = server.page(&format!("/studies/words/review{query}"), "").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    page.text
}

/// A form that a script sends.
async fn script(server: &Server, path: &str, body: &str) -> (StatusCode, Value) {
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
        ("sec-fetch-site", "same-origin"),
    ];
    let reply = server.call(Method::POST, path, &headers, Body::from(body.to_owned())).await;
    (reply.status, reply.json())
}

#[tokio::test]
async fn a_reviewer_accepts_rejects_and_decides_between_two_teachers() {
    let server = server().await;
    let (ada, eve) = (teacher(&server).await, teacher(&server).await);
    let a = describe(&server, &ada, "put an e at the end <b>of</b> it").await;
    let e = describe(&server, &eve, "quite another thing").await;
    let execution = answers(&server).await[0].execution;
    assert_eq!(answers(&server).await[1].execution, execution, "both were asked about it");
    let first = page(&server, "").await;
    assert!(first.contains("2 to review") && first.contains("P001") && first.contains("P002"), "{first}");
    assert!(
        first.contains("put an e at the end &#60;b&#62;of") && first.contains("Others said of this execution"),
        "{first}"
    );
    // Without a script, and back to the list that the form stood on.
    let form = "state=accepted&back=show%3Dall%26one%3Dyes";
    let reply = server.form(&format!("/studies/words/review/{a}"), "", form).await;
    assert_eq!(reply.header("location"), format!("/studies/words/review?show=all&one=yes#answer-{a}"));
    assert_eq!(decision(&server, a).await.unwrap().state, ReviewState::Accepted);
    // A reason is asked for.
    let (status, problem) = script(&server, &format!("/studies/words/review/{e}"), "state=rejected&reason=+").await;
    assert!(status.is_client_error() && problem["detail"].as_str().unwrap().contains("why you reject"), "{problem}");
    let (_, decided) =
        script(&server, &format!("/studies/words/review/{e}"), "state=rejected&reason=says+nothing").await;
    assert_eq!(decided, json!({"state": "rejected", "reason": "says nothing", "reviewer": "this machine"}));
    assert!(page(&server, "").await.contains("Everything has been reviewed"));
    assert!(page(&server, "?show=rejected").await.contains("says nothing"));
    assert!(!page(&server, "?show=rejected&teacher=1").await.contains("review-card\""));
    let (_, decided) = script(&server, &format!("/studies/words/review/{e}"), "state=").await;
    assert_eq!(decided["state"], Value::Null);
    assert_eq!(decision(&server, e).await, None);
    // They disagree until somebody decides.
    assert!(page(&server, "?show=disagreeing").await.contains("quite another thing"));
    let path = format!("/studies/words/adjudicate/{execution}");
    let (_, decided) = script(&server, &path, &format!("answer={a}")).await;
    assert_eq!((&decided["answer"], &decided["text"]), (&json!(a), &json!("put an e at the end <b>of</b> it")));
    assert!(page(&server, "?show=disagreeing").await.contains("No answer fits"));
    let (_, decided) = script(&server, &path, "text=Add+an+e.").await;
    assert_eq!((&decided["answer"], &decided["text"]), (&Value::Null, &json!("Add an e.")));
    let export = server.get("/runs/study/export.jsonl", "").await.text;
    let rows: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["review_state"], &rows[0]["adjudicated"]), (&json!("accepted"), &json!("Add an e.")));
    assert_eq!(
        (&rows[1]["description"], &rows[1]["adjudicated"]),
        (&json!("quite another thing"), &json!("Add an e."))
    );
    let trail = server.page("/studies/words", "").await.text;
    assert!(trail.contains("answer reviewed") && trail.contains("execution adjudicated"), "{trail}");
    // An answer of nowhere is none.
    assert_eq!(script(&server, "/studies/words/review/999", "state=accepted").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn agreement_is_worked_out_by_an_agent() {
    let server = server().await;
    let (ada, eve) = (teacher(&server).await, teacher(&server).await);
    let none = server.form("/studies/words/agreement", "", "agent=study").await;
    assert_eq!(none.status, StatusCode::CONFLICT);
    for (a, e) in [("add an e", "add an e at the end"), ("add an e", "wrong")] {
        describe(&server, &ada, a).await;
        describe(&server, &eve, e).await;
    }
    let before = page(&server, "").await;
    assert!(before.contains("2 executions described by several") && before.contains("not worked out yet"), "{before}");
    let asked = server.form("/studies/words/agreement", "", "agent=study&back=show%3Dall").await;
    assert_eq!(asked.header("location"), "/studies/words/review?show=all");
    let after = page(&server, "").await;
    assert!(after.contains("50%") && after.contains("75%") && after.contains("executed differently"), "{after}");
    assert!(after.contains("Asked in these words, the agent does something else."), "{after}");
    // The one that the agent takes for something else disagrees, the other does not.
    let disagreeing = page(&server, "?show=disagreeing").await;
    assert_eq!(disagreeing.matches("review-card\"").count(), 2, "{disagreeing}");
    let participant = server.page("/studies/words/participants/2", "").await.text;
    assert!(participant.contains("Agreement with others") && participant.contains("50%"), "{participant}");
    assert!(participant.contains("<polyline") || participant.contains("Not enough descriptions yet"), "{participant}");
}

#[tokio::test]
async fn flags_say_why_and_filter_the_list() {
    let server = server().await;
    let ada = teacher(&server).await;
    describe(&server, &ada, "x").await;
    describe(&server, &ada, "put an e at the end of every word").await;
    let flagged = page(&server, "?show=flagged").await;
    assert!(flagged.contains("The text has 1 letter or digit.") && !flagged.contains("put an e at"), "{flagged}");
    assert!(page(&server, "?flag=too_fast").await.contains("No answer fits"));
    assert_eq!(page(&server, "?flag=very_short&one=yes").await.matches("review-card\"").count(), 1);
    let one = page(&server, "?one=yes&page=7").await;
    assert!(one.contains("2 of 2") && one.contains("put an e at"), "behind the end is the last: {one}");
    let overview = server.page("/studies/words", "").await.text;
    assert!(overview.contains("show=flagged&amp;teacher=1\">1</a>"), "{overview}");
    let export = server.get("/runs/study/export.csv", "").await.text;
    assert!(export.contains("\"[\"\"very_short\"\"]\""), "{export}");
}

#[tokio::test]
async fn teachers_see_all_their_answers_and_withdraw_each() {
    let settings = WebSettings { rate_limits: false, ..WebSettings::default() };
    let server = server_with(settings).await;
    let (ada, eve) = (teacher(&server).await, teacher(&server).await);
    let mut keys = Vec::new();
    for n in 0..23 {
        keys.push(describe(&server, &ada, &format!("my words number {n}.")).await);
    }
    let own = server.page("/study/words/answers", &ada).await.text;
    assert!(own.contains("You are P001 here, and gave 23 answers") && own.contains("Page 1 of 2"), "{own}");
    assert!(own.contains("number 22.") && !own.contains("number 2."), "{own}");
    assert!(server.page("/study/words/answers?page=1", &ada).await.text.contains("number 2."));
    // Nobody else can withdraw it.
    let path = |key: i64| format!("/study/words/answers/{key}/withdraw");
    assert_eq!(server.form(&path(keys[2]), &eve, "").await.status, StatusCode::NOT_FOUND);
    let gone = server.form(&format!("{}?page=1", path(keys[2])), &ada, "").await;
    assert!(
        gone.header("location").starts_with("/study/words/answers?page=1&withdrawn="),
        "{}",
        gone.header("location")
    );
    let own = server.page(gone.header("location"), &ada).await.text;
    assert!(own.contains("Withdrawn: it is left out of the data set.") && !own.contains("number 2."), "{own}");
    for query in ["", "?standing=1"] {
        for format in ["jsonl", "csv"] {
            let export = server.get(&format!("/runs/study/export.{format}{query}"), "").await;
            assert!(!export.text.contains("number 2.") && export.text.contains("number 3."), "{}", export.text);
            let expected = if query.is_empty() { "23" } else { "22" };
            assert_eq!(export.header("x-total-count"), expected);
        }
    }
    let reviewed = page(&server, "?show=all&one=yes&page=2").await;
    assert!(reviewed.contains("Withdrawn by the teacher") && !reviewed.contains("number 2."), "{reviewed}");
    // Whoever takes no part sees nothing.
    assert_eq!(server.page("/study/words/answers", "").await.status, StatusCode::NOT_FOUND);
}
