//! Figures that triggers keep up to date (`migrations/0008_counters.sql`), so that asking for them costs the same with
//! ten rows as with a million.

use super::convert::from_int;
use super::error::Result;
use super::sql::{query_as, row};
use super::{Store, TeacherCounts};
use crate::ids::{RunId, TeacherId};
use crate::protocol::Rate;
use crate::run::Point;

/// The stored figures of a run that is not alive.
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
    /// The stored figures of the run. It reads a handful of rows, however long the run was.
    pub async fn standing(&self, run: &RunId) -> Result<Standing> {
        row! {
            struct Row {
                people_used: i64,
                simulated_used: i64,
            }
        }
        let counts = query_as!(Row, "SELECT people_used, simulated_used FROM run_counts WHERE run = ?", run)
            .fetch_optional(self.readers())
            .await?;
        let (people, simulated) = counts.map_or((0, 0), |counts| (counts.people_used, counts.simulated_used));
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
    pub async fn teacher_counts(&self, run: &RunId, teacher: TeacherId) -> Result<TeacherCounts> {
        row! {
            struct Row {
                described: i64,
                used: i64,
            }
        }
        let counts =
            query_as!(Row, "SELECT described, used FROM teacher_counts WHERE run = ? AND teacher = ?", run, teacher)
                .fetch_optional(self.readers())
                .await?;
        let (described, used) = counts.map_or((0, 0), |counts| (counts.described, counts.used));
        Ok(TeacherCounts { described: from_int(described), used: from_int(used) })
    }
}
