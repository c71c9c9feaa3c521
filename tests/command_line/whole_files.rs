//! Files and folders that commands write are whole or absent: imports, and files that are in the way.

use iliad::task::regex::corpus::Corpus;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn iliad(home: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    command.current_dir(home).args(arguments.split(' '));
    command
}

fn run(home: &Path, arguments: &str) -> (i32, String) {
    let Output { status, stderr, .. } = iliad(home, arguments).output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&stderr).into_owned())
}

fn item(expression: &str) -> String {
    let output = |word: &str| word.replace('n', "c");
    let pairs = ["moon", "banana", "melon", "nine", "sun"].map(|word| format!(r#"["<{word}>","<{}>"]"#, output(word)));
    format!(r#"[{{"re":"<{expression}","hint":["<","n","is","c",">"],"examples":[{}]}}]"#, pairs.join(","))
}

fn sources(folder: &Path, last: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let (good, last) = (item("()(n)()@c"), item(last));
    std::fs::write(folder.join("corpus.json"), format!(r#"{{"train":{good},"val":{good},"test":{last}}}"#)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_import_checks_first_and_replaces_only_what_it_is_told_to() {
    let home = tempfile::tempdir().unwrap();
    sources(&home.path().join("good"), "()(n)()@c");
    sources(&home.path().join("bad"), "()(q)()@c");
    let corpus = home.path().join("corpus");
    // A source that cannot be used leaves nothing, not even a folder.
    let (code, told) = run(home.path(), "data import-l3 bad -o corpus");
    assert!(code == 2 && told.contains("corpus.json"), "{told}");
    assert_eq!(names(home.path()), ["bad", "good"]);

    assert_eq!(run(home.path(), "data import-l3 good -o corpus"), (0, String::new()));
    let first = Corpus::load(&corpus).unwrap();
    // An existing folder stays: refused before the work, and by a failed replacement.
    std::fs::write(home.path().join("mark"), "").unwrap();
    for arguments in
        ["data import-l3 good -o corpus", "data import-l3 bad -o corpus --force", "data import-l3 good -o mark"]
    {
        let (code, told) = run(home.path(), arguments);
        assert!(code == 2 && told.contains("corpus") || told.contains("mark is a file"), "{arguments}: {told}");
        assert_eq!(Corpus::load(&corpus).unwrap(), first, "{arguments}");
    }
    let (_, told) = run(home.path(), "data import-l3 nowhere -o corpus");
    assert!(
        told.contains("holds something already") && told.contains("--force"),
        "the target is looked at first: {told}"
    );
    assert_eq!(run(home.path(), "data import-l3 good -o corpus --force"), (0, String::new()));
    // Somebody's own files are nobody's to replace.
    std::fs::write(corpus.join("notes.txt"), "mine").unwrap();
    let (code, told) = run(home.path(), "data import-l3 good -o corpus --force");
    assert!(code == 2 && told.contains("`notes.txt`"), "{told}");
    let (code, told) = run(home.path(), "data import-r2r good -o corpus --force");
    assert!(code == 2 && told.contains("no part of such data"), "one kind of data does not replace the other: {told}");
    assert_eq!(std::fs::read_to_string(corpus.join("notes.txt")).unwrap(), "mine");
    assert_eq!(names(home.path()), ["bad", "corpus", "good", "mark"], "nothing is left beside it");
}

fn wait(child: &mut Child, until: impl Fn() -> bool) {
    let begun = Instant::now();
    while !until() && child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(unix)]
#[test]
fn a_killed_import_leaves_no_half_and_the_next_one_clears_up() {
    let home = tempfile::tempdir().unwrap();
    sources(&home.path().join("good"), "()(n)()@c");
    let part = || names(home.path()).iter().any(|name| name.ends_with(".part"));
    let mut command = iliad(home.path(), "data import-l3 good -o corpus");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait(&mut child, part);
    let _ = child.kill();
    child.wait().unwrap();
    let corpus = home.path().join("corpus");
    if corpus.exists() {
        println!("it was through before it could be killed");
        Corpus::load(&corpus).unwrap();
    }
    let force = if corpus.exists() { " --force" } else { "" };
    assert_eq!(run(home.path(), &format!("data import-l3 good -o corpus{force}")), (0, String::new()));
    Corpus::load(&corpus).unwrap();
    assert_eq!(names(home.path()), ["corpus", "good"]);
}

#[test]
fn a_file_that_is_in_the_way_stays_when_the_new_one_cannot_be_made() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("results")).unwrap();
    std::fs::write(home.path().join("results/a.json"), "{").unwrap();
    std::fs::write(home.path().join("old.html"), "the old report").unwrap();
    assert_eq!(run(home.path(), "report --results results -o old.html").0, 2);
    assert_eq!(std::fs::read_to_string(home.path().join("old.html")).unwrap(), "the old report");
    // A place that cannot be written is named before the work.
    for arguments in [
        "report --results results -o results",
        "report --results results -o no/x.html",
        "theory --epochs 3 --plot no/x.svg",
        "nav house --plan no/x.svg",
        "export --schema -o no/x.json",
        "pretrain --preset tiny -o results",
        "teacher train --preset tiny -o results/a.json/x",
    ] {
        let (code, told) = run(home.path(), arguments);
        let place = arguments.rsplit(' ').next().unwrap();
        assert!(
            code == 1 && told.matches("cannot write ").count() == 1 && told.contains(place.split('/').next().unwrap()),
            "{arguments}: {told}"
        );
    }
    assert_eq!(names(home.path()), ["old.html", "results"]);
}

/// A limit on the size of files stands in for a full disk: writing fails in the middle, or ends the process there.
#[cfg(unix)]
#[test]
fn no_room_leaves_the_old_file_and_nothing_beside_it() {
    let home = tempfile::tempdir().unwrap();
    sources(&home.path().join("good"), "()(n)()@c");
    std::fs::create_dir(home.path().join("results")).unwrap();
    std::fs::write(home.path().join("results/speed.json"), r#"{"value": 41.7, "unit": "lines/min"}"#).unwrap();
    std::fs::write(home.path().join("old"), "the old one").unwrap();
    for (arguments, name) in [
        ("report --results results -o old", "old"),
        ("theory --epochs 50 --plot old", "old"),
        ("nav house --plan old", "old"),
        ("export --schema -o old", "old"),
        ("data import-l3 good -o new", "new"),
    ] {
        for survives in [true, false] {
            // Ignored, the signal becomes an error of the write.
            let trap = if survives { "trap '' XFSZ; " } else { "" };
            let line = format!("{trap}ulimit -c 0; ulimit -f 1; exec \"$0\" {arguments}");
            let mut command = Command::new("sh");
            command.args(["-c", &line, env!("CARGO_BIN_EXE_iliad")]).current_dir(home.path());
            let Output { status, stderr, .. } = command.stdout(Stdio::null()).output().unwrap();
            let told = String::from_utf8_lossy(&stderr);
            if survives {
                assert!(matches!(status.code(), Some(1 | 2)), "{arguments}: {status} {told}");
                assert!(
                    told.contains(name) && !told.contains(".part") && told.contains("too large"),
                    "{arguments}: {told}"
                );
                assert_eq!(names(home.path()), ["good", "old", "results"], "{arguments}");
            } else {
                assert_eq!(status.code(), None, "{arguments} is ended by the signal: {told}");
            }
            assert_eq!(std::fs::read_to_string(home.path().join("old")).unwrap(), "the old one", "{arguments}");
            assert!(!home.path().join("new").exists());
        }
        // The next writer clears up after the killed one.
        let _ = run(home.path(), if name == "old" { "export --schema -o old" } else { "data import-l3 good -o new" });
        assert!(!names(home.path()).iter().any(|name| name.ends_with(".part")), "{arguments}");
        std::fs::write(home.path().join("old"), "the old one").unwrap();
    }
}
