//! Texts that were made to break something, through the page, through the addresses of programs, and in files of episodes: each is
//! stored letter for letter, or refused with a sentence that leaves the words where they are. `tests/command_line/poison.rs` has
//! the same for files of descriptions, `tests/trainer/poison.rs` learns from all of them.

use crate::scripts::{exported, roomy, send_by_page};
use crate::texts::{Fate, escaped, poisons};
use crate::v1::server_with;
use crate::{Reply, Server};
use axum::http::{Method, StatusCode};
use iliad::ids::AnswerId;
use iliad::web::WebSettings;
use serde_json::json;

/// Pages on which descriptions stand, and what must not be in any of them: a text that became a part of the page.
async fn nothing_became_a_part(server: &Server, cookie: &str) {
    for path in ["/teach/study", "/teach/study/answers", "/runs/study", "/runs/study/learned", "/runs", "/export"] {
        let page = server.page(path, cookie).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        for part in ["<script>document", "<img src=x", "<!-- --!>", "root:x:"] {
            assert!(!page.text.contains(part), "{path} holds {part}");
        }
    }
}

fn refused(reply: &Reply, status: StatusCode, name: &str) {
    assert_eq!(reply.status, status, "{name}");
    assert!(reply.json()["detail"].as_str().unwrap().ends_with('.'), "{name}: {}", reply.text);
}

#[tokio::test]
async fn poison_comes_through_the_page_as_text_or_not_at_all() {
    let poisons = poisons();
    let server = roomy(poisons.len() + 8).await;
    let cookie = server.teacher().await;
    let mut stored = Vec::new();
    for poison in &poisons {
        let reply = send_by_page(&server, &cookie, &poison.text).await;
        if poison.fate == Fate::Stored {
            assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}: {}", poison.name, reply.text);
            assert!(reply.header("set-cookie").is_empty() && reply.header("location") == "/teach/study?said=described");
            // Templates and the like stand there as they were typed.
            let own = server.page("/teach/study/answers", &cookie).await.text;
            assert!(own.contains(&format!("dir=\"auto\">{}</q>", escaped(&poison.text))), "{}", poison.name);
            stored.push(poison.text.clone());
            continue;
        }
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", poison.name);
        let words = format!(">\n{}</textarea>", escaped(&poison.text));
        assert!(reply.text.contains(&words), "{}: the words are in the box", poison.name);
        let sentence = if poison.fate == Fate::Blank { "Write a sentence first" } else { "5,000 fit" };
        assert!(reply.text.contains(sentence), "{}", poison.name);
    }
    for texts in exported(&server).await {
        assert_eq!(texts, stored);
    }
    nothing_became_a_part(&server, &cookie).await;
    // A correction is as safe as what it corrects, and what does not fit comes back.
    let own = server.get("/api/v1/runs/study/answers", &cookie).await.json()["items"][0].clone();
    let long = "replace n with c ".repeat(6_000);
    let (path, execution) = (format!("/teach/study/answers/{}", own["answer"]), &own["execution"]);
    let again = server.form(&path, &cookie, &format!("execution={execution}&client_key=long&text={long}")).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(again.text.contains(&format!(">\n{long}</textarea>")));
}

#[tokio::test]
async fn poison_comes_through_the_addresses_of_programs_as_text_or_not_at_all() {
    let poisons = poisons();
    let server = roomy(poisons.len() + 8).await;
    let cookie = server.teacher().await;
    let mut stored = Vec::new();
    for poison in &poisons {
        let leased = server.lease(&cookie, &[]).await;
        let answer = json!({"client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": poison.text});
        let reply = server.post("/api/v1/runs/study/answers", &cookie, &answer).await;
        match poison.fate {
            Fate::Stored => {
                assert_eq!(reply.status, StatusCode::CREATED, "{}: {}", poison.name, reply.text);
                stored.push(poison.text.clone());
            }
            Fate::TooLarge => refused(&reply, StatusCode::PAYLOAD_TOO_LARGE, poison.name),
            Fate::Blank | Fate::TooLong => refused(&reply, StatusCode::UNPROCESSABLE_ENTITY, poison.name),
        }
    }
    let rows = server.state.store.export_page(Some(&"study".into()), AnswerId::default(), 1000).await.unwrap();
    assert_eq!(rows.into_iter().map(|row| row.text).collect::<Vec<_>>(), stored);
    let told = server.get("/api/v1/runs/study/descriptions?limit=500", "").await.json();
    let told: Vec<&str> = told["items"].as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(told, stored);
    nothing_became_a_part(&server, &cookie).await;
}

/// The text of each row is a request, a text and a name of a row; those that fit come in and stand on the page of those who describe
/// them.
#[tokio::test]
async fn poison_comes_in_files_of_episodes_as_text_or_not_at_all() {
    let server = server_with(WebSettings { rate_limits: false, ..WebSettings::default() }).await;
    let poisons = poisons();
    let row = |n: usize, text: &str| json!({"id": n, "request": text, "text": text}).to_string();
    let (good, bad): (Vec<_>, Vec<_>) = poisons.iter().enumerate().partition(|(_, poison)| poison.fate == Fate::Stored);
    let file = |rows: &[(usize, &crate::texts::Poison)]| {
        rows.iter().map(|(n, poison)| row(*n, &poison.text) + "\n").collect::<String>().into_bytes()
    };
    let send = async |bytes: Vec<u8>| {
        let mut body =
            b"--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"<b>.jsonl\"\r\n\r\n".to_vec();
        body.extend(bytes);
        body.extend(b"\r\n--edge--\r\n");
        let headers = [
            ("content-type", "multipart/form-data; boundary=edge"),
            ("accept", "text/html"),
            ("sec-fetch-site", "same-origin"),
        ];
        server.call(Method::POST, "/import/episodes", &headers, body).await
    };
    let told = send(file(&bad)).await;
    assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        told.text.contains(&format!("{} bad rows", bad.len())) && !told.text.contains("<b>.jsonl"),
        "{}",
        told.text
    );
    assert_eq!(server.state.store.run_count().await.unwrap(), 1, "nothing came in");
    let came = send(file(&good)).await;
    assert_eq!(
        (came.status, came.header("location")),
        (StatusCode::SEE_OTHER, &*format!("/import?run=elsewhere&came={}&known=0&left=0", good.len()))
    );
    let cookie = server.page("/teach/elsewhere", "").await.cookie("iliad_teacher").unwrap();
    server.form("/teach/elsewhere/guide", &cookie, "").await;
    let mut requests = Vec::new();
    for n in 0..good.len() {
        let page = server.page("/teach/elsewhere", &cookie).await;
        assert_eq!(page.status, StatusCode::OK);
        for part in ["<script>document", "<img src=x", "<!-- --!>"] {
            assert!(!page.text.contains(part), "{part}: {}", page.text);
        }
        let leased = server.post("/api/v1/runs/elsewhere/lease", &cookie, &json!({})).await.json();
        let answer = json!({"client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": format!("so {n}")});
        let stored = server.post("/api/v1/runs/elsewhere/answers", &cookie, &answer).await;
        assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text);
        requests.push(leased["execution"].as_i64().unwrap());
    }
    let told = server.get("/api/v1/runs/elsewhere/descriptions?limit=500", "").await.json();
    let mut told: Vec<&str> =
        told["items"].as_array().unwrap().iter().map(|item| item["request"].as_str().unwrap()).collect();
    let mut sent: Vec<&str> = good.iter().map(|(_, poison)| poison.text.as_str()).collect();
    told.sort_unstable();
    sent.sort_unstable();
    assert_eq!(told, sent, "requests come out as they came in");
}
