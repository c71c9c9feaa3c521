//! Pages and addresses in general: errors in words, headers, static files, the path in front.

use crate::{Server, attribute};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::web::WebSettings;

#[tokio::test]
async fn errors_have_words_for_people_and_for_programs() {
    let server = Server::new().await;
    for (method, path, status) in [
        (Method::GET, "/nothing", StatusCode::NOT_FOUND),
        (Method::GET, "/teach/nobody", StatusCode::NOT_FOUND),
        (Method::GET, "/runs/nobody", StatusCode::NOT_FOUND),
        (Method::DELETE, "/runs", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let page = server.call(method.clone(), path, &[("accept", "text/html")], Body::empty()).await;
        assert_eq!((page.status, page.header("content-type")), (status, "text/html; charset=utf-8"), "{path}");
        assert!(page.text.contains("<h1>") && page.text.contains("Go to the start page"), "{path}");
        let problem = server.call(method, path, &[], Body::empty()).await;
        assert_eq!((problem.status, problem.header("content-type")), (status, "application/problem+json"), "{path}");
        assert!(problem.json()["detail"].as_str().unwrap().ends_with('.'), "{path}");
    }
    let large =
        server.post("/api/runs/study/try", "", &serde_json::json!({"request": "x".repeat(70_000), "start": {}})).await;
    assert_eq!((large.status, large.json()["code"].as_str()), (StatusCode::PAYLOAD_TOO_LARGE, Some("too-large")));
    let text = server.call(Method::POST, "/api/runs/study/try", &[("content-type", "text/plain")], "{}").await;
    assert_eq!((text.status, text.header("content-type")), (StatusCode::BAD_REQUEST, "application/problem+json"));
}

#[tokio::test]
async fn every_reply_carries_the_security_headers() {
    let server = Server::new().await;
    for path in ["/", "/nothing", "/healthz", "/api/runs", "/teach/study", "/runs/study"] {
        let reply = server.page(path, "").await;
        let policy = reply.header("content-security-policy");
        assert!(policy.contains("script-src 'self'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(
            (reply.header("x-content-type-options"), reply.header("referrer-policy")),
            ("nosniff", "same-origin")
        );
        assert!(!reply.header("x-request-id").is_empty());
        assert!(
            !reply.text.contains("style=\"") && !reply.text.contains("onclick"),
            "{path}: the policy forbids inline code"
        );
    }
}

#[tokio::test]
async fn the_server_says_that_it_is_well() {
    let reply = Server::new().await.get("/healthz", "").await;
    assert_eq!((reply.status, reply.json()), (StatusCode::OK, serde_json::json!({"status": "ok"})));
}

#[tokio::test]
async fn static_files_are_kept_for_ever_under_their_version_only() {
    let server = Server::new().await;
    let page = server.page("/", "").await.text;
    let address = attribute(&page, "css/base.css", "href");
    let file = server.get(&address, "").await;
    assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(file.header("content-type"), "text/css; charset=utf-8");
    let again = server.call(Method::GET, &address, &[("if-none-match", file.header("etag"))], Body::empty()).await;
    assert_eq!((again.status, again.text.len()), (StatusCode::NOT_MODIFIED, 0));
    for old in ["/static/css/base.css", "/static/0123456789abcdef/css/base.css"] {
        let file = server.get(old, "").await;
        assert_eq!((file.status, file.header("cache-control")), (StatusCode::OK, "public, no-cache"), "{old}");
    }
    for none in ["/static/package.json", "/static/../Cargo.toml", "/static/%2e%2e/Cargo.toml", "/static/css"] {
        assert_eq!(server.get(none, "").await.status, StatusCode::NOT_FOUND, "{none}");
    }
}

#[tokio::test]
async fn everything_works_under_a_path_whether_the_proxy_strips_it_or_not() {
    let settings = WebSettings { base_path: "/lab/iliad".to_owned(), ..WebSettings::default() };
    let server = Server::with(settings, TeacherMode::Human).await;
    for front in ["/lab/iliad", ""] {
        let home = server.page(&format!("{front}/"), "").await;
        let home = if home.status.is_redirection() { server.page(home.header("location"), "").await } else { home };
        assert_eq!(home.status, StatusCode::OK, "{front}");
        for address in home.text.split("href=\"").skip(1).map(|rest| &rest[..rest.find('"').unwrap()]) {
            assert!(address.starts_with("/lab/iliad/") || address.starts_with('#'), "{address}");
        }
        let guide = server.page(&format!("{front}/teach/study"), "").await;
        assert!(guide.header("set-cookie").contains("Path=/lab/iliad;"), "{}", guide.header("set-cookie"));
        let cookie = guide.cookie("iliad_teacher").unwrap();
        let seen = server.form(&format!("{front}/teach/study/guide"), &cookie, "").await;
        assert_eq!(seen.header("location"), "/lab/iliad/teach/study");
        let page = server.page(&format!("{front}/teach/study"), &cookie).await.text;
        assert!(page.contains("/lab/iliad/api/v1/runs/study"));
        let file = attribute(&page, "js/teach.js", "src");
        assert_eq!(
            server.get(file.strip_prefix("/lab/iliad").filter(|_| front.is_empty()).unwrap_or(&file), "").await.status,
            StatusCode::OK
        );
        let missing = server.page(&format!("{front}/nothing"), "").await;
        assert!(missing.text.contains("href=\"/lab/iliad/\""));
    }
    assert_eq!(server.get("/healthz", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_slash_too_many_leads_to_the_page_and_nowhere_else() {
    let server = Server::new().await;
    let reply = server.page("/runs/?x=1", "").await;
    assert_eq!((reply.status, reply.header("location")), (StatusCode::PERMANENT_REDIRECT, "/runs?x=1"));
    assert_eq!(server.page("//evil.example/", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_guide_comes_once_and_again_when_asked_for() {
    let server = Server::new().await;
    let first = server.page("/teach/study", "").await;
    assert!(first.text.contains("Start teaching") && !first.text.contains("<textarea"));
    assert_eq!((first.text.matches("<li><q ").count(), first.text.contains("append e")), (5, true));
    assert_eq!(
        server.state.store.pool(&"study".into()).await.unwrap().leased,
        0,
        "reading the guide keeps nothing from others"
    );
    let cookie = server.teacher().await;
    assert!(server.page("/teach/study", &cookie).await.text.contains("<textarea"));
    assert!(server.page("/teach/study/guide", &cookie).await.text.contains("Continue teaching"));
}

#[tokio::test]
async fn hostile_text_is_only_text() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let text = "</textarea><script>alert(1)</script>\"'";
    let body =
        serde_json::json!({"client_key": "k", "execution": leased["execution"], "kind": "described", "text": text});
    server.post("/api/runs/study/answers", &cookie, &body).await;
    let page = server.page("/teach/study/answers", &cookie).await.text;
    assert!(!page.contains("<script>alert") && page.contains("&#60;script&#62;alert"));
    let path = "/teach/%3Cscript%3E";
    let page = server.page(path, &cookie).await;
    assert!(page.status == StatusCode::NOT_FOUND && !page.text.contains("<script>"));
}

#[tokio::test]
async fn a_panic_is_a_page_in_plain_words_and_the_server_goes_on() {
    let server = Server::new().await;
    let mut state = server.state.clone();
    state.families = &[&crate::support::Pairs { broken: true }];
    let broken = iliad::web::router(state);
    for _ in 0..2 {
        let request = axum::http::Request::get("/").header("accept", "text/html").body(Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(broken.clone(), request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let page = String::from_utf8_lossy(&body);
        assert!(page.contains("Something broke on our side") && !page.contains("a bug in a family"));
    }
}

#[tokio::test]
async fn an_execution_that_cannot_be_drawn_does_not_block_the_queue() {
    let server = Server::new().await;
    let mut damaged = crate::support::execution(7, 900, 50);
    damaged.view = serde_json::json!({"from": "another version"});
    server.state.store.offer(&"study".into(), &[damaged]).await.unwrap();
    let cookie = server.teacher().await;
    assert!(server.lease(&cookie, &[]).await["execution"].is_i64());
    assert!(server.page("/teach/study", &cookie).await.text.contains("name=\"execution\""));
}

#[tokio::test]
async fn every_page_has_a_foot_with_version_documentation_and_licence() {
    let settings = WebSettings { base_path: "/lab".to_owned(), ..WebSettings::default() };
    let server = Server::with(settings, TeacherMode::Human).await;
    let cookie = server.teacher().await;
    let pages = [
        "",
        "/teach/study",
        "/teach/study/guide",
        "/teach/study/answers",
        "/runs",
        "/runs/study",
        "/docs",
        "/licence",
        "/nothing",
    ];
    for path in pages {
        let page = server.page(&format!("/lab{path}"), &cookie).await.text;
        let foot = &page[page.find("<footer").unwrap_or_else(|| panic!("{path} has no foot"))..];
        assert!(foot.contains(&format!("Iliad {}", env!("CARGO_PKG_VERSION"))), "{path}");
        assert!(foot.contains("href=\"/lab/docs\"") && foot.contains("href=\"/lab/licence\""), "{path}");
    }
    assert!(server.page("/lab/licence", "").await.text.contains("Permission is hereby granted"));
}

#[tokio::test]
async fn the_documentation_comes_from_the_server_itself() {
    let server = Server::new().await;
    let page = server.page("/docs", "").await;
    assert!(page.status == StatusCode::OK && page.text.contains("<h2 id=\"for-teachers\">"), "{}", page.text);
    let export = server.page("/docs/export", "").await.text;
    assert!(export.contains("<table>") && export.contains("aria-current=\"page\"") && !export.contains("style="));
    let picture = attribute(&page.text, "images/teach.png", "src");
    assert_eq!(server.call(Method::HEAD, &picture, &[], Body::empty()).await.header("content-type"), "image/png");
    for none in ["/docs/nothing", "/docs/../Cargo.toml", "/docs/images/none.png", "/docs/README.md"] {
        assert_eq!(server.page(none, "").await.status, StatusCode::NOT_FOUND, "{none}");
    }
}
