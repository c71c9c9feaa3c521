//! Sessions: the browsers on which somebody is signed in. Only a hash of their token is kept, so that the file alone lets
//! nobody in. They end by the time of day, which is all that outlives the process.

use super::accounts::{end_sessions, stored_role};
use super::connection::Durability;
use super::convert::{from_nanos, token_hash};
use super::error::{Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use super::{Role, Store};
use crate::ids::AccountId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use time::{Duration, OffsetDateTime};
use tokio::sync::watch;

/// How long a session lasts after its browser was there, and how long at most.
const IDLE: Duration = Duration::days(30);
const LONGEST: Duration = Duration::days(180);

/// How exactly it is kept when a browser was there: a write for every request would be too many.
const NOTED_EVERY: Duration = Duration::minutes(5);

/// Most sessions that a list has.
const LISTED: i64 = 100;

/// Key of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who is signed in on a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The account.
    pub account: AccountId,
    /// Its name.
    pub name: String,
    /// Its role now.
    pub role: Role,
    /// The session.
    pub session: SessionId,
}

/// A browser on which somebody is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Key.
    pub id: SessionId,
    /// Browser and system in a few words.
    pub device: String,
    /// When it was opened.
    pub created_at: OffsetDateTime,
    /// When the browser was there last, to some minutes.
    pub seen_at: OffsetDateTime,
}

/// Facts about accounts that only this process knows.
pub(super) struct AccountsHere {
    exist: AtomicBool,
    /// Changes by whomever.
    changes: watch::Sender<()>,
    /// Changes by this process.
    changes_here: watch::Sender<()>,
}

impl Default for AccountsHere {
    fn default() -> Self {
        let (changes, changes_here) = (watch::Sender::new(()), watch::Sender::new(()));
        AccountsHere { exist: AtomicBool::new(false), changes, changes_here }
    }
}

impl AccountsHere {
    pub(super) fn exist(&self) -> bool {
        self.exist.load(Ordering::Relaxed)
    }

    pub(super) fn note_existence(&self) {
        self.exist.store(true, Ordering::Relaxed);
    }

    /// Tells those who wait that a session may have ended or a role may have changed.
    pub(super) fn changed(&self) {
        self.changes.send_replace(());
        self.changes_here.send_replace(());
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.whole_nanoseconds()).unwrap_or(i64::MAX)
}

impl Store {
    /// Signs an account in on a browser that will bring `token`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such account or it was disabled.
    pub async fn open_session(&self, account: AccountId, token: &str, device: &str) -> Result<SignedIn> {
        let (now, hash) = (self.now(), token_hash(token));
        let (expires, long_ago) = (now.saturating_add(nanos(IDLE)), now.saturating_sub(nanos(IDLE)));
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        row! {
            struct Row {
                name: String,
                role: String,
            }
        }
        let row = query_as!(Row, "SELECT name, role FROM accounts WHERE id = ? AND disabled_at IS NULL", account);
        let row = row.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the account"))?;
        query!(
            "DELETE FROM account_sessions WHERE account = ?1 AND (expires_at < ?2 OR revoked_at < ?2)",
            account,
            long_ago,
        )
        .execute(&mut tx)
        .await?;
        let session = query_scalar!(
            r#"INSERT INTO account_sessions (token_hash, account, created_at, seen_at, expires_at, device)
               VALUES (?1, ?2, ?3, ?3, ?4, ?5) RETURNING id AS "id!: SessionId""#,
            hash,
            account,
            now,
            expires,
            device,
        );
        let session = session.fetch_one(&mut tx).await?;
        let role = stored_role(&row.role)?;
        tx.commit().await?;
        Ok(SignedIn { account, name: row.name, role, session })
    }

    /// Who is signed in with this token. The visit is noted, which lengthens the session.
    pub async fn session(&self, token: &str) -> Result<Option<SignedIn>> {
        let (now, hash) = (self.now(), token_hash(token));
        row! {
            struct Row {
                session: SessionId,
                account: AccountId,
                seen_at: i64,
                created_at: i64,
                name: String,
                role: String,
            }
        }
        let row = query_as!(
            Row,
            r#"SELECT account_sessions.id AS "session!: SessionId", account AS "account!: AccountId", seen_at,
                   account_sessions.created_at, name, role
               FROM account_sessions JOIN accounts ON accounts.id = account
               WHERE token_hash = ? AND revoked_at IS NULL AND expires_at > ? AND disabled_at IS NULL"#,
            hash,
            now,
        );
        let Some(row) = row.fetch_optional(self.readers()).await? else { return Ok(None) };
        let signed =
            SignedIn { account: row.account, name: row.name, role: stored_role(&row.role)?, session: row.session };
        if now.saturating_sub(row.seen_at) >= nanos(NOTED_EVERY) {
            let expires = now.saturating_add(nanos(IDLE)).min(row.created_at.saturating_add(nanos(LONGEST)));
            // The page is worth more than the note: a full disk signs nobody out.
            if let Err(error) = self.note_visit(signed.session, now, expires).await {
                tracing::debug!(%error, "a visit was not noted");
            }
        }
        Ok(Some(signed))
    }

    /// The role of the account of a session; `None` when the session has ended.
    pub async fn role_in_session(&self, session: SessionId) -> Result<Option<Role>> {
        let now = self.now();
        let role = query_scalar!(
            "SELECT role FROM account_sessions JOIN accounts ON accounts.id = account
             WHERE account_sessions.id = ? AND revoked_at IS NULL AND expires_at > ? AND disabled_at IS NULL",
            session,
            now,
        );
        role.fetch_optional(self.readers()).await?.as_deref().map(stored_role).transpose()
    }

    async fn note_visit(&self, session: SessionId, now: i64, expires: i64) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        query!(
            "UPDATE account_sessions SET seen_at = ?, expires_at = ? WHERE id = ? AND revoked_at IS NULL",
            now,
            expires,
            session,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// The sessions of an account that have not ended, the newest first.
    pub async fn sessions_of(&self, account: AccountId) -> Result<Vec<Session>> {
        let now = self.now();
        row! {
            struct Row {
                id: SessionId,
                device: String,
                created_at: i64,
                seen_at: i64,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT id AS "id!: SessionId", device, created_at, seen_at FROM account_sessions
               WHERE account = ? AND revoked_at IS NULL AND expires_at > ? ORDER BY id DESC LIMIT ?"#,
            account,
            now,
            LISTED,
        );
        let read = rows.fetch_all(self.readers()).await?.into_iter().map(|row| Session {
            id: row.id,
            device: row.device,
            created_at: from_nanos(row.created_at),
            seen_at: from_nanos(row.seen_at),
        });
        Ok(read.collect())
    }

    /// Ends a session of an account.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the account has no such session.
    pub async fn end_session(&self, account: AccountId, session: SessionId) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let ended = query!(
            "UPDATE account_sessions SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? AND account = ?",
            now,
            session,
            account,
        );
        if ended.execute(&mut tx).await?.rows_affected() == 0 {
            return Err(StoreError::NotFound("the session"));
        }
        tx.commit().await?;
        self.accounts().changed();
        Ok(())
    }

    /// Ends all sessions of an account but one. The number that ended.
    pub async fn end_other_sessions(&self, account: AccountId, but: SessionId) -> Result<u64> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let ended = end_sessions(&mut tx, account, Some(but), now).await?;
        tx.commit().await?;
        self.accounts().changed();
        Ok(ended)
    }

    /// Wakes whenever a session may have ended or a role may have changed, as far as this process knows.
    pub fn account_changes(&self) -> watch::Receiver<()> {
        self.accounts().changes.subscribe()
    }

    /// Wakes whenever this process itself has ended a session or changed a role.
    pub fn account_changes_here(&self) -> watch::Receiver<()> {
        self.accounts().changes_here.subscribe()
    }

    /// Wakes those who wait for [`Store::account_changes`], since another process has ended a session or changed a role.
    pub fn account_changed_elsewhere(&self) {
        self.accounts().changes.send_replace(());
    }
}
