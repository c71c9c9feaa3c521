//! The dataset as a file: JSON lines or CSV, streamed page by page in constant memory.
//!
//! One row per answer, in order of its key; superseded, skipped and simulated ones included, so that a reader of the
//! file sees everything and decides what to leave out; or, where that is asked for, only what stands. Columns and their meaning: `docs/export.md`.
//!
//! **Nothing is altered.** A description that begins with `=` or `@` is written as it was typed: putting a quote mark
//! in front, as some exporters do for spreadsheets' sake, would falsify the dataset. Every CSV field stands in quotes;
//! spreadsheet users import the file with all columns as text.

mod flags;
pub mod schema;

use self::flags::Flags;
use self::schema::COLUMNS;
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::output::json;
use crate::protocol::Medium;
use crate::run::Source;
use crate::store::{AnswerKind, ExportRow, Extent, Store, StoreError};
use crate::study::ReviewState;
use futures::{Stream, StreamExt, pin_mut, stream};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Rows read and written at once.
const PAGE: u32 = 500;

/// Format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line (UTF-8, `\n`).
    Jsonl,
    /// A header and one record a row (RFC 4180, UTF-8 without a byte-order mark; the view is JSON in one field).
    Csv,
}

impl Format {
    /// Media type for an HTTP answer.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Jsonl => "application/x-ndjson; charset=utf-8",
            Format::Csv => "text/csv; charset=utf-8; header=present",
        }
    }

    /// Ending of a file name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
        }
    }
}

/// Which rows an export has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// All of them.
    #[default]
    All,
    /// Only answers that stand ([`ExportRow::stands`]).
    Standing,
}

/// How far an export has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows written.
    pub done: u64,
    /// Rows in all.
    pub rows: u64,
}

/// Why an export broke off.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row could not be encoded.
    #[error("row {answer} cannot be written: {cause}")]
    Row {
        /// Key of the answer.
        answer: AnswerId,
        /// Why.
        cause: String,
    },
    /// The file or connection could not be written.
    #[error("writing failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Writes the dataset of a run (`None`: of all runs) into `sink` and flushes it. `progress` is told after every page.
/// How many rows were written: of all rows as many as [`Store::export_count`] said when it began.
pub async fn write(
    store: &Store,
    run: Option<&RunId>,
    format: Format,
    rows: Rows,
    sink: &mut (impl AsyncWrite + Unpin + ?Sized),
    mut progress: impl FnMut(Progress),
) -> Result<u64, ExportError> {
    let chunks = chunks(store.clone(), run.cloned(), format, rows);
    pin_mut!(chunks);
    let mut done = 0;
    while let Some(chunk) = chunks.next().await {
        let (bytes, now) = chunk?;
        sink.write_all(&bytes).await?;
        progress(now);
        done = now.done;
    }
    sink.flush().await?;
    Ok(done)
}

/// Gives the file in pieces, each with how far it goes: for an HTTP body. It asks the store for the next page only when
/// the piece before it was taken.
pub fn chunks(
    store: Store,
    run: Option<RunId>,
    format: Format,
    which: Rows,
) -> impl Stream<Item = Result<(Vec<u8>, Progress), ExportError>> + Send {
    /// Where the walk is: `extent` is unknown until the first piece is asked for.
    struct Walk {
        store: Store,
        run: Option<RunId>,
        extent: Option<Extent>,
        after: AnswerId,
        done: u64,
        flags: Flags,
    }
    let start = Walk { store, run, extent: None, after: AnswerId::default(), done: 0, flags: Flags::default() };
    stream::try_unfold(start, move |mut walk| async move {
        let (extent, first) = match walk.extent {
            Some(extent) => (extent, false),
            None => {
                let mut extent = walk.store.export_extent(walk.run.as_ref()).await?;
                if which == Rows::Standing {
                    extent.rows = walk.store.standing_count(walk.run.as_ref(), extent.last).await?;
                }
                (extent, true)
            }
        };
        walk.extent = Some(extent);
        let mut rows = Vec::new();
        if walk.after < extent.last {
            rows = walk.store.export_page(walk.run.as_ref(), walk.after, PAGE).await?;
            rows.retain(|row| row.answer <= extent.last);
        }
        let ended = rows.is_empty();
        walk.after = rows.last().map_or(extent.last, |row| row.answer);
        if ended && !first {
            return Ok(None);
        }
        if which == Rows::Standing {
            rows.retain(ExportRow::stands);
        }
        walk.flags.fill(&walk.store, &mut rows).await?;
        walk.done += rows.len() as u64;
        let bytes = match format {
            Format::Jsonl => jsonl(&rows)?,
            Format::Csv => csv_records(&rows, first)?,
        };
        Ok(Some(((bytes, Progress { done: walk.done, rows: extent.rows }), walk)))
    })
}

fn failed(answer: AnswerId) -> impl Fn(String) -> ExportError {
    move |cause| ExportError::Row { answer, cause }
}

fn jsonl(rows: &[ExportRow]) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    for row in rows {
        json::write(&mut bytes, row).map_err(|e| failed(row.answer)(e.to_string()))?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// A row as CSV has it: the same names and words as in JSON; `view` and `quality_flags` are JSON text.
#[derive(Serialize)]
struct Record<'a> {
    run: &'a RunId,
    family: &'a str,
    answer: AnswerId,
    episode: u64,
    source: Source,
    teacher: Option<TeacherId>,
    request: &'a str,
    execution: &'a str,
    view: String,
    kind: AnswerKind,
    text: &'a str,
    medium: Medium,
    demonstration: Option<String>,
    rating: Option<f64>,
    request_shown: bool,
    policy_update: u64,
    used_in_update: Option<u64>,
    supersedes: Option<AnswerId>,
    superseded_by: Option<AnswerId>,
    #[serde(with = "time::serde::rfc3339::option")]
    shown_at: Option<OffsetDateTime>,
    active_ms: Option<u64>,
    idle_ms: Option<u64>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    withdrawn_at: Option<OffsetDateTime>,
    understood_before: Option<bool>,
    understood_after: Option<bool>,
    fulfilled: bool,
    preview_arm: Option<bool>,
    preview_shown: bool,
    first_text: Option<&'a str>,
    retracted: bool,
    review_state: Option<ReviewState>,
    adjudicated: Option<&'a str>,
    quality_flags: String,
}

fn csv_records(rows: &[ExportRow], header: bool) -> Result<Vec<u8>, ExportError> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .quote_style(csv::QuoteStyle::Always)
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    if header {
        writer
            .write_record(COLUMNS.map(|column| column.name))
            .map_err(|e| failed(AnswerId::default())(e.to_string()))?;
    }
    for row in rows {
        let record = Record {
            run: &row.run,
            family: &row.family,
            answer: row.answer,
            episode: row.episode,
            source: row.source,
            teacher: row.teacher,
            request: &row.request,
            execution: &row.execution,
            view: json::line(&row.view).map_err(|e| failed(row.answer)(e.to_string()))?,
            kind: row.kind,
            text: &row.text,
            medium: row.medium,
            demonstration: match &row.demonstration {
                Some(shown) => Some(json::line(shown).map_err(|e| failed(row.answer)(e.to_string()))?),
                None => None,
            },
            rating: row.rating,
            request_shown: row.request_shown,
            policy_update: row.policy_update,
            used_in_update: row.used_in_update,
            supersedes: row.supersedes,
            superseded_by: row.superseded_by,
            shown_at: row.shown_at,
            active_ms: row.active_ms,
            idle_ms: row.idle_ms,
            created_at: row.created_at,
            withdrawn_at: row.withdrawn_at,
            understood_before: row.understood_before,
            understood_after: row.understood_after,
            fulfilled: row.fulfilled,
            preview_arm: row.preview_arm,
            preview_shown: row.preview_shown,
            first_text: row.first_text.as_deref(),
            retracted: row.retracted,
            review_state: row.review_state,
            adjudicated: row.adjudicated.as_deref(),
            quality_flags: json::line(&row.quality_flags).map_err(|e| failed(row.answer)(e.to_string()))?,
        };
        writer.serialize(record).map_err(|e| failed(row.answer)(e.to_string()))?;
    }
    writer.into_inner().map_err(|e| failed(AnswerId::default())(e.to_string()))
}
