//! The data set as downloads, in pieces from the store, however many rows there are.

use crate::export::dataset;
use crate::export::filters::FilterWords;
use crate::export::manifest::Description;
use crate::export::{self, ExportError, Format, Progress, Snapshot, forms};
use crate::family::dataset::TrainingForm;
use crate::ids::RunId;
use crate::registry::Registry;
use crate::store::Filter;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::state::AppState;
use crate::web::state::work::{Step, Unit};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures::{Stream, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use utoipa::{IntoParams, ToSchema};

/// Query of an export: the filters, and what the researcher says about the data set.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    #[serde(flatten)]
    #[param(ignore)]
    pub(crate) filter: FilterWords,
    /// Name of the data set.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licence: an SPDX identifier, or words.
    pub(crate) licence: String,
    /// A key that a page draws, to ask how far its download has come.
    #[param(ignore)]
    pub(crate) ticket: String,
}

impl Wanted {
    /// The name, version and licence that the researcher gives the data set.
    pub(crate) fn about(&self) -> Result<Description> {
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
pub(crate) fn early(error: ExportError) -> Error {
    match error {
        ExportError::Store(error) => error.into(),
        other => Error::Panic(format!("an export cannot begin: {other}")),
    }
}

pub(crate) async fn snapshot(state: &AppState, filter: Filter) -> Result<Snapshot> {
    Snapshot::take(&state.store, Registry::new(state.families), filter).await.map_err(early)
}

/// A file of the data set, by its name in addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DataFile {
    /// `schema.json`.
    Schema,
    /// `descriptions.jsonl`, `descriptions.csv` or `descriptions.parquet`.
    Descriptions(Format),
    /// `dataset.tar`.
    Dataset,
    /// A form to train on, such as `pairs.jsonl`.
    Form(TrainingForm),
}

impl DataFile {
    /// The file of a name.
    pub(crate) fn named(state: &AppState, file: &str) -> Result<DataFile> {
        let (stem, ending) = file.split_once('.').unwrap_or((file, ""));
        Ok(match (stem, ending, Format::named(ending)) {
            ("schema", "json", _) => DataFile::Schema,
            ("dataset", "tar", _) => DataFile::Dataset,
            ("descriptions", _, Some(format)) => DataFile::Descriptions(format),
            _ => DataFile::Form(
                forms::named(Registry::new(state.families), stem)
                    .filter(|form| ending == form_ending(form))
                    .ok_or(Error::NotFound("the file"))?,
            ),
        })
    }

    /// The name under which it is saved.
    pub(crate) fn saved_as(self, about: &Description) -> String {
        let stem = about.stem();
        match self {
            DataFile::Schema => "iliad-schema.json".to_owned(),
            DataFile::Descriptions(format) => format!("{stem}.{}", format.extension()),
            DataFile::Dataset => format!("{stem}.tar"),
            DataFile::Form(form) => format!("{stem}-{}.{}", form.name, form_ending(&form)),
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            DataFile::Schema => "application/json",
            DataFile::Descriptions(format) => format.media_type(),
            DataFile::Dataset => "application/x-tar",
            DataFile::Form(form) if form.list => "application/json",
            DataFile::Form(_) => Format::Jsonl.media_type(),
        }
    }
}

/// The ending of a form's file.
pub(crate) fn form_ending(form: &TrainingForm) -> &'static str {
    if form.list { "json" } else { "jsonl" }
}

/// Bytes of a file, with how far they go.
type Pieces = Pin<Box<dyn Stream<Item = Result<(Vec<u8>, Progress), ExportError>> + Send>>;

/// The pieces of a file; nothing is read before somebody takes the first one.
fn pieces(snapshot: Snapshot, file: DataFile, about: Description) -> Pieces {
    match file {
        DataFile::Schema => Box::pin(futures::stream::empty()),
        DataFile::Descriptions(format) => Box::pin(export::chunks(snapshot, format)),
        DataFile::Form(form) => Box::pin(forms::examples(snapshot, form)),
        DataFile::Dataset => {
            let (folder, rows) = (about.stem(), snapshot.descriptions());
            let begun = futures::stream::once(async move {
                Ok::<_, ExportError>(export::tar(dataset::pieces(snapshot, about), folder, rows))
            });
            Box::pin(begun.try_flatten())
        }
    }
}

/// Gives a file as a download in pieces. An error in the middle breaks the connection, so that a cut file is never taken for a whole
/// one.
pub(crate) async fn download(
    state: &AppState,
    file: DataFile,
    filter: Filter,
    about: Description,
    ticket: &str,
) -> Result<Response> {
    let name = file.saved_as(&about);
    let headers = [
        (header::CONTENT_TYPE, file.media_type().to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    if let DataFile::Schema = file {
        return Ok((headers, export::schema::text()).into_response());
    }
    let snapshot = snapshot(state, filter).await?;
    let rows = snapshot.descriptions();
    let following = state.works.follow(ticket, Step { step: "Handing over", unit: Unit::Rows, all: rows });
    let told =
        futures::stream::try_unfold((pieces(snapshot, file, about), following), |(mut pieces, following)| async {
            let Some((bytes, progress)) = pieces.try_next().await? else {
                following.whole();
                return Ok(None);
            };
            following.done(progress.done);
            Ok(Some((bytes, (pieces, following))))
        });
    let told = told.inspect_err(|error: &ExportError| tracing::error!(%error, "an export broke off"));
    // The number of a form's examples is known at its end only.
    let counted = !matches!(file, DataFile::Form(_));
    let total = counted.then(|| [(HeaderName::from_static("x-total-count"), rows.to_string())]);
    Ok((headers, total, Body::from_stream(told)).into_response())
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
    download(&state, DataFile::Schema, Filter::default(), Description::default(), "").await
}

async fn of_run(state: &AppState, run: RunId, format: Format, wanted: Wanted) -> Result<Response> {
    let filter = Filter { run: Some(run.clone()), ..filter_of(&wanted.filter)? };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = run.chars().map(plain).collect();
    let mut response = download(state, DataFile::Descriptions(format), filter, Description::default(), "").await?;
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.extension());
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// The number of descriptions that a filter leaves.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExportCount {
    /// Rows of descriptions.
    descriptions: u64,
}

/// `GET /api/v1/export/count`: how many descriptions a filter leaves.
#[utoipa::path(get, path = "/export/count", operation_id = "count_export", tag = "export", description = "",
    summary = "How many descriptions a filter leaves", params(FilterWords),
    responses((status = 200, body = ExportCount, description = "The number of rows")))]
pub(crate) async fn count(
    _: Steering,
    State(state): State<AppState>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<ExportCount>> {
    let extent = state.store.export_extent(&filter_of(&wanted.filter)?).await?;
    Ok(Json(ExportCount { descriptions: extent.rows }))
}

/// `GET /api/v1/export/{file}` and `GET /export/{file}`: a file of the data set.
#[utoipa::path(get, path = "/export/{file}", operation_id = "export_data", tag = "export",
    summary = "The data set as a file, streamed",
    description = "Files are `descriptions.jsonl`, `descriptions.csv`, `descriptions.parquet`, `dataset.tar` (a folder that \
        Hugging Face's `datasets` opens, with its manifest), `schema.json` (the types of the columns) and the forms to train on: \
        `pairs.jsonl`, `regex.jsonl` and `r2r.json`. A file is of the moment at which it begins, and in memory only in part. A \
        connection that ends early has broken off.",
    params(("file" = String, Path, description = "Name of the file"), FilterWords, Wanted),
    responses((status = 200, description = "The file",
        headers(("x-total-count" = u64, description = "Rows of descriptions; forms to train on have none")),
        content((String = "application/x-ndjson"), (String = "text/csv"), (String = "application/vnd.apache.parquet"),
            (String = "application/x-tar"), (Object = "application/json")))))]
pub(crate) async fn file(
    _: Steering,
    State(state): State<AppState>,
    Path(file): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    let file = DataFile::named(&state, &file)?;
    download(&state, file, filter_of(&wanted.filter)?, wanted.about()?, &wanted.ticket).await
}
