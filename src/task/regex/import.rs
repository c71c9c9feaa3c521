//! Import of the public L3 regex files into our corpus format.
//!
//! "Learning with Latent Language" (Andreas, Klein and Levine, 2018) publishes crowd-sourced requests in its folder
//! `data/re2`. What is read there, each where it exists:
//! - `templates.json`: an object from regex templates to lists of request templates. A regex template is
//!   `(A)(M)(Z)@replacement` with `l` for a letter of the pattern, and for a stretch of letters of the replacement; a
//!   request template has `BEFORE` and `AFTER` where those letters were.
//! - `turk/*.csv`: the crowd-workers' batches; the words they were shown (columns `Input.before_0` and so on, with the
//!   matches marked up) become the dictionary.
//! - `corpus.json`: the dataset that the project's own scripts make: `train`, `val` and `test` with `re` (`<` and the
//!   expression), `hint`, `hints_aug` and `examples`, each text between `<` and `>`.
//!
//! With `templates.json` the import goes the way of the paper (its appendix): regex templates with more than one request
//! template are kept, requests that cannot be right are dropped, the rest is dealt out to disjoint splits and filled with
//! letters and words. The paper's authors removed mistaken requests by hand; here it is done by rules, so expect more
//! noise: slots must fit the regex template, and a text that people gave for several regex templates stays only with the
//! one that most gave it for. Without `templates.json`, `corpus.json` is converted as it is, splits included; its
//! requests are then not disjoint.

use super::PAIRS;
use super::corpus::{Corpus, FILES, Item};
use super::drawing::{TWO_LETTERS, draw_examples, vocabularies};
use super::marginal::Marginal;
use super::program::{Expression, execute};
use super::python_re::Scratch;
use super::tokenise::tokenise;
use crate::command_line::progress::{Step, Told};
use crate::datafile::{DataError, read_json};
use crate::output::folder::{self, Draft, Existing};
use crate::rng::{Stream, stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// Data points drawn for each request template; about what the paper's counts give.
const POINTS: usize = 115;

/// Share of request templates that validation gets, and test as well.
const HELD_OUT: f64 = 0.05;

/// Unlabelled expressions drawn.
const UNLABELED: usize = 30_000;

/// A pattern's letter is used where the expression changes at least this many of 100 words.
const LEAST_CHANGED: usize = 5;

/// An unlabelled expression changes at least this many of 100 words.
const UNLABELED_CHANGED: usize = 15;

/// Letters of the source: its grammar leaves z out.
const LETTERS: std::ops::RangeInclusive<char> = 'a'..='y';

/// Counts of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Tasks of the training split.
    pub train: usize,
    /// Tasks of the validation split.
    pub validation: usize,
    /// Tasks of the test split.
    pub test: usize,
    /// Regex templates used (0 when `corpus.json` was converted as it is).
    pub regex_templates: usize,
    /// Request templates used (0 in the same case).
    pub request_templates: usize,
    /// Request templates or items that were left out.
    pub left_out: usize,
    /// Words of the dictionary.
    pub words: usize,
    /// Unlabelled expressions.
    pub unlabeled: usize,
    /// Remarks about the result, in plain sentences.
    pub notes: Vec<String>,
}

fn nothing(folder: &Path) -> DataError {
    let what = "neither templates.json nor corpus.json; name the L3 repository or its folder data/re2";
    DataError::Nothing { path: folder.to_path_buf(), what }
}

/// An item of L3's `corpus.json`. Texts are between `<` and `>`; the expression only begins with `<`.
#[derive(Deserialize)]
struct SourceItem {
    re: String,
    #[serde(default)]
    hint: Vec<String>,
    #[serde(default)]
    hints_aug: Vec<Vec<String>>,
    examples: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Source {
    train: Vec<SourceItem>,
    val: Vec<SourceItem>,
    test: Vec<SourceItem>,
}

/// Imports the L3 files in `folder` (the repository or its `data/re2`) and writes a corpus into `output`, in the place of
/// an older one.
///
/// # Errors
/// As [`import_l3_into`].
pub fn import_l3(folder: &Path, output: &Path) -> Result<ImportReport, DataError> {
    import_l3_into(folder, output, Existing::Replace, &|_| {})
}

/// Imports as [`import_l3`] does; `existing` decides about an older corpus, and `told` hears how far it is.
///
/// # Errors
/// When there is nothing to import, a file is malformed, or the corpus cannot be written. `output` is then as it was: the
/// corpus takes its place once it is whole and could be read again.
pub fn import_l3_into(
    folder: &Path,
    output: &Path,
    existing: Existing,
    told: Told<'_>,
) -> Result<ImportReport, DataError> {
    let step = |what, done| told(Step { what, done, of: 3 });
    folder::check(output, existing, &FILES)?;
    let nested = folder.join("data").join("re2");
    let folder = if nested.is_dir() { nested.as_path() } else { folder };
    let (templates, corpus) = (folder.join("templates.json"), folder.join("corpus.json"));
    if !templates.is_file() && !corpus.is_file() {
        return Err(nothing(folder));
    }
    let source: Option<Source> = if corpus.is_file() { Some(read_json(&corpus)?) } else { None };
    let mut report = ImportReport::default();
    step("Reading the words", 0);
    let words = dictionary(folder, source.as_ref(), &mut report)?;
    step("Reading the tasks", 1);
    let mut imported = if templates.is_file() {
        from_templates(&templates, &words, &mut report)?
    } else {
        convert(&corpus, source, &mut report)?
    };
    imported.unlabeled = unlabeled(&words);
    imported.words = words;
    report.train = imported.train.len();
    report.validation = imported.validation.len();
    report.test = imported.test.len();
    report.words = imported.words.len();
    report.unlabeled = imported.unlabeled.len();
    let draft = Draft::begin(output, existing, &FILES)?;
    step("Writing the corpus and reading it again", 2);
    // The written corpus must be usable.
    imported.save(draft.path()).and_then(|()| Corpus::load(draft.path())).map_err(|e| e.renamed(|p| draft.named(p)))?;
    draft.finish()?;
    Ok(report)
}

/// Words of 3 to 15 letters that crowd-workers or the dataset show, sorted.
fn dictionary(folder: &Path, source: Option<&Source>, report: &mut ImportReport) -> Result<Vec<String>, DataError> {
    let mut words = BTreeSet::new();
    let mut add = |text: &str| {
        if (3..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase()) {
            words.insert(text.to_owned());
        }
    };
    for item in source.iter().flat_map(|s| s.train.iter().chain(&s.val).chain(&s.test)) {
        item.examples.iter().for_each(|(word, _)| add(strip(word)));
    }
    let turk = folder.join("turk");
    if turk.is_dir() {
        let failed = DataError::read(&turk);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&turk).map_err(&failed)? {
            let path = entry.map_err(&failed)?.path();
            if path.extension().is_some_and(|e| e == "csv") {
                files.push(path);
            }
        }
        files.sort();
        for path in files {
            let content = |error: csv::Error| DataError::content(&path, error.to_string());
            let mut table = csv::Reader::from_path(&path).map_err(content)?;
            let header = table.headers().map_err(content)?.clone();
            let shown: Vec<usize> = (0..header.len())
                .filter(|at| header[*at].starts_with("Input.before_") || &header[*at] == "Input.test_before")
                .collect();
            for row in table.records() {
                let row = row.map_err(content)?;
                shown.iter().filter_map(|at| row.get(*at)).for_each(|cell| add(&without_markup(cell)));
            }
        }
    }
    if words.len() < 100 {
        let note = "the files show fewer than 100 words; the built-in word list was taken instead";
        report.notes.push(note.into());
        return Ok(super::grammar::Grammar::full().words().to_vec());
    }
    Ok(words.into_iter().collect())
}

/// Text without tags.
fn without_markup(cell: &str) -> String {
    let mut inside = false;
    cell.chars()
        .filter(|c| {
            let tag = inside || *c == '<';
            inside = tag && *c != '>';
            !tag
        })
        .collect()
}

/// Text without its start and stop marks.
fn strip(text: &str) -> &str {
    let text = text.strip_prefix('<').unwrap_or(text);
    text.strip_suffix('>').unwrap_or(text)
}

/// A regex template with its request templates (tokens, `{x}` and `{y}` for the slots).
struct Template {
    pattern: String,
    replacement: String,
    requests: Vec<String>,
}

impl Template {
    /// Letters that the pattern's slot takes, and whether the replacement has a slot, and which is all of it.
    fn slots(pattern: &str, replacement: &str) -> (usize, bool, bool) {
        (pattern.matches('l').count(), replacement.contains('l'), replacement == "l")
    }
}

/// A request template as tokens with slots, if its slots are those that its regex template fills.
fn request_tokens(text: &str, pattern: &str, replacement: &str) -> Option<String> {
    let (before, after, _) = Template::slots(pattern, replacement);
    // The slots' names are put between blanks: people glued them to signs ("=AFTER").
    let spaced = text.replace("BEFORE", " [\u{3be}] ").replace("AFTER", " [\u{3c8}] ");
    let tokens = tokenise(&spaced, &|word| word.chars().count() > 1).join(" ");
    let tokens = tokens.replace("[ \u{3be} ]", "{x}").replace("[ \u{3c8} ]", "{y}");
    let fits = tokens.contains("{x}") == (before > 0) && tokens.contains("{y}") == after;
    // Any other letter slot is one the crowd-worker's own example left behind.
    (fits && !tokens.contains('[') && !tokens.is_empty()).then_some(tokens)
}

fn from_templates(path: &Path, words: &[String], report: &mut ImportReport) -> Result<Corpus, DataError> {
    let content = |what: String| DataError::content(path, what);
    let raw: BTreeMap<String, Vec<String>> = read_json(path)?;
    // Number of people who gave a request for each regex template.
    let mut given: BTreeMap<String, BTreeMap<(&str, &str), usize>> = BTreeMap::new();
    for (key, texts) in &raw {
        let Some((pattern, replacement)) = key.split_once('@') else {
            return Err(content(format!("the regex template {key:?} has no @")));
        };
        for text in texts {
            match request_tokens(text, pattern, replacement) {
                Some(tokens) => *given.entry(tokens).or_default().entry((pattern, replacement)).or_default() += 1,
                None => report.left_out += 1,
            }
        }
    }
    let mut kept: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (tokens, by_template) in given {
        let most = by_template.values().copied().max().unwrap_or(0);
        let mut best = by_template.iter().filter(|(_, count)| **count == most);
        match (best.next(), best.next()) {
            (Some((template, _)), None) => kept.entry(*template).or_default().push(tokens),
            _ => report.left_out += 1,
        }
    }
    let mut templates: Vec<Template> = kept
        .into_iter()
        .filter(|(_, requests)| requests.len() > 1)
        .map(|((pattern, replacement), requests)| Template {
            pattern: pattern.to_owned(),
            replacement: replacement.to_owned(),
            requests,
        })
        .collect();
    // A template whose expressions never change words cannot be drawn from; it would only be noise.
    templates.retain(|template| fill(template, words, &mut stream(0, "l3 trial", 0)).is_some());
    if templates.is_empty() {
        return Err(content("no regex template has two usable requests".into()));
    }
    report.regex_templates = templates.len();
    report.request_templates = templates.iter().map(|template| template.requests.len()).sum();
    report.notes.push(
        "requests were filtered by rules, not by hand as the paper's were; letters and words are newly drawn".into(),
    );
    Ok(draw(&templates, words))
}

/// Deals request templates out to disjoint splits and draws their data points.
fn draw(templates: &[Template], words: &[String]) -> Corpus {
    let mut places: Vec<(usize, usize)> = templates
        .iter()
        .enumerate()
        .flat_map(|(t, template)| (0..template.requests.len()).map(move |r| (t, r)))
        .collect();
    let held_out = ((places.len() as f64 * HELD_OUT).round() as usize).max(1).min(places.len() / 3);
    let mut chance = stream(0, "l3 splits", 0);
    places.shuffle(&mut chance);
    // A request that is the last of its regex template stays in training, so that there is something to learn from.
    let mut left: Vec<usize> = templates.iter().map(|template| template.requests.len()).collect();
    let (mut out, mut train) = (Vec::new(), Vec::new());
    for (t, r) in places {
        if out.len() < 2 * held_out && left[t] > 1 {
            left[t] -= 1;
            out.push((t, r));
        } else {
            train.push((t, r));
        }
    }
    let test = out.split_off(out.len() / 2);
    let mut corpus = Corpus::default();
    for (purpose, places, items, requests) in [
        ("l3 train", &train, &mut corpus.train, 3),
        ("l3 validation", &out, &mut corpus.validation, 1),
        ("l3 test", &test, &mut corpus.test, 1),
    ] {
        for (number, (t, r)) in places.iter().enumerate() {
            let template = &templates[*t];
            let others: Vec<&String> = places
                .iter()
                .filter(|(other, request)| other == t && request != r)
                .map(|(_, request)| &template.requests[*request])
                .collect();
            let mut chance = stream(0, purpose, number as u64);
            for _ in 0..POINTS {
                let Some((expression, before, after, examples)) = fill(template, words, &mut chance) else { continue };
                let mut others = others.clone();
                let (more, _) = others.partial_shuffle(&mut chance, requests - 1);
                let requests = std::iter::once(&template.requests[*r])
                    .chain(more.iter().copied())
                    .map(|tokens| tokens.replace("{x}", &slot(&before)).replace("{y}", &slot(&after)))
                    .collect();
                items.push(Item { expression, requests, examples });
            }
        }
        items.shuffle(&mut chance);
    }
    corpus.vocabularies = vocabularies(token_counts(&corpus.train));
    corpus
}

fn token_counts(items: &[Item]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for token in items.iter().flat_map(|item| item.requests.iter().flat_map(|request| request.split(' '))) {
        *counts.entry(token).or_default() += 1;
    }
    counts
}

fn slot(letters: &str) -> String {
    let spread: Vec<String> = letters.chars().map(String::from).collect();
    format!("[ {} ]", spread.join(" "))
}

type Filled = (String, String, String, [(String, String); PAIRS]);

/// An expression of a template with its letters, and words that show it. `None` when no letters were found for which
/// it changes enough words.
fn fill(template: &Template, words: &[String], chance: &mut Stream) -> Option<Filled> {
    let letters: Vec<char> = LETTERS.collect();
    let (slots, has_after, all_after) = Template::slots(&template.pattern, &template.replacement);
    for _ in 0..60 {
        let mut letter = || letters[chance.random_range(0..letters.len())];
        let before: String = (0..slots).map(|_| letter()).collect();
        let mut after: String = if has_after { letter().into() } else { String::new() };
        if all_after && chance.random_bool(TWO_LETTERS) {
            after.push(letters[chance.random_range(0..letters.len())]);
        }
        let mut given = before.chars();
        let pattern: String =
            template.pattern.chars().map(|c| if c == 'l' { given.next().unwrap_or('l') } else { c }).collect();
        let expression = format!("{pattern}@{}", template.replacement.replace('l', &after));
        if slots > 0 && !changes_enough(&expression, LEAST_CHANGED, words, chance) {
            continue;
        }
        if let Some(examples) = draw_examples(words, &expression, chance) {
            return Some((expression, before, after, examples));
        }
    }
    None
}

/// Whether an expression changes at least `share` of 100 random words.
fn changes_enough(expression: &str, share: usize, words: &[String], chance: &mut Stream) -> bool {
    let Some(compiled) = Expression::new(expression) else { return false };
    let mut scratch = Scratch::default();
    let mut changed = 0;
    for tried in 0..100 {
        let word = &words[chance.random_range(0..words.len())];
        changed += usize::from(compiled.apply(word, &mut scratch).is_some_and(|output| output != *word));
        // An expression that changed none of so many words would hardly reach the share with the rest.
        let hopeless = changed == 0 && tried >= 400 / share;
        if changed >= share || changed + 99 - tried < share || hopeless {
            break;
        }
    }
    changed >= share
}

/// Distinct expressions that change at least 15 % of the words.
fn unlabeled(words: &[String]) -> Vec<String> {
    let source = Marginal::Composed { letters: LETTERS.collect(), forms: Vec::new() };
    let mut chance = stream(0, "l3 unlabelled", 0);
    let (mut seen, mut drawn) = (HashSet::new(), Vec::new());
    for _ in 0..50 * UNLABELED {
        if drawn.len() == UNLABELED {
            break;
        }
        let expression = source.draw(&mut chance);
        if !seen.contains(&expression) && changes_enough(&expression, UNLABELED_CHANGED, words, &mut chance) {
            seen.insert(expression.clone());
            drawn.push(expression);
        }
    }
    drawn
}

/// L3's own dataset, item by item.
fn convert(path: &Path, source: Option<Source>, report: &mut ImportReport) -> Result<Corpus, DataError> {
    let Some(source) = source else { return Err(nothing(path)) };
    let mut corpus = Corpus::default();
    for (items, converted, requests) in [
        (source.train, &mut corpus.train, 3),
        (source.val, &mut corpus.validation, 1),
        (source.test, &mut corpus.test, 1),
    ] {
        for item in items {
            match convert_item(&item, requests) {
                Some(item) => converted.push(item),
                None => report.left_out += 1,
            }
        }
    }
    if corpus.train.is_empty() || corpus.validation.is_empty() || corpus.test.is_empty() {
        let what = "a split has no usable item (a request, an expression and five examples)".to_owned();
        return Err(DataError::content(path, what));
    }
    corpus.vocabularies = vocabularies(token_counts(&corpus.train));
    report.notes.push("the splits are the file's own: requests of validation and test also occur in training".into());
    Ok(corpus)
}

fn convert_item(item: &SourceItem, requests: usize) -> Option<Item> {
    let expression = strip(&item.re).to_owned();
    let mut texts: Vec<String> = Vec::new();
    for tokens in item.hints_aug.iter().chain(std::iter::once(&item.hint)) {
        let words: Vec<&str> = tokens.iter().map(String::as_str).filter(|t| !matches!(*t, "<" | ">")).collect();
        let text = tokenise(&words.join(" "), &|word| word.chars().count() > 1).join(" ");
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.truncate(requests);
    let examples: Vec<(String, String)> =
        item.examples.iter().map(|(word, output)| (strip(word).to_owned(), strip(output).to_owned())).collect();
    let right =
        |pair: &&(String, String)| execute(&expression, &pair.0).as_ref() == Some(&pair.1) && !pair.0.is_empty();
    let first = examples.iter().filter(right).position(|(word, output)| word != output)?;
    let mut examples: Vec<(String, String)> = examples.iter().filter(right).cloned().collect();
    examples.swap(0, first);
    examples.truncate(PAIRS);
    let examples = examples.try_into().ok()?;
    (!texts.is_empty()).then_some(Item { expression, requests: texts, examples })
}
