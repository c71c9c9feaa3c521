//! A store in a temporary folder, a clock turned by hand, and short ways to make rows.

use crate::postgres::Database;
use iliad::config::run::TeacherMode;
use iliad::ids::{AnswerId, ExecutionId, RunId, TeacherId};
use iliad::run::{EpisodeRow, Source};
use iliad::store::{AnswerKind, Leased, NewAnswer, NewExecution, Run, Store};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

/// The run most tests use.
pub static RUN: LazyLock<RunId> = LazyLock::new(|| "run-1".into());
/// A lease's length.
pub const TTL: Duration = Duration::seconds(60);

/// A clock that stands still unless turned.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    pub fn now(&self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap()
            + Duration::milliseconds(self.0.load(Ordering::SeqCst))
    }

    pub fn turn(&self, by: Duration) {
        self.0.fetch_add(by.whole_milliseconds() as i64, Ordering::SeqCst);
    }
}

/// A store, its folder and its clock. The store is a file, or a database of PostgreSQL where a server is named.
pub struct Bench {
    pub store: Store,
    pub clock: Clock,
    pub folder: TempDir,
    pub database: Option<Database>,
}

impl Bench {
    /// A store with one run and nothing in it.
    pub async fn new() -> Bench {
        Bench::on(Database::new().await).await
    }

    /// Likewise, and always a file of SQLite.
    pub async fn in_a_file() -> Bench {
        Bench::on(None).await
    }

    async fn on(database: Option<Database>) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::default();
        let store = open_with_clocks(folder.path(), database.as_ref(), &clock, &clock).await;
        store.create_run(&run(&RUN)).await.unwrap();
        Bench { store, clock, folder, database }
    }

    /// The store once more, as another process would open it.
    pub async fn open_again(&self) -> Store {
        open_with_clocks(self.folder.path(), self.database.as_ref(), &self.clock, &self.clock).await
    }

    pub fn file(&self) -> PathBuf {
        file(self.folder.path())
    }

    /// Offers one execution per (episode, policy update).
    pub async fn offer(&self, episodes: impl IntoIterator<Item = (u64, u64)>) {
        let new: Vec<NewExecution> = episodes.into_iter().map(|(episode, update)| execution(episode, update)).collect();
        self.store.offer(&RUN, &new).await.unwrap();
    }

    pub async fn teacher(&self, name: &str) -> TeacherId {
        self.store.teacher(name).await.unwrap().id
    }

    pub async fn lease(&self, teacher: TeacherId) -> Option<Leased> {
        self.store.lease(&RUN, teacher, &[], TTL).await.unwrap()
    }

    /// Leases and describes; the answer's key.
    pub async fn describe(&self, teacher: TeacherId, text: &str) -> AnswerId {
        let leased = self.lease(teacher).await.expect("something to describe");
        self.store.answer(&answer(leased.execution, teacher, text)).await.unwrap().answer
    }
}

/// Opens the database, or the file in the folder where there is none. The clocks are the time of day and that of leases.
pub async fn open_with_clocks(folder: &Path, database: Option<&Database>, day: &Clock, leases: &Clock) -> Store {
    let (day, leases) = (day.clone(), leases.clone());
    let (day, leases) = (move || day.now(), move || leases.now());
    match database {
        None => Store::open_with_clocks(&file(folder), day, leases).await.unwrap(),
        Some(database) => Store::connect_with_clocks(&database.address(), day, leases).await.unwrap(),
    }
}

/// The database file in a folder.
pub fn file(folder: &Path) -> PathBuf {
    folder.join("iliad.sqlite")
}

pub fn run(id: &str) -> Run {
    Run {
        id: id.into(),
        family: "regex".into(),
        preset: "tiny".into(),
        config: json!({"preset": "tiny", "learning_rate": 0.001}),
        seed: u64::MAX - 1,
        teacher: TeacherMode::Human,
        active: true,
        created_at: OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap(),
    }
}

pub fn execution(episode: u64, update: u64) -> NewExecution {
    NewExecution {
        episode,
        update,
        request: format!("request {episode}"),
        trace: json!({"tokens": [episode, 2, 3], "words": ["embolden"]}),
        view: json!({"pairs": [["embolden", format!("emboldec{episode}")]]}),
        summary: format!("()(n)()@c{episode}"),
        success: episode.is_multiple_of(2),
        wanted: 1,
        reference: None,
    }
}

/// A description under a fresh key.
pub fn answer(execution: ExecutionId, teacher: TeacherId, text: &str) -> NewAnswer {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    NewAnswer {
        client_key: format!("key-{}", NEXT.fetch_add(1, Ordering::SeqCst)),
        execution,
        teacher,
        kind: AnswerKind::Described,
        text: text.into(),
        response: iliad::store::Response::Text,
        shown_at: None,
        active_ms: None,
        ..NewAnswer::default()
    }
}

pub fn simulated(episode: u64, update: Option<u64>, description: &str) -> EpisodeRow {
    EpisodeRow {
        episode,
        update,
        request: format!("request {episode}"),
        view: json!({"pairs": [["a", "b"]]}),
        summary: "()(a)()@b".into(),
        source: Some(Source::Simulated),
        description: description.into(),
        candidates: vec![("replace a with b".into(), true), ("delete a".into(), false)],
        success: true,
        reference: None,
    }
}

/// Text that careless code breaks.
pub const AWKWARD: &[&str] = &[
    "",
    " leading, trailing and  double blanks ",
    "line one\nline two\r\nline three\rstill",
    "quotes \" and 'single' and \\ backslash \\n and / slash",
    "=1+2 +3 -4 @SUM(A1) \tTab",
    "ünïcödé, 中文, עברית, \u{202e}right to left, e\u{301} ≠ é",
    "👩🏽‍🚀🏳️‍🌈 and a lone \u{fe0f}",
    "nul \0 inside",
    "NULL",
    "null",
    "'; DROP TABLE answers; --",
    "<script>alert(1)</script>",
    "\u{feff}byte order mark",
    "\u{10ffff}",
];
