//! Files that were sent and checked, and that wait until their sender says whether they are to come in.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// Uploads that wait at most; the oldest goes first.
const MOST: usize = 4;

/// How long one waits.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// Files that wait, in a folder that goes with them.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Name of the file on its sender's machine.
    pub(crate) name: String,
    /// The file or folder that is read.
    pub(crate) path: PathBuf,
    /// Holds it.
    pub(crate) _folder: TempDir,
}

struct Held {
    key: String,
    since: Instant,
    waiting: Arc<Waiting>,
}

/// The uploads of this server that wait, by keys that only their senders' pages have.
#[derive(Clone)]
pub struct Uploads {
    held: Arc<Mutex<Vec<Held>>>,
    /// Files are read one after the other, since each may take a few hundred megabytes of memory.
    pub(crate) turns: Arc<Semaphore>,
}

impl Default for Uploads {
    fn default() -> Self {
        Uploads { held: Arc::default(), turns: Arc::new(Semaphore::new(1)) }
    }
}

impl Uploads {
    /// Lets an upload wait under a key.
    pub(crate) fn keep(&self, key: String, waiting: Arc<Waiting>) {
        let mut held = self.fresh();
        if held.len() == MOST {
            held.remove(0);
        }
        held.push(Held { key, since: Instant::now(), waiting });
    }

    /// The upload of a key, while it waits.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<Waiting>> {
        self.fresh().iter().find(|held| held.key == key).map(|held| held.waiting.clone())
    }

    /// Lets it wait no longer.
    pub(crate) fn forget(&self, key: &str) {
        self.fresh().retain(|held| held.key != key);
    }

    /// Those that have not waited too long, in the order of their coming.
    fn fresh(&self) -> std::sync::MutexGuard<'_, Vec<Held>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|held| held.since.elapsed() < KEPT);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_uploads_wait_and_their_folders_go_with_them() {
        let uploads = Uploads::default();
        let mut folders = Vec::new();
        for n in 0..=MOST {
            let folder = tempfile::tempdir().unwrap();
            folders.push(folder.path().to_owned());
            let waiting = Waiting { name: format!("{n}.csv"), path: folder.path().join("rows.csv"), _folder: folder };
            uploads.keep(n.to_string(), Arc::new(waiting));
        }
        assert!(uploads.get("0").is_none() && !folders[0].exists(), "the oldest gave way");
        let last = uploads.get("4").unwrap();
        assert_eq!((last.name.as_str(), last.path.parent()), ("4.csv", Some(folders[4].as_path())));
        uploads.forget("4");
        assert!(uploads.get("4").is_none() && folders[4].exists(), "whoever reads it has it still");
        drop(last);
        assert!(!folders[4].exists());
    }
}
