//! A corpus of a family: the files of a folder that `task.path` names, and how they are checked before a run reads them.

use crate::datafile::DataError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The corpora of a family.
#[derive(Clone, Copy, Debug)]
pub struct CorpusFormat {
    /// The contents, in a word or two: "word edits".
    pub of: &'static str,
    /// The files of a folder; all of them are needed.
    pub files: &'static [CorpusFile],
    /// The command that makes such a folder from public data, without its output.
    pub made_with: &'static str,
    /// Reads a folder, and everything that is wrong with it. It tells the name of each file that it has read.
    pub check: CheckCorpus,
}

/// Reads a folder; see [`CorpusFormat::check`].
pub type CheckCorpus = fn(&Path, &dyn Fn(&str)) -> CorpusReport;

/// A file of a corpus.
#[derive(Clone, Copy, Debug)]
pub struct CorpusFile {
    /// Its name. One that ends in `.gz` may be given unpacked.
    pub name: &'static str,
    /// Its contents.
    pub about: &'static str,
}

/// The contents of a corpus, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct CorpusReport {
    /// Sentences without their full stops, each with the file and the place in it.
    pub faults: Vec<String>,
    /// Counts of its contents.
    pub facts: Vec<CorpusFact>,
}

/// A count of what a corpus holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusFact {
    /// The count.
    pub count: u64,
    /// The things that are counted, in the plural: "tasks to learn from".
    pub of: String,
}

impl CorpusReport {
    /// The report of a reader that has gone through a folder: errors name the files alone.
    pub fn new(faults: Vec<DataError>, facts: &[(usize, &str)]) -> CorpusReport {
        let named = |fault: DataError| fault.renamed(|path| path.file_name().unwrap_or_default().into()).to_string();
        let fact = |&(count, of): &(usize, &str)| CorpusFact { count: count as u64, of: of.to_owned() };
        CorpusReport { faults: faults.into_iter().map(named).collect(), facts: facts.iter().map(fact).collect() }
    }
}
