//! The public table of image features: a line for each viewpoint, tab-separated: scanId, viewpointId, image_w, image_h,
//! vfov, and in base64 36 × 2048 little-endian 32-bit floats (views in the order of [`super::super::action`]).

use super::super::action::VIEWS;
use super::store::Writer;
use crate::datafile::DataError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Bytes of a line at most; the public file's lines have some 400,000.
const LINE_LIMIT: u64 = 1 << 26;

/// Features of one viewpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// House.
    pub scan: String,
    /// Viewpoint.
    pub viewpoint: String,
    /// 36 vectors, one after the other.
    pub vectors: Vec<f32>,
    /// Length of its line in the table.
    pub bytes: u64,
}

/// Reads a table row by row.
///
/// # Errors
/// At once when the file cannot be opened. A row's error names file and line and says what is wrong.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Result<Row, DataError>>, DataError> {
    let mut input = BufReader::with_capacity(1 << 20, File::open(path).map_err(DataError::read(path))?);
    let path = path.to_path_buf();
    let mut number = 0;
    let mut failed = false;
    Ok(std::iter::from_fn(move || {
        let mut line = Vec::new();
        loop {
            number += 1;
            line.clear();
            match input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line) {
                _ if failed => return None,
                Err(error) => {
                    failed = true;
                    return Some(Err(DataError::read(&path)(error)));
                }
                Ok(0) => return None,
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => {
                    let row = parse(line.trim_ascii_end()).map(|row| Row { bytes: line.len() as u64, ..row });
                    failed = row.is_err();
                    return Some(row.map_err(|what| DataError::content(&path, format!("line {number}: {what}"))));
                }
            }
        }
    }))
}

fn parse(line: &[u8]) -> Result<Row, String> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b'\t').collect();
    let [scan, viewpoint, _, _, _, features] = fields[..] else {
        return Err(format!(
            "{} fields instead of 6 (scanId, viewpointId, image_w, image_h, vfov, features)",
            fields.len()
        ));
    };
    let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| "a name is not UTF-8".to_owned());
    let bytes = STANDARD.decode(features).map_err(|error| format!("the features are not base64: {error}"))?;
    if bytes.is_empty() || bytes.len() % (4 * VIEWS) != 0 {
        return Err(format!("{} bytes of features are not {VIEWS} vectors of 32-bit floats", bytes.len()));
    }
    let vectors = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Ok(Row { scan: name(scan)?, viewpoint: name(viewpoint)?, vectors, bytes: line.len() as u64 })
}

/// Turns a table into a file of [`super::store`]; how many viewpoints it has. `told` hears how many bytes of the table are read.
///
/// # Errors
/// Names the file and line and says what is wrong; then nothing is written under the name `output`.
pub fn convert(table: &Path, output: &Path, told: &dyn Fn(u64)) -> Result<usize, DataError> {
    let mut writer: Option<Writer> = None;
    let mut bytes = 0;
    for row in read(table)? {
        let row = row?;
        bytes += row.bytes;
        told(bytes);
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(Writer::create(output, row.vectors.len() / VIEWS)?),
        };
        writer.push(&row.scan, &row.viewpoint, &row.vectors)?;
    }
    writer.ok_or_else(|| DataError::content(table, "there is no line in it"))?.finish()
}
