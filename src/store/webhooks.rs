//! Messages to the programs of researchers, until they are delivered. They are queued in the transaction of what they tell, so
//! that a message goes out for everything that happened and for nothing that did not.

use super::connection::Durability;
use super::convert::{from_int, from_nanos, to_json, to_nanos};
use super::error::{Result, StoreError};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{Store, audit};
use crate::ids::StudyId;
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;

/// A message that is to be delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookMessage {
    /// Key; it goes with the message, so that the other side can tell a repetition.
    pub id: i64,
    /// The study.
    pub study: StudyId,
    /// The event, such as `participant.finished`.
    pub event: String,
    /// The message, as JSON text: exactly these bytes are signed and sent.
    pub body: String,
    /// Deliveries that were tried.
    pub attempts: u64,
    /// Where it goes.
    pub url: String,
    /// Key of the signature.
    pub secret: String,
}

/// A message as the study's page lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebhookRecord {
    /// Key.
    pub id: i64,
    /// The event.
    pub event: String,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Deliveries that were tried.
    pub attempts: u64,
    /// When the other side took it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub delivered_at: Option<OffsetDateTime>,
    /// When it was given up.
    #[serde(with = "time::serde::rfc3339::option")]
    pub given_up_at: Option<OffsetDateTime>,
    /// Why the last delivery failed.
    pub last_error: Option<String>,
}

/// Queues a message, where the study has an address for it; says whether it has.
pub(super) async fn queue(
    tx: &mut Transaction<'_>,
    now: i64,
    study: &StudyId,
    event: &str,
    detail: &serde_json::Value,
) -> Result<bool> {
    let at = from_nanos(now);
    let at = at.format(&time::format_description::well_known::Rfc3339).unwrap_or_default();
    let body = to_json(&json!({ "event": event, "study": study, "at": at, "data": detail }))?;
    let queued = query!(
        "INSERT INTO webhook_messages (study, event, body, created_at, next_at)
         SELECT id, ?2, ?3, ?4, ?4 FROM studies WHERE id = ?1 AND coalesce(json_extract(settings, '$.webhook'), '') <> ''",
        study,
        event,
        body,
        now,
    )
    .execute(&mut *tx)
    .await?;
    Ok(queued.rows_affected() > 0)
}

impl Store {
    /// The messages whose time has come, those that wait longest first, but for those of the studies in `busy`.
    pub async fn due_webhooks(&self, busy: &[StudyId], limit: u32) -> Result<Vec<WebhookMessage>> {
        let now = self.now();
        let busy = to_json(&busy)?;
        row! {
            struct Row {
                id: i64,
                study: StudyId,
                event: String,
                body: String,
                attempts: i64,
                url: String,
                secret: String,
            }
        }
        let rows = query_as!(Row, r#"SELECT message.id AS "id!", message.study AS "study!: StudyId", message.event, message.body, message.attempts,
                   coalesce(json_extract(studies.settings, '$.webhook'), '') AS "url!: String",
                   studies.webhook_secret AS "secret!"
               FROM webhook_messages AS message JOIN studies ON studies.id = message.study
               WHERE message.delivered_at IS NULL AND message.given_up_at IS NULL AND message.next_at <= ?
                   AND message.study NOT IN (SELECT value FROM json_each(?))
               ORDER BY message.next_at, message.id LIMIT ?"#,
            now,
            busy,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| WebhookMessage {
                id: row.id,
                study: row.study,
                event: row.event,
                body: row.body,
                attempts: from_int(row.attempts),
                url: row.url,
                secret: row.secret,
            })
            .collect())
    }

    /// Remembers that a message was taken.
    pub async fn webhook_delivered(&self, id: i64) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        query!(
            "UPDATE webhook_messages SET delivered_at = ?, attempts = attempts + 1, last_error = NULL WHERE id = ?",
            now,
            id,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// Remembers that a message could not be delivered; it is tried again at `next`, or given up.
    pub async fn webhook_failed(&self, id: i64, error: &str, next: Option<OffsetDateTime>) -> Result<()> {
        let now = self.now();
        let next = next.map(to_nanos);
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        query!(
            "UPDATE webhook_messages SET attempts = attempts + 1, last_error = ?2, next_at = coalesce(?3, next_at),
                 given_up_at = CASE WHEN ?3 IS NULL THEN ?4 ELSE NULL END
             WHERE id = ?1",
            id,
            error,
            next,
            now,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// Queues a message that tells nothing, so that a researcher sees whether messages arrive.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the study has no address for messages.
    pub async fn queue_webhook_test(&self, study: &StudyId, actor: &str) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if !queue(&mut tx, now, study, "test", &json!({ "sent_by": actor })).await? {
            return Err(StoreError::Conflict(
                "the study has no address for messages; enter one in the editor".to_owned(),
            ));
        }
        Ok(tx.commit().await?)
    }

    /// Tries a message that was given up from the beginning.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such message or it was not given up.
    pub async fn retry_webhook(&self, study: &StudyId, id: i64) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let retried = query!(
            "UPDATE webhook_messages SET given_up_at = NULL, attempts = 0, next_at = ?3
             WHERE id = ?1 AND study = ?2 AND given_up_at IS NOT NULL",
            id,
            study,
            now,
        )
        .execute(&mut tx)
        .await?;
        if retried.rows_affected() == 0 {
            return Err(StoreError::NotFound("the message"));
        }
        Ok(tx.commit().await?)
    }

    /// The key that a study's messages are signed with. That somebody saw it stands in the audit trail.
    pub async fn show_webhook_secret(&self, study: &StudyId, actor: &str) -> Result<String> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let secret = query_scalar!(r#"SELECT webhook_secret AS "secret!" FROM studies WHERE id = ?"#, study);
        let secret = secret.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the study"))?;
        audit::note(&mut tx, now, actor, study, "webhook_secret_shown", &json!({})).await?;
        tx.commit().await?;
        Ok(secret)
    }

    /// Gives a study another key; messages that wait are signed with it, too.
    pub async fn renew_webhook_secret(&self, study: &StudyId, secret: &str, actor: &str) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!("UPDATE studies SET webhook_secret = ? WHERE id = ?", secret, study).execute(&mut tx).await?;
        audit::note(&mut tx, now, actor, study, "webhook_secret_renewed", &json!({})).await?;
        Ok(tx.commit().await?)
    }

    /// The newest messages of a study, newest first.
    pub async fn webhooks(&self, study: &StudyId, limit: u32) -> Result<Vec<WebhookRecord>> {
        row! {
            struct Row {
                id: i64,
                event: String,
                created_at: i64,
                attempts: i64,
                delivered_at: Option<i64>,
                given_up_at: Option<i64>,
                last_error: Option<String>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT id AS "id!", event, created_at, attempts, delivered_at, given_up_at, last_error
               FROM webhook_messages WHERE study = ? ORDER BY id DESC LIMIT ?"#,
            study,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| WebhookRecord {
                id: row.id,
                event: row.event,
                created_at: from_nanos(row.created_at),
                attempts: from_int(row.attempts),
                delivered_at: row.delivered_at.map(from_nanos),
                given_up_at: row.given_up_at.map(from_nanos),
                last_error: row.last_error,
            })
            .collect())
    }
}
