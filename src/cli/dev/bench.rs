//! `iliad dev bench`: how long things take, and the file that tells.

use crate::cli::run_settings::{Overrides, configure};
use crate::cli::{device, family_of};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit, numbers};
use crate::experiment::bench::{self, iterations};
use crate::experiment::results::Results;
use crate::family::benchmark::{Benchmark, Effort, Timing};
use crate::nn::device::{LaunchOptions, with_options};
use crate::output::{file, json, out};
use crate::registry::Registry;
use std::path::{Path, PathBuf};

const AFTER: &str = "\
Examples:
  iliad dev bench --set task.path=corpus                                  the teacher's updates at the paper's sizes
  iliad dev bench --set task.path=corpus --set teacher.models=t.safetensors --only iteration   an iteration of ADEL
  iliad dev bench --set task.path=corpus --only updates --results benches/results   kept in files
  iliad dev bench --preset nav/small --only start --samples 5             processor time until a run is ready
  iliad dev bench --render                                                BENCHMARKS.md from those files";

/// Flags of `iliad dev bench`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct Args {
    /// Named configuration whose sizes are timed
    #[arg(long, value_name = "NAME", default_value = "paper")]
    pub preset: String,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Tasks to carry out, several with commas: time updates, iteration; start: the processor time until a run is ready, each in a
    /// process of its own; agreement: how far the device's results are from the
    /// CPU's; and in builds for GPUs, recurrence: LSTM layers alone; profile: every kernel of an update with its time;
    /// programs: how far operations launched together are from the same ones launched singly
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "updates,iteration")]
    pub only: Vec<String>,
    /// Samples of each figure
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = numbers::count)]
    pub samples: usize,
    /// Updates of a sample
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = numbers::count)]
    pub each: usize,
    /// Updates before the first sample
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = numbers::count)]
    pub warm: usize,
    /// Examples of an update of the teacher (default: 256, NAV 32)
    #[arg(long, value_name = "N", value_parser = numbers::batch)]
    pub batch: Option<usize>,
    /// Products in full float32 on a GPU instead of TF32
    #[arg(long)]
    pub full_precision: bool,
    /// Carry out every operation by itself instead of replaying what was recorded
    #[arg(long)]
    pub no_recording: bool,
    /// Carry out recurrences step by step instead of in one launch, and leave products of few rows to cuBLAS
    #[arg(long)]
    pub by_step: bool,
    /// Launch every operation of a transformer's steps by itself
    #[arg(long)]
    pub single: bool,
    /// Print the processor time of one start in this process, and nothing else
    #[arg(long, hide = true)]
    pub one_start: bool,
    /// Folder to keep the figures in, as NAME-gpu.json or NAME-cpu.json
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Time nothing; fill the marked blocks of BENCHMARKS.md from the results (default: benches/results)
    #[arg(long)]
    pub render: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad dev bench`.
pub(in crate::cli) fn run(args: &Args, registry: Registry) -> CliResult {
    if args.render {
        return rendered(args.results.as_deref().unwrap_or(Path::new("benches/results")));
    }
    let settings = args.common.load()?;
    let config = configure(registry, &args.preset, 1, &args.overrides.set)?;
    let family = family_of(registry, &config)?;
    let device = device(&settings)?;
    let options = LaunchOptions {
        tf32: !args.full_precision,
        graphs: !args.no_recording,
        whole_recurrences: !args.by_step,
        small_gemm: !args.by_step,
        programs: !args.single,
    };
    let device = with_options(&device, options)?;
    if args.one_start {
        let folder = tempfile::tempdir()?;
        out!("{}", bench::start(family, &config, folder.path(), &device)?)?;
        return Ok(Exit::Done);
    }
    let effort = Effort { samples: args.samples, each: args.each.max(1), warm: args.warm };
    let mut timings = Vec::new();
    for what in &args.only {
        match what.as_str() {
            "updates" => {
                let request = Benchmark { config: &config, device: &device, batch: args.batch, effort };
                timings.extend(family.teacher_updates(&request)?);
            }
            "agreement" => {
                // Few units: each tile of rows has its blocks; many: blocks take several tiles.
                for (hidden, steps) in [(64, 8), (512, 4)] {
                    for family in registry.families() {
                        for apart in family.device_agreement(&device, hidden, steps)? {
                            out!("{hidden} hidden units: {}", json::line(&apart)?)?;
                        }
                    }
                }
            }
            "programs" => {
                for hidden in [64, 256, 512] {
                    for family in registry.families() {
                        for apart in family.program_agreement(&device, hidden, 8)? {
                            out!("{hidden} hidden units: {}", json::line(&apart)?)?;
                        }
                    }
                }
            }
            "recurrence" => {
                for timing in crate::experiment::bench::recurrences(&device, 512, 32, effort)? {
                    out!("{}: {:.3} ms ({:.3} to {:.3})", timing.name, timing.median(), timing.min(), timing.max())?;
                }
            }
            "profile" => {
                let device = with_options(&device, LaunchOptions { graphs: false, ..options })?;
                let request = Benchmark { config: &config, device: &device, batch: args.batch, effort };
                for (name, lines) in family.profile(&request)? {
                    let total: f64 = lines.values().map(|l| l.milliseconds).sum();
                    let (launches, flops) = lines.values().fold((0, 0.0), |(n, f), l| (n + l.launches, f + l.flops));
                    out!("{name}: {total:.2} ms in {launches} launches, {:.0} GFLOP of products", flops / 1e9)?;
                    let mut sorted: Vec<_> = lines.into_iter().collect();
                    sorted.sort_by(|a, b| b.1.milliseconds.total_cmp(&a.1.milliseconds));
                    for (what, l) in sorted {
                        let rate = l.flops / l.milliseconds / 1e9;
                        out!("  {:8.3} ms {:5} x {what} ({rate:.0} TFLOP/s)", l.milliseconds, l.launches)?;
                    }
                }
            }
            "iteration" => {
                let folder = std::env::temp_dir().join(format!("iliad-bench-{}", std::process::id()));
                let name = format!("{}-adel-iteration", config.family);
                let found = iterations(&name, family, &config, &folder, &device, effort);
                let _ = std::fs::remove_dir_all(&folder);
                timings.push(found?);
            }
            "start" => timings.push(starts(args, &device)?),
            other => {
                let meant = crate::suggest::did_you_mean(other, ["updates", "iteration", "start", "agreement"]);
                return Err(CliError::Usage(format!(
                    "`{other}` is not timed{meant}; there are updates, iteration, start, agreement"
                )));
            }
        }
    }
    for timing in &timings {
        show(timing)?;
        if let Some(folder) = &args.results {
            keep(folder, timing, &device, args)?;
        }
    }
    Ok(Exit::Done)
}

/// Starts runs of the preset, each in a process of its own, so that none finds what another has made.
fn starts(args: &Args, device: &candle_core::Device) -> anyhow::Result<Timing> {
    let mut samples = Vec::new();
    for _ in 0..args.samples {
        let mut process = std::process::Command::new(std::env::current_exe()?);
        process.args(["dev", "bench", "--one-start", "--log-level", "error", "--preset", &args.preset]);
        process.args(["--device", &crate::nn::device::label(device)]);
        for set in &args.overrides.set {
            process.args(["--set", set]);
        }
        let output = process.stderr(std::process::Stdio::inherit()).output()?;
        anyhow::ensure!(output.status.success(), "a run could not be started: {}", output.status);
        samples.push(String::from_utf8_lossy(&output.stdout).trim().parse()?);
    }
    let name: String = args.preset.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    Ok(Timing { name: format!("{name}-start"), samples })
}

/// Keeps a figure in its file.
fn keep(folder: &Path, timing: &Timing, device: &candle_core::Device, args: &Args) -> anyhow::Result<()> {
    let mut command = format!("iliad dev bench --preset {} --only {}", args.preset, args.only.join(","));
    for set in &args.overrides.set {
        // Paths are the machine's.
        let (key, value) = set.split_once('=').unwrap_or((set, ""));
        let value = value.rsplit('/').next().unwrap_or(value);
        command.push_str(&format!(" --set {key}={value}"));
    }
    for (flag, value, default) in [("each", args.each, 8), ("warm", args.warm, 40)] {
        if value != default {
            command.push_str(&format!(" --{flag} {value}"));
        }
    }
    if let Some(batch) = args.batch {
        command.push_str(&format!(" --batch {batch}"));
    }
    let flags = [
        ("full-precision", args.full_precision),
        ("no-recording", args.no_recording),
        ("by-step", args.by_step),
        ("single", args.single),
    ];
    for (flag, on) in flags {
        if on {
            command.push_str(&format!(" --{flag}"));
        }
    }
    let results = Results {
        name: format!("{}-{}", timing.name, if device.is_cpu() { "cpu" } else { "gpu" }),
        value: Some(timing.median()),
        unit: "ms".into(),
        n: timing.samples.len(),
        min: Some(timing.min()),
        max: Some(timing.max()),
        device: crate::nn::device::describe(device),
        date: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
        command,
        program: env!("CARGO_PKG_VERSION").into(),
        complete: true,
        ..Results::default()
    };
    std::fs::create_dir_all(folder)?;
    Ok(file::write(&folder.join(format!("{}.json", results.name)), &serde_json::to_vec_pretty(&results)?)?)
}

/// Fills BENCHMARKS.md from the results.
fn rendered(folder: &Path) -> CliResult {
    let wrong = |error: String| CliError::Usage(error);
    let results = crate::experiment::report::input::read(folder).map_err(|e| wrong(format!("{e:#}")))?;
    let path = Path::new("BENCHMARKS.md");
    let text = std::fs::read_to_string(path).map_err(|e| wrong(format!("{} cannot be read: {e}", path.display())))?;
    let filled = crate::experiment::render::render(&text, &results).map_err(|e| wrong(e.to_string()))?;
    file::write(path, filled.as_bytes())?;
    out!("{} results in {}", results.len(), path.display())?;
    Ok(Exit::Done)
}

fn show(t: &Timing) -> Result<(), crate::output::OutputError> {
    out!("{}: {:.2} ms (median of {}, {:.2} to {:.2})", t.name, t.median(), t.samples.len(), t.min(), t.max())
}
