//! `iliad data import-r2r`.

use crate::command_line::progress::behind_a_bar;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::family::commands::Commands;
use crate::output::folder::Existing;
use crate::output::{json, out};
use crate::task::nav::import::{self, Sources};
use std::path::PathBuf;

/// Commands of `iliad data` about corpora of walks.
#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Import {
    /// Turn the public Room-to-Room files into Iliad's layout of NAV data
    ImportR2r(ImportR2rArgs),
}

const AFTER_IMPORT_R2R: &str = "\
Examples:
  iliad data import-r2r R2R/data --connectivity connectivity -o nav
  iliad data import-r2r R2R/data --connectivity connectivity --boxes REVERIE/data/BBox \
--features ResNet-152-imagenet.tsv -o nav

The splits are made as the paper's sizes tell: all unseen houses are the test split; validation has the val_seen paths and \
360 of the training paths, those with the smallest SHA-256 of nav-val-<path_id>.";

/// Flags of `iliad data import-r2r`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_IMPORT_R2R)]
pub(super) struct ImportR2rArgs {
    /// Folder with R2R_train.json, R2R_val_seen.json and R2R_val_unseen.json
    #[arg(value_name = "FOLDER")]
    pub source: PathBuf,
    /// Folder with the files <scan>_connectivity.json [default: connectivity in FOLDER]
    #[arg(long, value_name = "DIR")]
    pub connectivity: Option<PathBuf>,
    /// Folder with REVERIE's object boxes, <scan>_<viewpoint>.json [default: no objects]
    #[arg(long, value_name = "DIR")]
    pub boxes: Option<PathBuf>,
    /// Table of image features, 36 vectors a viewpoint [default: none]
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// Folder to write the data to; it appears when it is whole
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace the data that are there
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
        let Import::ImportR2r(args) = self;
        import_r2r(args)
    }
}

/// Carries out `iliad data import-r2r`.
fn import_r2r(args: &ImportR2rArgs) -> CliResult {
    args.common.load()?;
    let sources = Sources {
        r2r: args.source.clone(),
        connectivity: args.connectivity.clone().unwrap_or_else(|| args.source.join("connectivity")),
        boxes: args.boxes.clone(),
        features: args.features.clone(),
    };
    let existing = Existing::forced(args.force);
    let report = behind_a_bar(|told| import::import_r2r_into(&sources, &args.output, existing, told))
        .map_err(|e| CliError::Usage(e.to_string()))?;
    if args.json {
        out!("{}", json::line(&report)?)?;
        return Ok(Exit::Done);
    }
    out!("houses: {}, with {} viewpoints and {} objects", report.houses, report.viewpoints, report.objects)?;
    out!("tasks: {} simulation, {} validation, {} test", report.train, report.validation, report.test)?;
    out!("left out: {} paths with fewer than three requests; words: {}", report.left_out, report.words)?;
    if args.features.is_some() {
        out!("image features: {} viewpoints", report.features)?;
    }
    out!("The data is in {}", args.output.display())?;
    Ok(Exit::Done)
}
