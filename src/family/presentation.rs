//! The types in which a family shows executions to people.

use serde::{Deserialize, Serialize};

/// For whom an execution is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Large and calm: the execution alone.
    Teacher,
    /// Small, for a table row.
    Researcher,
    /// Of middle size, beside what the person is at: an attempt of the agent that is compared with another.
    Beside,
}

/// The answer of the box in which the agent is tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TryAnswer {
    /// "It would …", in one sentence; empty where the drawing says all.
    pub sentence: String,
    /// The steps of the execution, a sentence each; none where there is only one.
    pub steps: Vec<String>,
}

/// Whether an execution changed anything, as far as its family can tell from the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The family cannot tell.
    Unknown,
    /// Nothing is other than it was.
    Nothing,
    /// Something changed; the sentence says what, for a person who said that nothing did.
    Something(String),
}

/// The first visit's example: one execution with good and poor descriptions of it, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guide {
    /// A view as [`crate::protocol::World::view`] makes it.
    pub view: serde_json::Value,
    /// Good descriptions, each with the reason.
    pub good: Vec<(String, String)>,
    /// Poor descriptions, each with the reason.
    pub poor: Vec<(String, String)>,
}

/// A view that the family's template cannot show (stored by another version, or damaged).
#[derive(Debug, thiserror::Error)]
#[error("this {family} execution cannot be shown: {reason}")]
pub struct RenderError {
    /// Family name.
    pub family: &'static str,
    /// Cause, for the log.
    pub reason: String,
}

/// An example of a run's description log, as the report shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportExample {
    /// The view of the execution.
    pub view: serde_json::Value,
    /// The agent's output as text (REGEX: the expression).
    pub execution: String,
}
