//! The commands of single runs of `iliad reproduce`: as jobs of a scheduler (`--plan`), and as workers of one command.

use super::Args;
use crate::command_line::{CliResult, Exit};
use crate::experiment::grid::{Cell, Jobs, Plan};
use crate::experiment::job_array::{JobArray, Scheduler};
use crate::family::tables::Table;
use crate::output::out;
use std::path::Path;
use std::process::Command;

fn absolute(path: &Path) -> anyhow::Result<String> {
    let text = std::path::absolute(path)?.into_os_string().into_string();
    text.map_err(|_| anyhow::anyhow!("a folder's name is no text"))
}

fn flag(name: &str, value: &dyn std::fmt::Display) -> [String; 2] {
    [format!("--{name}"), value.to_string()]
}

/// The beginning of all commands; `which` names the table or figure.
fn common(args: &Args, plan: &Plan, which: [String; 2]) -> anyhow::Result<Vec<String>> {
    // The table's own folder comes below the one that the flag names.
    let runs = absolute(plan.folder.parent().unwrap_or(Path::new(".")))?;
    let mut words = vec!["reproduce".to_owned(), args.family.clone()];
    words.extend(which);
    words.extend(flag("preset", &plan.preset));
    words.extend(args.overrides.set.iter().flat_map(|set| flag("set", set)));
    words.extend(args.episodes.iter().flat_map(|episodes| flag("episodes", episodes)));
    words.extend(flag("run-dir", &runs));
    Ok(words)
}

/// The command of one run.
fn single(args: &Args, plan: &Plan, row: &str, seed: u64) -> anyhow::Result<Vec<String>> {
    let mut words = common(args, plan, flag("table", &runs_of(args)))?;
    words.extend([flag("seeds", &seed), flag("row", &row), flag("device", &plan.device)].concat());
    words.push("--train-only".to_owned());
    Ok(words)
}

/// The table whose runs are carried out: a figure shares those of the main one.
pub(super) fn runs_of(args: &Args) -> String {
    args.table.clone().unwrap_or_else(|| "main".into())
}

/// The process that carries out one run for this command, which ends it.
pub(super) fn worker(args: &Args, plan: &Plan, table: &Table, cell: &Cell) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(single(args, plan, &table.rows[cell.row].name, cell.config.seed)?);
    command.args(["--worker", "--jobs", "1", "--isolation", "threads", "--seconds", "0"]);
    command.args(args.conclude.then_some("--conclude"));
    Ok(command)
}

/// Writes the runs as jobs of a scheduler.
pub(super) fn write(args: &Args, plan: &Plan, table: &Table, (scheduler, output): (Scheduler, &Path)) -> CliResult {
    let mut jobs = Vec::new();
    for &seed in &args.seeds {
        for row in &table.rows {
            let mut words = single(args, plan, &row.name, seed)?;
            if args.seconds > 0.0 {
                words.extend(flag("seconds", &args.seconds));
            }
            words.extend(args.conclude.then(|| "--conclude".to_owned()));
            jobs.push(words);
        }
    }
    let shown = match (&args.table, &args.figure) {
        (None, Some(figure)) => flag("figure", figure),
        _ => flag("table", &runs_of(args)),
    };
    let mut collect = common(args, plan, shown)?;
    let seeds: Vec<String> = args.seeds.iter().map(u64::to_string).collect();
    collect.extend(flag("seeds", &seeds.join(",")));
    if !args.row.is_empty() {
        collect.extend(flag("row", &args.row.join(",")));
    }
    collect.extend(args.name.iter().flat_map(|name| flag("name", name)));
    collect.extend(flag("results", &absolute(&args.results)?));
    collect.push("--collect".to_owned());
    let name = format!("{}-{}", args.family, runs_of(args));
    let (program, working) = (std::env::current_exe()?, std::env::current_dir()?);
    let at_once = match args.jobs {
        Jobs::Fixed(jobs) => jobs,
        Jobs::AsManyAsPay => 1,
    };
    let (program, working) = (program.as_path(), working.as_path());
    let array = JobArray { name: &name, program, working, jobs: &jobs, collect: &collect, at_once };
    let written = array.write(output, scheduler)?;
    out!("{} runs in {}", jobs.len(), written.jobs.display())?;
    out!("  start:    {}", written.start)?;
    out!("  collect:  {}", written.collect)?;
    Ok(Exit::Done)
}
