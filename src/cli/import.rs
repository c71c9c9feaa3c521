//! `iliad import`: descriptions from files into the database, and episodes of agents that live elsewhere.

mod episodes;

use super::{progress, runtime};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::ids::RunId;
use crate::import;
use crate::output::{note, out};
use crate::registry::Registry;
use crate::store::{Store, StoreError};
use std::path::PathBuf;

const AFTER: &str = "\
The formats are those of `iliad export`: JSON lines, CSV, Parquet, or the folder of a data set. docs/export.md says which columns a \
file of your own needs, and what is not brought in. Either all rows come in or none does. A server may be running on the same data folder.

With --episodes the file has executions of an agent that lives in another program, a JSON object a line, with `request` and `text` or \
`pairs`. They are offered to people in an outside run: the one that --run names, or a new one. Rows that came in before are passed over, \
so that the same file can come again; at most 1,000 executions of a run wait for people at a time.

Examples:
  iliad import --dry-run descriptions.csv     every row that cannot come in, with the reason
  iliad import descriptions.jsonl             into the database
  iliad import my-data                        the folder of a data set
  iliad import one-run.parquet --run copy-1   one run, under another name
  iliad import --episodes walks.jsonl         executions for people to describe, in a new run
  iliad import --episodes walks.jsonl --run outside-20260101-120000 --dry-run";

/// Flags of `iliad import`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// File or folder to read
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Store nothing: list every row that could not be stored, with the reason
    #[arg(long)]
    pub dry_run: bool,
    /// Name for the run, where the file has one run; with --episodes, the outside run that they go to [default: a new one]
    #[arg(long, value_name = "NAME")]
    pub run: Option<RunId>,
    /// The file has episodes of an agent that lives elsewhere, which people are to describe
    #[arg(long)]
    pub episodes: bool,
    /// With --episodes: people see the requests in the new run
    #[arg(long, requires = "episodes", conflicts_with = "run")]
    pub show_request: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Bad rows that are listed when they are not asked for.
const LISTED: usize = 10;

/// Carries out `iliad import`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    if args.episodes {
        return episodes::run(args, &settings);
    }
    let bar = progress::file();
    let checked = import::check_telling(&args.path, registry, args.run.clone(), u64::MAX, |reading| {
        progress::reading(&bar, reading);
    });
    bar.finish_and_clear();
    let checked = checked.map_err(|e| CliError::Usage(e.to_string()))?;
    if !checked.unknown.is_empty() {
        note!("passed over: the columns {}, which a data set does not have", checked.unknown.join(", "));
    }
    let shown = if args.dry_run { checked.bad.len() } else { LISTED };
    for bad in checked.bad.iter().take(shown) {
        out!("{}: row {}: {}", bad.file.display(), bad.number, bad.reason)?;
    }
    let runs = checked.runs();
    let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    match (checked.bad.len(), args.dry_run) {
        (0, false) => {}
        (0, true) => {
            note!("{} rows of {} could come in; nothing was stored", checked.rows(), names.join(", "));
            return Ok(Exit::Done);
        }
        (bad, _) => {
            note!("{bad} of {} rows are bad; nothing was stored", checked.rows() + bad as u64);
            return Ok(Exit::Usage);
        }
    }
    for run in checked.other_configurations(registry) {
        note!("no manifest has the configuration of the run {run}; that of its preset takes its place");
    }
    let database = settings.database();
    let imported = runtime()?.block_on(async {
        if let Some(folder) = database.file().and_then(std::path::Path::parent) {
            std::fs::create_dir_all(folder).map_err(|e| CliError::Failed(e.into()))?;
        }
        let store = Store::open_at(&database).await.map_err(|e| CliError::Failed(e.into()))?;
        let bar = progress::rows();
        bar.set_length(checked.rows());
        let imported = checked.store_telling(&store, registry, |done| bar.set_position(done)).await;
        bar.finish_and_clear();
        store.close().await;
        imported.map_err(|error| match error {
            StoreError::Conflict(sentence) => CliError::Usage(format!("{sentence}; give it another name with --run")),
            other => CliError::Failed(other.into()),
        })
    })?;
    note!("{} descriptions of {} teachers came in, as {}", imported.answers, imported.teachers, names.join(", "));
    Ok(Exit::Done)
}
