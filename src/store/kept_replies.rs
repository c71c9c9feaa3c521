//! The first replies to requests that carry an `Idempotency-Key`, kept for a day.

use super::Store;
use super::connection::Durability;
use super::convert::from_int;
use super::error::Result;
use super::sql::{query, query_as, row};
use time::Duration;

/// How long a reply is kept.
const KEPT: Duration = Duration::hours(24);

/// A reply that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// Digest of the request that it answered.
    pub request: Vec<u8>,
    /// HTTP status.
    pub status: u16,
    /// Content type; empty where the reply had none.
    pub content_type: String,
    /// Body.
    pub body: Vec<u8>,
}

fn horizon(now: i64) -> i64 {
    now.saturating_sub(i64::try_from(KEPT.whole_nanoseconds()).unwrap_or(i64::MAX))
}

impl Store {
    /// The reply that is kept under a key of a sender.
    pub async fn kept_reply(&self, sender_key: &[u8]) -> Result<Option<KeptReply>> {
        let oldest = horizon(self.now());
        row! {
            struct Row {
                request: Vec<u8>,
                status: i64,
                content_type: String,
                body: Vec<u8>,
            }
        }
        let row = query_as!(
            Row,
            "SELECT request, status, content_type, body FROM kept_replies WHERE sender_key = ? AND created_at > ?",
            sender_key,
            oldest,
        );
        Ok(row.fetch_optional(self.readers()).await?.map(|row| KeptReply {
            request: row.request,
            status: u16::try_from(from_int(row.status)).unwrap_or(200),
            content_type: row.content_type,
            body: row.body,
        }))
    }

    /// Keeps a reply under a key of a sender, and forgets those that are older than a day.
    pub async fn keep_reply(&self, sender_key: &[u8], reply: &KeptReply) -> Result<()> {
        let now = self.now();
        let (oldest, status) = (horizon(now), i64::from(reply.status));
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!("DELETE FROM kept_replies WHERE created_at <= ?", oldest).execute(&mut tx).await?;
        query!(
            "INSERT INTO kept_replies (sender_key, request, status, content_type, body, created_at)
             VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (sender_key) DO NOTHING",
            sender_key,
            reply.request,
            status,
            reply.content_type,
            reply.body,
            now,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }
}
