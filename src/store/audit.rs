//! Who changed what in a study, and when. Rows are only ever added, in the transaction of the change itself.

use super::Store;
use super::convert::{from_json, from_nanos, to_json};
use super::error::Result;
use super::sql::{Transaction, query, query_as, row};
use crate::ids::StudyId;
use serde::Serialize;
use time::OffsetDateTime;

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditEntry {
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Who.
    pub actor: String,
    /// The action, as one word for programs: `opened`, `settings_changed`.
    pub action: String,
    /// Details.
    pub detail: serde_json::Value,
}

impl AuditEntry {
    /// The action in words, for pages: "settings changed".
    pub fn words(&self) -> String {
        self.action.replace('_', " ")
    }
}

/// Adds an entry.
pub(super) async fn note(
    tx: &mut Transaction<'_>,
    now: i64,
    actor: &str,
    study: &StudyId,
    action: &str,
    detail: &serde_json::Value,
) -> Result<()> {
    let detail = to_json(detail)?;
    query!(
        "INSERT INTO audit (at, actor, study, action, detail) VALUES (?, ?, ?, ?, ?)",
        now,
        actor,
        study,
        action,
        detail,
    )
    .execute(&mut *tx)
    .await?;
    Ok(())
}

impl Store {
    /// The newest changes of a study, newest first.
    pub async fn audit(&self, study: &StudyId, limit: u32) -> Result<Vec<AuditEntry>> {
        row! {
            struct Row {
                at: i64,
                actor: String,
                action: String,
                detail: String,
            }
        }
        let rows = query_as!(
            Row,
            "SELECT at, actor, action, detail FROM audit WHERE study = ? ORDER BY id DESC LIMIT ?",
            study,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(AuditEntry {
                    at: from_nanos(row.at),
                    actor: row.actor,
                    action: row.action,
                    detail: from_json("an audit entry", &row.detail)?,
                })
            })
            .collect()
    }
}
