//! REGEX, the word-modification task: the agent writes a regular expression, people see words before and after.
//!
//! [`program`] executes expressions with the engine in [`python_re`]. [`world`] holds tasks: drawn from the built-in
//! [`grammar`], or loaded from a [`corpus`] (which [`import`] makes of the public L3 files); [`marginal`] is P_ω.
//! [`tokenise`] reads what people type, [`family`], [`marks`] and [`diff`] show executions to them.

pub mod agent;
mod benchmark;
mod commands;
pub mod corpus;
mod corpus_format;
pub mod demonstration;
pub mod device_agreement;
pub mod diff;
pub mod drawing;
pub mod family;
pub mod grammar;
pub mod import;
pub mod letters;
pub mod marginal;
pub mod marks;
pub mod metric;
pub mod model;
mod ngram_prior;
mod operation;
pub mod program;
pub mod python_re;
pub mod reference_fixtures;
pub mod settings;
pub mod setup;
pub mod tables;
pub mod teacher;
pub mod tokenise;
mod try_answer;
mod votes;
pub mod world;

use serde::{Deserialize, Serialize};

/// Word pairs of an episode (J in the paper).
pub const PAIRS: usize = 5;

/// The start of a REGEX episode: the words the expression will be executed on. The agent sees the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// [`PAIRS`] words in lower case.
    pub words: Vec<String>,
}

/// A REGEX execution ê: the expression the agent wrote, and what executing it gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// `pattern@replacement`.
    pub expression: String,
    /// Output for each word of the start, or `None` where the expression is invalid (one invalid output makes all invalid).
    pub outputs: Option<Vec<String>>,
}
