//! `iliad evaluate` measures the success of a checkpoint.

use super::{device, family_of, progress};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::output::{json, out};
use crate::protocol::{GroupSuccess, Split};
use crate::registry::{AgentFile, Registry, UnknownActing, UnknownGrouping};
use indicatif::ProgressBar;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad evaluate iliad-data/runs/a/best.safetensors                 success on the test split, with its interval
  iliad evaluate best.safetensors --split validation --limit 500    on 500 validation tasks, spread evenly
  iliad evaluate best.safetensors --by operation                    which kinds of edits it can make
  iliad evaluate best.safetensors --set model.votes=16              where most of 16 more readings agree
  iliad evaluate best.safetensors --json                            all figures as one line of JSON";

/// Flags of `iliad evaluate`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Checkpoint file
    #[arg(value_name = "CHECKPOINT")]
    pub checkpoint: PathBuf,
    /// Tasks to evaluate on: train, validation or test
    #[arg(long, value_name = "SPLIT", default_value = "test", value_parser = ["train", "validation", "test"])]
    pub split: String,
    /// Evaluate on this many tasks of the split at most; 0: on all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::command_line::numbers::count)]
    pub limit: usize,
    /// Success by kind of task, too: by operation or place (REGEX), by moves or distance (NAV)
    #[arg(long, value_name = "GROUPING")]
    pub by: Option<String>,
    /// Another way of acting than the run's, such as model.votes=16
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the result as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad evaluate`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let split = split(&args.split).map_err(CliError::Usage)?;
    let (header, _) = crate::trainer::checkpoint::load(&args.checkpoint).map_err(|e| CliError::Usage(e.to_string()))?;
    let (family, device) = (family_of(registry, &header.config)?, device(&settings)?);
    let bar = if args.json { ProgressBar::hidden() } else { progress::bar() };
    bar.set_message("loading the agent");
    let told = |done, tasks| progress::show_tasks(&bar, &format!("{} tasks", args.split), done, tasks);
    let agent = AgentFile { checkpoint: &args.checkpoint, set: &args.set };
    let evaluated = match &args.by {
        Some(grouping) => family.evaluate_by(&agent, split, args.limit, &device, grouping, &told),
        None => family.evaluate(&agent, split, args.limit, &device, &told).map(|found| (found, Vec::new())),
    };
    let (found, groups) =
        evaluated.map_err(|error| match error.is::<UnknownGrouping>() || error.is::<UnknownActing>() {
            true => CliError::Usage(error.to_string()),
            false => error.into(),
        })?;
    bar.finish_and_clear();
    if args.json {
        let mut figures = serde_json::to_value(&found)?;
        figures["split"] = serde_json::to_value(split)?;
        figures["update"] = header.counters.update.into();
        figures["episodes"] = header.counters.episodes.into();
        if !args.set.is_empty() {
            figures["set"] = args.set.clone().into();
        }
        if let Some(grouping) = &args.by {
            figures["by"] = grouping.as_str().into();
            figures["groups"] = serde_json::to_value(&groups)?;
        }
        out!("{}", json::line(&figures)?)?;
    } else {
        let percent = |r: &crate::protocol::Rate| {
            format!("{:.1}% ({:.1} to {:.1}, n = {})", 100.0 * r.value, 100.0 * r.low, 100.0 * r.high, r.n)
        };
        out!("after update {}, {} episodes", header.counters.update, header.counters.episodes)?;
        out!("success     {}", percent(&found.success))?;
        out!("valid       {}", percent(&found.valid))?;
        for (name, value) in &found.figures {
            out!("{name:<11} {value:.3}")?;
        }
        if let Some(grouping) = &args.by {
            out!("success by {grouping}")?;
            let width = groups.iter().map(|g| g.group.chars().count()).max().unwrap_or(0);
            for GroupSuccess { group, success } in &groups {
                out!("  {group:<width$}  {}", percent(success))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// A split by name.
pub(super) fn split(text: &str) -> Result<Split, String> {
    match text {
        "train" => Ok(Split::Train),
        "validation" => Ok(Split::Validation),
        "test" => Ok(Split::Test),
        _ => Err("use train, validation or test".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_read_by_their_stored_names() {
        for split_name in ["train", "validation", "test"] {
            let json = serde_json::to_value(split(split_name).unwrap()).unwrap();
            assert_eq!(json, split_name);
        }
        assert!(split("dev").is_err());
    }
}
