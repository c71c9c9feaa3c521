//! Rows of descriptions from files: JSON lines, CSV and Parquet, one after the other.

use super::NEEDED;
use super::lines::{self, Line};
use crate::export::schema::DESCRIPTIONS;
use crate::export::table::{Cell, Column, Kind, Row, from_field, from_json};
use crate::output::json;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use time::OffsetDateTime;

/// Most bytes of a line of JSON, and of a record of CSV.
const LONGEST_ROW: u64 = 4 << 20;

/// Why a file cannot be read. The message names it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct ReadError {
    file: PathBuf,
    reason: String,
}

impl ReadError {
    pub(super) fn new(file: &Path, reason: impl ToString) -> ReadError {
        ReadError { file: file.to_owned(), reason: reason.to_string() }
    }

    /// Why, without the file.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The files of descriptions at a path, and the manifest that belongs to them, if there is one.
pub(super) fn files(path: &Path) -> Result<(Vec<PathBuf>, Option<PathBuf>), ReadError> {
    let found = std::fs::metadata(path).map_err(|e| ReadError::new(path, e))?;
    let there = |manifest: PathBuf| manifest.is_file().then_some(manifest);
    if !found.is_dir() {
        let mut manifest = path.as_os_str().to_owned();
        manifest.push(".manifest.json");
        return Ok((vec![path.to_owned()], there(manifest.into())));
    }
    let data = path.join("data");
    let entries = std::fs::read_dir(&data).map_err(|e| ReadError::new(&data, e))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(|e| ReadError::new(&data, e))?.path();
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("train-") && name.ends_with(".parquet") {
            files.push(file);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(ReadError::new(
            path,
            "the folder has no data/train-*.parquet; name a file, or the folder of a data set",
        )),
        false => Ok((files, there(path.join("manifest.json")))),
    }
}

/// A row with its number, or why it is none.
type Numbered = (u64, Result<Row, String>);

/// The rows of a file.
pub(super) struct Rows {
    inner: Inner,
    number: u64,
    unknown: BTreeSet<String>,
    /// Whether the file can be read no further: its reader would tell the same error for ever.
    broken: bool,
    /// Bytes of the file.
    bytes: u64,
    /// Bytes that its reader has taken.
    taken: Arc<AtomicU64>,
}

/// A file that counts what is read of it.
struct Counted {
    file: File,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

enum Inner {
    /// The file, until it could not be read.
    Lines(Option<BufReader<Counted>>),
    Records(csv::StringRecordsIntoIter<Counted>, Vec<Option<usize>>),
    /// The rows, and how many there are.
    Parquet(Box<RowIter<'static>>, u64),
}

/// Opens a file by its ending.
pub(super) fn rows(path: &Path) -> Result<Rows, ReadError> {
    let failed = |e: &dyn std::fmt::Display| ReadError::new(path, e.to_string());
    let open = || File::open(path).map_err(|e| failed(&e));
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let taken = Arc::new(AtomicU64::new(0));
    let counted = || Ok(Counted { file: open()?, taken: taken.clone() });
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    let mut unknown = BTreeSet::new();
    let inner = match ending.as_str() {
        "jsonl" | "ndjson" | "json" => Inner::Lines(Some(BufReader::new(counted()?))),
        "csv" => {
            let mut reader = csv::ReaderBuilder::new().from_reader(counted()?);
            let headers = reader.headers().map_err(|e| failed(&e))?.clone();
            let names: Vec<&str> = headers.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
            let places = DESCRIPTIONS.iter().map(|column| names.iter().position(|name| *name == column.name)).collect();
            unknown.extend(names.iter().filter(|name| !is_known(name)).map(|name| (*name).to_owned()));
            Inner::Records(reader.into_records(), places)
        }
        "parquet" => {
            let reader = open_parquet(open()?).map_err(|e| failed(&e))?;
            let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
            unknown.extend(fields.iter().map(|field| field.name()).filter(|name| !is_known(name)).map(str::to_owned));
            let rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or_default();
            Inner::Parquet(Box::new(RowIter::from_file_into(Box::new(reader))), rows)
        }
        _ => return Err(failed(&"name a file that ends in .jsonl, .csv or .parquet, or the folder of a data set")),
    };
    Ok(Rows { inner, number: 0, unknown, broken: false, bytes, taken })
}

fn is_known(name: &str) -> bool {
    DESCRIPTIONS.iter().any(|column| column.name == name)
}

/// The column as files by hand may leave it out.
fn lenient(column: &Column) -> Column {
    Column { optional: !NEEDED.contains(&column.name), ..*column }
}

impl Rows {
    /// Bytes of the file whose rows are read, as far as its reader tells. Parquet goes by rows.
    pub(super) fn bytes_read(&self) -> u64 {
        match &self.inner {
            Inner::Lines(_) | Inner::Records(..) => self.taken.load(Ordering::Relaxed).min(self.bytes),
            Inner::Parquet(_, rows) => {
                let share = self.number.min(*rows) as f64 / (*rows).max(1) as f64;
                (share * self.bytes as f64) as u64
            }
        }
    }

    /// Names of columns that were met and are not known.
    pub(super) fn unknown(self) -> BTreeSet<String> {
        self.unknown
    }

    fn line(&mut self, line: &[u8]) -> Result<Row, String> {
        let value: Value = serde_json::from_slice(line).map_err(|e| format!("it is no JSON: {e}"))?;
        let Value::Object(object) = value else { return Err("it is no JSON object".into()) };
        self.unknown.extend(object.keys().filter(|name| !is_known(name)).cloned());
        let cell = |column: &Column| from_json(&lenient(column), object.get(column.name).unwrap_or(&Value::Null));
        DESCRIPTIONS.iter().map(cell).collect()
    }
}

impl Iterator for Rows {
    type Item = Numbered;

    fn next(&mut self) -> Option<Numbered> {
        while !self.broken {
            self.number += 1;
            let row = match &mut self.inner {
                Inner::Lines(file) => {
                    let mut line = Vec::new();
                    match lines::next(file.as_mut()?, LONGEST_ROW, &mut line) {
                        Ok(Line::Whole) => {}
                        Ok(Line::End) => return None,
                        Ok(Line::TooLong) => return Some((self.number, Err(too_long()))),
                        Err(e) => {
                            *file = None;
                            return Some((self.number, Err(format!("it cannot be read: {e}"))));
                        }
                    }
                    let line = if self.number == 1 { json::unmarked(&line).to_vec() } else { line };
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    self.line(&line)
                }
                Inner::Records(records, places) => match records.next()? {
                    Ok(record) if record.as_slice().len() as u64 > LONGEST_ROW => Err(too_long()),
                    Ok(record) => {
                        let field = |at: &Option<usize>| at.and_then(|at| record.get(at)).unwrap_or_default();
                        let cells = DESCRIPTIONS.iter().zip(places.iter());
                        cells.map(|(column, at)| from_field(&lenient(column), field(at))).collect()
                    }
                    Err(e) => {
                        self.broken = e.is_io_error();
                        Err(format!("it cannot be read: {e}"))
                    }
                },
                Inner::Parquet(rows, _) => match or_damaged(|| rows.next().transpose().map_err(|e| e.to_string()))
                    .transpose()?
                {
                    Ok(row) => {
                        let found: Vec<(&String, &Field)> = row.get_column_iter().collect();
                        let cell = |column: &Column| {
                            let field = found.iter().find(|(name, _)| *name == column.name).map(|(_, field)| *field);
                            from_parquet(&lenient(column), field.unwrap_or(&Field::Null))
                        };
                        DESCRIPTIONS.iter().map(cell).collect()
                    }
                    Err(e) => {
                        self.broken = true;
                        Err(format!("it cannot be read: {e}"))
                    }
                },
            };
            return Some((self.number, row));
        }
        None
    }
}

/// The reader of a Parquet file.
pub(super) fn open_parquet(file: File) -> Result<SerializedFileReader<File>, String> {
    or_damaged(|| SerializedFileReader::new(file).map_err(|e| e.to_string()))
}

/// Asks the reader of Parquet files. It panics where some files are damaged, and that is one more reason why a file cannot be
/// read; the reader is not used again.
fn or_damaged<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(|_| Err("it is damaged".to_owned()))
}

fn too_long() -> String {
    format!("it has more than {} MiB", LONGEST_ROW >> 20)
}

/// A cell from a value of a Parquet file.
fn from_parquet(column: &Column, field: &Field) -> Result<Cell, String> {
    let wrong = || Err(format!("`{}` has another type in this file", column.name));
    let nanos = |nanos: i128| OffsetDateTime::from_unix_timestamp_nanos(nanos).map(Cell::Time);
    match (column.kind, field) {
        (_, Field::Null) => from_json(column, &Value::Null),
        (Kind::Json, Field::Str(text)) => match serde_json::from_str(text) {
            Ok(value) => from_json(column, &value),
            Err(e) => Err(format!("`{}` is no JSON: {e}", column.name)),
        },
        (_, Field::Str(text)) => from_json(column, &Value::String(text.clone())),
        (Kind::Time, Field::Long(time)) => nanos(i128::from(*time)).or_else(|_| wrong()),
        (Kind::Time, Field::TimestampMicros(time)) => nanos(i128::from(*time) * 1_000).or_else(|_| wrong()),
        (Kind::Time, Field::TimestampMillis(time)) => nanos(i128::from(*time) * 1_000_000).or_else(|_| wrong()),
        (_, Field::Long(number)) => from_json(column, &Value::from(*number)),
        (_, Field::Int(number)) => from_json(column, &Value::from(*number)),
        (_, Field::Double(number)) => from_json(column, &Value::from(*number)),
        (_, Field::Bool(value)) => from_json(column, &Value::Bool(*value)),
        (Kind::Words | Kind::Integers, Field::ListInternal(list)) => {
            let values = list.elements().iter().map(|element| match element {
                Field::Str(text) => Value::String(text.clone()),
                Field::Long(number) => Value::from(*number),
                Field::Int(number) => Value::from(*number),
                _ => Value::Null,
            });
            from_json(column, &values.collect())
        }
        _ => wrong(),
    }
}
