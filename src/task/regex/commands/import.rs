//! `iliad data import-l3`.

use crate::command_line::progress::behind_a_bar;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::family::commands::Commands;
use crate::output::folder::Existing;
use crate::output::{json, out};
use crate::task::regex::import;
use std::path::PathBuf;

/// Commands of `iliad data` about corpora of words.
#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Import {
    /// Turn the public L3 regular-expression data into Iliad's corpus format
    ImportL3(ImportArgs),
}

const AFTER_IMPORT: &str = "\
Examples:
  iliad data import-l3 l3-data -o corpora/regex    read the files of the folder l3-data, write a corpus
  iliad data describe corpora/regex                see what came of it";

/// Flags of `iliad data import-l3`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_IMPORT)]
pub(super) struct ImportArgs {
    /// Folder with the L3 data set's own files
    #[arg(value_name = "FOLDER")]
    pub source: PathBuf,
    /// Folder to write the corpus to; it appears when it is whole
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace the corpus that is there
    #[arg(long)]
    pub force: bool,
    /// Write what was imported as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

impl Commands for Import {
    fn run(&self) -> CliResult {
        let Import::ImportL3(args) = self;
        import_l3(args)
    }
}

/// Carries out `iliad data import-l3`.
fn import_l3(args: &ImportArgs) -> CliResult {
    args.common.load()?;
    let existing = Existing::forced(args.force);
    let report = behind_a_bar(|told| import::import_l3_into(&args.source, &args.output, existing, told))
        .map_err(|e| CliError::Usage(e.to_string()))?;
    if args.json {
        out!("{}", json::line(&report)?)?;
        return Ok(Exit::Done);
    }
    out!("tasks: {} train, {} validation, {} test", report.train, report.validation, report.test)?;
    out!("left out: {}; words: {}; unlabelled expressions: {}", report.left_out, report.words, report.unlabeled)?;
    for note in &report.notes {
        out!("{note}")?;
    }
    out!("The corpus is in {}; use it with --preset paper --set task.path={0}", args.output.display())?;
    Ok(Exit::Done)
}
