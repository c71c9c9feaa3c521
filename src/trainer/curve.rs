//! The file of a run's learning curve.

use crate::run::Point;
use anyhow::Context;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

/// Name of the curve within the run's folder: one point a line, in JSON.
pub const FILE_NAME: &str = "curve.jsonl";

/// The points of a run's curve up to an update, as its folder has them; lines that cannot be read are passed over.
pub fn points(folder: &Path, update: u64) -> Vec<Point> {
    let text = std::fs::read_to_string(folder.join(FILE_NAME)).unwrap_or_default();
    let points = text.lines().filter_map(|line| serde_json::from_str::<Point>(line).ok());
    points.filter(|point| point.update <= update).collect()
}

/// The curve, open for appending.
pub(super) struct Curve {
    file: File,
}

/// A curve that was opened.
pub(super) struct OpenedCurve {
    pub(super) curve: Curve,
    /// False when points were lost: the file was not there, or a line within it cannot be read.
    pub(super) whole: bool,
}

impl Curve {
    /// Opens the curve and truncates it to points up to `update`. The file is truncated in place, which needs no room on a
    /// full disk; only one with damaged lines in its midst is written anew, beside the old one.
    pub(super) fn open(folder: &Path, update: u64) -> anyhow::Result<OpenedCurve> {
        let path = folder.join(FILE_NAME);
        let failure = || format!("cannot use {}", path.display());
        let old = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e).with_context(failure),
        };
        let (mut kept, mut damaged) = (Vec::new(), false);
        for line in old.split_inclusive(|byte| *byte == b'\n') {
            // A kill leaves a half-written last line.
            let Some(text) = line.strip_suffix(b"\n") else { break };
            match serde_json::from_slice::<Point>(text) {
                Ok(point) if point.update <= update => kept.extend_from_slice(line),
                Ok(_) => {}
                Err(_) => damaged = true,
            }
        }
        if !old.starts_with(&kept) {
            crate::output::file::write(&path, &kept)?;
        }
        let mut file = File::options().create(true).truncate(false).write(true).open(&path).with_context(failure)?;
        file.set_len(kept.len() as u64).with_context(failure)?;
        file.seek(std::io::SeekFrom::End(0)).with_context(failure)?;
        Ok(OpenedCurve { curve: Self { file }, whole: !damaged && (!kept.is_empty() || update == 0) })
    }

    /// Appends a point.
    pub(super) fn append(&mut self, point: &Point) -> anyhow::Result<()> {
        writeln!(self.file, "{}", crate::output::json::line(point)?).context("cannot write the curve")
    }
}
