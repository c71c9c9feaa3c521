//! `iliad train`: a run without a server.

use super::interrupt::on_interrupt;
use super::run_settings::RunSettings;
use super::{device, family_of, progress};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
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
    #[command(flatten)]
    pub run: RunSettings,
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
        args.run.simulated_configuration(registry)?
    };
    let mut id = crate::app::new_run_id(&config);
    let wanted = id.clone();
    // A run of a server, or of another command, may have begun within the same second.
    for n in 2.. {
        if args.run_dir.is_some() || !crate::app::run_folder(&settings.data_dir, &id).exists() {
            break;
        }
        id = format!("{wanted}-{n}").into();
    }
    let folder = args.run_dir.clone().unwrap_or_else(|| crate::app::run_folder(&settings.data_dir, &id));
    if !args.resume && !checkpoint::list(&folder).is_empty() {
        return Err(CliError::Usage(format!(
            "{} holds a run already; go on with --resume or choose another folder",
            folder.display()
        )));
    }
    let bar = if args.json { indicatif::ProgressBar::hidden() } else { progress::bar() };
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
    on_interrupt(
        move || drop(commands.send(crate::run::Command::Shutdown)),
        || note!("Ended at once; what came after the last checkpoint is not saved."),
    );
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

/// Shows an event on the bar.
fn show(bar: &indicatif::ProgressBar, budget: u64, event: &Event) {
    match event {
        Event::Status(s) => match &s.state {
            RunState::Starting { what, done, seconds_left } => progress::loading(bar, what, *done, *seconds_left),
            _ => {
                if let Some(position) = (progress::FULL * s.episodes.min(budget)).checked_div(budget) {
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
        Event::Evaluating { split, done, of, seconds_left } => {
            bar.set_message(progress::testing(*split, *done, *of, *seconds_left));
        }
        Event::Log { message } => bar.println(message),
        _ => {}
    }
}
