//! Parts of every drawn corpus, whatever its phrasings come from: words that show an expression, and vocabularies.

use super::PAIRS;
use super::corpus::{SPECIAL, Vocabularies};
use super::program::Expression;
use super::python_re::Scratch;
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::SliceRandom;
use std::collections::HashMap;

/// Longest output word, in letters.
pub const LONGEST_OUTPUT: usize = 30;

/// The smallest number of an item's words that the expression changes.
pub const CHANGED: usize = 3;

/// Share of two-letter replacements where one or two letters may stand.
pub(super) const TWO_LETTERS: f64 = 0.4;

/// Draws [`PAIRS`] different words from the dictionary and executes the expression on them; the first and at least
/// [`CHANGED`] of them are changed, and no output is empty or longer than [`LONGEST_OUTPUT`]. `None` when the expression
/// is invalid or changes too few of the words.
pub fn draw_examples(words: &[String], expression: &str, stream: &mut Stream) -> Option<[(String, String); PAIRS]> {
    let compiled = Expression::new(expression)?;
    let mut scratch = Scratch::default();
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let word = &words[stream.random_range(0..words.len())];
        let pair = (word.clone(), compiled.apply(word, &mut scratch)?);
        let length = pair.1.chars().count();
        if length == 0 || length > LONGEST_OUTPUT || changed.contains(&pair) || unchanged.contains(&pair) {
            continue;
        }
        if pair.0 == pair.1 {
            if unchanged.len() < PAIRS - CHANGED {
                unchanged.push(pair);
            }
        } else {
            changed.push(pair);
        }
        if changed.len() >= CHANGED && changed.len() + unchanged.len() >= PAIRS {
            break;
        }
    }
    if changed.len() < CHANGED || changed.len() + unchanged.len() < PAIRS {
        return None;
    }
    let first = changed.remove(0);
    let mut rest: Vec<(String, String)> = changed.into_iter().chain(unchanged).take(PAIRS - 1).collect();
    rest.shuffle(stream);
    let mut examples = vec![first];
    examples.append(&mut rest);
    examples.try_into().ok()
}

/// Vocabularies from how often each request token occurs in training. Request tokens are sorted by that, then by the
/// alphabet; brackets and all letters are there, so that any letter can be typed.
pub(super) fn vocabularies(mut counts: HashMap<&str, usize>) -> Vocabularies {
    const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";
    let letters = || (0..ALPHABET.len()).map(|at| &ALPHABET[at..=at]);
    for token in ["[", "]"].into_iter().chain(letters()) {
        counts.entry(token).or_default();
    }
    let mut tokens: Vec<(&str, usize)> = counts.into_iter().collect();
    tokens.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let special = || SPECIAL.iter().map(|symbol| (*symbol).to_owned());
    let symbols =
        |marks: &str| special().chain(marks.chars().map(String::from)).chain(letters().map(str::to_owned)).collect();
    Vocabularies {
        word: special().chain(tokens.into_iter().map(|(token, _)| token.to_owned())).collect(),
        char: symbols("@"),
        regex: symbols("$().2@CV\\^"),
    }
}
