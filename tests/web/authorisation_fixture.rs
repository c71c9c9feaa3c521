//! A data folder with everything that addresses can name, and everybody who can ask for it.

use crate::{Server, support};
use axum::http::Method;
use iliad::config::run::TeacherMode;
use iliad::ids::{AccountId, RunId, StudyId};
use iliad::run::{RunHandle, Status};
use iliad::store::{Joined, Role, Scope, Store, StudyArm};
use iliad::study::{StudySettings, StudyState};
use iliad::web::{WebSettings, router};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection, Row, SqliteConnection};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The access token of the server.
pub const ACCESS_TOKEN: &str = "correct horse battery staple";

/// A link that makes an account.
pub const INVITE: &str = "0123456789abcdef0123456789abcdef";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Somebody without any cookie or token.
    Nobody,
    /// The visitor whose the executions and answers are that the addresses name.
    Visitor,
    /// Another visitor.
    OtherVisitor,
    /// Somebody who is signed in.
    Account(Role),
    /// A program with the access token.
    AccessToken,
    /// A program with a token of one scope.
    Token(Scope),
    /// A program with a token that was revoked.
    Revoked,
}

impl Who {
    /// Everybody.
    pub fn all() -> Vec<Who> {
        let mut all = vec![Who::Nobody, Who::Visitor, Who::OtherVisitor, Who::AccessToken, Who::Revoked];
        all.extend(Role::ALL.map(Who::Account));
        all.extend(Scope::ALL.map(Who::Token));
        all
    }
}

/// The data folder's database after everything was made, and the keys of what is in it.
pub struct Template {
    database: Vec<u8>,
    headers: Vec<(Who, (&'static str, String))>,
    /// By the names in the addresses of the router.
    keys: BTreeMap<&'static str, String>,
}

/// The application over a copy of the template.
pub struct Fixture {
    pub server: Server,
    connection: SqliteConnection,
    version: i64,
    /// The rows of every table, except what is noted of every request.
    rows: BTreeMap<String, Vec<String>>,
}

/// A run whose trainer does nothing, so that nothing but requests changes the database. Commands to it fail.
fn idle_run(id: &str) -> RunHandle {
    let status =
        Status { simulated_available: false, update: 1, episodes: 1, ..support::status(id, TeacherMode::Human) };
    let (commands, _) = std::sync::mpsc::channel();
    let (events, _) = tokio::sync::broadcast::channel(16);
    let (sender, status) = tokio::sync::watch::channel(status);
    // A trainer without a sender has come to grief.
    std::mem::forget(sender);
    RunHandle { id: id.into(), family: "pairs", commands, events, status }
}

async fn serve(folder: tempfile::TempDir, settings: WebSettings) -> Server {
    let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
    let mut state = support::app_state(store, settings);
    let builtin = iliad::registry::Registry::builtin().families().iter().copied();
    let families: Vec<_> = support::families().iter().copied().chain(builtin).collect();
    state.families = Box::leak(families.into_boxed_slice());
    let run = idle_run("study");
    state.runs.add(run.clone());
    state.runs.add(idle_run("second"));
    Server { router: router(state.clone()), state, run, _folder: folder, _database: None }
}

/// Settings of a server that others than this machine reach.
pub fn settings() -> WebSettings {
    WebSettings {
        loopback: false,
        access_token: Some(ACCESS_TOKEN.to_owned()),
        rate_limits: false,
        ..WebSettings::default()
    }
}

async fn account(store: &Store, name: &str, role: Role) -> AccountId {
    let link = format!("link of {name}");
    if store.has_accounts().await.unwrap() {
        store.invite(&link, role, None, DAY).await.unwrap();
    } else {
        assert_eq!(role, Role::Owner, "only an owner can be the first");
        store.invite_first_owner(&link).await.unwrap();
    }
    let Joined::Account(id) = store.join(&link, name, "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA").await.unwrap()
    else {
        panic!("{name} has no account");
    };
    id
}

/// A described execution of a run, as `(execution, answer)`.
async fn described(server: &Server, cookie: &str, run: &str) -> (i64, i64) {
    let leased = server.post(&format!("/api/runs/{run}/lease"), cookie, &json!({})).await.json();
    let body = json!({
        "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": "add an e",
    });
    let stored = server.post(&format!("/api/runs/{run}/answers"), cookie, &body).await;
    let answer = stored.json()["answer"].as_i64().unwrap_or_else(|| panic!("{}", stored.text));
    (leased["execution"].as_i64().unwrap(), answer)
}

impl Template {
    /// Makes everything once.
    pub async fn new() -> Template {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("iliad.sqlite");
        let server = serve(folder, settings()).await;
        let store = server.state.store.clone();
        for run in ["study", "second"] {
            store.create_run(&support::run_row(run, TeacherMode::Human)).await.unwrap();
            let new: Vec<_> = (1..=12).map(|episode| support::execution(7, episode, 0)).collect();
            store.offer(&RunId::from(run), &new).await.unwrap();
        }
        let study = StudyId::from("words");
        let arms = [StudyArm { run: "second".into(), name: "descriptions".into() }];
        let about = StudySettings { title: "Words of people".into(), goal: 5, ..StudySettings::default() };
        store.create_study(&study, &about, &arms, "secret", "a test").await.unwrap();
        store.set_study_state(&study, StudyState::Open, "a test").await.unwrap();

        let mut headers = Vec::new();
        let mut keys = BTreeMap::from([("run", "study".to_owned()), ("study", "words".to_owned())]);
        let (mine, other) = (server.teacher().await, server.teacher().await);
        let mut key = |name, value: i64| keys.insert(name, value.to_string());
        let (execution, answer) = described(&server, &mine, "study").await;
        key("answered execution", execution);
        key("answer", answer);
        // Out of any hands, so that whoever asks gets it.
        described(&server, &other, "study").await;
        let leased = server.post("/api/runs/study/lease", &mine, &json!({})).await.json();
        key("execution", leased["execution"].as_i64().unwrap());
        for cookie in [&mine, &other] {
            server.page("/study/words", cookie).await;
            assert_eq!(server.form("/study/words/join", cookie, "").await.status, 303);
            assert_eq!(server.form("/study/words/begin", cookie, "").await.status, 303);
        }
        let (execution, answer) = described(&server, &mine, "second").await;
        key("study execution", execution);
        key("study answer", answer);
        headers.push((Who::Visitor, ("cookie", mine)));
        headers.push((Who::OtherVisitor, ("cookie", other)));

        for (number, role) in Role::ALL.into_iter().enumerate() {
            let id = account(&store, role.as_str(), role).await;
            let token = format!("{number:032x}");
            store.open_session(id, &token, "Firefox on Linux").await.unwrap();
            headers.push((Who::Account(role), ("cookie", format!("iliad_session={token}"))));
        }
        let spare = account(&store, "spare", Role::Teacher).await;
        store.open_session(spare, &"e".repeat(32), "Firefox on Linux").await.unwrap();
        key("account", spare.0);
        key("session", store.sessions_of(spare).await.unwrap()[0].id.0);
        key("invite", store.invite(INVITE, Role::Teacher, None, DAY).await.unwrap().0);
        for (number, scope) in Scope::ALL.into_iter().enumerate() {
            let token = format!("iliad_{number:032x}");
            store.create_api_token(&token, scope.as_str(), &[scope], "a test", None).await.unwrap();
            headers.push((Who::Token(scope), ("authorization", format!("Bearer {token}"))));
        }
        let revoked = format!("iliad_{}", "f".repeat(32));
        let id = store.create_api_token(&revoked, "revoked", &Scope::ALL, "a test", None).await.unwrap();
        store.revoke_api_token(id).await.unwrap();
        headers.push((Who::Revoked, ("authorization", format!("Bearer {revoked}"))));
        let token = format!("iliad_{}", "e".repeat(32));
        let id = store.create_api_token(&token, "spare", &[Scope::Read], "a test", None).await.unwrap();
        key("token", id.0);
        headers.push((Who::AccessToken, ("authorization", format!("Bearer {ACCESS_TOKEN}"))));
        store.close().await;
        Template { database: std::fs::read(file).unwrap(), headers, keys }
    }

    /// The header that says who asks.
    pub fn header(&self, who: Who) -> Option<(&'static str, &str)> {
        self.headers.iter().find(|(known, _)| *known == who).map(|(_, (name, value))| (*name, value.as_str()))
    }

    /// The key of a thing, by its name in the router's addresses.
    pub fn key(&self, name: &str) -> &str {
        self.keys.get(name).unwrap_or_else(|| panic!("there is no {name} in the fixture"))
    }

    /// An address of the router with the keys of things that exist, but for the names that `made_up` says of.
    pub fn address(&self, route: &str, made_up: impl Fn(&str) -> bool) -> String {
        let of_study = route.starts_with("/study/") || route.starts_with("/studies/");
        let part = |name: &str| match name {
            "answer" | "execution" if of_study => self.key(&format!("study {name}")).to_owned(),
            "token" if !route.starts_with("/tokens/") => INVITE.to_owned(),
            "number" | "message" => "1".to_owned(),
            "key" => "1".to_owned(),
            "name" if route.contains("checkpoints") => "best.safetensors".to_owned(),
            "name" | "house" => "house-3".to_owned(),
            "viewpoint" => "1".to_owned(),
            "file" => "descriptions.jsonl".to_owned(),
            "*path" => "css/site.css".to_owned(),
            "*page" => "export".to_owned(),
            name => self.key(name).to_owned(),
        };
        let missing = |name: &str| match name {
            "run" | "study" | "name" | "house" | "file" | "*path" | "*page" => "nothing".to_owned(),
            "token" if !route.starts_with("/tokens/") => "0".repeat(32),
            _ => "999999".to_owned(),
        };
        let parts = route.split('/').map(|segment| {
            let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            name.map_or_else(|| segment.to_owned(), |name| if made_up(name) { missing(name) } else { part(name) })
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// A body that the address takes, as its content type and text.
    pub fn body(&self, method: &Method, route: &str) -> (&'static str, String) {
        const FORM: &str = "application/x-www-form-urlencoded";
        if *method == Method::GET {
            return (FORM, String::new());
        }
        let answer = |execution: &str| {
            json!({
                "client_key": "a key", "kind": "described", "text": "it took letters away",
                "execution": self.key(execution).parse::<i64>().unwrap(),
            })
        };
        let json: Value = match route.strip_prefix("/api/v1").or_else(|| route.strip_prefix("/api")) {
            Some("/runs/{run}/answers") => answer("execution"),
            Some("/runs/{run}/answers/{answer}/correct") => answer("answered execution"),
            Some(path) if path.ends_with("/draft") => json!({ "client_key": "a key", "version": 1, "text": "half a" }),
            Some(path) if path.ends_with("/preview") => json!({ "text": "add an e" }),
            Some(_) => json!({}),
            None => {
                let execution = match route {
                    "/teach/{run}" => self.key("execution"),
                    "/teach/{run}/answers/{answer}" => self.key("answered execution"),
                    _ => return (FORM, String::new()),
                };
                return (FORM, format!("execution={execution}&client_key=k&kind=described&text=it+took+letters+away"));
            }
        };
        ("application/json", json.to_string())
    }

    /// The application over a copy of the data.
    pub async fn fixture(&self) -> Fixture {
        self.fixture_with(settings()).await
    }

    /// As [`Template::fixture`], with other settings.
    pub async fn fixture_with(&self, settings: WebSettings) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("iliad.sqlite");
        std::fs::write(&file, &self.database).unwrap();
        let server = serve(folder, settings).await;
        let mut connection = connect(&file).await;
        let (version, rows) = (version(&mut connection).await, rows(&mut connection).await);
        Fixture { server, connection, version, rows }
    }
}

async fn connect(file: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(file)).await.unwrap()
}

/// A number that changes when another connection has changed the database.
async fn version(connection: &mut SqliteConnection) -> i64 {
    sqlx::query_scalar("PRAGMA data_version").fetch_one(connection).await.unwrap()
}

/// All rows, as text. When a session, a token or a person was there last is noted of every request, and left out.
async fn rows(connection: &mut SqliteConnection) -> BTreeMap<String, Vec<String>> {
    const NOTED: [&str; 4] =
        ["account_sessions.seen_at", "account_sessions.expires_at", "api_tokens.used_at", "participants.seen_at"];
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    let mut all = BTreeMap::new();
    for table in tables.into_iter().filter(|table| !table.starts_with("sqlite_")) {
        let columns: Vec<SqliteRow> = sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA table_info({table})")))
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        let columns = columns.iter().map(|column| column.get::<String, _>("name"));
        let columns = columns.filter(|column| !NOTED.contains(&format!("{table}.{column}").as_str()));
        let listed: Vec<String> = columns.map(|column| format!("quote({column})")).collect();
        let sql = format!("SELECT {} FROM {table} ORDER BY 1", listed.join(" || ',' || "));
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_all(&mut *connection).await.unwrap();
        all.insert(table, rows);
    }
    all
}

impl Fixture {
    /// The tables that have changed since this was asked last.
    pub async fn changed(&mut self) -> Vec<String> {
        let now = version(&mut self.connection).await;
        if now == self.version {
            return Vec::new();
        }
        let rows = rows(&mut self.connection).await;
        let changed = rows.iter().filter(|(table, rows)| self.rows.get(*table) != Some(*rows));
        let changed = changed.map(|(table, _)| table.clone()).collect();
        (self.version, self.rows) = (now, rows);
        changed
    }
}
