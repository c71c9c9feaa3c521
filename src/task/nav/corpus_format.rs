//! House data as researchers bring them.

use super::corpus::{FILES, NavData};
use crate::family::corpus::{CorpusFile, CorpusFormat, CorpusReport};
use std::path::Path;

/// The files, and how they are checked.
pub(super) const FORMAT: CorpusFormat = CorpusFormat {
    of: "walks through houses",
    files: &[
        CorpusFile { name: FILES[0], about: "the navigation graph of each house" },
        CorpusFile { name: FILES[1], about: "the lists simulation, val and test of paths with their requests" },
        CorpusFile { name: FILES[2], about: "the words of the requests to learn from" },
        CorpusFile { name: FILES[3], about: "the objects of the houses, and from where they are seen" },
        CorpusFile { name: FILES[4], about: "the names of objects" },
    ],
    made_with: "iliad data import-r2r R2R --connectivity GRAPHS --boxes BOXES",
    check,
};

fn check(folder: &Path, told: &dyn Fn(&str)) -> CorpusReport {
    let (data, faults) = NavData::inspect(folder, told);
    let Some(data) = data else { return CorpusReport::new(faults, &[]) };
    let mut report = CorpusReport::new(
        faults,
        &[
            (data.graphs.len(), "houses"),
            (data.graphs.values().map(|graph| graph.len()).sum(), "viewpoints"),
            (data.corpus.train.len(), "walks to learn from"),
            (data.corpus.validation.len(), "of validation"),
            (data.corpus.test.len(), "of test"),
            (data.words.words.len(), "words"),
        ],
    );
    let lists = [&data.corpus.train, &data.corpus.validation, &data.corpus.test];
    if report.faults.is_empty() && lists.iter().any(|list| list.is_empty()) {
        report.faults.push(format!("{}: one of the lists simulation, val and test has no item", FILES[1]));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_house_and_walk_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, value: serde_json::Value| {
            crate::datafile::write_json(&folder.path().join(name), &value).unwrap();
        };
        let point = |id: &str, x: f64| serde_json::json!({"id": id, "x": x, "y": 0.0, "z": 0.0, "included": true});
        let house = |edges| serde_json::json!({"viewpoints": [point("a", 0.0), point("b", 2.0)], "edges": edges});
        write(
            FILES[0],
            serde_json::json!({"good": house(serde_json::json!([[0, 1]])), "bad": house(serde_json::json!([[0, 7]]))}),
        );
        let item = |path: &[&str]| {
            serde_json::json!({"id": "1", "path_id": 1, "origin": "train", "scan": "good", "heading": 0.0,
                "distance": 2.0, "path": path, "requests": ["go"], "tokens": ["go"]})
        };
        write(
            FILES[1],
            serde_json::json!({"simulation": [item(&["a", "b"]), item(&["a", "c"]), {"id": 1}], "val": []}),
        );
        write(FILES[2], serde_json::json!({"min_count": 6, "words": []}));
        write(FILES[3], serde_json::json!({}));
        let report = check(folder.path(), &|_| {});
        let told = report.faults.join("\n");
        for part in [
            "graphs.json.gz: house bad: an edge leads to viewpoint number 7",
            "simulation item 2: house good has no viewpoint",
            "simulation item 3: ",
            "the list `test` is missing",
            "object_names.json cannot be read",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(report.faults.len(), 5, "{told}");
    }
}
