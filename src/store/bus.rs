//! Messages between the processes that share a database of PostgreSQL. They are rows that a NOTIFY announces: rows, because a
//! notification holds 8,000 bytes at most. Statements here are PostgreSQL's own, which the macros of sqlx cannot check.

use super::Store;
use super::error::Result;
use super::sql::Pool;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPool, PgPoolOptions};
use sqlx::{Connection, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The channel on which messages are announced.
const CHANNEL: &str = "iliad";

/// Messages that one process sends between two removals of old ones.
const TIDIED_EVERY: u64 = 500;

/// How long a request waits to be taken by somebody, in seconds, as PostgreSQL writes it.
const PATIENCE: &str = "30 seconds";

/// A message of another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The process that sent it.
    pub sender: String,
    /// Its subject, in one of the words on which the processes agree.
    pub topic: String,
    /// The text, by its topic.
    pub body: String,
}

/// Work that another process asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number, under which the reply goes back.
    pub id: i64,
    /// The process that asks.
    pub sender: String,
    /// The work that it asks for, as the processes write it.
    pub body: String,
}

/// This process among those that share the database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bus {
    pool: PgPool,
    process: Arc<str>,
    sent: Arc<AtomicU64>,
}

impl Store {
    /// The way to the other processes that share the database, for the process that is called `process` among them; `None` for a file,
    /// which one process has for itself.
    pub async fn bus(&self, process: &str) -> Result<Option<Bus>> {
        let Pool::Postgres(readers) = self.readers() else { return Ok(None) };
        // The readers refuse to write, and the writer waits for its turn: messages go beside both.
        let options: PgConnectOptions = (*readers.connect_options()).clone();
        let options = options.options([("default_transaction_read_only", "off"), ("synchronous_commit", "off")]);
        let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await?;
        Ok(Some(Bus { pool, process: process.into(), sent: Arc::default() }))
    }
}

impl Bus {
    /// The name of this process among the others; a new one at each start.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Sends a message to all other processes.
    pub async fn send(&self, topic: &str, body: &str) -> Result<()> {
        sqlx::query(
            "WITH sent AS (INSERT INTO process_messages (sender, topic, body) VALUES ($1, $2, $3) RETURNING id)
             SELECT pg_notify($4, 'message ' || id) FROM sent",
        )
        .bind(&*self.process)
        .bind(topic)
        .bind(body)
        .bind(CHANNEL)
        .execute(&self.pool)
        .await?;
        if self.sent.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIDIED_EVERY) {
            let old = "DELETE FROM process_messages WHERE sent_at < clock_timestamp() - interval '5 minutes'";
            sqlx::query(old).execute(&self.pool).await?;
            let old = "DELETE FROM process_requests WHERE sent_at < clock_timestamp() - interval '1 hour'";
            sqlx::query(old).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Asks for work that concerns `run`, or no run; its number. Whoever takes it replies by a message.
    pub async fn request(&self, run: Option<&str>, body: &str) -> Result<i64> {
        let row = sqlx::query(
            "WITH asked AS (INSERT INTO process_requests (sender, run, body) VALUES ($1, $2, $3) RETURNING id)
             SELECT id, pg_notify($4, 'request') FROM asked",
        )
        .bind(&*self.process)
        .bind(run)
        .bind(body)
        .bind(CHANNEL)
        .fetch_one(&self.pool)
        .await?;
        Ok(row.try_get("id")?)
    }

    /// Takes the oldest request that concerns no run or one of `runs`. No two processes take the same one. Requests that nobody took
    /// for half a minute are left alone: who asked has given up.
    pub async fn take_request(&self, runs: &[String]) -> Result<Option<Request>> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE process_requests SET taken_by = $1 WHERE id = (
                 SELECT id FROM process_requests
                 WHERE taken_by IS NULL AND sent_at > clock_timestamp() - interval '{PATIENCE}'
                     AND sender <> $1 AND (run IS NULL OR run = ANY ($2))
                 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
             RETURNING id, sender, body"
        )))
        .bind(&*self.process)
        .bind(runs)
        .fetch_optional(&self.pool)
        .await?;
        let read = |row: sqlx::postgres::PgRow| -> sqlx::Result<Request> {
            Ok(Request { id: row.try_get("id")?, sender: row.try_get("sender")?, body: row.try_get("body")? })
        };
        Ok(row.map(read).transpose()?)
    }

    /// Listens from now on.
    pub async fn listen(&self) -> Result<BusListener> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(BusListener { listener, bus: self.clone() })
    }

    /// Waits until no other process does the work called `name`, and keeps others from it for as long as the returned value lives.
    /// A process that ends or loses its connection lets go.
    pub async fn alone(&self, name: &str) -> Result<Alone> {
        let mut connection = PgConnection::connect_with(&self.pool.connect_options()).await?;
        sqlx::query("SELECT pg_advisory_lock(1229734212, hashtext($1))").bind(name).execute(&mut connection).await?;
        Ok(Alone { connection })
    }

    /// As [`Bus::alone`], at once; `None` while another process does it. A process whose machine is gone has let go after half a minute.
    pub async fn claim(&self, name: &str) -> Result<Option<Alone>> {
        let options: PgConnectOptions = (*self.pool.connect_options()).clone();
        let options = options.options([
            ("tcp_keepalives_idle", "10"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "4"),
        ]);
        let mut connection = PgConnection::connect_with(&options).await?;
        let row = sqlx::query("SELECT pg_try_advisory_lock(1229734212, hashtext($1)) AS held")
            .bind(name)
            .fetch_one(&mut connection)
            .await?;
        Ok(row.try_get::<bool, _>("held")?.then_some(Alone { connection }))
    }
}

/// The right to do something that only one process does at a time.
#[derive(Debug)]
pub struct Alone {
    connection: PgConnection,
}

impl Alone {
    /// Whether the right is still held: it goes with the connection.
    pub async fn is_held(&mut self) -> bool {
        let asked = tokio::time::timeout(Duration::from_secs(10), self.connection.ping()).await;
        matches!(asked, Ok(Ok(())))
    }
}

/// Something that a process was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A message.
    Message(Message),
    /// There is a request to be taken.
    Request,
}

/// Receives what other processes send.
#[derive(Debug)]
pub struct BusListener {
    listener: PgListener,
    bus: Bus,
}

impl BusListener {
    /// The next message or request of another process. A lost connection is made again; what was sent meanwhile is not received, and
    /// statuses are sent again and again.
    pub async fn next(&mut self) -> Result<Told> {
        loop {
            let notification = self.listener.recv().await?;
            let Some(id) = notification.payload().strip_prefix("message ") else { return Ok(Told::Request) };
            let Ok(id) = id.parse::<i64>() else { continue };
            let row = sqlx::query("SELECT sender, topic, body FROM process_messages WHERE id = $1 AND sender <> $2")
                .bind(id)
                .bind(self.bus.process())
                .fetch_optional(&self.bus.pool)
                .await?;
            if let Some(row) = row {
                return Ok(Told::Message(Message {
                    sender: row.try_get("sender")?,
                    topic: row.try_get("topic")?,
                    body: row.try_get("body")?,
                }));
            }
        }
    }

    /// How long the caller should wait before it listens again after an error.
    pub const PAUSE: Duration = Duration::from_secs(1);
}
