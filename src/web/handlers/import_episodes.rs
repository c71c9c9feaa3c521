//! The page on which executions of an agent that lives in another program come in from a file.

use crate::ids::RunId;
use crate::import::episodes::{self, BadEpisode, Counts, Episodes};
use crate::launch::NewOutsideRun;
use crate::registry::OUTSIDE;
use crate::store::MOST_OPEN;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Query;
use crate::web::extractors::upload::Upload;
use crate::web::format;
use crate::web::handlers::import_api::READING;
use crate::web::handlers::outside_api::{open_run, tell_host};
use crate::web::handlers::progress::Ticket;
use crate::web::page::{self, Page};
use crate::web::services::launching;
use crate::web::settings::EPISODES_LIMIT;
use crate::web::state::AppState;
use crate::web::state::work::{Step, Unit};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

/// Bad rows that a page lists.
const LISTED: usize = 200;

/// The result of reading a file that was sent.
struct Told {
    file: String,
    /// Rows that could come in.
    fit: u64,
    /// Rows that came in before.
    known: u64,
    bad: Vec<BadEpisode>,
    /// Further bad rows.
    more: u64,
}

impl Told {
    fn bad_rows(&self) -> String {
        format::counted(&(self.bad.len() as u64 + self.more), "bad row")
    }
}

#[derive(Template)]
#[template(path = "import_episodes.html")]
struct ImportPage {
    page: Page,
    /// Outside runs that go on.
    runs: Vec<RunId>,
    /// The run that is chosen.
    run: String,
    show_request: bool,
    told: Option<Told>,
    /// The rows that have just come in.
    came: Option<Came>,
    problem: Option<String>,
}

impl ImportPage {
    fn most_open(&self) -> String {
        format::count(&MOST_OPEN)
    }

    fn most_rows(&self) -> String {
        format::count(&(episodes::MOST_ROWS as u64))
    }

    fn limit(&self) -> u64 {
        EPISODES_LIMIT
    }

    /// Rows for an example.
    fn row(&self) -> &'static str {
        r#"{"id": "walk-17", "request": "bring the red cup to the kitchen", "text": "The agent took the cup from the table.\nIt went into the kitchen.", "success": true, "update": 4, "people": 2}
{"id": "word-3", "request": "replace c with w", "pairs": [{"in": "castle", "out": "wastle"}]}
{"id": "way-9", "request": "go to the kitchen", "walk": {"house": "house-3", "heading": 2, "viewpoint": "5", "actions": [1, 1, 0]}}"#
    }
}

/// The rows that have just come in.
struct Came {
    run: String,
    came: u64,
    known: u64,
    left: u64,
}

/// Query of `GET /import`.
#[derive(Deserialize)]
pub(crate) struct Beginning {
    /// The run that is chosen.
    #[serde(default)]
    run: String,
    /// Rows that have just come into it.
    came: Option<u64>,
    /// Rows that had come in before.
    #[serde(default)]
    known: u64,
    /// Rows for which there was no room.
    #[serde(default)]
    left: u64,
}

/// The outside runs that go on.
async fn outside_runs(state: &AppState) -> Result<Vec<RunId>> {
    let runs = state.store.runs().await?.into_iter();
    Ok(runs.filter(|run| run.active && run.family == OUTSIDE).map(|run| run.id).collect())
}

/// `GET /import`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(beginning): Query<Beginning>,
) -> Result<Response> {
    let Beginning { run, came, known, left } = beginning;
    let came = came.map(|came| Came { run: run.clone(), came, known, left });
    let runs = outside_runs(&state).await?;
    Ok(page::html(&ImportPage { page, runs, run, show_request: false, told: None, came, problem: None }))
}

/// `POST /import/episodes`: checks a file, or offers its executions to people.
pub(crate) async fn bring_in(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(Ticket { ticket }): Query<Ticket>,
    form: Upload,
) -> Result<Response> {
    let following = Arc::new(state.works.follow(&ticket, READING));
    let (run, show_request) = (form.text("run").to_owned(), form.text("show_request") == "1");
    let again = async |status: StatusCode, told: Option<Told>, problem: Option<String>| -> Result<Response> {
        let runs = outside_runs(&state).await?;
        let again = ImportPage { page: page.clone(), runs, run: run.clone(), show_request, told, came: None, problem };
        Ok((status, page::html(&again)).into_response())
    };
    let [file] = form.files.as_slice() else {
        let sentence = "Choose one file with a JSON object a line.".to_owned();
        return again(StatusCode::UNPROCESSABLE_ENTITY, None, Some(sentence)).await;
    };
    let path = file.path.clone();
    let told = following.clone();
    let read = tokio::task::spawn_blocking(move || {
        let file = File::open(path)?;
        let of = file.metadata()?.len();
        episodes::read_telling(BufReader::new(file), |_, bytes| told.done_of(bytes, of))
    });
    let read = read.await;
    let read = read.map_err(|error| Error::Panic(error.to_string()))?;
    let mut read: Episodes = read.map_err(|error| Error::Panic(format!("a file could not be read: {error}")))?;
    let chosen = (!run.is_empty()).then(|| RunId::from(run.as_str()));
    let mut known = 0;
    if let Some(run) = &chosen {
        if let Some(sentence) = episodes::refusal(&state.store, run).await? {
            return again(StatusCode::CONFLICT, None, Some(sentence.to_owned())).await;
        }
        known = read.compare(&state.store, run).await?;
    }
    if form.text("do") == "check" || !read.bad.is_empty() || read.is_empty() {
        let status = if read.bad.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
        let problem = (read.is_empty() && read.bad.is_empty()).then(|| "The file has no row.".to_owned());
        let (fit, more) = (read.len() as u64 - known, read.bad.len().saturating_sub(LISTED) as u64);
        let mut bad = std::mem::take(&mut read.bad);
        bad.truncate(LISTED);
        let told = Told { file: file.name.clone(), fit, known, bad, more };
        following.whole();
        return again(status, problem.is_none().then_some(told), problem).await;
    }
    following.step(Step { step: "Storing the episodes", unit: Unit::Rows, all: 0 });
    let run = match chosen {
        Some(run) => run,
        None => launching::start_outside(&state, NewOutsideRun { show_request }).await?,
    };
    open_run(&state, &run).await?;
    let Counts { stored, known, left } = read.store(&state.store, &run).await?;
    tell_host(&state, &run, None);
    following.whole();
    let query = format!("run={}&came={stored}&known={known}&left={left}", format::encode(run.as_str()));
    Ok(Redirect::to(&page.url(&format!("/import?{query}"))).into_response())
}
