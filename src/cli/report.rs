//! `iliad report`: results and runs as one HTML file.

use super::progress;
use crate::command_line::{CliError, CliResult, Exit};
use crate::experiment::report::{input, page, run as runs};
use crate::output::{file, note};
use crate::registry::Registry;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad report --run iliad-data/runs/a -o a.html             one run: curves, examples, what teaching took
  iliad report --run runs/a --run runs/b                     several, with their curves in one picture
  iliad report --results benches/results -o results.html     tables and curves over seeds, measurements

The file needs no network and no script; it can be mailed and printed. docs/report.md says what is in it.";

/// Flags of `iliad report`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Folder of results files (*.json)
    #[arg(long, value_name = "DIR", required_unless_present = "run")]
    pub results: Option<PathBuf>,
    /// Folder of a run; may be given many times
    #[arg(long, value_name = "DIR")]
    pub run: Vec<PathBuf>,
    /// File to write
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    /// Heading of the report
    #[arg(long, value_name = "TEXT", default_value = "Iliad report")]
    pub title: String,
}

/// Carries out `iliad report`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    file::check(&args.output)?;
    let wrong = |error: anyhow::Error| CliError::Usage(format!("{error:#}"));
    let results = match &args.results {
        Some(folder) if !folder.is_dir() => {
            return Err(CliError::Usage(format!("there is no folder {}", folder.display())));
        }
        Some(folder) => input::read(folder).map_err(wrong)?,
        None => Vec::new(),
    };
    let bar = progress::bar();
    let read = |(place, folder): (usize, &PathBuf)| {
        progress::show(&bar, &format!("Reading {}", folder.display()), place as f64 / args.run.len() as f64);
        runs::read(folder, registry)
    };
    let runs = args.run.iter().enumerate().map(read).collect::<anyhow::Result<Vec<_>>>().map_err(wrong)?;
    progress::show(&bar, "Drawing the figures", 1.0);
    let day = time::OffsetDateTime::now_utc().date();
    let made = format!("Made on {day} by iliad {}.", env!("CARGO_PKG_VERSION"));
    let html = page(&args.title, &made, &results, &runs)?;
    bar.finish_and_clear();
    file::write(&args.output, html.as_bytes())?;
    note!("{} results and {} runs in {}", results.len(), runs.len(), args.output.display());
    Ok(Exit::Done)
}
