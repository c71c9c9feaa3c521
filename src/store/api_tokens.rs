//! Tokens of programs. Only a hash is kept, so that the file alone lets no program in.

use super::Store;
use super::connection::Durability;
use super::convert::{from_nanos, to_nanos, token_hash};
use super::error::{Result, StoreError, unreadable};
use super::sql::{query, query_as, query_scalar, row};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use time::{Duration, OffsetDateTime};

/// How exactly it is kept when a token was used: a write for every request would be too many.
const NOTED_EVERY: Duration = Duration::minutes(5);

/// Most characters of a token's name.
const NAME_LIMIT: usize = 100;

/// Most tokens that a list has.
const LISTED: i64 = 1_000;

/// Key of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct TokenId(pub i64);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A right that a token gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Reads runs, their curves, and studies.
    Read,
    /// Takes executions and answers them.
    Teach,
    /// Is the agent of an outside run: posts executions and reads their descriptions.
    Agent,
    /// Starts runs and commands them.
    Steer,
    /// Reads what teachers said.
    Export,
    /// Changes studies, and opens everything else that the access token opens.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 6] = [Scope::Read, Scope::Teach, Scope::Agent, Scope::Steer, Scope::Export, Scope::Admin];

    /// The scope's name in the database, in forms and in flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Teach => "teach",
            Scope::Agent => "agent",
            Scope::Steer => "steer",
            Scope::Export => "export",
            Scope::Admin => "admin",
        }
    }

    /// The right, as the rest of a sentence about a program.
    pub fn rights(self) -> &'static str {
        match self {
            Scope::Read => "reads runs, their curves, and studies",
            Scope::Teach => "takes executions and answers them, as a teacher of its own",
            Scope::Agent => "posts the executions of an outside run and reads their descriptions",
            Scope::Steer => "starts runs and commands them",
            Scope::Export => "reads what teachers said",
            Scope::Admin => "changes studies, and opens everything else that the access token opens",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Scope, String> {
        Scope::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no scope; there are {}", Scope::ALL.map(Scope::as_str).join(", ")))
    }
}

/// A token as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// Key.
    pub id: TokenId,
    /// Name that its maker gave it.
    pub name: String,
    /// Rights.
    pub scopes: Vec<Scope>,
    /// Name of who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it ends by itself; `None`: never.
    pub expires_at: Option<OffsetDateTime>,
    /// When a program used it last, to some minutes.
    pub used_at: Option<OffsetDateTime>,
    /// Whether it has ended by itself.
    pub expired: bool,
}

/// A token that a program has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownToken {
    /// Key.
    pub id: TokenId,
    /// Name.
    pub name: String,
    /// Rights.
    pub scopes: Vec<Scope>,
}

row! {
    struct Row {
        id: TokenId,
        name: String,
        scopes: String,
        created_by: String,
        created_at: i64,
        expires_at: Option<i64>,
        used_at: Option<i64>,
    }
}

fn stored_scopes(text: &str) -> Result<Vec<Scope>> {
    text.split(' ').map(str::parse).collect::<Result<_, String>>().map_err(|error| unreadable("a scope", error))
}

impl Store {
    /// Stores a token that a program will bring; its key.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] with a sentence about the name or the scopes.
    pub async fn create_api_token(
        &self,
        token: &str,
        name: &str,
        scopes: &[Scope],
        created_by: &str,
        expires_at: Option<OffsetDateTime>,
    ) -> Result<TokenId> {
        let name = name.trim();
        let length = name.chars().count();
        if length == 0 || length > NAME_LIMIT || name.chars().any(char::is_control) {
            return Err(StoreError::Invalid(
                "Name the token in 1 to 100 characters, after the program that uses it.".into(),
            ));
        }
        let scopes: Vec<&str> = Scope::ALL.iter().filter(|scope| scopes.contains(scope)).map(|s| s.as_str()).collect();
        if scopes.is_empty() {
            return Err(StoreError::Invalid("Choose what the token allows: one scope or more.".into()));
        }
        let (hash, scopes, now) = (token_hash(token), scopes.join(" "), self.now());
        let expires_at = expires_at.map(to_nanos);
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let id = query_scalar!(
            r#"INSERT INTO api_tokens (token_hash, name, scopes, created_by, created_at, expires_at)
               VALUES (?, ?, ?, ?, ?, ?) RETURNING id AS "id!: TokenId""#,
            hash,
            name,
            scopes,
            created_by,
            now,
            expires_at,
        )
        .fetch_one(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(id)
    }

    /// The tokens that were not revoked, the newest first.
    pub async fn api_tokens(&self) -> Result<Vec<ApiToken>> {
        let now = self.now();
        let rows = query_as!(
            Row,
            r#"SELECT id AS "id!: TokenId", name, scopes, created_by, created_at, expires_at, used_at FROM api_tokens
               WHERE revoked_at IS NULL ORDER BY id DESC LIMIT ?"#,
            LISTED,
        );
        let read = rows.fetch_all(self.readers()).await?.into_iter().map(|row| {
            Ok(ApiToken {
                id: row.id,
                scopes: stored_scopes(&row.scopes)?,
                name: row.name,
                created_by: row.created_by,
                created_at: from_nanos(row.created_at),
                expires_at: row.expires_at.map(from_nanos),
                used_at: row.used_at.map(from_nanos),
                expired: row.expires_at.is_some_and(|at| at <= now),
            })
        });
        read.collect()
    }

    /// Revokes a token: no request with it is let in any more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such token.
    pub async fn revoke_api_token(&self, id: TokenId) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let revoked = query!("UPDATE api_tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", now, id);
        if revoked.execute(&mut tx).await?.rows_affected() == 0 {
            return Err(StoreError::NotFound("the token"));
        }
        tx.commit().await?;
        self.accounts().changed();
        Ok(())
    }

    /// The rights of a token that a program brings; `None` when it is unknown, revoked or expired. The use is noted.
    pub async fn api_token(&self, token: &str) -> Result<Option<KnownToken>> {
        let (now, hash) = (self.now(), token_hash(token));
        row! {
            struct Row {
                id: TokenId,
                name: String,
                scopes: String,
                used_at: Option<i64>,
            }
        }
        let row = query_as!(
            Row,
            r#"SELECT id AS "id!: TokenId", name, scopes, used_at FROM api_tokens
               WHERE token_hash = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"#,
            hash,
            now,
        );
        let Some(row) = row.fetch_optional(self.readers()).await? else { return Ok(None) };
        let due = row.used_at.is_none_or(|used| now.saturating_sub(used) >= to_i64(NOTED_EVERY));
        // The request is worth more than the note.
        if due && let Err(error) = self.note_api_token(row.id, now).await {
            tracing::debug!(%error, "the use of a token was not noted");
        }
        Ok(Some(KnownToken { id: row.id, scopes: stored_scopes(&row.scopes)?, name: row.name }))
    }

    /// Whether a token still lets its program in.
    pub async fn api_token_stands(&self, id: TokenId) -> Result<bool> {
        let now = self.now();
        let found = query_scalar!(
            r#"SELECT 1 AS "found!: i64" FROM api_tokens
               WHERE id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"#,
            id,
            now,
        );
        Ok(found.fetch_optional(self.readers()).await?.is_some())
    }

    async fn note_api_token(&self, id: TokenId, now: i64) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        query!("UPDATE api_tokens SET used_at = ? WHERE id = ?", now, id).execute(&mut tx).await?;
        Ok(tx.commit().await?)
    }
}

fn to_i64(duration: Duration) -> i64 {
    i64::try_from(duration.whole_nanoseconds()).unwrap_or(i64::MAX)
}
