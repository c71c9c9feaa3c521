//! The command line: one binary, `iliad`. Plain `iliad` is `iliad serve`.
//!
//! Each command lives in its own file under `cli/`: its flags with their help, and what it does, in terms of the same
//! library that the server uses. Results go to the standard output, everything else to the standard error stream.

mod accounts;
mod backup;
mod data;
mod dev;
mod doctor;
#[cfg(test)]
mod documented;
mod evaluate;
mod export;
mod family_commands;
mod import;
mod interrupt;
mod model;
mod presets;
mod pretrain;
mod progress;
mod ready;
mod report;
mod reproduce;
mod restore;
mod run_settings;
mod serve;
mod settings;
mod study;
mod teacher;
mod token;
mod train;

use crate::command_line::{CliError, CliResult, Exit};
use crate::family::commands::ParsedCommand;
use crate::output::{OutputError, note};
use crate::registry::Registry;
use crate::suggest::did_you_mean;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: &str = "People teach an agent by describing what it just did.";

const LONG_ABOUT: &str = "\
People teach an agent by describing what it just did.

Without a command, iliad serves: it starts (or resumes) a run and prints the address of its pages. The other commands \
train and evaluate without a server, remake the paper's tables, bring data in and out, and check the installation.";

const AFTER: &str = "\
Examples:
  iliad                                      serve on http://127.0.0.1:8642
  iliad --port 0 --data-dir /srv/iliad       serve on any free port, keep everything there
  iliad train --preset tiny --seed 1 --json  train without a server, result as JSON
  iliad export --format csv -o all.csv       the collected descriptions
  iliad doctor                               what is in order here, and what to do about the rest

Settings come from flags, then environment variables (ILIAD_PORT, …), then a TOML file (--config FILE, ILIAD_CONFIG, \
or ./iliad.toml), then defaults. `iliad --print-config` shows each with its source; docs/configuration.md explains them.

Exit codes:
  0  done
  1  failed
  2  used wrongly, or part of the input was bad
  3  stopped early in an orderly way (Ctrl+C); what was reached is saved

Results go to the standard output, everything else to the standard error stream. When nobody reads the output any more \
(`| head`), a command ends quietly with the code it would have had; output that cannot be written for another reason, \
such as a full disk, is code 1 and a sentence. A file named with -o appears whole or stays as it was.";

#[derive(Parser, Debug)]
#[command(
    name = "iliad",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = AFTER,
    args_conflicts_with_subcommands = true,
    max_term_width = 110
)]
struct Cli {
    #[command(flatten)]
    serve: serve::Args,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Serve the web application (also what plain `iliad` does)
    Serve(serve::Args),
    /// Train an agent without a server
    Train(train::Args),
    /// Evaluate a checkpoint
    Evaluate(evaluate::Args),
    /// The simulated teacher
    Teacher(teacher::Args),
    /// List presets, and the settings of one
    Presets(presets::Args),
    /// Pretrain a policy on executions without requests
    Pretrain(pretrain::Args),
    /// Make models of weights that another program wrote
    Model(model::Args),
    /// Remake the paper's tables and figures
    Reproduce(reproduce::Args),
    /// Write results and runs as one HTML file
    Report(report::Args),
    /// Write the collected descriptions as JSON lines, CSV, Parquet, or a folder for Hugging Face's datasets
    Export(export::Args),
    /// Bring descriptions in that an export wrote, or that come from elsewhere
    Import(import::Args),
    /// Back up the data folder, of a running server, too
    Backup(backup::Args),
    /// Make a data folder from a backup
    Restore(restore::Args),
    /// List people who may sign in, invite them, and let them in again
    Accounts(accounts::Args),
    /// Make tokens for programs, list them, and revoke them
    Token(token::Args),
    /// List studies, print them, make them from files, open and close them, rehearse them
    Study(study::Args),
    /// Check the installation
    Doctor(doctor::Args),
    /// Ask the server that runs here whether it can do its work
    Ready(ready::Args),
    /// Tools for people who work on Iliad itself: benchmarks, fixtures, the paper's analysis
    Dev(dev::Args),
    /// The earlier name of `iliad dev bench`
    #[command(hide = true)]
    Bench(dev::bench::Args),
    /// The earlier name of `iliad dev theory`
    #[command(hide = true)]
    Theory(dev::theory::Args),
}

/// Runs the program. The whole of `main`.
pub fn main() -> ExitCode {
    main_with(Registry::builtin())
}

/// Runs the program with the families of a registry. A program with a family of its own starts here.
pub fn main_with(registry: Registry) -> ExitCode {
    run(std::env::args_os(), registry).into()
}

/// Carries out the command of the arguments, the first of which is the program's name. The registry's families bring commands of
/// their own.
pub fn run<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>, registry: Registry) -> Exit {
    let request = match parse(arguments, registry) {
        Ok(request) => request,
        // Help and version are printed to the standard output with code 0, errors to the other with code 2.
        Err(error) => return shown(&error),
    };
    let result = match request {
        Request::Program(cli) => dispatch(*cli, registry),
        Request::Family(command) => command(),
    };
    match result {
        Ok(exit) => exit,
        // Whoever read the output has seen enough (`| head`).
        Err(CliError::Failed(error)) if error.downcast_ref::<OutputError>().is_some_and(OutputError::is_closed) => {
            Exit::Done
        }
        Err(error) => {
            note!("iliad: {error}");
            match error {
                CliError::Usage(_) => Exit::Usage,
                CliError::Failed(_) => Exit::Failed,
            }
        }
    }
}

/// A command that was asked for.
enum Request {
    /// A command of the program.
    Program(Box<Cli>),
    /// A command that families brought.
    Family(ParsedCommand),
}

/// The arguments as a command.
fn parse<T: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = T>,
    registry: Registry,
) -> Result<Request, clap::Error> {
    let mut command = command(registry);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let parsed = match family_commands::parse(&matches, registry) {
        Some(parsed) => parsed.map(Request::Family),
        None => Cli::from_arg_matches(&matches).map(|cli| Request::Program(Box::new(cli))),
    };
    parsed.map_err(|error| error.format(&mut command))
}

/// All commands with the families of a registry. A number below zero counts as the value of the flag before it, so that the flag
/// can say what it takes.
fn command(registry: Registry) -> clap::Command {
    let with_families = |command: clap::Command| match command.get_name() {
        "presets" => presets::with_families(command, registry),
        "reproduce" => reproduce::with_families(command, registry),
        _ => command,
    };
    let program = Cli::command().mut_subcommands(with_families);
    known_presets(negative_numbers(family_commands::assemble(program, registry)), registry)
}

fn negative_numbers(command: clap::Command) -> clap::Command {
    command.allow_negative_numbers(true).mut_subcommands(negative_numbers)
}

/// Replaces default presets that the registry does not have with its first one.
fn known_presets(command: clap::Command, registry: Registry) -> clap::Command {
    let first = registry.families().first().and_then(|family| family.presets().first().map(|preset| preset.name));
    let known = |argument: clap::Arg| match (argument.get_default_values(), first) {
        ([name], Some(first)) if argument.get_id() == "preset" && registry.preset(&name.to_string_lossy()).is_err() => {
            argument.default_value(first)
        }
        _ => argument,
    };
    command.mut_args(known).mut_subcommands(|command| known_presets(command, registry))
}

/// Shows help, the version, or what is wrong with the arguments.
fn shown(error: &clap::Error) -> Exit {
    let printed = error.print().and_then(|()| crate::output::flush());
    match printed {
        _ if error.use_stderr() => Exit::Usage,
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            note!("iliad: {}", OutputError::stdout(e));
            Exit::Failed
        }
        _ => Exit::Done,
    }
}

fn dispatch(cli: Cli, registry: Registry) -> CliResult {
    match cli.command {
        None => serve::run(&cli.serve, registry),
        Some(Command::Serve(args)) => serve::run(&args, registry),
        Some(Command::Train(args)) => train::run(&args, registry),
        Some(Command::Evaluate(args)) => evaluate::run(&args, registry),
        Some(Command::Teacher(args)) => teacher::run(&args, registry),
        Some(Command::Presets(args)) => presets::run(&args, registry),
        Some(Command::Pretrain(args)) => pretrain::run(&args, registry),
        Some(Command::Reproduce(args)) => reproduce::run(&args, registry),
        Some(Command::Report(args)) => report::run(&args, registry),
        Some(Command::Export(args)) => export::run(&args, registry),
        Some(Command::Import(args)) => import::run(&args, registry),
        Some(Command::Backup(args)) => backup::run(&args),
        Some(Command::Restore(args)) => restore::run(&args),
        Some(Command::Accounts(args)) => accounts::run(&args),
        Some(Command::Token(args)) => token::run(&args),
        Some(Command::Study(args)) => study::run(&args, registry),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Ready(args)) => ready::run(&args),
        Some(Command::Dev(args)) => dev::run(&args, registry),
        Some(Command::Bench(args)) => dev::bench::run(&args, registry),
        Some(Command::Theory(args)) => dev::theory::run(&args),
        Some(Command::Model(args)) => model::run(&args, registry),
    }
}

/// The runtime of a command that reads the store or serves.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// The training side of a configuration's family.
fn family_of(
    registry: Registry,
    config: &crate::config::run::RunConfig,
) -> Result<&'static dyn crate::registry::AnyFamily, CliError> {
    registry.family(&config.family).ok_or_else(|| {
        let names: Vec<&str> = registry.families().iter().map(|family| family.name()).collect();
        let meant = did_you_mean(&config.family, names.iter().copied());
        CliError::Usage(format!("there is no task family `{}`{meant}; there are {}", config.family, names.join(", ")))
    })
}

/// Opens the device of the settings.
fn device(settings: &crate::config::server::ServerConfig) -> Result<candle_core::Device, CliError> {
    crate::nn::device::open(&settings.device.to_string()).map_err(|e| CliError::Usage(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        command(Registry::builtin()).debug_assert();
    }

    /// Every command and flag says what it is for; every command that does something gives an example.
    #[test]
    fn help_is_complete() {
        fn check(command: &clap::Command, path: &str) {
            assert!(command.get_about().is_some(), "{path} says what it is for");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path} {} has help", argument.get_id());
            }
            let mut inner = command.get_subcommands().filter(|c| c.get_name() != "help").peekable();
            if inner.peek().is_none() {
                let after = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
                assert!(after.contains("Example"), "{path} gives an example");
                assert!(after.contains(path), "{path}'s example uses it");
            }
            // Earlier names show the help of the command that took their place.
            inner.filter(|c| !c.is_hide_set()).for_each(|c| check(c, &format!("{path} {}", c.get_name())));
        }
        let mut command = command(Registry::builtin());
        command.build();
        check(&command, "iliad");
        let help = command.render_long_help().to_string();
        for code in 0..=3 {
            assert!(help.contains(&format!("\n  {code}  ")), "exit code {code} is documented");
        }
    }

    #[test]
    fn plain_iliad_serves_with_the_same_flags_as_serve() {
        let plain = Cli::try_parse_from(["iliad", "--port", "0"]).unwrap();
        assert!(plain.command.is_none());
        let serve = Cli::try_parse_from(["iliad", "serve", "--port", "0"]).unwrap();
        let Some(Command::Serve(args)) = serve.command else { panic!("{serve:?}") };
        assert_eq!(format!("{args:?}"), format!("{:?}", plain.serve));
        assert!(Cli::try_parse_from(["iliad", "--port", "0", "doctor"]).is_err());
    }
}
