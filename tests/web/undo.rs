//! "Nothing changed" is asked about, and answers are taken back: by programs and by the plain form.

use crate::{Server, attribute};
use axum::http::StatusCode;
use iliad::run::Command;
use serde_json::{Value, json};

fn answer(leased: &Value, kind: &str, text: &str) -> Value {
    json!({"client_key": leased["client_key"], "execution": leased["execution"], "kind": kind, "text": text})
}

/// A run that learns from nothing for now.
async fn paused() -> Server {
    let server = Server::new().await;
    server.run.commands.send(Command::Pause).unwrap();
    let mut status = server.run.status.clone();
    status.wait_for(|status| status.state == iliad::run::RunState::Paused).await.unwrap();
    server
}

#[tokio::test]
async fn nothing_changed_needs_to_be_confirmed_where_the_family_knows_better() {
    let server = paused().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let mut body = answer(&leased, "nothing_changed", "");
    let asked = server.post("/api/runs/study/answers", &cookie, &body).await;
    assert_eq!((asked.status, asked.json()["code"].clone()), (StatusCode::CONFLICT, "unconfirmed".into()));
    assert!(asked.json()["detail"].as_str().unwrap().contains("Nothing has been stored yet"), "{}", asked.text);
    assert_eq!(server.state.store.export_count(Some(&"study".into())).await.unwrap(), 0);
    body["confirmed"] = true.into();
    assert_eq!(server.post("/api/runs/study/answers", &cookie, &body).await.status, StatusCode::CREATED);
    // A correction to it is asked about in the same way.
    let leased = server.lease(&cookie, &[]).await;
    let sent = server.post("/api/runs/study/answers", &cookie, &answer(&leased, "described", "add an e")).await;
    let mut body = answer(&leased, "nothing_changed", "");
    body["client_key"] = "another".into();
    let path = format!("/api/runs/study/answers/{}/correct", sent.json()["answer"]);
    assert_eq!(server.post(&path, &cookie, &body).await.json()["code"], "unconfirmed");
    body["confirmed"] = true.into();
    assert_eq!(server.post(&path, &cookie, &body).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn an_answer_is_taken_back_with_its_execution_and_words() {
    let server = paused().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let sent = server.post("/api/runs/study/answers", &cookie, &answer(&leased, "described", " hasty ")).await.json();
    let path = format!("/api/runs/study/answers/{}/undo", sent["answer"]);
    let stranger = server.teacher().await;
    assert_eq!(server.post(&path, &stranger, &json!({})).await.status, StatusCode::NOT_FOUND);
    let back = server.post(&path, &cookie, &json!({})).await;
    assert_eq!(back.status, StatusCode::OK, "{}", back.text);
    let back = back.json();
    assert_eq!((&back["undone"], &back["said"], &back["kind"]), (&true.into(), &" hasty ".into(), &"described".into()));
    assert_eq!((&back["execution"], &back["html"]), (&leased["execution"], &leased["html"]));
    assert_ne!(back["client_key"], leased["client_key"], "what is sent next is another answer");
    let counts = server.lease(&cookie, &[]).await["counts"].clone();
    assert_eq!(counts, json!({"described": 0, "used": 0}));
    let again = server.post("/api/runs/study/answers", &cookie, &answer(&back, "described", " hasty ")).await;
    assert_eq!((again.status, &again.json()["again"]), (StatusCode::CREATED, &false.into()));
}

#[tokio::test]
async fn what_was_learnt_from_stays_and_it_is_said() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let sent = server.post("/api/runs/study/answers", &cookie, &answer(&leased, "described", "add an e")).await.json();
    let mut status = server.run.status.clone();
    status.wait_for(|status| status.descriptions_human > 0).await.unwrap();
    let back = server.post(&format!("/api/runs/study/answers/{}/undo", sent["answer"]), &cookie, &json!({})).await;
    let back = back.json();
    assert_eq!((&back["undone"], &back["said"]), (&false.into(), &"add an e".into()));
    assert!(back["used_in_update"].as_u64().is_some());
    assert!(back["notice"].as_str().unwrap().contains("has learned from this one already"), "{back}");
    let page = server.page("/teach/study/answers", &cookie).await.text;
    assert!(page.contains("the agent has learned from it (update") && !page.contains("take it back"), "{page}");
    let plain = server.form(&format!("/teach/study/answers/{}/undo", sent["answer"]), &cookie, "").await;
    let to = format!("/teach/study/answers?learnt={0}#answer-{0}", sent["answer"]);
    assert_eq!((plain.status, plain.header("location")), (StatusCode::SEE_OTHER, to.as_str()));
    assert!(server.page(&to[..to.find('#').unwrap()], &cookie).await.text.contains("cannot be taken back"));
}

#[tokio::test]
async fn the_plain_form_asks_and_takes_back() {
    let server = paused().await;
    let cookie = server.teacher().await;
    let page = server.page("/teach/study", &cookie).await.text;
    let execution = attribute(&page, "name=\"execution\"", "value");
    let key = attribute(&page, "name=\"client_key\"", "value");
    let body = format!("execution={execution}&client_key={key}&kind=nothing_changed&text=kept+words");
    let asked = server.form("/teach/study", &cookie, &body).await;
    assert_eq!(asked.status, StatusCode::CONFLICT);
    assert!(asked.text.contains("kept words") && asked.text.contains("I am sure</button>"), "{}", asked.text);
    assert_eq!(attribute(&asked.text, "name=\"confirmed\"", "value"), "yes");
    assert_eq!(
        server.form("/teach/study", &cookie, &format!("{body}&confirmed=yes")).await.status,
        StatusCode::SEE_OTHER
    );
    let next = server.page("/teach/study?said=nothing_changed", &cookie).await.text;
    let undo = attribute(&next, "id=\"undo-form\"", "action");
    assert!(next.contains("Noted: nothing changed."), "{next}");
    let back = server.form(&undo, &cookie, "").await;
    assert_eq!(back.status, StatusCode::SEE_OTHER, "{}", back.text);
    let again = server.page(back.header("location"), &cookie).await.text;
    assert_eq!(attribute(&again, "name=\"execution\"", "value"), execution);
    assert!(again.contains("Taken back."), "{again}");
}

#[tokio::test]
async fn no_translation_changes_the_words_of_agent_and_people() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let text = "החלף כל n ב c (סוף)";
    server.post("/api/runs/study/answers", &cookie, &answer(&leased, "described", text)).await;
    let page = server.page("/teach/study/answers", &cookie).await.text;
    assert!(page.contains(&format!("<q lang=\"\" translate=\"no\" dir=\"auto\">{text}</q>")), "{page}");
    assert!(page.contains("<div class=\"execution\" translate=\"no\">"));
    let page = server.page("/teach/study", &cookie).await.text;
    assert_eq!(attribute(&page, "id=\"text\"", "dir"), "auto");
    assert_eq!(attribute(&page, "id=\"execution\"", "translate"), "no");
    let guide = server.page("/teach/study/guide", &cookie).await.text;
    assert_eq!(guide.matches("<q translate=\"no\" dir=\"auto\">").count(), 5);
}
