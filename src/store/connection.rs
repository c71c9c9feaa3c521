//! The two pools of connections, time, and the small conversions every repository needs.

use super::error::{Result, StoreError, unreadable};
use super::opening::{self, LOG};
use super::teachers::Visitors;
use serde::{Serialize, de::DeserializeOwned};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, Transaction};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// How long a call waits for its turn at the one writer connection.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// How long closing waits for what is under way.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Steps of SQLite's machine between two counts of them: often enough to measure a request, too rarely to slow it.
const STEPS: u16 = 100;

/// Where a time is read.
pub(super) type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    writer: SqlitePool,
    readers: SqlitePool,
    /// The time of day, for time stamps.
    clock: Clock,
    /// What leases go by.
    steady: Clock,
    visitors: Arc<Visitors>,
    steps: Arc<AtomicU64>,
    /// The folder of a copy that is read in the file's place, removed with the last store that reads it.
    _copy: Option<Arc<tempfile::TempDir>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("file", &self.writer.connect_options().get_filename()).finish_non_exhaustive()
    }
}

/// What a power cut may take.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// Nothing: the commit returns when the data are on disk. For what people typed and what must agree with it.
    Full,
    /// The last moments (a crash of the process alone takes nothing). For what the trainer can tell again.
    Normal,
}

/// The one writer connection, held.
pub(super) struct Writer(PoolConnection<Sqlite>);

impl Writer {
    /// A transaction that has the write lock from its first statement: it never has to be tried again half-way.
    /// Dropped without commit, it is rolled back.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_, Sqlite>> {
        Ok(self.0.begin_with("BEGIN IMMEDIATE").await?)
    }
}

impl Store {
    /// Checks every page and index of the file (a second per gigabyte or so).
    pub async fn check(&self) -> Result<()> {
        let mut reader = self.readers.acquire().await?;
        opening::quick_check(&mut reader).await
    }

    /// Waits for what is under way, brings everything into the one file and closes it, so that no side files stay (but
    /// for another process that has the file open). Later calls fail.
    pub async fn close(&self) {
        let closing = async {
            self.readers.close().await;
            if let Ok(mut writer) = self.writer.acquire().await {
                // Another process that reads does not hold up the end: what it keeps in the log stays there, durably.
                for pragma in ["PRAGMA busy_timeout = 500", "PRAGMA wal_checkpoint(TRUNCATE)"] {
                    if let Err(error) = sqlx::query(sqlx::AssertSqlSafe(pragma)).execute(&mut *writer).await {
                        tracing::debug!(%error, "the log stays beside the database");
                    }
                }
            }
            self.writer.close().await;
        };
        if tokio::time::timeout(LAST_CALLS, closing).await.is_err() {
            tracing::warn!(
                "the database was busy to the end; the newest rows are in {}{LOG}, and are taken up at the next start",
                self.file().display()
            );
        }
    }

    /// The database file.
    pub fn file(&self) -> std::path::PathBuf {
        self.writer.connect_options().get_filename().to_owned()
    }

    /// How many steps SQLite's machine took for this store so far, rounded: what statements cost, whatever the speed
    /// of the computer.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The same store, which keeps the folder of its copy as long as it lives.
    pub(super) fn with_copy(self, folder: tempfile::TempDir) -> Store {
        Store { _copy: Some(Arc::new(folder)), ..self }
    }

    /// The writer connection, when it is this caller's turn.
    pub(super) async fn writer(&self, durability: Durability) -> Result<Writer> {
        // Has to be said outside a transaction, and each time: the connection is shared.
        let pragma = match durability {
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Normal => "PRAGMA synchronous = NORMAL",
        };
        let mut connection = self.writer.acquire().await?;
        sqlx::query(pragma).execute(&mut *connection).await?;
        Ok(Writer(connection))
    }

    /// The readers. They never wait for the writer, nor it for them.
    pub(super) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// A connection that is no pool's reader, for a statement that reads all of the file.
    pub(super) async fn single(&self) -> Result<PoolConnection<Sqlite>> {
        Ok(self.writer.acquire().await?)
    }

    /// Now, as it is stored.
    pub(super) fn now(&self) -> i64 {
        to_nanos((self.clock)())
    }

    /// Now, as leases have it.
    pub(super) fn steady_now(&self) -> i64 {
        to_nanos((self.steady)())
    }

    /// What is remembered of visitors in this process.
    pub(super) fn visitors(&self) -> &Visitors {
        &self.visitors
    }

    /// The writer's pool, for tests that bring it into trouble.
    #[cfg(test)]
    pub(super) fn writer_pool(&self) -> &SqlitePool {
        &self.writer
    }
}

/// A clock that begins at the time of day and from then on only goes forward, whatever the time of day does.
pub(super) fn forward_only() -> impl Fn() -> OffsetDateTime + Send + Sync + 'static {
    let begin = OffsetDateTime::now_utc();
    let passed = Mutex::new((Instant::now(), Duration::ZERO));
    move || {
        let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        // Some virtual machines let even the steady clock go back: what had passed before stays passed.
        let (before, now) = (passed.0, Instant::now());
        passed.0 = now;
        passed.1 += now.saturating_duration_since(before);
        begin + passed.1
    }
}

/// Opens the pools of a file that was looked at, and brings its tables up to date.
pub(super) async fn connect(options: SqliteConnectOptions, clock: Clock, steady: Clock) -> Result<Store> {
    let steps = Arc::new(AtomicU64::new(0));
    let writing = options
        .clone()
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("fullfsync", "ON") // macOS: without it, FULL does not reach the disk
        .pragma("journal_size_limit", "67108864");
    let writer = pool(1, writing, &steps).await?;
    let ready = async {
        let mut connection = writer.acquire().await?;
        opening::migrate(&mut connection).await?;
        opening::is_complete(&mut connection).await
    };
    if let Err(error) = ready.await {
        writer.close().await;
        return Err(error);
    }
    // More readers than cores only queue at the disk.
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get() as u32);
    let readers = pool(cores.clamp(2, 8), options.pragma("query_only", "ON"), &steps).await?;
    Ok(Store { writer, readers, clock, steady, visitors: Arc::default(), steps, _copy: None })
}

/// Opens a file that nothing is written to.
pub(super) async fn reading(options: SqliteConnectOptions) -> Result<Store> {
    let steps = Arc::new(AtomicU64::new(0));
    let (writer, readers) = (pool(1, options.clone(), &steps).await?, pool(2, options, &steps).await?);
    let (clock, steady): (Clock, Clock) = (Arc::new(OffsetDateTime::now_utc), Arc::new(forward_only()));
    Ok(Store { writer, readers, clock, steady, visitors: Arc::default(), steps, _copy: None })
}

async fn pool(size: u32, options: SqliteConnectOptions, steps: &Arc<AtomicU64>) -> Result<SqlitePool> {
    let steps = steps.clone();
    Ok(SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(size)
        .acquire_timeout(TURN_TIMEOUT)
        // Connections to a file do not go stale.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |connection, _| {
            let steps = steps.clone();
            Box::pin(async move {
                connection.lock_handle().await?.set_progress_handler(STEPS.into(), move || {
                    steps.fetch_add(STEPS.into(), Ordering::Relaxed);
                    true
                });
                Ok(())
            })
        })
        // SQLite takes a transaction back by itself when the disk is full or fails; the driver's own ROLLBACK then
        // fails, and it believes for ever to be within a transaction. Such a connection is replaced before anybody
        // gets it. (The ping comes after that ROLLBACK, so it has been tried by then; a connection whose thread ended
        // does not answer it, and is replaced as well.)
        .before_acquire(|connection, _| {
            Box::pin(async move {
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
        .connect_with(options)
        .await?)
}

/// A time as it is stored: nanoseconds since 1970, which last until 2262.
pub(super) fn to_nanos(time: OffsetDateTime) -> i64 {
    time.unix_timestamp_nanos().clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A stored time.
pub(super) fn from_nanos(nanos: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(nanos.into()).expect("64-bit nanoseconds lie between 1677 and 2262")
}

/// A count as SQLite keeps it; `what` is for the message.
pub(super) fn to_int(what: &str, count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| StoreError::Invalid(format!("{what} {count} is too large")))
}

/// A stored count; the schema keeps them from being negative.
pub(super) fn from_int(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Any of our types as JSON text.
pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Invalid(format!("this cannot be written as JSON: {e}")))
}

/// JSON text as one of our types; `what` is for the message.
pub(super) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| unreadable(what, e))
}

/// Keys as the JSON list that `json_each` takes: one statement for any number of keys.
pub(super) fn key_list(keys: &[i64]) -> String {
    serde_json::to_string(keys).expect("numbers are JSON")
}
