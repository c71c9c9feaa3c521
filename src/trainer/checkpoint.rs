//! Checkpoints of a run: everything needed to continue as if nothing had happened. Written atomically with a checksum;
//! the newest few and the best are kept; a damaged one is passed over in favour of the one before.

use crate::algorithm::AlgorithmState;
use crate::algorithm::query_selection::KindCounts;
use crate::config::run::RunConfig;
use crate::config::run::TeacherMode;
use crate::nn::artifact::{self, ArtifactError, Precision};
use crate::protocol::Rate;
use crate::run::CheckpointRow;
use crate::trainer::meters::Meters;
use crate::trainer::milestones::Milestones;
use crate::trainer::transient::Transient;
use anyhow::Context;
use candle_core::Tensor;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the layout of checkpoints.
pub const FORMAT: u32 = 1;

/// The position of a run. All random streams are functions of the seed and of these counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Updates (iterations) made.
    pub update: u64,
    /// Episodes spent: those that a simulated teacher could have been asked about, and those that people answered.
    pub episodes: u64,
    /// Next free number of an episode. Executions for people have numbers before anybody has answered them. Checkpoints of
    /// earlier programs lack it: they counted an episode for each number.
    #[serde(default)]
    pub next: Option<u64>,
    /// Descriptions of people used.
    pub human: u64,
    /// Descriptions of the simulated teacher used.
    pub simulated: u64,
    /// Lines of the run's description log.
    pub recorded: u64,
    /// Updates of pretraining made.
    pub pretrained: u64,
    /// Practice steps since the last update.
    #[serde(default)]
    pub practice: u64,
    /// Practice steps in all.
    #[serde(default)]
    pub practised: u64,
}

/// The header of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program that wrote it.
    pub program: String,
    /// The run's configuration.
    pub config: RunConfig,
    /// The run's counters.
    pub counters: Counters,
    /// Adam steps made.
    pub steps: u64,
    /// λ in force, for readers; it follows from the update.
    pub lambda: f64,
    /// Sizes and vocabularies of the agent.
    pub blueprint: serde_json::Value,
    /// Teacher mode.
    pub teacher: TeacherMode,
    /// Latest validation success.
    pub validation: Option<Rate>,
    /// Update of the policy that `validation` was read of; `None` in files of earlier programs.
    #[serde(default)]
    pub validated: Option<u64>,
    /// Best validation success and its update.
    pub best: Option<(Rate, u64)>,
    /// Training seconds.
    pub seconds: f64,
    /// Readings since the last point.
    pub meters: Meters,
    /// How often teachers were asked about each kind of execution, where episodes are selected.
    #[serde(default, rename = "tallies")]
    pub kind_counts: KindCounts,
    /// How often people were asked about each kind of task, where their executions are chosen by it.
    #[serde(default)]
    pub told: KindCounts,
    /// Whether the evaluation that is due at this update has still to be made: the program ended in the midst of it.
    #[serde(default, rename = "owed")]
    pub evaluation_due: bool,
    /// RFC 3339 time of writing.
    pub written_at: String,
    /// The algorithm's own state beside its tensors; null where it has none.
    #[serde(default)]
    pub state: serde_json::Value,
    /// Smoothed validation, and when it first reached which level.
    #[serde(default)]
    pub milestones: Milestones,
}

impl Header {
    /// The state that the algorithm gets back beside its tensors.
    pub fn algorithm_state(&self) -> AlgorithmState {
        AlgorithmState { steps: self.steps, blueprint: self.blueprint.clone(), state: self.state.clone() }
    }
}

fn file_name(update: u64) -> String {
    format!("update-{update:08}.safetensors")
}

/// Name of the best checkpoint.
pub const BEST: &str = "best.safetensors";

/// Writes a checkpoint into the run's folder and removes those beyond `keep`. Returns its row.
pub fn save(
    folder: &Path,
    header: &Header,
    tensors: &BTreeMap<String, Tensor>,
    keep: usize,
) -> Result<CheckpointRow, ArtifactError> {
    let name = file_name(header.counters.update);
    let path = folder.join(&name);
    artifact::save(&path, header, tensors, Precision::Full)?;
    let mut all = list(folder);
    while all.len() > keep {
        // Only then are older ones removed; failing to is no reason to stop training.
        let _ = std::fs::remove_file(all.remove(0));
    }
    row(&path, header, false)
}

/// Writes the policy that did best on validation (weights and optimiser state, as any checkpoint).
pub fn save_best(
    folder: &Path,
    header: &Header,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<CheckpointRow, ArtifactError> {
    let path = folder.join(BEST);
    artifact::save(&path, header, tensors, Precision::Full)?;
    row(&path, header, true)
}

fn row(path: &Path, header: &Header, best: bool) -> Result<CheckpointRow, ArtifactError> {
    let bytes = std::fs::metadata(path).map_err(|source| ArtifactError::Io { path: path.to_owned(), source })?.len();
    let c = header.counters;
    Ok(CheckpointRow {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        update: c.update,
        episodes: c.episodes,
        descriptions: c.human + c.simulated,
        // An earlier policy's reading says nothing of this one.
        validation: header.validation.filter(|_| header.validated == Some(c.update)),
        bytes,
        written_at: header.written_at.clone(),
        best,
    })
}

/// Whether a file name is one that a checkpoint has.
pub fn is_name(name: &str) -> bool {
    let update = name.strip_prefix("update-").and_then(|rest| rest.strip_suffix(".safetensors"));
    name == BEST || update.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The checkpoints that are files in the folder, the best first and then the newest.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let best = Some(folder.join(BEST)).filter(|path| path.is_file());
    best.into_iter().chain(list(folder).into_iter().rev()).collect()
}

/// The row of a checkpoint that is there as a file, from its header.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn describe(path: &Path) -> Result<(CheckpointRow, Header), ArtifactError> {
    let (header, _) = load(path)?;
    let best = path.file_name().is_some_and(|name| name == BEST);
    Ok((row(path, &header, best)?, header))
}

/// Lays a checkpoint of one run down as the first one of another, with other settings. The best policy so far comes along where it is
/// known; else the first validation decides anew. Returns the rows of the checkpoints written.
///
/// # Errors
/// When a checkpoint cannot be read or written.
pub fn transplant(from: &Path, to: &Path, config: &RunConfig) -> anyhow::Result<(Vec<CheckpointRow>, Header)> {
    let (mut header, tensors) = load(from)?;
    (header.config, header.teacher) = (config.clone(), config.teacher.mode);
    let mut rows = Vec::new();
    let best = from.parent().map(|folder| folder.join(BEST)).filter(|path| path.is_file());
    let best = best.map(|path| load(&path)).transpose()?;
    match best {
        // The policy that this checkpoint knows as the best.
        Some((mut found, weights)) if header.best.is_some_and(|(_, update)| update == found.counters.update) => {
            (found.config, found.teacher) = (header.config.clone(), header.teacher);
            rows.push(save_best(to, &found, &weights)?);
        }
        // That one is gone: the run went on to a better one.
        _ => {
            header.milestones = Milestones::default();
            header.best = header
                .validation
                .filter(|_| header.validated == Some(header.counters.update))
                .map(|rate| (rate, header.counters.update));
            header.evaluation_due = header.best.is_none();
            if header.best.is_some() {
                rows.push(save_best(to, &header, &tensors)?);
            }
        }
    }
    rows.push(save(to, &header, &tensors, config.schedule.keep)?);
    Ok((rows, header))
}

/// Checkpoints in the folder, oldest first (the best one not among them).
pub fn list(folder: &Path) -> Vec<PathBuf> {
    checkpoint_files(folder).unwrap_or_default()
}

/// Checkpoints in the folder, oldest first. A folder that cannot be read is an error, and not a folder without checkpoints.
fn checkpoint_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(all),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("update-") && name.ends_with(".safetensors") {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// Episodes that the run in a folder has spent, as far as its newest checkpoint tells: those of earlier programs counted what
/// people were only offered, which the run itself corrects when it is resumed.
pub fn spent(folder: &Path) -> Option<u64> {
    let counters = newest(folder).ok()?.0?.0.counters;
    (counters.next.is_some() || counters.simulated > 0).then_some(counters.episodes)
}

/// Removes the half-written files of a killed program. Only the holder of the run's lock may call it.
pub(super) fn remove_partial_files(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tmp") {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Loads one checkpoint.
pub fn load(path: &Path) -> Result<(Header, BTreeMap<String, Tensor>), ArtifactError> {
    let (header, tensors): (Header, _) = artifact::load(path)?;
    if let Err(error) = header.config.check() {
        return Err(ArtifactError::Damaged { path: path.to_owned(), reason: format!("its settings: {error}") });
    }
    if header.format != FORMAT {
        return Err(ArtifactError::Damaged {
            path: path.to_owned(),
            reason: format!("it has layout {} and this program reads {FORMAT}", header.format),
        });
    }
    Ok((header, tensors))
}

/// A loaded checkpoint, if there is one.
pub type Loaded = Option<(Header, BTreeMap<String, Tensor>)>;

/// The newest checkpoint that can be read, and a plain sentence for each newer one that cannot.
///
/// # Errors
/// When there are checkpoints and none of them can be read: starting afresh would overwrite a run.
pub fn newest(folder: &Path) -> anyhow::Result<(Loaded, Vec<String>)> {
    let all =
        checkpoint_files(folder).with_context(|| format!("cannot look for checkpoints in {}", folder.display()))?;
    let mut complaints = Vec::new();
    for path in all.iter().rev() {
        match load(path).map_err(anyhow::Error::from) {
            Ok(found) => return Ok((Some(found), complaints)),
            // The file is whole, but cannot be read at the moment.
            Err(error) if Transient::of(&error).is_some() => return Err(error),
            Err(error) => complaints.push(format!("passed over a checkpoint: {error}")),
        }
    }
    if !all.is_empty() {
        anyhow::bail!(
            "none of the run's checkpoints can be read: {}. Nothing was changed. Put the run's folder {} back from a backup \
             (`iliad restore`), or begin another run",
            complaints.join("; "),
            folder.display()
        )
    }
    Ok((None, complaints))
}
