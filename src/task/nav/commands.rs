//! The commands of NAV.

mod describe;
mod houses;
mod import;

use crate::family::commands::{CommandSet, DataDescription, FamilyCommands, OwnCommands};

/// All of them.
pub(super) fn commands() -> FamilyCommands {
    FamilyCommands {
        data: Some(CommandSet::of::<import::Import>()),
        data_description: Some(DataDescription {
            corpus_of: "walks",
            built_in: "the built-in houses",
            example: "corpora/houses",
            figures: "houses, walks and requests of a corpus",
            recognises: describe::is_corpus,
            describe: describe::describe,
        }),
        execute: None,
        own: Some(OwnCommands {
            about: "Walk through houses: score paths, list moves",
            commands: CommandSet::of::<houses::Houses>(),
        }),
    }
}
