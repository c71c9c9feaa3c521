//! Teachers: browsers that came by. Only a hash of their token is kept, so that the file alone lets nobody in.

use super::connection::Durability;
use super::convert::{from_nanos, token_hash};
use super::error::{Result, StoreError, unreadable};
use super::sql::{On, query, query_as, query_scalar, row};
use super::{Store, Teacher};
use crate::ids::TeacherId;

row! {
    struct TeacherRow {
        id: TeacherId,
        seen_guide: bool,
        answered: bool,
        created_at: i64,
    }
}

impl From<TeacherRow> for Teacher {
    fn from(row: TeacherRow) -> Self {
        let TeacherRow { id, seen_guide, answered, created_at } = row;
        Teacher { id, seen_guide, answered, created_at: from_nanos(created_at) }
    }
}

async fn teacher_by_hash(executor: impl Into<On<'_>>, hash: &[u8]) -> Result<Option<Teacher>> {
    let row = query_as!(
        TeacherRow,
        r#"SELECT id AS "id!: TeacherId", seen_guide AS "seen_guide: bool", answered AS "answered: bool", created_at
           FROM teachers WHERE token_hash = ?1
               OR id = (SELECT teacher FROM teacher_browsers WHERE teacher_browsers.token_hash = ?1)"#,
        hash,
    );
    Ok(row.fetch_optional(executor).await?.map(Teacher::from))
}

impl Store {
    /// The teacher behind a cookie token (only its hash is stored); made when unknown.
    pub async fn teacher(&self, token: &str) -> Result<Teacher> {
        // At nearly every request the teacher is known, and nobody has to wait for the writer.
        if let Some(known) = self.known_teacher(token).await? {
            return Ok(known);
        }
        let hash = token_hash(token);
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!(
            "INSERT INTO teachers (token_hash, created_at) VALUES (?, ?) ON CONFLICT (token_hash) DO NOTHING",
            hash,
            now,
        )
        .execute(&mut tx)
        .await?;
        let teacher = teacher_by_hash(&mut tx, &hash).await?.ok_or(StoreError::NotFound("the teacher"))?;
        tx.commit().await?;
        Ok(teacher)
    }

    /// The teacher behind a cookie token, if there is one. Nothing is written: a visit alone makes no row.
    pub async fn known_teacher(&self, token: &str) -> Result<Option<Teacher>> {
        teacher_by_hash(self.readers(), &token_hash(token)).await
    }

    /// The key that visitors' cookies are signed with. It was drawn when the database was made, so that cookies
    /// outlive the process and mean nothing to another database.
    pub async fn visitor_key(&self) -> Result<&[u8]> {
        let read = async || -> Result<Vec<u8>> {
            let key = query_scalar!("SELECT value FROM secrets WHERE name = 'visitors'");
            key.fetch_optional(self.readers())
                .await?
                .ok_or_else(|| unreadable("the key of the cookies", "it is missing"))
        };
        Ok(self.visitors().cookie_key.get_or_try_init(read).await?)
    }

    /// Remembers that the guide was dismissed.
    pub async fn set_seen_guide(&self, teacher: TeacherId) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let updated = query!("UPDATE teachers SET seen_guide = 1 WHERE id = ?", teacher).execute(&mut tx).await?;
        if updated.rows_affected() == 0 {
            return Err(StoreError::NotFound("the teacher"));
        }
        Ok(tx.commit().await?)
    }
}
