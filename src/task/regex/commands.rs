//! The commands of REGEX.

mod describe;
mod execute;
mod import;

use super::corpus;
use crate::family::commands::{CommandSet, DataDescription, FamilyCommands};

/// All of them.
pub(super) fn commands() -> FamilyCommands {
    FamilyCommands {
        data: Some(CommandSet::of::<import::Import>()),
        data_description: Some(DataDescription {
            corpus_of: "words",
            built_in: "the built-in word edits",
            example: "corpora/regex",
            figures: "tasks, requests and words of a corpus",
            recognises: |folder| corpus::FILES.iter().all(|name| folder.join(name).is_file()),
            describe: describe::describe,
        }),
        execute: Some(CommandSet::of::<execute::Execute>()),
        own: None,
    }
}
