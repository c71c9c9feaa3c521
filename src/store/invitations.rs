//! Personal invitations to a study, and browsers that belong to one teacher. Only hashes of tokens are kept.

use super::connection::Durability;
use super::convert::{from_nanos, to_nanos, token_hash};
use super::error::{Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use super::{Store, audit};
use crate::ids::{ParticipantId, StudyId, TeacherId};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;

/// An invitation as the study's page lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Invitation {
    /// First characters of the token's hash, by which the page names it.
    pub key: String,
    /// The researcher's label.
    pub label: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it ends.
    #[serde(with = "time::serde::rfc3339")]
    pub expires_at: OffsetDateTime,
    /// When it was withdrawn.
    #[serde(with = "time::serde::rfc3339::option")]
    pub revoked_at: Option<OffsetDateTime>,
    /// Number of the participant who used it.
    pub participant: Option<i64>,
}

/// Most invitations that a list shows.
const LISTED: u32 = 500;

impl Store {
    /// Makes invitations with these tokens, one for each label.
    pub async fn invite_to_study(
        &self,
        study: &StudyId,
        invitations: &[(String, String)],
        expires_at: OffsetDateTime,
        actor: &str,
    ) -> Result<()> {
        let now = self.now();
        let expires = to_nanos(expires_at);
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let there = query_scalar!(r#"SELECT count(*) AS "n!: i64" FROM studies WHERE id = ?"#, study);
        if there.fetch_one(&mut tx).await? == 0 {
            return Err(StoreError::NotFound("the study"));
        }
        for (token, label) in invitations {
            let hash = token_hash(token);
            query!(
                "INSERT INTO study_invitations (token_hash, study, label, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
                hash,
                study,
                label,
                now,
                expires,
            )
            .execute(&mut tx)
            .await?;
        }
        audit::note(&mut tx, now, actor, study, "invited", &json!({ "invitations": invitations.len() })).await?;
        Ok(tx.commit().await?)
    }

    /// The newest invitations of a study.
    pub async fn invitations(&self, study: &StudyId) -> Result<Vec<Invitation>> {
        row! {
            struct Row {
                key: String,
                label: String,
                created_at: i64,
                expires_at: i64,
                revoked_at: Option<i64>,
                number: Option<i64>,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT lower(hex(token_hash)) AS "key!: String", label, invitation.created_at, invitation.expires_at,
                   invitation.revoked_at, participants.number AS "number?: i64"
               FROM study_invitations AS invitation
               LEFT JOIN participants ON participants.id = invitation.participant
               WHERE invitation.study = ? ORDER BY invitation.created_at DESC LIMIT ?"#,
            study,
            LISTED,
        )
        .fetch_all(self.readers())
        .await?;
        let mut invitations: Vec<Invitation> = rows
            .into_iter()
            .map(|row| Invitation {
                key: row.key[..16].to_owned(),
                label: row.label,
                created_at: from_nanos(row.created_at),
                expires_at: from_nanos(row.expires_at),
                revoked_at: row.revoked_at.map(from_nanos),
                participant: row.number,
            })
            .collect();
        // Those that were made at once are in the order of their labels.
        invitations.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.label.cmp(&b.label)));
        Ok(invitations)
    }

    /// Withdraws an invitation that nobody has used.
    pub async fn revoke_invitation(&self, study: &StudyId, key: &str, actor: &str) -> Result<()> {
        let now = self.now();
        let pattern = key.to_ascii_lowercase();
        if pattern.len() != 16 || !pattern.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(StoreError::NotFound("the invitation"));
        }
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let revoked = query!(
            "UPDATE study_invitations SET revoked_at = coalesce(revoked_at, ?)
             WHERE study = ? AND substr(lower(hex(token_hash)), 1, 16) = ? AND participant IS NULL",
            now,
            study,
            pattern,
        )
        .execute(&mut tx)
        .await?;
        if revoked.rows_affected() == 0 {
            return Err(StoreError::NotFound("the invitation"));
        }
        audit::note(&mut tx, now, actor, study, "invitation_revoked", &json!({ "invitation": pattern })).await?;
        Ok(tx.commit().await?)
    }

    /// The participant who holds an invitation, or whom the platform calls so: the person comes back, perhaps with another browser.
    pub async fn returning(
        &self,
        study: &StudyId,
        invitation: Option<&str>,
        session: Option<(&str, &str)>,
    ) -> Result<Option<(ParticipantId, TeacherId)>> {
        if let Some(token) = invitation {
            let hash = token_hash(token);
            let now = self.now();
            row! {
                struct Row {
                    id: ParticipantId,
                    teacher: TeacherId,
                }
            }
            let found = query_as!(
                Row,
                r#"SELECT participants.id AS "id!: ParticipantId", participants.teacher AS "teacher!: TeacherId"
                   FROM study_invitations AS invitation JOIN participants ON participants.id = invitation.participant
                   WHERE invitation.token_hash = ? AND invitation.study = ? AND invitation.revoked_at IS NULL
                       AND invitation.expires_at > ? AND participants.erased_at IS NULL"#,
                hash,
                study,
                now,
            )
            .fetch_optional(self.readers())
            .await?;
            return Ok(found.map(|row| (row.id, row.teacher)));
        }
        let Some((person, session)) = session else { return Ok(None) };
        row! {
            struct Row {
                id: ParticipantId,
                teacher: TeacherId,
            }
        }
        let found = query_as!(
            Row,
            r#"SELECT id AS "id!: ParticipantId", teacher AS "teacher!: TeacherId" FROM participants
               WHERE study = ? AND platform_person = ? AND platform_session = ? AND erased_at IS NULL"#,
            study,
            person,
            session,
        )
        .fetch_optional(self.readers())
        .await?;
        Ok(found.map(|row| (row.id, row.teacher)))
    }

    /// From here on the browser with this cookie token is the teacher's as well.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the browser is another teacher's.
    pub async fn add_browser(&self, teacher: TeacherId, token: &str) -> Result<()> {
        let hash = token_hash(token);
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let other = query_scalar!(
            r#"SELECT teacher AS "teacher!: TeacherId" FROM
                   (SELECT id AS teacher FROM teachers WHERE token_hash = ?1
                    UNION ALL SELECT teacher FROM teacher_browsers WHERE token_hash = ?1) AS known"#,
            hash,
        )
        .fetch_optional(&mut tx)
        .await?;
        match other {
            Some(other) if other == teacher => return Ok(()),
            Some(_) => {
                return Err(StoreError::Conflict(
                    "this browser has taught before under another name; go on in the browser in which you began"
                        .to_owned(),
                ));
            }
            None => {}
        }
        query!("INSERT INTO teacher_browsers (token_hash, teacher, added_at) VALUES (?, ?, ?)", hash, teacher, now,)
            .execute(&mut tx)
            .await?;
        Ok(tx.commit().await?)
    }
}
