//! Links that make an account: each is good once and for a time. Only a hash of what stands in the link is kept.

use super::accounts::{account_name, name_key, stored_role};
use super::connection::Durability;
use super::convert::{from_nanos, token_hash};
use super::error::{Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use super::{Role, Store};
use crate::ids::AccountId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use time::OffsetDateTime;

/// Most invites that a list has.
const LISTED: i64 = 200;

/// Key of an invite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct InviteId(pub i64);

impl fmt::Display for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A link that nobody has used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite {
    /// Key.
    pub id: InviteId,
    /// Role of the account that it makes.
    pub role: Role,
    /// Name of the account that made it; `None`: it was made on the machine itself.
    pub created_by: Option<String>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// Until when it is good.
    pub expires_at: OffsetDateTime,
}

/// The result of using a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The account was made.
    Account(AccountId),
    /// Somebody has this name already; the link is still good.
    NameTaken,
    /// The link was used, revoked, has run out, or never was.
    Gone,
}

impl Store {
    /// Makes a link for an account of a role. `token` is what stands in the link.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when there is no account yet and the role is not that of an owner.
    pub async fn invite(&self, token: &str, role: Role, by: Option<AccountId>, good_for: Duration) -> Result<InviteId> {
        if role != Role::Owner && !self.has_accounts().await? {
            return Err(StoreError::Conflict("the first account has to be an owner's".into()));
        }
        let (now, hash, role) = (self.now(), token_hash(token), role.as_str());
        let expires = now.saturating_add(i64::try_from(good_for.as_nanos()).unwrap_or(i64::MAX));
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let invite = query_scalar!(
            r#"INSERT INTO account_invites (token_hash, role, created_by, created_at, expires_at)
               VALUES (?, ?, ?, ?, ?) RETURNING id AS "id!: InviteId""#,
            hash,
            role,
            by,
            now,
            expires,
        );
        let invite = invite.fetch_one(&mut tx).await?;
        tx.commit().await?;
        Ok(invite)
    }

    /// Makes the link of the first owner, in the place of any earlier one. `false`: there are accounts already.
    pub async fn invite_first_owner(&self, token: &str) -> Result<bool> {
        let (now, hash) = (self.now(), token_hash(token));
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let newest = query_scalar!(r#"SELECT max(id) AS "newest: i64" FROM accounts"#);
        if newest.fetch_one(&mut tx).await?.is_some() {
            return Ok(false);
        }
        query!("DELETE FROM account_invites WHERE used_by IS NULL AND revoked_at IS NULL AND first = 1")
            .execute(&mut tx)
            .await?;
        query!(
            "INSERT INTO account_invites (token_hash, role, first, created_at, expires_at) VALUES (?, 'owner', 1, ?, ?)",
            hash,
            now,
            i64::MAX,
        )
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(true)
    }

    /// The role of the account that a link would make, if the link is still good.
    pub async fn invited_role(&self, token: &str) -> Result<Option<Role>> {
        let (now, hash) = (self.now(), token_hash(token));
        let role = query_scalar!(
            "SELECT role FROM account_invites
             WHERE token_hash = ? AND used_by IS NULL AND revoked_at IS NULL AND expires_at > ?
                 AND (first = 0 OR (SELECT max(id) FROM accounts) IS NULL)",
            hash,
            now,
        );
        role.fetch_optional(self.readers()).await?.as_deref().map(stored_role).transpose()
    }

    /// Uses a link: makes the account.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] with a sentence when the name cannot be one.
    pub async fn join(&self, token: &str, name: &str, password_hash: &str) -> Result<Joined> {
        let name = account_name(name)?;
        let (now, hash, key) = (self.now(), token_hash(token), name_key(name));
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        row! {
            struct Row {
                id: InviteId,
                role: String,
            }
        }
        let invite = query_as!(
            Row,
            r#"SELECT id AS "id!: InviteId", role FROM account_invites
               WHERE token_hash = ? AND used_by IS NULL AND revoked_at IS NULL AND expires_at > ?
                   AND (first = 0 OR (SELECT max(id) FROM accounts) IS NULL)"#,
            hash,
            now,
        );
        let Some(invite) = invite.fetch_optional(&mut tx).await? else { return Ok(Joined::Gone) };
        let account = query_scalar!(
            r#"INSERT INTO accounts (name, name_key, password_hash, role, created_at) VALUES (?, ?, ?, ?, ?)
               ON CONFLICT (name_key) DO NOTHING RETURNING id AS "id!: AccountId""#,
            name,
            key,
            password_hash,
            invite.role,
            now,
        );
        let Some(account) = account.fetch_optional(&mut tx).await? else { return Ok(Joined::NameTaken) };
        query!("UPDATE account_invites SET used_by = ? WHERE id = ?", account, invite.id).execute(&mut tx).await?;
        tx.commit().await?;
        self.accounts().note_existence();
        Ok(Joined::Account(account))
    }

    /// Links that are still good, the newest first. That of the first owner is not among them.
    pub async fn open_invites(&self) -> Result<Vec<Invite>> {
        let now = self.now();
        row! {
            struct Row {
                id: InviteId,
                role: String,
                created_at: i64,
                expires_at: i64,
                created_by: Option<String>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT id AS "id!: InviteId", role, created_at, expires_at,
                   (SELECT name FROM accounts WHERE accounts.id = created_by) AS "created_by: String"
               FROM account_invites
               WHERE used_by IS NULL AND revoked_at IS NULL AND expires_at > ? AND first = 0 ORDER BY id DESC LIMIT ?"#,
            now,
            LISTED,
        );
        rows.fetch_all(self.readers())
            .await?
            .into_iter()
            .map(|row| {
                Ok(Invite {
                    id: row.id,
                    role: stored_role(&row.role)?,
                    created_by: row.created_by,
                    created_at: from_nanos(row.created_at),
                    expires_at: from_nanos(row.expires_at),
                })
            })
            .collect()
    }

    /// Takes a link back. One that was used or taken back already is left as it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such link.
    pub async fn revoke_invite(&self, invite: InviteId) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let known = query_scalar!("SELECT id FROM account_invites WHERE id = ?", invite);
        known.fetch_optional(&mut tx).await?.ok_or(StoreError::NotFound("the invitation"))?;
        query!(
            "UPDATE account_invites SET revoked_at = ? WHERE id = ? AND used_by IS NULL AND revoked_at IS NULL",
            now,
            invite,
        )
        .execute(&mut tx)
        .await?;
        Ok(tx.commit().await?)
    }
}
