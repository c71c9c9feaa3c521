//! Letters without their identity. Which letter a request names matters little to how it is to be read: `replace
//! [ n ] with [ c ]` and `replace [ t ] with [ k ]` ask for the same. Two representations make use of that:
//!
//! - **Slots.** The letters that a request names are read and written as slots, in the order in which they are named:
//!   the first vowel `<v1>`, the first consonant `<c1>`, and so on. The same letters in the input word and in the
//!   expression are the same slots; letters that the request does not name stay letters. No text that was typed holds
//!   such a symbol, since the tokeniser drops `<` and `>`, and words and expressions are read character by character.
//! - **Renaming.** Examples get their letters permuted at random each time they are learnt from.
//!
//! Vowels and consonants are kept apart in both, so that what `V`, `C`, "vowel" and "consonant" say stays true (y is a
//! consonant, as in [`super::program::CONSONANT`]). A letter after a backslash is part of an escape and stays.

use crate::rng::Stream;
use crate::vocab::Vocabulary;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The representation of letters that the agent reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Letters {
    /// As they are.
    #[default]
    Plain,
    /// Letters that the request names are slots.
    Slots,
    /// As they are, but permuted at random while learning.
    Renamed,
}

/// Slots for vowels: there are no more vowels.
const VOWEL_SLOTS: [&str; 5] = ["<v1>", "<v2>", "<v3>", "<v4>", "<v5>"];

/// Slots for consonants; further ones that a request names stay letters.
const CONSONANT_SLOTS: [&str; 5] = ["<c1>", "<c2>", "<c3>", "<c4>", "<c5>"];

/// All slot symbols, to be added to a vocabulary.
pub fn symbols() -> impl Iterator<Item = String> {
    VOWEL_SLOTS.iter().chain(&CONSONANT_SLOTS).map(|s| s.to_string())
}

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

/// Capitals are classes in expressions.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !c.is_uppercase()
}

/// For each request token, whether it is a bracket or stands within brackets. The tokeniser puts nothing but letters
/// there.
pub fn in_brackets(tokens: &[String]) -> Vec<bool> {
    let mut inside = false;
    tokens
        .iter()
        .map(|token| match token.as_str() {
            "[" => {
                inside = true;
                true
            }
            "]" => std::mem::take(&mut inside),
            _ => inside,
        })
        .collect()
}

fn only_char(token: &str) -> Option<char> {
    let mut chars = token.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// Characters, and whether each is free of a backslash before it.
fn unescaped(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut escaped = false;
    text.chars().map(move |c| {
        let here = escaped;
        escaped = c == '\\' && !here;
        (c, !here)
    })
}

/// The letters that a request names, as slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    vowels: Vec<char>,
    consonants: Vec<char>,
}

impl Slots {
    /// The slots that a tokenised request defines.
    pub fn of(tokens: &[String]) -> Slots {
        let mut slots = Slots::default();
        for (token, inside) in tokens.iter().zip(in_brackets(tokens)) {
            let Some(letter) = only_char(token).filter(|c| inside && is_letter(*c)) else { continue };
            let (list, most) = if is_vowel(letter) {
                (&mut slots.vowels, VOWEL_SLOTS.len())
            } else {
                (&mut slots.consonants, CONSONANT_SLOTS.len())
            };
            if list.len() < most && !list.contains(&letter) {
                list.push(letter);
            }
        }
        slots
    }

    fn symbol(&self, letter: char) -> Option<&'static str> {
        let at = |list: &[char]| list.iter().position(|c| *c == letter);
        match at(&self.vowels) {
            Some(n) => Some(VOWEL_SLOTS[n]),
            None => at(&self.consonants).map(|n| CONSONANT_SLOTS[n]),
        }
    }

    fn letter(&self, symbol: &str) -> Option<char> {
        let at = |list: &[&str]| list.iter().position(|s| *s == symbol);
        match at(&VOWEL_SLOTS) {
            Some(n) => self.vowels.get(n).copied(),
            None => at(&CONSONANT_SLOTS).and_then(|n| self.consonants.get(n).copied()),
        }
    }

    /// A tokenised request with the letters in brackets as slots.
    pub fn request(&self, tokens: &[String]) -> Vec<String> {
        let slot = |(token, inside): (&String, bool)| {
            let symbol = only_char(token).filter(|_| inside).and_then(|c| self.symbol(c));
            symbol.map_or_else(|| token.clone(), str::to_owned)
        };
        tokens.iter().zip(in_brackets(tokens)).map(slot).collect()
    }

    /// The symbols of a word.
    pub fn word(&self, word: &str) -> Vec<String> {
        word.chars().map(|c| self.symbol(c).map_or_else(|| c.into(), str::to_owned)).collect()
    }

    /// The symbols of an expression.
    pub fn expression(&self, expression: &str) -> Vec<String> {
        unescaped(expression)
            .map(|(c, free)| self.symbol(c).filter(|_| free).map_or_else(|| c.into(), str::to_owned))
            .collect()
    }

    /// The expression that symbols spell. `None` where a slot stands for nothing, or would become part of an escape.
    pub fn spell<'a>(&self, symbols: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mut text = String::new();
        let mut escaped = false;
        for symbol in symbols {
            let slot = VOWEL_SLOTS.contains(&symbol) || CONSONANT_SLOTS.contains(&symbol);
            match slot {
                true if escaped => return None,
                true => text.push(self.letter(symbol)?),
                false => text.push_str(symbol),
            }
            escaped = symbol == "\\" && !escaped;
        }
        Some(text)
    }
}

/// The form of an expression: its letters numbered in the order of their appearance. Expressions of one form do the same
/// with other letters.
pub fn form(expression: &str) -> String {
    let mut seen: Vec<char> = Vec::new();
    unescaped(expression)
        .map(|(c, free)| {
            if !(free && is_letter(c)) {
                return c.to_string();
            }
            let at = seen.iter().position(|s| *s == c).unwrap_or_else(|| {
                seen.push(c);
                seen.len() - 1
            });
            format!("{{{}}}", at + 1)
        })
        .collect()
}

/// A permutation of letters that keeps vowels vowels and consonants consonants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renaming(HashMap<char, char>);

impl Renaming {
    /// A permutation of `letters`, drawn uniformly.
    pub fn draw(letters: &[char], stream: &mut Stream) -> Renaming {
        let mut map = HashMap::with_capacity(letters.len());
        for vowels in [true, false] {
            let from: Vec<char> = letters.iter().copied().filter(|c| is_vowel(*c) == vowels).collect();
            let mut to = from.clone();
            to.shuffle(stream);
            map.extend(from.into_iter().zip(to));
        }
        Renaming(map)
    }

    /// The letters that all vocabularies have, so that what is renamed can still be read and written.
    pub fn letters(vocabularies: &[&Vocabulary]) -> Vec<char> {
        let Some(first) = vocabularies.first() else { return Vec::new() };
        let letters = first.symbols().iter().filter_map(|s| only_char(s)).filter(|c| is_letter(*c));
        letters.filter(|c| vocabularies.iter().all(|v| v.get(c.encode_utf8(&mut [0; 4])).is_some())).collect()
    }

    /// The permutation that takes this one back.
    pub fn inverse(&self) -> Renaming {
        Renaming(self.0.iter().map(|(from, to)| (*to, *from)).collect())
    }

    fn letter(&self, c: char) -> char {
        self.0.get(&c).copied().unwrap_or(c)
    }

    /// A word with other letters.
    pub fn word(&self, word: &str) -> String {
        word.chars().map(|c| self.letter(c)).collect()
    }

    /// An expression with other letters.
    pub fn expression(&self, expression: &str) -> String {
        unescaped(expression).map(|(c, free)| if free { self.letter(c) } else { c }).collect()
    }

    /// A tokenised request with other letters in brackets.
    pub fn request(&self, tokens: &[String]) -> Vec<String> {
        let renamed = |(token, inside): (&String, bool)| match only_char(token) {
            Some(c) if inside => self.letter(c).to_string(),
            _ => token.clone(),
        };
        tokens.iter().zip(in_brackets(tokens)).map(renamed).collect()
    }
}
