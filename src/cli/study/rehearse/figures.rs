//! The figures of a rehearsal as results files, which tables are rendered from: how long requests took, and the gain in each arm.

use super::Args;
use super::outcome::Rehearsal;
use crate::experiment::results::Results;
use crate::output::file;
use crate::study::Interval;
use std::path::Path;

/// The command that rehearses so again, without folders.
fn command(args: &Args) -> String {
    let mut command = format!("iliad study rehearse --teachers {} --preset {}", args.teachers, args.preset);
    if let Some(goal) = args.goal {
        command.push_str(&format!(" --goal {goal}"));
    }
    command + &format!(" --speed {} --drops {} --seed {}", args.speed, args.drops, args.seed)
}

/// The figures: a gain for each minute, with its 95% interval and the responses it rests on, and the 95th percentile of requests
/// between their median and the slowest.
///
/// # Errors
/// When the clock cannot be written as a date.
fn figures(args: &Args, rehearsal: &Rehearsal) -> anyhow::Result<Vec<Results>> {
    let date = time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?;
    let figure = |name: String, unit: &str, value: f64, (min, max): (f64, f64), n: u64| Results {
        name,
        value: Some(value),
        unit: unit.to_owned(),
        n: usize::try_from(n).unwrap_or(usize::MAX),
        min: Some(min),
        max: Some(max),
        device: crate::nn::device::describe(&candle_core::Device::Cpu),
        date: date.clone(),
        command: command(args),
        program: rehearsal.version.to_owned(),
        complete: true,
        ..Results::default()
    };
    let mut all = Vec::new();
    for arm in &rehearsal.arms {
        let outcome = rehearsal.comparison.get(&arm.name);
        if let Some((outcome, Interval { value, low, high })) = outcome.and_then(|o| Some((o, o.gain_per_minute?))) {
            let range = (low * 100.0, high * 100.0);
            let name = format!("rehearsal-{}-gain-per-minute", arm.medium);
            all.push(figure(name, "points", value * 100.0, range, outcome.responses));
        }
    }
    for (what, times) in &rehearsal.milliseconds {
        all.push(figure(format!("rehearsal-{what}-p95"), "ms", times.p95, (times.p50, times.max), times.n as u64));
    }
    Ok(all)
}

/// Writes the figures, a file each.
///
/// # Errors
/// When the folder cannot be made or written.
pub(super) fn keep(folder: &Path, args: &Args, rehearsal: &Rehearsal) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    for results in figures(args, rehearsal)? {
        file::write(&folder.join(format!("{}.json", results.name)), &serde_json::to_vec_pretty(&results)?)?;
    }
    Ok(())
}
