//! `iliad pretrain`: a policy trained on executions without requests, for runs to start from.

use super::settings::Common;
use super::train::key_and_value;
use super::{CliResult, Exit, bar, configure, device, family_of};
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
    /// Named configuration to start from
    #[arg(long, value_name = "NAME", default_value = "tiny")]
    pub preset: String,
    /// Seed of every random stream
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = super::numbers::seed)]
    pub seed: u64,
    /// Change a setting of the preset; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<String>,
    /// File to write the policy to
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad pretrain`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let config = configure(registry, &args.preset, args.seed, &args.set)?;
    // Before the work: hours must not end with a file that cannot be written.
    file::prepare(&args.output)?;
    let bar = bar();
    family_of(registry, &config)?.pretrain(&config, &args.output, &device(&settings)?, &|what, share| {
        bar.set_position((1000.0 * share) as u64);
        bar.set_message(what.to_owned());
    })?;
    bar.finish_and_clear();
    if file::is_stream(&args.output) {
        note!("The policy is in {}.", args.output.display());
    } else {
        out!("The policy is in {}.", args.output.display())?;
    }
    Ok(Exit::Done)
}
