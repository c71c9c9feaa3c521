//! The types in which a family is asked to make and train models.

use crate::config::run::RunConfig;
use crate::protocol::{Agent, World};
use candle_core::Device;
use std::path::Path;

/// A new agent, and whether it has been pretrained on P_ω already.
pub struct NewAgent<W: World> {
    /// The agent.
    pub agent: Box<dyn Agent<W>>,
    /// True when its weights came from a pretrained policy.
    pub pretrained: bool,
}

/// Called with what is going on and the share done.
pub type Progress<'a> = dyn Fn(&str, f64) + 'a;

/// Called with the number of parts of a world that are loaded, and with that of all.
pub type Loaded<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// How to train a simulated teacher.
pub struct TeacherTraining<'a> {
    /// World and sizes.
    pub config: &'a RunConfig,
    /// Updates of the executor (paper, REGEX: 30,000).
    pub executor_updates: u64,
    /// Updates of the describer (paper, REGEX: 40,000).
    pub describer_updates: u64,
    /// Batch size (paper, REGEX: 256).
    pub batch: usize,
    /// Updates between two evaluations.
    pub evaluate_every: u64,
    /// The file to write the models to.
    pub output: &'a Path,
    /// Whether to store float16.
    pub half: bool,
    /// Stop at the first update after so many seconds; 0: never. What is best by then is kept.
    pub seconds: f64,
    /// Device.
    pub device: &'a Device,
    /// Progress.
    pub progress: &'a Progress<'a>,
}

/// The abilities of a trained teacher, on the validation split.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TeacherReport {
    /// Share of validation words whose output the executor writes exactly.
    pub executor_success: f64,
    /// Share of validation items for which the greedy description qualifies.
    pub greedy_qualifies: f64,
    /// Share of validation items for which some candidate qualifies.
    pub some_qualifies: f64,
    /// Items the shares are over.
    pub n: usize,
    /// Seconds it took.
    pub seconds: f64,
}
