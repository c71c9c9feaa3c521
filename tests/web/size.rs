//! A run that ended long ago, with very many answers, costs its visitors and everybody else no more than a small one.

use crate::support::{app_state, run_row};
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::ids::TeacherId;
use iliad::store::Store;
use iliad::web::{WebSettings, router};
use tower::ServiceExt;

#[path = "../support/filled.rs"]
mod filled;

/// The cookie of the teacher who gave a third of all answers.
const BUSY: &str = "0123456789abcdef0123456789abcdef";

/// The requests of the busy teacher.
const REQUESTS: [(Method, &str, &str); 14] = [
    (Method::GET, "/", ""),
    (Method::GET, "/teach/old", ""),
    (Method::GET, "/teach/old/answers", ""),
    (Method::POST, "/api/runs/old/lease", "{}"),
    (Method::GET, "/api/runs/old/answers", ""),
    (Method::GET, "/runs", ""),
    (Method::GET, "/runs/old", ""),
    (Method::GET, "/api/runs", ""),
    (Method::GET, "/api/runs/old", ""),
    (Method::GET, "/api/runs/old/points?limit=100", ""),
    (Method::GET, "/api/runs/old/episodes", ""),
    (Method::GET, "/api/runs/old/checkpoints", ""),
    (Method::HEAD, "/runs/old/export.jsonl", ""),
    (Method::HEAD, "/runs/old/export.csv", ""),
];

/// The steps that each request takes, with `n` rows of every kind; an anonymous lease, which makes a teacher, is last.
async fn costs(n: i64) -> Vec<(String, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
    store.create_run(&run_row("old", TeacherMode::Human)).await.unwrap();
    let mut teachers = [TeacherId::default(); 3];
    for (id, token) in teachers.iter_mut().zip([BUSY, "b", "c"]) {
        *id = store.teacher(token).await.unwrap().id;
    }
    store.set_seen_guide(teachers[0]).await.unwrap();
    filled::fill(&store.file().unwrap(), "old", teachers, n).await;
    let router = router(app_state(store.clone(), WebSettings::default()));
    let mut costs = Vec::new();
    let cookie = format!("iliad_teacher={BUSY}");
    let known = REQUESTS.map(|(method, path, body)| (method, path, body, cookie.as_str()));
    let anonymous = [(Method::POST, "/api/runs/old/lease", "{}", ""), (Method::GET, "/teach/old", "", "")];
    for (method, path, body, cookie) in known.into_iter().chain(anonymous) {
        let before = store.steps();
        for _ in 0..5 {
            let request = Request::builder()
                .method(method.clone())
                .uri(path)
                .header("host", "127.0.0.1:8080")
                .header("cookie", cookie)
                .header("content-type", "application/json")
                .header("sec-fetch-site", "same-origin")
                .body(Body::from(body))
                .unwrap();
            let reply = router.clone().oneshot(request).await.unwrap();
            let status = reply.status();
            let text = String::from_utf8(to_bytes(reply.into_body(), 1 << 24).await.unwrap().to_vec()).unwrap();
            // Whoever comes without a cookie may be asked to open the page first.
            assert!(status == StatusCode::OK || cookie.is_empty(), "{method} {path}: {status} {text}");
        }
        costs.push((format!("{method} {path}"), store.steps() - before));
    }
    costs
}

#[tokio::test]
async fn an_ended_run_costs_no_more_with_the_number_of_its_answers() {
    for ((request, small), (_, large)) in costs(300).await.into_iter().zip(costs(50_000).await) {
        assert!(large <= small * 3 / 2 + 1_000, "{request}: {small} steps with 300 answers, {large} with 50,000");
    }
}
