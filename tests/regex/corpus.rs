//! Reading and writing the corpus format, and what is said about damaged files.

use flate2::Compression;
use flate2::write::GzEncoder;
use iliad::task::regex::corpus::Corpus;
use iliad::task::regex::grammar::Grammar;
use std::fs::File;
use std::io::Write;
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) {
    let mut out = GzEncoder::new(File::create(folder.join(name)).expect("created"), Compression::fast());
    out.write_all(text.as_bytes()).expect("written");
    out.finish().expect("written");
}

fn item(re: &str, output: &str) -> String {
    let examples = format!(r#"[["moon","{output}"],["sun","suc"],["nine","cice"],["tea","tea"],["sea","sea"]]"#);
    format!(r#"{{"re":"{re}","template":3,"instructions":[["n","to","c"]],"examples":{examples}}}"#)
}

fn good(folder: &Path) {
    let item = item("()(n)()@c", "mooc");
    write(
        folder,
        "corpus.json.gz",
        &format!(r#"{{"train":[{item},{item}],"val":[{item}],"test":[{item}],"more":[1]}}"#),
    );
    let list = r#"["<PAD>","<UNK>","<",">","a"]"#;
    write(folder, "vocab.json.gz", &format!(r#"{{"word":{list},"char":{list},"regex":{list}}}"#));
    write(folder, "unlabeled_regexes.txt.gz", "()(n)()@c\n()(V)()@\n");
    write(folder, "words.txt.gz", "moon\nsun\n");
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut corpus = Grammar::tiny().corpus(1);
    corpus.unlabeled = vec!["()(n)()@c".into()];
    corpus.save(folder.path()).expect("saved");
    assert_eq!(Corpus::load(folder.path()).expect("loaded"), corpus);
}

#[test]
fn damage_is_named_with_file_and_item() {
    let ok = item("()(n)()@c", "mooc");
    let corpus = |second: &str| format!(r#"{{"train":[{ok},{second}],"val":[{ok}],"test":[{ok}]}}"#);
    let four = ok.replace(r#",["sea","sea"]"#, "");
    let cases: Vec<(&str, String, Vec<&str>)> = vec![
        ("corpus.json.gz", corpus(r#"{"re":"()(n)()@c"}"#), vec!["train item 2", "instructions"]),
        ("corpus.json.gz", corpus(&item("()(n()@c", "mooc")), vec!["train item 2", "no valid expression"]),
        ("corpus.json.gz", corpus(&item("()(n)()@c", "wrong")), vec!["train item 2", "wrong", "mooc"]),
        ("corpus.json.gz", corpus(&item("()(n)()@c", "moon")), vec!["train item 2", "is not changed"]),
        ("corpus.json.gz", corpus(&four), vec!["train item 2", "4 pairs instead of 5"]),
        ("corpus.json.gz", corpus(&ok.replace(r#"["n","to","c"]"#, "[]")), vec!["train item 2", "empty"]),
        ("corpus.json.gz", corpus(&ok.replace(r#""to""#, r#""to it""#)), vec!["train item 2", "blanks"]),
        ("corpus.json.gz", corpus(&ok.replace(r#"[["n","to","c"]]"#, "[]")), vec!["train item 2", "no request"]),
        ("corpus.json.gz", format!(r#"{{"train":[{ok}],"val":[{ok}]}}"#), vec!["`test` is missing"]),
        ("corpus.json.gz", "[]".into(), vec!["corpus.json.gz", "train"]),
        ("corpus.json.gz", corpus("7"), vec!["train item 2"]),
        ("corpus.json.gz", corpus(&ok) + "}", vec!["corpus.json.gz", "trailing"]),
        (
            "vocab.json.gz",
            r#"{"word":["a"],"char":[],"regex":[]}"#.into(),
            vec!["vocab.json.gz", "must begin with <PAD>"],
        ),
        ("vocab.json.gz", r#"{"word":[]}"#.into(), vec!["vocab.json.gz", "char"]),
        ("unlabeled_regexes.txt.gz", "".into(), vec!["unlabeled_regexes.txt.gz", "empty"]),
        ("words.txt.gz", "moon\n\nsun\n".into(), vec!["words.txt.gz", "line 2 is empty"]),
    ];
    for (name, text, parts) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        good(folder.path());
        assert!(Corpus::load(folder.path()).is_ok());
        write(folder.path(), name, &text);
        let error = Corpus::load(folder.path()).expect_err(&text).to_string();
        for part in parts.iter().chain([&name]) {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }
}

#[test]
fn missing_and_broken_files_are_named() {
    for name in ["corpus.json.gz", "vocab.json.gz", "unlabeled_regexes.txt.gz", "words.txt.gz"] {
        let folder = tempfile::tempdir().expect("a folder");
        good(folder.path());
        std::fs::remove_file(folder.path().join(name)).expect("removed");
        assert!(Corpus::load(folder.path()).expect_err(name).to_string().contains(name));
        std::fs::write(folder.path().join(name), "not gzip").expect("written");
        assert!(Corpus::load(folder.path()).expect_err(name).to_string().contains(name));
    }
}
