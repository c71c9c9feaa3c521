//! `iliad pretrain`: a policy trained on executions without requests, for runs to start from.

use super::run_settings::RunSettings;
use super::{device, family_of, progress};
use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit};
use crate::output::{file, note, out};
use crate::registry::Registry;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad pretrain --preset tiny --seed 1 -o policy.safetensors     once
  iliad train --set model.pretrained=policy.safetensors           then any number of runs without the warm-up";

/// Flags of `iliad pretrain`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    pub run: RunSettings,
    /// File to write the policy to
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad pretrain`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let config = args.run.configuration(registry)?;
    // Before the work: hours must not end with a file that cannot be written.
    file::prepare(&args.output)?;
    let bar = progress::bar();
    family_of(registry, &config)?.pretrain(&config, &args.output, &device(&settings)?, &|stage, share| {
        progress::show(&bar, stage, share);
    })?;
    bar.finish_and_clear();
    if file::is_stream(&args.output) {
        note!("The policy is in {}.", args.output.display());
    } else {
        out!("The policy is in {}.", args.output.display())?;
    }
    Ok(Exit::Done)
}
