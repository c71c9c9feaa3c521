//! The schema of the file: its migrations, and the checks that a file is ours, whole and current. Statements here are
//! PRAGMAs and questions to SQLite's own tables, which the macros of sqlx cannot check.

use super::error::{DAMAGED, Result, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use std::collections::BTreeSet;

/// The migrations, compiled in.
static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// Marks the file as ours ("ILAD"), so that another program's database is never migrated by mistake.
const APPLICATION_ID: i32 = 0x494c_4144;

/// Files up to this size are checked whole when opened (well under a second); larger ones by [`Store::check`].
const CHECKED_AT_OPENING: u64 = 64 << 20;

/// Checks an existing file before anything is changed in it.
pub(super) async fn inspect(options: &SqliteConnectOptions, bytes: u64) -> Result<()> {
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

/// Checks every page and index.
pub(super) async fn quick_check(connection: &mut SqliteConnection) -> Result<()> {
    let found: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(connection).await?;
    if found == "ok" {
        return Ok(());
    }
    Err(StoreError::Unusable(format!("its file is damaged ({found}); {DAMAGED}")))
}

/// Whether a file needs no migration.
pub(super) async fn is_current(options: &SqliteConnectOptions) -> Result<bool> {
    let mut connection = SqliteConnection::connect_with(options).await?;
    let known: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut connection)
        .await?;
    if known == 0 {
        return Ok(false);
    }
    let last: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(last == MIGRATIONS.iter().map(|migration| migration.version).max())
}

/// All missing migrations in one transaction: two processes that start at once do not meet half-way.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<()> {
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    // `run` does the same, but its future cannot be sent to another thread.
    MIGRATIONS.run_direct(None, &mut *tx, false).await.map_err(|error| match error.into() {
        StoreError::Database(cause) => {
            StoreError::Unusable(format!("its tables are not as Iliad leaves them ({cause}); {DAMAGED}"))
        }
        other => other,
    })?;
    // Only once: a file that is up to date can be opened without room on the disk.
    let id: i32 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *tx).await?;
    if id != APPLICATION_ID {
        let mark = format!("PRAGMA application_id = {APPLICATION_ID}");
        sqlx::query(sqlx::AssertSqlSafe(mark)).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Refuses a file in which tables, indexes or triggers are missing: its migrations say that they were made.
pub(super) async fn is_complete(connection: &mut SqliteConnection) -> Result<()> {
    let mut reference = SqliteConnection::connect_with(&SqliteConnectOptions::new().in_memory(true)).await?;
    MIGRATIONS.run_direct(None, &mut reference, false).await?;
    let wanted = parts(&mut reference).await?;
    reference.close().await?;
    let there: BTreeSet<_> = parts(connection).await?.into_iter().collect();
    match wanted.iter().find(|part| !there.contains(part)) {
        None => Ok(()),
        Some((kind, name)) => {
            Err(StoreError::Unusable(format!("the {kind} {name} is missing in it, so it is not whole; {DAMAGED}")))
        }
    }
}

/// Kind and name of everything in the schema, tables first.
async fn parts(connection: &mut SqliteConnection) -> Result<Vec<(String, String)>> {
    let parts = sqlx::query_as("SELECT type, name FROM sqlite_schema ORDER BY type DESC, name").fetch_all(connection);
    Ok(parts.await?)
}
