//! A store with very many rows, made in seconds.

use iliad::ids::TeacherId;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use std::path::Path;

/// Fills the run beside the store's back: `n` answers of the three teachers in turn to as many executions, `n` simulated
/// ones, `n` points (one in ten with a reading), `n` checkpoints. All answers are used, and
/// carried out before.
pub async fn fill(file: &Path, run: &str, teachers: [TeacherId; 3], n: i64) {
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(false);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let numbers = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n})");
    let [a, b, c] = teachers;
    let view = r#"{"pairs": [{"in": "a", "out": "b"}]}"#;
    let statements = [
        "BEGIN".to_owned(),
        format!(
            "INSERT INTO executions (id, run, episode, policy_update, wanted, given, state, shown, touched, success,
                 request, summary, offered_at)
             {numbers} SELECT i, '{run}', i, i, 1, 1, 'done', 1, 1, 0, 'r', 's', i FROM n"
        ),
        format!("INSERT INTO execution_bodies (execution, view, trace) {numbers} SELECT i, '{view}', '[]' FROM n"),
        format!(
            "INSERT INTO answers (run, episode, source, execution, teacher, client_key, kind, text, request_shown,
                 policy_update, created_at, used_in_update, used_position, used_at)
             {numbers} SELECT '{run}', i, 'human', i, CASE i % 3 WHEN 0 THEN {a} WHEN 1 THEN {b} ELSE {c} END,
                 'k' || i, 'described', 't', 0, i, i, i, 0, i FROM n"
        ),
        format!(
            "INSERT INTO comprehension (answer, run, teacher, update_no, episodes, descriptions, seconds, told_before,
                 before_understood, before_summary, before_view)
             {numbers} SELECT i, '{run}', CASE i % 3 WHEN 0 THEN {a} WHEN 1 THEN {b} ELSE {c} END, i, i, i, i, 0, i % 2,
                 's', '{view}' FROM n"
        ),
        format!("INSERT INTO updates {numbers} SELECT '{run}', i, '{{}}', i FROM n"),
        format!(
            "INSERT INTO answers (id, run, episode, source, kind, text, request_shown, policy_update, created_at,
                 used_in_update)
             {numbers} SELECT {n} + i, '{run}', {n} + i, 'simulated', 'described', 't', 0, i, i, i FROM n"
        ),
        format!(
            "INSERT INTO episodes (run, episode, update_no, answer, success, recorded_at, request, summary, candidates,
                 view)
             {numbers} SELECT '{run}', {n} + i, i, {n} + i, 1, i, 'r', 's', '[]', '{view}' FROM n"
        ),
        format!(
            "INSERT INTO points (run, update_no, episodes, descriptions, seconds, validation, validation_n,
                 validation_low, validation_high, place)
             {numbers} SELECT '{run}', i, i, i, i, iif(i % 10 = 0, 0.5, NULL), 9, 0.1, 0.9,
                 iif(i % 10 = 0, i / 10 - 1, i - i / 10 - 1) FROM n"
        ),
        format!(
            "INSERT INTO checkpoints (run, name, update_no, episodes, descriptions, bytes, written_at, best)
             {numbers} SELECT '{run}', 'c' || i, i, i, i, 1, '2026', i = {n} / 2 FROM n"
        ),
        "COMMIT".to_owned(),
    ];
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}
