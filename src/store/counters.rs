//! Figures kept up to date by triggers (`migrations/0008_counters.sql`), so that asking for them costs the same with ten
//! rows as with a million.

use super::connection::from_int;
use super::error::Result;
use super::{Extent, Store, TeacherCounts};
use crate::protocol::Rate;
use crate::run::Point;

/// What the store remembers of a run that is not alive.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Its newest point.
    pub last: Option<Point>,
    /// The newest validation reading.
    pub validation: Option<Rate>,
    /// The best validation reading.
    pub best: Option<Rate>,
    /// Descriptions of people that it learnt from.
    pub people: u64,
    /// Descriptions of the simulated teacher that it learnt from.
    pub simulated: u64,
}

impl Store {
    /// What is remembered of the run: a handful of rows, however long it was.
    pub async fn standing(&self, run: &str) -> Result<Standing> {
        let counted: Option<(i64, i64)> =
            sqlx::query_as("SELECT people_used, simulated_used FROM run_counts WHERE run = ?")
                .bind(run)
                .fetch_optional(self.readers())
                .await?;
        let (people, simulated) = counted.unwrap_or_default();
        let (validation, best) = self.validation(run).await?;
        Ok(Standing {
            last: self.last_point(run).await?,
            validation,
            best,
            people: from_int(people),
            simulated: from_int(simulated),
        })
    }

    /// A teacher's figures in the run.
    pub async fn teacher_counts(&self, run: &str, teacher: i64) -> Result<TeacherCounts> {
        let counted: Option<(i64, i64)> =
            sqlx::query_as("SELECT described, used FROM teacher_counts WHERE run = ? AND teacher = ?")
                .bind(run)
                .bind(teacher)
                .fetch_optional(self.readers())
                .await?;
        let (described, used) = counted.unwrap_or_default();
        Ok(TeacherCounts { described: from_int(described), used: from_int(used) })
    }

    /// How many rows an export has.
    pub async fn export_count(&self, run: Option<&str>) -> Result<u64> {
        Ok(self.export_extent(run).await?.rows)
    }

    /// How many rows an export that begins now has, and where it ends.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when there is no such run.
    pub async fn export_extent(&self, run: Option<&str>) -> Result<Extent> {
        // One statement, one snapshot: the count is that of the rows up to the last.
        let (rows, last): (i64, Option<i64>) = match run {
            Some(run) => {
                self.run(run).await?; // "no rows" and "no such run" are two things
                sqlx::query_as(
                    "SELECT coalesce((SELECT answers FROM run_counts WHERE run = ?1), 0),
                         (SELECT max(id) FROM answers WHERE run = ?1)",
                )
                .bind(run)
                .fetch_one(self.readers())
                .await?
            }
            None => {
                sqlx::query_as("SELECT coalesce(sum(answers), 0), (SELECT max(id) FROM answers) FROM run_counts")
                    .fetch_one(self.readers())
                    .await?
            }
        };
        Ok(Extent { rows: from_int(rows), last: last.unwrap_or(0) })
    }

    /// How many runs there are.
    pub async fn run_count(&self) -> Result<u64> {
        let runs: i64 = sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(self.readers()).await?;
        Ok(from_int(runs))
    }
}
