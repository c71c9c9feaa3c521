//! Settings that belong to one learning algorithm or another, and the algorithms' names.

use crate::protocol::Medium;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The algorithms by name, as `algorithm.name` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmName {
    /// ADEL in its practical form.
    #[default]
    Adel,
    /// DAgger: imitation learning on the policy's own roll-outs.
    Dagger,
    /// REINFORCE with reward 1 for success and 0 otherwise.
    ReinforceBinary,
    /// REINFORCE with the family's continuous reward.
    ReinforceContinuous,
    /// Maximum likelihood of gold executions given requests.
    Supervised,
    /// The epoch-based variant that the paper analyses.
    EpochAdel,
    /// The paper's first algorithm: executions from the true marginal, described.
    TrueMarginal,
}

impl AlgorithmName {
    /// The kind of teaching that this algorithm learns from.
    pub fn feedback(self) -> Feedback {
        match self {
            Self::Adel | Self::EpochAdel | Self::TrueMarginal => Feedback::Descriptions,
            Self::Dagger => Feedback::Demonstrations,
            Self::ReinforceBinary | Self::ReinforceContinuous => Feedback::Rewards,
            Self::Supervised => Feedback::Requests,
        }
    }

    /// The medium in which people teach it: it learns from what the agent itself did. `None` where they cannot teach it.
    pub fn medium(self) -> Option<Medium> {
        match self {
            Self::Adel | Self::EpochAdel => Some(Medium::Description),
            Self::Dagger => Some(Medium::Demonstration),
            Self::ReinforceBinary | Self::ReinforceContinuous => Some(Medium::Rating),
            Self::Supervised | Self::TrueMarginal => None,
        }
    }

    /// Whether people can teach it.
    pub fn taught_by_people(self) -> bool {
        self.medium().is_some()
    }

    /// The name as it is typed: `epoch-adel`.
    pub fn typed(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// The kind of teaching in an episode, which is also the unit that counters of "descriptions" count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// Descriptions of executions.
    #[default]
    Descriptions,
    /// Demonstrations: the gold execution.
    Demonstrations,
    /// Rewards: a number.
    Rewards,
    /// Requests with their gold executions, known beforehand.
    Requests,
}

impl Feedback {
    /// In words: `descriptions`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Descriptions => "descriptions",
            Self::Demonstrations => "demonstrations",
            Self::Rewards => "rewards",
            Self::Requests => "requests",
        }
    }

    /// One of them in words: `description`.
    pub fn word(self) -> &'static str {
        self.words().trim_end_matches('s')
    }
}

/// Settings of query selection: which executions a teacher is asked to describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuerySelection {
    /// Episodes executed for each that is asked about; 1: all that can be described are asked about.
    #[schemars(extend("unit" = "episodes"))]
    pub candidates: usize,
    /// Further executions of each request, to see whether they differ; 0: doubt plays no part.
    #[schemars(extend("unit" = "executions"))]
    pub samples: usize,
}

impl Default for QuerySelection {
    fn default() -> Self {
        Self { candidates: 1, samples: 0 }
    }
}

impl QuerySelection {
    /// Whether anything is chosen at all.
    pub fn on(&self) -> bool {
        self.candidates > 1
    }
}

/// Settings of practice: what the trainer does while people think (`algorithm.practice`). Practice steps are no updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PracticeSettings {
    /// Steps on stored descriptions after an update from people's answers, at most; 0: no practice (the paper). They end
    /// earlier when the next answers come, or when held-back descriptions are no better understood.
    #[schemars(extend("unit" = "steps"))]
    pub most: u64,
    /// Steps that are made even where the next answers wait already.
    #[schemars(extend("unit" = "steps"))]
    pub least: u64,
    /// Descriptions in a step.
    #[schemars(extend("unit" = "descriptions"))]
    pub batch: usize,
    /// Every step with a multiple of this number is one of π_β; the others are π_θ's. 0: π_β does not practise.
    #[schemars(extend("unit" = "steps"))]
    pub explore_every: u64,
}

impl Default for PracticeSettings {
    fn default() -> Self {
        Self { most: 0, least: 0, batch: 16, explore_every: 4 }
    }
}

impl PracticeSettings {
    /// Whether there is practice at all.
    pub fn on(&self) -> bool {
        self.most > 0
    }
}

/// EpochADEL's own settings (`algorithm.epoch`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EpochSettings {
    /// Iterations M of an epoch.
    #[schemars(extend("unit" = "iterations"))]
    pub iterations: u64,
    /// Passes over an epoch's descriptions at its end.
    #[schemars(extend("unit" = "passes"))]
    pub passes: u64,
    /// Policies of earlier epochs kept to stand for the running average.
    #[schemars(extend("unit" = "policies"))]
    pub snapshots: usize,
}

impl Default for EpochSettings {
    fn default() -> Self {
        Self { iterations: 100, passes: 5, snapshots: 5 }
    }
}

/// REINFORCE's own settings (`algorithm.reinforce`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReinforceSettings {
    /// Adam's learning rate, in place of `algorithm.learning_rate` (paper, REGEX: 1e-4).
    pub learning_rate: f64,
    /// Weight of the entropy bonus (paper: 0.1).
    pub entropy: f64,
}

impl Default for ReinforceSettings {
    fn default() -> Self {
        Self { learning_rate: 1e-4, entropy: 0.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::AlgorithmName;
    use crate::protocol::Medium;

    #[test]
    fn names_are_typed_with_hyphens() {
        assert_eq!(AlgorithmName::ReinforceBinary.typed(), "reinforce-binary");
        assert_eq!(serde_json::from_str::<AlgorithmName>("\"epoch-adel\"").unwrap(), AlgorithmName::EpochAdel);
    }

    #[test]
    fn the_algorithm_decides_the_medium() {
        assert_eq!(AlgorithmName::Adel.medium(), Some(Medium::Description));
        assert_eq!(AlgorithmName::Dagger.medium(), Some(Medium::Demonstration));
        assert_eq!(AlgorithmName::ReinforceContinuous.medium(), Some(Medium::Rating));
        assert!(!AlgorithmName::Supervised.taught_by_people() && !AlgorithmName::TrueMarginal.taught_by_people());
    }
}
