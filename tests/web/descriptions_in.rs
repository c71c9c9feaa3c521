//! Descriptions that come in from files: by the page, and by the address of programs.

use crate::data_in::{Part, send};
use crate::v1::{program, with_token};
use crate::{Reply, Server, attribute, support};
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::store::{MadeBy, Scope};
use iliad::web::{WebSettings, router};
use serde_json::{Value, json};
use std::collections::HashMap;
use tower::ServiceExt;

/// Texts that a format could spoil.
const TEXTS: [&str; 6] = ["add an e", "=1+1", "'-a", "two\nlines, \"quoted\"", "  blanks \u{2028} ", "null"];

/// A server on which two people have described executions, corrected one, and skipped one.
async fn taught() -> Server {
    let server = Server::new().await;
    let people = [server.teacher().await, server.teacher().await];
    for (number, text) in TEXTS.iter().enumerate() {
        let cookie = &people[number % 2];
        let leased = server.lease(cookie, &[]).await;
        let kind = if number == 5 { "skipped" } else { "described" };
        let body =
            json!({"client_key": format!("k{number}"), "execution": leased["execution"], "kind": kind, "text": text});
        let last = server.post("/api/v1/runs/study/answers", cookie, &body).await.json();
        assert!(last["answer"].is_i64(), "{last}");
        if number == 3 {
            let path = format!("/api/v1/runs/study/answers/{}/correct", last["answer"]);
            let body = json!({"client_key": "better", "execution": leased["execution"], "kind": "described", "text": "better"});
            assert_eq!(server.post(&path, cookie, &body).await.status, StatusCode::CREATED);
        }
    }
    // The run learns beside the requests, and every export has to find the same.
    for _ in 0..600 {
        let learned = |row: &Value| {
            let waits = row["kind"] == "described" && row["superseded_by"].is_null();
            let used = row["used_in_updates"].as_array().is_some_and(|updates| !updates.is_empty());
            !(waits || used) || !row["understood_after"].is_null()
        };
        if rows(&server, "study", true).await.iter().all(learned) {
            return server;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the run did not learn from its descriptions");
}

async fn bytes(server: &Server, path: &str) -> Bytes {
    let request = Request::get(path).header("host", "127.0.0.1:8080").body(Body::empty()).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    to_bytes(response.into_body(), 32 << 20).await.unwrap()
}

/// The rows of a run, with keys that are their numbers in the file, and without what says which run it is.
async fn rows(server: &Server, run: &str, config: bool) -> Vec<Value> {
    let text = server.get(&format!("/api/v1/export/descriptions.jsonl?run={run}"), "").await.text;
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut keys, mut teachers) = (HashMap::new(), HashMap::new());
    for (number, row) in rows.iter().enumerate() {
        keys.insert(row["description_id"].as_i64(), number);
        let next = teachers.len();
        teachers.entry(row["teacher_id"].as_i64()).or_insert(next);
    }
    for row in &mut rows {
        for name in ["description_id", "supersedes", "superseded_by"] {
            row[name] = json!(keys.get(&row[name].as_i64()).filter(|_| !row[name].is_null()));
        }
        row["teacher_id"] = json!(teachers[&row["teacher_id"].as_i64()]);
        row["run_id"] = json!("");
        if !config {
            row["config_hash"] = json!("");
        }
    }
    rows
}

async fn sent(server: &Server, query: &str, kind: &str, key: &str, body: impl Into<Body>) -> Reply {
    let headers = [("content-type", kind), ("idempotency-key", key)];
    server.call(Method::POST, &format!("/api/v1/import/descriptions{query}"), &headers, body).await
}

/// An export comes in again, is exported once more, and is the same but for its keys.
#[tokio::test]
async fn every_form_of_an_export_comes_in_without_loss() {
    let server = taught().await;
    let expected = rows(&server, "study", true).await;
    assert_eq!(expected.len(), TEXTS.len() + 1);
    for (number, file) in
        ["descriptions.jsonl", "descriptions.csv", "descriptions.parquet", "dataset.tar"].into_iter().enumerate()
    {
        let body = bytes(&server, &format!("/api/v1/export/{file}?run=study")).await;
        let ending = file.split_once('.').unwrap().1;
        let other = Server::with(WebSettings::default(), TeacherMode::Human).await;
        let query = format!("?format={ending}&run=copy");
        let checked =
            sent(&other, &format!("{query}&dry_run=true"), "application/octet-stream", "dry", body.clone()).await;
        assert_eq!(checked.status, StatusCode::OK, "{file}: {}", checked.text);
        let report = checked.json();
        assert_eq!((&report["rows"], &report["bad_rows"], &report["stored"]), (&json!(7), &json!(0), &json!(false)));
        let before = other.state.store.export_count(None).await.unwrap();
        let came = sent(&other, &query, "application/octet-stream", "key", body.clone()).await;
        assert_eq!((came.status, &came.json()["teachers"]), (StatusCode::CREATED, &json!(2)), "{file}: {}", came.text);
        let config = ending == "tar";
        let expected: Vec<Value> = expected
            .iter()
            .cloned()
            .map(|mut row| {
                if !config {
                    row["config_hash"] = json!("");
                }
                row
            })
            .collect();
        assert_eq!(rows(&other, "copy", config).await, expected, "{file}");
        let label = other.state.store.run_label(&"copy".into()).await.unwrap();
        assert_eq!(label.made_by, MadeBy::Import);

        // A repeated request is answered as before, and nothing comes twice.
        let again = sent(&other, &query, "application/octet-stream", "key", body.clone()).await;
        assert_eq!((again.status, again.header("idempotency-replayed")), (StatusCode::CREATED, "true"), "{file}");
        assert_eq!(again.text, came.text);
        assert_eq!(other.state.store.export_count(None).await.unwrap(), before + 7);
        let another = sent(&other, &query, "application/octet-stream", "key", "{}").await;
        assert_eq!(another.json()["code"], "key-of-another-request");
        let taken = sent(&other, &query, "application/octet-stream", &format!("other-{number}"), body).await;
        assert_eq!((taken.status, &taken.json()["taken"]), (StatusCode::CONFLICT, &json!(["copy"])), "{}", taken.text);
    }
}

#[tokio::test]
async fn bad_rows_formats_scopes_and_sizes_are_told() {
    let server = Server::new().await;
    let view = support::pairs_view(&[("a".into(), "ae".into())]);
    let good =
        json!({"run_id": "own", "task": "pairs", "episode_id": 1, "view": view, "description": "x", "teacher_id": 1});
    let file = format!("{good}\nnonsense\n{{\"run_id\": \"own\"}}\n");
    let dry = sent(&server, "?dry_run=true", "application/x-ndjson", "a", file.clone()).await;
    let report = dry.json();
    assert_eq!((dry.status, &report["bad_rows"], &report["rows"]), (StatusCode::OK, &json!(2), &json!(1)), "{report}");
    let numbers: Vec<&Value> = report["bad"].as_array().unwrap().iter().map(|bad| &bad["row"]).collect();
    assert_eq!(numbers, [2, 3]);
    assert!(report["bad"][0]["reason"].as_str().unwrap().contains("no JSON"), "{report}");
    let refused = sent(&server, "", "application/x-ndjson", "b", file).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (422, &json!("bad-rows")));
    assert_eq!(refused.json()["bad"].as_array().unwrap().len(), 2);
    for (query, kind, body, code) in [
        ("", "application/json", "{}", "format"),
        ("?format=xlsx", "text/csv", "a", "format"),
        ("", "application/x-ndjson", "", "file"),
        ("", "application/vnd.apache.parquet", "PAR1 nonsense PAR1", "file"),
        ("", "application/x-tar", "nonsense", "file"),
        ("?run=a%20b", "text/csv", "a", "file"),
    ] {
        let refused = sent(&server, query, kind, "c", body).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (422, &json!(code)), "{query} {kind}");
    }
    let large = vec![b' '; 64_000_001];
    for key in ["d", ""] {
        let headers = [("content-type", "text/csv"), ("idempotency-key", key)];
        let headers = if key.is_empty() { &headers[..1] } else { &headers[..] };
        let refused = server.call(Method::POST, "/api/v1/import/descriptions", headers, large.clone()).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.text);
    }
    let reader = with_token(&server, &[Scope::Read, Scope::Export]).await;
    let refused = reader.post("/api/v1/import/descriptions?format=jsonl", &good).await;
    assert_eq!(refused.json()["code"], "missing-scope", "{}", refused.text);
    assert!(program(&server).post("/api/v1/import/descriptions?format=jsonl", &good).await.status.is_success());
}

#[tokio::test]
async fn the_page_tells_every_bad_row_and_then_brings_the_file_in() {
    let mut server = taught().await;
    let folder = tempfile::tempdir().unwrap();
    server.state.settings =
        std::sync::Arc::new(WebSettings { corpora: Some(folder.path().to_owned()), ..WebSettings::default() });
    server.router = router(server.state.clone());
    let page = server.page("/import/descriptions", "").await.text;
    assert!(page.contains("aria-current=\"page\">Bring in descriptions") && page.contains("64 MB"), "{page}");
    let export = bytes(&server, "/api/v1/export/descriptions.csv?run=study").await;
    let manifest = bytes(&server, "/api/v1/export/descriptions.csv/manifest?run=study").await;
    let path = "/import/descriptions";
    let progress = async |ticket: &str| server.get(&format!("/progress?ticket={ticket}"), "").await;
    assert_eq!(progress("first").await.status, StatusCode::NOT_FOUND);
    let bad: Part = (
        "file",
        Some("C:\\mine.csv"),
        b"run_id,task,episode_id,view,description\nown,chess,1,{},a\nown,pairs,x,{},a\n",
    );
    let told = send(&server, &format!("{path}?ticket=first"), &[bad]).await;
    assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY);
    let at = progress("first").await.json();
    assert_eq!(
        (&at["stage"], &at["step"], &at["unit"]),
        (&json!("whole"), &json!("Reading the rows"), &json!("bytes"))
    );
    assert!(at["done"] == at["all"] && at["all"].as_u64() > Some(60), "{at}");
    for part in ["mine.csv</bdi>", "2 bad rows", "there is no task", "episode_id"] {
        assert!(told.text.contains(part), "{part}: {}", told.text);
    }
    assert!(!told.text.contains("name=\"upload\"") && !told.text.contains("C:\\"), "{}", told.text);
    for wrong in [("file", Some("a.xlsx"), b"x".as_slice()), ("file", Some(""), b"")] {
        let told = send(&server, path, &[wrong]).await;
        assert!(told.status == StatusCode::UNPROCESSABLE_ENTITY && told.text.contains("Choose"), "{}", told.text);
    }

    // A run of the name is there, so the one that comes in needs another.
    let files: [Part; 2] = [("file", Some("d.csv"), &export), ("file", Some("d.csv.manifest.json"), &manifest)];
    let told = send(&server, path, &files).await;
    assert!(told.text.contains("The run needs another name") && !told.text.contains("No manifest"), "{}", told.text);
    let upload = attribute(&told.text, "name=\"upload\"", "value");
    let taken = server.form("/import/descriptions/bring", "", &format!("upload={upload}&name=")).await;
    assert!(taken.status == StatusCode::UNPROCESSABLE_ENTITY && taken.text.contains("another name"), "{}", taken.text);
    let odd = server.form("/import/descriptions/bring", "", &format!("upload={upload}&name=a%2Fb")).await;
    assert!(odd.text.contains("letters, digits"), "{}", odd.text);
    let came = server.form("/import/descriptions/bring?ticket=second", "", &format!("upload={upload}&name=copy")).await;
    assert_eq!(
        (came.status, came.header("location")),
        (StatusCode::SEE_OTHER, "/import/descriptions?came=7&teachers=2&runs=copy")
    );
    let at = progress("second").await.json();
    assert_eq!((&at["stage"], &at["step"], &at["unit"]), (&json!("whole"), &json!("Storing the rows"), &json!("rows")));
    assert_eq!((&at["done"], &at["all"]), (&json!(7), &json!(7)));
    assert_eq!(rows(&server, "copy", true).await, rows(&server, "study", true).await);
    let page = server.page(came.header("location"), "").await.text;
    assert!(page.contains("7 descriptions of 2 teachers came in") && page.contains("/runs/copy"), "{page}");
    let gone = server.form("/import/descriptions/bring", "", &format!("upload={upload}&name=copy-2")).await;
    assert!(
        gone.status == StatusCode::UNPROCESSABLE_ENTITY && gone.text.contains("not here any more"),
        "{}",
        gone.text
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of the uploads");
    // Of a file without its manifest the page says what is lost.
    let told = send(&server, path, &files[..1]).await;
    assert!(told.text.contains("No manifest has the configuration"), "{}", told.text);
}
