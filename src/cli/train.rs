//! `iliad train`: a run without a server.

use super::settings::Common;
use super::{CliResult, not_connected};
use crate::run::TeacherMode;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad train --preset tiny --seed 1                     two minutes on two cores; shows that it learns
  iliad train --preset tiny --seed 1 --json              the last line holds the result for machines
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
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Change a setting of the preset; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<String>,
    /// Who describes: simulated, human, or mixed:SHARE (the share of episodes offered to people)
    #[arg(long, value_name = "MODE", value_parser = teacher_mode)]
    pub teacher_mode: Option<TeacherMode>,
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

/// SEAM: carries out `iliad train`. A run that was stopped ends with [`super::Exit::Stopped`].
pub(super) fn run(args: &Args) -> CliResult {
    let _settings = args.common.load()?;
    not_connected("train")
}

/// A text with a key before `=`, for `--set`; what the key may be is the configuration's business.
pub(super) fn key_and_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("write it as key=value, such as algorithm.replay=2".into()),
    }
}

/// `simulated`, `human`, `mixed:0.3`.
fn teacher_mode(text: &str) -> Result<TeacherMode, String> {
    match text.split_once(':') {
        None if text == "simulated" => Ok(TeacherMode::Simulated),
        None if text == "human" => Ok(TeacherMode::Human),
        Some(("mixed", share)) => match share.parse() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(TeacherMode::Mixed { share }),
            _ => Err(format!("the share must be a number between 0 and 1, not {share:?}")),
        },
        _ => Err("use simulated, human, or mixed with a share, such as mixed:0.3".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teacher_modes_are_read() {
        assert_eq!(teacher_mode("human"), Ok(TeacherMode::Human));
        assert_eq!(teacher_mode("simulated"), Ok(TeacherMode::Simulated));
        assert_eq!(teacher_mode("mixed:0.25"), Ok(TeacherMode::Mixed { share: 0.25 }));
        for bad in ["mixed", "mixed:2", "mixed:x", "people", "mixed:NaN", ""] {
            assert!(teacher_mode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_need_a_key() {
        assert!(key_and_value("a.b=c=d").is_ok() && key_and_value("a=").is_ok());
        assert!(key_and_value("a").is_err() && key_and_value("=1").is_err());
    }
}
