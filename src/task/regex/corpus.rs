//! The corpus format: requests, expressions and word pairs on disk.
//!
//! A folder with four files, each gzip'd:
//! - `corpus.json.gz`: an object with the lists `train`, `val` and `test`. An item has `re` (`pattern@replacement`),
//!   `instructions` (lists of request tokens; the item's own request first) and `examples` (five pairs of a word and
//!   what becomes of it; the first is the episode's input word and is always changed). Other fields are ignored.
//! - `vocab.json.gz`: an object with the lists `word`, `char` and `regex`; each begins `<PAD>`, `<UNK>`, `<`, `>`.
//! - `unlabeled_regexes.txt.gz`: expressions without requests, one a line.
//! - `words.txt.gz`: the dictionary, one word a line.

use super::PAIRS;
use super::program::Executor;
use crate::datafile::{DataError, Faults, read_bytes, read_json, read_lines_noting, write_with};
use crate::protocol::Split;
use flate2::Compression;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::path::Path;

/// The first symbols of every vocabulary: padding, the unknown symbol, start and stop.
pub const SPECIAL: [&str; 4] = ["<PAD>", "<UNK>", "<", ">"];

/// One task: an expression, the requests it fulfils, and the words it is executed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The gold expression.
    pub expression: String,
    /// Requests, tokens separated by single blanks; the first is the task's own.
    pub requests: Vec<String>,
    /// Words and their outputs; the first word is changed.
    pub examples: [(String, String); PAIRS],
}

/// A whole corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Tasks the agent practises on.
    pub train: Vec<Item>,
    /// Tasks that checkpoints are chosen by.
    pub validation: Vec<Item>,
    /// Tasks that are reported.
    pub test: Vec<Item>,
    /// The symbols of requests, words and expressions.
    pub vocabularies: Vocabularies,
    /// Expressions without requests, from which P_ω draws.
    pub unlabeled: Vec<String>,
    /// The dictionary.
    pub words: Vec<String>,
}

/// Symbols in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabularies {
    /// Request tokens.
    pub word: Vec<String>,
    /// Characters of words, with `@` for joining a word and its output.
    pub char: Vec<String>,
    /// Characters of expressions.
    pub regex: Vec<String>,
}

/// Names of a corpus's files.
pub const FILES: [&str; 4] = ["corpus.json.gz", "vocab.json.gz", "unlabeled_regexes.txt.gz", "words.txt.gz"];

impl Corpus {
    /// Items of a split.
    pub fn split(&self, split: Split) -> &[Item] {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
            Split::Test => &self.test,
        }
    }

    /// Reads a corpus folder and checks it: every item is complete, its expression is valid and does to its first word
    /// what the file says, and that changes the word.
    ///
    /// # Errors
    /// Names the file and the item, and says what is wrong.
    pub fn load(folder: &Path) -> Result<Corpus, DataError> {
        Self::read(folder, &mut Faults::First, &|_| {})
    }

    /// Reads as much of a corpus folder as is right, and everything that is not. `told` gets the name of each file that is read.
    pub fn inspect(folder: &Path, told: &dyn Fn(&str)) -> (Corpus, Vec<DataError>) {
        let mut all = Vec::new();
        let corpus = Self::read(folder, &mut Faults::All(&mut all), told);
        // With too many faults nothing more is read.
        (corpus.unwrap_or_default(), all)
    }

    fn read(folder: &Path, faults: &mut Faults<'_>, told: &dyn Fn(&str)) -> Result<Corpus, DataError> {
        let path = folder.join(FILES[0]);
        let splits = read_bytes(&path).and_then(|bytes| read_splits(&path, &bytes, faults));
        let [train, validation, test] = faults.or_note(splits)?.unwrap_or_default();
        told(FILES[0]);
        let vocabularies = read_vocabularies(&folder.join(FILES[1]));
        let vocabularies = faults.or_note(vocabularies)?.unwrap_or_default();
        told(FILES[1]);
        let unlabeled = read_lines_noting(&folder.join(FILES[2]), faults);
        let unlabeled = faults.or_note(unlabeled)?.unwrap_or_default();
        told(FILES[2]);
        let words = read_lines_noting(&folder.join(FILES[3]), faults);
        let words = faults.or_note(words)?.unwrap_or_default();
        told(FILES[3]);
        Ok(Corpus { train, validation, test, vocabularies, unlabeled, words })
    }

    /// Writes the corpus into a folder, which is created when missing.
    ///
    /// # Errors
    /// Names the file that could not be written.
    pub fn save(&self, folder: &Path) -> Result<(), DataError> {
        std::fs::create_dir_all(folder).map_err(DataError::write(folder))?;
        let stored = Stored {
            train: self.train.iter().map(StoredItem::from).collect(),
            val: self.validation.iter().map(StoredItem::from).collect(),
            test: self.test.iter().map(StoredItem::from).collect(),
        };
        let write = |name: &str, fill: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
            write_with(&folder.join(name), Compression::default(), fill)
        };
        write("corpus.json.gz", &|out| serde_json::to_writer(out, &stored).map_err(Into::into))?;
        write("vocab.json.gz", &|out| serde_json::to_writer(out, &self.vocabularies).map_err(Into::into))?;
        for (name, lines) in [("unlabeled_regexes.txt.gz", &self.unlabeled), ("words.txt.gz", &self.words)] {
            write(name, &|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Stored<'a> {
    train: Vec<StoredItem<'a>>,
    val: Vec<StoredItem<'a>>,
    test: Vec<StoredItem<'a>>,
}

#[derive(Serialize)]
struct StoredItem<'a> {
    re: &'a str,
    instructions: Vec<Vec<&'a str>>,
    examples: &'a [(String, String)],
}

impl<'a> From<&'a Item> for StoredItem<'a> {
    fn from(item: &'a Item) -> Self {
        StoredItem {
            re: &item.expression,
            instructions: item.requests.iter().map(|request| request.split(' ').collect()).collect(),
            examples: &item.examples,
        }
    }
}

#[derive(Deserialize)]
struct ReadItem {
    re: String,
    instructions: Vec<Vec<String>>,
    examples: Vec<(String, String)>,
}

/// The splits' names in the file, in the order of [`read_splits`]' result.
const SPLITS: [&str; 3] = ["train", "val", "test"];

fn read_splits(path: &Path, bytes: &[u8], faults: &mut Faults<'_>) -> Result<[Vec<Item>; 3], DataError> {
    let place = Place { lenient: faults.goes_on(), ..Place::default() };
    let at = |split: usize, number: usize, what: &dyn std::fmt::Display| {
        DataError::content(path, format!("{} item {number}: {what}", SPLITS[split]))
    };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = SplitsSeed { place: &place }.deserialize(&mut json).and_then(|splits| json.end().map(|()| splits));
    let read = read.map_err(|error| match place.split.get() {
        Some(split) => at(split, place.number.get(), &error),
        None => DataError::content(path, error.to_string()),
    });
    for (split, number, what) in place.misread.take() {
        faults.note(at(split, number, &what))?;
    }
    let mut executor = Executor::default();
    let mut splits: [Vec<Item>; 3] = Default::default();
    for (split, items) in read?.into_iter().enumerate() {
        let Some(items) = items else {
            faults.note(DataError::content(path, format!("the list `{}` is missing", SPLITS[split])))?;
            continue;
        };
        splits[split].reserve_exact(items.len());
        for (number, item) in items {
            match check_item(item, &mut executor) {
                Ok(item) => splits[split].push(item),
                Err(what) => faults.note(at(split, number, &what))?,
            }
        }
    }
    Ok(splits)
}

fn check_item(item: ReadItem, executor: &mut Executor) -> Result<Item, String> {
    if item.instructions.is_empty() {
        return Err("there is no request in `instructions`".into());
    }
    for request in &item.instructions {
        if request.is_empty() || request.iter().any(|token| token.is_empty() || token.contains(char::is_whitespace)) {
            return Err("a request in `instructions` is empty or has an empty token or one with blanks".into());
        }
    }
    let count = item.examples.len();
    let examples: [(String, String); PAIRS] =
        item.examples.try_into().map_err(|_| format!("`examples` has {count} pairs instead of {PAIRS}"))?;
    if let Some((word, _)) = examples.iter().find(|(word, _)| word.is_empty()) {
        return Err(format!("an example has an empty word {word:?}"));
    }
    let (word, output) = &examples[0];
    if word == output {
        return Err(format!("the first example, {word:?}, is not changed"));
    }
    match executor.execute(&item.re, word) {
        None => return Err(format!("`re` is no valid expression: {:?}", item.re)),
        Some(got) if got != *output => {
            return Err(format!("{:?} makes {got:?} of {word:?}, but `examples` says {output:?}", item.re));
        }
        Some(_) => {}
    }
    let requests = item.instructions.iter().map(|tokens| tokens.join(" ")).collect();
    Ok(Item { expression: item.re, requests, examples })
}

fn read_vocabularies(path: &Path) -> Result<Vocabularies, DataError> {
    let content = |what: String| DataError::content(path, what);
    let vocabularies: Vocabularies = read_json(path)?;
    for (name, list) in [("word", &vocabularies.word), ("char", &vocabularies.char), ("regex", &vocabularies.regex)] {
        if list.len() <= SPECIAL.len() || list.iter().zip(SPECIAL).any(|(symbol, special)| symbol != special) {
            return Err(content(format!("`{name}` must begin with {} and hold more symbols", SPECIAL.join(" "))));
        }
        let mut sorted: Vec<&String> = list.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(content(format!("`{name}` has {:?} twice", twice[0])));
        }
    }
    Ok(vocabularies)
}

/// Where the reader is, for its errors.
#[derive(Default)]
struct Place {
    split: Cell<Option<usize>>,
    number: Cell<usize>,
    /// Whether it goes on after an item that is none.
    lenient: bool,
    /// Those items: split, number and the reason.
    misread: RefCell<Vec<(usize, usize, String)>>,
}

/// Reads the object of splits, keeping track of the item it is at.
struct SplitsSeed<'a> {
    place: &'a Place,
}

/// The items of each split with their numbers, from 1.
type ReadSplits = [Option<Vec<(usize, ReadItem)>>; 3];

impl<'de> DeserializeSeed<'de> for SplitsSeed<'_> {
    type Value = ReadSplits;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SplitsSeed<'_> {
    type Value = ReadSplits;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("an object with the lists `train`, `val` and `test`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut splits: ReadSplits = Default::default();
        while let Some(name) = map.next_key::<String>()? {
            match SPLITS.iter().position(|split| *split == name) {
                Some(at) => {
                    self.place.split.set(Some(at));
                    splits[at] = Some(map.next_value_seed(ItemsSeed { place: self.place })?);
                    self.place.split.set(None);
                }
                None => {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
        }
        Ok(splits)
    }
}

struct ItemsSeed<'a> {
    place: &'a Place,
}

impl<'de> DeserializeSeed<'de> for ItemsSeed<'_> {
    type Value = Vec<(usize, ReadItem)>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemsSeed<'_> {
    type Value = Vec<(usize, ReadItem)>;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        for number in 1.. {
            self.place.number.set(number);
            let item = match self.place.lenient {
                false => list.next_element()?,
                true => match list.next_element::<serde_json::Value>()? {
                    None => None,
                    Some(value) => match serde_json::from_value(value) {
                        Ok(item) => Some(item),
                        Err(what) => {
                            let split = self.place.split.get().unwrap_or_default();
                            self.place.misread.borrow_mut().push((split, number, what.to_string()));
                            continue;
                        }
                    },
                },
            };
            match item {
                Some(item) => items.push((number, item)),
                None => break,
            }
        }
        Ok(items)
    }
}
