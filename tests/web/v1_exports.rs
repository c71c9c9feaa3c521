//! Pages and programs at the same addresses: older ones, cookies and rules, and the data set with its manifest.

use crate::Server;
use crate::v1::{program, with_token};
use axum::http::{Method, StatusCode};
use iliad::store::Scope;
use serde_json::json;
use sha2::Digest;
use std::path::Path;

/// Older addresses outside of `/api` say so, too; those of pages do not.
#[tokio::test]
async fn the_pages_use_the_current_addresses() {
    let server = Server::new().await;
    let program = program(&server);
    for older in
        ["/export/count", "/runs/study/export.jsonl", "/runs/study/export.csv", "/runs/study/export.schema.json"]
    {
        let reply = program.get(older).await;
        assert_eq!((reply.status, reply.header("deprecation").starts_with('@')), (StatusCode::OK, true), "{older}");
    }
    for current in ["/export/descriptions.jsonl", "/api/v1/export/descriptions.jsonl", "/api/v1/export/count"] {
        let reply = program.get(current).await;
        assert_eq!((reply.status, reply.header("deprecation")), (StatusCode::OK, ""), "{current}");
    }
    let cookie = server.teacher().await;
    for page in ["/runs/study", "/teach/study", "/charts", "/export", "/teach/study/answers"] {
        let text = server.page(page, &cookie).await.text.replace("/api/v1/", "");
        assert!(!text.contains("/api/") && !text.contains("&#34;/events"), "{page}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("static/js");
    for script in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(&script).unwrap();
        for line in text.lines().filter(|line| line.contains("/api/") && !line.trim_start().starts_with("//")) {
            assert!(line.contains("/api/v1"), "{}: {line}", script.display());
        }
    }
}

/// A signed-in person has their rights under the addresses of programs, too, and no other site's page may use them.
#[tokio::test]
async fn the_same_cookies_and_rules_hold_under_both_prefixes() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    for prefix in ["/api", "/api/v1"] {
        let lease = format!("{prefix}/runs/study/lease");
        let own = server.post(&lease, &cookie, &json!({})).await;
        assert_eq!(own.status, StatusCode::OK, "{}", own.text);
        let headers = [("content-type", "application/json"), ("cookie", &*cookie), ("sec-fetch-site", "cross-site")];
        let foreign = server.call(Method::POST, &lease, &headers, "{}").await;
        assert_eq!((foreign.status, foreign.json()["code"].clone()), (StatusCode::FORBIDDEN, json!("cross-site")));
        let pause = server.call(Method::POST, &format!("{prefix}/runs/study/pause"), &headers, "{}").await;
        assert_eq!(pause.json()["code"], "cross-site");
        let headers =
            [("content-type", "application/json"), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")];
        let nobody = server.call(Method::POST, &lease, &headers, "{}").await;
        assert_eq!(nobody.json()["code"], "no-cookie", "a browser is no program, {prefix}");
    }
}

#[tokio::test]
async fn the_manifest_of_an_export_tells_that_it_is_whole() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    for (n, kind) in ["described", "skipped"].into_iter().enumerate() {
        let leased = server.lease(&cookie, &[]).await;
        let body =
            json!({"client_key": format!("k{n}"), "execution": leased["execution"], "kind": kind, "text": "add \"e\""});
        server.post("/api/v1/runs/study/answers", &cookie, &body).await;
    }
    let exporter = with_token(&server, &[Scope::Export]).await;
    let query = "?source=human&valid=1&name=words&version=2&licence=CC0-1.0";
    for (file, table) in [("descriptions.csv", "descriptions"), ("pairs.jsonl", "pairs")] {
        let sent = exporter.get(&format!("/api/v1/export/{file}{query}")).await;
        let manifest = exporter.get(&format!("/api/v1/export/{file}/manifest{query}")).await.json();
        let entry = &manifest["files"][0];
        assert_eq!(entry["sha256"], hex::encode(sha2::Sha256::digest(&sent.text)), "{manifest:#}");
        assert_eq!((&entry["bytes"], &manifest["counts"][table]), (&json!(sent.text.len()), &json!(1)));
        assert_eq!((&manifest["licence"], &manifest["filters"]["valid"]), (&json!("CC0-1.0"), &json!(true)));
        assert_eq!(manifest["runs"][0]["run_id"], "study");
        assert!(sent.header("content-disposition").contains(entry["path"].as_str().unwrap()));
    }
    let folder = exporter.get(&format!("/api/v1/export/dataset.tar/manifest{query}")).await.json();
    let paths: Vec<&str> =
        folder["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&"data/train-00000.parquet") && paths.contains(&"README.md"), "{paths:?}");
    let reader = with_token(&server, &[Scope::Read]).await;
    for path in
        ["/export/count", "/export/descriptions.csv", "/export/descriptions.csv/manifest", "/runs/study/learned"]
    {
        let refused = reader.get(&format!("/api/v1{path}")).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (StatusCode::FORBIDDEN, &json!("missing-scope")),
            "{path}"
        );
    }
    let wrong = exporter.get("/api/v1/export/descriptions.csv?source=nobody").await;
    assert_eq!((wrong.status.as_u16(), wrong.json()["code"].as_str()), (422, Some("filter")));
}
