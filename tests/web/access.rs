//! Who may do what: the access token, other sites, names that are not this machine's.

use crate::Server;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::web::WebSettings;

const TOKEN: &str = "correct horse battery staple";

async fn open_to_the_world() -> Server {
    let settings = WebSettings { loopback: false, access_token: Some(TOKEN.to_owned()), ..WebSettings::default() };
    Server::with(settings, TeacherMode::Human).await
}

const STEERING: [&str; 14] = [
    "/events?runs=study",
    "/runs",
    "/runs/study",
    "/runs/study/events",
    "/runs/study/export.jsonl",
    "/runs/study/export.csv",
    "/export",
    "/export/count",
    "/export/descriptions.jsonl",
    "/api/runs",
    "/api/runs/study",
    "/api/runs/study/points",
    "/api/runs/study/readings",
    "/api/runs/study/episodes",
];

#[tokio::test]
async fn steering_needs_the_token_and_teaching_does_not() {
    let server = open_to_the_world().await;
    for path in STEERING {
        let reply = server.get(path, "").await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!((reply.header("www-authenticate"), reply.json()["code"].as_str()), ("Bearer", Some("no-access")));
    }
    for command in ["pause", "resume", "stop", "checkpoints", "teacher", "try"] {
        let reply = server.post(&format!("/api/runs/study/{command}"), "", &serde_json::json!({"mode": "human"})).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{command}");
    }
    let page = server.page("/runs/study?a=1&b=2", "").await;
    assert_eq!(
        (page.status, page.header("location")),
        (StatusCode::SEE_OTHER, "/access?next=/runs/study%3Fa%3D1%26b%3D2")
    );
    assert_eq!(server.page("/", "").await.status, StatusCode::OK);
    assert_eq!(server.page("/teach/study", "").await.status, StatusCode::OK);
    assert!(server.lease(&server.teacher().await, &[]).await["execution"].is_i64());
}

#[tokio::test]
async fn the_token_opens_by_form_and_by_header() {
    let server = open_to_the_world().await;
    let wrong = server.form("/access", "", "token=guess&next=/runs/study").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(wrong.text.contains("That is not the token") && wrong.cookie("iliad_access").is_none());
    let right = server.form("/access", "", "token=+correct+horse+battery+staple+&next=/runs/study").await;
    assert_eq!((right.status, right.header("location")), (StatusCode::SEE_OTHER, "/runs/study"));
    let cookie = right.cookie("iliad_access").unwrap();
    assert!(!cookie.contains("horse") && right.header("set-cookie").contains("HttpOnly"));
    assert_eq!(server.page("/runs/study", &cookie).await.status, StatusCode::OK);
    assert_eq!(server.page("/runs/study", "iliad_access=0123").await.status, StatusCode::SEE_OTHER);
    let bearer = format!("Bearer {TOKEN}");
    let reply = server.call(Method::GET, "/api/runs", &[("authorization", &bearer)], Body::empty()).await;
    assert_eq!(reply.status, StatusCode::OK);
    let away = server.form("/access", "", "token=correct+horse+battery+staple&next=//evil.example").await;
    assert_eq!(away.header("location"), "/");
}

#[tokio::test]
async fn a_loopback_listener_reached_under_a_foreign_name_does_not_open() {
    let server = Server::new().await;
    for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST", "[::1]:80", "127.0.0.7"] {
        let request = axum::http::Request::get("/api/runs").header("host", host).body(Body::empty()).unwrap();
        assert_eq!(server.request(request).await.status, StatusCode::OK, "{host}");
    }
    for (name, value) in
        [("host", "rebound.example"), ("host", "127.0.0.1.evil.example"), ("x-forwarded-for", "10.0.0.9")]
    {
        let mut request = axum::http::Request::get("/api/runs").header(name, value);
        if name != "host" {
            request = request.header("host", "127.0.0.1:8080");
        }
        let reply = server.request(request.body(Body::empty()).unwrap()).await;
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (StatusCode::FORBIDDEN, Some("steering-off")),
            "{value}"
        );
    }
}

#[tokio::test]
async fn other_sites_cannot_send_and_proxies_do_not_hinder() {
    let server = Server::new().await;
    let send = async |headers: &[(&str, &str)]| {
        server.call(Method::POST, "/api/runs/study/pause", headers, Body::empty()).await.status
    };
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:9999")],
        &[("origin", "https://evil.example"), ("x-forwarded-host", "evil.example")],
    ] {
        assert_eq!(send(headers).await, StatusCode::FORBIDDEN, "{headers:?}");
    }
    for headers in [
        &[][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
        &[("origin", "http://127.0.0.1:8080")],
    ] {
        assert_eq!(send(headers).await, StatusCode::ACCEPTED, "{headers:?}");
    }
    // A proxy that ends TLS and passes another host on: the browser's own word is enough, and with trust so is the proxy's.
    let settings = WebSettings { trust_proxy: true, access_token: Some(TOKEN.to_owned()), ..WebSettings::default() };
    let server = Server::with(settings, TeacherMode::Human).await;
    let bearer = format!("Bearer {TOKEN}");
    let headers =
        [("origin", "https://iliad.example"), ("x-forwarded-host", "iliad.example:443"), ("authorization", &bearer)];
    assert_eq!(
        server.call(Method::POST, "/api/runs/study/pause", &headers, Body::empty()).await.status,
        StatusCode::ACCEPTED
    );
    let headers = [("x-forwarded-proto", "https"), ("accept", "text/html")];
    let page = server.call(Method::GET, "/teach/study", &headers, Body::empty()).await;
    assert!(page.header("set-cookie").contains("Secure"));
}

#[tokio::test]
async fn researchers_from_elsewhere_find_the_way_in_and_out() {
    let server = open_to_the_world().await;
    for (path, back) in
        [("/", "/"), ("/teach/study/answers", "/teach/study/answers"), ("/docs/export?x=1", "/docs/export%3Fx%3D1")]
    {
        let page = server.page(path, "").await;
        let link = format!("href=\"/access?next={back}\"");
        assert!(page.text.contains(&link) && page.text.contains("Researchers sign in"), "{path}: {}", page.text);
        assert!(!page.text.contains("Sign out"), "{path}");
    }
    let entered = server.form("/access", "", "token=correct+horse+battery+staple&next=/docs/export%3Fx%3D1").await;
    assert_eq!(entered.header("location"), "/docs/export?x=1");
    let cookie = entered.cookie("iliad_access").unwrap();
    for path in ["/", "/runs", "/runs/study", "/teach/study"] {
        let page = server.page(path, &cookie).await.text;
        assert!(page.contains("Sign out") && !page.contains("Researchers sign in"), "{path}");
    }
    let left = server.form("/access/leave", &cookie, "").await;
    assert_eq!((left.status, left.header("location")), (StatusCode::SEE_OTHER, "/"));
    assert_eq!(left.cookie("iliad_access").as_deref(), Some("iliad_access="));
    assert!(left.header("set-cookie").contains("Max-Age=0"), "{}", left.header("set-cookie"));
    let foreign = [("sec-fetch-site", "cross-site"), ("cookie", cookie.as_str())];
    let foreign = server.call(Method::POST, "/access/leave", &foreign, Body::empty()).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN, "no other site signs anybody out");
}

#[tokio::test]
async fn nobody_is_offered_what_does_not_open() {
    // On the server's own machine nothing has to be opened, and there is nothing to leave.
    let page = Server::new().await.page("/", "").await.text;
    assert!(!page.contains("sign in") && !page.contains("Sign out"));
    // Without a token the form would refuse every one.
    let settings = WebSettings { loopback: false, ..WebSettings::default() };
    let server = Server::with(settings, TeacherMode::Human).await;
    assert!(!server.page("/", "").await.text.contains("sign in"));
    let form = server.page("/access", "").await;
    assert!(form.status == StatusCode::FORBIDDEN && form.text.contains("access token"), "{}", form.text);
}
