//! `iliad train`: a run without a server.

use super::settings::Common;
use super::{CliError, CliResult, Exit, bar, configure, device, family_of};
use crate::app::Interrupts;
use crate::config::run::TeacherMode;
use crate::output::{json, note, out};
use crate::registry::Registry;
use crate::run::{Event, RunState};
use crate::trainer::{Launch, checkpoint};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad train --preset tiny --seed 1                     two minutes on two cores; shows that it learns
  iliad train --preset tiny --seed 1 --json              the last line holds the result for machines
  iliad train --set algorithm.name=dagger                another algorithm; docs/models.md lists them
  iliad train --set algorithm.replay=2 --set pool.size=8 settings of the preset changed
  iliad train --run-dir runs/a --resume                  go on where runs/a stopped

With --json the last line of the output is one object with the final validation and test success, episodes, \
descriptions and seconds. Ctrl+C writes a checkpoint and ends with code 3; --resume goes on from it.";

/// Flags of `iliad train`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Named configuration to start from
    #[arg(long, value_name = "NAME", default_value = "tiny")]
    pub preset: String,
    /// Seed of every random stream of the run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = super::numbers::seed)]
    pub seed: u64,
    /// Change a setting of the preset; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<String>,
    /// Folder of the run: checkpoints, record, curve [default: a new folder in the data folder's `runs`]
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Go on from the last checkpoint in --run-dir; preset, seed and settings are the checkpoint's
    #[arg(long, requires = "run_dir", conflicts_with_all = ["preset", "seed", "set"])]
    pub resume: bool,
    /// Write the result as one line of JSON, and no progress bar
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad train`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let config = if args.resume {
        let folder = args.run_dir.as_deref().unwrap_or(std::path::Path::new("."));
        let (found, _) = checkpoint::newest(folder)?;
        let Some((header, _)) = found else {
            return Err(CliError::Usage(format!("{} has no checkpoint to go on from", folder.display())));
        };
        header.config
    } else {
        configure(registry, &args.preset, args.seed, &simulated(&args.set))?
    };
    let id = crate::app::new_run_id(&config);
    let folder = args.run_dir.clone().unwrap_or_else(|| crate::app::run_folder(&settings.data_dir, &id));
    if !args.resume && !checkpoint::list(&folder).is_empty() {
        return Err(CliError::Usage(format!(
            "{} holds a run already; go on with --resume or choose another folder",
            folder.display()
        )));
    }
    let bar = if args.json { indicatif::ProgressBar::hidden() } else { bar() };
    let (budget, shown) = (config.schedule.episodes, bar.clone());
    let launch = Launch {
        id,
        folder: folder.clone(),
        device: device(&settings)?,
        store: None,
        // People teach through the pages.
        teacher: Some(TeacherMode::Simulated),
        listener: Some(Box::new(move |event| show(&shown, budget, event))),
        config,
    };
    let (handle, thread) = family_of(registry, &launch.config)?.spawn(launch)?;
    let commands = handle.commands.clone();
    // The first Ctrl+C ends the run in an orderly way; the listener lives until the process ends.
    std::thread::spawn(move || {
        if let Ok(runtime) = super::runtime() {
            runtime.block_on(async {
                let Ok(mut interrupts) = Interrupts::listen() else { return };
                interrupts.next().await;
                let _ = commands.send(crate::run::Command::Shutdown);
                interrupts.next().await;
                note!("Ended at once; what came after the last checkpoint is not saved.");
                std::process::exit(Exit::Failed as i32);
            });
        }
    });
    let report = thread.join().map_err(|_| anyhow::anyhow!("the trainer's thread broke"))??;
    bar.finish_and_clear();
    if args.json {
        out!("{}", json::line(&report)?)?;
    } else {
        let percent = |r: &crate::protocol::Rate| format!("{:.1}% (n = {})", 100.0 * r.value, r.n);
        out!(
            "{} episodes, {} {}, {:.0} s",
            report.episodes,
            report.descriptions,
            report.feedback.words(),
            report.seconds
        )?;
        out!("validation success {}, of the policy after update {}", percent(&report.validation), report.best_update)?;
        if report.complete {
            out!("test success       {}", percent(&report.test))?;
        } else {
            out!("It was stopped; go on with --run-dir {} --resume", folder.display())?;
        }
        out!("checkpoints and record in {}", folder.display())?;
    }
    Ok(if report.complete { Exit::Done } else { Exit::Stopped })
}

/// The settings with the simulated teacher before them: people teach through the pages, so a preset for them is
/// trained without them here.
pub(super) fn simulated(set: &[String]) -> Vec<String> {
    let mode = r#"teacher.mode={"mode":"simulated"}"#.to_owned();
    std::iter::once(mode).chain(set.iter().cloned()).collect()
}

/// Shows an event on the bar.
fn show(bar: &indicatif::ProgressBar, budget: u64, event: &Event) {
    match event {
        Event::Status(s) => match &s.state {
            RunState::Starting { what, done } => {
                bar.set_position((1000.0 * done.unwrap_or(0.0)) as u64);
                bar.set_message(what.clone());
            }
            _ => {
                if let Some(position) = (1000 * s.episodes.min(budget)).checked_div(budget) {
                    bar.set_position(position);
                }
                let best =
                    s.best_validation.map_or(String::new(), |r| format!(", best validation {:.1}%", 100.0 * r.value));
                bar.set_message(format!(
                    "{} episodes, {} descriptions, {:.0} episodes/s{best}",
                    s.episodes, s.descriptions_simulated, s.episodes_per_second
                ));
            }
        },
        Event::Log { message } => bar.println(message),
        _ => {}
    }
}

/// A text with a key before `=`, for `--set`; what the key may be is the configuration's business.
pub(super) fn key_and_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("write it as key=value, such as algorithm.replay=2".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_need_a_key() {
        assert!(key_and_value("a.b=c=d").is_ok() && key_and_value("a=").is_ok());
        assert!(key_and_value("a").is_err() && key_and_value("=1").is_err());
    }
}
