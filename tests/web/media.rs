//! Demonstrations and ratings: stored, refused with sentences, given by plain forms, taken back.

use crate::{Server, attribute, support};
use axum::http::StatusCode;
use iliad::config::run::TeacherMode;
use iliad::ids::AnswerId;
use iliad::protocol::Medium;
use iliad::registry::Registry;
use iliad::store::{AnswerKind, ExportRow, Store};
use iliad::web::{WebSettings, router};
use serde_json::{Value, json};

/// A server whose run is one of word edits that people teach in this way.
async fn server(algorithm: &str, rating: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
    let mut state = support::app_state(store.clone(), WebSettings::default());
    state.families = Registry::builtin().families();
    let mut row = support::run_row("study", TeacherMode::Human);
    row.family = "regex".into();
    row.config = json!({ "algorithm": {"name": algorithm}, "people": {"rating": rating} });
    let run = support::start_run(&store, row).await;
    state.runs.add(run.clone());
    Server { router: router(state.clone()), state, run, _folder: folder, _database: None }
}

async fn stored(server: &Server) -> Vec<ExportRow> {
    server.state.store.export_page(Some(&"study".into()), AnswerId::default(), 1000).await.unwrap()
}

fn body(leased: &Value, with: &Value) -> Value {
    let mut body = json!({
        "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described",
        "shown_at": leased["shown_at"], "active_ms": 900,
    });
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    body
}

/// The words of a leased demonstration, as its fields have them.
fn words(leased: &Value) -> Vec<String> {
    let html = leased["html"].as_str().unwrap();
    html.split("data-word=\"").skip(1).map(|rest| rest[..rest.find('"').unwrap()].to_owned()).collect()
}

const ANSWERS: &str = "/api/runs/study/answers";

#[tokio::test]
async fn a_demonstration_is_checked_stored_and_taken_back() {
    let server = server("dagger", "binary").await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    assert!(leased["request"].is_string(), "who demonstrates sees the request");
    let words = words(&leased);
    assert_eq!(words.len(), 5, "{leased}");
    // A paused run learns from nothing, so that everything can be taken back.
    server.post("/api/runs/study/pause", "", &json!({})).await;
    server.run.status.clone().wait_for(|status| status.state == iliad::run::RunState::Paused).await.unwrap();
    let outputs: Vec<String> = words.iter().map(|word| format!("{word}q")).collect();

    let refused = |given: Value| {
        let (server, cookie, sent) = (&server, &cookie, body(&leased, &given));
        async move {
            let reply = server.post(ANSWERS, cookie, &sent).await;
            assert!(reply.status.is_client_error(), "{given}: {}", reply.text);
            reply.json()["detail"].as_str().unwrap().to_owned()
        }
    };
    assert!(refused(json!({})).await.contains("first"));
    assert!(refused(json!({"text": "words are no demonstration"})).await.contains("first"));
    assert!(refused(json!({"demonstration": {"outputs": words}})).await.contains("changes none"));
    let slips: Vec<String> = (0..5).map(|i| format!("{i}{}", words[i])).collect();
    assert!(refused(json!({"demonstration": {"outputs": slips}})).await.starts_with("No edit I know"));
    assert!(refused(json!({"demonstration": {"outputs": ["x"]}})).await.contains("5 words, and 1 outputs"));
    assert!(refused(json!({"demonstration": {"outputs": vec!["x"; 2000]}})).await.contains("2000 outputs"));
    assert!(refused(json!({"demonstration": {"expression": "((((("}})).await.contains("no expression"));
    for hostile in
        [json!(7), json!([[[]]]), json!({"outputs": {}}), json!({"path": ["<script>"]}), json!("x".repeat(9000))]
    {
        assert!(refused(json!({ "demonstration": hostile })).await.ends_with('.'));
    }
    assert!(stored(&server).await.is_empty());

    let reply = server.post(ANSWERS, &cookie, &body(&leased, &json!({"demonstration": {"outputs": outputs}}))).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    assert!(reply.json()["thanks"].as_str().unwrap().contains("first demonstration"));
    let rows = stored(&server).await;
    let shown = rows[0].demonstration.as_ref().unwrap();
    assert_eq!(
        (rows[0].medium, rows[0].kind, rows[0].request_shown),
        (Medium::Demonstration, AnswerKind::Described, true)
    );
    assert_eq!((&shown["typed"], &shown["outputs"]), (&json!("outputs"), &json!(outputs)));
    assert!(rows[0].text.contains(&format!("{} becomes {}", words[0], outputs[0])));
    let again = server.post(ANSWERS, &cookie, &body(&leased, &json!({"demonstration": {"outputs": outputs}}))).await;
    assert_eq!(again.status, StatusCode::OK, "the same demonstration under the same key stores once");

    let undo = format!("{ANSWERS}/{}/undo", reply.json()["answer"]);
    let back = server.post(&undo, &cookie, &json!({})).await.json();
    assert_eq!((&back["undone"], &back["response"]["demonstration"]["outputs"]), (&json!(true), &json!(outputs)));
    assert!(back["html"].as_str().unwrap().contains(&format!("value=\"{}\"", outputs[0])));
    let fields: Value = (0..5)
        .map(|i| (format!("output-{i}"), Value::from(format!("z{}", words[i]))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let other = server.post(ANSWERS, &cookie, &body(&back, &json!({ "show": fields }))).await;
    assert_eq!(other.status, StatusCode::CREATED, "{}", other.text);
    assert_eq!(stored(&server).await.iter().filter(|row| row.superseded_by.is_none()).count(), 1);
}

#[tokio::test]
async fn who_cannot_show_it_keeps_what_they_had() {
    let server = server("dagger", "binary").await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let begun = json!({"kind": "cannot_describe", "show": {"output-0": "half"}});
    let reply = server.post(ANSWERS, &cookie, &body(&leased, &begun)).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    assert_eq!(stored(&server).await[0].demonstration, Some(json!({"outputs": ["half"]})));
    let leased = server.lease(&cookie, &[]).await;
    let skip = json!({"kind": "skipped", "text": "unclear"});
    assert_eq!(server.post(ANSWERS, &cookie, &body(&leased, &skip)).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn demonstrations_and_their_corrections_need_no_script() {
    let server = server("dagger", "binary").await;
    let cookie = server.teacher().await;
    let page = server.page("/teach/study", &cookie).await.text;
    assert!(page.contains("The agent is asked to") && !page.contains("The agent did this"));
    let hidden = |name: &str| attribute(&page, &format!("name=\"{name}\""), "value");
    let words: Vec<String> = (0..5).map(|i| attribute(&page, &format!("name=\"show-output-{i}\""), "value")).collect();
    let form = |change: &dyn Fn(&str) -> String| {
        let outputs: String =
            words.iter().enumerate().map(|(i, w)| format!("&show-output-{i}={}", change(w))).collect();
        format!(
            "execution={}&client_key={}&shown_at=&kind=described&text=&show-expression={outputs}",
            hidden("execution"),
            hidden("client_key")
        )
    };
    let slip = server.form("/teach/study", &cookie, &form(&|word| format!("{}{word}", word.len()))).await;
    assert_eq!(slip.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", slip.text);
    assert!(
        slip.text.contains("No edit I know")
            && slip.text.contains(&format!("value=\"{}{}\"", words[0].len(), words[0]))
    );
    let sent = server.form("/teach/study", &cookie, &form(&|word| format!("q{word}"))).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.text);
    let list = server.page("/teach/study/answers", &cookie).await.text;
    assert!(list.contains("You showed") && list.contains(&format!("value=\"q{}\"", words[0])), "{list}");
    let answer = stored(&server).await[0].answer;
    let key = attribute(&list, "name=\"client_key\"", "value");
    let correction = form(&|word| format!("w{word}")).replace(&hidden("client_key"), &key);
    let corrected = server.form(&format!("/teach/study/answers/{answer}"), &cookie, &correction).await;
    assert_eq!(corrected.status, StatusCode::SEE_OTHER, "{}", corrected.text);
    assert_eq!(stored(&server).await[1].supersedes, Some(answer));
}

#[tokio::test]
async fn ratings_lie_on_their_scale_and_need_no_script() {
    for (algorithm, scale, good, bad) in
        [("reinforce-binary", "binary", 1.0, 0.5), ("reinforce-continuous", "stars", 0.25, 0.3)]
    {
        let server = server(algorithm, scale).await;
        let cookie = server.teacher().await;
        let page = server.page("/teach/study", &cookie).await.text;
        assert!(page.contains("It was asked to") && page.contains("Did the agent do what was asked?"));
        assert_eq!(page.matches("name=\"rating\"").count(), if scale == "stars" { 5 } else { 2 });
        let leased = server.lease(&cookie, &[]).await;
        for wrong in [json!({}), json!({ "rating": bad }), json!({ "rating": -1 }), json!({ "rating": 1e300 })] {
            let reply = server.post(ANSWERS, &cookie, &body(&leased, &wrong)).await;
            assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}: {}", reply.text);
            assert!(reply.json()["detail"].as_str().unwrap().starts_with("Choose"));
        }
        let reply = server.post(ANSWERS, &cookie, &body(&leased, &json!({ "rating": good }))).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        let row = &stored(&server).await[0];
        assert_eq!((row.medium, row.rating, row.demonstration.is_none()), (Medium::Rating, Some(good), true));
        assert_eq!(row.text, if scale == "stars" { "2 of 5 stars" } else { "yes" });
        let page = server.page("/teach/study", &cookie).await.text;
        let hidden = |name: &str| attribute(&page, &format!("name=\"{name}\""), "value");
        let form =
            format!("execution={}&client_key={}&shown_at=&text=&rating=0", hidden("execution"), hidden("client_key"));
        assert_eq!(server.form("/teach/study", &cookie, &form).await.status, StatusCode::SEE_OTHER);
        assert_eq!(stored(&server).await[1].rating, Some(0.0));
        let list = server.page("/teach/study/answers", &cookie).await.text;
        assert!(list.contains("You rated"));
    }
}

#[tokio::test]
async fn a_run_that_is_described_takes_no_rating() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let reply =
        server.post(ANSWERS, &cookie, &body(&leased, &json!({"rating": 1, "demonstration": {"word": "x"}}))).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text);
    let reply = server.post(ANSWERS, &cookie, &body(&leased, &json!({"text": "add an e", "rating": 1}))).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    let rows = stored(&server).await;
    assert_eq!((rows[0].medium, rows[0].rating), (Medium::Description, None));
}
