//! The addresses for those who watch over a server: whether it is ready, and figures for Prometheus.

use crate::Server;
use crate::authorisation_fixture::{ACCESS_TOKEN, Template, Who, settings};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::config::server::MetricsReaders;
use iliad::store::Scope;
use iliad::web::WebSettings;
use serde_json::json;
use std::collections::BTreeSet;

#[tokio::test]
async fn a_server_is_ready_while_all_its_parts_are() {
    let server = Server::new().await;
    let ready = server.get("/readyz", "").await;
    let all = json!({"status": "ready", "server": "ok", "database": "ok", "disk": "ok", "trainer": "ok"});
    assert_eq!((ready.status, ready.json()), (StatusCode::OK, all));
    // A trainer that is gone without having said that the run ended.
    let (sender, status) = tokio::sync::watch::channel(server.run.status.borrow().clone());
    drop(sender);
    server.state.runs.add(iliad::run::RunHandle { status, ..server.run.clone() });
    let without = server.get("/readyz", "").await;
    assert_eq!((without.status, without.json()["trainer"].as_str()), (StatusCode::SERVICE_UNAVAILABLE, Some("gone")));
    assert_eq!(without.json()["code"], "not-ready");
    assert_eq!(without.json()["database"], "ok");
    // The database is closed, and the server is told to end.
    server.state.shutdown.cancel();
    server.state.store.close().await;
    let ending = server.get("/readyz", "").await.json();
    assert_eq!((&ending["server"], &ending["database"]), (&json!("ending"), &json!("failed")));
    assert_eq!(server.get("/healthz", "").await.status, StatusCode::OK, "it answers all the same");
}

#[tokio::test]
async fn figures_are_for_whom_the_setting_names() {
    let template = Template::new().await;
    let asked = async |metrics: MetricsReaders, who: Who| {
        let server = template.fixture_with(WebSettings { metrics, ..settings() }).await.server;
        let headers: Vec<_> = template.header(who).into_iter().collect();
        server.call(Method::GET, "/metrics", &headers, Body::empty()).await.status
    };
    use MetricsReaders::{Everyone, Nobody, Researchers};
    for (readers, who, status) in [
        (Researchers, Who::Nobody, StatusCode::UNAUTHORIZED),
        (Researchers, Who::Visitor, StatusCode::UNAUTHORIZED),
        (Researchers, Who::Token(Scope::Teach), StatusCode::FORBIDDEN),
        (Researchers, Who::Token(Scope::Read), StatusCode::OK),
        (Researchers, Who::AccessToken, StatusCode::OK),
        (Everyone, Who::Nobody, StatusCode::OK),
        (Nobody, Who::AccessToken, StatusCode::NOT_FOUND),
    ] {
        assert_eq!(asked(readers, who).await, status, "{readers} {who:?}");
    }
}

#[tokio::test]
async fn figures_are_in_the_format_of_prometheus_and_the_documented_ones() {
    let server = Server::with(settings(), TeacherMode::Human).await;
    let cookie = server.teacher().await;
    server.lease(&cookie, &[]).await;
    assert_eq!(server.get("/runs", "").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.get("/no/such/page", "").await.status, StatusCode::NOT_FOUND);
    let bearer = format!("Bearer {ACCESS_TOKEN}");
    let page = server.call(Method::GET, "/metrics", &[("authorization", &bearer)], Body::empty()).await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/plain; version=0.0.4"));
    for line in [
        r#"iliad_http_requests_total{method="GET",route="/runs",status="401"} 1"#,
        r#"iliad_http_requests_total{method="GET",route="none",status="404"} 1"#,
        r#"iliad_http_requests_total{method="POST",route="/api/runs/{run}/lease",status="200"} 1"#,
        r#"iliad_runs{state="running"} 1"#,
        r#"iliad_run_queue_executions{run="study",state="leased"} 1"#,
        r#"iliad_run_device{run="study",device="cpu"} 1"#,
        "iliad_answers_total 0",
    ] {
        assert!(page.text.lines().any(|there| there == line), "{line} is not in\n{}", page.text);
    }
    assert!(!page.text.contains("no/such"), "what somebody makes up is no label");
    // Every sample belongs to the family named above it, and is a number.
    let (mut family, mut families) = (String::new(), BTreeSet::new());
    for line in page.text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            family = name.to_owned();
            assert!(families.insert(family.clone()), "{family} comes twice");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(
                name.strip_prefix(&family).is_some_and(|end| ["", "_bucket", "_sum", "_count"].contains(&end)),
                "{line}"
            );
            value.parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
    let documented = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deploy.md")).unwrap();
    let lacking: Vec<_> = families.iter().filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert!(lacking.is_empty(), "docs/deploy.md does not describe {lacking:?}");
}
