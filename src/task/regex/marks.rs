//! Where an expression changed a word: what its matches replaced, and by what.
//!
//! A comparison of the two words cannot know that. Of `suspense` and `spense` it may strike the letters `us`, while the rule
//! removed the first two; rows of one execution would then seem to differ.

use super::diff::{Cell, align};
use super::program::Expression;
use super::python_re::Scratch;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A place where a word was changed: first letter, the letter after the last, and what stands there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark(pub usize, pub usize, pub String);

/// The places in which the expression changes the word, in their order. A place that it replaces by the same letters is none.
/// `None` when the expression cannot be executed on the word.
pub fn marks(expression: &Expression, word: &str, scratch: &mut Scratch) -> Option<Vec<Mark>> {
    let letters: Vec<char> = word.chars().collect();
    let replaced = expression.replaced(word, scratch)?;
    let changes = |(from, to, new): &(usize, usize, String)| !letters[*from..*to].iter().copied().eq(new.chars());
    Some(replaced.into_iter().filter(changes).map(|(from, to, new)| Mark(from, to, new)).collect())
}

/// A word and its output as a member of a view, with the marks where they lead from one to the other.
pub fn pair(expression: Option<&Expression>, word: &str, output: &str, scratch: &mut Scratch) -> Value {
    let marks = expression.filter(|_| word != output).and_then(|expression| marks(expression, word, scratch));
    match marks.filter(|marks| cells(word, output, marks).is_some()) {
        Some(marks) => json!({"in": word, "out": output, "marks": marks}),
        None => json!({"in": word, "out": output}),
    }
}

/// The letters of a word and its output by the marks; `None` where the marks do not lead from one to the other.
fn cells(word: &str, output: &str, marks: &[Mark]) -> Option<Vec<Cell>> {
    let letters: Vec<char> = word.chars().collect();
    let mut cells = Vec::new();
    let mut at = 0;
    for Mark(from, to, new) in marks {
        if *from < at || to < from {
            return None;
        }
        cells.extend(letters.get(at..*from)?.iter().map(|c| Cell::Kept(*c)));
        cells.extend(letters.get(*from..*to)?.iter().map(|c| Cell::Removed(*c)));
        cells.extend(new.chars().map(Cell::Added));
        at = *to;
    }
    cells.extend(letters.get(at..)?.iter().map(|c| Cell::Kept(*c)));
    let result = cells.iter().filter_map(|cell| match cell {
        Cell::Kept(c) | Cell::Added(c) => Some(*c),
        Cell::Removed(_) => None,
    });
    result.eq(output.chars()).then_some(cells)
}

/// The letters of a word and its output: by the marks where there are such that fit, else by a comparison of the two.
pub fn shown(word: &str, output: &str, marks: Option<&[Mark]>) -> Vec<Cell> {
    marks.and_then(|marks| cells(word, output, marks)).unwrap_or_else(|| align(word, output))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Removed letters in square brackets, added ones in braces.
    fn drawn(expression: &str, word: &str) -> String {
        let expression = Expression::new(expression).unwrap();
        let mut scratch = Scratch::default();
        let output = expression.apply(word, &mut scratch).unwrap();
        let marks = marks(&expression, word, &mut scratch).unwrap();
        let cells = shown(word, &output, Some(&marks)).into_iter().map(|cell| match cell {
            Cell::Kept(c) => c.to_string(),
            Cell::Removed(c) => format!("[{c}]"),
            Cell::Added(c) => format!("{{{c}}}"),
        });
        cells.collect()
    }

    #[test]
    fn rows_of_one_rule_are_marked_alike() {
        for (expression, word, expected) in [
            ("(^)(..)()@", "suspense", "[s][u]spense"),
            ("(^)(..)()@", "garden", "[g][a]rden"),
            ("()(..)($)@", "mimic", "mim[i][c]"),
            ("()(.)($)@\\2\\2", "moon", "moon{n}"),
            ("()(V)()@\\2x", "orange", "o{x}ra{x}nge{x}"),
            ("(C)(V)()@o", "banana", "b[a]{o}n[a]{o}n[a]{o}"),
            ("()(V)()@a", "orange", "[o]{a}rang[e]{a}"),
            ("(^)()()@h", "orange", "{h}orange"),
            ("()(n)()@c", "embolden", "embolde[n]{c}"),
            ("()(z)()@c", "embolden", "embolden"),
            // A group whose place has passed is written anew.
            ("(a)(b)()@\\2\\1", "xaby", "xab{a}y"),
        ] {
            assert_eq!(drawn(expression, word), expected, "{expression} on {word}");
        }
    }

    #[test]
    fn marks_that_do_not_fit_give_way_to_a_comparison() {
        let compared = align("abc", "ac");
        for marks in [vec![Mark(0, 1, String::new())], vec![Mark(2, 9, String::new())], vec![Mark(2, 1, "x".into())]] {
            assert_eq!(shown("abc", "ac", Some(&marks)), compared);
        }
        assert_eq!(pair(None, "abc", "ac", &mut Scratch::default()), json!({"in": "abc", "out": "ac"}));
    }

    proptest! {
        #[test]
        fn marks_lead_to_the_output_and_lie_in_matches(
            first in prop::sample::select(vec!["()", "(^)", "(C)", "(V)", "([^a])", "(a)"]),
            second in prop::sample::select(vec!["(.)", "(..)", "(V)", "(C)", "(a)", "(V+)", "()", "(.*)", "(b?)"]),
            third in prop::sample::select(vec!["()", "($)", "(C)", "(V)", "(b)"]),
            new in prop::sample::select(vec!["", "x", "\\2\\2", "x\\2", "\\2x", "ab", "\\2x\\2", "\\3", "\\1y"]),
            word in "[abceo]{0,9}",
        ) {
            let expression = Expression::new(&format!("{first}{second}{third}@{new}")).unwrap();
            let mut scratch = Scratch::default();
            let output = expression.apply(&word, &mut scratch).unwrap();
            let marks = marks(&expression, &word, &mut scratch).unwrap();
            let cells = cells(&word, &output, &marks);
            prop_assert!(cells.is_some(), "{:?} leads from {} to {}", marks, word, output);
            // Each mark lies in a match, and each match that changes something has a mark.
            let matches = expression.matches(&word, &mut scratch).unwrap();
            for Mark(from, to, _) in &marks {
                prop_assert!(matches.iter().any(|(start, end)| start <= from && to <= end), "{:?} in {:?}", marks, matches);
            }
            if word != output {
                prop_assert!(!marks.is_empty());
            }
            // A rule that writes plain letters writes them in each match.
            if !new.is_empty() && !new.contains('\\') {
                let replaced = expression.replaced(&word, &mut scratch).unwrap();
                prop_assert_eq!(replaced.len(), matches.len());
            }
        }
    }
}
