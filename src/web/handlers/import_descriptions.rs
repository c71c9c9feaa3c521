//! The page on which researchers upload descriptions: every bad row is told first, and what is right comes in at a second press.

use crate::ids::RunId;
use crate::import::Checked;
use crate::import::upload::MOST_ROWS;
use crate::registry::Registry;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::cookie;
use crate::web::extractors::input::{Form, Query};
use crate::web::extractors::upload::Upload;
use crate::web::format;
use crate::web::handlers::import_api::{self, LISTED};
use crate::web::handlers::progress::Ticket;
use crate::web::page::{self, Page};
use crate::web::settings::DESCRIPTIONS_LIMIT;
use crate::web::state::AppState;
use crate::web::state::uploads::Waiting;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::sync::Arc;

/// Runs that an address names.
const NAMED: usize = 20;

/// A row that cannot come in.
struct Bad {
    place: String,
    reason: String,
}

/// The result of reading a file that was sent.
struct Told {
    file: String,
    rows: u64,
    runs: Vec<RunId>,
    /// Runs of these names that there are already.
    taken: Vec<RunId>,
    /// Columns that are passed over.
    passed_over: Vec<String>,
    /// Runs that get the configuration of their preset.
    other: Vec<RunId>,
    bad: Vec<Bad>,
    /// Further bad rows.
    more: u64,
    /// The key of the upload, which waits.
    upload: String,
}

impl Told {
    fn bad_rows(&self) -> String {
        format::counted(&(self.bad.len() as u64 + self.more), "bad row")
    }

    fn comes_in(&self) -> bool {
        self.bad.is_empty() && self.taken.is_empty()
    }

    /// Whether the run can be given another name.
    fn can_be_named(&self) -> bool {
        self.bad.is_empty() && self.runs.len() == 1
    }
}

/// The rows that have just come in.
struct Came {
    rows: u64,
    teachers: u64,
    runs: Vec<String>,
}

#[derive(Template)]
#[template(path = "import_descriptions.html")]
struct DescriptionsPage {
    page: Page,
    /// Another name for the run.
    name: String,
    told: Option<Told>,
    came: Option<Came>,
    problem: Option<String>,
}

impl DescriptionsPage {
    fn limit(&self) -> u64 {
        DESCRIPTIONS_LIMIT
    }

    fn most(&self) -> String {
        format::bytes(&DESCRIPTIONS_LIMIT)
    }

    fn most_rows(&self) -> String {
        format::count(&MOST_ROWS)
    }

    /// A row for an example, with the columns that it needs.
    fn row(&self) -> &'static str {
        r#"{"run_id": "pilot-3", "task": "regex", "episode_id": 1, "teacher_id": 1, "description": "replace c with w", "view": {"pairs": [{"in": "castle", "out": "wastle"}]}}"#
    }
}

/// Query of `GET /import/descriptions`: what has just come in.
#[derive(Deserialize)]
pub(crate) struct Happened {
    came: Option<u64>,
    #[serde(default)]
    teachers: u64,
    /// Names of runs with commas between them.
    #[serde(default)]
    runs: String,
}

/// `GET /import/descriptions`.
pub(crate) async fn page(_: Steering, page: Page, Query(happened): Query<Happened>) -> Response {
    let Happened { came, teachers, runs } = happened;
    let runs = || runs.split(',').filter(|run| !run.is_empty()).map(str::to_owned).collect();
    let came = came.map(|rows| Came { rows, teachers, runs: runs() });
    page::html(&DescriptionsPage { page, name: String::new(), told: None, came, problem: None })
}

fn again(page: Page, name: String, told: Option<Told>, problem: Option<String>) -> Response {
    let fits = problem.is_none() && told.as_ref().is_some_and(Told::comes_in);
    let status = if fits { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    (status, page::html(&DescriptionsPage { page, name, told, came: None, problem })).into_response()
}

/// The words about a file that was read.
async fn told(state: &AppState, checked: &Checked, file: String, upload: String) -> Result<Told> {
    let archive = file.to_ascii_lowercase().ends_with(".tar");
    let place = |file: &std::path::Path, number: u64| match file.file_name() {
        Some(name) if archive => format!("{}, {}", name.to_string_lossy(), format::count(&number)),
        _ => format::count(&number),
    };
    let bad = checked.bad.iter().take(LISTED);
    Ok(Told {
        file,
        rows: checked.rows(),
        runs: checked.runs(),
        taken: import_api::taken(state, checked).await?,
        passed_over: checked.unknown.clone(),
        other: checked.other_configurations(Registry::new(state.families)),
        bad: bad.map(|bad| Bad { place: place(&bad.file, bad.number), reason: bad.reason.clone() }).collect(),
        more: checked.bad.len().saturating_sub(LISTED) as u64,
        upload,
    })
}

/// `POST /import/descriptions`: reads a file, and lets it wait where it can come in.
pub(crate) async fn check(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(Ticket { ticket }): Query<Ticket>,
    form: Upload,
) -> Result<Response> {
    let following = Arc::new(state.works.follow(&ticket, import_api::WAITING));
    let name = form.text("name").trim().to_owned();
    let (files, folder) = form.into_files();
    let file = files.iter().find(|file| !file.name.ends_with("manifest.json")).map(|file| file.name.clone());
    let sent = files.into_iter().map(|file| (file.name, file.path)).collect();
    let path = match import_api::lay_out(folder.path().to_owned(), sent).await? {
        Ok(path) => path,
        Err(sentence) => return Ok(again(page, name, None, Some(sentence))),
    };
    let checked = match import_api::check(&state, &path, Some(&name), &following).await? {
        Ok(checked) => checked,
        Err(sentence) => return Ok(again(page, name, None, Some(sentence))),
    };
    let mut told = told(&state, &checked, file.unwrap_or_default(), String::new()).await?;
    if checked.bad.is_empty() {
        told.upload = cookie::new_token()?;
        let waiting = Waiting { name: told.file.clone(), path, _folder: folder };
        state.uploads.keep(told.upload.clone(), Arc::new(waiting));
    }
    following.whole();
    Ok(again(page, name, Some(told), None))
}

/// Fields of the form that follows a check.
#[derive(Deserialize)]
pub(crate) struct Bring {
    upload: String,
    #[serde(default)]
    name: String,
}

/// `POST /import/descriptions/bring`: stores the rows of a file that was checked.
pub(crate) async fn bring(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(Ticket { ticket }): Query<Ticket>,
    Form(Bring { upload, name }): Form<Bring>,
) -> Result<Response> {
    let following = Arc::new(state.works.follow(&ticket, import_api::WAITING));
    let name = name.trim().to_owned();
    let Some(waiting) = state.uploads.get(&upload) else {
        let sentence = "The file is not here any more: it waits for an hour, until others take its place, and until the server ends. Choose it again.";
        return Ok(again(page, name, None, Some(sentence.to_owned())));
    };
    let checked = match import_api::check(&state, &waiting.path, Some(&name), &following).await? {
        Ok(checked) => checked,
        Err(sentence) => return Ok(again(page, name, None, Some(sentence))),
    };
    let told = told(&state, &checked, waiting.name.clone(), upload.clone()).await?;
    if !told.comes_in() {
        return Ok(again(page, name, Some(told), None));
    }
    let runs: Vec<&str> = told.runs.iter().take(NAMED).map(RunId::as_str).collect();
    let imported = match import_api::bring(&state, checked, &following).await {
        Ok(imported) => imported,
        // Somebody has made a run of the name meanwhile.
        Err(Error::Store(crate::store::StoreError::Conflict(sentence))) => {
            let sentence = format!("{}.", format::upper(&sentence));
            return Ok(again(page, name, None, Some(sentence)));
        }
        Err(error) => return Err(error),
    };
    state.uploads.forget(&upload);
    following.whole();
    let query =
        format!("came={}&teachers={}&runs={}", imported.answers, imported.teachers, format::encode(&runs.join(",")));
    Ok(Redirect::to(&page.url(&format!("/import/descriptions?{query}"))).into_response())
}
