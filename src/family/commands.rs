//! The commands that a family brings to the command line.
//!
//! A family writes its commands as an enum of clap's with a way to carry them out ([`Commands`]) and hands it over without its
//! type ([`CommandSet`]). The command line puts the sets of all families into its help and parses them like its own commands.

use crate::command_line::CliResult;
use clap::{ArgMatches, Command, Subcommand};
use std::path::Path;

/// Commands with typed flags: an enum with a variant for each.
pub trait Commands: Subcommand + 'static {
    /// Carries out the command that was given.
    fn run(&self) -> CliResult;
}

/// A command whose flags were parsed, ready to be carried out.
pub type ParsedCommand = Box<dyn FnOnce() -> CliResult>;

/// [`Commands`] without their type.
#[derive(Clone, Copy, Debug)]
pub struct CommandSet {
    add_to: fn(Command) -> Command,
    has: fn(&str) -> bool,
    parse: fn(&ArgMatches) -> Result<ParsedCommand, clap::Error>,
}

impl CommandSet {
    /// The commands of an enum.
    pub fn of<C: Commands>() -> Self {
        Self {
            add_to: C::augment_subcommands,
            has: C::has_subcommand,
            parse: |matches| {
                C::from_arg_matches(matches).map(|command| Box::new(move || command.run()) as ParsedCommand)
            },
        }
    }

    /// A group with these commands in it.
    pub fn add_to(&self, group: Command) -> Command {
        (self.add_to)(group)
    }

    /// Whether one of them has this name.
    pub fn has(&self, name: &str) -> bool {
        (self.has)(name)
    }

    /// The command that was given, from the arguments of the group.
    ///
    /// # Errors
    /// When the arguments are of none of these commands.
    pub fn parse(&self, group: &ArgMatches) -> Result<ParsedCommand, clap::Error> {
        (self.parse)(group)
    }
}

/// The group `iliad FAMILY` of commands that concern one family alone.
#[derive(Clone, Copy, Debug)]
pub struct OwnCommands {
    /// The group's line of help.
    pub about: &'static str,
    /// The commands in it.
    pub commands: CommandSet,
}

/// The way in which `iliad data describe` describes the data of a family.
#[derive(Clone, Copy, Debug)]
pub struct DataDescription {
    /// The things that a corpus of the family holds, in one word: "walks".
    pub corpus_of: &'static str,
    /// The built-in world in a few words, for the command's help.
    pub built_in: &'static str,
    /// The folder of a corpus in the examples of the command's help.
    pub example: &'static str,
    /// The figures that are told of such a corpus, for the command's help.
    pub figures: &'static str,
    /// Whether a folder is laid out as a corpus of the family.
    pub recognises: fn(&Path) -> bool,
    /// Puts the figures of a corpus, or of the built-in world, on the standard output: in words, or as one line of JSON.
    pub describe: fn(Option<&Path>, bool) -> CliResult,
}

/// All commands of a family. By default there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct FamilyCommands {
    /// Commands of the group `iliad data`, which bring the family's data in.
    pub data: Option<CommandSet>,
    /// How `iliad data describe` describes the family's data.
    pub data_description: Option<DataDescription>,
    /// Commands of the group `iliad execute`, which execute what the family's agent writes.
    pub execute: Option<CommandSet>,
    /// The group that has the family's name.
    pub own: Option<OwnCommands>,
}
