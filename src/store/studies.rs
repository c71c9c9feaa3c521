//! Studies and their arms.

use super::connection::Durability;
use super::convert::{from_json, from_nanos, to_json};
use super::error::{Result, StoreError, unreadable};
use super::sql::{On, Transaction, query, query_as, query_scalar, row};
use super::{Store, audit, overlap, webhooks};
use crate::ids::{RunId, StudyId};
pub use crate::study::StudyArm;
use crate::study::{StudySettings, StudyState};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;

/// A study as stored.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Study {
    /// Key; also its name in addresses.
    pub id: StudyId,
    /// Whether it takes teachers.
    pub state: StudyState,
    /// The researcher's decision.
    pub settings: StudySettings,
    /// The runs that it teaches, in order.
    pub arms: Vec<StudyArm>,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it was first opened.
    #[serde(with = "time::serde::rfc3339::option")]
    pub opened_at: Option<OffsetDateTime>,
    /// When it was closed.
    #[serde(with = "time::serde::rfc3339::option")]
    pub closed_at: Option<OffsetDateTime>,
}

row! {
    struct Row {
        id: StudyId,
        state: String,
        settings: String,
        created_by: String,
        created_at: i64,
        opened_at: Option<i64>,
        closed_at: Option<i64>,
    }
}

impl Row {
    fn read(self, arms: Vec<StudyArm>) -> Result<Study> {
        Ok(Study {
            id: self.id,
            state: StudyState::parse(&self.state).ok_or_else(|| unreadable("a study's state", &self.state))?,
            settings: from_json("a study's settings", &self.settings)?,
            arms,
            created_by: self.created_by,
            created_at: from_nanos(self.created_at),
            opened_at: self.opened_at.map(from_nanos),
            closed_at: self.closed_at.map(from_nanos),
        })
    }
}

/// Longest name of a study in addresses.
const LONGEST_ID: usize = 64;

/// Names below `/studies/` that are pages of their own.
const RESERVED: [&str; 3] = ["new", "preview", "settings"];

/// Checks the name of a study: it stands in addresses, and people read it aloud.
fn check_id(id: &StudyId) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if RESERVED.contains(&id.as_str()) {
        return Err(StoreError::Invalid(format!("a study cannot be called {id}: a page has that name")));
    }
    let fine =
        (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(fits) && !id.starts_with('-') && !id.ends_with('-');
    if fine {
        return Ok(());
    }
    Err(StoreError::Invalid(format!(
        "a study's name has 1 to {LONGEST_ID} small letters, digits and hyphens, and no hyphen at its ends"
    )))
}

async fn row(executor: impl Into<On<'_>>, id: &StudyId) -> Result<Row> {
    let row = query_as!(
        Row,
        r#"SELECT id AS "id!: StudyId", state, settings, created_by, created_at, opened_at, closed_at
           FROM studies WHERE id = ?"#,
        id,
    );
    row.fetch_optional(executor).await?.ok_or(StoreError::NotFound("the study"))
}

async fn arms(executor: impl Into<On<'_>>, id: &StudyId) -> Result<Vec<StudyArm>> {
    let arms = query_as!(
        StudyArm,
        r#"SELECT run AS "run!: RunId", name FROM study_arms WHERE study = ? ORDER BY position"#,
        id,
    );
    Ok(arms.fetch_all(executor).await?)
}

/// Writes the arms of a study anew.
async fn write_arms(tx: &mut Transaction<'_>, id: &StudyId, arms: &[StudyArm]) -> Result<()> {
    query!("DELETE FROM study_arms WHERE study = ?", id).execute(&mut *tx).await?;
    for (position, arm) in arms.iter().enumerate() {
        let position = position as i64;
        let run = query_scalar!(
            r#"SELECT study_arms.study AS "study?: StudyId" FROM runs
               LEFT JOIN study_arms ON study_arms.run = runs.id WHERE runs.id = ?"#,
            arm.run,
        );
        match run.fetch_optional(&mut *tx).await?.ok_or(StoreError::NotFound("the run"))? {
            Some(other) if other == *id => {
                return Err(StoreError::Conflict(format!("the run {} is named twice", arm.run)));
            }
            Some(other) => {
                return Err(StoreError::Conflict(format!("the run {} belongs to the study {other} already", arm.run)));
            }
            None => {}
        }
        query!(
            "INSERT INTO study_arms (study, position, run, name) VALUES (?, ?, ?, ?)",
            id,
            position,
            arm.run,
            arm.name,
        )
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// Refuses settings that name a run which does not exist.
async fn check_executor(tx: &mut Transaction<'_>, settings: &StudySettings) -> Result<()> {
    let Some(executor) = &settings.qualification.executor else { return Ok(()) };
    let there = query_scalar!(r#"SELECT count(*) AS "n!: i64" FROM runs WHERE id = ?"#, executor);
    if there.fetch_one(&mut *tx).await? == 0 {
        return Err(StoreError::Conflict(format!("there is no run called {executor} whose agent could decide")));
    }
    Ok(())
}

row!(StudyArm { run, name });

impl Store {
    /// Makes a study, as a draft. `webhook_secret`: the key that its messages are signed with.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when there is one of this name or a run belongs to another study, [`StoreError::NotFound`]
    /// for an unknown run, [`StoreError::Invalid`] for a name that does not fit.
    pub async fn create_study(
        &self,
        id: &StudyId,
        settings: &StudySettings,
        arms: &[StudyArm],
        webhook_secret: &str,
        actor: &str,
    ) -> Result<()> {
        check_id(id)?;
        let text = to_json(settings)?;
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        check_executor(&mut tx, settings).await?;
        let made = query!(
            "INSERT INTO studies (id, settings, webhook_secret, created_by, created_at) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (id) DO NOTHING",
            id,
            text,
            webhook_secret,
            actor,
            now,
        )
        .execute(&mut tx)
        .await?;
        if made.rows_affected() == 0 {
            return Err(StoreError::Conflict(format!("there is a study called {id} already")));
        }
        write_arms(&mut tx, id, arms).await?;
        audit::note(&mut tx, now, actor, id, "created", &json!({ "settings": settings, "arms": arms })).await?;
        Ok(tx.commit().await?)
    }

    /// The study called `id`.
    pub async fn study(&self, id: &StudyId) -> Result<Study> {
        let row = row(self.readers(), id).await?;
        row.read(arms(self.readers(), id).await?)
    }

    /// All studies, newest first.
    pub async fn studies(&self) -> Result<Vec<Study>> {
        let rows = query_as!(
            Row,
            r#"SELECT id AS "id!: StudyId", state, settings, created_by, created_at, opened_at, closed_at
               FROM studies ORDER BY created_at DESC, id"#,
        )
        .fetch_all(self.readers())
        .await?;
        let mut studies = Vec::new();
        for row in rows {
            let arms = arms(self.readers(), &row.id).await?;
            studies.push(row.read(arms)?);
        }
        Ok(studies)
    }

    /// The study that a run belongs to.
    pub async fn study_of_run(&self, run: &RunId) -> Result<Option<StudyId>> {
        let study = query_scalar!(r#"SELECT study AS "study!: StudyId" FROM study_arms WHERE run = ?"#, run);
        Ok(study.fetch_optional(self.readers()).await?)
    }

    /// Changes the settings of a study, and its arms while it is a draft: teachers of an open study keep theirs. `change` says from
    /// the study as it is what it becomes; nobody else changes it meanwhile.
    ///
    /// # Errors
    /// The error of `change`; [`StoreError::Conflict`] when the arms of a study that was opened would change, or no run has
    /// the name of the agent that decides.
    pub async fn change_study<E: From<StoreError>>(
        &self,
        id: &StudyId,
        actor: &str,
        change: impl FnOnce(&Study) -> Result<(StudySettings, Vec<StudyArm>), E>,
    ) -> Result<(), E> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let old_arms = arms(&mut tx, id).await?;
        let old = row(&mut tx, id).await?.read(old_arms)?;
        let (settings, new_arms) = change(&old)?;
        write_change(&mut tx, now, actor, &old, &settings, &new_arms).await?;
        tx.commit().await.map_err(StoreError::from)?;
        Ok(())
    }

    /// Opens, pauses or closes a study.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it cannot go to that state from the one it is in.
    pub async fn set_study_state(&self, id: &StudyId, state: StudyState, actor: &str) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let old = row(&mut tx, id).await?;
        let settings = from_json("a study's settings", &old.settings)?;
        let old = StudyState::parse(&old.state).ok_or_else(|| unreadable("a study's state", &old.state))?;
        if old == state {
            return Ok(());
        }
        if !old.may_become(state) {
            return Err(StoreError::Conflict(format!("a study cannot go from {} to {}", old.as_str(), state.as_str())));
        }
        let word = state.as_str();
        query!(
            "UPDATE studies SET state = ?1,
                 opened_at = CASE WHEN ?1 = 'open' THEN coalesce(opened_at, ?2) ELSE opened_at END,
                 closed_at = CASE WHEN ?1 = 'closed' THEN ?2 ELSE NULL END
             WHERE id = ?3",
            word,
            now,
            id,
        )
        .execute(&mut tx)
        .await?;
        if state == StudyState::Open {
            overlap::raise(&mut tx, id, &settings).await?;
        }
        let detail = json!({ "from": old.as_str(), "to": word });
        audit::note(&mut tx, now, actor, id, "state_changed", &detail).await?;
        webhooks::queue(&mut tx, now, id, "study.state_changed", &detail).await?;
        Ok(tx.commit().await?)
    }
}

/// Writes what a study becomes, with what differs for the audit trail.
async fn write_change(
    tx: &mut Transaction<'_>,
    now: i64,
    actor: &str,
    old: &Study,
    settings: &StudySettings,
    new_arms: &[StudyArm],
) -> Result<()> {
    check_executor(tx, settings).await?;
    if old.arms != new_arms {
        let runs = |arms: &[StudyArm]| arms.iter().map(|arm| arm.run.clone()).collect::<Vec<_>>();
        if old.opened_at.is_some() && runs(&old.arms) != runs(new_arms) {
            return Err(StoreError::Conflict(
                "the runs of a study cannot be changed once it was open; make another study".to_owned(),
            ));
        }
        write_arms(tx, &old.id, new_arms).await?;
    }
    let text = to_json(settings)?;
    query!("UPDATE studies SET settings = ? WHERE id = ?", text, old.id).execute(&mut *tx).await?;
    if old.state == StudyState::Open {
        overlap::raise(tx, &old.id, settings).await?;
    }
    let detail = json!({ "changed": changed(&json!(old.settings), &json!(settings)), "arms": new_arms });
    audit::note(tx, now, actor, &old.id, "settings_changed", &detail).await
}

/// The fields that two settings differ in, each with its old and its new value.
fn changed(old: &serde_json::Value, new: &serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return Default::default() };
    let null = serde_json::Value::Null;
    new.iter()
        .filter(|(key, value)| old.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), json!({ "from": old.get(key).unwrap_or(&null), "to": value })))
        .collect()
}
