//! Settings of the executions that wait for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pool of executions offered to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// Executions kept ready.
    #[schemars(extend("unit" = "executions"))]
    pub size: usize,
    /// Updates after which an execution nobody is at is replaced by one of the newer policy.
    #[schemars(extend("unit" = "updates"))]
    pub max_age: u64,
    /// People who describe the same execution.
    #[schemars(extend("unit" = "people"))]
    pub overlap: u32,
    /// Episodes executed for each that people are asked about. Those of a kind of task that they have described least are
    /// chosen ([`crate::protocol::World::task_kind`]); 1: no such choice.
    #[schemars(extend("unit" = "episodes"))]
    pub candidates: usize,
    /// Whether teachers see the request d* (the paper's teacher does not).
    pub show_request: bool,
    /// Whether the agent shows what it would do in a teacher's words before they are sent.
    pub preview: Preview,
}

/// To whom previews are shown: what the agent would do if it were asked in the words that are about to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preview {
    /// To nobody.
    #[default]
    Off,
    /// To every teacher.
    On,
    /// To half of the teachers, whom chance chooses.
    Random,
}

impl Preview {
    /// The value as it is stored and exported.
    pub fn as_str(self) -> &'static str {
        match self {
            Preview::Off => "off",
            Preview::On => "on",
            Preview::Random => "random",
        }
    }

    /// The value that is stored as `word`.
    pub fn parse(word: &str) -> Option<Preview> {
        [Preview::Off, Preview::On, Preview::Random].into_iter().find(|preview| preview.as_str() == word)
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { size: 24, max_age: 40, overlap: 1, candidates: 1, show_request: false, preview: Preview::Off }
    }
}
