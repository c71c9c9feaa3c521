//! Files that appear whole or stay as they were: they are written beside their place, synced, and renamed into it.
//!
//! A kill leaves the old file and perhaps a hidden `.NAME.….part` beside it, which the next writer of that file clears
//! away. Devices, pipes and the names of the standard streams (`-`, `/dev/stdout`, `/dev/fd/N`) are written to as they
//! are: renaming a file over a device would take the device away.

use super::{Notes, OutputError};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Ending of the name of a draft.
const PART: &str = ".part";

/// A file that is being written. It takes its place in [`Draft::finish`]; dropped before, it leaves nothing.
pub struct Draft {
    /// The name that errors give it.
    shown: String,
    to: Place,
}

enum Place {
    /// Written beside, under a name of its own; the path is the place where it belongs.
    Beside(io::BufWriter<File>, TempPath, PathBuf),
    /// Written as it is.
    Through(Box<dyn Write + Send>),
}

impl Draft {
    /// Begins a file. What the old one holds stays until [`Draft::finish`].
    ///
    /// # Errors
    /// When it could not be written at the end either: its folder is missing or cannot be written to, or it is a folder.
    pub fn begin(path: &Path) -> Result<Draft, OutputError> {
        let shown = shown(path);
        match place(path) {
            Ok(to) => Ok(Draft { shown, to }),
            Err(source) => Err(OutputError::new(shown, source)),
        }
    }

    /// Puts the file in its place, on disk.
    ///
    /// # Errors
    /// When the disk is full or the place cannot be had; the old file is then as it was.
    pub fn finish(self) -> Result<(), OutputError> {
        let failed = |source| OutputError::new(self.shown.clone(), source);
        match self.to {
            Place::Through(mut out) => out.flush().map_err(failed),
            Place::Beside(out, draft, path) => {
                // The file, and the lock on it, stay open until it has its name.
                let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
                file.sync_all().map_err(failed)?;
                draft.persist(&path).map_err(|e| failed(e.error))?;
                sync_folder(&path);
                Ok(())
            }
        }
    }

    /// An error of writing into this draft, with the file's name.
    pub fn failed(&self, source: io::Error) -> OutputError {
        OutputError::new(self.shown.clone(), source)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Place::Beside(out, ..) => out.write(bytes),
            Place::Through(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Place::Beside(out, ..) => out.flush(),
            Place::Through(out) => out.flush(),
        }
    }
}

/// Writes a whole file, so that a reader sees the old one or the new one.
///
/// # Errors
/// When it cannot be written; the old file is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut draft = Draft::begin(path)?;
    draft.write_all(bytes).map_err(|e| draft.failed(e))?;
    draft.finish()
}

/// Checks that a file could be written, before long work is done for it.
///
/// # Errors
/// As [`Draft::begin`].
pub fn check(path: &Path) -> Result<(), OutputError> {
    if is_stream(path) { Ok(()) } else { Draft::begin(path).map(drop) }
}

/// Makes the folder of a file where it is missing, and checks that the file could be written.
///
/// # Errors
/// As [`Draft::begin`].
pub fn prepare(path: &Path) -> Result<(), OutputError> {
    if !is_stream(path) {
        let folder = folder_of(path);
        std::fs::create_dir_all(folder).map_err(|e| OutputError::new(folder.display().to_string(), e))?;
    }
    check(path)
}

/// Whether a path is written to as it is: a standard stream, a device, a pipe.
pub fn is_stream(path: &Path) -> bool {
    standard(path).is_some() || std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The name that errors give a path.
fn shown(path: &Path) -> String {
    if standard(path) == Some(1) { "to the standard output".into() } else { path.display().to_string() }
}

/// Number of the standard stream that a path names.
fn standard(path: &Path) -> Option<u8> {
    match path.to_str()? {
        "-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(1),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(2),
        _ => None,
    }
}

fn place(path: &Path) -> io::Result<Place> {
    match standard(path) {
        Some(1) => return Ok(Place::Through(Box::new(Shared))),
        Some(_) => return Ok(Place::Through(Box::new(Notes))),
        None => {}
    }
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is empty"));
    }
    let old = match std::fs::metadata(path) {
        Ok(found) => Some(found),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    if old.as_ref().is_some_and(|found| found.is_dir()) {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if old.as_ref().is_some_and(|found| !found.is_file()) {
        return Ok(Place::Through(Box::new(File::options().write(true).open(path)?)));
    }
    // The target of a link is replaced, not the link.
    let path = if old.is_some() { path.canonicalize()? } else { path.to_owned() };
    let folder = folder_of(&path);
    if !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display())));
    }
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
    };
    let prefix = prefix(&name.to_string_lossy());
    sweep(folder, &prefix);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(PART);
    // As any other new file: the umask takes away what it takes away.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let (file, draft) = builder.tempfile_in(folder)?.into_parts();
    // Held while it is written, so that nobody clears it away.
    let _ = file.try_lock();
    if let Some(old) = old {
        keep_permissions(&file, old.permissions());
    }
    Ok(Place::Beside(io::BufWriter::with_capacity(1 << 16, file), draft, path))
}

fn keep_permissions(file: &File, permissions: Permissions) {
    // A file system without permissions has none to keep.
    let _ = file.set_permissions(permissions);
}

/// The folder that a path lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The prefix of the names of drafts for `name`; short enough for every file system.
pub(super) fn prefix(name: &str) -> String {
    format!(".{}.", name.chars().take(50).collect::<String>())
}

/// Clears away drafts that a killed writer left: those that nobody holds a lock on.
pub(super) fn sweep(folder: &Path, prefix: &str) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // A draft's own part of the name is six letters and digits.
        let own = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(PART));
        if !own.is_some_and(|own| own.len() == 6 && own.bytes().all(|b| b.is_ascii_alphanumeric())) {
            continue;
        }
        let path = entry.path();
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        }
    }
}

/// Makes a rename last through a power cut, where the system can.
pub(super) fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

/// The standard output without a lock of its own, so that a command may still print beside it.
struct Shared;

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().lock().write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        super::flush()
    }
}

#[cfg(test)]
mod tests;
