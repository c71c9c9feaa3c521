//! Starting runs: the requests, the errors, and the trait of whatever starts them. The application implements it; pages
//! and commands know nothing else of the application.

use crate::config::run::TeacherMode;
use crate::config::run::documented::SettingGroup;
use crate::ids::RunId;
use crate::protocol::Split;
use crate::run::Tried;
use crate::store::StoreError;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
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

/// A checkpoint that is there as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFile {
    /// File name within the run's folder.
    pub name: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Its place on this machine; empty when the file lies with another process.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A checkpoint that comes from the object store.
pub struct KeptCheckpoint {
    /// Its size.
    pub bytes: u64,
    /// Its contents; a damaged one is an error at the end.
    pub chunks: BoxStream<'static, io::Result<axum::body::Bytes>>,
}

/// How far the copies of checkpoints are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFigures {
    /// Runs whose newest checkpoint is not in the object store yet.
    pub waiting: u64,
    /// Copies that failed since the server started.
    pub failures: u64,
}

/// A request to an agent as a checkpoint holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// File name of the checkpoint; `None`: the best one, or the newest where there is no best one.
    pub checkpoint: Option<String>,
    /// The request in plain words.
    pub request: String,
    /// The start, as the family's form sends it.
    pub start: Value,
}

/// The settings that a person chooses when they continue a run from a checkpoint as another run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Continuation {
    /// File name of the checkpoint.
    pub checkpoint: String,
    /// Who teaches; `None`: as the checkpoint has it.
    #[serde(default)]
    pub teacher: Option<TeacherMode>,
    /// Settings that differ from the checkpoint's, as `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// An evaluation that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationRequest {
    /// File name of the checkpoint.
    pub checkpoint: String,
    /// The tasks on which it is evaluated.
    pub split: Split,
    /// Tasks of the split at most; 0: all.
    #[serde(default)]
    pub limit: usize,
}

/// An evaluation that is under way, or that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluating {
    /// The request.
    pub request: EvaluationRequest,
    /// Tasks that are done.
    pub done: u64,
    /// Tasks in all; 0 while the agent is loaded.
    pub tasks: u64,
    /// Seconds until it is done, at the pace so far; `None` before there is a pace.
    pub seconds_left: Option<f64>,
    /// Why it failed; `None` while it is under way.
    pub failed: Option<String>,
}

/// The settings of a preset, for a form that shows all of them.
#[derive(Clone, Debug, Serialize)]
pub struct PresetSettings {
    /// Family and preset: `regex/small`.
    pub preset: String,
    /// Title of the family.
    pub title: String,
    /// The purpose of the preset.
    pub about: String,
    /// Who teaches unless told otherwise.
    pub teacher: TeacherMode,
    /// The documents of the settings, in groups.
    pub groups: Vec<SettingGroup>,
    /// The preset's values by key, as they are typed.
    pub values: BTreeMap<String, String>,
}

/// Why a run cannot begin with the settings that somebody chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingProblem {
    /// The settings that the sentence is about.
    pub keys: Vec<String>,
    /// A sentence that says what to change.
    pub sentence: String,
}

/// The settings of a run whose agent lives in another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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

    /// The settings of a preset.
    fn settings(&self, _preset: &str) -> Result<PresetSettings, LaunchError> {
        Err(unable())
    }

    /// Every reason why a run cannot begin as somebody wishes; none where it can.
    fn problems(&self, _wish: &NewRun) -> Vec<SettingProblem> {
        Vec::new()
    }

    /// Starts a new run and returns its id. The run is then stored and alive.
    fn create(&self, wish: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>>;

    /// Starts a new run whose agent lives in another program and returns its id.
    fn create_outside(&self, _: NewOutsideRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async { Err(LaunchError::State("This server cannot start such runs.".to_owned())) })
    }

    /// Resumes a stored run that has ended, from its last checkpoint.
    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>>;

    /// Changes the number of episodes after which a run that has ended ends, and resumes it; 0: it goes on until it is
    /// stopped.
    fn extend<'a>(&'a self, _id: &'a RunId, _episodes: u64) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async { Err(unable()) })
    }

    /// Starts a new run from a checkpoint of another; its id.
    fn continue_from<'a>(
        &'a self,
        _id: &'a RunId,
        _continuation: Continuation,
    ) -> BoxFuture<'a, Result<RunId, LaunchError>> {
        Box::pin(async { Err(unable()) })
    }

    /// The checkpoints of a run that are there as files, the best first and then the newest.
    fn checkpoint_files<'a>(&'a self, _id: &'a RunId) -> BoxFuture<'a, Result<Vec<CheckpointFile>, LaunchError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// A checkpoint of a run that is no file here, from the object store; `None` where it is not there either.
    fn kept_checkpoint<'a>(
        &'a self,
        _id: &'a RunId,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<KeptCheckpoint>, LaunchError>> {
        Box::pin(async { Ok(None) })
    }

    /// How far the copies of checkpoints are; `None` where none are made.
    fn copy_figures(&self) -> Option<CopyFigures> {
        None
    }

    /// Lets the agent of a checkpoint carry out a request.
    fn try_checkpoint<'a>(&'a self, _id: &'a RunId, _trial: Trial) -> BoxFuture<'a, Result<Tried, LaunchError>> {
        Box::pin(async { Err(unable()) })
    }

    /// Begins to evaluate a checkpoint; the store has the result when it is there.
    fn evaluate<'a>(&'a self, _id: &'a RunId, _request: EvaluationRequest) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async { Err(unable()) })
    }

    /// Removes a run of the trash for good, with its files, before its time. `told` hears how many of how many rows are removed.
    fn remove<'a>(
        &'a self,
        _id: &'a RunId,
        _told: &'a (dyn Fn(u64, u64) + Sync),
    ) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async { Err(unable()) })
    }

    /// The evaluations of a run that are under way, or that failed since the server started.
    fn evaluating(&self, _id: &RunId) -> Vec<Evaluating> {
        Vec::new()
    }
}

fn unable() -> LaunchError {
    LaunchError::State("This server only shows runs; it cannot load their checkpoints.".to_owned())
}
