//! `iliad reproduce`: the paper's tables and figures, as grids of ordinary runs.

mod jobs;

use super::interrupt::on_interrupt;
use super::progress;
use super::run_settings::Overrides;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit, numbers};
use crate::experiment::grid::{self, Cell, Gain, Isolation, Jobs, News, Outcome, Plan};
use crate::experiment::job_array::Scheduler;
use crate::experiment::results::SideBySide;
use crate::experiment::{collect, table};
use crate::family::tables::Table;
use crate::output::{file, note, out};
use crate::registry::Registry;
use crate::run::{Event, RunState, remaining};
use crate::suggest::did_you_mean;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const AFTER: &str = "\
Runs lie in --run-dir under TABLE/ROW/seed-N and are ordinary ones. Ctrl+C, or --seconds, lets all of them save and ends \
with code 3; the same command goes on where they stopped and repeats nothing that is complete. The table is printed, and \
written with the curves to --results as FAMILY-TABLE.json. --plan writes the same runs as jobs for Slurm, Ray or a shell, a run \
each, with a script that starts them and one that collects; docs/cluster.md tells more";

/// Flags of `iliad reproduce`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Task family
    #[arg(value_name = "FAMILY")]
    pub family: String,
    /// Table
    #[arg(long, value_name = "NAME", required_unless_present = "figure")]
    pub table: Option<String>,
    /// Figure: learning curves of a table's runs, which it shares
    #[arg(long, value_name = "NAME")]
    pub figure: Option<String>,
    /// Preset that all runs start from [default: the one with the table's name where there is one, else paper]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Seeds
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,3", value_parser = numbers::seed)]
    pub seeds: Vec<u64>,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Only these rows
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub row: Vec<String>,
    /// Episodes of each run [default: the preset's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub episodes: Option<u64>,
    /// Runs at once; auto: on a GPU as many as pay, on a processor one
    #[arg(long, value_name = "N", default_value = "auto")]
    pub jobs: Jobs,
    /// How runs at once are kept apart
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Isolation::Auto)]
    pub isolation: Isolation,
    /// Save everything and end after so many seconds; 0: never
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = numbers::seconds)]
    pub seconds: f64,
    /// With --seconds: runs that time ends report the test success of the best policy so far; they still can go on
    #[arg(long, requires = "seconds")]
    pub conclude: bool,
    /// Folder of the runs [default: `reproduce` in the data folder]
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Folder to write the results to
    #[arg(long, value_name = "DIR", default_value = "benches/results")]
    pub results: PathBuf,
    /// Name of the results' file [default: FAMILY-TABLE]
    #[arg(long, value_name = "NAME", value_parser = file_name, conflicts_with = "figure")]
    pub name: Option<String>,
    /// Train nothing; only tabulate what is there
    #[arg(long)]
    pub collect: bool,
    /// Train, and tabulate nothing: for one of several commands that share a grid
    #[arg(long, conflicts_with = "collect")]
    pub train_only: bool,
    /// Train nothing; write the runs as jobs of a scheduler into the folder of -o
    #[arg(long, value_name = "SCHEDULER", value_enum, requires = "output", conflicts_with_all = ["collect", "train_only"])]
    pub plan: Option<Scheduler>,
    /// With --plan: folder of the jobs and their scripts
    #[arg(short, long, value_name = "FOLDER", requires = "plan")]
    pub output: Option<PathBuf>,
    /// Carry out one run for the command that started this process
    #[arg(long, hide = true, requires = "train_only")]
    pub worker: bool,
    /// With --collect: only what the runs had read after so many episodes, to compare runs of different lengths
    #[arg(long, value_name = "EPISODES", requires = "collect")]
    pub until: Option<u64>,
    /// Tell also when validation success came to so many percent, besides the levels of the family
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=100))]
    pub level: Vec<u8>,
    #[command(flatten)]
    pub common: Common,
}

/// The command with the names of the registry's families, and their examples, in its help.
pub(super) fn with_families(command: clap::Command, registry: Registry) -> clap::Command {
    let names: Vec<&str> = registry.families().iter().map(|family| family.name()).collect();
    let first = names.first().copied().unwrap_or("FAMILY");
    let example = |family: &str, arguments: &str, about: &str| {
        let command = format!("iliad reproduce {family} {arguments}");
        format!("  {command:<61}   {about}\n")
    };
    let mut after = String::from("Examples:\n");
    for family in registry.families() {
        after.extend(family.tables().examples().iter().map(|e| example(family.name(), &e.arguments, &e.about)));
    }
    after += &example(first, "--table main --collect", "only tabulate what is there");
    after += &example(first, "--table main --plan slurm -o jobs", "as an array of jobs for a cluster");
    let tables: BTreeMap<&str, &str> = registry
        .families()
        .iter()
        .flat_map(|family| family.tables().tables())
        .map(|table| (table.name.as_str(), table.title.as_str()))
        .collect();
    let figures: BTreeSet<&str> = registry.families().iter().flat_map(|family| family.tables().figures()).collect();
    let described = |(name, title): (&'static str, &'static str)| PossibleValue::new(name).help(title);
    command
        .mut_arg("table", |argument| {
            argument.value_parser(PossibleValuesParser::new(tables.into_iter().map(described)))
        })
        .mut_arg("figure", |argument| argument.value_parser(PossibleValuesParser::new(figures)))
        .mut_arg("family", |argument| argument.help(format!("Task family: {}", names.join(", "))))
        .after_help(format!("{after}\n{AFTER}, such as {first}-main.json."))
}

/// Carries out `iliad reproduce`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let runs_of = jobs::runs_of(args);
    let no_such_family = || {
        let names: Vec<&str> = registry.families().iter().map(|family| family.name()).collect();
        let meant = did_you_mean(&args.family, names.iter().copied());
        CliError::Usage(format!("there is no task family `{}`{meant}; there are {}", args.family, names.join(", ")))
    };
    let family = registry.family(&args.family).ok_or_else(no_such_family)?;
    let missing = || CliError::Usage("there is no such table".into());
    let mut shown = Vec::new();
    if let Some(name) = &args.table {
        shown.push(family.tables().table(name).cloned().ok_or_else(missing)?);
    }
    if let Some(name) = &args.figure {
        if runs_of != "main" {
            return Err(CliError::Usage("the figure `curves` is about the runs of --table main".into()));
        }
        shown.push(family.tables().figure(name).ok_or_else(missing)?);
    }
    for table in &mut shown {
        restrict(table, &args.row)?;
    }
    let folder = args.run_dir.clone().unwrap_or_else(|| settings.data_dir.join("reproduce"));
    let plan = Plan {
        registry,
        family: args.family.clone(),
        folder: folder.join(&runs_of),
        preset: preset(args, registry),
        seeds: args.seeds.clone(),
        set: args.overrides.set.clone(),
        episodes: args.episodes,
        jobs: args.jobs,
        isolation: args.isolation,
        seconds: args.seconds,
        conclude: args.conclude,
        device: settings.device.to_string(),
    };
    let cells = grid::cells(&shown[0], &plan).map_err(|e| CliError::Usage(e.to_string()))?;
    if !args.collect {
        for cell in &cells {
            let trainer = super::family_of(registry, &cell.config)?;
            trainer.check(&cell.config).map_err(|e| CliError::Usage(format!("{e:#}")))?;
        }
    }
    if let (Some(scheduler), Some(output)) = (args.plan, &args.output) {
        return jobs::write(args, &plan, &shown[0], (scheduler, output));
    }
    let outcome = if args.collect {
        Ok(Outcome { complete: true, gain: None, kept_apart: "" })
    } else {
        let worker = |cell: &Cell| jobs::worker(args, &plan, &shown[0], cell);
        let (stop, listener) = if args.worker { of_worker() } else { (interrupted(), listener(&cells)) };
        grid::carry_out(&cells, &plan, &worker, stop, listener)
    };
    let ended = |outcome: Outcome| if outcome.complete { Exit::Done } else { Exit::Stopped };
    if args.worker {
        // Its listener has told the error.
        return Ok(outcome.map_or(Exit::Failed, ended));
    }
    if let Ok(Outcome { gain: Some(gain), kept_apart, .. }) = &outcome {
        note!("{}", in_words(gain, kept_apart));
    }
    if args.train_only {
        return Ok(ended(outcome?));
    }
    std::fs::create_dir_all(&args.results).map_err(anyhow::Error::from)?;
    for table in &shown {
        let levels: Vec<f64> = args.level.iter().copied().map(f64::from).collect();
        let mut results = collect::collect(family, table, &cells, args.until, &levels, &command(args, registry))?;
        if let Some(name) = &args.name {
            results.name.clone_from(name);
        }
        results.side_by_side = outcome.as_ref().ok().and_then(SideBySide::of);
        let path = args.results.join(format!("{}.json", results.name));
        file::write(&path, &serde_json::to_vec_pretty(&results)?)?;
        out!("{}", table::text(&results))?;
        out!("written to {}", path.display())?;
    }
    Ok(ended(outcome?))
}

/// Says in a sentence how many more episodes the runs made together than one alone.
fn in_words(gain: &Gain, kept_apart: &str) -> String {
    let Gain { runs, alone, together } = gain;
    if *runs == 1 {
        return format!("Runs beside each other did not pay: one alone makes {alone:.0} episodes a second.");
    }
    format!(
        "{runs} runs at once ({kept_apart}) made {together:.0} episodes a second, {:.1} times as many as one alone ({alone:.0})",
        gain.factor()
    )
}

/// A worker stops when its input ends, and tells its news to the command that started it.
fn of_worker() -> (&'static AtomicBool, Arc<grid::Listener>) {
    let stop = interrupted();
    grid::worker::stop_with_input(stop);
    (stop, Arc::new(|_, news| grid::worker::tell(&news)))
}

/// The preset that runs start from.
fn preset(args: &Args, registry: Registry) -> String {
    // Both families have presets of the same names.
    let of_family = |name: &str| if name.contains('/') { name.to_owned() } else { format!("{}/{name}", args.family) };
    let of_table = || args.table.as_deref().map(of_family).filter(|name| registry.preset(name).is_ok());
    args.preset.as_deref().map(of_family).or_else(of_table).unwrap_or_else(|| of_family("paper"))
}

/// A name of a results' file: letters, digits, `-` and `.`, as rows have.
fn file_name(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(fits) {
        true => Ok(name.to_owned()),
        false => Err("a name has letters, digits, `-` and `.`".into()),
    }
}

fn restrict(table: &mut Table, rows: &[String]) -> Result<(), CliError> {
    let names: Vec<&str> = table.rows.iter().map(|r| r.name.as_str()).collect();
    if let Some(wrong) = rows.iter().find(|r| !names.contains(&r.as_str())) {
        let meant = did_you_mean(wrong, names.iter().copied());
        return Err(CliError::Usage(format!("the table has no row `{wrong}`{meant}; it has {}", names.join(", "))));
    }
    if !rows.is_empty() {
        table.rows.retain(|row| rows.contains(&row.name));
    }
    Ok(())
}

/// A flag that the first Ctrl+C sets; the second one ends the program at once.
fn interrupted() -> &'static AtomicBool {
    static STOP: AtomicBool = AtomicBool::new(false);
    let stop = || {
        STOP.store(true, Ordering::Relaxed);
        note!("Saving all runs; once more ends at once.");
    };
    on_interrupt(stop, || {});
    &STOP
}

/// Shows on one bar how many episodes of all are done, and tells when runs begin and end.
fn listener(cells: &[Cell]) -> Arc<grid::Listener> {
    let bar = progress::bar();
    let total: u64 = cells.iter().map(|c| c.config.schedule.episodes).sum();
    let done: Mutex<HashMap<String, u64>> = Mutex::default();
    let count = move |cell: &Cell, episodes: u64| {
        let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
        done.insert(cell.name.clone(), episodes.min(cell.config.schedule.episodes));
        progress::FULL * done.values().sum::<u64>() / total.max(1)
    };
    Arc::new(move |cell, news| {
        let budget = cell.config.schedule.episodes;
        // Beside a bar that nobody sees nothing must be lost.
        let say = |text: String| if bar.is_hidden() { note!("{text}") } else { bar.println(text) };
        match news {
            News::Already => bar.set_position(count(cell, budget)),
            News::Begins => say(format!("{}: begins or goes on", cell.name)),
            News::Event(Event::Status(status)) => match &status.state {
                RunState::Starting { what, seconds_left, .. } => {
                    bar.set_message(format!("{}: {what}{}", cell.name, remaining(*seconds_left)));
                }
                _ => {
                    bar.set_position(count(cell, status.episodes));
                    let best = status.best_validation.map_or(0.0, |r| 100.0 * r.value);
                    let rate = status.episodes_per_second;
                    bar.set_message(format!(
                        "{}: {} episodes, {rate:.0}/s, best {best:.1}%",
                        cell.name, status.episodes
                    ));
                }
            },
            News::Event(Event::Log { message }) => say(format!("{}: {message}", cell.name)),
            News::Event(Event::Evaluating { split, done, of, seconds_left }) => {
                bar.set_message(format!("{}: {}", cell.name, progress::testing(*split, *done, *of, *seconds_left)));
            }
            News::Event(_) => {}
            News::Complete(report) => {
                bar.set_position(count(cell, budget));
                say(format!(
                    "{}: complete, validation {:.1}%, test {:.1}%",
                    cell.name,
                    100.0 * report.validation.value,
                    100.0 * report.test.value
                ));
            }
            News::Stopped => say(format!("{}: saved", cell.name)),
            News::Failed(error) => say(format!("{}: failed: {error:#}", cell.name)),
        }
    })
}

/// The command that makes the results again. Folders are this machine's business: of paths only the file name stays.
fn command(args: &Args, registry: Registry) -> String {
    let mut words = vec![format!("iliad reproduce {}", args.family)];
    words.extend(args.table.as_ref().map(|t| format!("--table {t}")));
    words.extend(args.figure.as_ref().map(|f| format!("--figure {f}")));
    words.push(format!("--preset {}", preset(args, registry)));
    let seeds: Vec<String> = args.seeds.iter().map(u64::to_string).collect();
    words.push(format!("--seeds {}", seeds.join(",")));
    for set in &args.overrides.set {
        let (key, value) = set.split_once('=').unwrap_or((set, ""));
        // A value with a slash that is no JSON is a path.
        let json = serde_json::from_str::<serde_json::Value>(value).is_ok();
        let value = if json { value } else { value.rsplit(['/', '\\']).next().unwrap_or(value) };
        words.push(format!("--set '{key}={value}'"));
    }
    if !args.row.is_empty() {
        words.push(format!("--row {}", args.row.join(",")));
    }
    words.extend(args.episodes.map(|n| format!("--episodes {n}")));
    words.extend(args.name.as_ref().map(|name| format!("--name {name}")));
    words.extend(args.until.map(|n| format!("--collect --until {n}")));
    if !args.level.is_empty() {
        words.push(format!("--level {}", args.level.iter().map(u8::to_string).collect::<Vec<_>>().join(",")));
    }
    if args.conclude {
        words.push(format!("--seconds {} --conclude", args.seconds));
    }
    words.join(" ")
}
