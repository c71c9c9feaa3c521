//! Tables of the data set: columns with types, and cells. Every format writes and reads these, so that all of them hold the same.

use crate::output::{json, spreadsheet};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number of 64 bits.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A time (RFC 3339, UTC, up to nanoseconds).
    Time,
    /// JSON whose members depend on the family.
    Json,
    /// A list of words.
    Words,
    /// A list of whole numbers.
    Integers,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name, also of the JSON member.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Whether it may be empty (`null` in JSON).
    pub optional: bool,
    /// Its meaning.
    pub about: &'static str,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Text, or a word.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A time.
    Time(OffsetDateTime),
    /// JSON.
    Json(Value),
    /// A list of words.
    Words(Vec<String>),
    /// A list of whole numbers.
    Integers(Vec<i64>),
}

/// A row: a cell for each column of its table.
pub type Row = Vec<Cell>;

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Boolean(value)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Integer(number)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        // Counts of the database are 64-bit numbers with a sign.
        Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number)
    }
}

impl From<OffsetDateTime> for Cell {
    fn from(time: OffsetDateTime) -> Cell {
        Cell::Time(time)
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        if value.is_null() { Cell::Empty } else { Cell::Json(value) }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Empty, Into::into)
    }
}

fn rfc3339(time: OffsetDateTime) -> String {
    // Only years of more than four digits cannot be written, and nanoseconds of 64 bits end in 2262.
    time.to_offset(time::UtcOffset::UTC).format(&Rfc3339).unwrap_or_default()
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Empty => serializer.serialize_none(),
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Integer(number) => serializer.serialize_i64(*number),
            Cell::Number(number) => serializer.serialize_f64(*number),
            Cell::Boolean(value) => serializer.serialize_bool(*value),
            Cell::Time(time) => serializer.serialize_str(&rfc3339(*time)),
            Cell::Json(value) => value.serialize(serializer),
            Cell::Words(words) => {
                let mut list = serializer.serialize_seq(Some(words.len()))?;
                words.iter().try_for_each(|word| list.serialize_element(word))?;
                list.end()
            }
            Cell::Integers(numbers) => {
                let mut list = serializer.serialize_seq(Some(numbers.len()))?;
                numbers.iter().try_for_each(|number| list.serialize_element(number))?;
                list.end()
            }
        }
    }
}

impl Cell {
    /// The bytes that it takes, about.
    pub(super) fn size(&self) -> usize {
        match self {
            Cell::Text(text) => text.len(),
            // A guess that costs nothing: views are the large ones, and their text is made once.
            Cell::Json(value) => json_size(value),
            Cell::Words(words) => words.iter().map(String::len).sum(),
            _ => 8,
        }
    }

    /// The field of a CSV record.
    fn field(&self) -> serde_json::Result<Cow<'_, str>> {
        Ok(match self {
            Cell::Empty => Cow::Borrowed(""),
            Cell::Text(text) => spreadsheet::cell(text),
            Cell::Integer(number) => Cow::Owned(number.to_string()),
            Cell::Number(_) | Cell::Json(_) | Cell::Words(_) | Cell::Integers(_) => Cow::Owned(json::line(self)?),
            Cell::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Cell::Time(time) => Cow::Owned(rfc3339(*time)),
        })
    }

    /// JSON as text; a text as it is.
    pub(super) fn text(&self) -> serde_json::Result<Cow<'_, str>> {
        match self {
            Cell::Text(text) => Ok(Cow::Borrowed(text)),
            other => Ok(Cow::Owned(json::line(other)?)),
        }
    }
}

fn json_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => list.iter().map(json_size).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + 4 + json_size(value)).sum::<usize>() + 2,
        _ => 6,
    }
}

/// A row as a JSON object.
struct Object<'a>(&'a [Column], &'a [Cell]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (column, cell) in self.0.iter().zip(self.1) {
            map.serialize_entry(column.name, cell)?;
        }
        map.end()
    }
}

/// Rows as JSON lines.
///
/// # Errors
/// A sentence, where a value is no JSON.
pub(super) fn json_lines(columns: &[Column], rows: &[Row]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for row in rows {
        json::write(&mut bytes, &Object(columns, row)).map_err(|e| e.to_string())?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Rows as CSV records, after the header where that is wanted.
///
/// # Errors
/// A sentence, where a value cannot be written.
pub(super) fn csv_records(columns: &[Column], rows: &[Row], header: bool) -> Result<Vec<u8>, String> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .quote_style(csv::QuoteStyle::Always)
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    if header {
        writer.write_record(columns.iter().map(|column| column.name)).map_err(|e| e.to_string())?;
    }
    for row in rows {
        for cell in row {
            writer.write_field(cell.field().map_err(|e| e.to_string())?.as_bytes()).map_err(|e| e.to_string())?;
        }
        writer.write_record(None::<&[u8]>).map_err(|e| e.to_string())?;
    }
    writer.into_inner().map_err(|e| e.to_string())
}

/// A cell from JSON.
///
/// # Errors
/// A sentence that says what the column takes.
pub fn from_json(column: &Column, value: &Value) -> Result<Cell, String> {
    let wrong = |wanted: &str| {
        let shown: String = value.to_string().chars().take(60).collect();
        Err(format!("`{}` is {wanted}, not {shown}", column.name))
    };
    let list = |value: &Value| value.as_array().cloned();
    let cell = match (column.kind, value) {
        (_, Value::Null) => Cell::Empty,
        (Kind::Text, Value::String(text)) => Cell::Text(text.clone()),
        (Kind::Word(words), Value::String(text)) if words.contains(&text.as_str()) => Cell::Text(text.clone()),
        (Kind::Integer, value) if value.is_i64() => Cell::from(value.as_i64()),
        (Kind::Number, value) if value.is_number() => Cell::from(value.as_f64()),
        (Kind::Boolean, Value::Bool(value)) => Cell::Boolean(*value),
        (Kind::Time, Value::String(text)) => match OffsetDateTime::parse(text, &Rfc3339) {
            Ok(time) => Cell::Time(time),
            Err(_) => return wrong("a time as 2026-01-31T12:00:00Z"),
        },
        (Kind::Json, value) => Cell::Json(value.clone()),
        (Kind::Words, value) => {
            match list(value).and_then(|list| list.iter().map(|v| v.as_str().map(str::to_owned)).collect()) {
                Some(words) => Cell::Words(words),
                None => return wrong("a list of words"),
            }
        }
        (Kind::Integers, value) => match list(value).and_then(|list| list.iter().map(Value::as_i64).collect()) {
            Some(numbers) => Cell::Integers(numbers),
            None => return wrong("a list of whole numbers"),
        },
        (Kind::Word(words), _) => return wrong(&format!("one of {}", words.join(", "))),
        (Kind::Text, _) => return wrong("a text"),
        (Kind::Integer, _) => return wrong("a whole number"),
        (Kind::Number, _) => return wrong("a number"),
        (Kind::Boolean, _) => return wrong("true or false"),
        (Kind::Time, _) => return wrong("a time"),
    };
    match cell {
        Cell::Empty if !column.optional => wrong("never empty"),
        cell => Ok(cell),
    }
}

/// A cell from a field of a CSV record.
///
/// # Errors
/// A sentence that says what the column takes.
pub fn from_field(column: &Column, field: &str) -> Result<Cell, String> {
    if field.is_empty() && column.optional {
        return Ok(Cell::Empty);
    }
    match column.kind {
        Kind::Text | Kind::Word(_) | Kind::Time => {
            from_json(column, &Value::String(spreadsheet::text(field).to_owned()))
        }
        _ => match serde_json::from_str(field) {
            Ok(value) => from_json(column, &value),
            Err(_) => from_json(column, &Value::String(field.to_owned())),
        },
    }
}
