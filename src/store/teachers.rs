//! Teachers: browsers that came by. Only a hash of their token is kept, so that the file alone lets nobody in.

use super::connection::{Durability, from_int, from_nanos};
use super::error::{Result, StoreError};
use super::{Store, Teacher, TeacherCounts};
use sha2::{Digest, Sha256};
use sqlx::FromRow;

#[derive(FromRow)]
struct TeacherRow {
    id: i64,
    seen_guide: bool,
    created_at: i64,
}

impl From<TeacherRow> for Teacher {
    fn from(row: TeacherRow) -> Self {
        Teacher { id: row.id, seen_guide: row.seen_guide, created_at: from_nanos(row.created_at) }
    }
}

const BY_TOKEN: &str = "SELECT id, seen_guide, created_at FROM teachers WHERE token_hash = ?";

impl Store {
    /// The teacher behind a cookie token (only its hash is stored); made when unknown.
    pub async fn teacher(&self, token: &str) -> Result<Teacher> {
        let hash = Sha256::digest(token.as_bytes()).to_vec();
        // Nearly every request: the teacher is known, and nobody has to wait for the writer.
        if let Some(known) =
            sqlx::query_as::<_, TeacherRow>(BY_TOKEN).bind(&hash).fetch_optional(self.readers()).await?
        {
            return Ok(known.into());
        }
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        sqlx::query("INSERT INTO teachers (token_hash, created_at) VALUES (?, ?) ON CONFLICT (token_hash) DO NOTHING")
            .bind(&hash)
            .bind(self.now())
            .execute(&mut *tx)
            .await?;
        let teacher: TeacherRow = sqlx::query_as(BY_TOKEN).bind(&hash).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(teacher.into())
    }

    /// Remembers that the guide was dismissed.
    pub async fn set_seen_guide(&self, teacher: i64) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let query = sqlx::query("UPDATE teachers SET seen_guide = 1 WHERE id = ?").bind(teacher);
        if query.execute(&mut *tx).await?.rows_affected() == 0 {
            return Err(StoreError::NotFound("the teacher"));
        }
        Ok(tx.commit().await?)
    }

    /// A teacher's figures in the run.
    pub async fn teacher_counts(&self, run: &str, teacher: i64) -> Result<TeacherCounts> {
        let (described, used): (i64, i64) = sqlx::query_as(
            "SELECT count(*), count(used_in_update) FROM answers
             WHERE run = ? AND teacher = ? AND superseded_by IS NULL AND kind = 'described'",
        )
        .bind(run)
        .bind(teacher)
        .fetch_one(self.readers())
        .await?;
        Ok(TeacherCounts { described: from_int(described), used: from_int(used) })
    }
}
