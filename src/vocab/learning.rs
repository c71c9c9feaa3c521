//! Which words of people get a row of their own. There are few rows, and anybody can type anything: a word gets one when it
//! was met twice, in descriptions of different executions or by different people, and the least used word makes room when
//! all rows are taken.

use super::Vocabulary;
use crate::protocol::{LearnedWords, ReserveRows, Utterance};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// New words that one description is listened to for.
const NEW_WORDS: usize = 8;

/// Longest new word, in characters.
const LONGEST: usize = 40;

/// Words kept in mind that have no row.
const MOST_MET: usize = 1024;

/// Descriptions after which all counts are halved, so that words which were common once make room in the end.
const HALVED: u64 = 4096;

/// How often a word was met, and at which description last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Use {
    count: u64,
    last: u64,
}

/// A word without a row: how often it was met, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Met {
    count: u64,
    last: u64,
    episode: u64,
    teacher: i64,
}

/// The counts that a vocabulary keeps of the words of people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Learning {
    /// Symbols that were there from the beginning and stay.
    base: usize,
    /// Descriptions read.
    read: u64,
    /// Of each word with a spare row, in the order of the rows.
    uses: Vec<Use>,
    met: BTreeMap<String, Met>,
}

impl Learning {
    /// Whether anything was learnt or met: else it need not be written down.
    pub(super) fn is_empty(&self) -> bool {
        self.read == 0
    }

    pub(super) fn of(base: usize) -> Self {
        Self { base, ..Self::default() }
    }

    /// Refuses what does not belong to a vocabulary of so many symbols.
    pub(super) fn check(&self, symbols: usize) -> Result<(), String> {
        if self.base > symbols || self.uses.len() != symbols - self.base || self.met.len() > MOST_MET {
            return Err("what a vocabulary knows of learnt words does not fit its symbols".into());
        }
        Ok(())
    }
}

impl Vocabulary {
    /// Says that the last `reserve` rows are those for words of people, for a vocabulary that an earlier program wrote
    /// down: what has such a row already counts as met twice.
    pub fn settle(&mut self, reserve: usize) {
        if self.learning.is_empty() {
            let base = self.rows.saturating_sub(reserve).min(self.symbols.len()).max(super::SPECIAL.len());
            self.learning = Learning::of(base);
            self.learning.uses = vec![Use { count: 2, last: 0 }; self.symbols.len() - base];
        }
    }

    /// How full the rows for words of people are.
    pub fn spare(&self) -> ReserveRows {
        ReserveRows {
            rows: (self.rows - self.learning.base) as u64,
            taken: (self.symbols.len() - self.learning.base) as u64,
            waiting: self.learning.met.len() as u64,
        }
    }

    /// Reads the words of a description, and gives rows to those that have earned one.
    pub fn read(&mut self, heard: Utterance, tokens: &[String]) -> LearnedWords {
        let mut learnt = LearnedWords::default();
        if self.rows == self.learning.base {
            return learnt;
        }
        self.learning.read += 1;
        let now = self.learning.read;
        let mut new = 0;
        for (at, token) in tokens.iter().enumerate() {
            if tokens[..at].contains(token) {
                continue;
            }
            if let Some(id) = self.get(token) {
                if let Some(at) = (id as usize).checked_sub(self.learning.base) {
                    let used = &mut self.learning.uses[at];
                    (used.count, used.last) = (used.count + 1, now);
                }
                continue;
            }
            if new == NEW_WORDS || token.chars().count() > LONGEST {
                continue;
            }
            new += 1;
            let first = Met { count: 0, last: now, episode: heard.episode, teacher: heard.teacher };
            let met = self.learning.met.entry(token.clone()).or_insert(first);
            if met.count > 0 && (met.episode, met.teacher) == (heard.episode, heard.teacher) {
                // The same description, corrected.
                continue;
            }
            (met.count, met.last) = (met.count + 1, now);
            if met.count > 1 {
                let used = Use { count: met.count, last: now };
                self.admit(token, used, &mut learnt);
            }
        }
        while self.learning.met.len() > MOST_MET {
            let rarest = self.learning.met.iter().min_by_key(|(word, met)| (met.count, met.last, (*word).clone()));
            let Some(rarest) = rarest.map(|(word, _)| word.clone()) else { break };
            self.learning.met.remove(&rarest);
        }
        if now.is_multiple_of(HALVED) {
            self.learning.uses.iter_mut().for_each(|used| used.count /= 2);
            self.learning.met.values_mut().for_each(|met| met.count = met.count.div_ceil(2));
        }
        learnt
    }

    /// Gives a word a row: a free one, or that of the word that was met least, if it was not met more often.
    fn admit(&mut self, word: &str, used: Use, learnt: &mut LearnedWords) {
        if self.symbols.len() < self.rows {
            self.learn(word);
            self.learning.uses.push(used);
        } else {
            let rarest = (0..self.learning.uses.len()).min_by_key(|at| self.learning.uses[*at]);
            let Some(at) = rarest.filter(|at| self.learning.uses[*at].count <= used.count) else { return };
            let id = self.learning.base + at;
            let old = std::mem::replace(&mut self.symbols[id], word.to_owned());
            self.index.remove(&old);
            super::note(&mut self.ascii, &old, crate::nn::tokens::UNKNOWN);
            self.index.insert(word.to_owned(), id as u32);
            super::note(&mut self.ascii, word, id as u32);
            let Use { count, last } = std::mem::replace(&mut self.learning.uses[at], used);
            // It keeps its place in the queue. Nobody describes an episode of this number.
            self.learning.met.insert(old, Met { count, last, episode: u64::MAX >> 11, teacher: 0 });
            learnt.given_over.push(id as u32);
        }
        self.learning.met.remove(word);
        learnt.words += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::tokens::UNKNOWN;
    use crate::vocab::SPECIAL;

    fn vocabulary(reserve: usize) -> Vocabulary {
        Vocabulary::new(SPECIAL.iter().chain(&["a", "b"]).map(|s| s.to_string()).collect(), reserve).unwrap()
    }

    fn say(v: &mut Vocabulary, text: &str, episode: u64, teacher: i64) -> LearnedWords {
        let tokens: Vec<String> = text.split(' ').map(str::to_owned).collect();
        v.read(Utterance { text, episode, teacher }, &tokens)
    }

    #[test]
    fn a_word_is_learnt_when_it_is_met_twice_or_from_two_people() {
        let mut v = vocabulary(3);
        assert_eq!(say(&mut v, "turn a round", 1, 1).words, 0);
        assert_eq!(say(&mut v, "turn a round again", 1, 1).words, 0, "a correction is the same description");
        assert_eq!(say(&mut v, "turn b", 2, 1).words, 1, "one person alone teaches words");
        assert_eq!(say(&mut v, "round", 1, 2).words, 1, "another person said it, too");
        assert!(v.get("turn").is_some() && v.get("round").is_some() && v.get("again").is_none());
        assert_eq!(v.spare(), ReserveRows { rows: 3, taken: 2, waiting: 1 });
        assert_eq!(say(&mut vocabulary(0), "x", 1, 1), LearnedWords::default());
    }

    #[test]
    fn made_up_words_leave_room_for_others() {
        let mut v = vocabulary(4);
        for episode in 0..50u64 {
            // Fifty different words a description, each said twice.
            let text: Vec<String> = (0..50).map(|i| format!("q{}x{i}", episode / 2)).collect();
            say(&mut v, &text.join(" "), episode, 1);
        }
        assert_eq!(v.spare().taken, 4);
        say(&mut v, "swap", 100, 2);
        let learnt = say(&mut v, "swap", 101, 2);
        assert_eq!((learnt.words, learnt.given_over.len()), (1, 1));
        for episode in 200..250 {
            say(&mut v, "swap", episode, 2);
        }
        for episode in 300..340u64 {
            say(&mut v, &format!("z{}", episode / 2), episode, 1);
        }
        assert!(v.get("swap").is_some(), "a word in use is not given up for rare ones");
        assert_eq!(v.symbol(v.id("swap")), "swap");
        assert_eq!(v.id("q0x0"), UNKNOWN);
        assert!(v.spare().waiting <= MOST_MET as u64);
    }

    #[test]
    fn what_was_met_survives_json_and_goes_on_the_same() {
        let mut v = vocabulary(2);
        say(&mut v, "turn left", 1, 1);
        let mut again: Vocabulary = serde_json::from_str(&serde_json::to_string(&v).unwrap()).unwrap();
        for v in [&mut v, &mut again] {
            assert_eq!(say(v, "left right", 2, 1).words, 1);
        }
        assert_eq!(serde_json::to_string(&v).unwrap(), serde_json::to_string(&again).unwrap());
        // Nothing met: written as ever.
        assert!(!serde_json::to_string(&vocabulary(2)).unwrap().contains("learning"));
    }

    #[test]
    fn words_of_an_earlier_program_can_be_displaced() {
        let json = r#"{"symbols":["<PAD>","<UNK>","<",">","a","foo","bar"],"rows":7}"#;
        let mut v: Vocabulary = serde_json::from_str(json).unwrap();
        v.settle(2);
        assert_eq!(v.spare(), ReserveRows { rows: 2, taken: 2, waiting: 0 });
        say(&mut v, "new", 1, 1);
        assert_eq!(say(&mut v, "new", 2, 1).given_over, [5]);
    }
}
