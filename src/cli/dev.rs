//! `iliad dev`: tools for people who work on the program itself.

pub(super) mod bench;
pub(super) mod fixture;
pub(super) mod kills;
pub(super) mod theory;

use crate::command_line::CliResult;
use crate::registry::Registry;

/// Flags of `iliad dev`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Measure updates and iterations, compare a GPU with the CPU, fill BENCHMARKS.md
    Bench(bench::Args),
    /// Compare this build's models with a numeric fixture: logits, loss and every gradient
    Fixture(fixture::Args),
    /// Kill servers that people teach, and trainings, again and again, and audit what is left
    Kills(kills::Args),
    /// Compute the paper's analysis on small worlds: bounds, convergence, inconsistent teachers
    Theory(theory::Args),
}

/// Carries out `iliad dev …`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    match &args.command {
        Command::Bench(args) => bench::run(args, registry),
        Command::Fixture(args) => fixture::run(args, registry),
        Command::Kills(args) => kills::run(args),
        Command::Theory(args) => theory::run(args),
    }
}
