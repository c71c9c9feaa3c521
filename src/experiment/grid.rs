//! A grid of runs: the rows of a table times seeds, several at once, each an ordinary run in a folder of its own. What
//! was interrupted goes on where it stopped; what is complete is not repeated.

mod card_memory;
mod growth;
mod one_run;
mod process_sharing;
mod side_by_side;
pub mod worker;

pub use growth::Gain;
pub use side_by_side::{Outcome, Worker, carry_out};

use crate::config::run::{ConfigError, RunConfig};
use crate::family::tables::Table;
use crate::output::file;
use crate::run::Event;
use crate::trainer::{FinalReport, checkpoint};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// So many.
    Fixed(usize),
    /// On a GPU as many as make noticeably more episodes than fewer of them; on a processor one.
    AsManyAsPay,
}

impl std::str::FromStr for Jobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Jobs::AsManyAsPay),
            Ok(jobs) if (1..=256).contains(&jobs) => Ok(Jobs::Fixed(jobs)),
            _ => Err("give a number from 1 to 256, or auto".into()),
        }
    }
}

/// How runs at once are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Isolation {
    /// Processes on a GPU whose driver lets them share it (MPS), else threads
    #[default]
    Auto,
    /// Threads of this process
    Threads,
    /// A process for each run
    Processes,
}

/// Settings with which a table is carried out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The families that tables may be of.
    pub registry: crate::registry::Registry,
    /// Task family of the table.
    pub family: String,
    /// Folder of the table's runs: `ROW/seed-N` below it.
    pub folder: PathBuf,
    /// Preset that all rows start from.
    pub preset: String,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Settings of all rows; the rows' own come after them.
    pub set: Vec<String>,
    /// Budget of episodes, in place of the preset's.
    pub episodes: Option<u64>,
    /// Runs at once.
    pub jobs: Jobs,
    /// How runs at once are kept apart.
    pub isolation: Isolation,
    /// All runs are told to save and end after so many seconds; 0: never.
    pub seconds: f64,
    /// Whether runs that time ends report the test success of what they have reached.
    pub conclude: bool,
    /// Device by name; every run opens its own handle.
    pub device: String,
}

/// One run of the grid.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Index of its row.
    pub row: usize,
    /// `ROW seed N`, for messages.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its configuration.
    pub config: RunConfig,
}

/// The report that a complete run, or one that time ended, leaves in its folder beside every run's files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// The run's configuration.
    pub config: RunConfig,
    /// Its results.
    pub report: FinalReport,
    /// Device it ended on.
    pub device: String,
}

/// Name of the file that holds [`Finished`].
pub const REPORT: &str = "report.json";

impl Finished {
    /// Reads the report of a run; `None` where there is none.
    ///
    /// # Errors
    /// When there is one and it cannot be read.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Finished>> {
        let path = folder.join(REPORT);
        match std::fs::read(&path) {
            Ok(bytes) => {
                Ok(Some(serde_json::from_slice(&bytes).with_context(|| format!("{} cannot be read", path.display()))?))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        Ok(file::write(&folder.join(REPORT), &serde_json::to_vec_pretty(self)?)?)
    }
}

/// The runs of a table, seed by seed, so that an interrupted grid has every row of the first seeds.
///
/// # Errors
/// When a setting cannot be used.
pub fn cells(table: &Table, plan: &Plan) -> Result<Vec<Cell>, ConfigError> {
    let mut cells = Vec::new();
    for &seed in &plan.seeds {
        for (index, row) in table.rows.iter().enumerate() {
            let mut set = vec![r#"teacher.mode={"mode":"simulated"}"#.to_owned()];
            set.extend_from_slice(&plan.set);
            set.extend_from_slice(&row.settings);
            set.extend(plan.episodes.map(|n| format!("schedule.episodes={n}")));
            set.push(format!("seed={seed}"));
            let config = plan.registry.configure(&plan.preset, seed, &set)?;
            if config.family != plan.family {
                return Err(ConfigError(format!("the preset `{}` is not of the task {}", plan.preset, plan.family)));
            }
            if config.schedule.episodes == 0 {
                return Err(ConfigError(format!(
                    "runs of the preset `{}` have no end; give --episodes or schedule.episodes",
                    plan.preset
                )));
            }
            let folder = plan.folder.join(&row.name).join(format!("seed-{seed}"));
            cells.push(Cell { row: index, name: format!("{} seed {seed}", row.name), folder, config });
        }
    }
    Ok(cells)
}

/// An event of a run of the grid.
pub enum News<'a> {
    /// It was complete before.
    Already,
    /// It begins or goes on.
    Begins,
    /// It tells something.
    Event(&'a Event),
    /// It is complete.
    Complete(&'a FinalReport),
    /// It was stopped, and goes on when the grid does.
    Stopped,
    /// It failed; the others go on.
    Failed(&'a anyhow::Error),
}

/// Gets news of the runs, from several threads.
pub type Listener = dyn Fn(&Cell, News<'_>) + Send + Sync;

/// Whether a run is complete.
///
/// # Errors
/// When the folder holds a run with other settings.
fn complete(cell: &Cell) -> anyhow::Result<bool> {
    let found = Finished::read(&cell.folder)?;
    let begun = match &found {
        Some(finished) => Some(finished.config.clone()),
        None => checkpoint::newest(&cell.folder)?.0.map(|(header, _)| header.config),
    };
    if let Some(begun) = begun
        && begun != cell.config
    {
        let keys: Vec<_> = cell.config.differences(&begun).into_iter().map(|(key, _)| key).collect();
        anyhow::bail!(
            "{} holds a run with other settings ({}); choose another --run-dir, or give the same settings",
            cell.folder.display(),
            keys.join(", ")
        )
    }
    Ok(found.is_some_and(|f| f.report.complete))
}
