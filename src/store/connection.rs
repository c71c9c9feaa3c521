//! The store's two pools of connections: one writer, and readers. Statements here set up connections and transactions, which the
//! macros of sqlx cannot check.

use super::account_sessions::AccountsHere;
use super::clock::{Clock, monotonic};
use super::convert::to_nanos;
use super::error::{Result, StoreError};
use super::opening::LOG;
use super::postgres;
use super::schema;
use super::sql::{Pool, Transaction};
use super::visitors::Visitors;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Postgres, Sqlite, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use time::OffsetDateTime;

/// How long a call waits for its turn at the one writer connection.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// How long closing waits for calls that are under way.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Steps of SQLite's virtual machine between two counts of them: often enough to measure a request, too rarely to slow
/// it.
const STEPS: u16 = 100;

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    writer: Pool,
    readers: Pool,
    /// The time of day, for time stamps.
    clock: Clock,
    /// The clock of leases.
    monotonic: Clock,
    visitors: Arc<Visitors>,
    accounts: Arc<AccountsHere>,
    steps: Arc<AtomicU64>,
    /// The folder of a copy that is read in the file's place, removed with the last store that reads it.
    _copy: Option<Arc<tempfile::TempDir>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("file", &self.file()).finish_non_exhaustive()
    }
}

/// How much of a transaction survives a power cut.
#[derive(Clone, Copy)]
pub(super) enum Durability {
    /// All of it: the commit returns when the data are on disk. For texts that people typed and rows that must agree
    /// with them.
    Full,
    /// All but the last moments (a crash of the process alone takes nothing). For rows that the trainer can make again.
    Normal,
}

/// The one writer connection, held.
pub(super) struct Writer(WriterConnection);

enum WriterConnection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>, Durability),
}

impl Writer {
    /// A transaction that has the write lock from its first statement: it never has to be tried again half-way.
    /// Dropped without commit, it is rolled back.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>> {
        Ok(match &mut self.0 {
            WriterConnection::Sqlite(connection) => {
                Transaction::Sqlite(connection.begin_with("BEGIN IMMEDIATE").await?)
            }
            WriterConnection::Postgres(connection, Durability::Full) => {
                Transaction::Postgres(connection.begin_with(postgres::BEGIN).await?)
            }
            WriterConnection::Postgres(connection, Durability::Normal) => {
                Transaction::Postgres(connection.begin_with(postgres::BEGIN_NORMAL).await?)
            }
        })
    }
}

impl Store {
    /// A store over connected pools.
    pub(super) fn new(writer: Pool, readers: Pool, clock: Clock, monotonic: Clock, steps: Arc<AtomicU64>) -> Store {
        Store {
            writer,
            readers,
            clock,
            monotonic,
            visitors: Arc::default(),
            accounts: Arc::default(),
            steps,
            _copy: None,
        }
    }

    /// Checks every page and index of the file (a second per gigabyte or so). PostgreSQL's server does that by itself.
    pub async fn check(&self) -> Result<()> {
        match &self.readers {
            Pool::Sqlite(readers) => schema::quick_check(&mut *readers.acquire().await?).await,
            Pool::Postgres(_) => Ok(()),
        }
    }

    /// Asks the database for something small, to see that it answers.
    pub async fn ping(&self) -> Result<()> {
        match &self.readers {
            Pool::Sqlite(readers) => sqlx::query("PRAGMA schema_version").execute(readers).await.map(|_| ())?,
            Pool::Postgres(readers) => sqlx::query("SELECT 1").execute(readers).await.map(|_| ())?,
        }
        Ok(())
    }

    /// Waits for calls that are under way, brings everything into the one file and closes it, so that no side files stay (but
    /// for another process that has the file open). Later calls fail.
    pub async fn close(&self) {
        let closing = async {
            let (writer, readers) = match (&self.writer, &self.readers) {
                (Pool::Sqlite(writer), Pool::Sqlite(readers)) => (writer, readers),
                (writer, readers) => {
                    readers.close().await;
                    return writer.close().await;
                }
            };
            readers.close().await;
            if let Ok(mut connection) = writer.acquire().await {
                // Another process that reads does not hold up the end: what it keeps in the log stays there, durably.
                for pragma in ["PRAGMA busy_timeout = 500", "PRAGMA wal_checkpoint(TRUNCATE)"] {
                    if let Err(error) = sqlx::query(sqlx::AssertSqlSafe(pragma)).execute(&mut *connection).await {
                        tracing::debug!(%error, "the log stays beside the database");
                    }
                }
            }
            writer.close().await;
        };
        if tokio::time::timeout(LAST_CALLS, closing).await.is_err()
            && let Some(file) = self.file()
        {
            tracing::warn!(
                "the database was busy to the end; the newest rows are in {}{LOG}, and are taken up at the next start",
                file.display()
            );
        }
    }

    /// The database file; `None` where the database is PostgreSQL's.
    pub fn file(&self) -> Option<std::path::PathBuf> {
        match &self.writer {
            Pool::Sqlite(writer) => Some(writer.connect_options().get_filename().to_owned()),
            Pool::Postgres(_) => None,
        }
    }

    /// How many steps SQLite's virtual machine took for this store so far, rounded. It measures the cost of statements
    /// whatever the speed of the computer.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Keeps the folder of its copy for as long as the store lives.
    pub(super) fn with_copy(self, folder: tempfile::TempDir) -> Store {
        Store { _copy: Some(Arc::new(folder)), ..self }
    }

    /// This store as it is now: what is read from the returned one does not change, whatever is written meanwhile. It has a
    /// connection of its own, and SQLite's log grows for as long as that is held.
    pub async fn moment(&self) -> Result<Store> {
        let readers = match &self.readers {
            Pool::Sqlite(readers) => {
                let steps = self.steps.clone();
                let options = SqlitePoolOptions::new()
                    .min_connections(1)
                    .max_connections(1)
                    .acquire_timeout(TURN_TIMEOUT)
                    .test_before_acquire(false)
                    .idle_timeout(None)
                    .max_lifetime(None)
                    .after_connect(move |connection, _| Box::pin(count_steps(connection, steps.clone())));
                let readers = options.connect_with((*readers.connect_options()).clone()).await?;
                // A transaction sees the file as it was at its first reading.
                for statement in ["BEGIN", "SELECT count(*) FROM sqlite_schema"] {
                    sqlx::query(statement).execute(&readers).await?;
                }
                Pool::Sqlite(readers)
            }
            Pool::Postgres(readers) => {
                let options = PgPoolOptions::new()
                    .min_connections(1)
                    .max_connections(1)
                    .acquire_timeout(TURN_TIMEOUT)
                    .test_before_acquire(false)
                    .idle_timeout(None)
                    .max_lifetime(None);
                let readers = options.connect_with((*readers.connect_options()).clone()).await?;
                // The snapshot is taken by the first statement after BEGIN.
                for statement in ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SELECT 1"] {
                    sqlx::query(statement).execute(&readers).await?;
                }
                Pool::Postgres(readers)
            }
        };
        Ok(Store { readers, ..self.clone() })
    }

    /// Ends a [`Store::moment`]: its connection is closed, and nothing can be read from it any more.
    pub async fn end_moment(&self) {
        self.readers.close().await;
    }

    /// The writer connection, when it is this caller's turn.
    pub(super) async fn writer(&self, durability: Durability) -> Result<Writer> {
        let connection = match &self.writer {
            Pool::Sqlite(writer) => {
                // Has to be said outside a transaction, and each time: the connection is shared.
                let pragma = match durability {
                    Durability::Full => "PRAGMA synchronous = FULL",
                    Durability::Normal => "PRAGMA synchronous = NORMAL",
                };
                let mut connection = writer.acquire().await?;
                sqlx::query(pragma).execute(&mut *connection).await?;
                WriterConnection::Sqlite(connection)
            }
            Pool::Postgres(writer) => WriterConnection::Postgres(writer.acquire().await?, durability),
        };
        Ok(Writer(connection))
    }

    /// The readers. They never wait for the writer, nor it for them.
    pub(super) fn readers(&self) -> &Pool {
        &self.readers
    }

    /// The writer's connections to the file, for statements that read all of it.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where the database is PostgreSQL's.
    pub(super) fn sqlite(&self) -> Result<&SqlitePool> {
        match &self.writer {
            Pool::Sqlite(writer) => Ok(writer),
            Pool::Postgres(_) => Err(StoreError::Invalid("this can only be done with a database of SQLite".into())),
        }
    }

    /// Now, as it is stored.
    pub(super) fn now(&self) -> i64 {
        to_nanos((self.clock)())
    }

    /// Now by the clock of leases.
    pub(super) fn monotonic_now(&self) -> i64 {
        to_nanos((self.monotonic)())
    }

    /// The facts about visitors that only this process knows.
    pub(super) fn visitors(&self) -> &Visitors {
        &self.visitors
    }

    /// The facts about accounts that only this process knows.
    pub(super) fn accounts(&self) -> &AccountsHere {
        &self.accounts
    }
}

/// Opens the pools of a file that was looked at, and brings its tables up to date.
pub(super) async fn connect(options: SqliteConnectOptions, clock: Clock, monotonic: Clock) -> Result<Store> {
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
        schema::migrate(&mut connection).await?;
        schema::is_complete(&mut connection).await
    };
    if let Err(error) = ready.await {
        writer.close().await;
        return Err(error);
    }
    // More readers than cores only queue at the disk.
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get() as u32);
    let readers = pool(cores.clamp(2, 8), options.pragma("query_only", "ON"), &steps).await?;
    Ok(Store::new(Pool::Sqlite(writer), Pool::Sqlite(readers), clock, monotonic, steps))
}

/// Opens a file that nothing is written to.
pub(super) async fn reading(options: SqliteConnectOptions) -> Result<Store> {
    let steps = Arc::new(AtomicU64::new(0));
    let (writer, readers) = (pool(1, options.clone(), &steps).await?, pool(2, options, &steps).await?);
    let (clock, monotonic): (Clock, Clock) = (Arc::new(OffsetDateTime::now_utc), Arc::new(monotonic()));
    Ok(Store::new(Pool::Sqlite(writer), Pool::Sqlite(readers), clock, monotonic, steps))
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
        .after_connect(move |connection, _| Box::pin(count_steps(connection, steps.clone())))
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

/// Lets a connection count its steps.
async fn count_steps(connection: &mut SqliteConnection, steps: Arc<AtomicU64>) -> sqlx::Result<()> {
    connection.lock_handle().await?.set_progress_handler(STEPS.into(), move || {
        steps.fetch_add(STEPS.into(), Ordering::Relaxed);
        true
    });
    Ok(())
}
