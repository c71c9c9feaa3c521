//! Limits of how often and how slowly, over real connections where that matters.

use crate::Server;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, Version};
use iliad::config::run::TeacherMode;
use iliad::web::WebSettings;
use iliad::web::listener::ConnectionLimits;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TOKEN: &str = "correct-horse-battery";
const DEADLINE: Duration = Duration::from_secs(60);

async fn open_to_the_world() -> Server {
    let settings = WebSettings { loopback: false, access_token: Some(TOKEN.to_owned()), ..WebSettings::default() };
    Server::with(settings, TeacherMode::Human).await
}

#[tokio::test]
async fn a_body_that_trickles_is_ended_with_words() {
    let connections = ConnectionLimits { body: Duration::from_millis(400), ..ConnectionLimits::default() };
    let server = Server::with(WebSettings { connections, ..WebSettings::default() }, TeacherMode::Human).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(iliad::web::serve(server.state.clone(), listener));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /api/runs/study/lease HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(DEADLINE, reader.read(&mut answer)).await.expect("it is ended").unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"timeout\""), "{answer}");
    trickle.abort();
    server.state.shutdown.cancel();
    tokio::time::timeout(DEADLINE, serving).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test]
async fn wrong_tokens_run_out_and_who_is_signed_in_stays() {
    let server = open_to_the_world().await;
    let cookie = server.form("/access", "", &format!("token={TOKEN}&next=/runs")).await.cookie("iliad_access").unwrap();
    let guess = async |n: usize| {
        let bearer = format!("Bearer guess-number-{n}");
        server.call(Method::GET, "/api/runs", &[("authorization", &bearer)], Body::empty()).await
    };
    let mut refused = None;
    for n in 0..50 {
        let reply = guess(n).await;
        match reply.status {
            StatusCode::UNAUTHORIZED => {}
            StatusCode::TOO_MANY_REQUESTS => {
                refused = Some(reply);
                break;
            }
            other => panic!("{other}"),
        }
    }
    let refused = refused.expect("guesses run out");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert!(refused.header("ratelimit-policy").contains("\"access-tokens\";q=10;w=60"));
    assert_eq!(refused.json()["code"], "too-many");
    // The right one is not even looked at now, by whichever way it comes.
    let bearer = format!("Bearer {TOKEN}");
    let right = server.call(Method::GET, "/api/runs", &[("authorization", &bearer)], Body::empty()).await;
    assert_eq!(right.status, StatusCode::TOO_MANY_REQUESTS);
    let form = server.form("/access", "", &format!("token={TOKEN}&next=/runs")).await;
    assert_eq!(form.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(server.get("/api/runs", "iliad_access=0123").await.status, StatusCode::TOO_MANY_REQUESTS);
    // Who signed in before goes on, and teaching is not concerned.
    assert_eq!(server.get("/api/runs", &cookie).await.status, StatusCode::OK);
    assert_eq!(server.page("/teach/study", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_old_cookie_does_not_use_up_the_guesses() {
    let server = open_to_the_world().await;
    for _ in 0..100 {
        assert_eq!(server.get("/api/runs", "iliad_access=of-an-earlier-start").await.status, StatusCode::UNAUTHORIZED);
    }
    let form = server.form("/access", "iliad_access=of-an-earlier-start", &format!("token={TOKEN}&next=/runs")).await;
    assert_eq!(form.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_flood_of_new_teachers_is_refused_and_old_ones_go_on() {
    let server = Server::new().await;
    let old = server.teacher().await;
    server.lease(&old, &[]).await;
    let mut reply = server.get("/api/runs", "").await;
    for n in 0..700 {
        let cookie = format!("iliad_teacher={n:032x}");
        reply = server.call(Method::POST, "/api/runs/nothing/lease", &[("cookie", &cookie)], Body::empty()).await;
        if reply.status == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
    }
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(!reply.header("retry-after").is_empty() && reply.header("ratelimit").contains("\"new-teachers\";r=0"));
    let next = server.post("/api/runs/study/lease", &old, &serde_json::json!({ "except": [] })).await;
    assert_eq!(next.status, StatusCode::OK);
    assert!(next.header("ratelimit-policy").contains("\"leases\""));
}

#[tokio::test]
async fn one_teachers_flood_of_words_is_refused_and_limits_can_be_switched_off() {
    for (rate_limits, expected) in [(true, true), (false, false)] {
        let server = Server::with(WebSettings { rate_limits, ..WebSettings::default() }, TeacherMode::Human).await;
        let cookie = server.teacher().await;
        let mut refused = false;
        for _ in 0..400 {
            let reply = server.post("/api/runs/study/answers/1/correct", &cookie, &serde_json::json!({})).await;
            refused |= reply.status == StatusCode::TOO_MANY_REQUESTS;
        }
        assert_eq!(refused, expected);
        assert_eq!(server.get("/healthz", "").await.status, StatusCode::OK);
    }
}

/// A cookie may hold other servers' tokens, so its text is the sender's to choose; what was signed is not.
#[tokio::test]
async fn a_teacher_has_one_bucket_however_the_cookie_is_written() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    let token = cookie.strip_prefix("iliad_teacher=").unwrap();
    let correct =
        async |cookie: &str| server.post("/api/runs/study/answers/1/correct", cookie, &serde_json::json!({})).await;
    let mut refused = None;
    for n in 0..400 {
        let written = match n % 3 {
            0 => format!("{cookie}.{n}"),
            1 => format!("{cookie}.{n:032x}"),
            _ => format!("iliad_teacher={n:064x}.{token}"),
        };
        let reply = correct(&written).await;
        if reply.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("the answers of one teacher run out");
    assert!(refused.header("ratelimit").contains("\"answers\";r=0"), "{}", refused.header("ratelimit"));
    // A token that was never signed opens no bucket: it counts for its address.
    let policy = correct(&format!("iliad_teacher={}", "a".repeat(64))).await.header("ratelimit-policy").to_owned();
    assert!(policy.contains("\"new-teachers\"") && !policy.contains("\"answers\""), "{policy}");
}

#[tokio::test]
async fn a_body_that_is_not_read_ends_the_connection_over_http1_only() {
    let server = Server::new().await;
    let send = async |method: Method, path: &str, version: Version, body: String| {
        let request = Request::builder().method(method).uri(path).version(version);
        let request = request.header("host", "127.0.0.1:8080").header("content-type", "application/json");
        server.request(request.body(Body::from(body)).unwrap()).await
    };
    let lease = "/api/runs/study/lease";
    let versions = [(Version::HTTP_11, "close"), (Version::HTTP_2, "")];
    for (version, wanted) in versions {
        let large = send(Method::POST, lease, version, "x".repeat(70_000)).await;
        assert_eq!((large.status, large.header("connection")), (StatusCode::PAYLOAD_TOO_LARGE, wanted), "{version:?}");
    }
    let refused = async |method: Method, path: &str, version: Version, body: &str| {
        for _ in 0..2000 {
            let reply = send(method.clone(), path, version, body.to_owned()).await;
            if reply.status == StatusCode::TOO_MANY_REQUESTS {
                return reply.header("connection").to_owned();
            }
        }
        panic!("{path} is never refused");
    };
    for (version, wanted) in versions {
        assert_eq!(refused(Method::POST, lease, version, "{}").await, wanted, "{version:?}");
    }
    assert_eq!(refused(Method::GET, "/teach/study", Version::HTTP_11, "").await, "", "nothing is left unread");
}

#[tokio::test]
async fn this_machine_is_no_exception_where_others_come() {
    let request = async |settings: WebSettings, headers: &[(&str, &str)], old: bool| {
        let server = Server::with(settings, TeacherMode::Human).await;
        let mut request = axum::http::Request::get("/api/runs").header("host", "127.0.0.1:8642");
        if old {
            request = request.version(axum::http::Version::HTTP_10);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        server.request(request.body(Body::empty()).unwrap()).await.status
    };
    let plain = WebSettings::default;
    let token = || WebSettings { access_token: Some(TOKEN.to_owned()), ..WebSettings::default() };
    assert_eq!(request(plain(), &[], false).await, StatusCode::OK);
    assert_eq!(request(plain(), &[("connection", "close")], false).await, StatusCode::OK, "a program's request");
    assert_eq!(request(plain(), &[("referer", "http://127.0.0.1:8642/runs")], false).await, StatusCode::OK);
    let link = [("referer", "http://wiki.example/"), ("sec-fetch-site", "cross-site")];
    assert_eq!(request(plain(), &link, false).await, StatusCode::OK, "a link on another site's page");
    assert_eq!(request(token(), &[], false).await, StatusCode::UNAUTHORIZED);
    assert_eq!(request(WebSettings { trust_proxy: true, ..token() }, &[], false).await, StatusCode::UNAUTHORIZED);
    assert_eq!(request(plain(), &[], true).await, StatusCode::FORBIDDEN, "nginx up to 1.29.6, as it is by default");
    let browser = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)");
    for kept in ["keep-alive", "Keep-Alive"] {
        let direct = [browser, ("sec-fetch-mode", "navigate"), ("connection", kept)];
        assert_eq!(request(plain(), &direct, false).await, StatusCode::OK, "a browser that came directly");
    }
    let powershell = [("user-agent", "Mozilla/5.0 (Windows NT 10.0; en-GB) PowerShell/7.4.1")];
    assert_eq!(request(plain(), &powershell, false).await, StatusCode::OK, "a program's request");
    for headers in [
        &[("via", "1.1 proxy")][..],
        &[("x-real-ip", "10.0.0.9")],
        &[("x-forwarded-proto", "https")],
        &[("cf-connecting-ip", "10.0.0.9")],
        &[("referer", "https://iliad.example/runs"), ("sec-fetch-site", "same-origin")],
        &[("connection", "close"), browser],
        // nginx from 1.29.7 on, as it is by default: the browser's `Connection` is gone.
        &[browser],
        &[("sec-fetch-mode", "navigate")],
    ] {
        assert_eq!(request(plain(), headers, false).await, StatusCode::FORBIDDEN, "{headers:?}");
    }
}

#[tokio::test]
async fn the_proxies_settings_can_be_read_on_the_server() {
    let server = Server::new().await;
    let page = server.page("/docs/configuration", "").await;
    for file in ["/docs/deploy/nginx.conf", "/docs/deploy/Caddyfile"] {
        assert!(page.text.contains(&format!("href=\"{file}\"")), "{file}");
        let settings = server.get(file, "").await;
        assert_eq!(settings.header("content-type"), "text/plain; charset=utf-8");
        assert!(settings.text.contains("127.0.0.1:8642"), "{file}");
    }
}
