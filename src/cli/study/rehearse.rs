//! `iliad study rehearse`: a whole study with simulated people, over the same pages and addresses as everybody, so that guidelines,
//! checks, codes, load, time and cost are known before a person is paid.

pub(in crate::cli) mod client;
mod figures;
mod outcome;
mod person;
mod plan;
mod server;
mod tally;

use self::client::{Address, Client};
use self::outcome::{ArmOutcome, Rehearsal};
use self::person::{End, Person, Report, Stage};
use self::plan::Plan;
use self::server::Server;
use crate::cli::runtime;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit, numbers};
use crate::config::run::RunConfig;
use crate::ids::{RunId, StudyId};
use crate::output::{file, note, out};
use crate::registry::Registry;
use crate::store::{Participant, Store, Study};
use crate::study::{Comparison, Estimate, Judge, ParticipantState, compare};
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const AFTER: &str = "\
Without --file the study has three arms of the preset: descriptions, demonstrations and ratings of the same tasks. An arm of a \
file names a run, whose settings fresh runs take over, or a preset:

  [[arms]]
  name = \"descriptions\"
  preset = \"regex/small\"
  set = [\"algorithm.name=adel\"]

Simulated people type with slips, leave words out, mistake left for right and take their time, as people.simulated in the \
settings of runs says. Some leave early, reload pages and lose connections (--drops).

Examples:
  iliad study rehearse --teachers 30                           three media of regex/small
  iliad study rehearse --file study.toml --teachers 12         the study of a file
  iliad study rehearse --teachers 9 --goal 5 --speed 100       quicker
  iliad study rehearse --keep folder --out results             keep the data, and the outcome as JSON
  iliad study rehearse --server http://127.0.0.1:8642 --study words --data-dir /srv/staging
                                                               an open study of a server on this machine";

/// Flags of `iliad study rehearse`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct Args {
    /// The study as TOML [default: three media of the preset]
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub file: Option<PathBuf>,
    /// Simulated people
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub teachers: u64,
    /// How much quicker than people they are
    #[arg(long, value_name = "FACTOR", default_value_t = 20.0, value_parser = factor)]
    pub speed: f64,
    /// Share of people who leave early; pages are reloaded and connections lost in half as large a share of the answers
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub drops: f64,
    /// Seed of everything that they do, and of runs without one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::seed)]
    pub seed: u64,
    /// Preset of arms that name none
    #[arg(long, value_name = "NAME", default_value = "regex/small")]
    pub preset: String,
    /// Answers that are asked of each teacher [default: the study's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub goal: Option<u32>,
    /// A server that is there, instead of one for the rehearsal alone; --data-dir names its folder
    #[arg(long, value_name = "URL", requires = "study", value_parser = Address::read)]
    pub server: Option<Address>,
    /// The open study of that server
    #[arg(long, value_name = "STUDY", requires = "server", conflicts_with = "goal")]
    pub study: Option<StudyId>,
    /// Keep the data of the rehearsal's server in this folder, which is made
    #[arg(long, value_name = "FOLDER", conflicts_with = "server")]
    pub keep: Option<PathBuf>,
    /// Write rehearsal.json and comparison.json into this folder
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Keep figures in this folder, a results file each
    #[arg(long, value_name = "FOLDER")]
    pub results: Option<PathBuf>,
    /// Print the outcome as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=1e6).contains(number));
    number.ok_or_else(|| "a number between 0.1 and 1,000,000".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "a share between 0 and 1".to_owned())
}

/// How long runs may take until they have something to show.
const LOADING: Duration = Duration::from_secs(120);

/// How long the agents may take to learn from what was given last, and how long nothing may change before nobody waits any more.
const SETTLING: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(20));

/// Carries out `iliad study rehearse`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let database = settings.database();
    runtime()?.block_on(async {
        match (&args.server, &args.study) {
            (Some(address), Some(study)) => {
                if !database.exists() {
                    return Err(CliError::Usage("name the data folder of that server with --data-dir".to_owned()));
                }
                let token = settings.access_token.as_ref().map(|token| token.reveal().to_owned());
                let rehearsed = async |store: Store| -> anyhow::Result<Outcome> {
                    rehearse(args, registry, store, study, (address.clone(), token)).await
                };
                let found = Store::using(&database, rehearsed).await.map_err(anyhow::Error::from)?;
                told(args, found?)
            }
            _ => {
                let goal = args.goal;
                let plan =
                    plan::plan(registry, args.file.as_deref(), &database, (&args.preset, args.seed), goal).await?;
                let (folder, _temporary) = folder(args.keep.as_deref())?;
                told(args, with_own_server(args, registry, &plan, &folder).await?)
            }
        }
    })
}

/// The folder of the rehearsal's server; a temporary one goes with the second value.
fn folder(keep: Option<&Path>) -> Result<(PathBuf, Option<tempfile::TempDir>), CliError> {
    let Some(folder) = keep else {
        let temporary = tempfile::tempdir().map_err(|error| CliError::Failed(error.into()))?;
        return Ok((temporary.path().to_owned(), Some(temporary)));
    };
    if folder.exists() {
        return Err(CliError::Usage(format!("{} is there already; name a folder that is not", folder.display())));
    }
    std::fs::create_dir_all(folder).map_err(|error| CliError::Usage(format!("{}: {error}", folder.display())))?;
    let whole = folder.canonicalize().map_err(|error| CliError::Failed(error.into()))?;
    Ok((whole, None))
}

/// A rehearsal with its comparison.
type Outcome = (Rehearsal, Comparison);

async fn with_own_server(args: &Args, registry: Registry, plan: &Plan, folder: &Path) -> anyhow::Result<Outcome> {
    let rehearsed = async |store: Store| -> anyhow::Result<Outcome> {
        plan.set_up(&store).await?;
        let server = Server::start(folder).await?;
        let address = server.address.clone();
        let found = rehearse(args, registry, store, &plan.id, (address, None)).await;
        server.end().await;
        found
    };
    let found = Store::using(&folder.join("iliad.sqlite"), rehearsed).await?;
    if args.keep.is_some() {
        note!("Look at it with: iliad serve --data-dir {}", folder.display());
    }
    found
}

/// The configuration of a run, as the store has it.
async fn configuration(store: &Store, run: &RunId) -> anyhow::Result<RunConfig> {
    let mut config = store.run(run).await?.config;
    if let Some(members) = config.as_object_mut() {
        members.remove("differences");
    }
    serde_json::from_value(config).with_context(|| format!("the settings of {run} cannot be read"))
}

/// Has people take part in an open study, and waits for what it comes to.
async fn rehearse(
    args: &Args,
    registry: Registry,
    store: Store,
    id: &StudyId,
    (address, token): (Address, Option<String>),
) -> anyhow::Result<Outcome> {
    let study = store.study(id).await?;
    let (mut people, mut media) = (BTreeMap::new(), BTreeMap::new());
    for arm in &study.arms {
        let config = configuration(&store, &arm.run).await?;
        let family =
            registry.family(&config.family).with_context(|| format!("there is no family {}", config.family))?;
        let simulated = family.people(&config)?;
        media.insert(arm.run.clone(), simulated.medium().word().to_owned());
        people.insert(arm.run.clone(), Mutex::new(simulated));
    }
    let before: Vec<u64> = store.participants(id).await?.iter().map(|who| who.number).collect();
    let stage = Arc::new(Stage {
        study: study.clone(),
        store: store.clone(),
        people,
        speed: args.speed,
        drops: args.drops,
        seed: args.seed,
        tally: tally::Tally::default(),
    });
    ready(&store, &study).await?;
    note!("{} simulated people take part in “{}”.", args.teachers, study.settings.title);
    let begun = Instant::now();
    let judging = tokio::spawn(judge(store.clone(), study.clone(), Client::new(address.clone(), token)));
    let parts: Vec<_> = (0..args.teachers)
        .map(|number| {
            let person = Person::new(number, Client::new(address.clone(), None), stage.clone());
            tokio::spawn(person.take_part())
        })
        .collect();
    let mut reports = Vec::new();
    for part in parts {
        reports.push(part.await?);
    }
    let seconds = begun.elapsed().as_secs_f64();
    judging.abort();
    note!("Everybody is gone; the agents learn from what is left.");
    let comparison = settled(&store, &study).await?;
    let new: Vec<Participant> =
        store.participants(id).await?.into_iter().filter(|who| !before.contains(&who.number)).collect();
    let rehearsal = summary(args, &stage, &reports, &new, &media, &comparison, seconds);
    Ok((rehearsal, comparison))
}

/// Waits until every agent has something to show, so that nobody is turned away by a run that is still being loaded.
///
/// # Errors
/// When a run has nothing to show within the time, as one does that has ended.
async fn ready(store: &Store, study: &Study) -> anyhow::Result<()> {
    let begun = Instant::now();
    for arm in &study.arms {
        loop {
            let pool = store.pool(&arm.run).await?;
            if pool.open + pool.leased > 0 {
                break;
            }
            anyhow::ensure!(begun.elapsed() < LOADING, "the run {} has nothing to show; is it going on?", arm.run);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// The researcher of the rehearsal: who waits for a judgement passes.
async fn judge(store: Store, study: Study, mut client: Client) {
    if study.settings.qualification.judge != Judge::Researcher || study.settings.qualification.executions == 0 {
        return;
    }
    loop {
        for who in store.participants(&study.id).await.unwrap_or_default() {
            if who.state != ParticipantState::Waiting {
                continue;
            }
            for answer in store.qualification_answers(who.id).await.unwrap_or_default() {
                if answer.passed.is_none() {
                    let path = format!("/studies/{}/participants/{}/judge", study.id, who.number);
                    let position = answer.position.to_string();
                    // Who is not judged now is judged at the next look.
                    let _ = client.form(&path, &[("position", position.as_str()), ("passed", "1")]).await;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The comparison once the newest tests know all responses, or nothing changes any more.
async fn settled(store: &Store, study: &Study) -> anyhow::Result<Comparison> {
    let begun = Instant::now();
    let (mut last, mut changed): (Option<Comparison>, Instant) = (None, Instant::now());
    loop {
        let runs = store.taught_runs(study).await?;
        let now = tokio::task::spawn_blocking(move || compare(&runs)).await?;
        let all = now.conditions.iter().all(|condition| condition.outcome.responses == condition.outcome.given);
        if last.as_ref() != Some(&now) {
            changed = Instant::now();
        }
        if all || changed.elapsed() > SETTLING.1 || begun.elapsed() > SETTLING.0 {
            return Ok(now);
        }
        last = Some(now);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn summary(
    args: &Args,
    stage: &Stage,
    reports: &[Report],
    participants: &[Participant],
    media: &BTreeMap<RunId, String>,
    comparison: &Comparison,
    seconds: f64,
) -> Rehearsal {
    let mut states: BTreeMap<&'static str, u64> = BTreeMap::new();
    for who in participants {
        *states.entry(who.state.as_str()).or_default() += 1;
    }
    let arm = |place: u64, name: &str, run: &RunId| ArmOutcome {
        name: name.to_owned(),
        run: run.clone(),
        medium: media.get(run).cloned().unwrap_or_default(),
        finished: participants
            .iter()
            .filter(|who| who.arm == Some(place) && who.state == ParticipantState::Finished)
            .count() as u64,
    };
    let finished: Vec<f64> =
        reports.iter().filter(|report| report.end == End::Ended).map(|report| report.minutes).collect();
    let all: f64 = reports.iter().map(|report| report.minutes).sum();
    let outcomes = || comparison.conditions.iter().map(|condition| &condition.outcome);
    let (minutes, answers) =
        outcomes().fold((0.0, 0), |(minutes, n), outcome| (minutes + outcome.active_minutes, n + outcome.responses));
    let settings = &stage.study.settings;
    Rehearsal {
        study: settings.title.clone(),
        teachers: args.teachers,
        speed: args.speed,
        drops: args.drops,
        seed: args.seed,
        version: env!("CARGO_PKG_VERSION"),
        seconds: (seconds * 10.0).round() / 10.0,
        states,
        arms: (0..).zip(&stage.study.arms).map(|(place, one)| arm(place, &one.name, &one.run)).collect(),
        milliseconds: stage.tally.times(),
        happenings: stage.tally.happenings(),
        errors: stage.tally.errors(),
        minutes_each: tally::quantiles(&finished),
        estimate: Estimate::of(settings, (answers > 0).then(|| minutes * 60.0 / answers as f64)),
        pay: (all / 60.0 * settings.pay_per_hour * 100.0).round() / 100.0,
        currency: settings.currency.clone(),
        comparison: outcome::figures(comparison),
    }
}

fn write(path: &Path, text: serde_json::Result<String>) -> Result<(), CliError> {
    let text = text.map_err(|error| CliError::Failed(error.into()))? + "\n";
    file::write(path, text.as_bytes()).map_err(|error| CliError::Failed(error.into()))
}

/// Prints and writes what was found. A rehearsal in which something went wrong fails.
fn told(args: &Args, (rehearsal, comparison): Outcome) -> CliResult {
    let line = serde_json::to_string(&rehearsal).map_err(|error| CliError::Failed(error.into()))?;
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| CliError::Usage(format!("{}: {error}", folder.display())))?;
        write(&folder.join("rehearsal.json"), serde_json::to_string_pretty(&rehearsal))?;
        write(&folder.join("comparison.json"), serde_json::to_string_pretty(&comparison))?;
    }
    if let Some(folder) = &args.results {
        figures::keep(folder, args, &rehearsal)?;
    }
    if args.json {
        out!("{line}").map_err(anyhow::Error::from)?;
    } else {
        rehearsal.print().map_err(anyhow::Error::from)?;
    }
    Ok(if rehearsal.errors.is_empty() { Exit::Done } else { Exit::Failed })
}
