//! Corpora of word edits as researchers bring them.

use super::corpus::{Corpus, FILES};
use crate::family::corpus::{CorpusFile, CorpusFormat, CorpusReport};
use std::path::Path;

/// The files, and how they are checked.
pub(super) const FORMAT: CorpusFormat = CorpusFormat {
    of: "word edits",
    files: &[
        CorpusFile {
            name: FILES[0],
            about: "the lists train, val and test of tasks with expression, requests and five pairs of words",
        },
        CorpusFile { name: FILES[1], about: "the symbols of words, requests and expressions" },
        CorpusFile { name: FILES[2], about: "expressions without requests, one a line" },
        CorpusFile { name: FILES[3], about: "the dictionary, one word a line" },
    ],
    made_with: "iliad data import-l3 L3_FOLDER",
    check,
};

fn check(folder: &Path, told: &dyn Fn(&str)) -> CorpusReport {
    let (corpus, faults) = Corpus::inspect(folder, told);
    let mut report = CorpusReport::new(
        faults,
        &[
            (corpus.train.len(), "tasks to learn from"),
            (corpus.validation.len(), "of validation"),
            (corpus.test.len(), "of test"),
            (corpus.words.len(), "words"),
            (corpus.unlabeled.len(), "expressions"),
        ],
    );
    if report.faults.is_empty() && [&corpus.train, &corpus.validation, &corpus.test].iter().any(|list| list.is_empty())
    {
        report.faults.push(format!("{}: one of the lists train, val and test has no item", FILES[0]));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with such files, none of them packed well.
    fn folder(corpus: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let vocabulary = r#"{"word": ["<PAD>","<UNK>","<",">","n"], "char": ["<PAD>","<UNK>","<",">","a"], "regex": ["<PAD>","<UNK>","<",">","("]}"#;
        for (name, text) in FILES.iter().zip([corpus, vocabulary, "()(n)()@c\n\n()(b)()@d\n", "moon\n"]) {
            let packed = crate::datafile::write_with(&folder.path().join(name), flate2::Compression::fast(), |out| {
                out.write_all(text.as_bytes())
            });
            packed.unwrap();
        }
        folder
    }

    #[test]
    fn every_bad_item_and_line_is_told() {
        let pairs = r#"[["moon","mooc"],["sun","suc"],["a","a"],["b","b"],["c","c"]]"#;
        let good = format!(r#"{{"re": "()(n)()@c", "instructions": [["n", "is", "c"]], "examples": {pairs}}}"#);
        let corpus = format!(
            r#"{{"train": [{good}, {{"re": 5}}, {{"re": "()(n)()@d", "instructions": [["x"]], "examples": {pairs}}}], "val": [{good}]}}"#
        );
        let folder = folder(&corpus);
        let report = check(folder.path(), &|_| {});
        let told = report.faults.join("\n");
        for part in [
            "corpus.json.gz: train item 2: ",
            "corpus.json.gz: train item 3: \"()(n)()@d\" makes",
            "the list `test` is missing",
            "unlabeled_regexes.txt.gz: line 2 is empty",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(report.faults.len(), 4, "{told}");
        assert!(!told.contains(folder.path().to_str().unwrap()), "no folder of the server is told: {told}");
        assert_eq!(report.facts[0].count, 1);
        assert!(Corpus::load(folder.path()).is_err(), "a run would refuse it, too");
    }
}
