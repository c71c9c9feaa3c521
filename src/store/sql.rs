//! Statements that run on either database. The macros here have the form of sqlx's own: `query!`, `query_as!` and
//! `query_scalar!` check a statement against SQLite when the program is compiled, and carry the same text, translated,
//! for PostgreSQL. A method that asks the store need not know which database it asks.
//!
//! [`dialect`] says which differences the translation bridges; whatever else a statement uses has to be valid in both.

mod dialect;
mod value;

pub(super) use dialect::postgres_text;
pub(super) use value::{Bind, Column, FromPostgres, bind};

use futures::future::BoxFuture;
use sqlx::error::BoxDynError;
use sqlx::pool::MaybePoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow};
use sqlx::query::{Map, Query, QueryScalar};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{FromRow, Postgres, Sqlite};

/// A pool of connections to either database.
#[derive(Clone, Debug)]
pub(super) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Pool {
    /// A transaction that only reads, and whose statements all see the database as it is now.
    pub(super) async fn snapshot(&self) -> sqlx::Result<Transaction<'static>> {
        Ok(match self {
            Pool::Sqlite(pool) => Transaction::Sqlite(pool.begin().await?),
            Pool::Postgres(pool) => {
                Transaction::Postgres(pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
        })
    }

    /// Waits until all connections are back, and closes them.
    pub(super) async fn close(&self) {
        match self {
            Pool::Sqlite(pool) => pool.close().await,
            Pool::Postgres(pool) => pool.close().await,
        }
    }
}

/// A transaction on either database. Dropped without commit, it is rolled back.
pub(super) enum Transaction<'c> {
    Sqlite(sqlx::Transaction<'c, Sqlite>),
    Postgres(sqlx::Transaction<'c, Postgres>),
}

impl Transaction<'_> {
    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self {
            Transaction::Sqlite(tx) => tx.commit().await,
            Transaction::Postgres(tx) => tx.commit().await,
        }
    }

    /// Lets the rows of this transaction refer to rows that it writes later: foreign keys are checked at the commit.
    pub(super) async fn defer_foreign_keys(&mut self) -> sqlx::Result<()> {
        match self {
            Transaction::Sqlite(tx) => sqlx::query("PRAGMA defer_foreign_keys = ON").execute(&mut **tx).await.map(drop),
            Transaction::Postgres(tx) => sqlx::query("SET CONSTRAINTS ALL DEFERRED").execute(&mut **tx).await.map(drop),
        }
    }

    /// Answers were stored under keys that the program chose: later ones get larger keys. SQLite sees to it by itself.
    pub(super) async fn answers_were_numbered(&mut self) -> sqlx::Result<()> {
        let Transaction::Postgres(tx) = self else { return Ok(()) };
        let next = "SELECT setval(sequence, greatest(nextval(sequence), (SELECT max(id) FROM answers)))
                    FROM pg_get_serial_sequence('answers', 'id') AS sequence";
        sqlx::query(next).execute(&mut **tx).await.map(drop)
    }
}

/// Tests of the file ask SQLite itself.
#[cfg(test)]
mod sqlite_alone {
    use super::{Pool, Transaction};
    use sqlx::sqlite::{SqliteConnection, SqlitePool};

    impl Pool {
        pub(in crate::store) fn sqlite(&self) -> &SqlitePool {
            let Pool::Sqlite(pool) = self else { panic!("the store is no file") };
            pool
        }
    }

    impl Transaction<'_> {
        pub(in crate::store) fn sqlite(&mut self) -> &mut SqliteConnection {
            let Transaction::Sqlite(tx) = self else { panic!("the store is no file") };
            tx
        }
    }
}

/// Where a statement runs: on a pool, or in a transaction.
pub(super) enum On<'e> {
    SqlitePool(&'e SqlitePool),
    Sqlite(&'e mut SqliteConnection),
    PostgresPool(&'e PgPool),
    Postgres(&'e mut PgConnection),
}

impl<'e> From<&'e Pool> for On<'e> {
    fn from(pool: &'e Pool) -> Self {
        match pool {
            Pool::Sqlite(pool) => On::SqlitePool(pool),
            Pool::Postgres(pool) => On::PostgresPool(pool),
        }
    }
}

impl<'e> From<&'e mut Transaction<'_>> for On<'e> {
    fn from(tx: &'e mut Transaction<'_>) -> Self {
        match tx {
            Transaction::Sqlite(tx) => On::Sqlite(tx),
            Transaction::Postgres(tx) => On::Postgres(tx),
        }
    }
}

impl<'e> On<'e> {
    /// The connection: that of the transaction, or one of the pool. It is boxed, and no part of any statement's own code: there are
    /// hundreds of them to compile.
    fn connection(self) -> BoxFuture<'e, sqlx::Result<Held<'e>>> {
        Box::pin(async move {
            Ok(match self {
                On::SqlitePool(pool) => Held::Sqlite(pool.acquire().await?.into()),
                On::Sqlite(connection) => Held::Sqlite(connection.into()),
                On::PostgresPool(pool) => Held::Postgres(pool.acquire().await?.into()),
                On::Postgres(connection) => Held::Postgres(connection.into()),
            })
        })
    }
}

/// A connection for one statement.
enum Held<'e> {
    Sqlite(MaybePoolConnection<'e, Sqlite>),
    Postgres(MaybePoolConnection<'e, Postgres>),
}

/// A statement in PostgreSQL's text with its parameters, or why one of them cannot be sent.
pub(super) struct PostgresStatement {
    pub(super) text: &'static str,
    pub(super) arguments: Result<PgArguments, BoxDynError>,
}

impl PostgresStatement {
    fn query(self) -> sqlx::Result<Query<'static, Postgres, PgArguments>> {
        Ok(sqlx::query_with(self.text, self.arguments.map_err(sqlx::Error::Encode)?))
    }

    fn rows(self, connection: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<Vec<PgRow>>> {
        Box::pin(async move { self.query()?.fetch_all(connection).await })
    }

    fn first_row(self, connection: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<Option<PgRow>>> {
        Box::pin(async move { self.query()?.fetch_optional(connection).await })
    }

    fn execute(self, connection: &mut PgConnection) -> BoxFuture<'_, sqlx::Result<u64>> {
        Box::pin(async move { Ok(self.query()?.execute(connection).await?.rows_affected()) })
    }
}

/// A statement for either database. `sqlite` is what sqlx made of it; `postgres` makes the other form when it is needed.
#[must_use = "a statement does nothing until it is executed"]
pub(super) struct Statement<S, P> {
    pub(super) sqlite: S,
    pub(super) postgres: P,
}

/// The result of a statement without rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    rows: u64,
}

impl Done {
    /// How many rows were inserted, updated or deleted.
    pub(super) fn rows_affected(self) -> u64 {
        self.rows
    }
}

impl<'q, P: FnOnce() -> PostgresStatement> Statement<Query<'q, Sqlite, SqliteArguments>, P> {
    pub(super) async fn execute<'e>(self, on: impl Into<On<'e>>) -> sqlx::Result<Done> {
        let rows = match on.into().connection().await? {
            Held::Sqlite(mut connection) => self.sqlite.execute(&mut *connection).await?.rows_affected(),
            Held::Postgres(mut connection) => (self.postgres)().execute(&mut connection).await?,
        };
        Ok(Done { rows })
    }
}

/// Implements fetching for one of the forms that sqlx gives to statements with rows.
macro_rules! fetching {
    (<$($generic:ident),*> $form:ty where $($bound:tt)*) => {
        impl<'q, $($generic),*> Statement<$form, P>
        where
            P: FnOnce() -> PostgresStatement,
            O: FromPostgres + Send + Unpin,
            $($bound)*
        {
            pub(super) async fn fetch_all<'e>(self, on: impl Into<On<'e>>) -> sqlx::Result<Vec<O>> {
                match on.into().connection().await? {
                    Held::Sqlite(mut connection) => self.sqlite.fetch_all(&mut *connection).await,
                    Held::Postgres(mut connection) => {
                        (self.postgres)().rows(&mut connection).await?.iter().map(O::from_row).collect()
                    }
                }
            }

            pub(super) async fn fetch_optional<'e>(self, on: impl Into<On<'e>>) -> sqlx::Result<Option<O>> {
                match on.into().connection().await? {
                    Held::Sqlite(mut connection) => self.sqlite.fetch_optional(&mut *connection).await,
                    Held::Postgres(mut connection) => {
                        (self.postgres)().first_row(&mut connection).await?.as_ref().map(O::from_row).transpose()
                    }
                }
            }

            pub(super) async fn fetch_one<'e>(self, on: impl Into<On<'e>>) -> sqlx::Result<O> {
                self.fetch_optional(on).await?.ok_or(sqlx::Error::RowNotFound)
            }
        }
    };
}

fetching!(<F, O, P> Map<'q, Sqlite, F, SqliteArguments> where F: FnMut(SqliteRow) -> sqlx::Result<O> + Send);
fetching!(<O, P> QueryScalar<'q, Sqlite, O, SqliteArguments> where (O,): for<'r> FromRow<'r, SqliteRow>);

/// The PostgreSQL form of a statement: a closure, so that SQLite never pays for it.
macro_rules! postgres_statement {
    ($text:expr $(, $parameter:expr)*) => {
        || {
            static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
            $crate::store::sql::PostgresStatement {
                text: TEXT.get_or_init(|| $crate::store::sql::postgres_text($text)),
                arguments: $crate::store::sql::bind(&[$($crate::store::sql::Bind::value(&$parameter)),*]),
            }
        }
    };
}

/// A statement whose result has no rows.
macro_rules! query {
    ($first:literal $(+ $more:literal)* $(, $parameter:expr)* $(,)?) => {
        $crate::store::sql::Statement {
            sqlite: ::sqlx::query!($first $(+ $more)* $(, $parameter)*),
            postgres: $crate::store::sql::postgres_statement!(concat!($first $(, $more)*) $(, $parameter)*),
        }
    };
}

/// A statement whose rows are values of a type that [`row!`] names the columns of.
macro_rules! query_as {
    ($row:ident, $first:literal $(+ $more:literal)* $(, $parameter:expr)* $(,)?) => {
        $crate::store::sql::Statement {
            sqlite: ::sqlx::query_as!($row, $first $(+ $more)* $(, $parameter)*),
            postgres: $crate::store::sql::postgres_statement!(concat!($first $(, $more)*) $(, $parameter)*),
        }
    };
}

/// A statement whose rows have one column.
macro_rules! query_scalar {
    ($first:literal $(+ $more:literal)* $(, $parameter:expr)* $(,)?) => {
        $crate::store::sql::Statement {
            sqlite: ::sqlx::query_scalar!($first $(+ $more)* $(, $parameter)*),
            postgres: $crate::store::sql::postgres_statement!(concat!($first $(, $more)*) $(, $parameter)*),
        }
    };
}

/// Makes a type the row of a statement: `row! { struct Row { column: Type } }` defines it, `row!(Row { column })` takes one
/// that is defined elsewhere. The fields have the names of the columns.
macro_rules! row {
    ($(#[$attribute:meta])* $seen:vis struct $row:ident {
        $($(#[$about:meta])* $field_seen:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$attribute])*
        $seen struct $row {
            $($(#[$about])* $field_seen $field: $type),*
        }
        $crate::store::sql::row!($row { $($field),* });
    };
    ($row:ident { $($field:ident),* $(,)? }) => {
        impl $crate::store::sql::FromPostgres for $row {
            fn from_row(row: &sqlx::postgres::PgRow) -> sqlx::Result<Self> {
                Ok($row { $($field: $crate::store::sql::Column::read(row, stringify!($field))?),* })
            }
        }
    };
}

pub(super) use {postgres_statement, query, query_as, query_scalar, row};
