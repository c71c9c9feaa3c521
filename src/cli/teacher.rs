//! `iliad teacher`: the simulated teacher.

use super::run_settings::RunSettings;
use super::{device, family_of, progress};
use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit, numbers};
use crate::family::TeacherTraining;
use crate::output::{file, json, note, out};
use crate::registry::Registry;
use std::path::PathBuf;

/// Commands of `iliad teacher`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Train a simulated teacher (executor and describer) on the simulation split
    Train(TrainArgs),
}

const AFTER: &str = "\
Examples:
  iliad teacher train --preset tiny --seed 1 -o teacher.safetensors        the built-in task's teacher
  iliad teacher train --preset paper --seed 1 -o teacher.safetensors --half  stored at half the size
  iliad train --set teacher.models=teacher.safetensors                     a run that uses it";

/// Flags of `iliad teacher train`. Numbers that are left out are the preset's.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct TrainArgs {
    #[command(flatten)]
    pub run: RunSettings,
    /// File to write the teacher to
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Updates of the executor [default: the preset's]
    #[arg(long, value_name = "N", value_parser = numbers::whole)]
    pub executor_updates: Option<u64>,
    /// Updates of the describer [default: the preset's]
    #[arg(long, value_name = "N", value_parser = numbers::whole)]
    pub describer_updates: Option<u64>,
    /// Examples per update [default: the preset's]
    #[arg(long, value_name = "N", value_parser = numbers::batch)]
    pub batch: Option<usize>,
    /// Updates between two evaluations [default: the preset's]
    #[arg(long, value_name = "N", value_parser = numbers::whole)]
    pub evaluate_every: Option<u64>,
    /// Stop after so many seconds and keep what is best by then; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = numbers::seconds)]
    pub seconds: f64,
    /// Store float16: half the size
    #[arg(long)]
    pub half: bool,
    /// Write the result as one line of JSON, and no progress bar
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad teacher …`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    match &args.command {
        Command::Train(args) => train(args, registry),
    }
}

/// Carries out `iliad teacher train`.
fn train(args: &TrainArgs, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let config = args.run.configuration(registry)?;
    let length = config.teacher.training;
    // Before the work: hours must not end with a file that cannot be written.
    file::prepare(&args.output)?;
    let bar = progress::bar();
    let device = device(&settings)?;
    let report = family_of(registry, &config)?.train_teacher(&TeacherTraining {
        executor_updates: args.executor_updates.unwrap_or(length.executor_updates),
        describer_updates: args.describer_updates.unwrap_or(length.describer_updates),
        batch: args.batch.unwrap_or(length.batch),
        evaluate_every: args.evaluate_every.unwrap_or(length.evaluate_every).max(1),
        output: &args.output,
        half: args.half,
        seconds: args.seconds,
        device: &device,
        progress: &|stage, share| {
            progress::show(&bar, stage, share);
            tracing::info!("{stage}");
        },
        config: &config,
    })?;
    bar.finish_and_clear();
    if file::is_stream(&args.output) {
        note!("{}", json::line(&report)?);
    } else if args.json {
        out!("{}", json::line(&report)?)?;
    } else {
        out!("executor: {:.1}% right on validation", 100.0 * report.executor_success)?;
        out!(
            "describer: the greedy description qualifies for {:.1}%, some candidate for {:.1}% of {} items",
            100.0 * report.greedy_qualifies,
            100.0 * report.some_qualifies,
            report.n
        )?;
        out!("{:.0} s; the teacher is in {}", report.seconds, args.output.display())?;
    }
    Ok(Exit::Done)
}
