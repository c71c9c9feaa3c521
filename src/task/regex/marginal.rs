//! P_ω, the approximate marginal: expressions without requests.

use super::letters::form;
use super::program::execute;
use super::{Edit, Words};
use crate::rng::Stream;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest number of draws until one changes the first word.
const TRIES: usize = 2000;

/// The way in which P_ω draws from a list of expressions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarginalDraw {
    /// Each with the same probability, as the paper says.
    #[default]
    Uniform,
    /// A form with the same probability, then one of its expressions: kinds of edits that few expressions of the list are, are
    /// explored as often as others.
    ByForm,
}

/// Where expressions are drawn from.
#[derive(Clone, Debug)]
pub enum Marginal {
    /// Uniformly from a list (the paper: a dataset of unlabelled expressions).
    List(Vec<String>),
    /// A list's expressions by form ([`form`]): a form is drawn uniformly, then one of its expressions.
    Forms(Vec<Vec<String>>),
    /// Composed at random: broader than what the tasks use.
    Composed {
        /// Letters that patterns and replacements use.
        letters: Vec<char>,
        /// Forms that half of the draws take, with `{x}`, `{y}` and `{yy}` for letters; the other half are composed
        /// freely. Somebody who knows what kinds of edits there are knows these, without any request.
        forms: Vec<String>,
    },
}

impl Marginal {
    /// This P_ω, with the expressions of a list drawn in this way.
    pub fn drawn(self, draw: MarginalDraw) -> Marginal {
        let (Marginal::List(list), MarginalDraw::ByForm) = (&self, draw) else { return self };
        let mut forms: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for expression in list {
            forms.entry(form(expression)).or_default().push(expression.clone());
        }
        Marginal::Forms(forms.into_values().collect())
    }

    /// One expression, whatever it does.
    pub fn draw(&self, stream: &mut Stream) -> String {
        match self {
            Marginal::List(list) => list[stream.random_range(0..list.len())].clone(),
            Marginal::Forms(forms) => {
                let form = &forms[stream.random_range(0..forms.len())];
                form[stream.random_range(0..form.len())].clone()
            }
            Marginal::Composed { letters, forms } if !forms.is_empty() && stream.random_bool(0.5) => {
                let form = &forms[stream.random_range(0..forms.len())];
                fill(form, letters, stream)
            }
            Marginal::Composed { letters, .. } => compose(letters, stream),
        }
    }

    /// An expression that changes the first word of the start, drawn by rejection. When none of many draws does (a word
    /// of foreign characters, say), the last resort replaces the word's first character.
    pub fn sample(&self, start: &Words, stream: &mut Stream) -> Edit {
        let first = start.words.first().map_or("", String::as_str);
        for _ in 0..TRIES {
            let expression = self.draw(stream);
            if execute(&expression, first).is_some_and(|out| out != first) {
                return Edit::of(&expression, start);
            }
        }
        let other = if first.starts_with('a') { 'e' } else { 'a' };
        Edit::of(&format!("(^)(.)()@{other}"), start)
    }
}

/// A form with letters in its slots; one or two in `{yy}`.
fn fill(form: &str, letters: &[char], stream: &mut Stream) -> String {
    let letter = |stream: &mut Stream| letters[stream.random_range(0..letters.len())].to_string();
    let (x, y) = (letter(stream), letter(stream));
    let yy = if stream.random_bool(0.4) { y.clone() + &letter(stream) } else { y.clone() };
    form.replace("{x}", &x).replace("{yy}", &yy).replace("{y}", &y)
}

/// No anchor, `^` or `$`; one or two symbols to match, half of them letters; up to two symbols to put there, mostly
/// letters. So it states all that the tasks state and much that they do not: both letters of a pair doubled and a
/// letter put before, two letters inserted around, and so on.
fn compose(letters: &[char], stream: &mut Stream) -> String {
    let letter = |stream: &mut Stream| letters[stream.random_range(0..letters.len())];
    let (start, end) = match stream.random_range(0..10) {
        0..4 => ("", ""),
        4..7 => ("^", ""),
        _ => ("", "$"),
    };
    let mut expression = format!("({start})(");
    for _ in 0..stream.random_range(1..=2) {
        let symbol = match stream.random_range(0..6) {
            0 => '.',
            1 => 'C',
            2 => 'V',
            _ => letter(stream),
        };
        expression.push(symbol);
    }
    expression.push_str(")(");
    expression.push_str(end);
    expression.push_str(")@");
    for _ in 0..stream.random_range(0..=2) {
        if stream.random_range(0..5) < 3 {
            expression.push(letter(stream));
        } else {
            expression.push_str("\\2");
        }
    }
    expression
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    fn composed() -> Marginal {
        Marginal::Composed { letters: ('a'..='z').collect(), forms: vec!["(^)({x})()@{yy}".into()] }
    }

    #[test]
    fn every_sample_changes_the_first_word() {
        let mut draws = stream(1, "marginal test", 0);
        for word in ["banana", "a", "zz", "rhythm", "queue"] {
            let start = Words { words: vec![word.into(), "other".into()] };
            for _ in 0..200 {
                let edit = composed().sample(&start, &mut draws);
                let outputs = edit.outputs.expect("valid");
                assert_ne!(outputs[0], word, "{}", edit.expression);
            }
        }
    }

    #[test]
    fn it_is_broad_and_always_compiles() {
        let mut draws = stream(2, "marginal test", 0);
        let drawn: std::collections::HashSet<String> = (0..2000).map(|_| composed().draw(&mut draws)).collect();
        assert!(drawn.len() > 1000, "{}", drawn.len());
        for expression in &drawn {
            assert!(execute(expression, "banana").is_some(), "{expression}");
        }
        for part in ["(^)", "($)", "(C", "(V", "@)", "\\2\\2"] {
            let found = drawn.iter().any(|e| format!("{e})").contains(part));
            assert!(found, "no expression has {part}");
        }
    }

    #[test]
    fn forms_are_drawn_evenly_however_many_expressions_each_has() {
        let mut list: Vec<String> = ('a'..='j').map(|c| format!("()({c})()@")).collect();
        list.push("(^)(.)()@".into());
        let count = |draw| {
            let (marginal, mut draws) = (Marginal::List(list.clone()).drawn(draw), stream(4, "marginal test", 0));
            (0..2000).filter(|_| marginal.draw(&mut draws) == "(^)(.)()@").count()
        };
        let (uniform, by_form) = (count(MarginalDraw::Uniform), count(MarginalDraw::ByForm));
        assert!((100..280).contains(&uniform) && (900..1100).contains(&by_form), "{uniform} {by_form}");
    }

    #[test]
    fn hopeless_words_end_the_search() {
        let none = Marginal::List(vec!["()(q)()@x".into()]);
        let start = Words { words: vec!["été".into(), "a".into()] };
        let edit = none.sample(&start, &mut stream(3, "marginal test", 0));
        assert_eq!(edit.outputs.expect("valid")[0], "até");
        none.sample(&Words { words: vec![] }, &mut stream(3, "marginal test", 1));
    }
}
