//! The data set as files: JSON lines, CSV, Parquet, and a folder for Hugging Face's `datasets`, all in constant memory.
//!
//! A file is of one moment of the store ([`Snapshot`]) and has one row an answer, in order of its key; superseded, skipped and
//! simulated ones included unless a filter leaves them out. All formats write the same cells ([`table`]). Columns and their
//! meaning: `docs/export.md`.
//!
//! **Nothing is altered**, with one exception that can be undone: in CSV, and only there, a text that a spreadsheet would execute
//! gets an apostrophe before it ([`crate::output::spreadsheet`]).

mod archive;
mod card;
pub mod dataset;
pub mod filters;
mod flags;
pub mod forms;
pub mod manifest;
mod parquet_file;
pub mod schema;
pub mod table;
mod walk;

pub use archive::tar;
pub use walk::{Snapshot, Table, config_hash};

use crate::store::StoreError;
use futures::{Stream, stream};
use manifest::{Description, FileEntry, Manifest};
use parquet_file::ParquetFile;
use serde::{Deserialize, Serialize};
use table::Row;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use walk::Place;

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line (UTF-8, `\n`).
    Jsonl,
    /// A header and one record a row (RFC 4180, UTF-8 without a byte-order mark; JSON is text in one field).
    Csv,
    /// Parquet, typed and compressed with zstd.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Jsonl, Format::Csv, Format::Parquet];

    /// Media type for an HTTP answer.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Jsonl => "application/x-ndjson; charset=utf-8",
            Format::Csv => "text/csv; charset=utf-8; header=present",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Ending of a file name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }

    /// The format of an ending.
    pub fn named(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|format| format.extension() == name)
    }
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
    /// A value could not be encoded.
    #[error("a row cannot be written: {0}")]
    Encoding(String),
    /// A Parquet file could not be made.
    #[error("a Parquet file cannot be written: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The file or connection could not be written.
    #[error("writing failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Writes descriptions into `sink` and flushes it. `progress` is told after every page. How many rows were written: as many as
/// [`Snapshot::descriptions`] said.
pub async fn write(
    snapshot: Snapshot,
    format: Format,
    sink: &mut (impl AsyncWrite + Unpin + ?Sized),
    mut progress: impl FnMut(Progress),
) -> Result<u64, ExportError> {
    let mut file = DescriptionsFile::new(snapshot, format)?;
    let mut done = 0;
    while let Some((bytes, now)) = file.next().await? {
        sink.write_all(&bytes).await?;
        progress(now);
        done = now.done;
    }
    sink.flush().await?;
    Ok(done)
}

/// Writes rows of descriptions in a format.
enum Encoder {
    Jsonl,
    /// Whether the header is still to be written.
    Csv(bool),
    Parquet(Box<ParquetFile>),
    Ended,
}

impl Encoder {
    fn begin(format: Format) -> Result<Encoder, ExportError> {
        Ok(match format {
            Format::Jsonl => Encoder::Jsonl,
            Format::Csv => Encoder::Csv(true),
            Format::Parquet => {
                let table = Table::Descriptions;
                let file = ParquetFile::begin(table.columns(), table.name(), schema::SCHEMA_VERSION)?;
                Encoder::Parquet(Box::new(file))
            }
        })
    }

    fn add(&mut self, rows: Vec<Row>) -> Result<Vec<u8>, ExportError> {
        let columns = Table::Descriptions.columns();
        match self {
            Encoder::Jsonl => table::json_lines(columns, &rows).map_err(ExportError::Encoding),
            Encoder::Csv(header) => {
                let header = std::mem::take(header);
                table::csv_records(columns, &rows, header).map_err(ExportError::Encoding)
            }
            Encoder::Parquet(file) => Ok(file.add(rows)?),
            Encoder::Ended => Ok(Vec::new()),
        }
    }

    /// The end of the file.
    fn finish(self) -> Result<Vec<u8>, ExportError> {
        match self {
            // A table without rows has a header all the same.
            Encoder::Csv(true) => {
                table::csv_records(Table::Descriptions.columns(), &[], true).map_err(ExportError::Encoding)
            }
            Encoder::Parquet(file) => Ok(file.finish()?),
            _ => Ok(Vec::new()),
        }
    }
}

/// A file of descriptions that is being made.
pub struct DescriptionsFile {
    snapshot: Snapshot,
    place: Place,
    encoder: Encoder,
    done: u64,
}

impl DescriptionsFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When the format cannot begin one.
    pub fn new(snapshot: Snapshot, format: Format) -> Result<DescriptionsFile, ExportError> {
        let place = Place::begin(Table::Descriptions);
        Ok(DescriptionsFile { snapshot, place, encoder: Encoder::begin(format)?, done: 0 })
    }

    /// The next bytes, with how far they go; none at the end. It asks the store for the next page only now.
    ///
    /// # Errors
    /// When the store cannot be read, or a row cannot be written.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Progress)>, ExportError> {
        if matches!(self.encoder, Encoder::Ended) {
            return Ok(None);
        }
        let bytes = match self.snapshot.next(&mut self.place).await? {
            Some(rows) => {
                self.done += rows.len() as u64;
                self.encoder.add(rows)?
            }
            None => {
                self.snapshot.end().await;
                std::mem::replace(&mut self.encoder, Encoder::Ended).finish()?
            }
        };
        Ok(Some((bytes, Progress { done: self.done, rows: self.snapshot.descriptions() })))
    }

    /// The manifest of the file, known at its end.
    pub fn manifest(&self, about: Description, path: String, bytes: u64, sha256: String) -> Manifest {
        let table = Some(Table::Descriptions.name().to_owned());
        Manifest::new(&self.snapshot, about, vec![FileEntry { path, table, rows: Some(self.done), bytes, sha256 }])
    }
}

/// Gives the file of descriptions in pieces, for an HTTP body.
pub fn chunks(
    snapshot: Snapshot,
    format: Format,
) -> impl Stream<Item = Result<(Vec<u8>, Progress), ExportError>> + Send {
    stream::try_unfold(None, {
        let mut snapshot = Some(snapshot);
        move |file: Option<DescriptionsFile>| {
            let begun = snapshot.take();
            async move {
                let mut file = match (file, begun) {
                    (Some(file), _) => file,
                    (None, Some(snapshot)) => DescriptionsFile::new(snapshot, format)?,
                    (None, None) => return Ok(None),
                };
                Ok(file.next().await?.map(|chunk| (chunk, Some(file))))
            }
        }
    })
}
