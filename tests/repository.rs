//! The tree is consistent: files that the documentation names exist, and every file of tests belongs to a test program.

use std::path::{Path, PathBuf};

/// Folders of the tree whose files the documentation names from the root.
const ROOTS: [&str; 11] = [
    ".ci/",
    "benches/",
    "docs/",
    "examples/",
    "migrations/",
    "model_store/",
    "src/",
    "static/",
    "templates/",
    "tests/",
    ".sqlx/",
];

/// The file names inside backticks, such as `src/rng.rs`, `src/task/*/settings.rs` or `src/nn/cuda/`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| ROOTS.iter().any(|root| span.starts_with(root)) && !span.contains([' ', '{', '<', '…']))
}

/// The relative targets of links, without the heading that they may end with.
fn linked(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://")).map(|target| target.split('#').next().unwrap_or_default())
}

/// Whether a path exists, in which a part may be `*`.
fn exists(folder: &Path, path: &str) -> bool {
    let Some((part, rest)) = path.split_once('/').or(Some((path, ""))).filter(|(part, _)| !part.is_empty()) else {
        return folder.exists();
    };
    let Some((before, after)) = part.split_once('*') else { return exists(&folder.join(part), rest) };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(before) && name.ends_with(after) && exists(&entry.path(), rest)
    })
}

fn markdown(root: &Path) -> Vec<PathBuf> {
    let folders = [root.to_owned(), root.join("docs"), root.join("docs/decisions")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

#[test]
fn files_that_the_documentation_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut missing, mut seen) = (Vec::new(), 0);
    for file in markdown(root) {
        let text = std::fs::read_to_string(&file).unwrap();
        let folder = file.parent().unwrap();
        let shown = file.strip_prefix(root).unwrap().display();
        // The module path in `src/rng.rs::stream` and the like is no part of the file's name.
        let named = named(&text).map(|name| (root, name.split("::").next().unwrap_or(name)));
        for (base, name) in named.chain(linked(&text).map(|name| (folder, name))) {
            seen += 1;
            if !exists(base, name) {
                missing.push(format!("{shown}: {name}"));
            }
        }
    }
    assert!(seen > 100, "{seen} names were found");
    assert!(missing.is_empty(), "the documentation names files that do not exist:\n{}", missing.join("\n"));
}

/// A folder of tests with a `main.rs` is one program; a file that `main.rs` does not name would silently not run.
#[test]
fn every_file_of_a_test_program_is_one_of_its_modules() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folders = std::fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.filter(|folder| folder.join("main.rs").exists()) {
        let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            let rust = file.extension().is_some_and(|ending| ending == "rs");
            assert!(
                !rust || name == "main" || main.contains(&format!("mod {name};")),
                "{} is no module",
                file.display()
            );
        }
    }
}

/// A requirement without a test that shows it is a claim.
#[test]
fn every_test_that_the_security_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let table = text.split("\n## What applies\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let lines: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(lines.len() > 35, "{} lines were found", lines.len());
    for line in lines {
        let shown_by = line.trim_end_matches('|').rsplit(" | ").next().unwrap();
        let tests: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test shows this: {line}");
        for test in tests {
            let (file, function) = test.split_once("::").unwrap_or_else(|| panic!("{test} names no test"));
            let source = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            let at = source.find(&format!("fn {function}(")).unwrap_or_else(|| panic!("{file} has no {function}"));
            let before = &source[source[..at].rfind("\n\n").or_else(|| source[..at].rfind("{\n")).unwrap_or(0)..at];
            assert!(before.contains("#[test]") || before.contains("#[tokio::test"), "{test} is no test");
        }
    }
}

/// The fuzz targets are compiled with the other tests, but as programs of libFuzzer they are a package of their own, which only a
/// nightly compiler or special flags build.
#[test]
fn the_fuzz_package_has_the_crates_that_its_targets_use() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = |manifest: &str| {
        let manifest: toml::Table = std::fs::read_to_string(root.join(manifest)).unwrap().parse().unwrap();
        let named =
            |table: &str| manifest.get(table).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
        named("dependencies").chain(named("dev-dependencies")).cloned().collect::<Vec<String>>()
    };
    let (all, of_fuzz) = (crates("Cargo.toml"), crates("tests/fuzz/Cargo.toml"));
    let mut sources = vec![root.join("tests/support/mod.rs")];
    sources.extend(std::fs::read_dir(root.join("tests/fuzz/targets")).unwrap().map(|entry| entry.unwrap().path()));
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        for name in &all {
            let path = format!("{}::", name.replace('-', "_"));
            let used = text.match_indices(&path).any(|(at, _)| {
                !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
            });
            assert!(
                !used || of_fuzz.contains(name),
                "{} uses {name}, which tests/fuzz/Cargo.toml lacks",
                source.display()
            );
        }
    }
}
