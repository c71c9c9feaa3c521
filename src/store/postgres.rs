//! Opening a PostgreSQL database in the place of the file. Several processes and machines may use one database; each of
//! their transactions that write takes one lock of the database first, so that they follow each other as SQLite's do.

use super::clock::Clock;
use super::connection::Store;
use super::convert::from_nanos;
use super::error::{Result, StoreError};
use super::sql::Pool;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// The migrations, compiled in. They make the tables of `migrations/` in PostgreSQL's terms.
static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("migrations/postgres");

/// The oldest server whose SQL the statements use.
const OLDEST_SERVER: i32 = 140_000;

/// Begins a transaction that writes. The lock's number means nothing but "Iliad writes"; it belongs to the database.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(1229734212)";

/// Begins a transaction that writes, and whose last moments a crash of the server may take.
pub(super) const BEGIN_NORMAL: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off; \
     SELECT pg_advisory_xact_lock(1229734212)";

/// How long a call waits for a connection.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// Different statements that a connection keeps prepared: all of the program's.
const STATEMENTS: usize = 512;

impl Store {
    /// Opens (migrates) the database at an address such as `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] with a plain sentence for an address that cannot be read, a server that cannot be reached
    /// or is too old, another program's database, and one from a newer version.
    pub async fn connect(address: &str) -> Result<Store> {
        let options = options(address)?;
        let mut connection = reach(&options).await?;
        let monotonic: Clock = Arc::new(database_clock(&mut connection).await?);
        connection.close().await?;
        connect(options, Arc::new(OffsetDateTime::now_utc), monotonic).await
    }

    /// Opens the database like [`Store::connect`], with the time of day that time stamps go by, and the clock that leases go by (tests
    /// turn them by hand).
    pub async fn connect_with_clocks(
        address: &str,
        clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
        monotonic: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
    ) -> Result<Store> {
        connect(options(address)?, Arc::new(clock), Arc::new(monotonic)).await
    }
}

/// Reads the address. Secrets in it are in no message.
fn options(address: &str) -> Result<PgConnectOptions> {
    let options: PgConnectOptions = address
        .parse()
        .map_err(|_| StoreError::Unusable("its address is not of the form postgres://user@host/database".into()))?;
    Ok(options
        .application_name("iliad")
        .statement_cache_capacity(STATEMENTS)
        // The migrations alone are pages of text.
        .disable_statement_logging())
}

/// Connects once, to say in plain words why that fails, and looks at the server.
async fn reach(options: &PgConnectOptions) -> Result<PgConnection> {
    let mut connection = PgConnection::connect_with(options).await.map_err(|error| {
        let why = error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
        StoreError::Unusable(format!("PostgreSQL at {} refused: {why}", place(options)))
    })?;
    let version: i32 =
        sqlx::query_scalar("SELECT current_setting('server_version_num')::integer").fetch_one(&mut connection).await?;
    if version < OLDEST_SERVER {
        return Err(StoreError::Unusable(format!(
            "PostgreSQL {} is too old: 14 is the oldest that will do",
            version / 10_000
        )));
    }
    let encoding: String = sqlx::query_scalar("SHOW server_encoding").fetch_one(&mut connection).await?;
    if encoding != "UTF8" {
        return Err(StoreError::Unusable(format!("the database has the encoding {encoding}; make one with UTF8")));
    }
    Ok(connection)
}

/// Where the server is, without secrets.
fn place(options: &PgConnectOptions) -> String {
    format!("{}:{}", options.get_host(), options.get_port())
}

async fn connect(options: PgConnectOptions, clock: Clock, monotonic: Clock) -> Result<Store> {
    let mut connection = reach(&options).await?;
    migrate(&mut connection).await?;
    connection.close().await?;
    let writer = pool(1, options.clone()).await?;
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get() as u32);
    let readers = pool(cores.clamp(2, 8), options.options([("default_transaction_read_only", "on")])).await?;
    Ok(Store::new(Pool::Postgres(writer), Pool::Postgres(readers), clock, monotonic, Arc::default()))
}

/// All missing migrations; other processes that start at the same time wait.
async fn migrate(connection: &mut PgConnection) -> Result<()> {
    let (tables, ours): (i64, bool) = sqlx::query_as(
        "SELECT count(*), count(*) FILTER (WHERE tablename = '_sqlx_migrations') = 1 FROM pg_tables
         WHERE schemaname = current_schema()",
    )
    .fetch_one(&mut *connection)
    .await?;
    if tables > 0 && !ours {
        return Err(StoreError::Unusable("it belongs to another program; make an empty database for Iliad".into()));
    }
    MIGRATIONS.run_direct(None, connection, false).await?;
    Ok(())
}

/// The clock of leases: that of the database when it was asked, and from then on one that only goes forward. All processes have
/// it in common, whatever their machines' times of day are.
async fn database_clock(connection: &mut PgConnection) -> Result<impl Fn() -> OffsetDateTime + Send + Sync + 'static> {
    let asked = Instant::now();
    let micros: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        .fetch_one(connection)
        .await?;
    let begin = from_nanos(micros.saturating_mul(1000));
    Ok(move || begin + asked.elapsed())
}

async fn pool(size: u32, options: PgConnectOptions) -> Result<PgPool> {
    Ok(PgPoolOptions::new()
        .min_connections(1)
        .max_connections(size)
        .acquire_timeout(TURN_TIMEOUT)
        .connect_with(options)
        .await?)
}
