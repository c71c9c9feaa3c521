//! A database of its own for a test, on the PostgreSQL server that `ILIAD_TEST_POSTGRES` names (`tests/with-postgres` starts one).

use sqlx::{Connection, PgConnection};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty database, dropped at the end.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes one; `None` where no server is named.
    pub async fn new() -> Option<Database> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("ILIAD_TEST_POSTGRES").ok()?;
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let database = Database { server, name };
        database.tell("CREATE DATABASE", "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'").await;
        Some(database)
    }

    /// Its address.
    pub fn address(&self) -> String {
        let (server, parameters) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (server, _) = server.rsplit_once('/').expect("the address names a database");
        format!("{server}/{}?{parameters}", self.name)
    }

    async fn tell(&self, command: &str, rest: &str) {
        let mut server = PgConnection::connect(&self.server).await.unwrap();
        let statement = format!("{command} {} {rest}", self.name);
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut server).await.unwrap();
        server.close().await.unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(self.tell("DROP DATABASE IF EXISTS", "WITH (FORCE)"));
            });
        });
    }
}
