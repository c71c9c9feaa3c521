//! The commands of LINE, which stand under `line` in the program's help.

use crate::world::LineWorld;
use iliad::command_line::{CliResult, Exit};
use iliad::family::commands::Commands;
use iliad::output::{file, json};
use iliad::protocol::{Split, World};
use std::path::PathBuf;

/// The commands, with a line of help for each.
#[derive(clap::Subcommand, Debug)]
pub enum LineCommands {
    /// Write all tasks with their gold walks as JSON lines
    Tasks(TasksArgs),
}

/// Flags of `line tasks`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  cargo run --example line -- line tasks -o tasks.jsonl")]
pub struct TasksArgs {
    /// File to write the tasks to; it appears when it is whole
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

impl Commands for LineCommands {
    fn run(&self) -> CliResult {
        let LineCommands::Tasks(args) = self;
        let mut lines = String::new();
        for split in [Split::Train, Split::Validation, Split::Test] {
            for index in 0..LineWorld.len(split) {
                lines += &json::line(&(LineWorld.task(split, index), LineWorld.gold(split, index)))?;
                lines.push('\n');
            }
        }
        file::write(&args.output, lines.as_bytes())?;
        Ok(Exit::Done)
    }
}
