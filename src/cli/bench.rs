//! `iliad bench`: how long things take.

use super::settings::Common;
use super::train::key_and_value;
use super::{CliResult, Exit, configure, device, trainer_of};
use crate::experiment::bench::{Effort, Timing, iterations, teacher_updates};
use crate::task::regex::kit::{new_teacher, world_of};

const AFTER: &str = "\
Examples:
  iliad bench --set task.path=corpus                                  the teacher's updates at the paper's sizes
  iliad bench --set task.path=corpus --set teacher.models=t.safetensors --only iteration   an iteration of ADEL";

/// Flags of `iliad bench`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Named configuration whose sizes are timed
    #[arg(long, value_name = "NAME", default_value = "paper")]
    pub preset: String,
    /// Change a setting of the preset; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<String>,
    /// What to time: updates, iteration; or agreement: how far the device's results are from the CPU's; several with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "updates,iteration")]
    pub only: Vec<String>,
    /// Samples of each figure
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub samples: usize,
    /// Updates of a sample
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub each: usize,
    /// Updates before the first sample
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub warm: usize,
    /// Examples of an update of the teacher
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub batch: usize,
    /// Products in full float32 on a GPU instead of TF32
    #[arg(long)]
    pub full_precision: bool,
    /// Carry out every operation by itself instead of replaying what was recorded
    #[arg(long)]
    pub no_recording: bool,
    /// Products of a recurrence's steps by cuBLAS instead of own kernels for whole steps
    #[arg(long)]
    pub plain_steps: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad bench`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load()?;
    let config = configure(&args.preset, 1, &args.set)?;
    let device = device(&settings)?;
    crate::nn::device::set_fast_products(!args.full_precision);
    crate::nn::device::set_recording(!args.no_recording);
    crate::nn::device::set_whole_steps(!args.plain_steps);
    let effort = Effort { samples: args.samples, each: args.each.max(1), warm: args.warm };
    let mut timings = Vec::new();
    for what in &args.only {
        match what.as_str() {
            "updates" => {
                let world = world_of(&config)?;
                let teacher = new_teacher(&config, &world, &device)?;
                timings.extend(teacher_updates(&world, &teacher, args.batch, &device, effort)?);
            }
            "agreement" => {
                for apart in crate::model::agreement::agreement(&device, 64, 8)? {
                    println!("{}", serde_json::to_string(&apart)?);
                }
            }
            #[cfg(feature = "cuda")]
            "profile" => {
                crate::nn::device::set_recording(false);
                let world = world_of(&config)?;
                let teacher = new_teacher(&config, &world, &device)?;
                for (name, lines) in crate::experiment::bench::profile(&world, &teacher, args.batch)? {
                    let total: f64 = lines.values().map(|l| l.milliseconds).sum();
                    println!("{name}: {total:.2} ms in {} launches", lines.values().map(|l| l.launches).sum::<u64>());
                    let mut sorted: Vec<_> = lines.into_iter().collect();
                    sorted.sort_by(|a, b| b.1.milliseconds.total_cmp(&a.1.milliseconds));
                    for (what, l) in sorted {
                        let rate = l.flops / l.milliseconds / 1e9;
                        println!("  {:8.3} ms {:5} x {what} ({rate:.0} TFLOP/s)", l.milliseconds, l.launches);
                    }
                }
                crate::nn::device::set_recording(!args.no_recording);
            }
            "iteration" => {
                let folder = std::env::temp_dir().join(format!("iliad-bench-{}", std::process::id()));
                let found = iterations("regex-adel-iteration", trainer_of(&config)?, &config, &folder, &device, effort);
                let _ = std::fs::remove_dir_all(&folder);
                timings.push(found?);
            }
            other => {
                return Err(super::CliError::Usage(format!("`{other}` is not timed: updates, iteration, agreement")));
            }
        }
    }
    for timing in &timings {
        show(timing);
    }
    Ok(Exit::Done)
}

fn show(t: &Timing) {
    println!("{}: {:.2} ms (median of {}, {:.2} to {:.2})", t.name, t.median(), t.samples.len(), t.min(), t.max());
}
