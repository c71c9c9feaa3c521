//! Reading and writing the data files of NAV, and what is said when that fails.

use crate::output::folder::FolderError;
use crate::output::json::unmarked;
use crate::task::regex::corpus::damaged;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Why a data file of NAV cannot be used. Each names the file and says what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file is missing or unreadable.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Place in the file and what is wrong there, in plain words.
        what: String,
    },
    /// A folder to write to cannot be had.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl DataError {
    /// A [`DataError::Content`].
    pub(super) fn content(path: &Path, what: impl Into<String>) -> DataError {
        DataError::Content { path: path.to_path_buf(), what: what.into() }
    }

    /// The same error with another name of its file.
    pub(super) fn renamed(mut self, rename: impl FnOnce(&Path) -> PathBuf) -> DataError {
        match &mut self {
            DataError::Read { path, .. } | DataError::Write { path, .. } | DataError::Content { path, .. } => {
                *path = rename(path);
            }
            DataError::Folder(_) => {}
        }
        self
    }

    /// Makes a [`DataError::Read`] of what the system says.
    pub(super) fn read(path: &Path) -> impl Fn(std::io::Error) -> DataError {
        let path = path.to_path_buf();
        move |source| DataError::Read { path: path.clone(), source }
    }

    /// Makes a [`DataError::Write`] of what the system says.
    pub(super) fn write(path: &Path) -> impl Fn(std::io::Error) -> DataError {
        let path = path.to_path_buf();
        move |source| DataError::Write { path: path.clone(), source }
    }
}

/// Reads a JSON file, which is gzip'd when its name ends in `.gz`.
///
/// # Errors
/// When it cannot be read, or is not the JSON that `T` wants; with line and column.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(DataError::read(path))?;
    if path.extension().is_some_and(|ending| ending == "gz") {
        GzDecoder::new(file).read_to_end(&mut bytes).map_err(damaged).map_err(DataError::read(path))?;
    } else {
        file.read_to_end(&mut bytes).map_err(DataError::read(path))?;
    }
    serde_json::from_slice(unmarked(&bytes)).map_err(|error| DataError::content(path, error.to_string()))
}

/// Writes a JSON file, gzip'd when its name ends in `.gz`. The same value gives the same bytes: no time is written.
///
/// # Errors
/// When it cannot be written.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), DataError> {
    let write = || {
        let file = File::create(path)?;
        let mut out = BufWriter::new(&file);
        if path.extension().is_some_and(|ending| ending == "gz") {
            let mut packed = GzBuilder::new().mtime(0).write(out, Compression::best());
            serde_json::to_writer(&mut packed, value)?;
            packed.finish()?.flush()?;
        } else {
            serde_json::to_writer(&mut out, value)?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
        file.sync_all()
    };
    write().map_err(DataError::write(path))
}
