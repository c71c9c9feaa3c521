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
use crate::output::json::MARK;
use crate::protocol::Split;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// What every vocabulary begins with: padding, the unknown symbol, start and stop.
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

/// Why a corpus cannot be read or written. Each names the file and says what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file is missing or unreadable.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, in plain words.
        what: String,
    },
    /// One item is not as it should be.
    #[error("{}: {split} item {number}: {what}", path.display())]
    Item {
        /// The file.
        path: PathBuf,
        /// Name of the list.
        split: String,
        /// Number of the item in its list, counted from 1.
        number: usize,
        /// What is wrong, in plain words.
        what: String,
    },
}

/// Names of a corpus's files.
pub const FILES: [&str; 4] = ["corpus.json.gz", "vocab.json.gz", "unlabeled_regexes.txt.gz", "words.txt.gz"];

impl CorpusError {
    /// The same error with another name of its file.
    pub(super) fn renamed(mut self, rename: impl FnOnce(&Path) -> PathBuf) -> CorpusError {
        let (CorpusError::Read { path, .. }
        | CorpusError::Write { path, .. }
        | CorpusError::Content { path, .. }
        | CorpusError::Item { path, .. }) = &mut self;
        *path = rename(path);
        self
    }
}

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
    pub fn load(folder: &Path) -> Result<Corpus, CorpusError> {
        let path = folder.join("corpus.json.gz");
        let splits = read_splits(&path, &read_gz(&path)?)?;
        let vocabularies = read_vocabularies(&folder.join("vocab.json.gz"))?;
        let unlabeled = read_lines(&folder.join("unlabeled_regexes.txt.gz"))?;
        let words = read_lines(&folder.join("words.txt.gz"))?;
        let [train, validation, test] = splits;
        Ok(Corpus { train, validation, test, vocabularies, unlabeled, words })
    }

    /// Writes the corpus into a folder, which is created when missing.
    ///
    /// # Errors
    /// Names the file that could not be written.
    pub fn save(&self, folder: &Path) -> Result<(), CorpusError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| CorpusError::Write { path: path.clone(), source }
        };
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let stored = Stored {
            train: self.train.iter().map(StoredItem::from).collect(),
            val: self.validation.iter().map(StoredItem::from).collect(),
            test: self.test.iter().map(StoredItem::from).collect(),
        };
        write_gz(&folder.join("corpus.json.gz"), |out| serde_json::to_writer(out, &stored).map_err(Into::into))?;
        write_gz(&folder.join("vocab.json.gz"), |out| {
            serde_json::to_writer(out, &self.vocabularies).map_err(Into::into)
        })?;
        for (name, lines) in [("unlabeled_regexes.txt.gz", &self.unlabeled), ("words.txt.gz", &self.words)] {
            write_gz(&folder.join(name), |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
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

fn read_splits(path: &Path, bytes: &[u8]) -> Result<[Vec<Item>; 3], CorpusError> {
    let place = Place::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = SplitsSeed { place: &place }.deserialize(&mut json).and_then(|splits| json.end().map(|()| splits));
    let read = read.map_err(|error| match place.split.get().and_then(|at| SPLITS.get(at)) {
        Some(split) => CorpusError::Item {
            path: path.to_path_buf(),
            split: (*split).to_owned(),
            number: place.number.get(),
            what: error.to_string(),
        },
        None => CorpusError::Content { path: path.to_path_buf(), what: error.to_string() },
    })?;
    let mut executor = Executor::default();
    let mut splits: [Vec<Item>; 3] = Default::default();
    for (at, items) in read.into_iter().enumerate() {
        let Some(items) = items else {
            let what = format!("the list `{}` is missing", SPLITS[at]);
            return Err(CorpusError::Content { path: path.to_path_buf(), what });
        };
        splits[at].reserve_exact(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let item = check_item(item, &mut executor).map_err(|what| CorpusError::Item {
                path: path.to_path_buf(),
                split: SPLITS[at].to_owned(),
                number: index + 1,
                what,
            })?;
            splits[at].push(item);
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

fn read_vocabularies(path: &Path) -> Result<Vocabularies, CorpusError> {
    let content = |what| CorpusError::Content { path: path.to_path_buf(), what };
    let vocabularies: Vocabularies =
        serde_json::from_slice(&read_gz(path)?).map_err(|error| content(error.to_string()))?;
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

fn read_lines(path: &Path) -> Result<Vec<String>, CorpusError> {
    let content = |what| CorpusError::Content { path: path.to_path_buf(), what };
    let text = String::from_utf8(read_gz(path)?).map_err(|_| content("the text is not UTF-8".into()))?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(empty) = lines.iter().position(String::is_empty) {
        return Err(content(format!("line {} is empty", empty + 1)));
    }
    if lines.is_empty() { Err(content("the file is empty".into())) } else { Ok(lines) }
}

/// Reads a gzip'd file whole.
pub(super) fn read_gz(path: &Path) -> Result<Vec<u8>, CorpusError> {
    let failed = |source| CorpusError::Read { path: path.to_path_buf(), source };
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path).map_err(failed)?).read_to_end(&mut bytes).map_err(damaged).map_err(failed)?;
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    Ok(bytes)
}

/// What the system says of a gzip'd file, in words.
pub(in crate::task) fn damaged(error: std::io::Error) -> std::io::Error {
    use std::io::ErrorKind as K;
    match error.kind() {
        K::InvalidInput | K::InvalidData | K::UnexpectedEof => {
            std::io::Error::new(error.kind(), format!("it is no gzip file, or is damaged or cut off ({error})"))
        }
        _ => error,
    }
}

type Output<'a> = GzEncoder<BufWriter<&'a File>>;

fn write_gz(path: &Path, fill: impl FnOnce(&mut Output) -> std::io::Result<()>) -> Result<(), CorpusError> {
    let write = || {
        let file = File::create(path)?;
        let mut out = GzEncoder::new(BufWriter::new(&file), Compression::default());
        fill(&mut out)?;
        out.finish()?.flush()?;
        file.sync_all()
    };
    write().map_err(|source| CorpusError::Write { path: path.to_path_buf(), source })
}

/// Where the reader is, for its errors.
#[derive(Default)]
struct Place {
    split: Cell<Option<usize>>,
    number: Cell<usize>,
}

/// Reads the object of splits, keeping track of the item it is at.
struct SplitsSeed<'a> {
    place: &'a Place,
}

type ReadSplits = [Option<Vec<ReadItem>>; 3];

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
    type Value = Vec<ReadItem>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemsSeed<'_> {
    type Value = Vec<ReadItem>;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        loop {
            self.place.number.set(items.len() + 1);
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
    }
}
