//! A store with very many rows, made in seconds.

use iliad::ids::TeacherId;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use std::path::Path;

/// Fills the run beside the store's back, as `filled.sql` says.
pub async fn fill(file: &Path, run: &str, teachers: [TeacherId; 3], n: i64) {
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(false);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let [a, b, c] = teachers.map(|teacher| teacher.to_string());
    let values = [("{n}", n.to_string()), ("{run}", run.to_owned()), ("{a}", a), ("{b}", b), ("{c}", c)];
    let script =
        values.iter().fold(include_str!("filled.sql").to_owned(), |text, (name, value)| text.replace(name, value));
    sqlx::raw_sql(sqlx::AssertSqlSafe(script)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
