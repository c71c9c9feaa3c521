//! `iliad reproduce --plan`: the runs of a table as jobs of a scheduler, a command each.

use super::Args;
use crate::command_line::{CliResult, Exit};
use crate::experiment::grid::Plan;
use crate::experiment::job_array::{JobArray, Scheduler};
use crate::family::tables::Table;
use crate::output::out;
use std::path::{Path, PathBuf};

/// Writes the runs as jobs of a scheduler.
pub(super) fn write(args: &Args, plan: &Plan, table: &Table, (scheduler, output): (Scheduler, &Path)) -> CliResult {
    let absolute = |path: &Path| std::path::absolute(path).map_err(anyhow::Error::from);
    let text =
        |path: PathBuf| path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("a folder's name is no text"));
    // The table's own folder comes below the one that the flag names.
    let runs = text(absolute(plan.folder.parent().unwrap_or(Path::new(".")))?)?;
    let flag = |name: &str, value: &dyn std::fmt::Display| [format!("--{name}"), value.to_string()];
    let common = |which: [String; 2]| -> Vec<String> {
        let mut words = vec!["reproduce".to_owned(), args.family.clone()];
        words.extend(which);
        words.extend(flag("preset", &plan.preset));
        words.extend(args.overrides.set.iter().flat_map(|set| flag("set", set)));
        words.extend(args.episodes.iter().flat_map(|episodes| flag("episodes", episodes)));
        words.extend(flag("run-dir", &runs));
        words
    };
    let runs_of = args.table.clone().unwrap_or_else(|| "main".into());
    let mut jobs = Vec::new();
    for seed in &args.seeds {
        for row in &table.rows {
            let mut words = common(flag("table", &runs_of));
            words.extend([flag("seeds", seed), flag("row", &row.name), flag("device", &plan.device)].concat());
            if args.seconds > 0.0 {
                words.extend(flag("seconds", &args.seconds));
            }
            words.extend(args.conclude.then(|| "--conclude".to_owned()));
            words.push("--train-only".to_owned());
            jobs.push(words);
        }
    }
    let shown = match (&args.table, &args.figure) {
        (None, Some(figure)) => flag("figure", figure),
        _ => flag("table", &runs_of),
    };
    let mut collect = common(shown);
    let seeds: Vec<String> = args.seeds.iter().map(u64::to_string).collect();
    collect.extend(flag("seeds", &seeds.join(",")));
    if !args.row.is_empty() {
        collect.extend(flag("row", &args.row.join(",")));
    }
    collect.extend(args.name.iter().flat_map(|name| flag("name", name)));
    collect.extend(flag("results", &text(absolute(&args.results)?)?));
    collect.push("--collect".to_owned());
    let name = format!("{}-{runs_of}", args.family);
    let (program, working) = (std::env::current_exe()?, std::env::current_dir()?);
    let (program, working, at_once) = (program.as_path(), working.as_path(), args.jobs as usize);
    let array = JobArray { name: &name, program, working, jobs: &jobs, collect: &collect, at_once };
    let written = array.write(output, scheduler)?;
    out!("{} runs in {}", jobs.len(), written.jobs.display())?;
    out!("  start:    {}", written.start)?;
    out!("  collect:  {}", written.collect)?;
    Ok(Exit::Done)
}
