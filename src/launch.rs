//! Starting runs: the requests, the errors, and the trait of whatever starts them. The application implements it; pages
//! and commands know nothing else of the application.

use crate::config::run::TeacherMode;
use crate::ids::RunId;
use crate::store::StoreError;
use futures::future::BoxFuture;
use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};

/// A named configuration that a new run can start from.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PresetInfo {
    /// Family and preset: `regex/small`.
    pub name: String,
    /// Title of the family: "Word editing".
    pub title: String,
    /// One sentence: what it is for, how long it takes.
    pub about: String,
    /// Who teaches unless told otherwise.
    pub teacher: TeacherMode,
    /// Why it cannot be started as it is, and what to do: a folder of data or a teacher's models are missing. `None`: it
    /// can.
    pub missing: Option<String>,
}

/// The settings that a person chooses when they start a run.
#[derive(Clone, Debug, PartialEq, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// Name of a preset: `regex/small`, or `small` where only one family has it.
    pub preset: String,
    /// Seed of every random stream of the run; drawn where the request leaves it out.
    #[serde(default = "drawn_seed")]
    pub seed: u64,
    /// Who teaches; `None`: as the preset has it.
    #[serde(default)]
    pub teacher: Option<TeacherMode>,
    /// Settings that differ from the preset's, as `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// The settings of a run whose agent lives in another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewOutsideRun {
    /// Whether teachers see the request of an execution.
    pub show_request: bool,
}

/// A seed for those who do not care which. The operating system's numbers are the only ones that are not made from a seed.
fn drawn_seed() -> u64 {
    u64::from(SysRng.try_next_u32().unwrap_or(1))
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Something about the wish must be changed; a plain sentence says what.
    #[error("{0}")]
    Wish(String),
    /// The run is in a state that does not allow it; a plain sentence says which.
    #[error("{0}")]
    State(String),
    /// The store could not take it or give it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be done, and nobody foresaw why; the cause is for the log.
    #[error("{0}")]
    Failed(String),
}

/// Starts runs. The server's run manager implements it.
pub trait Launcher: Send + Sync {
    /// The presets that a run can start from; the default of the server comes first.
    fn presets(&self) -> Vec<PresetInfo>;

    /// Starts a new run and returns its id. The run is then stored and alive.
    fn create(&self, wish: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>>;

    /// Starts a new run whose agent lives in another program and returns its id.
    fn create_outside(&self, _: NewOutsideRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async { Err(LaunchError::State("This server cannot start such runs.".to_owned())) })
    }

    /// Resumes a stored run that has ended, from its last checkpoint.
    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>>;
}
