//! LINE, a task family outside the crate: an agent walks on a line of ten places, and people describe how it walked.
//! The program is Iliad with this family alone: `cargo run --example line` serves it.
//!
//! docs/adding-a-task.md explains the files in order.

mod agent;
mod commands;
mod family;
mod teacher;
mod world;

use family::LineFamily;
use iliad::registry::Registry;
use std::process::ExitCode;

/// The families of this program.
const FAMILIES: Registry = Registry::new(&[&LineFamily]);

fn main() -> ExitCode {
    iliad::cli::main_with(FAMILIES)
}
