//! The data set as downloads, in pieces from the store, however many rows there are.

use crate::export::dataset;
use crate::export::filters::FilterWords;
use crate::export::manifest::Description;
use crate::export::{self, ExportError, Format, Snapshot, forms};
use crate::ids::RunId;
use crate::registry::Registry;
use crate::store::Filter;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::state::AppState;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};
use futures::{Stream, TryStreamExt};
use serde::Deserialize;
use serde_json::{Value, json};

/// Query of an export: the filters, and what the researcher says about the data set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    #[serde(flatten)]
    pub(crate) filter: FilterWords,
    /// Name of the data set.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licence.
    pub(crate) licence: String,
}

impl Wanted {
    fn about(&self) -> Result<Description> {
        let default = Description::default();
        let or = |text: &str, default: String| if text.trim().is_empty() { default } else { text.trim().to_owned() };
        let about = Description {
            name: or(&self.name, default.name),
            version: or(&self.version, default.version),
            licence: Some(self.licence.trim().to_owned()),
        };
        about.check().map_err(|sentence| Error::change("data-set-name", sentence))
    }
}

/// The filter of its words.
pub(crate) fn filter_of(words: &FilterWords) -> Result<Filter> {
    words.read().map_err(|sentence| Error::change("filter", sentence))
}

/// Errors before the first byte.
fn early(error: ExportError) -> Error {
    match error {
        ExportError::Store(error) => error.into(),
        other => Error::Panic(format!("an export cannot begin: {other}")),
    }
}

async fn snapshot(state: &AppState, filter: Filter) -> Result<Snapshot> {
    Snapshot::take(&state.store, Registry::new(state.families), filter).await.map_err(early)
}

/// `GET /runs/{run}/export.jsonl`.
pub(crate) async fn jsonl(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    of_run(&state, run, Format::Jsonl, wanted).await
}

/// `GET /runs/{run}/export.csv`.
pub(crate) async fn csv(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    of_run(&state, run, Format::Csv, wanted).await
}

/// `GET /runs/{run}/export.schema.json`: what the columns are, for programs.
pub(crate) async fn schema(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<Response> {
    state.store.run(&run).await?;
    Ok(schema_file())
}

fn schema_file() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"iliad-schema.json\""),
    ];
    (headers, export::schema::text()).into_response()
}

async fn of_run(state: &AppState, run: RunId, format: Format, wanted: Wanted) -> Result<Response> {
    let filter = Filter { run: Some(run.clone()), ..filter_of(&wanted.filter)? };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = run.chars().map(plain).collect();
    descriptions(snapshot(state, filter).await?, format, &name)
}

fn descriptions(snapshot: Snapshot, format: Format, name: &str) -> Result<Response> {
    let total = snapshot.descriptions();
    let pieces = export::chunks(snapshot, format).map_ok(|(bytes, _)| bytes);
    Ok(download(format.media_type(), &format!("{name}.{}", format.extension()), Some(total), pieces))
}

/// A download in pieces. An error in the middle breaks the connection, so that a cut file is never taken for a whole one.
fn download(
    media_type: &str,
    name: &str,
    rows: Option<u64>,
    pieces: impl Stream<Item = Result<Vec<u8>, ExportError>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    let pieces = pieces.inspect_err(|error| tracing::error!(%error, "an export broke off"));
    let total = rows.map(|rows| [(HeaderName::from_static("x-total-count"), rows.to_string())]);
    (headers, total, Body::from_stream(pieces)).into_response()
}

/// `GET /export/count`: how many descriptions a filter leaves.
pub(crate) async fn count(
    _: Steering,
    State(state): State<AppState>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>> {
    let extent = state.store.export_extent(&filter_of(&wanted.filter)?).await?;
    Ok(Json(json!({ "descriptions": extent.rows })))
}

/// `GET /export/{file}`: `descriptions.jsonl`, `descriptions.csv`, `descriptions.parquet`, `dataset.tar`, `schema.json`, and the
/// forms to train on, such as `pairs.jsonl`.
pub(crate) async fn file(
    _: Steering,
    State(state): State<AppState>,
    Path(file): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    if file == "schema.json" {
        return Ok(schema_file());
    }
    let (filter, about) = (filter_of(&wanted.filter)?, wanted.about()?);
    let (stem, ending) = file.split_once('.').unwrap_or((&file, ""));
    match (stem, ending, Format::named(ending)) {
        ("descriptions", _, Some(format)) => descriptions(snapshot(&state, filter).await?, format, &about.stem()),
        ("dataset", "tar", _) => {
            let snapshot = snapshot(&state, filter).await?;
            let (total, folder) = (snapshot.descriptions(), about.stem());
            let name = format!("{folder}.tar");
            // Nothing is made before somebody takes the first piece.
            let pieces = futures::stream::once(async move {
                Ok::<_, ExportError>(export::tar(dataset::pieces(snapshot, about), folder))
            });
            Ok(download("application/x-tar", &name, Some(total), pieces.try_flatten()))
        }
        (form, ending, _) => {
            let form = forms::named(Registry::new(state.families), form)
                .filter(|form| ending == if form.list { "json" } else { "jsonl" })
                .ok_or(Error::NotFound("the file"))?;
            let name = format!("{}-{}.{ending}", about.stem(), form.name);
            let media_type = if form.list { "application/json" } else { Format::Jsonl.media_type() };
            Ok(download(media_type, &name, None, forms::examples(snapshot(&state, filter).await?, form)))
        }
    }
}
