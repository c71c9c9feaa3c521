//! Text that people are typing and have not sent. It is kept for the execution that it is about, so that it comes back with
//! that execution on any device, and after a restart.

use super::connection::Durability;
use super::convert::{from_nanos, to_int};
use super::error::Result;
use super::sql::{query, query_as, row};
use super::{Draft, SavedDraft, Store};
use crate::ids::{ExecutionId, RunId, TeacherId};

/// Days after which a draft goes.
const KEPT_DAYS: i64 = 60;

/// Drafts that are kept for one teacher: the latest.
const KEPT: u32 = 100;

row! {
    struct Row {
        execution: ExecutionId,
        text: String,
        saved_at: i64,
    }
}

impl Row {
    fn read(self) -> SavedDraft {
        SavedDraft { execution: self.execution, text: self.text, saved_at: from_nanos(self.saved_at) }
    }
}

impl Store {
    /// Keeps what a teacher has typed about an execution, in the place of what was kept before. An older version of the same
    /// page changes nothing, nor does the text of the answer that stands. An empty text discards the draft.
    ///
    /// # Errors
    /// [`super::StoreError::NeverYours`] when the teacher never had the execution.
    pub async fn save_draft(&self, draft: &Draft) -> Result<()> {
        self.held(draft.execution, draft.teacher).await?;
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        if draft.text.trim().is_empty() {
            query!("DELETE FROM drafts WHERE teacher = ? AND execution = ?", draft.teacher, draft.execution)
                .execute(&mut tx)
                .await?;
            return Ok(tx.commit().await?);
        }
        let (now, version) = (self.now(), to_int("the version of a draft", draft.version)?);
        query!(
            "INSERT INTO drafts (teacher, execution, client_key, version, text, saved_at)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6
             WHERE NOT EXISTS (SELECT 1 FROM answers INDEXED BY answers_standing
                 WHERE execution = ?2 AND teacher = ?1 AND superseded_by IS NULL AND execution IS NOT NULL AND text = ?5)
             ON CONFLICT (teacher, execution) DO UPDATE SET client_key = excluded.client_key,
                 version = excluded.version, text = excluded.text, saved_at = excluded.saved_at
             WHERE drafts.client_key <> excluded.client_key OR drafts.version <= excluded.version",
            draft.teacher,
            draft.execution,
            draft.client_key,
            version,
            draft.text,
            now,
        )
        .execute(&mut tx)
        .await?;
        let oldest = now - time::Duration::days(KEPT_DAYS).whole_nanoseconds() as i64;
        query!("DELETE FROM drafts WHERE saved_at < ?", oldest).execute(&mut tx).await?;
        query!(
            "DELETE FROM drafts WHERE teacher = ?1 AND saved_at <= (SELECT saved_at FROM drafts
                 WHERE teacher = ?1 ORDER BY saved_at DESC LIMIT 1 OFFSET ?2)",
            draft.teacher,
            KEPT,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// The draft of a teacher about an execution.
    pub async fn draft(&self, execution: ExecutionId, teacher: TeacherId) -> Result<Option<SavedDraft>> {
        let row = query_as!(
            Row,
            r#"SELECT execution AS "execution!: ExecutionId", text AS "text!", saved_at AS "saved_at!"
               FROM drafts WHERE teacher = ? AND execution = ?"#,
            teacher,
            execution,
        );
        Ok(row.fetch_optional(self.readers()).await?.map(Row::read))
    }

    /// The drafts of a teacher about executions of a run, newest first.
    pub async fn drafts(&self, run: &RunId, teacher: TeacherId, limit: u32) -> Result<Vec<SavedDraft>> {
        let rows = query_as!(
            Row,
            r#"SELECT drafts.execution AS "execution!: ExecutionId", drafts.text AS "text!",
                   drafts.saved_at AS "saved_at!"
               FROM drafts INDEXED BY drafts_of_teacher CROSS JOIN executions ON executions.id = drafts.execution
               WHERE drafts.teacher = ? AND executions.run = ?
               ORDER BY drafts.saved_at DESC LIMIT ?"#,
            teacher,
            run,
            limit,
        );
        Ok(rows.fetch_all(self.readers()).await?.into_iter().map(Row::read).collect())
    }
}
