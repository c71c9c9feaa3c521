//! The built-in REGEX tasks: kinds of word edits with our own phrasings, and the corpus made of them.
//!
//! A kind is an expression with letter slots and phrasings of requests for it; the texts are in the files
//! beside this module. The phrasings of a kind are dealt out to the splits once and for all (about 70 / 15 / 15 %), so
//! that a validation request is never worded as a training request, whatever the seed (the tiny grammar is an exception).

use super::corpus::{Corpus, Item, Vocabularies};
use super::drawing::{TWO_LETTERS, draw_examples, vocabularies};
use super::marginal::Marginal;
use super::tokenise::tokenise;
use crate::datafile::built_in;
use crate::protocol::Split;
use crate::rng::{Stream, stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

const TEXTS: [&str; 3] =
    [include_str!("grammar/replace.txt"), include_str!("grammar/insert.txt"), include_str!("grammar/delete.txt")];

/// Words of the list that are left out, one a line, so that none on a page offends anybody.
const UNWANTED: &str = include_str!("grammar/unwanted.txt");

/// A grammar as `grammar/grammars.toml` describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    kinds: Option<Vec<String>>,
    letters: String,
    word_length: (usize, usize),
    two_letters: bool,
    share_phrasings: bool,
    tasks: [usize; 3],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllSettings {
    full: Settings,
    tiny: Settings,
}

static SETTINGS: LazyLock<AllSettings> =
    LazyLock::new(|| built_in("grammar/grammars.toml", include_str!("grammar/grammars.toml")));

/// One kind of edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name, e.g. `before-vowels`.
    pub name: String,
    /// Expression with `{x}` for the pattern's letter, `{y}` for one letter, `{yy}` for one or two letters put in.
    expression: String,
    /// Phrasings for training, validation and test: tokens separated by blanks, `{x}` and `{y}` for the letters.
    phrasings: [Vec<String>; 3],
}

/// Letters that fill a kind's slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Letters {
    /// The pattern's letter, if the kind has one.
    pub before: Option<char>,
    /// The letters put in; none, one or two.
    pub after: String,
}

impl Kind {
    /// Phrasings of a split, with `{x}` and `{y}` as slots.
    pub fn phrasings(&self, split: Split) -> &[String] {
        &self.phrasings[position(split)]
    }

    /// Whether the pattern names a letter.
    pub fn names_letter(&self) -> bool {
        self.expression.contains("{x}")
    }

    /// The largest number of letters that the kind puts in.
    pub fn puts_letters(&self) -> usize {
        if self.expression.contains("{yy}") { 2 } else { usize::from(self.expression.contains("{y}")) }
    }

    /// The expression with its slots filled.
    pub fn expression(&self, letters: &Letters) -> String {
        let mut before = [0; 4];
        let before = letters.before.map_or("", |c| c.encode_utf8(&mut before));
        self.expression.replace("{x}", before).replace("{yy}", &letters.after).replace("{y}", &letters.after)
    }

    /// A request: a phrasing with its slots filled, as tokens separated by single blanks.
    pub fn request(phrasing: &str, letters: &Letters) -> String {
        let slot = |letters: &str| {
            let spread: Vec<String> = letters.chars().map(String::from).collect();
            format!("[ {} ]", spread.join(" "))
        };
        let before: String = letters.before.into_iter().collect();
        phrasing.replace("{x}", &slot(&before)).replace("{y}", &slot(&letters.after))
    }
}

fn position(split: Split) -> usize {
    match split {
        Split::Train => 0,
        Split::Validation => 1,
        Split::Test => 2,
    }
}

/// Kinds, letters and words from which tasks are drawn.
#[derive(Clone, Debug)]
pub struct Grammar {
    kinds: Vec<Kind>,
    /// Letters that patterns and replacements use.
    letters: Vec<char>,
    words: Vec<String>,
    two_letters: bool,
    sizes: [usize; 3],
}

impl Grammar {
    /// The whole grammar: every kind, all letters, words of 3 to 12 letters.
    pub fn full() -> Grammar {
        Grammar::of(&SETTINGS.full)
    }

    /// A small grammar of the same structure, for tests that learn in a minute: eight kinds, six letters, one letter put
    /// in at a time, words of 3 to 6 letters. A hundred phrasings are too few to learn wording from, so here, and only
    /// here, the splits share them and differ in letters and words.
    pub fn tiny() -> Grammar {
        Grammar::of(&SETTINGS.tiny)
    }

    fn of(settings: &Settings) -> Grammar {
        let mut kinds =
            read_kinds(|name| settings.kinds.as_ref().is_none_or(|all| all.iter().any(|kind| kind == name)));
        if settings.share_phrasings {
            for kind in &mut kinds {
                let all: Vec<String> = kind.phrasings.concat();
                kind.phrasings = std::array::from_fn(|_| all.clone());
            }
        }
        let (shortest, longest) = settings.word_length;
        Grammar {
            kinds,
            letters: settings.letters.chars().collect(),
            words: words(shortest..=longest),
            two_letters: settings.two_letters,
            sizes: settings.tasks,
        }
    }

    /// All kinds.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Letters that patterns and replacements use.
    pub fn letters(&self) -> &[char] {
        &self.letters
    }

    /// The dictionary.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// P_ω over the same letters: broader than the tasks.
    pub fn marginal(&self) -> Marginal {
        // A small grammar puts one letter in at a time.
        let slot = |form: &str| if self.two_letters { form.to_owned() } else { form.replace("{yy}", "{y}") };
        Marginal::Composed {
            letters: self.letters.clone(),
            forms: self.kinds.iter().map(|kind| slot(&kind.expression)).collect(),
        }
    }

    /// Draws the corpus of a seed.
    pub fn corpus(&self, seed: u64) -> Corpus {
        let draw = |split: Split, purpose| {
            (0..self.sizes[position(split)])
                .map(|index| self.item(split, &mut stream(seed, purpose, index as u64)))
                .collect()
        };
        Corpus {
            train: draw(Split::Train, "regex train tasks"),
            validation: draw(Split::Validation, "regex validation tasks"),
            test: draw(Split::Test, "regex test tasks"),
            vocabularies: self.vocabularies(),
            unlabeled: Vec::new(),
            words: self.words.clone(),
        }
    }

    /// One task: a kind, its letters, words that show it, and up to three requests.
    fn item(&self, split: Split, stream: &mut Stream) -> Item {
        loop {
            let kind = &self.kinds[stream.random_range(0..self.kinds.len())];
            let letters = self.draw_letters(kind, stream);
            let expression = kind.expression(&letters);
            let Some(examples) = draw_examples(&self.words, &expression, stream) else { continue };
            let mut phrasings: Vec<&String> = kind.phrasings(split).iter().collect();
            let requests = if split == Split::Train { 3 } else { 1 };
            let (chosen, _) = phrasings.partial_shuffle(stream, requests);
            let requests = chosen.iter().map(|phrasing| Kind::request(phrasing, &letters)).collect();
            return Item { expression, requests, examples };
        }
    }

    fn draw_letters(&self, kind: &Kind, stream: &mut Stream) -> Letters {
        let letter = |stream: &mut Stream| self.letters[stream.random_range(0..self.letters.len())];
        let before = kind.names_letter().then(|| letter(stream));
        let mut after = String::new();
        if kind.puts_letters() > 0 {
            after.push(letter(stream));
        }
        if kind.puts_letters() > 1 && self.two_letters && stream.random_bool(TWO_LETTERS) {
            after.push(letter(stream));
        }
        Letters { before, after }
    }

    /// Symbols of requests, words and expressions, from the training phrasings only.
    fn vocabularies(&self) -> Vocabularies {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for kind in &self.kinds {
            for token in kind.phrasings(Split::Train).iter().flat_map(|phrasing| phrasing.split(' ')) {
                if !token.starts_with('{') {
                    *counts.entry(token).or_default() += 1;
                }
            }
        }
        vocabularies(counts)
    }
}

/// Words of the EFF's long list with as many letters as asked for.
fn words(length: std::ops::RangeInclusive<usize>) -> Vec<String> {
    let unwanted: HashSet<&str> = UNWANTED.lines().collect();
    let fits = |word: &&&str| {
        length.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()) && !unwanted.contains(*word)
    };
    diceware_wordlists::EFF_LONG_WORDLIST.iter().filter(fits).map(|word| (*word).to_owned()).collect()
}

/// Reads the kinds that are wanted: a line `== name expression`, then a phrasing a line.
fn read_kinds(wanted: impl Fn(&str) -> bool) -> Vec<Kind> {
    let mut read: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for block in TEXTS.iter().flat_map(|text| text.split("== ").skip(1)) {
        let mut lines = block.lines().filter(|line| !line.is_empty());
        let (name, expression) = lines.next().and_then(|head| head.split_once(' ')).unwrap_or_default();
        if wanted(name) {
            read.push((name, expression, lines.map(phrasing_tokens).collect()));
        }
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for token in read.iter().flat_map(|(.., phrasings)| phrasings.iter().flat_map(|p| p.split(' '))) {
        *counts.entry(token.to_owned()).or_default() += 1;
    }
    deal(read, counts)
}

/// Deals the phrasings of each kind out to the splits. Which are held out is left to chance, but as far as can be, each
/// of their words remains in at least two training phrasings (`counts`): a word that training never showed would say
/// little about whether a request is understood.
fn deal(mut kinds: Vec<(&str, &str, Vec<String>)>, mut counts: HashMap<String, usize>) -> Vec<Kind> {
    // The seed is fixed: which phrasing belongs to which split is part of the task, not of a run.
    let mut chance = stream(0, "regex phrasings", kinds.len() as u64);
    let sizes: Vec<usize> = kinds.iter().map(|(.., phrasings)| (phrasings.len() * 15).div_ceil(100).max(1)).collect();
    let mut held_out: Vec<Vec<String>> = vec![Vec::new(); kinds.len()];
    for (.., phrasings) in &mut kinds {
        phrasings.shuffle(&mut chance);
    }
    // Kind by kind and one at a time, so that no kind has to take what the others left.
    for round in 0..2 * sizes.iter().copied().max().unwrap_or(0) {
        for ((.., phrasings), (out, size)) in kinds.iter_mut().zip(held_out.iter_mut().zip(&sizes)) {
            if round >= 2 * size {
                continue;
            }
            let left = |phrasing: &String| phrasing.split(' ').map(|t| counts[t] - 1).min().unwrap_or(0).min(2);
            let best = (0..phrasings.len()).rev().max_by_key(|i| left(&phrasings[*i])).unwrap_or(0);
            let phrasing = phrasings.remove(best);
            for token in phrasing.split(' ') {
                if let Some(count) = counts.get_mut(token) {
                    *count -= 1;
                }
            }
            out.push(phrasing);
        }
    }
    let mut done = Vec::with_capacity(kinds.len());
    for ((name, expression, train), (mut validation, size)) in kinds.into_iter().zip(held_out.into_iter().zip(sizes)) {
        validation.shuffle(&mut chance);
        let test = validation.split_off(size);
        let phrasings = [train, validation, test];
        done.push(Kind { name: name.to_owned(), expression: expression.to_owned(), phrasings });
    }
    done
}

/// A phrasing as tokens: what the tokeniser makes of it when a letter stands in each slot.
fn phrasing_tokens(line: &str) -> String {
    let filled = line.replace("{x}", "[ \u{3be} ]").replace("{y}", "[ \u{3c8} ]");
    let tokens = tokenise(&filled, &|_| true).join(" ");
    tokens.replace("[ \u{3be} ]", "{x}").replace("[ \u{3c8} ]", "{y}")
}

#[cfg(test)]
mod tests {
    use super::super::program::Expression;
    use super::*;

    #[test]
    fn the_files_of_kinds_are_whole() {
        let kinds = read_kinds(|_| true);
        let headings: usize = TEXTS.iter().map(|text| text.lines().filter(|line| line.starts_with("==")).count()).sum();
        let names: HashSet<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!((kinds.len(), names.len()), (headings, headings), "a heading is malformed, or a name occurs twice");
        for kind in &kinds {
            let letters =
                Letters { before: kind.names_letter().then_some('a'), after: "b".repeat(kind.puts_letters().min(1)) };
            assert!(Expression::new(&kind.expression(&letters)).is_some(), "{kind:?}");
            assert!(kind.phrasings.iter().all(|phrasings| !phrasings.is_empty()), "{kind:?}");
            for phrasing in kind.phrasings.iter().flatten() {
                assert_eq!(phrasing.contains("{x}"), kind.names_letter(), "{}: {phrasing}", kind.name);
                assert_eq!(phrasing.contains("{y}"), kind.puts_letters() > 0, "{}: {phrasing}", kind.name);
            }
        }
        let tiny = SETTINGS.tiny.kinds.as_ref().expect("a list");
        assert!(tiny.iter().all(|kind| names.contains(kind.as_str())));
        let known: HashSet<&str> = diceware_wordlists::EFF_LONG_WORDLIST.iter().copied().collect();
        assert!(UNWANTED.lines().all(|word| known.contains(word)));
    }
}
