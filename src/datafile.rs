//! Data files: those of a data folder that a command imports or a run reads, and those that are compiled into the program.
//!
//! JSON and lines of text are read whole, and unpacked when a file's name ends in `.gz`. Every error names the file.

use crate::output::folder::FolderError;
use crate::output::json::unmarked;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Why a data file cannot be used. Each names the file and says what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file is missing or unreadable.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Place in the file and the fault there, in plain words.
        what: String,
    },
    /// A folder has none of the files that could be imported.
    #[error("{} holds {what}", path.display())]
    Nothing {
        /// The folder.
        path: PathBuf,
        /// The files that it lacks, and what to do.
        what: &'static str,
    },
    /// The folder to write to is not available.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl DataError {
    /// A [`DataError::Content`].
    pub fn content(path: &Path, what: impl Into<String>) -> DataError {
        DataError::Content { path: path.to_path_buf(), what: what.into() }
    }

    /// Names the file of the error otherwise, and keeps its cause.
    pub fn renamed(mut self, rename: impl FnOnce(&Path) -> PathBuf) -> DataError {
        match &mut self {
            DataError::Read { path, .. }
            | DataError::Write { path, .. }
            | DataError::Content { path, .. }
            | DataError::Nothing { path, .. } => *path = rename(path),
            DataError::Folder(_) => {}
        }
        self
    }

    /// Makes a [`DataError::Read`] of the system's error.
    pub fn read(path: &Path) -> impl Fn(io::Error) -> DataError {
        let path = path.to_path_buf();
        move |source| DataError::Read { path: path.clone(), source }
    }

    /// Makes a [`DataError::Write`] of the system's error.
    pub fn write(path: &Path) -> impl Fn(io::Error) -> DataError {
        let path = path.to_path_buf();
        move |source| DataError::Write { path: path.clone(), source }
    }
}

/// Most faults that are collected: nobody reads more.
pub const MOST_FAULTS: usize = 1_000;

/// The policy of a reader for a fault of its data: it stops at the first one, or collects them.
#[derive(Debug)]
pub enum Faults<'a> {
    /// It stops.
    First,
    /// It goes on with what is right.
    All(&'a mut Vec<DataError>),
}

impl Faults<'_> {
    /// Notes a fault.
    ///
    /// # Errors
    /// The fault itself where the reader stops: at the first one, or when there are too many.
    pub fn note(&mut self, fault: DataError) -> Result<(), DataError> {
        match self {
            Faults::All(all) if all.len() < MOST_FAULTS => {
                all.push(fault);
                Ok(())
            }
            _ => Err(fault),
        }
    }

    /// Passes on data that were read; nothing where they could not be and the reader goes on.
    ///
    /// # Errors
    /// As [`Faults::note`].
    pub fn or_note<T>(&mut self, read: Result<T, DataError>) -> Result<Option<T>, DataError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(fault) => self.note(fault).map(|()| None),
        }
    }

    /// Whether the reader goes on after a fault.
    pub fn goes_on(&self) -> bool {
        matches!(self, Faults::All(_))
    }
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz")
}

/// Says of a gzip'd file that cannot be unpacked what may be wrong with it.
fn unpacking_failed(error: io::Error) -> io::Error {
    use io::ErrorKind as K;
    match error.kind() {
        K::InvalidInput | K::InvalidData | K::UnexpectedEof => {
            io::Error::new(error.kind(), format!("it is no gzip file, or is damaged or cut off ({error})"))
        }
        _ => error,
    }
}

/// Reads a file whole, without a byte-order mark; it is unpacked when its name ends in `.gz`.
///
/// # Errors
/// When it cannot be read or unpacked.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(DataError::read(path))?;
    let read = if is_packed(path) {
        GzDecoder::new(file).read_to_end(&mut bytes).map_err(unpacking_failed)
    } else {
        file.read_to_end(&mut bytes)
    };
    read.map_err(DataError::read(path))?;
    bytes.drain(..bytes.len() - unmarked(&bytes).len());
    Ok(bytes)
}

/// Reads a JSON file.
///
/// # Errors
/// When it cannot be read, or is not the JSON that `T` wants; with line and column.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    serde_json::from_slice(&read_bytes(path)?).map_err(|error| DataError::content(path, error.to_string()))
}

/// Reads the lines of a text, of which there must be some and none empty.
///
/// # Errors
/// When it cannot be read, is not UTF-8, is empty or has an empty line.
pub fn read_lines(path: &Path) -> Result<Vec<String>, DataError> {
    read_lines_noting(path, &mut Faults::First)
}

/// As [`read_lines`], noting empty lines.
///
/// # Errors
/// As [`read_lines`], and where the faults say so.
pub fn read_lines_noting(path: &Path, faults: &mut Faults<'_>) -> Result<Vec<String>, DataError> {
    let text = String::from_utf8(read_bytes(path)?).map_err(|_| DataError::content(path, "the text is not UTF-8"))?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (empty, _) in lines.iter().enumerate().filter(|(_, line)| line.is_empty()) {
        faults.note(DataError::content(path, format!("line {} is empty", empty + 1)))?;
    }
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() { Err(DataError::content(path, "the file is empty")) } else { Ok(lines) }
}

/// Writes a file and syncs it; its content is packed when its name ends in `.gz`. The same content gives the same bytes: no
/// time is written.
///
/// # Errors
/// When it cannot be written.
pub fn write_with(
    path: &Path,
    level: Compression,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), DataError> {
    let write = || {
        let file = File::create(path)?;
        let mut out = BufWriter::new(&file);
        if is_packed(path) {
            let mut packed = GzBuilder::new().mtime(0).write(out, level);
            fill(&mut packed)?;
            packed.finish()?.flush()?;
        } else {
            fill(&mut out)?;
            out.flush()?;
        }
        file.sync_all()
    };
    write().map_err(DataError::write(path))
}

/// Writes a JSON file, packed as well as can be when its name ends in `.gz`.
///
/// # Errors
/// When it cannot be written.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), DataError> {
    write_with(path, Compression::best(), |out| {
        serde_json::to_writer(&mut *out, value)?;
        if is_packed(path) { Ok(()) } else { out.write_all(b"\n") }
    })
}

/// Reads a TOML file that is compiled into the program.
///
/// # Panics
/// When the text is not the TOML that `T` wants. Tests read every such file, so no program is published in which that can
/// happen.
pub fn built_in<T: DeserializeOwned>(name: &str, text: &str) -> T {
    match toml::from_str(text) {
        Ok(value) => value,
        Err(error) => panic!("the file {name}, which is compiled into the program, is damaged: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_packed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.json", "a.json.gz"] {
            let path = folder.path().join(name);
            write_json(&path, &[1, 2]).unwrap();
            let first = std::fs::read(&path).unwrap();
            write_json(&path, &[1, 2]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), first);
            assert_eq!(read_json::<Vec<u32>>(&path).unwrap(), [1, 2]);
        }
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, text, told) in [
            ("a.json", "\u{feff}{", "EOF"),
            ("b.json.gz", "{}", "no gzip file"),
            ("c.txt", "one\n\ntwo\n", "line 2 is empty"),
            ("d.txt", "", "the file is empty"),
        ] {
            std::fs::write(path(name), text).unwrap();
            let error = match name.ends_with("txt") {
                true => read_lines(&path(name)).unwrap_err(),
                false => read_json::<serde_json::Value>(&path(name)).unwrap_err(),
            };
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(told), "{text}");
        }
        let moved = read_bytes(&path("absent")).unwrap_err().renamed(|_| "elsewhere".into());
        assert!(moved.to_string().starts_with("elsewhere cannot be read"), "{moved}");
    }
}
