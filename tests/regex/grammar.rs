//! The built-in grammar: its size, its splits, and what its kinds mean.
//!
//! Each kind is written a second time here, as plain string code from its meaning, and compared with the expression.

use iliad::protocol::Split;
use iliad::rng::stream;
use iliad::task::regex::grammar::{Grammar, Kind, Letters};
use iliad::task::regex::program::execute;
use iliad::task::regex::tokenise::tokenise;
use rand::RngExt;
use std::collections::{HashMap, HashSet};

const SPLITS: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

fn is_vowel(c: char) -> bool {
    "aeiou".contains(c)
}

fn is_consonant(c: char) -> bool {
    !is_vowel(c)
}

/// Goes through the word from the left; `edit` gets what is left and says how many letters it takes and what it makes
/// of them.
fn everywhere(word: &str, edit: impl Fn(&[char]) -> Option<(usize, String)>) -> String {
    let letters: Vec<char> = word.chars().collect();
    let (mut at, mut out) = (0, String::new());
    while at < letters.len() {
        match edit(&letters[at..]) {
            Some((taken, text)) => {
                out.push_str(&text);
                at += taken;
            }
            None => {
                out.push(letters[at]);
                at += 1;
            }
        }
    }
    out
}

fn each(word: &str, test: impl Fn(char) -> bool, text: impl Fn(char) -> String) -> String {
    everywhere(word, |rest| test(rest[0]).then(|| (1, text(rest[0]))))
}

fn each_pair(word: &str, test: impl Fn(char, char) -> bool, text: impl Fn(char, char) -> String) -> String {
    everywhere(word, |rest| match rest {
        [a, b, ..] if test(*a, *b) => Some((2, text(*a, *b))),
        _ => None,
    })
}

fn first(word: &str, test: impl Fn(char) -> bool, text: impl Fn(char) -> String) -> String {
    match word.chars().next() {
        Some(c) if test(c) => text(c) + &word[1..],
        _ => word.into(),
    }
}

fn last(word: &str, test: impl Fn(char) -> bool, text: impl Fn(char) -> String) -> String {
    match word.chars().last() {
        Some(c) if test(c) => word[..word.len() - 1].to_owned() + &text(c),
        _ => word.into(),
    }
}

fn twice(c: char) -> String {
    format!("{c}{c}")
}

/// The effect of a kind on a word, without regular expressions.
fn meaning(kind: &str, letters: &Letters, word: &str) -> String {
    let x = letters.before.unwrap_or('\0');
    let y = letters.after.as_str();
    let put = |_: char| y.to_owned();
    let any = |_: char| true;
    let gone = |_: char| String::new();
    let before = |c: char| format!("{y}{c}");
    let after = |c: char| format!("{c}{y}");
    let pair_put = |_: char, _: char| y.to_owned();
    let count = word.chars().count();
    match kind {
        "replace-letter" => word.replace(x, y),
        "replace-vowels" => each(word, is_vowel, put),
        "replace-consonants" => each(word, is_consonant, put),
        "replace-any" => y.repeat(count),
        "replace-first" => first(word, any, put),
        "replace-first-vowel" => first(word, is_vowel, put),
        "replace-first-consonant" => first(word, is_consonant, put),
        "replace-first-if" => first(word, |c| c == x, put),
        "replace-first-two" => {
            if count < 2 {
                word.into()
            } else {
                format!("{y}{}", &word[2..])
            }
        }
        "replace-last" => last(word, any, put),
        "replace-last-vowel" => last(word, is_vowel, put),
        "replace-last-consonant" => last(word, is_consonant, put),
        "replace-last-if" => last(word, |c| c == x, put),
        "replace-last-two" => {
            if count < 2 {
                word.into()
            } else {
                format!("{}{y}", &word[..count - 2])
            }
        }
        "replace-two-consonants" => each_pair(word, |a, b| is_consonant(a) && is_consonant(b), pair_put),
        "replace-two-vowels" => each_pair(word, |a, b| is_vowel(a) && is_vowel(b), pair_put),
        "replace-consonant-vowel" => each_pair(word, |a, b| is_consonant(a) && is_vowel(b), pair_put),
        "replace-vowel-consonant" => each_pair(word, |a, b| is_vowel(a) && is_consonant(b), pair_put),
        "replace-letter-and-next" => each_pair(word, |a, _| a == x, pair_put),
        "replace-letter-and-previous" => each_pair(word, |_, b| b == x, pair_put),
        "before-letter" => each(word, |c| c == x, before),
        "after-letter" => each(word, |c| c == x, after),
        "before-vowels" => each(word, is_vowel, before),
        "after-vowels" => each(word, is_vowel, after),
        "before-consonants" => each(word, is_consonant, before),
        "after-consonants" => each(word, is_consonant, after),
        "before-any" => each(word, any, before),
        "after-any" => each(word, any, after),
        "before-first" => {
            if count == 0 {
                String::new()
            } else {
                format!("{y}{word}")
            }
        }
        "before-first-vowel" => first(word, is_vowel, before),
        "before-first-consonant" => first(word, is_consonant, before),
        "after-first" => first(word, any, after),
        "after-last" => {
            if count == 0 {
                String::new()
            } else {
                format!("{word}{y}")
            }
        }
        "after-last-vowel" => last(word, is_vowel, after),
        "after-last-consonant" => last(word, is_consonant, after),
        "before-last" => last(word, any, before),
        "after-two-vowels" => each_pair(word, |a, b| is_vowel(a) && is_vowel(b), |a, b| format!("{a}{b}{y}")),
        "before-two-consonants" => {
            each_pair(word, |a, b| is_consonant(a) && is_consonant(b), |a, b| format!("{y}{a}{b}"))
        }
        "delete-letter" => word.replace(x, ""),
        "delete-vowels" => word.chars().filter(|c| is_consonant(*c)).collect(),
        "delete-consonants" => word.chars().filter(|c| is_vowel(*c)).collect(),
        "delete-first" => word.chars().skip(1).collect(),
        "delete-first-two" => {
            if count < 2 {
                word.into()
            } else {
                word[2..].into()
            }
        }
        "delete-last" => last(word, any, gone),
        "delete-last-two" => {
            if count < 2 {
                word.into()
            } else {
                word[..count - 2].into()
            }
        }
        "delete-letter-and-next" => each_pair(word, |a, _| a == x, |_, _| String::new()),
        "double-letter" => each(word, |c| c == x, twice),
        "double-vowels" => each(word, is_vowel, twice),
        "double-consonants" => each(word, is_consonant, twice),
        "double-any" => each(word, any, twice),
        "double-first" => first(word, any, twice),
        "double-last" => last(word, any, twice),
        "double-first-two" => {
            if count < 2 {
                word.into()
            } else {
                format!("{}{word}", &word[..2])
            }
        }
        unknown => panic!("the kind {unknown} has no meaning here: write it down"),
    }
}

fn draw_letters(kind: &Kind, grammar: &Grammar, draws: &mut iliad::rng::Stream) -> Letters {
    let mut letter = || grammar.letters()[draws.random_range(0..grammar.letters().len())];
    let before = kind.names_letter().then(&mut letter);
    let after = (0..kind.puts_letters()).map(|_| letter()).collect();
    Letters { before, after }
}

#[test]
fn every_kind_means_what_it_says() {
    for grammar in [Grammar::full(), Grammar::tiny()] {
        for kind in grammar.kinds() {
            let mut draws = stream(7, "grammar test", 0);
            let mut changed = 0;
            for round in 0..2000 {
                let mut letters = draw_letters(kind, &grammar, &mut draws);
                if round % 2 == 1 {
                    letters.after.truncate(1);
                }
                let word = match round {
                    0 => "",
                    1 => "a",
                    2 => "z",
                    _ => grammar.words()[draws.random_range(0..grammar.words().len())].as_str(),
                };
                let expression = kind.expression(&letters);
                let output = execute(&expression, word);
                assert_eq!(
                    output.as_deref(),
                    Some(meaning(&kind.name, &letters, word).as_str()),
                    "{expression} on {word}"
                );
                changed += usize::from(output.as_deref() != Some(word));
            }
            assert!(changed >= 20, "{} changed {changed} of 2000 words", kind.name);
        }
    }
}

#[test]
fn there_are_enough_kinds_and_phrasings() {
    let full = Grammar::full();
    assert!(full.kinds().len() >= 40, "{} kinds", full.kinds().len());
    let names: HashSet<&str> = full.kinds().iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names.len(), full.kinds().len(), "two kinds have the same name");
    for kind in full.kinds() {
        let counts = SPLITS.map(|split| kind.phrasings(split).len());
        let all: usize = counts.iter().sum();
        assert!(all >= 15, "{} has {all} phrasings", kind.name);
        for (count, share) in counts.iter().zip([0.70, 0.15, 0.15]) {
            let off = (*count as f64 / all as f64 - share).abs();
            assert!(off < 0.08, "{}: {counts:?}", kind.name);
        }
    }
    let tiny = Grammar::tiny();
    assert_eq!(tiny.kinds().len(), 8);
    assert!((5..=6).contains(&tiny.letters().len()));
    assert!(full.words().len() > 7000 && tiny.words().len() > 2000);
}

#[test]
fn no_phrasing_is_there_twice() {
    let grammar = Grammar::full();
    let mut seen: HashMap<&str, (&str, Split)> = HashMap::new();
    for kind in grammar.kinds() {
        for split in SPLITS {
            for phrasing in kind.phrasings(split) {
                let before = seen.insert(phrasing, (&kind.name, split));
                assert_eq!(before, None, "{phrasing:?} of {} {split:?}", kind.name);
            }
        }
    }
}

/// A hundred phrasings are too few to learn wording from: the tiny grammar's splits share them.
#[test]
fn the_tiny_grammar_words_its_splits_alike_and_its_kinds_differently() {
    let grammar = Grammar::tiny();
    let mut seen = HashSet::new();
    for kind in grammar.kinds() {
        assert_eq!(kind.phrasings(Split::Train), kind.phrasings(Split::Test));
        assert_eq!(kind.phrasings(Split::Train), kind.phrasings(Split::Validation));
        assert!(kind.phrasings(Split::Train).len() >= 8, "{}", kind.name);
        for phrasing in kind.phrasings(Split::Train) {
            assert!(seen.insert(phrasing), "{phrasing:?}");
        }
    }
}

#[test]
fn a_phrasing_names_the_letters_of_its_expression() {
    for kind in Grammar::full().kinds() {
        for phrasing in SPLITS.iter().flat_map(|split| kind.phrasings(*split)) {
            assert_eq!(phrasing.contains("{x}"), kind.names_letter(), "{}: {phrasing}", kind.name);
            assert_eq!(phrasing.contains("{y}"), kind.puts_letters() > 0, "{}: {phrasing}", kind.name);
            assert!(phrasing.split(' ').count() <= 30, "{phrasing}");
        }
    }
}

/// Requests of training look as a person's typing does after the tokeniser, which leaves them as they are.
#[test]
fn requests_pass_the_tokeniser_unchanged() {
    let grammar = Grammar::full();
    let vocabulary: HashSet<String> = grammar.corpus(1).vocabularies.word.into_iter().collect();
    let known = |word: &str| vocabulary.contains(word);
    let mut draws = stream(8, "grammar test", 0);
    for kind in grammar.kinds() {
        for phrasing in kind.phrasings(Split::Train) {
            let request = Kind::request(phrasing, &draw_letters(kind, &grammar, &mut draws));
            assert_eq!(tokenise(&request, &known).join(" "), request);
        }
    }
}

#[test]
fn every_split_has_every_kind() {
    let grammar = Grammar::tiny();
    let corpus = grammar.corpus(2);
    for split in SPLITS {
        for kind in grammar.kinds() {
            let shapes: HashSet<String> = grammar
                .letters()
                .iter()
                .flat_map(|x| grammar.letters().iter().map(move |y| (*x, *y)))
                .map(|(x, y)| kind.expression(&Letters { before: Some(x), after: y.into() }))
                .collect();
            let found = corpus.split(split).iter().any(|item| shapes.contains(&item.expression));
            assert!(found, "{split:?} has no task of the kind {}", kind.name);
        }
    }
}
