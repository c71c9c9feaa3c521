//! Runs.

use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, to_json, to_nanos};
use super::error::{Result, StoreError};
use super::sql::{query, query_as, query_scalar, row};
use super::{Run, Store};
use crate::config::run::TeacherMode;
use crate::ids::RunId;

row! {
    struct RunRow {
        id: RunId,
        family: String,
        preset: String,
        config: String,
        seed: i64,
        teacher: String,
        active: bool,
        created_at: i64,
    }
}

impl RunRow {
    fn read(self) -> Result<Run> {
        Ok(Run {
            config: from_json("a run's configuration", &self.config)?,
            teacher: from_json("a run's teacher", &self.teacher)?,
            id: self.id,
            family: self.family,
            preset: self.preset,
            seed: self.seed as u64, // the same 64 bits
            active: self.active,
            created_at: from_nanos(self.created_at),
        })
    }
}

/// Selects [`RunRow`]s. The arguments are the rest of the statement and its parameters.
macro_rules! select_runs {
    ($rest:literal $(, $parameter:expr)*) => {
        query_as!(
            RunRow,
            r#"SELECT id AS "id: RunId", family, preset, config, seed, teacher, active AS "active: bool", created_at
               FROM runs "# + $rest
            $(, $parameter)*
        )
    };
}

/// The teacher mode as JSON. A share outside of 0 to 1 is refused: NaN would be stored as `null` and could not be read
/// again.
fn teacher_json(mode: TeacherMode) -> Result<String> {
    if let TeacherMode::Mixed { share } = mode
        && !(0.0..=1.0).contains(&share)
    {
        return Err(StoreError::Invalid(format!("the share of people must lie between 0 and 1, not {share}")));
    }
    to_json(&mode)
}

impl Store {
    /// Stores a new run.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when a run has this id.
    pub async fn create_run(&self, run: &Run) -> Result<()> {
        let (config, teacher) = (to_json(&run.config)?, teacher_json(run.teacher)?);
        let (seed, created_at) = (run.seed as i64, to_nanos(run.created_at));
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let made = query!(
            "INSERT INTO runs (id, family, preset, config, seed, teacher, active, created_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            run.id,
            run.family,
            run.preset,
            config,
            seed,
            teacher,
            run.active,
            created_at,
        )
        .execute(&mut tx)
        .await?;
        if made.rows_affected() == 0 {
            return Err(StoreError::Conflict(format!("there is a run named {:?} already", run.id)));
        }
        Ok(tx.commit().await?)
    }

    /// A run by id.
    pub async fn run(&self, id: &RunId) -> Result<Run> {
        select_runs!("WHERE id = ?", id)
            .fetch_optional(self.readers())
            .await?
            .ok_or(StoreError::NotFound("the run"))?
            .read()
    }

    /// Those of these runs that are stored, the one that was stored last first.
    pub async fn runs_of(&self, ids: &[RunId]) -> Result<Vec<Run>> {
        let ids = to_json(&ids)?;
        let rows = select_runs!("WHERE id IN (SELECT value FROM json_each(?)) ORDER BY rowid DESC", ids);
        rows.fetch_all(self.readers()).await?.into_iter().map(RunRow::read).collect()
    }

    /// All runs, newest first: the one that was stored last, whatever the clock said.
    pub async fn runs(&self) -> Result<Vec<Run>> {
        let rows = select_runs!("ORDER BY rowid DESC");
        rows.fetch_all(self.readers()).await?.into_iter().map(RunRow::read).collect()
    }

    /// How many runs there are.
    pub async fn run_count(&self) -> Result<u64> {
        let runs = query_scalar!(r#"SELECT count(*) AS "runs!: i64" FROM runs"#).fetch_one(self.readers());
        Ok(from_int(runs.await?))
    }

    /// Remembers the teacher mode.
    pub async fn set_teacher_mode(&self, run: &RunId, mode: TeacherMode) -> Result<()> {
        let teacher = teacher_json(mode)?;
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let updated = query!("UPDATE runs SET teacher = ? WHERE id = ?", teacher, run).execute(&mut tx).await?;
        if updated.rows_affected() == 0 {
            return Err(StoreError::NotFound("the run"));
        }
        Ok(tx.commit().await?)
    }

    /// Remembers whether the run is to be resumed at the next start.
    pub async fn set_active(&self, run: &RunId, active: bool) -> Result<()> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let updated = query!("UPDATE runs SET active = ? WHERE id = ?", active, run).execute(&mut tx).await?;
        if updated.rows_affected() == 0 {
            return Err(StoreError::NotFound("the run"));
        }
        Ok(tx.commit().await?)
    }
}
