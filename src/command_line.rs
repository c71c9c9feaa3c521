//! The parts that all commands share, those of the program and those of families: exit codes and errors, flags of settings,
//! numbers in arguments, questions and answers as JSON lines, and how far a command is.

pub mod json_lines;
pub mod numbers;
pub mod progress;
pub mod settings;

use std::process::ExitCode;

/// The exit code of a command. `iliad --help` documents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// Something failed on the way.
    Failed = 1,
    /// The command was used wrongly, or part of its input was bad.
    Usage = 2,
    /// It was stopped before it was through, in an orderly way: what was reached is saved.
    Stopped = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub enum CliError {
    /// The command was used wrongly: the person has to change something.
    Usage(String),
    /// Something failed on the way.
    Failed(anyhow::Error),
}

/// Result of a command.
pub type CliResult = Result<Exit, CliError>;

impl<E: Into<anyhow::Error>> From<E> for CliError {
    fn from(error: E) -> Self {
        CliError::Failed(error.into())
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CliError::Usage(problem) => f.write_str(problem),
            // The causes as well: "cannot read x: no such file".
            CliError::Failed(error) => write!(f, "{error:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_their_causes() {
        let inner = std::io::Error::other("no room");
        let error = CliError::Failed(anyhow::Error::new(inner).context("cannot write x"));
        assert_eq!(error.to_string(), "cannot write x: no room");
    }
}
