//! Words of people: descriptions as a vocabulary reads them, and how full its reserve rows are.

use serde::{Deserialize, Serialize};

/// A description, with what tells it from others.
#[derive(Clone, Copy, Debug)]
pub struct Utterance<'a> {
    /// Its words.
    pub text: &'a str,
    /// Episode that it describes.
    pub episode: u64,
    /// Who said it.
    pub teacher: i64,
}

/// The outcome of reading new words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedWords {
    /// Words that got a row.
    pub words: usize,
    /// Rows that another word had before.
    pub given_over: Vec<u32>,
}

impl LearnedWords {
    /// Adds what became of others.
    pub fn add(&mut self, more: LearnedWords) {
        self.words += more.words;
        self.given_over.extend(more.given_over);
    }
}

/// How full the rows for words of people are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReserveRows {
    /// Rows in all.
    pub rows: u64,
    /// Rows that a word has.
    pub taken: u64,
    /// Words that were met and have no row (yet).
    pub waiting: u64,
}
