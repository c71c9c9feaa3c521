//! `iliad dev kills`: the program is killed again and again while people teach it and while it trains, and what is left is audited.

mod audit;
mod teaching;
mod training;

use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit, numbers};
use crate::experiment::results::Results;
use crate::output::{file, json, out};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const AFTER: &str = "\
Each server is a process of its own on a folder that the kills share; SIGKILL comes at a moment drawn evenly from its start to \
--longest seconds later, so that starting, recovery and checkpoints are hit as well as teaching. A teacher whose answer got no reply \
sends it again, as the page does.

Code 1: an acknowledged answer is lost or stored twice, was learnt from twice, or a training that was killed ended with other weights.

Examples:
  iliad dev kills --kills 10                              ten kills of either kind
  iliad dev kills --kills 200 --results benches/results   kept in files";

/// Flags of `iliad dev kills`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct Args {
    /// Kills of a server that people teach, and as many of a training
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub kills: u64,
    /// Teachers, each with a browser of their own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub teachers: u64,
    /// Latest moment of a kill, in seconds after the start of the process
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = numbers::seconds)]
    pub longest: f64,
    /// Seed of all moments, and of the runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::seed)]
    pub seed: u64,
    /// Folder to keep the figures in, as kills-teaching.json and kills-training.json
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Print what was found as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// How often and when processes are killed.
struct Moments {
    kills: u64,
    longest: f64,
    seed: u64,
}

impl Moments {
    /// The moment of a kill: how long after the start of the process.
    fn of(&self, purpose: &str, kill: u64) -> Duration {
        use rand::RngExt;
        let share: f64 = crate::rng::stream(self.seed, purpose, kill).random();
        Duration::from_secs_f64(share * self.longest)
    }
}

/// The result of both parts.
#[derive(Debug, Serialize)]
struct Found {
    seconds: f64,
    teaching: teaching::Taught,
    training: training::Trained,
}

impl Found {
    fn faults(&self) -> usize {
        self.teaching.faults.len() + self.training.faults.len()
    }
}

/// Carries out `iliad dev kills`.
pub(in crate::cli) fn run(args: &Args) -> CliResult {
    args.common.load()?;
    let begun = Instant::now();
    let moments = Moments { kills: args.kills, longest: args.longest, seed: args.seed };
    let folder = tempfile::Builder::new().prefix("iliad-kills-").tempdir().map_err(anyhow::Error::from)?;
    let taught = folder.path().join("taught");
    std::fs::create_dir(&taught).map_err(anyhow::Error::from)?;
    let teaching = crate::cli::runtime()?.block_on(teaching::carry_out(&taught, args.teachers, &moments))?;
    let training = training::carry_out(folder.path(), &moments)?;
    let found = Found { seconds: begun.elapsed().as_secs_f64().round(), teaching, training };
    if args.json {
        out!("{}", json::line(&found)?)?;
    } else {
        told(&found)?;
    }
    if let Some(results) = &args.results {
        keep(results, args, &found)?;
    }
    let faults = found.faults();
    if faults > 0 {
        // The folder stays, because it tells why.
        let kept = folder.keep();
        return Err(anyhow::anyhow!("{faults} faults; what the kills left is in {}", kept.display()).into());
    }
    Ok(Exit::Done)
}

fn told(found: &Found) -> Result<(), crate::output::OutputError> {
    let (taught, trained) = (&found.teaching, &found.training);
    out!(
        "{} kills while {} people taught: {} answers acknowledged ({} of them sent again), {} lost or doubled",
        taught.kills,
        taught.teachers,
        taught.acknowledged,
        taught.sent_again,
        taught.faults.len()
    )?;
    out!(
        "{} kills of trainings: {} of {} ended with other weights than one that was not killed",
        trained.kills,
        trained.faults.len(),
        trained.trainings
    )?;
    for fault in taught.faults.iter().chain(&trained.faults) {
        out!("  {fault}")?;
    }
    Ok(())
}

/// Keeps the figures of both parts.
fn keep(folder: &Path, args: &Args, found: &Found) -> anyhow::Result<()> {
    let date = time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?;
    let mut command = format!("iliad dev kills --kills {} --teachers {}", args.kills, args.teachers);
    if (args.longest, args.seed) != (3.0, 1) {
        command.push_str(&format!(" --longest {} --seed {}", args.longest, args.seed));
    }
    let figure = |name: &str, value: usize, unit: String, kills: u64| Results {
        name: name.to_owned(),
        value: Some(value as f64),
        unit,
        n: usize::try_from(kills).unwrap_or(usize::MAX),
        device: crate::nn::device::describe(&candle_core::Device::Cpu),
        date: date.clone(),
        command: command.clone(),
        program: env!("CARGO_PKG_VERSION").into(),
        complete: true,
        ..Results::default()
    };
    let (taught, trained) = (&found.teaching, &found.training);
    let answers = format!("of {} acknowledged answers lost, doubled or learnt from twice", taught.acknowledged);
    let weights = format!("of {} killed trainings with other weights", trained.trainings);
    std::fs::create_dir_all(folder)?;
    for results in [
        figure("kills-teaching", taught.faults.len(), answers, taught.kills),
        figure("kills-training", trained.faults.len(), weights, trained.kills),
    ] {
        file::write(&folder.join(format!("{}.json", results.name)), &serde_json::to_vec_pretty(&results)?)?;
    }
    Ok(())
}
