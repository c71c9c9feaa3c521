//! A lock on a folder, so that one process at a time writes into it.

use std::fs::File;
use std::io;
use std::path::Path;

/// An exclusive lock. The operating system releases it when the value is dropped or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks the file at `path`, which is created where it is missing; `None` while another process holds the lock.
    ///
    /// # Errors
    /// When the file cannot be created or opened.
    pub fn acquire(path: &Path) -> io::Result<Option<FolderLock>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        Ok(file.try_lock().is_ok().then_some(FolderLock { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.lock");
        let lock = FolderLock::acquire(&path).unwrap();
        assert!(lock.is_some());
        assert!(FolderLock::acquire(&path).unwrap().is_none());
        drop(lock);
        assert!(FolderLock::acquire(&path).unwrap().is_some());
        assert!(FolderLock::acquire(&folder.path().join("missing").join("test.lock")).is_err());
    }
}
