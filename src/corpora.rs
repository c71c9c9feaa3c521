//! Corpora that researchers upload: they are unpacked below the data folder, checked, listed, and removed.
//!
//! A corpus is a folder of its own that appears when it is whole. Its files have the names that its family reads and no others, whatever
//! the names in an archive say.

pub mod unpack;

use crate::family::corpus::{CorpusFact, CorpusFormat};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use time::OffsetDateTime;
use unpack::Unpacked;

/// Name of the file that says what a corpus holds.
const ABOUT: &str = "about.json";

/// Most characters of a name.
pub const LONGEST_NAME: usize = 60;

/// Most faults that are told.
const MOST_TOLD: usize = 500;

/// The file that says what a corpus holds.
#[derive(Serialize, Deserialize)]
struct About {
    family: String,
    facts: Vec<CorpusFact>,
    #[serde(with = "time::serde::rfc3339")]
    uploaded_at: OffsetDateTime,
}

/// A corpus that can be named in a run.
#[derive(Clone, Debug)]
pub struct UploadedCorpus {
    /// Its name.
    pub name: String,
    /// The family that reads it.
    pub family: String,
    /// Counts of its contents.
    pub facts: Vec<CorpusFact>,
    /// When it came.
    pub uploaded_at: OffsetDateTime,
    /// Bytes of its files.
    pub bytes: u64,
    /// Its folder, as `task.path` names it.
    pub path: PathBuf,
}

/// Why a corpus cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// Something about it must be changed; a sentence says what.
    #[error("{0}")]
    Change(String),
    /// Its files are not what they should be: a sentence without its full stop for each fault.
    #[error("its files have {} faults", .0.len())]
    Faults(Vec<String>),
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adding {
    /// The archive that was sent is being unpacked.
    Unpacking {
        /// Bytes of it that are read.
        bytes: u64,
        /// Bytes of all of it.
        of: u64,
    },
    /// The files are checked.
    Checking {
        /// Bytes of the files that are checked.
        bytes: u64,
        /// Bytes of all files.
        of: u64,
    },
}

/// The folder of the corpora.
#[derive(Clone, Debug)]
pub struct Corpora(PathBuf);

impl Corpora {
    /// The corpora of a folder, which need not exist.
    pub fn new(folder: &Path) -> Corpora {
        Corpora(folder.to_owned())
    }

    /// All corpora by name.
    pub fn list(&self) -> Vec<UploadedCorpus> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut all: Vec<UploadedCorpus> = names.filter_map(|name| self.get(&name)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The corpus of a name.
    pub fn get(&self, name: &str) -> Option<UploadedCorpus> {
        if !is_name(name) {
            return None;
        }
        let path = self.0.join(name);
        let about: About = serde_json::from_slice(&std::fs::read(path.join(ABOUT)).ok()?).ok()?;
        let files = std::fs::read_dir(&path).ok()?.flatten();
        let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
        let About { family, facts, uploaded_at } = about;
        Some(UploadedCorpus { name: name.to_owned(), family, facts, uploaded_at, bytes, path })
    }

    /// Whether a new corpus can have a name.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn check_name(&self, name: &str) -> Result<(), CorpusError> {
        if !is_name(name) {
            return Err(CorpusError::Change(format!(
                "The name of a corpus has 1 to {LONGEST_NAME} small letters, digits, and - _ between them."
            )));
        }
        match self.0.join(name).exists() {
            true => Err(CorpusError::Change(format!("There is a corpus named {name} already. Take another name."))),
            false => Ok(()),
        }
    }

    /// Keeps the files of a corpus under a name, once they are unpacked and checked. `files` are the names that they were sent with, and
    /// where they are; `told` hears how far that is.
    ///
    /// # Errors
    /// When the name is taken, something is wrong with a file, or the disk refuses. Nothing is kept then.
    pub fn add(
        &self,
        name: &str,
        family: &str,
        format: &CorpusFormat,
        files: &[(&str, &Path)],
        told: &dyn Fn(Adding),
    ) -> Result<Added, CorpusError> {
        self.check_name(name)?;
        std::fs::create_dir_all(&self.0)?;
        let draft: TempDir = tempfile::Builder::new().prefix(".upload-").tempdir_in(&self.0)?;
        let Unpacked { mut faults, passed_over } =
            unpack::unpack(files, format, draft.path(), &|bytes, of| told(Adding::Unpacking { bytes, of }))?;
        let missing = format.files.iter().filter(|file| !draft.path().join(file.name).is_file());
        let missing = missing.map(|file| format!("the file {} is missing: {}", file.name, file.about));
        if faults.is_empty() {
            faults.extend(missing);
        }
        // Files that could not be unpacked are not read.
        let mut facts = Vec::new();
        if faults.is_empty() {
            let size = |name: &str| std::fs::metadata(draft.path().join(name)).map_or(0, |found| found.len());
            let (done, of) = (Cell::new(0), format.files.iter().map(|file| size(file.name)).sum());
            told(Adding::Checking { bytes: 0, of });
            let report = (format.check)(draft.path(), &|name| {
                done.set(done.get() + size(name));
                told(Adding::Checking { bytes: done.get(), of });
            });
            (faults, facts) = (report.faults, report.facts);
        }
        if !faults.is_empty() {
            let more = faults.len().saturating_sub(MOST_TOLD);
            faults.truncate(MOST_TOLD);
            if more > 0 {
                faults.push(format!("and {more} more faults"));
            }
            return Err(CorpusError::Faults(faults));
        }
        let about = About { family: family.to_owned(), facts, uploaded_at: OffsetDateTime::now_utc() };
        let text = serde_json::to_vec_pretty(&about).map_err(io::Error::from)?;
        std::fs::write(draft.path().join(ABOUT), text)?;
        for file in format.files.iter().map(|file| file.name).chain([ABOUT]) {
            File::open(draft.path().join(file))?.sync_all()?;
        }
        // Somebody else may have taken the name meanwhile.
        self.check_name(name)?;
        let target = self.0.join(name);
        readable_by_others(draft.path());
        std::fs::rename(draft.path(), &target)?;
        // Its folder has another name now, and nothing is left to remove.
        drop(draft.keep());
        // The name is durable where the system can make it so.
        let _ = File::open(&self.0).and_then(|folder| folder.sync_all());
        Ok(Added { passed_over })
    }

    /// Removes a corpus. Whether a run needs it is for the caller to ask.
    ///
    /// # Errors
    /// When it is not there or the disk refuses.
    pub fn remove(&self, name: &str) -> Result<(), CorpusError> {
        let Some(corpus) = self.get(name) else {
            return Err(CorpusError::Change("There is no such corpus.".to_owned()));
        };
        // Under a hidden name first, so that no run begins with half of it.
        let going = self.0.join(format!(".upload-{name}-removed"));
        std::fs::rename(&corpus.path, &going)?;
        Ok(std::fs::remove_dir_all(going)?)
    }

    /// Removes what uploads left behind when the program was killed.
    pub fn sweep(&self) {
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(".upload-") {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Gives a folder the rights that folders have here; those of the system's temporary folders are for one user alone.
fn readable_by_others(folder: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755));
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// The result of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Files that are no part of a corpus and were not kept.
    pub passed_over: Vec<String>,
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= LONGEST_NAME && name.chars().all(plain) && ends(name.chars().next()) && ends(name.chars().next_back())
}

/// Whether a path that a run names is the folder of a corpus.
pub fn is_same(named: &str, corpus: &UploadedCorpus) -> bool {
    let absolute = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    !named.is_empty() && absolute(Path::new(named)).is_some_and(|named| absolute(&corpus.path) == Some(named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::corpus::{CorpusFile, CorpusReport};

    const FORMAT: CorpusFormat = CorpusFormat {
        of: "letters",
        files: &[
            CorpusFile { name: "letters.txt.gz", about: "letters, one a line" },
            CorpusFile { name: "order.json", about: "their order" },
        ],
        made_with: "none",
        check: |folder, told| {
            let lines = crate::datafile::read_lines(&folder.join("letters.txt.gz"));
            told("letters.txt.gz");
            match lines {
                Ok(lines) => CorpusReport::new(Vec::new(), &[(lines.len(), "letters")]),
                Err(fault) => CorpusReport::new(vec![fault], &[]),
            }
        },
    };

    #[test]
    fn a_corpus_is_kept_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let corpora = Corpora::new(&folder.path().join("deep/corpora"));
        assert!(corpora.list().is_empty());
        let at = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (letters, order, other) = (at("l", "a\nb\n"), at("o", "[]"), at("x", "?"));
        let files: [(&str, &Path); 3] = [("letters.txt", &letters), ("order.json", &order), ("evil.sh", &other)];
        let heard = std::cell::RefCell::new(Vec::new());
        let add = |name: &str, files: &[(&str, &Path)]| {
            corpora.add(name, "abc", &FORMAT, files, &|at| heard.borrow_mut().push(at))
        };
        assert_eq!(add("abc-1", &files).unwrap().passed_over, ["evil.sh"]);
        let steps = std::mem::take(&mut *heard.borrow_mut());
        let of = 4 + 2 + 1;
        assert_eq!(steps.first(), Some(&Adding::Unpacking { bytes: 4, of }));
        assert!(steps.contains(&Adding::Unpacking { bytes: 6, of }), "{steps:?}");
        let Some(Adding::Checking { bytes, of }) = steps.last() else { panic!("{steps:?}") };
        assert!(0 < *bytes && bytes < of, "one of two files was said to be read: {steps:?}");
        let [one] = corpora.list().try_into().unwrap();
        assert_eq!((one.name.as_str(), one.family.as_str(), one.facts[0].count), ("abc-1", "abc", 2));
        assert_eq!(std::fs::read_dir(&one.path).unwrap().count(), 3, "no file but those of the corpus");
        assert!(is_same(one.path.to_str().unwrap(), &one) && !is_same("", &one) && !is_same("abc-1", &one));
        for name in ["abc-1", "", "..", "a/b", "A", "-a", "a.b", &"a".repeat(61)] {
            assert!(matches!(add(name, &files), Err(CorpusError::Change(_))), "{name}");
        }
        let Err(CorpusError::Faults(faults)) = add("two", &files[1..]) else { panic!() };
        assert_eq!(faults, ["the file letters.txt.gz is missing: letters, one a line"]);
        let bad = at("bad", "a\n\n");
        let Err(CorpusError::Faults(faults)) = add("two", &[("letters.txt", &bad), files[1]]) else { panic!() };
        assert_eq!(faults, ["letters.txt.gz: line 2 is empty"]);
        corpora.remove("abc-1").unwrap();
        assert!(corpora.list().is_empty() && corpora.remove("abc-1").is_err());
        let left = std::fs::read_dir(folder.path().join("deep/corpora")).unwrap().count();
        assert_eq!(left, 0, "nothing is left behind");
    }
}
