//! `iliad model`: checks of model files.

use super::settings::Common;
use super::{CliResult, not_connected};
use std::path::PathBuf;

/// Commands of `iliad model`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Compare this build's models with a numeric fixture: logits, loss and every gradient
    Check(CheckArgs),
}

const AFTER: &str = "\
Examples:
  iliad model check fixture.safetensors                  prints the largest differences; code 1 when one exceeds 1e-5
  iliad model check fixture.safetensors --device cuda    the same on a GPU";

/// Flags of `iliad model check`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct CheckArgs {
    /// Fixture with weights, inputs, logits, loss and gradients
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the differences as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad model …`.
pub(super) fn run(args: &Args) -> CliResult {
    match &args.command {
        Command::Check(args) => check(args),
    }
}

/// SEAM: carries out `iliad model check`.
fn check(args: &CheckArgs) -> CliResult {
    let _settings = args.common.load()?;
    not_connected("model check")
}
