//! Tables as Parquet, written row group by row group: what is held in memory is one of them, and the footer's notes on those before.
//!
//! Times are nanoseconds UTC, words and JSON are text, and lists have the three levels that the format asks for. Everything is
//! compressed with zstd.

use super::table::{Cell, Column, Kind, Row};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::sync::Arc;

/// Rows of a row group at most.
const GROUP_ROWS: usize = 10_000;

/// Bytes of a row group at most, before they are compressed.
const GROUP_BYTES: usize = 8 << 20;

/// A file that is being written. Its bytes are taken away as they come.
pub(super) struct ParquetFile {
    columns: &'static [Column],
    writer: SerializedFileWriter<Vec<u8>>,
    rows: Vec<Row>,
    bytes: usize,
}

impl ParquetFile {
    /// Begins a file.
    pub(super) fn begin(columns: &'static [Column], name: &str, version: i64) -> Result<ParquetFile> {
        let fields = columns.iter().map(|column| Ok(Arc::new(field(column)?))).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let note = KeyValue::new("iliad.schema_version".to_owned(), version.to_string());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by(concat!("iliad ", env!("CARGO_PKG_VERSION")).to_owned())
            // Notes on every page are of use to nobody who reads whole files.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(vec![note]))
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetFile { columns, writer, rows: Vec::new(), bytes: 0 })
    }

    /// Adds rows; the bytes that became ready.
    pub(super) fn add(&mut self, rows: Vec<Row>) -> Result<Vec<u8>> {
        for row in rows {
            self.bytes += row.iter().map(Cell::size).sum::<usize>();
            self.rows.push(row);
            if self.rows.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
                self.write_group()?;
            }
        }
        self.taken()
    }

    /// Ends the file; the rest of its bytes.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.writer.into_inner()
    }

    fn taken(&mut self) -> Result<Vec<u8>> {
        self.writer.flush()?;
        // Offsets come from the writer's own count of bytes.
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let mut group = self.writer.next_row_group()?;
        for (at, column) in self.columns.iter().enumerate() {
            let Some(mut writer) = group.next_column()? else {
                return Err(ParquetError::General("the file has too few columns".into()));
            };
            let cells = rows.iter().map(|row| &row[at]);
            match (column.kind, writer.untyped()) {
                (Kind::Text | Kind::Word(_) | Kind::Json, ColumnWriter::ByteArrayColumnWriter(out)) => {
                    let bytes = |cell: &Cell| {
                        let text = cell.text().map_err(|e| ParquetError::External(e.into()))?;
                        Ok(ByteArray::from(text.as_ref()))
                    };
                    write(out, column, cells, bytes)?;
                }
                (Kind::Integer, ColumnWriter::Int64ColumnWriter(out)) => {
                    write(out, column, cells, |cell| match cell {
                        Cell::Integer(number) => Ok(*number),
                        other => wrong(column, other),
                    })?;
                }
                (Kind::Time, ColumnWriter::Int64ColumnWriter(out)) => {
                    write(out, column, cells, |cell| match cell {
                        Cell::Time(time) => Ok(time.unix_timestamp_nanos() as i64),
                        other => wrong(column, other),
                    })?;
                }
                (Kind::Number, ColumnWriter::DoubleColumnWriter(out)) => {
                    write(out, column, cells, |cell| match cell {
                        Cell::Number(number) => Ok(*number),
                        other => wrong(column, other),
                    })?;
                }
                (Kind::Boolean, ColumnWriter::BoolColumnWriter(out)) => {
                    write(out, column, cells, |cell| match cell {
                        Cell::Boolean(value) => Ok(*value),
                        other => wrong(column, other),
                    })?;
                }
                (Kind::Words, ColumnWriter::ByteArrayColumnWriter(out)) => {
                    write_lists(out, cells, |cell| match cell {
                        Cell::Words(words) => Ok(words.iter().map(|word| ByteArray::from(word.as_str())).collect()),
                        other => wrong(column, other),
                    })?;
                }
                (Kind::Integers, ColumnWriter::Int64ColumnWriter(out)) => {
                    write_lists(out, cells, |cell| match cell {
                        Cell::Integers(numbers) => Ok(numbers.clone()),
                        other => wrong(column, other),
                    })?;
                }
                _ => return Err(ParquetError::General(format!("the column {} has another type", column.name))),
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

fn wrong<T>(column: &Column, cell: &Cell) -> Result<T> {
    Err(ParquetError::General(format!("the column {} cannot hold {cell:?}", column.name)))
}

/// Writes cells of which some may be empty.
fn write<'a, T: DataType>(
    out: &mut ColumnWriterImpl<'_, T>,
    column: &Column,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Result<T::T>,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let there = *cell != Cell::Empty;
        if there {
            values.push(value(cell)?);
        } else if !column.optional {
            return wrong(column, cell);
        }
        levels.push(i16::from(there));
    }
    out.write_batch(&values, column.optional.then_some(&levels[..]), None)?;
    Ok(())
}

/// Writes cells that are lists.
fn write_lists<'a, T: DataType>(
    out: &mut ColumnWriterImpl<'_, T>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Result<Vec<T::T>>,
) -> Result<()> {
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        let list = value(cell)?;
        // An empty list has one entry that says so.
        for at in 0..list.len().max(1) {
            definition.push(i16::from(!list.is_empty()));
            repetition.push(i16::from(at > 0));
        }
        values.extend(list);
    }
    out.write_batch(&values, Some(&definition), Some(&repetition))?;
    Ok(())
}

fn field(column: &Column) -> Result<Type> {
    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let plain = |name: &str, physical, logical, repetition| {
        Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical).build()
    };
    let list = |physical, logical| {
        let element = plain("element", physical, logical, Repetition::REQUIRED)?;
        let inner = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(element)])
            .build()?;
        Type::group_type_builder(column.name)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(inner)])
            .build()
    };
    match column.kind {
        Kind::Text | Kind::Word(_) | Kind::Json => {
            plain(column.name, Physical::BYTE_ARRAY, Some(LogicalType::String), repetition)
        }
        Kind::Integer => plain(column.name, Physical::INT64, None, repetition),
        Kind::Time => {
            let nanoseconds = LogicalType::timestamp(true, TimeUnit::NANOS);
            plain(column.name, Physical::INT64, Some(nanoseconds), repetition)
        }
        Kind::Number => plain(column.name, Physical::DOUBLE, None, repetition),
        Kind::Boolean => plain(column.name, Physical::BOOLEAN, None, repetition),
        Kind::Words => list(Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integers => list(Physical::INT64, None),
    }
}
