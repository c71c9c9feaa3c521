//! Opening the file, the two pools, time, and the small conversions every repository needs.

use super::error::{Result, StoreError, unreadable};
use super::teachers::Visitors;
use serde::{Serialize, de::DeserializeOwned};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqliteConnection, Transaction};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// The migrations, compiled in.
static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// Marks the file as ours ("ILAD"), so that another program's database is never migrated by mistake.
const APPLICATION_ID: i32 = 0x494c_4144;

/// How long a writer waits for another *process* (an export, a second `iliad`) before it says busy.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a call waits for its turn at the one writer connection.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// Files up to this size are checked whole when opened (well under a second); larger ones by [`Store::check`].
const CHECKED_AT_OPENING: u64 = 64 << 20;

/// Where a time is read.
type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

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
    /// Opens (creates, migrates) the database file. The folder is made when it is missing.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] with a plain sentence for a file that is damaged, no database, another program's or
    /// from a newer version; [`StoreError::DiskFull`] when nothing can be written.
    pub async fn open(path: &Path) -> Result<Store> {
        Store::open_with_clocks(path, OffsetDateTime::now_utc, forward_only()).await
    }

    /// As [`Store::open`], with one clock that leases and time stamps go by (tests turn it by hand).
    pub async fn open_with_clock(
        path: &Path,
        clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
    ) -> Result<Store> {
        let clock = Arc::new(clock);
        let steady = clock.clone();
        Store::open_with_clocks(path, move || clock(), move || steady()).await
    }

    /// As [`Store::open`], with the time of day that time stamps go by, and the clock that leases go by, which nobody
    /// sets back while the process lives.
    pub async fn open_with_clocks(
        path: &Path,
        clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
        steady: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
    ) -> Result<Store> {
        let (clock, steady): (Clock, Clock) = (Arc::new(clock), Arc::new(steady));
        let begin = Instant::now();
        loop {
            match Store::open_once(path, clock.clone(), steady.clone()).await {
                // SQLite does not wait by itself while another process makes a new file a WAL file.
                Err(StoreError::Busy) if begin.elapsed() < BUSY_TIMEOUT => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                opened => return opened,
            }
        }
    }

    async fn open_once(path: &Path, clock: Clock, steady: Clock) -> Result<Store> {
        let bytes = prepare(path)?;
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT).foreign_keys(true);
        if bytes > 0 {
            inspect(&options, bytes).await?;
        }
        let writing = options
            .clone()
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "ON") // macOS: without it, FULL does not reach the disk
            .pragma("journal_size_limit", "67108864");
        let writer = pool(1, writing).await?;
        migrate(&writer).await?;
        // More readers than cores only queue at the disk.
        let cores = std::thread::available_parallelism().map_or(2, |n| n.get() as u32);
        let readers = pool(cores.clamp(2, 8), options.pragma("query_only", "ON")).await?;
        Ok(Store { writer, readers, clock, steady, visitors: Arc::default() })
    }

    /// Checks every page and index of the file (a second per gigabyte or so).
    pub async fn check(&self) -> Result<()> {
        let mut reader = self.readers.acquire().await?;
        quick_check(&mut reader).await
    }

    /// Waits for what is under way and closes the file, so that no side files stay. Later calls fail.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// The writer connection, when it is this caller's turn.
    pub(super) async fn writer(&self, durability: Durability) -> Result<Writer> {
        // Has to be said outside a transaction, and each time: the connection is shared.
        let pragma = match durability {
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Normal => "PRAGMA synchronous = NORMAL",
        };
        let mut connection = self.writer.acquire().await?;
        let said = sqlx::query(pragma).execute(&mut *connection).await;
        // SQLite takes a transaction back by itself when the disk is full; the driver's own ROLLBACK then fails, and it
        // believes for ever to be within a transaction. (The pragma came after that ROLLBACK, so it has been tried.)
        if connection.is_in_transaction() {
            connection.close().await?;
            connection = self.writer.acquire().await?;
            sqlx::query(pragma).execute(&mut *connection).await?;
        } else {
            said?;
        }
        Ok(Writer(connection))
    }

    /// The readers. They never wait for the writer, nor it for them.
    pub(super) fn readers(&self) -> &SqlitePool {
        &self.readers
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
fn forward_only() -> impl Fn() -> OffsetDateTime + Send + Sync + 'static {
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

/// Makes the folder and says how large the file is (0: new).
fn prepare(path: &Path) -> Result<u64> {
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| StoreError::Unusable(format!("its folder {} cannot be made ({e})", folder.display())))?;
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(found.len()),
        Ok(_) => Err(StoreError::Unusable(format!("{} is a folder, not a file", path.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(StoreError::Unusable(format!("{} cannot be read ({e})", path.display()))),
    }
}

/// Looks at an existing file before anything is changed in it.
async fn inspect(options: &SqliteConnectOptions, bytes: u64) -> Result<()> {
    let mut connection = SqliteConnection::connect_with(options).await?;
    let id: i32 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut connection).await?;
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut connection).await?;
    if id != APPLICATION_ID && tables > 0 {
        return Err(StoreError::Unusable("it belongs to another program".into()));
    }
    if bytes <= CHECKED_AT_OPENING {
        quick_check(&mut connection).await?;
    }
    connection.close().await?;
    Ok(())
}

async fn quick_check(connection: &mut SqliteConnection) -> Result<()> {
    let found: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(connection).await?;
    if found == "ok" {
        return Ok(());
    }
    Err(StoreError::Unusable(format!(
        "its file is damaged ({found}); stop Iliad, keep a copy of the file, and restore a backup"
    )))
}

async fn pool(size: u32, options: SqliteConnectOptions) -> Result<SqlitePool> {
    Ok(SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(size)
        .acquire_timeout(TURN_TIMEOUT)
        // Connections to a file do not go stale.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options)
        .await?)
}

/// All missing migrations in one transaction: two processes that start at once do not meet half-way.
async fn migrate(writer: &SqlitePool) -> Result<()> {
    let mut connection = writer.acquire().await?;
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    // `run` does the same, but its future cannot be sent to another thread.
    MIGRATIONS.run_direct(None, &mut *tx, false).await?;
    sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA application_id = {APPLICATION_ID}"))).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
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
