//! The REGEX engine against Python: every case of the golden file, made by `tests/fixtures/regex/make_golden.py`.
//!
//! A larger file made by the same program can be compared too: `ILIAD_REGEX_CASES=big.jsonl.gz cargo test --test
//! regex_golden`.

use flate2::read::GzDecoder;
use iliad::task::regex::program::{Executor, execute};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

fn lines(path: &Path) -> impl Iterator<Item = String> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("the fixture is intact"))
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/regex").join(name)
}

/// Cases and differences of one file.
fn compare(path: &Path) -> (usize, usize, Vec<String>) {
    let (mut cases, mut valid, mut differences) = (0, 0, Vec::new());
    let mut executor = Executor::default();
    for line in lines(path) {
        let (expression, word, expected): (String, String, Option<String>) =
            serde_json::from_str(&line).expect("a case is [expression, word, output]");
        let got = executor.execute(&expression, &word);
        cases += 1;
        valid += usize::from(expected.is_some());
        if got != expected {
            differences.push(format!("{expression:?} on {word:?}: Python {expected:?}, here {got:?}"));
        }
    }
    (cases, valid, differences)
}

#[test]
fn every_golden_case_agrees_with_python() {
    let (cases, valid, differences) = compare(&fixture("golden.jsonl.gz"));
    assert!(cases >= 20_000, "only {cases} cases");
    assert!(valid >= 5_000 && cases - valid >= 5_000, "{valid} of {cases} are valid: too one-sided to tell much");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn backtracking_bombs_are_given_up_in_bounded_time() {
    let mut bombs = 0;
    for line in lines(&fixture("bombs.jsonl.gz")) {
        let (expression, word): (String, String) = serde_json::from_str(&line).expect("a bomb is [expression, word]");
        let begun = Instant::now();
        assert_eq!(execute(&expression, &word), None, "{expression} on {word}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{expression} took {:?}", begun.elapsed());
        bombs += 1;
    }
    assert!(bombs >= 20, "only {bombs} bombs");
}

#[test]
fn a_larger_file_agrees_too_when_one_is_named() {
    let Some(path) = std::env::var_os("ILIAD_REGEX_CASES") else {
        println!("skipped: ILIAD_REGEX_CASES names no file");
        return;
    };
    let (cases, valid, differences) = compare(Path::new(&path));
    println!("{cases} cases, {valid} valid, {} differences", differences.len());
    for difference in differences.iter().take(200) {
        println!("{difference}");
    }
    assert!(differences.is_empty());
}
