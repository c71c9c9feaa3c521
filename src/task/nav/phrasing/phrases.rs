//! Words and phrases of requests: the contents of `phrases.toml`.

use crate::datafile::built_in;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Phrases of which one is drawn.
pub(super) type Choices = Vec<String>;

/// `phrases.toml`, which describes its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Phrases {
    pub colourless: Vec<String>,
    pub words: BTreeMap<String, Choices>,
    pub pairs: Pairs,
    pub clauses: Clauses,
    pub ends: Ends,
    pub synonyms: BTreeMap<String, Choices>,
}

/// Clauses of two facts that happen together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pairs {
    pub leave_enter: Choices,
    pub leave_through: Choices,
    pub through_enter: Choices,
    pub turn_enter: Choices,
    pub turn_through: Choices,
    pub enter_turn: Choices,
    pub pass_turn: Choices,
    pub toward_turn: Choices,
    pub through_turn: Choices,
    pub up_turn: Choices,
    pub turn_leave: Choices,
    pub turn_climb: Choices,
    pub turn_toward: Choices,
    pub turn_pass: Choices,
}

/// Clauses of one fact.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clauses {
    pub turn: Choices,
    pub turn_slightly: Choices,
    pub turn_around: Choices,
    pub straight_first: Choices,
    pub straight_further: Choices,
    pub leave: Choices,
    pub enter: Choices,
    pub through: Choices,
    pub up: Choices,
    pub down: Choices,
    pub over: Choices,
    pub toward: Choices,
    pub pass: Choices,
    pub pass_on_side: Choices,
}

/// Places where a walk ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ends {
    pub inside: Choices,
    pub at_door: Choices,
    pub top: Choices,
    pub bottom: Choices,
    pub on_stairs: Choices,
    pub beside: Choices,
    pub before: Choices,
}

/// The phrases.
pub(super) static PHRASES: LazyLock<Phrases> = LazyLock::new(|| built_in("phrases.toml", include_str!("phrases.toml")));

/// The words of a list in `[words]`; none for another name.
pub(super) fn words(name: &str) -> &'static [String] {
    PHRASES.words.get(name).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::super::super::house::{catalogue, layout};
    use super::*;

    #[test]
    fn the_file_is_whole_and_every_slot_is_known() {
        let filled = ["room", "from", "to", "thing", "way", "turn", "side", "climb", "verb"];
        let table: toml::Table = include_str!("phrases.toml").parse().unwrap();
        let lists = |name: &str| table[name].as_table().unwrap().iter();
        for (name, list) in ["words", "pairs", "clauses", "ends", "synonyms"].into_iter().flat_map(lists) {
            let list = list.as_array().unwrap();
            assert!(!list.is_empty(), "{name}");
            for phrase in list.iter().map(|phrase| phrase.as_str().unwrap()) {
                for slot in phrase.split('{').skip(1) {
                    let (slot, _) = slot.split_once('}').expect("a slot is closed");
                    assert!(filled.contains(&slot) || !words(slot).is_empty(), "{name}: {phrase}");
                }
            }
        }
        for name in ["verb_first", "verb_further", "stop", "stop_there", "joint", "last_joint", "across", "toward"] {
            assert!(!words(name).is_empty(), "{name}");
        }
        let openings = ["archway", "door", "front door", "glass door", "window"];
        let known =
            |name: &str| catalogue::find(name).is_some() || layout::KINDS.contains(&name) || openings.contains(&name);
        let names = PHRASES.synonyms.keys().chain(&PHRASES.colourless);
        assert_eq!(names.filter(|name| !known(name)).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
