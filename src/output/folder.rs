//! Folders of files that belong together: all of them are there, or none.
//!
//! They are written into a hidden folder beside their place, which is renamed into it at the end. A folder that holds
//! something is in the way; it is replaced only when that is asked for, and only when everything in it is such as would
//! be written: so nobody loses a home directory to a slip.

use super::file::{folder_of, prefix, sweep, sync_folder};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The policy for a folder that is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is done.
    Keep,
    /// It is replaced at the end, at once.
    Replace,
}

impl Existing {
    /// The policy of a flag `--force`.
    pub fn forced(force: bool) -> Self {
        if force { Existing::Replace } else { Existing::Keep }
    }
}

/// The reason why a folder cannot be written. Each message names the folder and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something is there already.
    #[error("{} holds something already; name another folder, or replace it with --force", .0.display())]
    Taken(PathBuf),
    /// The folder holds something that is not replaced.
    #[error("{} also holds `{name}`, which is no part of such data, so it is not replaced; name another folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The entry that is not replaced.
        name: String,
    },
    /// A file is in the way.
    #[error("{} is a file, not a folder; name another folder", .0.display())]
    File(PathBuf),
    /// The operating system refused.
    #[error("{} cannot be written: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Checks before the work that a folder may be written: it is missing, empty, or may be replaced. `parts` are the names of
/// the entries that are written into it.
///
/// # Errors
/// When it is in the way.
pub fn check(path: &Path, existing: Existing, parts: &[&str]) -> Result<(), FolderError> {
    let failed = |source| FolderError::Io { path: path.to_owned(), source };
    let entries = match std::fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
        Ok(found) if !found.is_dir() => return Err(FolderError::File(path.to_owned())),
        Ok(_) => std::fs::read_dir(path).map_err(failed)?,
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if existing == Existing::Keep {
            return Err(FolderError::Taken(path.to_owned()));
        }
        if !parts.contains(&name.as_str()) {
            return Err(FolderError::Foreign { path: path.to_owned(), name });
        }
    }
    Ok(())
}

/// A folder that is being written. It takes its place in [`Draft::finish`]; dropped before, it leaves nothing.
#[derive(Debug)]
pub struct Draft {
    folder: TempDir,
    /// Locked while the draft is written, so that nobody clears it away.
    _lock: Option<File>,
    target: PathBuf,
    existing: Existing,
    parts: Vec<String>,
}

impl Draft {
    /// Begins a folder for `target`, whose parents are made where they are missing.
    ///
    /// # Errors
    /// As [`check`], and when nothing can be written beside it.
    pub fn begin(target: &Path, existing: Existing, parts: &[&str]) -> Result<Draft, FolderError> {
        check(target, existing, parts)?;
        let failed = |source| FolderError::Io { path: target.to_owned(), source };
        // The target of a link is replaced, not the link; `corpus/` and `.` get a name.
        let target = if target.exists() { target.canonicalize().map_err(failed)? } else { target.to_owned() };
        let name = target.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let beside = folder_of(&target);
        std::fs::create_dir_all(beside).map_err(failed)?;
        let prefix = prefix(&name.to_string_lossy());
        sweep(beside, &prefix);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let folder = builder.tempdir_in(beside).map_err(failed)?;
        let lock = File::open(folder.path()).ok();
        if let Some(lock) = &lock {
            let _ = lock.try_lock();
        }
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Ok(Draft { folder, _lock: lock, target, existing, parts })
    }

    /// The hidden folder to write into until the draft is finished.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The name that a path within the draft will have: for messages.
    pub fn named(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.path()).map_or_else(|_| path.to_owned(), |inner| self.target.join(inner))
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// When the place was taken meanwhile, or cannot be had.
    pub fn finish(self) -> Result<(), FolderError> {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        check(&self.target, self.existing, &parts)?;
        let failed = |source| FolderError::Io { path: self.target.clone(), source };
        let _ = File::open(self.folder.path()).and_then(|folder| folder.sync_all());
        let holds = std::fs::read_dir(&self.target).is_ok_and(|mut entries| entries.next().is_some());
        if holds {
            // The old folder is now the draft's, and goes with it.
            exchange(self.folder.path(), &self.target).map_err(failed)?;
        } else {
            // Renaming over an empty folder takes its place.
            std::fs::rename(self.folder.path(), &self.target).map_err(failed)?;
            let _ = self.folder.keep();
        }
        sync_folder(&self.target);
        Ok(())
    }
}

/// Lets two folders take each other's name.
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(()),
            // File systems that cannot do it at once do it in steps.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let aside = a.with_extension("old");
    std::fs::rename(b, &aside)?;
    if let Err(error) = std::fs::rename(a, b) {
        std::fs::rename(&aside, b)?;
        return Err(error);
    }
    std::fs::rename(&aside, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [&str; 2] = ["a", "b"];

    fn put(target: &Path, existing: Existing, text: &str) -> Result<(), FolderError> {
        let draft = Draft::begin(target, existing, &PARTS)?;
        for part in PARTS {
            std::fs::write(draft.path().join(part), text).unwrap();
        }
        assert_eq!(draft.named(&draft.path().join("a")), target.join("a"));
        draft.finish()
    }

    #[test]
    fn a_folder_appears_whole_and_replaces_only_its_like() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let target = home.join("deep/corpus");
        put(&target, Existing::Keep, "one").unwrap();
        assert!(matches!(put(&target, Existing::Keep, "two").unwrap_err(), FolderError::Taken(_)));
        assert_eq!(std::fs::read_to_string(target.join("a")).unwrap(), "one");
        put(&target, Existing::Replace, "two").unwrap();
        assert_eq!(std::fs::read_to_string(target.join("b")).unwrap(), "two");
        std::fs::write(target.join("thesis.tex"), "years").unwrap();
        let told = put(&target, Existing::Replace, "three").unwrap_err().to_string();
        assert!(told.contains("`thesis.tex`"), "{told}");
        assert_eq!(std::fs::read_dir(home.join("deep")).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_dropped_or_in_the_way_leaves_everything_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("corpus");
        drop(Draft::begin(&target, Existing::Keep, &PARTS).unwrap());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
        std::fs::write(&target, "a file").unwrap();
        assert!(matches!(check(&target, Existing::Replace, &PARTS).unwrap_err(), FolderError::File(_)));
        let empty = home.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        let killed = home.path().join(".empty.AbC123.part");
        std::fs::create_dir(&killed).unwrap();
        let link = home.path().join("link");
        #[cfg(unix)]
        std::os::unix::fs::symlink(&empty, &link).unwrap();
        drop(Draft::begin(if cfg!(unix) { &link } else { &empty }, Existing::Keep, &PARTS).unwrap());
        assert!(empty.is_dir() && !killed.exists(), "what a killed import left is cleared away");
    }
}
