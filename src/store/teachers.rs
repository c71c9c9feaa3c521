//! Teachers: browsers that came by. Only a hash of their token is kept, so that the file alone lets nobody in.

use super::connection::{Durability, from_nanos};
use super::error::{Result, StoreError, unreadable};
use super::{Store, Teacher};
use sha2::{Digest, Sha256};
use sqlx::FromRow;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use tokio::sync::OnceCell;

/// How long a person counts as there after they asked for something or answered, in nanoseconds.
const PRESENT: i64 = 120_000_000_000;

#[derive(FromRow)]
struct TeacherRow {
    id: i64,
    seen_guide: bool,
    answered: bool,
    created_at: i64,
}

impl From<TeacherRow> for Teacher {
    fn from(row: TeacherRow) -> Self {
        let TeacherRow { id, seen_guide, answered, created_at } = row;
        Teacher { id, seen_guide, answered, created_at: from_nanos(created_at) }
    }
}

const BY_TOKEN: &str = "SELECT id, seen_guide, answered, created_at FROM teachers WHERE token_hash = ?";

/// What need not outlive the process: who was there lately (a request that finds nothing leaves no row), and the key
/// of the cookies once it was read.
#[derive(Default)]
pub(super) struct Visitors {
    /// By run and teacher: when they asked or answered last, by the clock of leases.
    seen: Mutex<HashMap<String, HashMap<i64, i64>>>,
    key: OnceCell<Vec<u8>>,
}

impl Visitors {
    /// Notes that the teacher is at the run now.
    pub(super) fn note(&self, run: &str, teacher: i64, now: i64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get_mut(run) {
            Some(run) => run.insert(teacher, now),
            None => seen.entry(run.to_owned()).or_default().insert(teacher, now),
        };
    }

    /// Who was at the run lately; others are forgotten.
    pub(super) fn present(&self, run: &str, now: i64) -> HashSet<i64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for teachers in seen.values_mut() {
            teachers.retain(|_, &mut at| (0..PRESENT).contains(&now.saturating_sub(at)));
        }
        seen.retain(|_, teachers| !teachers.is_empty());
        seen.get(run).map(|teachers| teachers.keys().copied().collect()).unwrap_or_default()
    }
}

impl Store {
    /// The teacher behind a cookie token (only its hash is stored); made when unknown.
    pub async fn teacher(&self, token: &str) -> Result<Teacher> {
        // Nearly every request: the teacher is known, and nobody has to wait for the writer.
        if let Some(known) = self.known_teacher(token).await? {
            return Ok(known);
        }
        let hash = Sha256::digest(token.as_bytes()).to_vec();
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

    /// The teacher behind a cookie token, if there is one. Nothing is written: a visit alone makes no row.
    pub async fn known_teacher(&self, token: &str) -> Result<Option<Teacher>> {
        let hash = Sha256::digest(token.as_bytes()).to_vec();
        let known = sqlx::query_as::<_, TeacherRow>(BY_TOKEN).bind(&hash).fetch_optional(self.readers()).await?;
        Ok(known.map(Teacher::from))
    }

    /// The key that visitors' cookies are signed with. It was drawn when the database was made, so that cookies
    /// outlive the process and mean nothing to another database.
    pub async fn visitor_key(&self) -> Result<&[u8]> {
        let read = async || -> Result<Vec<u8>> {
            let key = sqlx::query_scalar("SELECT value FROM secrets WHERE name = 'visitors'");
            key.fetch_optional(self.readers())
                .await?
                .ok_or_else(|| unreadable("the key of the cookies", "it is missing"))
        };
        Ok(self.visitors().key.get_or_try_init(read).await?)
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
}
