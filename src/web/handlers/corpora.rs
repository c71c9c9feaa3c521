//! The page on which researchers upload the corpora that runs can name, see what they hold, and remove them.

use crate::config::run::RunConfig;
use crate::corpora::{Added, Adding, Corpora, CorpusError, LONGEST_NAME, UploadedCorpus, is_same};
use crate::family::corpus::{CorpusFact, CorpusFormat};
use crate::ids::RunId;
use crate::registry::AnyFamily;
use crate::store::Run;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::extractors::upload::Upload;
use crate::web::format;
use crate::web::handlers::progress::Ticket;
use crate::web::page::{self, Page};
use crate::web::settings::CORPUS_LIMIT;
use crate::web::state::AppState;
use crate::web::state::work::{Following, Step, Unit};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::cell::Cell;
use tokio::sync::Semaphore;

/// Corpora that are unpacked and checked at once: each may take a few gigabytes of memory.
static CHECKS: Semaphore = Semaphore::const_new(1);

/// The step of a corpus that waits until others are checked.
const WAITING: Step = Step { step: "Waiting until another corpus is checked", unit: Unit::Bytes, all: 0 };

/// Runs that a page names.
const NAMED: usize = 5;

/// A corpus as the page shows it.
struct Row {
    corpus: UploadedCorpus,
    /// Title of the family.
    title: &'static str,
    /// Runs whose tasks come from it, the newest few.
    runs: Vec<RunId>,
    /// The number of further ones.
    more: u64,
    /// The preset with which a run begins.
    preset: Option<String>,
}

impl Row {
    fn facts(&self) -> String {
        facts(&self.corpus.facts)
    }
}

fn facts(facts: &[CorpusFact]) -> String {
    facts.iter().map(|fact| format!("{} {}", format::count(&fact.count), fact.of)).collect::<Vec<_>>().join(", ")
}

/// A family that reads corpora.
struct Kind {
    name: &'static str,
    title: &'static str,
    format: CorpusFormat,
}

#[derive(Template)]
#[template(path = "corpora.html")]
struct CorporaPage {
    page: Page,
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    /// Whether this server keeps uploads.
    open: bool,
    name: String,
    kind: String,
    added: Added,
    added_name: String,
    removed: String,
    problem: Option<String>,
    faults: Vec<String>,
}

impl CorporaPage {
    fn limit(&self) -> u64 {
        CORPUS_LIMIT
    }

    fn longest_name(&self) -> usize {
        LONGEST_NAME
    }

    fn fault_count(&self) -> String {
        format::counted(&(self.faults.len() as u64), "fault")
    }

    /// The most bytes that can be sent, for people.
    fn most(&self) -> String {
        format::bytes(&CORPUS_LIMIT)
    }

    fn added_row(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.corpus.name == self.added_name)
    }
}

/// The corpora of the server.
fn corpora(state: &AppState) -> Option<Corpora> {
    state.settings.corpora.as_deref().map(Corpora::new)
}

fn kinds(state: &AppState) -> Vec<Kind> {
    let kind = |family: &&'static dyn AnyFamily| {
        Some(Kind { name: family.name(), title: family.title(), format: family.corpus()? })
    };
    state.families.iter().filter_map(kind).collect()
}

/// Whether the tasks of a configuration come from a corpus.
fn reads_corpus(config: &RunConfig) -> bool {
    config.task["world"] == "corpus"
}

/// The uploaded corpora that the family of a preset reads.
pub(crate) fn of_preset(state: &AppState, preset: &str) -> Vec<UploadedCorpus> {
    let family = preset.split_once('/').map_or(preset, |(family, _)| family);
    let mut all = corpora(state).map(|corpora| corpora.list()).unwrap_or_default();
    all.retain(|corpus| corpus.family == family);
    all
}

/// The runs whose tasks come from a corpus.
fn users<'a>(runs: &'a [Run], corpus: &UploadedCorpus) -> impl Iterator<Item = &'a RunId> {
    runs.iter()
        .filter(|run| {
            let task = &run.config["task"];
            task["world"] == "corpus" && task["path"].as_str().is_some_and(|named| is_same(named, corpus))
        })
        .map(|run| &run.id)
}

async fn rows(state: &AppState) -> Result<Vec<Row>> {
    let runs = state.store.runs().await?;
    let all = corpora(state).map(|corpora| corpora.list()).unwrap_or_default();
    let row = |corpus: UploadedCorpus| {
        let users: Vec<RunId> = users(&runs, &corpus).cloned().collect();
        let family = state.family(&corpus.family);
        let presets = family.map(|family| family.presets()).unwrap_or_default();
        let preset = presets.iter().find(|preset| reads_corpus(&preset.config));
        Row {
            title: family.map_or("", |family| family.title()),
            preset: preset.map(|preset| format!("{}/{}", corpus.family, preset.name)),
            more: users.len().saturating_sub(NAMED) as u64,
            runs: users.into_iter().take(NAMED).collect(),
            corpus,
        }
    };
    Ok(all.into_iter().map(row).collect())
}

async fn empty_page(state: &AppState, page: Page) -> Result<CorporaPage> {
    let kinds = kinds(state);
    Ok(CorporaPage {
        page,
        rows: rows(state).await?,
        kind: kinds.first().map(|kind| kind.name.to_owned()).unwrap_or_default(),
        kinds,
        open: state.settings.corpora.is_some(),
        name: String::new(),
        added: Added { passed_over: Vec::new() },
        added_name: String::new(),
        removed: String::new(),
        problem: None,
        faults: Vec::new(),
    })
}

/// Query of `GET /corpora`: what has just happened.
#[derive(Deserialize)]
pub(crate) struct Happened {
    #[serde(default)]
    added: String,
    /// Files that were not kept, with blanks between them.
    #[serde(default)]
    left: String,
    #[serde(default)]
    removed: String,
}

/// `GET /corpora`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(happened): Query<Happened>,
) -> Result<Response> {
    let mut shown = empty_page(&state, page).await?;
    shown.added_name = happened.added;
    shown.removed = happened.removed;
    shown.added.passed_over = happened.left.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Ok(page::html(&shown))
}

/// `POST /corpora`: unpacks, checks and keeps a corpus.
pub(crate) async fn upload(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(Ticket { ticket }): Query<Ticket>,
    form: Upload,
) -> Result<Response> {
    let (name, kind) = (form.text("name").trim().to_owned(), form.text("kind").to_owned());
    let following = state.works.follow(&ticket, WAITING);
    let added = keep(&state, &name, &kind, form, following).await?;
    let (problem, faults) = match added {
        Ok(Added { passed_over }) => {
            let left = format::encode(&passed_over.join("/"));
            let query = format!("added={}&left={left}", format::encode(&name));
            return Ok(Redirect::to(&page.url(&format!("/corpora?{query}"))).into_response());
        }
        Err(CorpusError::Change(sentence)) => (Some(sentence), Vec::new()),
        Err(CorpusError::Faults(faults)) => (None, faults),
        Err(CorpusError::Io(error)) => return Err(Error::unkept("a corpus", &error)),
    };
    let again = CorporaPage { name, kind, problem, faults, ..empty_page(&state, page).await? };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, page::html(&again)).into_response())
}

async fn keep(
    state: &AppState,
    name: &str,
    kind: &str,
    form: Upload,
    following: Following,
) -> Result<Result<Added, CorpusError>> {
    let change = |sentence: &str| Ok(Err(CorpusError::Change(sentence.to_owned())));
    let Some(corpora) = corpora(state) else { return change("This server keeps no uploads.") };
    let Some(format) = state.family(kind).and_then(|family| family.corpus()) else {
        return change("Choose what the corpus is of.");
    };
    if form.files.is_empty() {
        return change("Choose the files of the corpus, or one archive that holds them.");
    }
    if let Err(error) = corpora.check_name(name) {
        return Ok(Err(error));
    }
    let _turn = CHECKS.acquire().await.map_err(|error| Error::Panic(error.to_string()))?;
    let (name, kind) = (name.to_owned(), kind.to_owned());
    let added = tokio::task::spawn_blocking(move || {
        let files: Vec<(&str, &std::path::Path)> =
            form.files.iter().map(|file| (file.name.as_str(), file.path.as_path())).collect();
        // Each step begins once, and is told of many times.
        let step = Cell::new("");
        let added = corpora.add(&name, &kind, &format, &files, &|adding| {
            let (words, bytes, of) = match adding {
                Adding::Unpacking { bytes, of } => ("Unpacking", bytes, of),
                Adding::Checking { bytes, of } => ("Checking the files", bytes, of),
            };
            if step.replace(words) != words {
                following.step(Step { step: words, unit: Unit::Bytes, all: of });
            }
            following.done(bytes);
        });
        following.whole();
        added
    });
    added.await.map_err(|error| Error::Panic(error.to_string()))
}

/// `POST /corpora/{name}/delete`.
pub(crate) async fn delete(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Path(name): Path<String>,
) -> Result<Response> {
    let corpora = corpora(&state).ok_or(Error::NotFound("the corpus"))?;
    let corpus = corpora.get(&name).ok_or(Error::NotFound("the corpus"))?;
    let runs = state.store.runs().await?;
    let users: Vec<&RunId> = users(&runs, &corpus).collect();
    if let Some(first) = users.first() {
        let others = users.len() - 1;
        let others =
            if others > 0 { format!(" and {}", format::counted(&(others as u64), "other")) } else { String::new() };
        return Err(Error::conflict(
            "corpus-in-use",
            format!(
                "The tasks of the run {first}{others} come from this corpus. Delete them first; those in the trash count until they are removed for good."
            ),
        ));
    }
    let removed = tokio::task::spawn_blocking(move || corpora.remove(&name)).await;
    match removed.map_err(|error| Error::Panic(error.to_string()))? {
        Ok(()) => {
            let query = format!("removed={}", format::encode(&corpus.name));
            Ok(Redirect::to(&page.url(&format!("/corpora?{query}"))).into_response())
        }
        Err(CorpusError::Io(error)) => Err(Error::Panic(format!("a corpus could not be removed: {error}"))),
        Err(_) => Err(Error::NotFound("the corpus")),
    }
}
