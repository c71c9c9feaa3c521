//! The store: everything that must survive, in one SQLite file. The only module with SQL.
//!
//! WAL, one writer connection and a pool of readers; every transaction that writes begins `IMMEDIATE`. Descriptions
//! that people typed are written with `synchronous = FULL`: acknowledged means on disk.

use crate::run::{CheckpointRow, EpisodeRow, Point, Source, TeacherMode};
use serde::{Deserialize, Serialize};
use std::path::Path;
use time::OffsetDateTime;

/// Result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why the store could not do what was asked. sqlx is hidden behind it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such row.
    #[error("{0} does not exist")]
    NotFound(&'static str),
    /// The lease is gone: it ran out and somebody else has the execution, or it was answered already.
    #[error("this execution is no longer yours")]
    LeaseLost,
    /// The answer was corrected elsewhere, or is too old to correct.
    #[error("this answer can no longer be changed")]
    Superseded,
    /// The disk is full or read-only.
    #[error("the disk is full or cannot be written")]
    DiskFull,
    /// The database file is damaged, not a database, or from a newer version.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
    /// Anything else; the cause is for the log.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
}

/// A run as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Key; also the folder name under the data folder's `runs`.
    pub id: String,
    /// Family name.
    pub family: String,
    /// Preset name.
    pub preset: String,
    /// Whole configuration as JSON.
    pub config: serde_json::Value,
    /// Seed.
    pub seed: u64,
    /// Last teacher mode set.
    pub teacher: TeacherMode,
    /// Whether the server resumes it at start: `true` until it is stopped by command or finished.
    pub active: bool,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

/// An execution offered to people.
#[derive(Clone, Debug)]
pub struct NewExecution {
    /// Episode number in the run (unique in the run).
    pub episode: u64,
    /// Update of the policy that made it.
    pub update: u64,
    /// The request d* (not shown to teachers unless the run says so).
    pub request: String,
    /// What the trainer needs to learn from a description of it (opaque here).
    pub trace: serde_json::Value,
    /// What people are shown.
    pub view: serde_json::Value,
    /// One plain line for researchers.
    pub summary: String,
    /// How many people should describe it; 1 unless overlap is asked for.
    pub wanted: u32,
}

/// Sizes of a run's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolCounts {
    /// Waiting, nobody at them.
    pub open: u64,
    /// Somebody is at them.
    pub leased: u64,
}

/// An execution in one teacher's hands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leased {
    /// Execution key.
    pub execution: i64,
    /// Episode number.
    pub episode: u64,
    /// What to show.
    pub view: serde_json::Value,
    /// When the lease ends unless renewed.
    pub expires_at: OffsetDateTime,
}

/// What a teacher said about an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A description.
    Described,
    /// "Nothing changed": the agent did nothing worth a sentence.
    NothingChanged,
    /// "I cannot describe this."
    CannotDescribe,
    /// Skipped, with a reason in `text`.
    Skipped,
}

/// An answer to be stored. `client_key` makes sending twice harmless: the same key stores once.
#[derive(Clone, Debug)]
pub struct NewAnswer {
    /// Random key made by the page for this answer (1..=64 characters).
    pub client_key: String,
    /// Execution it is about.
    pub execution: i64,
    /// Who answers.
    pub teacher: i64,
    /// Kind.
    pub kind: AnswerKind,
    /// Exactly what was typed (for `Skipped`: the reason); never altered.
    pub text: String,
    /// When the execution was first shown to this person.
    pub shown_at: Option<OffsetDateTime>,
    /// Milliseconds of activity on it as the page measured (idle left out).
    pub active_ms: Option<u64>,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Key of the stored answer.
    pub answer: i64,
    /// True when the same `client_key` had been stored before; nothing new was written.
    pub again: bool,
}

/// A person's own earlier answer, newest first in lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnAnswer {
    /// Key.
    pub answer: i64,
    /// Execution it is about.
    pub execution: i64,
    /// What was shown.
    pub view: serde_json::Value,
    /// Kind.
    pub kind: AnswerKind,
    /// Text.
    pub text: String,
    /// When it was stored.
    pub created_at: OffsetDateTime,
    /// Update that used it, if any has.
    pub used_in_update: Option<u64>,
}

/// An answer as the trainer takes it.
#[derive(Clone, Debug)]
pub struct TrainerAnswer {
    /// Key.
    pub answer: i64,
    /// Episode of the execution.
    pub episode: u64,
    /// Request d*.
    pub request: String,
    /// The trainer's own trace of the execution.
    pub trace: serde_json::Value,
    /// View and summary, for the episode row.
    pub view: serde_json::Value,
    /// One plain line.
    pub summary: String,
    /// Kind (skips are not given to the trainer).
    pub kind: AnswerKind,
    /// Text.
    pub text: String,
    /// Update that used it, if any.
    pub used_in_update: Option<u64>,
}

/// What a run knows about updates that took part of their input from people: enough to make them again after a kill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// Number of the update.
    pub update: u64,
    /// Opaque data of the trainer (mode, room in the pool …).
    pub data: serde_json::Value,
    /// Answers the update used, in order.
    pub answers: Vec<i64>,
}

/// A teacher (a browser that came by; accounts come later).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Teacher {
    /// Key.
    pub id: i64,
    /// Whether the first-visit guide was dismissed.
    pub seen_guide: bool,
    /// When first seen.
    pub created_at: OffsetDateTime,
}

/// A teacher's own figures in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeacherCounts {
    /// Descriptions this person gave (superseded ones not counted).
    pub described: u64,
    /// Of these, used in an update already.
    pub used: u64,
}

/// One line of the exported dataset.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportRow {
    /// Run id.
    pub run: String,
    /// Family.
    pub family: String,
    /// Key of the answer.
    pub answer: i64,
    /// Episode.
    pub episode: u64,
    /// Human or simulated.
    pub source: Source,
    /// Pseudonymous teacher key within the store; `None` for simulated ones.
    pub teacher: Option<i64>,
    /// Request d* of the episode.
    pub request: String,
    /// One plain line of the execution.
    pub execution: String,
    /// What the teacher was shown.
    pub view: serde_json::Value,
    /// Kind.
    pub kind: AnswerKind,
    /// Text exactly as typed.
    pub text: String,
    /// Whether the teacher could see the request.
    pub request_shown: bool,
    /// Update of the policy that made the execution.
    pub policy_update: u64,
    /// Update that used the answer.
    pub used_in_update: Option<u64>,
    /// Answer that this one corrects.
    pub supersedes: Option<i64>,
    /// Answer that corrects this one.
    pub superseded_by: Option<i64>,
    /// When the execution was shown.
    #[serde(with = "time::serde::rfc3339::option")]
    pub shown_at: Option<OffsetDateTime>,
    /// Milliseconds of activity.
    pub active_ms: Option<u64>,
    /// When the answer was stored.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {}

#[allow(unused_variables, clippy::todo)]
impl Store {
    /// Opens (creates, migrates) the database file.
    pub async fn open(path: &Path) -> Result<Store> {
        todo!()
    }

    /// Stores a new run.
    pub async fn create_run(&self, run: &Run) -> Result<()> {
        todo!()
    }
    /// A run by id.
    pub async fn run(&self, id: &str) -> Result<Run> {
        todo!()
    }
    /// All runs, newest first.
    pub async fn runs(&self) -> Result<Vec<Run>> {
        todo!()
    }
    /// Remembers the teacher mode.
    pub async fn set_teacher_mode(&self, run: &str, mode: TeacherMode) -> Result<()> {
        todo!()
    }
    /// Remembers whether the run is to be resumed at the next start.
    pub async fn set_active(&self, run: &str, active: bool) -> Result<()> {
        todo!()
    }

    /// Adds executions to the run's pool (an episode already there is left as it is).
    pub async fn offer(&self, run: &str, executions: &[NewExecution]) -> Result<()> {
        todo!()
    }
    /// Retires open executions made by policies before `oldest_update`, unless somebody is at them. How many.
    pub async fn retire_stale(&self, run: &str, oldest_update: u64) -> Result<u64> {
        todo!()
    }
    /// Pool sizes (expired leases count as open).
    pub async fn pool(&self, run: &str) -> Result<PoolCounts> {
        todo!()
    }
    /// Removes executions of episodes from `episode` on that nobody has answered (before they are made again by a
    /// resumed run).
    pub async fn withdraw_from(&self, run: &str, episode: u64) -> Result<u64> {
        todo!()
    }

    /// Gives the teacher an execution: one they hold already (not in `except`), else an open one, newest policy first,
    /// never one they answered or skipped, never more teachers at it than it wants. `None` when there is none.
    /// `except`: executions the page has already (it fetches one ahead).
    pub async fn lease(&self, run: &str, teacher: i64, except: &[i64], ttl: time::Duration) -> Result<Option<Leased>> {
        todo!()
    }
    /// Extends a lease (the page's heartbeat); [`StoreError::LeaseLost`] when somebody else has it now or it is done.
    pub async fn renew(&self, execution: i64, teacher: i64, ttl: time::Duration) -> Result<OffsetDateTime> {
        todo!()
    }
    /// Gives a lease back at once (the page closed).
    pub async fn release(&self, execution: i64, teacher: i64) -> Result<()> {
        todo!()
    }

    /// Stores an answer durably and ends the lease. An answer whose lease ran out is still taken unless the execution
    /// has had all the answers it wants; then it is stored all the same as a surplus answer: nothing typed is lost.
    pub async fn answer(&self, answer: &NewAnswer) -> Result<Stored> {
        todo!()
    }
    /// The person's latest answers in the run that may still be corrected (not superseded), newest first.
    pub async fn own_answers(&self, run: &str, teacher: i64, limit: u32) -> Result<Vec<OwnAnswer>> {
        todo!()
    }
    /// Stores a corrected version of an answer of the same teacher; the old row stays and points to the new one.
    pub async fn correct(&self, answer: i64, corrected: &NewAnswer) -> Result<Stored> {
        todo!()
    }
    /// A teacher's figures in the run.
    pub async fn teacher_counts(&self, run: &str, teacher: i64) -> Result<TeacherCounts> {
        todo!()
    }

    /// The teacher behind a cookie token (only its hash is stored); made when unknown.
    pub async fn teacher(&self, token: &str) -> Result<Teacher> {
        todo!()
    }
    /// Remembers that the guide was dismissed.
    pub async fn set_seen_guide(&self, teacher: i64) -> Result<()> {
        todo!()
    }

    /// Answers no update has used yet (not superseded, not skipped), oldest first.
    pub async fn unused_answers(&self, run: &str, limit: u32) -> Result<Vec<TrainerAnswer>> {
        todo!()
    }
    /// Answers by key, in the order asked for.
    pub async fn answers(&self, ids: &[i64]) -> Result<Vec<TrainerAnswer>> {
        todo!()
    }
    /// Records an update and marks its answers as used, in one transaction.
    pub async fn record_update(&self, run: &str, record: &UpdateRecord) -> Result<()> {
        todo!()
    }
    /// Records several updates in one transaction; as [`Store::record_update`].
    pub async fn record_updates(&self, run: &str, records: &[UpdateRecord]) -> Result<()> {
        todo!()
    }
    /// One more than the largest episode number of the run's executions for people; 0 without any.
    pub async fn next_episode(&self, run: &str) -> Result<u64> {
        todo!()
    }
    /// Updates recorded after `update`, in order (what a resumed run makes again).
    pub async fn updates_after(&self, run: &str, update: u64) -> Result<Vec<UpdateRecord>> {
        todo!()
    }
    /// Keys of all answers used in updates up to `update`, in order of use (the replay memory).
    pub async fn used_answers(&self, run: &str, update: u64) -> Result<Vec<TrainerAnswer>> {
        todo!()
    }

    /// Stores simulated episodes (an episode already there is left as it is) in one transaction.
    pub async fn record_simulated(&self, run: &str, rows: &[EpisodeRow]) -> Result<()> {
        todo!()
    }
    /// Appends points of the curves (same update: replaced).
    pub async fn record_points(&self, run: &str, points: &[Point]) -> Result<()> {
        todo!()
    }
    /// Points of a run, oldest first; thinned evenly to at most `limit`, points with a validation reading kept.
    pub async fn points(&self, run: &str, limit: usize) -> Result<Vec<Point>> {
        todo!()
    }
    /// The latest episode rows, newest first (human ones once used, simulated ones as recorded).
    pub async fn recent_episodes(&self, run: &str, limit: u32) -> Result<Vec<EpisodeRow>> {
        todo!()
    }
    /// Remembers a checkpoint (same name: replaced).
    pub async fn record_checkpoint(&self, run: &str, row: &CheckpointRow) -> Result<()> {
        todo!()
    }
    /// Checkpoints, newest first.
    pub async fn checkpoints(&self, run: &str) -> Result<Vec<CheckpointRow>> {
        todo!()
    }

    /// A page of the dataset in order of answer key: rows after `after`, at most `limit`. `run: None`: all runs.
    pub async fn export_page(&self, run: Option<&str>, after: i64, limit: u32) -> Result<Vec<ExportRow>> {
        todo!()
    }
    /// How many rows an export has.
    pub async fn export_count(&self, run: Option<&str>) -> Result<u64> {
        todo!()
    }
}
