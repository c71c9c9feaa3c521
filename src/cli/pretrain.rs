//! `iliad pretrain`: a policy trained on executions without requests, for runs to start from.

use super::settings::Common;
use super::train::key_and_value;
use super::{CliResult, not_connected};
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
    #[arg(long, value_name = "N", default_value_t = 1)]
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

/// SEAM: carries out `iliad pretrain`.
pub(super) fn run(args: &Args) -> CliResult {
    let _settings = args.common.load()?;
    not_connected("pretrain")
}
