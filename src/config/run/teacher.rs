//! Settings of teachers: who describes, and how the simulated teacher draws what it says.

use serde::{Deserialize, Serialize};

/// Who describes executions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum TeacherMode {
    /// The simulated teacher answers every episode.
    Simulated,
    /// Only people answer; the agent trains when answers come.
    Human,
    /// A fresh execution is offered to people with probability `share` while their pool has room, and goes to the
    /// simulated teacher otherwise, so that training never waits for a person.
    Mixed {
        /// Probability in 0..=1 that an episode is offered to people first.
        share: f64,
    },
}

/// How the description is taken from those that qualify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// Uniformly from the set of qualifying descriptions and the empty one (the paper's formula).
    #[default]
    Set,
    /// Uniformly from the list: a sentence sampled twice counts twice.
    List,
    /// The first qualifying one, the greedy before the samples (the authors' program).
    First,
}

/// Settings of pragmatic inference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pragmatics {
    /// Sampled candidates K beside the greedy one (paper: 10 REGEX, 5 NAV).
    pub samples: usize,
    /// Threshold τ of perf.
    pub tau: f64,
    /// How the description is drawn.
    pub draw: Draw,
    /// Whether the description of an execution that performs as well as the gold one is a human request of the task
    /// (the paper), and not the describer's.
    pub requests: bool,
}

impl Default for Pragmatics {
    fn default() -> Self {
        Self { samples: 10, tau: 0.5, draw: Draw::Set, requests: true }
    }
}
