//! The parts of executions that data sets have in columns of their own, and the forms in which programs that train agents of the
//! family read examples.

use serde_json::Value;

/// The parts of an execution, as data. What a family does not tell is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionParts {
    /// The start state.
    pub start: Value,
    /// The results: what is compared when two executions are.
    pub outputs: Value,
}

/// A form of the data set from which other programs train at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingForm {
    /// Its name in commands and addresses.
    pub name: &'static str,
    /// One sentence that says what is in it.
    pub about: &'static str,
    /// Whether the file is one JSON list; otherwise it has one object a line.
    pub list: bool,
}

/// A teaching example from a row of the data set: words, and the execution that they ask for.
#[derive(Clone, Copy, Debug)]
pub struct TaughtExample<'a> {
    /// Key of the answer.
    pub key: i64,
    /// The words.
    pub words: &'a str,
    /// The view of the agent's execution.
    pub view: &'a Value,
    /// The agent's execution in one line.
    pub execution: &'a str,
    /// The demonstration, where the words are a request that a person has shown how to do.
    pub demonstration: Option<&'a Value>,
}
