//! The address by which programs bring descriptions in, and the reading and storing that the page of the same does as well.

use crate::ids::RunId;
use crate::import::upload::{self, MOST_ROWS, SentForm};
use crate::import::{self, BadRow, Checked, Reading};
use crate::registry::Registry;
use crate::store::{Imported, StoreError};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Query;
use crate::web::extractors::upload::SentFile;
use crate::web::format;
use crate::web::state::AppState;
use crate::web::state::work::{Following, Step, Unit};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Bad rows that are told one by one.
pub(crate) const LISTED: usize = 1_000;

fn panicked(error: &tokio::task::JoinError) -> Error {
    Error::Panic(error.to_string())
}

/// Lays out the files of an upload; `Err` within is a sentence that says what to change.
pub(crate) async fn lay_out(folder: PathBuf, files: Vec<(String, PathBuf)>) -> Result<Result<PathBuf, String>> {
    let laid = tokio::task::spawn_blocking(move || {
        let files: Vec<(&str, &Path)> = files.iter().map(|(name, path)| (name.as_str(), path.as_path())).collect();
        upload::lay_out(&folder, &files)
    });
    let laid = laid.await.map_err(|error| panicked(&error))?;
    laid.map_err(|error| Error::unkept("a file that was sent", &error))
}

/// The step of a file that waits until others are read.
pub(crate) const WAITING: Step = Step { step: "Waiting until another file is read", unit: Unit::Rows, all: 0 };

/// The step of a file that is read, and the one in which its rows are stored.
pub(crate) const READING: Step = Step { step: "Reading the rows", unit: Unit::Bytes, all: 0 };
const STORING: Step = Step { step: "Storing the rows", unit: Unit::Rows, all: 0 };

/// Reads what was sent and finds everything that is wrong with it; `Err` within is a sentence about the whole.
pub(crate) async fn check(
    state: &AppState,
    path: &Path,
    name: Option<&str>,
    following: &Arc<Following>,
) -> Result<Result<Checked, String>> {
    let name = match name.filter(|name| !name.is_empty()) {
        Some(name) if !import::is_name(name) => {
            return Ok(Err("The name of a run has letters, digits, and . - _ between them.".to_owned()));
        }
        name => name.map(RunId::from),
    };
    let _turn = state.uploads.turns.acquire().await.map_err(|error| Error::Panic(error.to_string()))?;
    let (path, registry) = (path.to_owned(), Registry::new(state.families));
    let following = following.clone();
    following.step(READING);
    let read = tokio::task::spawn_blocking(move || {
        let told = |Reading { bytes, of, .. }| following.done_of(bytes, of);
        import::check_telling(&path, registry, name, MOST_ROWS, told)
    });
    Ok(match read.await {
        Ok(Ok(checked)) if checked.rows() == 0 && checked.bad.is_empty() => Err("The file has no row.".to_owned()),
        Ok(Ok(checked)) => Ok(checked),
        Ok(Err(error)) => Err(format!("The file cannot be read: {}.", error.reason())),
        Err(error) => return Err(panicked(&error)),
    })
}

/// The names of those runs of a file that there are already.
pub(crate) async fn taken(state: &AppState, checked: &Checked) -> Result<Vec<RunId>> {
    let mut taken = Vec::new();
    for run in checked.runs() {
        match state.store.run(&run).await {
            Ok(_) => taken.push(run),
            Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}

/// Stores rows that were checked. The file is read once more, on a thread that may wait for the disk.
pub(crate) async fn bring(state: &AppState, checked: Checked, following: &Arc<Following>) -> Result<Imported> {
    let (store, registry) = (state.store.clone(), Registry::new(state.families));
    let _turn = state.uploads.turns.acquire().await.map_err(|error| Error::Panic(error.to_string()))?;
    let runtime = tokio::runtime::Handle::current();
    let following = following.clone();
    following.step(Step { all: checked.rows(), ..STORING });
    let stored = tokio::task::spawn_blocking(move || {
        runtime.block_on(checked.store_telling(&store, registry, |done| following.done(done)))
    });
    Ok(stored.await.map_err(|error| panicked(&error))??)
}

/// A row that cannot come in.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefusedRow {
    /// The file of an archive that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Its number in the file, from 1: the line of JSON lines, the record of the others.
    row: u64,
    /// Why.
    reason: String,
}

impl RefusedRow {
    fn of(bad: &BadRow, archive: bool) -> RefusedRow {
        let file = bad.file.file_name().map(|name| name.to_string_lossy().into_owned());
        RefusedRow { file: file.filter(|_| archive), row: bad.number, reason: bad.reason.clone() }
    }
}

/// The result of reading a file of descriptions, and of storing it.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImportReport {
    /// Whether the rows are stored now.
    stored: bool,
    /// Rows that can come in, or did.
    rows: u64,
    /// Rows that cannot.
    bad_rows: u64,
    /// The first thousand of them.
    bad: Vec<RefusedRow>,
    /// The runs, under the names that they have here.
    runs: Vec<RunId>,
    /// Runs of these names that there are already, so that the rows cannot come in under them.
    taken: Vec<RunId>,
    /// Columns that a data set does not have, and that are passed over.
    passed_over: Vec<String>,
    /// Teachers of the rows, once these are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    teachers: Option<u64>,
}

/// Query of an import.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wish {
    /// `jsonl`, `csv`, `parquet`, or `tar` for the folder of a data set; without it, what `Content-Type` says.
    format: Option<String>,
    /// Another name for the run, where the file has one run.
    run: Option<String>,
    /// Whether the file is only checked.
    #[serde(default)]
    dry_run: bool,
}

/// The ending of a file by its content type.
fn ending(headers: &HeaderMap) -> Option<&'static str> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim();
    Some(match kind {
        "application/x-ndjson" | "application/jsonl" => "jsonl",
        "text/csv" => "csv",
        "application/vnd.apache.parquet" => "parquet",
        "application/x-tar" => "tar",
        _ => return None,
    })
}

/// `POST /api/v1/import/descriptions`: descriptions from a file, as the body.
#[utoipa::path(post, path = "/import/descriptions", operation_id = "import_descriptions", tag = "import",
    summary = "Brings descriptions in from a file",
    description = "The body is the file: JSON lines, CSV or Parquet as an export has them, or the tar archive of a data set, at most 64 MB and \
        100,000 rows. Each `run_id` becomes a run that has ended. All rows come in or none does: 422 `bad-rows` names the bad ones in `bad`, and \
        409 `name-taken` the runs in `taken`. With `dry_run=true` nothing is stored.",
    params(Wish),
    request_body(content((String = "application/x-ndjson"), (String = "text/csv"), (Vec<u8> = "application/vnd.apache.parquet"),
        (Vec<u8> = "application/x-tar")), description = "The file"),
    responses((status = 200, body = ImportReport, description = "What a dry run found; nothing is stored"),
        (status = 201, body = ImportReport, description = "The rows are stored")))]
pub(crate) async fn descriptions(
    _: Steering,
    State(state): State<AppState>,
    Query(wish): Query<Wish>,
    headers: HeaderMap,
    file: SentFile,
) -> Result<Response> {
    let ending = wish.format.as_deref().or_else(|| ending(&headers)).unwrap_or_default().to_owned();
    let Some(form) = SentForm::named(&ending) else {
        return Err(Error::change("format", "Say in `format` what the file is: jsonl, csv, parquet or tar."));
    };
    let change = |sentence: String| Error::change("file", sentence);
    let sent = vec![(format!("file.{ending}"), file.path.clone())];
    let path = lay_out(file.folder.path().to_owned(), sent).await?.map_err(change)?;
    // Programs see how much of their request has gone, and wait for the answer.
    let following = Arc::new(state.works.follow("", WAITING));
    let checked = check(&state, &path, wish.run.as_deref(), &following).await?.map_err(change)?;
    let archive = form == SentForm::Tar;
    let mut report = ImportReport {
        stored: false,
        rows: checked.rows(),
        bad_rows: checked.bad.len() as u64,
        bad: checked.bad.iter().take(LISTED).map(|bad| RefusedRow::of(bad, archive)).collect(),
        runs: checked.runs(),
        taken: taken(&state, &checked).await?,
        passed_over: checked.unknown.clone(),
        teachers: None,
    };
    if wish.dry_run {
        return Ok(Json(report).into_response());
    }
    if report.bad_rows > 0 {
        let message = format!("Nothing was stored. The file has {}.", format::counted(&report.bad_rows, "bad row"));
        let members =
            Map::from_iter([("bad_rows".to_owned(), json!(report.bad_rows)), ("bad".to_owned(), json!(report.bad))]);
        return Err(Error::Rows { message, members });
    }
    if !report.taken.is_empty() {
        return Err(name_taken(&report.taken));
    }
    let imported = bring(&state, checked, &following).await?;
    (report.stored, report.teachers) = (true, Some(imported.teachers));
    Ok((StatusCode::CREATED, Json(report)).into_response())
}

/// The refusal of runs whose names there are already.
fn name_taken(taken: &[RunId]) -> Error {
    let names: Vec<&str> = taken.iter().map(RunId::as_str).collect();
    let message = format!("Nothing was stored. There is a run of this name already: {}.", names.join(", "));
    Error::Conflict { code: "name-taken", message, members: Map::from_iter([("taken".to_owned(), json!(taken))]) }
}
