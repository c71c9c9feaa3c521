//! Bodies of requests through the whole router. The first byte chooses the address, the second the type of the content.

use crate::support;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::store::Store;
use iliad::web::{WebSettings, router};
use std::sync::LazyLock;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Pieces of bodies.
pub const MEMBERS: &[&str] = &[
    "client_key",
    "execution",
    "kind",
    "described",
    "skipped",
    "nothing_changed",
    "text",
    "shown_at",
    "active_ms",
    "idle_ms",
    "confirmed",
    "fulfilled",
    "first_text",
    "demonstration",
    "rating",
    "show",
    "except",
    "version",
    "request",
    "start",
    "words",
    "mode",
    "simulated",
    "mixed",
    "share",
    "preset",
    "seed",
    "set",
    "executions",
    "pairs",
    "in",
    "out",
    "people",
    "update",
    "descriptions",
    "validation",
    "right",
    "of",
    "seconds",
    "name",
    "notes",
    "tags",
    "archived",
    "title",
    "arms",
    "token",
    "password",
    "episodes",
    "do",
    "check",
    "run",
    "file",
    "null",
    "true",
    "false",
    "-1",
    "0",
    "1e999",
    "18446744073709551616",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "&",
    "=",
    "%00",
    "%ff",
    "%E2%80%AE",
    "\\ud800",
    "\r\n--edge\r\n",
    "--edge--",
    "content-disposition: form-data; name=\"file\"; filename=\"x.jsonl\"\r\n\r\n",
];

/// The addresses that take bodies, but for those that end the run behind them.
const ADDRESSES: &[(Method, &str)] = &[
    (Method::POST, "/teach/study"),
    (Method::POST, "/teach/study/guide"),
    (Method::POST, "/teach/study/answers/1"),
    (Method::POST, "/teach/study/answers/1/undo"),
    (Method::POST, "/api/v1/runs/study/lease"),
    (Method::POST, "/api/v1/runs/study/answers"),
    (Method::POST, "/api/v1/runs/study/answers/1/correct"),
    (Method::POST, "/api/v1/runs/study/answers/1/undo"),
    (Method::PUT, "/api/v1/runs/study/executions/1/draft"),
    (Method::POST, "/api/v1/runs/study/executions/1/renew"),
    (Method::POST, "/api/v1/runs/study/executions/1/reveal"),
    (Method::POST, "/api/v1/runs/study/executions/1/preview"),
    (Method::POST, "/api/v1/runs/study/try"),
    (Method::POST, "/api/v1/runs/study/teacher"),
    (Method::POST, "/api/v1/runs/study/review"),
    (Method::PATCH, "/api/v1/runs/study"),
    (Method::POST, "/api/v1/runs"),
    (Method::POST, "/api/v1/outside-runs"),
    (Method::POST, "/api/v1/runs/study/executions"),
    (Method::POST, "/api/v1/runs/study/updates"),
    (Method::POST, "/runs/new/check"),
    (Method::POST, "/runs/new/file"),
    (Method::POST, "/runs/study/label"),
    (Method::POST, "/import/episodes"),
    (Method::POST, "/corpora"),
    (Method::POST, "/studies"),
    (Method::POST, "/studies/settings"),
    (Method::POST, "/studies/preview"),
    (Method::POST, "/sign-in"),
    (Method::POST, "/access"),
    (Method::POST, "/tokens"),
];

const KINDS: [&str; 4] =
    ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=edge", "text/plain"];

/// A server with a run behind it, and a teacher who holds the first execution.
struct Server {
    runtime: Runtime,
    router: Router,
    cookie: String,
    _folder: tempfile::TempDir,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (router, cookie) = runtime.block_on(async {
        let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
        let settings = WebSettings { rate_limits: false, ..WebSettings::default() };
        let state = support::app_state(store.clone(), settings);
        state.runs.add(support::start(&store, "study", TeacherMode::Human).await);
        let router = router(state);
        let page = Request::get("/teach/study").header("host", "127.0.0.1:8080").body(Body::empty()).unwrap();
        let page = router.clone().oneshot(page).await.unwrap();
        let cookies = page.headers().get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.filter_map(|value| value.split(';').next()).collect::<Vec<_>>();
        (router, pairs.join("; "))
    });
    Server { runtime, router, cookie, _folder: folder }
});

/// Sends a body. The server answers in words, and never that something broke.
pub fn bodies(data: &[u8]) {
    let [address, kind, body @ ..] = data else { return };
    let (method, path) = &ADDRESSES[usize::from(*address) % ADDRESSES.len()];
    let kind = KINDS[usize::from(*kind) % KINDS.len()];
    let server = &*SERVER;
    server.runtime.block_on(async {
        let request = Request::builder()
            .method(method.clone())
            .uri(*path)
            .header("host", "127.0.0.1:8080")
            .header("cookie", &server.cookie)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", kind);
        let response = server.router.clone().oneshot(request.body(Body::from(body.to_vec())).unwrap()).await.unwrap();
        let status = response.status();
        let text = to_bytes(response.into_body(), 64 << 20).await.unwrap();
        assert!(
            !status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE,
            "{method} {path} {kind}: {status} {}",
            String::from_utf8_lossy(&text)
        );
    });
}
