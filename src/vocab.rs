//! Vocabularies: symbols and their ids, with reserve rows that words of people take when they first come up.

mod learning;
pub mod reading;

use crate::nn::tokens::UNKNOWN;
use learning::Learning;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A growing vocabulary. Ids 0 to 3 are padding, unknown, start and end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Plain", into = "Plain")]
pub struct Vocabulary {
    symbols: Vec<String>,
    index: FxHashMap<String, u32>,
    /// Ids of symbols that are one ASCII character: words are read by the million.
    ascii: [u32; 128],
    rows: usize,
    learning: Learning,
}

// The words that were met of people do not decide which weights fit.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.symbols == other.symbols && self.rows == other.rows
    }
}

/// How a vocabulary is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plain {
    symbols: Vec<String>,
    rows: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learning: Option<Learning>,
}

/// Rows to spare at most. A file's symbols take room in the file; its spare rows are a bare number.
pub const MOST_RESERVE: usize = 100_000;

/// The four symbols that every vocabulary begins with.
pub const SPECIAL: [&str; 4] = ["<PAD>", "<UNK>", "<", ">"];

impl Vocabulary {
    /// A vocabulary of `symbols` (beginning with [`SPECIAL`]) with `reserve` further rows.
    ///
    /// # Errors
    /// When it does not begin with the special symbols or has a symbol twice.
    pub fn new(symbols: Vec<String>, reserve: usize) -> Result<Self, String> {
        let rows = symbols.len().saturating_add(reserve);
        Plain { symbols, rows, learning: None }.try_into()
    }

    /// Rows a model needs: symbols and reserve.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Symbols so far.
    pub fn symbols(&self) -> &[String] {
        &self.symbols
    }

    /// Id of a symbol, if it has one.
    pub fn get(&self, symbol: &str) -> Option<u32> {
        self.index.get(symbol).copied()
    }

    /// Id of a symbol, or that of the unknown symbol.
    pub fn id(&self, symbol: &str) -> u32 {
        self.get(symbol).unwrap_or(UNKNOWN)
    }

    /// The words among tokens that have no id, each once, in their order. Single letters and marks are no words, but for those of
    /// scripts that are written without blanks.
    pub fn unknown(&self, tokens: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for token in tokens {
            let more = token.chars().nth(1).is_some() || token.contains(reading::is_unspaced);
            if more && token.contains(char::is_alphabetic) && self.get(&token).is_none() && !found.contains(&token) {
                found.push(token);
            }
        }
        found
    }

    /// Id of a character, or that of the unknown symbol.
    pub fn id_of(&self, c: char) -> u32 {
        match self.ascii.get(c as usize) {
            Some(id) => *id,
            None => self.id(c.encode_utf8(&mut [0; 4])),
        }
    }

    /// The symbol of an id; the unknown symbol for unused rows.
    pub fn symbol(&self, id: u32) -> &str {
        self.symbols.get(id as usize).map_or(SPECIAL[1], String::as_str)
    }

    /// Gives a new symbol a reserve row. `false` when it has one already or no row is left.
    fn learn(&mut self, symbol: &str) -> bool {
        if self.symbols.len() == self.rows || self.index.contains_key(symbol) {
            return false;
        }
        note(&mut self.ascii, symbol, self.symbols.len() as u32);
        self.index.insert(symbol.to_owned(), self.symbols.len() as u32);
        self.symbols.push(symbol.to_owned());
        true
    }
}

/// Notes the id of a symbol that is one ASCII character.
fn note(ascii: &mut [u32; 128], symbol: &str, id: u32) {
    if let [byte] = symbol.as_bytes()
        && let Some(place) = ascii.get_mut(*byte as usize)
    {
        *place = id;
    }
}

impl TryFrom<Plain> for Vocabulary {
    type Error = String;

    fn try_from(plain: Plain) -> Result<Self, String> {
        if plain.symbols.len() < 4 || plain.symbols[..4] != SPECIAL {
            return Err("a vocabulary begins with <PAD>, <UNK>, < and >".into());
        }
        if plain.rows < plain.symbols.len() {
            return Err("a vocabulary has more symbols than rows".into());
        }
        if plain.rows - plain.symbols.len() > MOST_RESERVE {
            return Err(format!(
                "a vocabulary has at most {MOST_RESERVE} rows to spare, not {}",
                plain.rows - plain.symbols.len()
            ));
        }
        let mut index = FxHashMap::with_capacity_and_hasher(plain.symbols.len(), Default::default());
        for (i, s) in plain.symbols.iter().enumerate() {
            if index.insert(s.clone(), i as u32).is_some() {
                return Err(format!("the vocabulary has `{s}` twice"));
            }
        }
        let mut ascii = [UNKNOWN; 128];
        for (i, s) in plain.symbols.iter().enumerate() {
            note(&mut ascii, s, i as u32);
        }
        let learning = plain.learning.unwrap_or_else(|| Learning::of(plain.symbols.len()));
        learning.check(plain.symbols.len())?;
        Ok(Self { symbols: plain.symbols, index, ascii, rows: plain.rows, learning })
    }
}

impl From<Vocabulary> for Plain {
    fn from(v: Vocabulary) -> Self {
        let learning = (!v.learning.is_empty()).then_some(v.learning);
        Plain { symbols: v.symbols, rows: v.rows, learning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Vocabulary {
        let symbols = SPECIAL.iter().chain(&["a", "b"]).map(|s| s.to_string()).collect();
        Vocabulary::new(symbols, 1).unwrap()
    }

    #[test]
    fn words_without_an_id_are_told_once() {
        let symbols = ["<PAD>", "<UNK>", "<", ">", "add", "e"].map(str::to_owned).to_vec();
        let vocabulary = Vocabulary::new(symbols, 0).unwrap();
        let tokens = ["frob", "add", "q", "!", "--", "frob", "it", "換", "。", "я"].map(str::to_owned);
        assert_eq!(vocabulary.unknown(tokens), ["frob", "it", "換"]);
    }

    #[test]
    fn words_take_reserve_rows_until_none_is_left() {
        let mut v = small();
        assert_eq!((v.rows(), v.id("a"), v.id("new")), (7, 4, UNKNOWN));
        assert!(v.learn("new") && !v.learn("new") && !v.learn("other"));
        assert_eq!((v.id("new"), v.id("other"), v.rows()), (6, UNKNOWN, 7));
        assert_eq!(v.symbol(99), "<UNK>");
    }

    #[test]
    fn it_survives_json_and_refuses_nonsense() {
        let v = small();
        let json = serde_json::to_string(&v).unwrap();
        assert_eq!(serde_json::from_str::<Vocabulary>(&json).unwrap(), v);
        assert!(serde_json::from_str::<Vocabulary>(r#"{"symbols":["a"],"rows":1}"#).is_err());
        assert!(Vocabulary::new(SPECIAL.iter().chain(&["a", "a"]).map(|s| s.to_string()).collect(), 0).is_err());
    }
}
