//! The web application as a router, request by request, without a browser. A made-up task family and run stand behind it
//! (tests/support), so that nothing here depends on what an agent learns.

#[path = "support/mod.rs"]
mod support;
#[path = "support/texts.rs"]
mod texts;

#[path = "web/access.rs"]
mod access;
#[path = "web/accounts.rs"]
mod accounts;
#[path = "web/authorisation.rs"]
mod authorisation;
#[path = "web/authorisation_fixture.rs"]
mod authorisation_fixture;
#[path = "web/authorisation_rules.rs"]
mod authorisation_rules;
#[path = "web/comparison.rs"]
mod comparison;
#[path = "web/comprehension.rs"]
mod comprehension;
#[path = "web/data_in.rs"]
mod data_in;
#[path = "web/describing.rs"]
mod describing;
#[path = "web/descriptions_in.rs"]
mod descriptions_in;
#[path = "web/examples.rs"]
mod examples;
#[path = "web/export.rs"]
mod export;
#[path = "web/kept_runs.rs"]
mod kept_runs;
#[path = "web/media.rs"]
mod media;
#[path = "web/network.rs"]
mod network;
#[path = "web/pages.rs"]
mod pages;
#[path = "web/poison.rs"]
mod poison;
#[path = "support/postgres.rs"]
mod postgres;
#[path = "web/protection.rs"]
mod protection;
#[path = "web/rendered.rs"]
mod rendered;
#[path = "web/review.rs"]
mod review;
#[path = "web/runs.rs"]
mod runs;
#[path = "web/scripts.rs"]
mod scripts;
#[path = "web/size.rs"]
mod size;
#[path = "web/studies.rs"]
mod studies;
#[path = "web/teaching.rs"]
mod teaching;
#[path = "web/undo.rs"]
mod undo;
#[path = "web/v1.rs"]
mod v1;
#[path = "web/v1_exports.rs"]
mod v1_exports;
#[path = "web/v1_streams.rs"]
mod v1_streams;
#[path = "web/visitors.rs"]
mod visitors;
#[path = "web/watching.rs"]
mod watching;
#[path = "web/webhooks.rs"]
mod webhooks;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::run::RunHandle;
use iliad::store::Store;
use iliad::web::{AppState, WebSettings, router};
use serde_json::Value;
use tower::ServiceExt;

/// A server of one test: its own database, one run called `study`.
pub struct Server {
    pub state: AppState,
    pub run: RunHandle,
    pub router: Router,
    _folder: tempfile::TempDir,
    _database: Option<postgres::Database>,
}

/// The parts of a response that tests read.
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// `name=value` of the cookie that was set.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let all = self.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
        all.filter_map(|value| value.split(';').next())
            .find(|pair| pair.split('=').next() == Some(name))
            .map(str::to_owned)
    }
}

impl Server {
    pub async fn with(settings: WebSettings, mode: TeacherMode) -> Server {
        Server::on(postgres::Database::new().await, settings, mode).await
    }

    /// A server whose rows are in a file whatever the environment names, for tests that write into it.
    pub async fn in_a_file(settings: WebSettings, mode: TeacherMode) -> Server {
        Server::on(None, settings, mode).await
    }

    async fn on(database: Option<postgres::Database>, settings: WebSettings, mode: TeacherMode) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let store = match &database {
            None => Store::open(&folder.path().join("iliad.sqlite")).await.unwrap(),
            Some(database) => Store::connect(&database.address()).await.unwrap(),
        };
        let state = support::app_state(store.clone(), settings);
        let run = support::start(&store, "study", mode).await;
        state.runs.add(run.clone());
        Server { router: router(state.clone()), state, run, _folder: folder, _database: database }
    }

    pub async fn new() -> Server {
        Server::with(WebSettings::default(), TeacherMode::Human).await
    }

    /// From here on runs can be started.
    pub fn launch_with(&mut self, launcher: std::sync::Arc<dyn iliad::launch::Launcher>) {
        self.state.launcher = Some(launcher);
        self.router = router(self.state.clone());
    }

    pub async fn request(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 32 << 20).await.unwrap();
        Reply { status: parts.status, headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// A request of a browser on this machine.
    pub async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Reply {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:8080");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.request(request.body(body.into()).unwrap()).await
    }

    pub async fn page(&self, path: &str, cookie: &str) -> Reply {
        self.call(Method::GET, path, &[("accept", "text/html"), ("cookie", cookie)], Body::empty()).await
    }

    pub async fn get(&self, path: &str, cookie: &str) -> Reply {
        self.call(Method::GET, path, &[("cookie", cookie)], Body::empty()).await
    }

    pub async fn post(&self, path: &str, cookie: &str, body: &Value) -> Reply {
        let headers = [("content-type", "application/json"), ("cookie", cookie), ("sec-fetch-site", "same-origin")];
        self.call(Method::POST, path, &headers, body.to_string()).await
    }

    pub async fn form(&self, path: &str, cookie: &str, body: &str) -> Reply {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "text/html"),
            ("cookie", cookie),
            ("sec-fetch-site", "same-origin"),
        ];
        self.call(Method::POST, path, &headers, body.to_owned()).await
    }

    /// A teacher who has read the guide: the cookie.
    pub async fn teacher(&self) -> String {
        let first = self.page("/teach/study", "").await;
        let cookie = first.cookie("iliad_teacher").expect("a new visitor gets a cookie");
        let seen = self.form("/teach/study/guide", &cookie, "").await;
        assert_eq!(seen.status, StatusCode::SEE_OTHER);
        cookie
    }

    /// An execution leased to the teacher.
    pub async fn lease(&self, cookie: &str, except: &[i64]) -> Value {
        let reply = self.post("/api/runs/study/lease", cookie, &serde_json::json!({ "except": except })).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        reply.json()
    }
}

/// The value of an attribute of the first element that contains `near`.
pub fn attribute(html: &str, near: &str, name: &str) -> String {
    let at = html.find(near).unwrap_or_else(|| panic!("{near} is not in the page"));
    let element = &html[html[..at].rfind('<').unwrap()..];
    let element = &element[..element.find('>').unwrap()];
    let value = element.split(&format!("{name}=\"")).nth(1).unwrap_or_else(|| panic!("no {name} in {element}"));
    value[..value.find('"').unwrap()].to_owned()
}
