//! Alignment of a word with its output, letter by letter, as pages show it.

use serde::{Deserialize, Serialize};

/// One letter of an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cell {
    /// In both words.
    Kept(char),
    /// Only in the first word.
    Removed(char),
    /// Only in the second word.
    Added(char),
}

/// Cells an alignment may take to compute; longer words are shown as removed and added whole.
const LARGEST_TABLE: usize = 4_000_000;

/// The alignment of two words with the fewest removed and added letters and, among those, the fewest separate places of
/// change. In each place the removed letters come first.
pub fn align(before: &str, after: &str) -> Vec<Cell> {
    let a: Vec<char> = before.chars().collect();
    let b: Vec<char> = after.chars().collect();
    if (a.len() + 1).saturating_mul(b.len() + 1) > LARGEST_TABLE {
        return a.into_iter().map(Cell::Removed).chain(b.into_iter().map(Cell::Added)).collect();
    }
    // Cost of aligning the rest of the words from (i, j): letters removed or added, weighing more than any number of
    // places, plus places. `open` says whether a place of change is open, so that another change there costs no more.
    let width = b.len() + 1;
    let weight = a.len() + b.len() + 1;
    let mut cost = vec![[0usize; 2]; (a.len() + 1) * width];
    for i in (0..=a.len()).rev() {
        for j in (0..=b.len()).rev() {
            if i == a.len() && j == b.len() {
                continue;
            }
            for open in [0, 1] {
                let change = weight + (1 - open);
                let mut best = usize::MAX;
                if i < a.len() && j < b.len() && a[i] == b[j] {
                    best = best.min(cost[(i + 1) * width + j + 1][0]);
                }
                if i < a.len() {
                    best = best.min(change + cost[(i + 1) * width + j][1]);
                }
                if j < b.len() {
                    best = best.min(change + cost[i * width + j + 1][1]);
                }
                cost[i * width + j][open] = best;
            }
        }
    }
    let mut cells = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j, mut open) = (0, 0, 0);
    // Letters added in the place of change that is open; they follow the removed ones.
    let mut added: Vec<Cell> = Vec::new();
    while i < a.len() || j < b.len() {
        let here = cost[i * width + j][open];
        let change = weight + (1 - open);
        if i < a.len() && j < b.len() && a[i] == b[j] && here == cost[(i + 1) * width + j + 1][0] {
            cells.append(&mut added);
            cells.push(Cell::Kept(a[i]));
            (i, j, open) = (i + 1, j + 1, 0);
        } else if i < a.len() && here == change + cost[(i + 1) * width + j][1] {
            cells.push(Cell::Removed(a[i]));
            (i, open) = (i + 1, 1);
        } else {
            added.push(Cell::Added(b[j]));
            (j, open) = (j + 1, 1);
        }
    }
    cells.append(&mut added);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Removed letters in square brackets, added ones in braces.
    fn shown(before: &str, after: &str) -> String {
        let cells = align(before, after);
        cells
            .into_iter()
            .map(|cell| match cell {
                Cell::Kept(c) => c.to_string(),
                Cell::Removed(c) => format!("[{c}]"),
                Cell::Added(c) => format!("{{{c}}}"),
            })
            .collect()
    }

    #[test]
    fn changes_are_where_a_person_sees_them() {
        for (before, after, expected) in [
            ("banana", "bonono", "b[a]{o}n[a]{o}n[a]{o}"),
            ("banana", "banana", "banana"),
            ("embolden", "emboldec", "embolde[n]{c}"),
            ("embolden", "xembolden", "{x}embolden"),
            ("embolden", "emboldenx", "embolden{x}"),
            ("embolden", "embolde", "embolde[n]"),
            ("banana", "xnana", "[b][a]{x}nana"),
            ("abc", "xyz", "[a][b][c]{x}{y}{z}"),
            ("ab", "", "[a][b]"),
            ("", "ab", "{a}{b}"),
            ("", "", ""),
            ("moon", "moooon", "moo{o}{o}n"),
            ("ÀB", "ÀC", "À[B]{C}"),
        ] {
            assert_eq!(shown(before, after), expected, "{before} to {after}");
        }
    }

    #[test]
    fn long_words_are_not_compared_letter_by_letter() {
        let long = "a".repeat(3000);
        assert_eq!(align(&long, &long).len(), 6000);
    }

    fn longest_common_subsequence(a: &[char], b: &[char]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn each_word_can_be_read_off(before in "[abcé]{0,9}", after in "[abcé]{0,9}") {
            let cells = align(&before, &after);
            let without_added: String =
                cells.iter().filter_map(|c| match c { Cell::Kept(c) | Cell::Removed(c) => Some(*c), Cell::Added(_) => None }).collect();
            let without_removed: String =
                cells.iter().filter_map(|c| match c { Cell::Kept(c) | Cell::Added(c) => Some(*c), Cell::Removed(_) => None }).collect();
            prop_assert_eq!(&without_added, &before);
            prop_assert_eq!(&without_removed, &after);
            let (a, b): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
            let kept = cells.iter().filter(|c| matches!(c, Cell::Kept(_))).count();
            prop_assert_eq!(kept, longest_common_subsequence(&a, &b));
            let in_order = cells.windows(2).all(|pair| !matches!(pair, [Cell::Added(_), Cell::Removed(_)]));
            prop_assert!(in_order, "removed letters come before added ones: {:?}", cells);
        }

        #[test]
        fn any_text_at_all(before in any::<String>(), after in any::<String>()) {
            let cells = align(&before, &after);
            prop_assert!(cells.len() >= before.chars().count().max(after.chars().count()));
        }
    }
}
