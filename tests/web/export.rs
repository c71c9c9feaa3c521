//! The export page and its downloads.

use crate::Server;
use axum::http::StatusCode;
use serde_json::Value;

/// Two people's answers, one of them a skip.
async fn server() -> Server {
    let server = Server::new().await;
    let ada = server.teacher().await;
    for (kind, text) in [("described", "add <b> & \"e\""), ("skipped", "tired")] {
        let lease = server.lease(&ada, &[]).await;
        let execution = lease["execution"].as_i64().unwrap();
        let body =
            serde_json::json!({"execution": execution, "client_key": format!("{kind}-1"), "kind": kind, "text": text});
        let sent = server.post("/api/runs/study/answers", &ada, &body).await;
        assert!(sent.status.is_success(), "{}", sent.text);
    }
    server
}

#[tokio::test]
async fn the_page_counts_and_its_links_download_what_it_counts() {
    let server = server().await;
    let page = server.page("/export", "").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("2 rows</output>"), "{}", page.text);
    let link = "/export/descriptions.csv?run=&#38;study=&#38;source=human&#38;valid=1";
    assert!(page.text.contains(link), "{}", page.text);
    let valid = server.get("/export/descriptions.csv?run=&study=&source=human&valid=1", "").await;
    assert_eq!(
        (valid.header("x-total-count"), valid.header("content-disposition").contains("iliad-descriptions-1.csv")),
        ("1", true)
    );
    for (query, rows) in
        [("", 2), ("kind=skipped", 1), ("source=simulated", 0), ("run=study&valid=0", 1), ("from=2099-01-01&to=", 0)]
    {
        let counted = server.get(&format!("/export/count?{query}"), "").await.json();
        assert_eq!(counted["descriptions"], rows, "{query}");
        let file = server.get(&format!("/export/descriptions.jsonl?{query}"), "").await;
        let lines: Vec<Value> = file.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), file.header("x-total-count").parse()), (rows, Ok(rows)), "{query}");
        let page = server.page(&format!("/export?{query}"), "").await.text;
        assert!(page.contains(&format!("{rows} row")), "{query}: {page}");
    }
}

#[tokio::test]
async fn the_data_set_comes_as_an_archive_and_forms_as_files() {
    let server = server().await;
    let dataset = server.get("/export/dataset.tar?name=words&version=3&licence=CC0-1.0", "").await;
    assert_eq!(dataset.header("content-type"), "application/x-tar");
    assert!(dataset.header("content-disposition").contains("words-3.tar"));
    assert!(dataset.text.contains("words-3/README.md") && dataset.text.contains("license: cc0-1.0"));
    let pairs = server.get("/export/pairs.jsonl?run=study", "").await.text;
    assert_eq!(pairs.lines().count(), 1, "{pairs}");
    assert!(server.get("/export/schema.json", "").await.text.contains("description_id"));
}

#[tokio::test]
async fn what_cannot_be_exported_is_said() {
    let server = server().await;
    for (path, status) in [
        ("/export/descriptions.xlsx", StatusCode::NOT_FOUND),
        ("/export/pairs.json", StatusCode::NOT_FOUND),
        ("/export/descriptions.csv?run=none", StatusCode::NOT_FOUND),
        ("/export/count?study=none", StatusCode::NOT_FOUND),
        ("/export/count?source=nobody", StatusCode::UNPROCESSABLE_ENTITY),
        ("/export/dataset.tar?name=..", StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        assert_eq!(server.get(path, "").await.status, status, "{path}");
    }
    let page = server.page("/export?from=yesterday", "").await;
    assert!(page.status == StatusCode::OK && page.text.contains("write it as 2026-01-31"), "{}", page.text);
}

#[tokio::test]
async fn a_download_with_a_ticket_says_how_far_it_has_come() {
    let server = server().await;
    for file in ["descriptions.jsonl", "descriptions.parquet", "dataset.tar", "pairs.jsonl"] {
        let ticket = file.replace('.', "-");
        let missing = server.get(&format!("/progress?ticket={ticket}"), "").await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        let sent = server.get(&format!("/export/{file}?ticket={ticket}"), "").await;
        assert_eq!(sent.status, StatusCode::OK, "{}", sent.text);
        let at = server.get(&format!("/progress?ticket={ticket}"), "").await.json();
        assert_eq!((&at["stage"], &at["done"], &at["all"]), (&"whole".into(), &2.into(), &2.into()), "{file}: {at}");
    }
}
