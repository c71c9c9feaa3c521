//! `iliad data`: bringing corpora in, and looking at them.

use super::settings::Common;
use super::{CliResult, not_connected};
use std::path::PathBuf;

/// Commands of `iliad data`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Turn the public L3 regular-expression data into Iliad's corpus format
    ImportL3(ImportArgs),
    /// Say what a corpus, or the built-in world, holds
    Describe(DescribeArgs),
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
    /// Folder to write the corpus to
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_DESCRIBE: &str = "\
Examples:
  iliad data describe                     the built-in world
  iliad data describe corpora/regex       tasks, requests and words of a corpus
  iliad data describe corpora/regex --json";

/// Flags of `iliad data describe`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_DESCRIBE)]
pub(super) struct DescribeArgs {
    /// Folder of a corpus [default: the built-in world]
    #[arg(value_name = "FOLDER")]
    pub corpus: Option<PathBuf>,
    /// Write the figures as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad data …`.
pub(super) fn run(args: &Args) -> CliResult {
    match &args.command {
        Command::ImportL3(args) => import_l3(args),
        Command::Describe(args) => describe(args),
    }
}

/// SEAM: reads the L3 files in `args.source`, writes a corpus to `args.output`.
fn import_l3(args: &ImportArgs) -> CliResult {
    let _settings = args.common.load()?;
    not_connected("data import-l3")
}

/// SEAM: prints sizes of splits, requests and vocabularies.
fn describe(args: &DescribeArgs) -> CliResult {
    let _settings = args.common.load()?;
    not_connected("data describe")
}
