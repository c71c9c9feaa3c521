//! The import of L3's public files, on small files of the same form.

use iliad::datafile::DataError;
use iliad::protocol::{Split, World};
use iliad::rng::stream;
use iliad::task::regex::corpus::Corpus;
use iliad::task::regex::grammar::Grammar;
use iliad::task::regex::import::import_l3;
use iliad::task::regex::program::execute;
use iliad::task::regex::world::RegexWorld;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Requests as the source has them: lower case, double blanks and blanks at the end, some unusable.
fn templates() -> serde_json::Value {
    serde_json::json!({
        "()(l)()@l": [
            "turn BEFORE into AFTER", "each BEFORE  is AFTER now ", "write AFTER where BEFORE was", "BEFORE=AFTER",
            "no BEFORE", "q is made AFTER when it is BEFORE", "if there is a BEFORE , it is made an AFTER",
        ],
        "(^)(.)()@l": ["begin with AFTER instead", "the front letter is made AFTER", "AFTER at the front", "shared words AFTER"],
        "(^)(C)()@l": ["shared words AFTER", "shared words AFTER", "a consonant at the front is made AFTER"],
        "()(V)()@l\\2": ["AFTER before vowels", "all vowels have AFTER in front of them"],
        "()(l)()@": ["cut BEFORE", "BEFORE is cut out"],
        "()(.)($)@\\2\\2": ["say the last letter twice"],
        "()(ll)()@l": ["both BEFORE are made AFTER", "BEFORE to AFTER"],
    })
}

fn write_turk(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let mut table = String::from(
        "\"HITId\",\"Input.id\",\"Input.before_0\",\"Input.before_1\",\"Input.after_0\",\"Answer.hint_text\"\n",
    );
    for (number, pair) in Grammar::full().words().chunks(2).take(400).enumerate() {
        let [first, second] = pair else { continue };
        table += &format!(
            "\"X{number}\",\"{number}\",\"<span class='from'>{}</span>{}\",\"{second}\",\"not-a-word{number}\",\"said \"\"so\"\", twice\"\n",
            &first[..1],
            &first[1..]
        );
    }
    fs::write(folder.join("Batch_1_batch_results.csv"), table).expect("written");
}

fn check(corpus: &Corpus) {
    for split in [Split::Train, Split::Validation, Split::Test] {
        for item in corpus.split(split) {
            for (word, output) in &item.examples {
                assert_eq!(execute(&item.expression, word).as_ref(), Some(output), "{item:?}");
            }
            assert_ne!(item.examples[0].0, item.examples[0].1);
        }
    }
}

#[test]
fn templates_and_batches_become_a_corpus() {
    let (source, output) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let data = source.path().join("data").join("re2");
    write_turk(&data.join("turk"));
    fs::write(data.join("templates.json"), templates().to_string()).expect("written");
    let report = import_l3(source.path(), output.path()).expect("imported");
    println!("{report:?}");
    // One template has a single request; "no BEFORE" lacks a slot, "q is made" has a letter of its own; "shared words"
    // belongs to the template that more people gave it for.
    assert_eq!((report.regex_templates, report.request_templates), (6, 16));
    assert_eq!(report.left_out, 2);
    assert_eq!(report.words, 800, "the words without their markup, and only the words before");
    assert!(report.unlabeled > 10_000);
    let corpus = Corpus::load(output.path()).expect("what was written can be read");
    check(&corpus);
    assert_eq!(
        (corpus.train.len(), corpus.validation.len(), corpus.test.len()),
        (report.train, report.validation, report.test)
    );
    let texts = |split| -> HashSet<String> {
        let letters = |token: &&str| token.chars().count() > 1 || "[],=".contains(token);
        corpus
            .split(split)
            .iter()
            .flat_map(|item| &item.requests)
            .map(|request| request.split(' ').filter(letters).collect::<Vec<_>>().join(" "))
            .collect()
    };
    assert!(texts(Split::Train).is_disjoint(&texts(Split::Test)));
    assert!(texts(Split::Train).is_disjoint(&texts(Split::Validation)));
    assert!(corpus.train.iter().any(|item| item.requests.iter().any(|r| r.contains("] = ["))), "BEFORE=AFTER is split");
    assert!(!corpus.train.iter().flat_map(|item| &item.requests).any(|r| r.contains("BEFORE") || r.contains('{')));
    let world = RegexWorld::load(output.path()).expect("a world");
    let task = world.task(Split::Test, 0);
    world.sample_marginal(&task.start, &mut stream(1, "import test", 0));
}

#[test]
fn the_sources_own_dataset_is_converted_when_there_are_no_templates() {
    let (source, output) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let item = |expression: &str, hint: &str| {
        let spoken = |text: &str| format!("< {text} >").split(' ').map(str::to_owned).collect::<Vec<_>>();
        let examples: Vec<[String; 2]> = ["moon", "banana", "melon", "nine", "sun", "tune"]
            .iter()
            .map(|word| [format!("<{word}>"), format!("<{}>", execute(expression, word).expect("valid"))])
            .collect();
        serde_json::json!({"re": format!("<{expression}"), "hint": spoken(hint),
            "hints_aug": [spoken("change n to c"), spoken("each n is a c")], "examples": examples})
    };
    let good = item("()(n)()@c", "n is c");
    let useless = item("()(q)()@c", "no q");
    let corpus = serde_json::json!({"train": [good, useless], "val": [good], "test": [good]});
    fs::write(source.path().join("corpus.json"), corpus.to_string()).expect("written");
    let report = import_l3(source.path(), output.path()).expect("imported");
    assert_eq!((report.train, report.validation, report.test, report.left_out), (1, 1, 1, 1));
    assert_eq!(report.notes.len(), 2, "few words, splits not disjoint: {:?}", report.notes);
    let corpus = Corpus::load(output.path()).expect("what was written can be read");
    check(&corpus);
    assert_eq!(corpus.train[0].expression, "()(n)()@c");
    assert_eq!(corpus.train[0].requests, ["change [ n ] to [ c ]", "each [ n ] is a [ c ]", "[ n ] is [ c ]"]);
    assert_eq!(corpus.test[0].requests.len(), 1);
}

#[test]
fn what_cannot_be_imported_is_told_plainly_and_nothing_is_written() {
    let (source, output) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let target = output.path().join("corpus");
    assert!(matches!(import_l3(source.path(), &target), Err(DataError::Nothing { .. })));
    for (name, text, part) in [
        ("templates.json", "{\"()(l)()@l\": ", "templates.json"),
        ("templates.json", "{\"no at sign\": [\"BEFORE\"]}", "has no @"),
        ("templates.json", "{\"()(l)()@l\": [\"one BEFORE AFTER\"]}", "no regex template has two usable requests"),
        ("corpus.json", "{\"train\": []}", "missing field"),
    ] {
        fs::write(source.path().join(name), text).expect("written");
        let error = import_l3(source.path(), &target).expect_err(text).to_string();
        assert!(error.contains(part) && error.contains(name), "{error}");
        fs::remove_file(source.path().join(name)).expect("removed");
    }
    assert!(!target.exists());
}
