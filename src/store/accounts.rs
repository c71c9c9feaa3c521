//! Accounts: who may sign in, by which name and with which role. Passwords come and go as hashes.
//!
//! The last owner who can sign in keeps the role: nobody else could give it back.

use super::connection::Durability;
use super::convert::from_nanos;
use super::error::{Result, StoreError, unreadable};
use super::sql::{On, Transaction, query, query_as, query_scalar, row};
use super::{SessionId, Store};
use crate::ids::AccountId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use time::OffsetDateTime;

/// Most characters of an account's name.
pub const NAME_LIMIT: usize = 100;

/// Most accounts that a list has.
const LISTED: i64 = 1_000;

/// The rights of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Steers runs, reads data, and manages accounts.
    Owner,
    /// Steers runs and reads data.
    Researcher,
    /// Reviews what teachers said.
    Reviewer,
    /// Teaches.
    Teacher,
}

impl Role {
    /// All roles, the one with most rights first.
    pub const ALL: [Role; 4] = [Role::Owner, Role::Researcher, Role::Reviewer, Role::Teacher];

    /// The role's name in the database and in forms.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Researcher => "researcher",
            Role::Reviewer => "reviewer",
            Role::Teacher => "teacher",
        }
    }

    /// The rights, as the rest of a sentence about somebody.
    pub fn rights(self) -> &'static str {
        match self {
            Role::Owner => "steers runs, reads their data and manages people",
            Role::Researcher => "steers runs and reads their data",
            Role::Reviewer => "reviews what teachers said",
            Role::Teacher => "teaches",
        }
    }

    /// Whether the role lets somebody steer runs and read their data.
    pub fn steers(self) -> bool {
        matches!(self, Role::Owner | Role::Researcher)
    }

    /// Whether the role lets somebody review.
    pub fn reviews(self) -> bool {
        self.steers() || self == Role::Reviewer
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let named = |role: &Role| role.as_str() == text;
        Role::ALL
            .into_iter()
            .find(named)
            .ok_or_else(|| format!("`{text}` is no role; there are {}", Role::ALL.map(Role::as_str).join(", ")))
    }
}

/// A stored role.
pub(super) fn stored_role(text: &str) -> Result<Role> {
    text.parse().map_err(|error: String| unreadable("the role", error))
}

/// Somebody who may sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Key.
    pub id: AccountId,
    /// Name or e-mail address, as it was typed.
    pub name: String,
    /// Rights.
    pub role: Role,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was disabled; such an account cannot sign in.
    pub disabled_at: Option<OffsetDateTime>,
    /// When a browser of theirs was there last.
    pub seen_at: Option<OffsetDateTime>,
}

row! {
    /// An account with the hash that a password is held against.
    #[derive(Clone, Debug)]
    pub struct Credentials {
        /// The account.
        pub account: AccountId,
        /// PHC string of the password.
        pub password_hash: String,
        /// Whether the account was disabled.
        pub disabled: bool,
    }
}

row! {
    struct AccountRow {
        id: AccountId,
        name: String,
        role: String,
        created_at: i64,
        disabled_at: Option<i64>,
        seen_at: Option<i64>,
    }
}

impl AccountRow {
    fn read(self) -> Result<Account> {
        Ok(Account {
            id: self.id,
            role: stored_role(&self.role)?,
            name: self.name,
            created_at: from_nanos(self.created_at),
            disabled_at: self.disabled_at.map(from_nanos),
            seen_at: self.seen_at.map(from_nanos),
        })
    }
}

/// The name as it is stored: without blanks around it.
///
/// # Errors
/// [`StoreError::Invalid`] with a sentence when it cannot be one.
pub fn account_name(typed: &str) -> Result<&str> {
    let name = typed.trim();
    let invalid = |sentence: &str| Err(StoreError::Invalid(sentence.to_owned()));
    if name.is_empty() {
        return invalid("Enter a name or an e-mail address.");
    }
    if name.chars().count() > NAME_LIMIT {
        return invalid("The name has more than 100 characters; choose a shorter one.");
    }
    // Two names that look alike would be two people to a reader, so blanks and marks without a width are refused.
    let unseen = |c: char| {
        c.is_control()
            || (c.is_whitespace() && c != ' ')
            || matches!(c as u32,
        0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF9..=0xFFFB | 0xE0000..=0xE0FFF)
    };
    if name.chars().any(unseen) {
        return invalid("The name has a character in it that cannot be shown; leave it out.");
    }
    // The audit trail names these where no account acts.
    if ["access token", "this machine", "the participant", "command line"].contains(&name.to_lowercase().as_str()) {
        return invalid("This name is kept for something else; choose another one.");
    }
    Ok(name)
}

/// The key of a name: one name has one account however it is written.
pub(super) fn name_key(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Refuses to take the role of owner from the last one who can sign in.
async fn keep_an_owner(tx: &mut Transaction<'_>, but: AccountId) -> Result<()> {
    let other =
        query_scalar!("SELECT id FROM accounts WHERE role = 'owner' AND disabled_at IS NULL AND id <> ? LIMIT 1", but,);
    if other.fetch_optional(&mut *tx).await?.is_none() {
        return Err(StoreError::Conflict(
            "this is the last owner who can sign in; make somebody else an owner first".into(),
        ));
    }
    Ok(())
}

async fn role_of(executor: impl Into<On<'_>>, account: AccountId) -> Result<(Role, bool)> {
    row! {
        struct Row {
            role: String,
            disabled: bool,
        }
    }
    let row = query_as!(
        Row,
        r#"SELECT role, disabled_at IS NOT NULL AS "disabled!: bool" FROM accounts WHERE id = ?"#,
        account,
    );
    let row = row.fetch_optional(executor).await?.ok_or(StoreError::NotFound("the account"))?;
    Ok((stored_role(&row.role)?, row.disabled))
}

/// Ends sessions of an account, all but one if that is named.
pub(super) async fn end_sessions(
    tx: &mut Transaction<'_>,
    account: AccountId,
    but: Option<SessionId>,
    now: i64,
) -> Result<u64> {
    let ended = query!(
        "UPDATE account_sessions SET revoked_at = ?1
         WHERE account = ?2 AND revoked_at IS NULL AND expires_at > ?1 AND id IS DISTINCT FROM ?3",
        now,
        account,
        but,
    );
    Ok(ended.execute(&mut *tx).await?.rows_affected())
}

impl Store {
    /// Whether there is an account at all. Accounts are never removed, so this is asked for only until there is one.
    pub async fn has_accounts(&self) -> Result<bool> {
        if self.accounts().exist() {
            return Ok(true);
        }
        let newest = query_scalar!(r#"SELECT max(id) AS "newest: i64" FROM accounts"#);
        let exist = newest.fetch_one(self.readers()).await?.is_some();
        if exist {
            self.accounts().note_existence();
        }
        Ok(exist)
    }

    /// All accounts, in the order in which they were made.
    pub async fn list_accounts(&self) -> Result<Vec<Account>> {
        let rows = query_as!(
            AccountRow,
            r#"SELECT id AS "id!: AccountId", name, role, created_at, disabled_at,
                   (SELECT max(seen_at) FROM account_sessions WHERE account = accounts.id) AS "seen_at: i64"
               FROM accounts ORDER BY id LIMIT ?"#,
            LISTED,
        );
        rows.fetch_all(self.readers()).await?.into_iter().map(AccountRow::read).collect()
    }

    /// The account of a name, however it is written.
    pub async fn account_called(&self, name: &str) -> Result<Option<Account>> {
        let key = name_key(name);
        let row = query_as!(
            AccountRow,
            r#"SELECT id AS "id!: AccountId", name, role, created_at, disabled_at,
                   (SELECT max(seen_at) FROM account_sessions WHERE account = accounts.id) AS "seen_at: i64"
               FROM accounts WHERE name_key = ?"#,
            key,
        );
        row.fetch_optional(self.readers()).await?.map(AccountRow::read).transpose()
    }

    /// The hash that a password for this name is compared with.
    pub async fn credentials(&self, name: &str) -> Result<Option<Credentials>> {
        let key = name_key(name);
        let row = query_as!(
            Credentials,
            r#"SELECT id AS "account!: AccountId", password_hash, disabled_at IS NOT NULL AS "disabled!: bool"
               FROM accounts WHERE name_key = ?"#,
            key,
        );
        Ok(row.fetch_optional(self.readers()).await?)
    }

    /// Gives an account another role.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is the last owner's.
    pub async fn set_role(&self, account: AccountId, role: Role) -> Result<()> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let (before, disabled) = role_of(&mut tx, account).await?;
        if before == Role::Owner && role != Role::Owner && !disabled {
            keep_an_owner(&mut tx, account).await?;
        }
        let name = role.as_str();
        query!("UPDATE accounts SET role = ? WHERE id = ?", name, account).execute(&mut tx).await?;
        tx.commit().await?;
        self.accounts().changed();
        Ok(())
    }

    /// Disables an account, which ends its sessions at once, or lets it sign in again.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is the last owner's.
    pub async fn set_disabled(&self, account: AccountId, disabled: bool) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let (role, before) = role_of(&mut tx, account).await?;
        if disabled && !before {
            if role == Role::Owner {
                keep_an_owner(&mut tx, account).await?;
            }
            query!("UPDATE accounts SET disabled_at = ? WHERE id = ?", now, account).execute(&mut tx).await?;
            end_sessions(&mut tx, account, None, now).await?;
        } else if !disabled {
            query!("UPDATE accounts SET disabled_at = NULL WHERE id = ?", account).execute(&mut tx).await?;
        }
        tx.commit().await?;
        self.accounts().changed();
        Ok(())
    }

    /// Gives an account another password, and ends its sessions but the one from which that was asked for. The number of
    /// sessions that ended.
    pub async fn set_password(&self, account: AccountId, password_hash: &str, but: Option<SessionId>) -> Result<u64> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        role_of(&mut tx, account).await?;
        query!("UPDATE accounts SET password_hash = ? WHERE id = ?", password_hash, account).execute(&mut tx).await?;
        let ended = end_sessions(&mut tx, account, but, now).await?;
        tx.commit().await?;
        self.accounts().changed();
        Ok(ended)
    }
}
