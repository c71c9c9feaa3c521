//! Headers, cookies, the origin of forms, and pages without inline code protect browsers.

use crate::Server;
use crate::authorisation_fixture::{ACCESS_TOKEN, Template, Who, settings};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::store::{Role, Scope};
use iliad::web::WebSettings;
use std::path::Path;

const HTTPS: (&str, &str) = ("x-forwarded-proto", "https");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn behind_tls() -> WebSettings {
    WebSettings { trust_proxy: true, ..settings() }
}

#[tokio::test]
async fn nobody_may_frame_a_page_and_browsers_that_came_over_https_stay_there() {
    let server = Server::with(behind_tls(), TeacherMode::Human).await;
    for path in ["/", "/nothing", "/runs", "/teach/study", "/healthz", "/static/css/base.css", "/api/v1/runs"] {
        let plain = server.get(path, "").await;
        assert_eq!(plain.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(plain.header("strict-transport-security"), "", "{path}: over http it would mean nothing");
        let secure = server.call(Method::GET, path, &[HTTPS], Body::empty()).await;
        assert_eq!(secure.header("strict-transport-security"), "max-age=31536000", "{path}");
    }
    // Without a trusted proxy the header is anybody's.
    let server = Server::with(settings(), TeacherMode::Human).await;
    let claimed = server.call(Method::GET, "/", &[HTTPS], Body::empty()).await;
    assert_eq!(claimed.header("strict-transport-security"), "");
}

#[tokio::test]
async fn over_https_every_cookie_is_this_hosts_alone() {
    let server = Server::with(behind_tls(), TeacherMode::Human).await;
    let entered = format!("token={}&next=/runs", ACCESS_TOKEN.replace(' ', "+"));
    let access = server.call(Method::POST, "/access", &[HTTPS, FORM], entered).await;
    let teacher = server.call(Method::GET, "/teach/study", &[HTTPS, ("accept", "text/html")], Body::empty()).await;
    for (reply, name) in [(&access, "__Host-iliad_access"), (&teacher, "__Host-iliad_teacher")] {
        let set = reply.header("set-cookie");
        assert!(set.starts_with(&format!("{name}=")), "{set}");
        for attribute in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/"] {
            assert!(set.contains(attribute), "{set}");
        }
        assert!(!set.contains("Domain"), "{set}");
    }
    let runs = async |cookie: &str| {
        server.call(Method::GET, "/api/v1/runs", &[HTTPS, ("cookie", cookie)], Body::empty()).await.status
    };
    let cookie = access.cookie("__Host-iliad_access").unwrap();
    assert_eq!(runs(&cookie).await, StatusCode::OK);
    assert_eq!(runs(&cookie.replace("__Host-", "")).await, StatusCode::UNAUTHORIZED, "that one could be planted");
    let left = server.call(Method::POST, "/access/leave", &[HTTPS, ("cookie", &cookie)], Body::empty()).await;
    assert_eq!(left.status, StatusCode::FORBIDDEN, "it does not say where it comes from");
    let head = [HTTPS, ("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let left = server.call(Method::POST, "/access/leave", &head, Body::empty()).await;
    assert_eq!(left.cookie("__Host-iliad_access").as_deref(), Some("__Host-iliad_access="));
}

#[tokio::test]
async fn a_teacher_who_comes_back_over_https_keeps_their_answers_under_the_new_name() {
    let server = Server::with(behind_tls(), TeacherMode::Human).await;
    let old = server.teacher().await;
    let page = [HTTPS, ("accept", "text/html"), ("cookie", old.as_str())];
    let first = server.call(Method::GET, "/teach/study", &page, Body::empty()).await;
    let new = first.cookie("__Host-iliad_teacher").expect("the cookie gets its new name");
    assert_eq!(new, format!("__Host-{old}"), "it stands for the same teacher");
    let head = [HTTPS, ("accept", "text/html"), ("cookie", new.as_str())];
    let again = server.call(Method::GET, "/teach/study", &head, Body::empty()).await;
    assert!(again.headers.get("set-cookie").is_none() && again.text.contains("<textarea"), "{}", again.text);
}

#[tokio::test]
async fn what_steers_by_a_cookie_says_where_it_comes_from() {
    let template = Template::new().await;
    let fixture = template.fixture().await;
    let (_, cookie) = template.header(Who::Account(Role::Researcher)).unwrap();
    let send = async |headers: &[(&str, &str)]| {
        let head = [&[("cookie", cookie), ("host", "iliad.example.org")], headers].concat();
        let mut request = axum::http::Request::post("/api/v1/runs/study/stop");
        for (name, value) in head {
            request = request.header(name, value);
        }
        fixture.server.request(request.body(Body::empty()).unwrap()).await
    };
    for headers in [
        &[][..],
        &[("origin", "null")],
        &[("referer", "https://evil.example/page")],
        &[("origin", "https://evil.example"), ("referer", "https://iliad.example.org/runs")],
        &[("sec-fetch-site", "cross-site"), ("origin", "https://iliad.example.org")],
    ] {
        let reply = send(headers).await;
        assert!(
            reply.status == StatusCode::FORBIDDEN && reply.text.contains("cross-site"),
            "{headers:?}: {}",
            reply.text
        );
    }
    for headers in [
        &[("sec-fetch-site", "same-origin")][..],
        &[("origin", "https://iliad.example.org")],
        &[("referer", "https://iliad.example.org/runs/study")],
    ] {
        let reply = send(headers).await;
        assert!(!reply.text.contains("cross-site"), "{headers:?}");
    }
}

/// The policy forbids inline code, so a page with any would not work; it must not get that far.
#[test]
fn templates_have_no_inline_code() {
    fn look(folder: &Path, seen: &mut usize) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                look(&entry, seen);
                continue;
            }
            // The report is a file that opens without a server.
            if entry.file_name().is_some_and(|name| name == "report.html") {
                continue;
            }
            *seen += 1;
            let text = std::fs::read_to_string(&entry).unwrap();
            for tag in text.split("<script").skip(1).map(|rest| rest.split('>').next().unwrap()) {
                let data = tag.contains("application/json") || tag.contains("importmap");
                assert!(tag.contains("src=") || data, "{}: <script{tag}>", entry.display());
            }
            for inline in [" style=\"", " onclick=", " onload=", " onerror=", " onsubmit=", "javascript:", "<style"] {
                assert!(!text.contains(inline), "{} has {inline}", entry.display());
            }
        }
    }
    let mut seen = 0;
    look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"), &mut seen);
    assert!(seen > 20, "{seen} templates were found");
}

#[tokio::test]
async fn houses_are_for_those_who_may_see_the_pages_that_show_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("house-3")).unwrap();
    std::fs::write(folder.path().join("house-3/1.jpg"), "a photograph").unwrap();
    let template = Template::new().await;
    let pictures = WebSettings { pictures: Some(folder.path().to_owned()), ..settings() };
    let server = template.fixture_with(pictures).await.server;
    for path in ["/nav/houses/house-3/house.json", "/nav/panoramas/house-3", "/nav/panoramas/house-3/1"] {
        let refused = server.get(path, "").await;
        assert_eq!(
            (refused.status, refused.json()["code"].as_str()),
            (StatusCode::FORBIDDEN, Some("no-cookie")),
            "{path}"
        );
        for who in [Who::Visitor, Who::Account(Role::Reviewer), Who::Token(Scope::Teach)] {
            let found = server.call(Method::GET, path, &[template.header(who).unwrap()], Body::empty()).await;
            assert_eq!(found.status, StatusCode::OK, "{path} as {who:?}");
            assert!(found.header("cache-control").starts_with("private"), "{path}: no proxy keeps it for others");
        }
    }
}
