//! `iliad study`: studies from files, without the editor. It changes the database that a server may be serving from.

pub(in crate::cli) mod rehearse;

use super::runtime;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::config::server::{DatabaseAddress, ServerConfig};
use crate::credentials;
use crate::ids::StudyId;
use crate::output::{note, out};
use crate::registry::Registry;
use crate::store::{Store, StoreError, Study};
use crate::study::{Estimate, ParticipantState, StudyFile, StudyState, slug};
use crate::suggest::did_you_mean;
use serde_json::json;
use std::path::PathBuf;

/// The actor of these commands in the audit trail.
const ACTOR: &str = "command line";

/// Commands of `iliad study`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// List the studies
    List(ListArgs),
    /// Print a study as a file, with what it has come to
    Show(ShowArgs),
    /// Make a study from a file, as a draft
    Create(CreateArgs),
    /// Open, pause or close a study
    State(StateArgs),
    /// Rehearse a whole study with simulated people, before a person is paid
    Rehearse(rehearse::Args),
}

const AFTER_LIST: &str = "\
A server may be running on the same data folder.

Examples:
  iliad study list                             name, state, teachers, answers, title
  iliad study list --json                      one JSON object a line
  iliad study list --data-dir /srv/iliad       of that server's data folder";

/// Flags of `iliad study list`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_LIST)]
pub(super) struct ListArgs {
    /// Write each study as a line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_SHOW: &str = "\
The file goes to the standard output, what the study has come to goes to the other stream.

Examples:
  iliad study show words                       the settings
  iliad study show words > again.toml          to begin another study with
  iliad study show words --json                settings, state and figures as one JSON object";

/// Flags of `iliad study show`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_SHOW)]
pub(super) struct ShowArgs {
    /// Name of the study in its link
    #[arg(value_name = "STUDY")]
    pub study: StudyId,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_CREATE: &str = "\
The file is what `iliad study show` prints and the page of a study lets you download; docs/studies.md names the settings.

Examples:
  iliad study create --file study.toml
  iliad study create --file study.toml --id words-2      under another name
  iliad study show words | iliad study create --file - --id words-2";

/// Flags of `iliad study create`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_CREATE)]
pub(super) struct CreateArgs {
    /// The settings as TOML; - reads the standard input
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// Name in the link; else the file's `id`, else made of the title
    #[arg(long, value_name = "NAME")]
    pub id: Option<StudyId>,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_STATE: &str = "\
A server on the same data folder does as told from the next page on.

Examples:
  iliad study state words open
  iliad study state words paused
  iliad study state words closed";

/// Flags of `iliad study state`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_STATE)]
pub(super) struct StateArgs {
    /// Name of the study in its link
    #[arg(value_name = "STUDY")]
    pub study: StudyId,
    /// open, paused or closed
    #[arg(value_name = "STATE", value_parser = state)]
    pub state: StudyState,
    #[command(flatten)]
    pub common: Common,
}

fn state(word: &str) -> Result<StudyState, String> {
    let known = StudyState::parse(word).filter(|state| *state != StudyState::Draft);
    known.ok_or_else(|| "a study is opened, paused or closed: write open, paused or closed".to_owned())
}

/// Carries out `iliad study …`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let common = match &args.command {
        Command::List(args) => &args.common,
        Command::Show(args) => &args.common,
        Command::Create(args) => &args.common,
        Command::State(args) => &args.common,
        Command::Rehearse(args) => return rehearse::run(args, registry),
    };
    let database = database(&common.load()?)?;
    match &args.command {
        Command::List(args) => {
            runtime()?.block_on(Store::reading(&database, async |store| list(&store, args.json).await))?
        }
        Command::Show(args) => {
            runtime()?.block_on(Store::reading(&database, async |store| show(&store, args).await))?
        }
        Command::Create(args) => {
            let file = read(&args.file)?;
            runtime()?.block_on(Store::using(&database, async |store| create(&store, file, args.id.clone()).await))?
        }
        Command::State(args) => {
            runtime()?.block_on(Store::using(&database, async |store| set_state(&store, args).await))?
        }
        Command::Rehearse(args) => rehearse::run(args, registry),
    }
}

fn database(settings: &ServerConfig) -> Result<DatabaseAddress, CliError> {
    let database = settings.database();
    if database.exists() {
        return Ok(database);
    }
    let folder = settings.data_dir.display();
    Err(CliError::Usage(format!(
        "there is no database in {folder}; name the server's data folder with --data-dir, or start the server once"
    )))
}

fn read(path: &std::path::Path) -> Result<StudyFile, CliError> {
    let text = match path.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| CliError::Usage(format!("{} cannot be read: {error}", path.display())))?;
    StudyFile::read(&text).map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
}

/// The figures of a study so far.
struct Figures {
    teachers: usize,
    finished: usize,
    answers: u64,
}

async fn figures(store: &Store, study: &Study) -> Result<Figures, StoreError> {
    let people = store.participants(&study.id).await?;
    let answers = store.participant_figures(&study.id).await?.values().map(|figures| figures.answers).sum();
    let finished = people.iter().filter(|who| who.state == ParticipantState::Finished).count();
    Ok(Figures { teachers: people.len(), finished, answers })
}

fn line(study: &Study, figures: &Figures) -> serde_json::Value {
    let mut line = json!(study);
    line["teachers"] = json!(figures.teachers);
    line["finished"] = json!(figures.finished);
    line["answers"] = json!(figures.answers);
    line["estimate"] = json!(Estimate::of(&study.settings, None));
    line
}

async fn list(store: &Store, as_json: bool) -> CliResult {
    let studies = store.studies().await?;
    if studies.is_empty() && !as_json {
        note!("There is no study yet. The page /studies makes one, and so does `iliad study create`.");
    }
    let width = studies.iter().map(|study| study.id.chars().count()).max().unwrap_or(0);
    for study in &studies {
        let figures = figures(store, study).await?;
        if as_json {
            out!("{}", line(study, &figures))?;
            continue;
        }
        let Figures { teachers, finished, answers } = figures;
        out!(
            "{:<width$}  {:<6}  {teachers:>4} joined  {finished:>4} finished  {answers:>6} answers  {}",
            study.id,
            study.state.as_str(),
            study.settings.title
        )?;
    }
    Ok(Exit::Done)
}

async fn show(store: &Store, args: &ShowArgs) -> CliResult {
    let study = named(store, &args.study).await?;
    let figures = figures(store, &study).await?;
    if args.json {
        out!("{}", line(&study, &figures))?;
        return Ok(Exit::Done);
    }
    let state = study.state.as_str();
    let file = StudyFile { id: Some(study.id), settings: study.settings, arms: study.arms };
    out!("{}", file.text().trim_end())?;
    let Figures { teachers, finished, answers } = figures;
    note!(
        "The study is in the state {state}; {teachers} joined, {finished} finished, and there are {answers} answers."
    );
    Ok(Exit::Done)
}

async fn create(store: &Store, file: StudyFile, id: Option<StudyId>) -> CliResult {
    let problems = file.settings.problems();
    if !problems.is_empty() {
        let all: Vec<String> = problems.into_iter().map(|problem| problem.sentence).collect();
        return Err(CliError::Usage(all.join(" ")));
    }
    let id = id.or(file.id).unwrap_or_else(|| slug(&file.settings.title).into());
    let secret = credentials::random_token()?;
    store.create_study(&id, &file.settings, &file.arms, &secret, ACTOR).await.map_err(in_words)?;
    out!("{id}")?;
    note!("The study is a draft, which nobody can join; `iliad study state {id} open` opens it.");
    Ok(Exit::Done)
}

async fn set_state(store: &Store, args: &StateArgs) -> CliResult {
    let study = named(store, &args.study).await?;
    if args.state == StudyState::Open {
        if study.arms.is_empty() {
            return Err(CliError::Usage("the study has no run; choose at least one in the editor".to_owned()));
        }
        if let Some(problem) = study.settings.problems().into_iter().next() {
            return Err(CliError::Usage(problem.sentence));
        }
    }
    store.set_study_state(&study.id, args.state, ACTOR).await.map_err(in_words)?;
    note!("The study {} is {}.", study.id, args.state.as_str());
    Ok(Exit::Done)
}

/// A refusal of the store is for the person to act upon.
fn in_words(error: StoreError) -> CliError {
    match error {
        StoreError::Conflict(sentence) | StoreError::Invalid(sentence) => CliError::Usage(sentence),
        StoreError::NotFound(what) => CliError::Usage(format!("{what} is not there")),
        error => CliError::Failed(error.into()),
    }
}

async fn named(store: &Store, id: &StudyId) -> Result<Study, CliError> {
    match store.study(id).await {
        Ok(study) => Ok(study),
        Err(StoreError::NotFound(_)) => {
            let known = store.studies().await?;
            let meant = did_you_mean(id, known.iter().map(|study| study.id.as_str()));
            let advice = if known.is_empty() { "there is none yet" } else { "`iliad study list` shows all" };
            Err(CliError::Usage(format!("there is no study called {:?}{meant}; {advice}", id.as_str())))
        }
        Err(error) => Err(CliError::Failed(error.into())),
    }
}
