//! Rules of the house that a compiler does not check.

use std::path::{Path, PathBuf};

/// Files with one of the endings under a folder of the project.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
                found.push(path);
            }
        }
    }
    found
}

/// Lines of the files that hold one of the needles, as `file:line: needle`.
fn hits(files: &[PathBuf], needles: &[String]) -> Vec<String> {
    let mut hits = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for needle in needles.iter().filter(|needle| line.contains(*needle)) {
                hits.push(format!("{}:{}: {needle}", path.display(), number + 1));
            }
        }
    }
    hits
}

#[test]
fn no_work_is_left_over() {
    let sources = [files("src", &["rs"]), files("tests", &["rs"]), files("benches", &["rs"])].concat();
    assert!(sources.len() > 10, "the sources were found");
    // Put together here, so that this file does not find itself.
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let marks = ["TODO", "FIXME", "XXX"].map(|mark| format!("{mark}:"));
    let skipped = [format!("#[{}", "ignore")];
    let mut left = hits(&sources, &[&macros[..], &marks[..]].concat());
    // The comparisons with a GPU need a card, and one command runs them.
    let everywhere: Vec<_> = sources.into_iter().filter(|path| !path.ends_with("tests/device.rs")).collect();
    left.extend(hits(&everywhere, &skipped));
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn the_search_finds_what_it_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rs");
    std::fs::write(&path, format!("fn a() {{}}\nfn b() {{ {}!() }}\n", "todo")).unwrap();
    let found = hits(std::slice::from_ref(&path), &[format!("{}!(", "todo")]);
    assert_eq!(found, [format!("{}:2: {}!(", path.display(), "todo")]);
}
