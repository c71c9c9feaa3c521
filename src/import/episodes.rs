//! Episodes of an agent that lives in another program: what such a program posts, and files of the same rows, a JSON object a line.
//!
//! Each row of a file is recognised when it comes again: by its `id`, or without one by what it says and how often the file has said so
//! before.

use super::lines::{self, Line};
use crate::ids::RunId;
use crate::output::json::unmarked;
use crate::registry::{HousesElsewhere, OUTSIDE, WalkElsewhere, said};
use crate::store::{EpisodesImported, ImportedEpisode, MadeBy, OutsideExecution, Store, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

/// Most rows of a file.
pub const MOST_ROWS: usize = 10_000;

/// Most bytes of a row.
pub const LONGEST_ROW: u64 = 64 * 1024;

/// Most characters of a request or a text.
const LONGEST_TEXT: usize = 5_000;

/// Most pairs of an execution, and people who are asked about one.
const MOST_PAIRS: usize = 20;
const MOST_PEOPLE: u32 = 20;

/// Most characters of a word of a pair, of the line for researchers, and of the name of a row.
const LONGEST_WORD: usize = 100;
const LONGEST_SUMMARY: usize = 200;
const LONGEST_ID: usize = 200;

/// A word before and after.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WordPair {
    /// The word before.
    #[serde(rename = "in")]
    before: String,
    /// The word after.
    #[serde(rename = "out")]
    after: String,
}

/// An execution that another program has made: with `text`, with `pairs` or with a `walk`.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExecution {
    /// The request that the agent was given. People see it only in runs that show requests.
    request: String,
    /// The execution in words; each line is a paragraph.
    text: Option<String>,
    /// The execution as pairs of words, drawn as the word-editing family does.
    pairs: Option<Vec<WordPair>>,
    /// The execution as a walk through a house, drawn as the walking family does.
    walk: Option<WalkElsewhere>,
    /// Update of the policy that made it, as the program counts.
    #[serde(default)]
    update: u64,
    /// Whether it did what was asked, as far as the program knows.
    #[serde(default)]
    success: bool,
    /// The number of people who should describe it.
    #[serde(default = "one")]
    people: u32,
}

fn one() -> u32 {
    1
}

impl NewExecution {
    /// The execution as the store takes it. `houses` are those of all that are checked together.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn checked(self, houses: &mut HousesElsewhere) -> Result<OutsideExecution, String> {
        if self.request.trim().is_empty() || self.request.chars().count() > LONGEST_TEXT {
            return Err(format!("The request of an execution has 1 to {LONGEST_TEXT} characters."));
        }
        if !(1..=MOST_PEOPLE).contains(&self.people) {
            return Err(format!("An execution can be described by 1 to {MOST_PEOPLE} people."));
        }
        if i64::try_from(self.update).is_err() {
            return Err(format!("The update of an execution is at most {}.", i64::MAX));
        }
        let (view, summary) = match (self.text, self.pairs, self.walk) {
            (Some(text), None, None) => {
                if text.trim().is_empty() || text.chars().count() > LONGEST_TEXT {
                    return Err(format!("The text of an execution has 1 to {LONGEST_TEXT} characters."));
                }
                let summary = text.split_whitespace().collect::<Vec<_>>().join(" ");
                (json!({ "text": text }), summary)
            }
            (None, Some(pairs), None) => {
                let fits = |word: &str| word.chars().count() <= LONGEST_WORD;
                let fit = pairs.iter().all(|pair| !pair.before.is_empty() && fits(&pair.before) && fits(&pair.after));
                if pairs.is_empty() || pairs.len() > MOST_PAIRS || !fit {
                    return Err(format!(
                        "An execution has 1 to {MOST_PAIRS} word pairs, each word with at most {LONGEST_WORD} characters."
                    ));
                }
                let line = |pair: &WordPair| format!("{} becomes {}", pair.before, pair.after);
                let summary = pairs.iter().map(line).collect::<Vec<_>>().join("; ");
                let pair = |pair: &WordPair| json!({"in": pair.before, "out": pair.after});
                (json!({ "pairs": pairs.iter().map(pair).collect::<Vec<Value>>() }), summary)
            }
            (None, None, Some(walk)) => {
                let walk = walk.checked(houses)?;
                (walk.view, walk.summary)
            }
            _ => return Err("An execution has either a text or pairs or a walk.".to_owned()),
        };
        Ok(OutsideExecution {
            request: self.request,
            view,
            summary: summary.chars().take(LONGEST_SUMMARY).collect(),
            update: self.update,
            success: self.success,
            wanted: self.people,
        })
    }
}

/// A row of a file that cannot come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEpisode {
    /// Its line in the file, from 1.
    pub line: u64,
    /// A sentence that says why.
    pub reason: String,
}

/// A file of episodes as it was read.
#[derive(Debug, Default)]
pub struct Episodes {
    /// The rows that can come in, each with its line.
    rows: Vec<(u64, ImportedEpisode)>,
    /// The rows that cannot.
    pub bad: Vec<BadEpisode>,
}

/// Reads a file of episodes, and finds everything that is wrong with it. Empty lines are passed over.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: impl BufRead) -> io::Result<Episodes> {
    read_telling(file, |_, _| {})
}

/// Reads as [`read`] does, and tells `told` after each row how many rows and bytes are read.
///
/// # Errors
/// As [`read`].
pub fn read_telling(mut file: impl BufRead, mut told: impl FnMut(u64, u64)) -> io::Result<Episodes> {
    let mut found = Episodes::default();
    let mut seen = Seen::default();
    let (mut bytes, mut taken) = (Vec::new(), 0);
    for line in 1.. {
        let long = match lines::next(&mut file, LONGEST_ROW, &mut bytes)? {
            Line::End => break,
            end => end == Line::TooLong,
        };
        taken += bytes.len() as u64;
        let text = unmarked(&bytes);
        if text.iter().all(u8::is_ascii_whitespace) && !long {
            continue;
        }
        if found.rows.len() + found.bad.len() == MOST_ROWS {
            let reason = format!("A file has at most {MOST_ROWS} rows; bring the rest in as another file.");
            found.bad.push(BadEpisode { line, reason });
            break;
        }
        let row = match long {
            true => Err(format!("The row has more than {LONGEST_ROW} bytes.")),
            false => row(text, &mut seen),
        };
        match row {
            Ok(episode) => found.rows.push((line, episode)),
            Err(reason) => found.bad.push(BadEpisode { line, reason }),
        }
        told((found.rows.len() + found.bad.len()) as u64, taken);
    }
    Ok(found)
}

/// The findings in the rows of a file so far.
#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    /// How often each thing was said.
    said: HashMap<[u8; 32], u64>,
    houses: HousesElsewhere,
}

fn row(text: &[u8], seen: &mut Seen) -> Result<ImportedEpisode, String> {
    let value: Value = serde_json::from_slice(text).map_err(|e| format!("The row is no JSON: {e}."))?;
    let Value::Object(mut members) = value else { return Err("A row is a JSON object.".to_owned()) };
    let id = match members.remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(Value::Number(id)) => Some(id.to_string()),
        Some(_) => return Err("`id` is a text or a number.".to_owned()),
    };
    if id.as_ref().is_some_and(|id| id.is_empty() || id.chars().count() > LONGEST_ID) {
        return Err(format!("`id` has 1 to {LONGEST_ID} characters."));
    }
    let execution: NewExecution = serde_json::from_value(Value::Object(members)).map_err(|e| format!("{e}."))?;
    let execution = execution.checked(&mut seen.houses)?;
    let OutsideExecution { request, view, update, success, wanted, .. } = &execution;
    let digest: [u8; 32] =
        Sha256::digest(json!([request, said(view).as_ref().unwrap_or(view), update, success, wanted]).to_string())
            .into();
    let key = match id {
        Some(id) if !seen.ids.insert(id.clone()) => return Err(format!("The file has the `id` {id:?} twice.")),
        Some(id) => format!("id:{id}"),
        None => {
            let times = seen.said.entry(digest).or_default();
            *times += 1;
            format!("sha256:{}:{times}", hex::encode(digest))
        }
    };
    Ok(ImportedEpisode { key, digest: digest.to_vec(), execution })
}

/// The numbers of rows that [`Episodes::store`] would tell.
pub type Counts = EpisodesImported;

impl Episodes {
    /// The number of rows that can come in.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Finds the rows that came into the run before: those that said something else then are bad. How many are known.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn compare(&mut self, store: &Store, run: &RunId) -> Result<u64, StoreError> {
        let keys: Vec<&str> = self.rows.iter().map(|(_, row)| row.key.as_str()).collect();
        let known = store.imported_episodes(run, &keys).await?;
        let mut same = 0;
        for (line, row) in std::mem::take(&mut self.rows) {
            match known.get(&row.key) {
                Some(digest) if *digest != row.digest => {
                    let id = row.key.trim_start_matches("id:");
                    let reason = format!("The row with the `id` {id:?} came in before and said something else.");
                    self.bad.push(BadEpisode { line, reason });
                }
                known => {
                    same += u64::from(known.is_some());
                    self.rows.push((line, row));
                }
            }
        }
        self.bad.sort_by_key(|bad| bad.line);
        Ok(same)
    }

    /// Offers the rows to people, as many as may wait.
    ///
    /// # Errors
    /// When there are bad rows, or the store cannot be written.
    pub async fn store(self, store: &Store, run: &RunId) -> Result<Counts, StoreError> {
        if let Some(bad) = self.bad.first() {
            return Err(StoreError::Invalid(format!("line {}: {}", bad.line, bad.reason)));
        }
        let rows: Vec<ImportedEpisode> = self.rows.into_iter().map(|(_, row)| row).collect();
        store.import_episodes(run, &rows).await
    }
}

/// Why a run takes no episodes from files; a sentence.
///
/// # Errors
/// When there is no such run, or the store cannot be read.
pub async fn refusal(store: &Store, run: &RunId) -> Result<Option<&'static str>, StoreError> {
    let (found, label) = (store.run(run).await?, store.run_label(run).await?);
    Ok(match () {
        () if found.family != OUTSIDE => Some("The agent of this run lives in this server, which makes its episodes."),
        () if label.made_by == MadeBy::Import => {
            Some("This run came in from a file, and people are not asked about it.")
        }
        () if label.trashed_at.is_some() => Some("This run is in the trash. Put it back first."),
        () if !found.active => Some("This run has ended. Resume it, or start another one."),
        () => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_row_is_named_with_its_line_and_the_others_are_read() {
        let long = format!("{{\"request\":\"r\",\"text\":\"{}\"}}", "x".repeat(LONGEST_ROW as usize));
        let lines = [
            r#"{"id": 7, "request": "go to the kitchen", "text": "It went to the kitchen.", "success": true}"#,
            "",
            r#"{"id": "7", "request": "again", "text": "x"}"#,
            "nonsense",
            "[]",
            r#"{"request": "r", "text": "x", "pairs": []}"#,
            r#"{"request": "", "text": "x"}"#,
            r#"{"request": "r", "txt": "x"}"#,
            r#"{"id": {}, "request": "r", "text": "x"}"#,
            &long,
            r#"{"request": "r", "pairs": [{"in": "castle", "out": "wastle"}], "people": 2, "update": 3}"#,
            r#"{"request": "r", "text": "x", "update": 18446744073709551615}"#,
            r#"{"request": "r", "walk": {"house": "castle", "heading": 0, "path": ["castle-1"]}}"#,
            r#"{"request": "r", "walk": {"house": "house-3", "heading": 0, "viewpoint": "0", "actions": [1]}}"#,
        ];
        let text = format!("\u{feff}{}", lines.join("\n"));
        let found = read(text.as_bytes()).unwrap();
        let bad: Vec<(u64, &str)> = found.bad.iter().map(|bad| (bad.line, bad.reason.as_str())).collect();
        for ((line, reason), (at, word)) in bad.iter().zip([
            (3, "twice"),
            (4, "no JSON"),
            (5, "JSON object"),
            (6, "either a text or pairs"),
            (7, "request of an execution"),
            (8, "txt"),
            (9, "`id` is"),
            (10, "bytes"),
            (12, "update"),
            (13, "no house castle"),
        ]) {
            assert!(*line == at && reason.contains(word), "{line}: {reason}");
        }
        assert_eq!((bad.len(), found.len()), (10, 3));
        assert_eq!(found.rows[1].1.execution.summary, "castle becomes wastle");
        assert_eq!(found.rows[2].1.execution.view["house"], "house-3");
    }

    #[test]
    fn rows_without_a_name_are_known_by_what_they_say_and_how_often() {
        let text = "{\"request\":\"r\",\"text\":\"x\"}\n{\"text\":\"x\",\"request\":\"r\"}\n{\"request\":\"r\",\"text\":\"y\"}\n";
        let keys = |text: &str| -> Vec<String> {
            read(text.as_bytes()).unwrap().rows.into_iter().map(|(_, row)| row.key).collect()
        };
        let first = keys(text);
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), 3, "{first:?}");
        assert_eq!(first, keys(text));
        let reversed: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
        let mut again = keys(&reversed);
        again.reverse();
        assert_eq!(first.iter().collect::<HashSet<_>>(), again.iter().collect::<HashSet<_>>());
    }

    #[test]
    fn a_file_has_so_many_rows_and_no_more() {
        let text = "{\"request\":\"r\",\"text\":\"x\"}\n".repeat(MOST_ROWS + 5);
        let found = read(text.as_bytes()).unwrap();
        assert_eq!((found.len(), found.bad.len()), (MOST_ROWS, 1));
        assert!(found.bad[0].reason.contains("at most"));
    }
}
