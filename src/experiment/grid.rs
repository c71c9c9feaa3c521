//! A grid of runs: the rows of a table times seeds, several at once, each an ordinary run in a folder of its own. What
//! was interrupted goes on where it stopped; what is complete is not repeated.

use crate::config::run::{ConfigError, RunConfig};
use crate::family::tables::Table;
use crate::output::file;
use crate::registry::AnyFamily;
use crate::run::{Command, Event};
use crate::trainer::{FinalReport, Launch, checkpoint};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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
    pub jobs: usize,
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

/// Carries the runs out, `jobs` at a time, until all are complete, `stop` is set or the time is up. Whether all are
/// complete.
///
/// # Errors
/// When a run failed (after all others have ended), or a folder holds a run with other settings.
pub fn carry_out(
    cells: &[Cell],
    plan: &Plan,
    stop: &AtomicBool,
    listener: std::sync::Arc<Listener>,
) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let over = || stop.load(Ordering::Relaxed) || (plan.seconds > 0.0 && begun.elapsed().as_secs_f64() >= plan.seconds);
    // Before anything is trained, so that a slip is noticed at once.
    let mut open = Vec::new();
    for cell in cells {
        if complete(cell)? {
            listener(cell, News::Already);
        } else {
            open.push(cell);
        }
    }
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.clamp(1, open.len().max(1)) {
            scope.spawn(|| {
                while let Some(cell) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if over() {
                        stopped.store(true, Ordering::Relaxed);
                        break;
                    }
                    listener(cell, News::Begins);
                    match one(cell, plan, &over, &listener) {
                        Ok(Some(report)) => listener(cell, News::Complete(&report)),
                        Ok(None) => {
                            stopped.store(true, Ordering::Relaxed);
                            listener(cell, News::Stopped);
                        }
                        Err(error) => {
                            listener(cell, News::Failed(&error));
                            let mut failures = failures.lock().unwrap_or_else(|e| e.into_inner());
                            failures.push(format!("{}: {error:#}", cell.name));
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(|e| e.into_inner());
    if !failures.is_empty() {
        anyhow::bail!("{} of {} runs failed: {}", failures.len(), cells.len(), failures.join("; "))
    }
    Ok(!stopped.into_inner())
}

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

/// Carries one run out; `None` when it was stopped before its end.
fn one(
    cell: &Cell,
    plan: &Plan,
    over: &(dyn Fn() -> bool + Sync),
    listener: &std::sync::Arc<Listener>,
) -> anyhow::Result<Option<FinalReport>> {
    let trainer: &'static dyn AnyFamily =
        plan.registry.family(&cell.config.family).context("the task family is gone")?;
    trainer.check(&cell.config)?;
    // A handle each: streams and memory pools of one run do not wait for another's.
    let device = crate::nn::device::open(&plan.device)?;
    let label = crate::nn::device::describe(&device);
    let (told, teller) = (listener.clone(), cell.clone());
    let launch = Launch {
        id: cell.name.replace(' ', "-").into(),
        config: cell.config.clone(),
        folder: cell.folder.clone(),
        device,
        store: None,
        teacher: None,
        listener: Some(Box::new(move |event| told(&teller, News::Event(event)))),
    };
    let (handle, thread) = trainer.spawn(launch)?;
    let mut asked = false;
    while !thread.is_finished() {
        if !asked && over() {
            asked = true;
            // A run that has just ended needs no command.
            let _ = handle.commands.send(if plan.conclude { Command::Conclude } else { Command::Shutdown });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = match thread.join().map_err(|_| anyhow::anyhow!("the trainer's thread broke"))? {
        Ok(report) => report,
        // Stopped while it warmed up: it begins again.
        Err(_) if asked && checkpoint::list(&cell.folder).is_empty() => return Ok(None),
        Err(error) => return Err(error),
    };
    let complete = report.complete;
    if complete || plan.conclude {
        Finished { config: cell.config.clone(), report: report.clone(), device: label }.write(&cell.folder)?;
    }
    Ok(complete.then_some(report))
}
