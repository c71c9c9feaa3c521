//! Demonstrations of word edits: the wanted outputs of the five words, or the expression itself.
//!
//! The agent learns to write expressions, so outputs alone are no execution. An expression that makes them is looked for among the
//! edits that the built-in grammar's kinds are made of, with letters of the words and of what they are to become. Where there are
//! several, the shortest is taken: it says least beyond what was shown.

use super::grammar::Grammar;
use super::ngram_prior::Grid;
use super::program::Expression;
use super::python_re::Scratch;
use super::{Edit, PAIRS, Words};
use crate::family::{Demonstration, Fields};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Characters of an output or an expression at most.
const LONGEST: usize = 80;

/// Letters that an edit puts in at one place at most.
const LONGEST_INSERTION: usize = 3;

/// The sentence that refuses a demonstration in which every word stays.
const UNCHANGED: &str =
    "That changes none of the words. Show what was asked for, or say that you can\u{2019}t show this.";

/// The edits that are looked through.
static GRID: LazyLock<Grid> = LazyLock::new(|| Grid::of(&Grammar::full().marginal()));

/// A demonstration as it comes from a page or a program. One of the two is enough; the expression counts where both are there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    outputs: Option<Vec<String>>,
    #[serde(default)]
    expression: Option<String>,
}

/// Text as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Typed {
    Outputs,
    Expression,
}

/// A checked demonstration as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Checked {
    typed: Typed,
    expression: String,
    words: Vec<String>,
    outputs: Vec<String>,
}

/// The demonstration that the fields `output-0` to `output-4` and `expression` say.
pub fn of_fields(fields: &Fields) -> Value {
    let mut given = serde_json::Map::new();
    if let Some(expression) = fields.get("expression").map(|text| text.trim()).filter(|text| !text.is_empty()) {
        given.insert("expression".into(), expression.into());
    }
    let outputs: Vec<String> = (0..PAIRS).map_while(|i| fields.get(&format!("output-{i}")).cloned()).collect();
    if !outputs.is_empty() {
        given.insert("outputs".into(), outputs.into());
    }
    Value::Object(given)
}

/// The outputs that were given, for the fields that show them again; as many as there are words.
pub fn outputs_of(given: &Value, words: &[&str]) -> Vec<String> {
    let output = |(i, word): (usize, &&str)| given["outputs"][i].as_str().unwrap_or(word).to_owned();
    words.iter().enumerate().map(output).collect()
}

/// Checks a demonstration of what should become of the words, which are the start of an execution.
///
/// # Errors
/// A sentence that says what to change.
pub fn check(words: Vec<String>, given: &Value) -> Result<Demonstration, String> {
    let given = Given::deserialize(given).map_err(|_| {
        "A demonstration has the wanted output of each word under `outputs`, or an `expression`.".to_owned()
    })?;
    let start = Words { words };
    let (typed, expression) = match (given.expression, given.outputs) {
        (Some(expression), _) => (Typed::Expression, expression),
        (None, Some(outputs)) => {
            let outputs = read_outputs(&start, &outputs)?;
            if outputs == start.words {
                return Err(UNCHANGED.into());
            }
            let found = search(&start.words, &outputs).ok_or_else(|| {
                "No edit I know does that: one rule has to make all of these words. Look for a slip, write the rule under \
                 \u{201c}I know the expression language\u{201d}, or say that you can\u{2019}t show this."
                    .to_owned()
            })?;
            (Typed::Outputs, found)
        }
        (None, None) => return Err("Write what each word should become first.".into()),
    };
    let length = expression.chars().count();
    if length > LONGEST {
        return Err(format!("The expression has {length} characters and {LONGEST} fit."));
    }
    let edit = Edit::of(&expression, &start);
    let Some(outputs) = edit.outputs else {
        return Err(format!(
            "\u{201c}{expression}\u{201d} is no expression that can be carried out. It has the form (before)(what)(behind)@replacement, as in ()(n)()@c."
        ));
    };
    if outputs == start.words {
        return Err(UNCHANGED.into());
    }
    if outputs.iter().any(|output| output.chars().count() > LONGEST) {
        return Err(format!("That makes a word of more than {LONGEST} letters."));
    }
    let checked = Checked { typed, expression, words: start.words, outputs };
    Ok(Demonstration { text: in_words(&checked), data: serde_json::to_value(&checked).unwrap_or_default() })
}

/// The wanted outputs as words are written: in lower case, without blanks around them.
fn read_outputs(start: &Words, outputs: &[String]) -> Result<Vec<String>, String> {
    if outputs.len() != start.words.len() {
        return Err(format!("There are {} words, and {} outputs.", start.words.len(), outputs.len()));
    }
    outputs
        .iter()
        .zip(&start.words)
        .map(|(output, word)| {
            let output = output.trim().to_lowercase();
            let length = output.chars().count();
            if length > LONGEST {
                Err(format!("What \u{201c}{word}\u{201d} should become has {length} letters and {LONGEST} fit."))
            } else if output.chars().any(|c| c.is_whitespace() || c.is_control()) {
                Err(format!(
                    "\u{201c}{word}\u{201d} should become one word, without blanks; or nothing, if the field is empty."
                ))
            } else {
                Ok(output)
            }
        })
        .collect()
}

fn in_words(checked: &Checked) -> String {
    let one = |(word, output): (&String, &String)| match output {
        output if output == word => format!("{word} stays"),
        output if output.is_empty() => format!("{word} becomes nothing"),
        output => format!("{word} becomes {output}"),
    };
    let pairs: Vec<String> = checked.words.iter().zip(&checked.outputs).map(one).collect();
    match checked.typed {
        Typed::Outputs => pairs.join(", "),
        Typed::Expression => format!("{}: {}", checked.expression, pairs.join(", ")),
    }
}

/// A checked demonstration in plain text.
pub fn text(demonstration: &Value) -> String {
    Checked::deserialize(demonstration).map(|checked| in_words(&checked)).unwrap_or_default()
}

/// The edit that a checked demonstration is, from a start.
///
/// # Errors
/// Where it was of other words, or cannot be carried out.
pub fn execution(start: &Words, demonstration: &Value) -> Result<Edit, String> {
    let checked = Checked::deserialize(demonstration).map_err(|e| format!("the demonstration cannot be read: {e}"))?;
    if checked.words != start.words {
        return Err("the demonstration is of other words".into());
    }
    let edit = Edit::of(&checked.expression, start);
    if edit.outputs.as_ref() == Some(&checked.outputs) { Ok(edit) } else { Err("no edit does what was shown".into()) }
}

/// The shortest expression of the grid that makes the outputs of the words; `None` where none does, or nothing changes.
pub fn search(words: &[String], outputs: &[String]) -> Option<String> {
    all(words, outputs).into_iter().next()
}

/// The expressions of the grid that make the outputs of the words, shortest first.
pub fn all(words: &[String], outputs: &[String]) -> Vec<String> {
    let Some(first) = words.iter().zip(outputs).position(|(word, output)| word != output) else { return Vec::new() };
    let letters: Vec<String> = words.concat().chars().collect::<BTreeSet<char>>().iter().map(char::to_string).collect();
    let inserted = insertions(words, outputs);
    let mut scratch = Scratch::default();
    let mut found: Vec<String> = Vec::new();
    let none = [String::new()];
    for pattern in GRID.patterns() {
        for x in if pattern.contains("{x}") { letters.as_slice() } else { &none } {
            let pattern = pattern.replace("{x}", x);
            // A mark that stands in no word shows whether the pattern matches there at all.
            let marks = Expression::new(&format!("{pattern}@#"));
            let matched = |word: &String| marks.as_ref()?.apply(word, &mut Scratch::default());
            if matched(&words[first]).is_none_or(|output| output == words[first]) {
                continue;
            }
            for replacement in GRID.replacements() {
                for y in if replacement.contains("{y}") { inserted.as_slice() } else { &none } {
                    let expression = format!("{pattern}@{}", replacement.replace("{y}", y));
                    let Some(compiled) = Expression::new(&expression) else { continue };
                    let mut does = |i: usize| compiled.apply(&words[i], &mut scratch).as_ref() == Some(&outputs[i]);
                    if does(first) && (0..words.len()).all(&mut does) {
                        found.push(expression);
                    }
                }
            }
        }
    }
    found.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    found.dedup();
    found
}

/// Strings of letters that every changed output has and that an edit may have put there.
fn insertions(words: &[String], outputs: &[String]) -> Vec<String> {
    let mut common: Option<BTreeSet<String>> = None;
    for (_, output) in words.iter().zip(outputs).filter(|(word, output)| word != output) {
        let letters: Vec<char> = output.chars().collect();
        let strings: BTreeSet<String> = (1..=LONGEST_INSERTION)
            .flat_map(|n| letters.windows(n).map(|window| window.iter().collect::<String>()).collect::<Vec<_>>())
            .collect();
        common = Some(match common {
            None => strings,
            Some(common) => common.intersection(&strings).cloned().collect(),
        });
    }
    common.unwrap_or_default().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Split, World};
    use crate::task::regex::world::RegexWorld;
    use serde_json::json;

    fn words() -> Vec<String> {
        ["embolden", "banana", "orange", "strength", "queue"].map(str::to_owned).to_vec()
    }

    fn refused(given: Value) -> String {
        check(words(), &given).expect_err("it is refused")
    }

    #[test]
    fn outputs_become_an_expression_that_makes_them() {
        let outputs = json!({"outputs": ["emboldec", "bacaca", "oracge", "strecgth", "queue"]});
        let checked = check(words(), &outputs).unwrap();
        assert_eq!(checked.data["expression"], "()(n)()@c");
        assert!(checked.text.contains("banana becomes bacaca") && checked.text.ends_with("queue stays"));
        let edit = execution(&Words { words: words() }, &checked.data).unwrap();
        assert_eq!(edit.outputs.unwrap()[2], "oracge");
        assert!(execution(&Words { words: vec!["other".into()] }, &checked.data).is_err());
    }

    #[test]
    fn an_expression_is_checked_by_the_compiler() {
        let checked = check(words(), &json!({"expression": "(^)(C)()@w", "outputs": []})).unwrap();
        assert_eq!((&checked.data["typed"], &checked.data["outputs"][1]), (&json!("expression"), &json!("wanana")));
        assert_eq!(text(&checked.data), checked.text);
        assert!(refused(json!({"expression": "()(n)(@c"})).contains("no expression that can be carried out"));
        assert!(refused(json!({"expression": "()(z)()@c"})).contains("changes none"));
        assert!(refused(json!({"expression": "()(.)()@".to_owned() + &"a".repeat(100)})).contains("80 fit"));
    }

    #[test]
    fn what_cannot_be_is_told_in_a_sentence() {
        let slip = json!({"outputs": ["emboldec", "bacaca", "oracge", "strecgth", "quxue"]});
        assert!(refused(slip).starts_with("No edit I know does that"));
        assert!(refused(json!({"outputs": ["a"]})).contains("5 words, and 1 outputs"));
        assert!(refused(json!({"outputs": vec!["a"; 100_000]})).contains("100000 outputs"));
        assert!(refused(json!({"outputs": ["a b", "", "", "", ""]})).contains("one word"));
        assert!(refused(json!({"outputs": ["x".repeat(500), "", "", "", ""]})).contains("500 letters"));
        for hostile in [json!(null), json!([]), json!({"outputs": 7}), json!({"other": 1}), json!("text"), json!({})] {
            assert!(refused(hostile).ends_with('.'));
        }
    }

    #[test]
    fn fields_say_what_a_program_would() {
        let fields: Fields = (0..5).map(|i| (format!("output-{i}"), format!("w{i}"))).collect();
        assert_eq!(of_fields(&fields), json!({"outputs": ["w0", "w1", "w2", "w3", "w4"]}));
        let named = Fields::from([("expression".to_owned(), " ()(n)()@c ".to_owned())]);
        assert_eq!(of_fields(&named), json!({"expression": "()(n)()@c"}));
    }

    /// Most of what the built-in tasks ask for can be shown by outputs alone.
    #[test]
    fn gold_outputs_are_found_for_most_tasks() {
        for world in [RegexWorld::tiny(1), RegexWorld::builtin(1)] {
            let n = 60.min(world.len(Split::Validation));
            let mut found = 0;
            for index in 0..n {
                let (task, gold) = (world.task(Split::Validation, index), world.gold(Split::Validation, index));
                let outputs = gold.outputs.unwrap();
                if let Some(expression) = search(&task.start.words, &outputs) {
                    assert_eq!(Edit::of(&expression, &task.start).outputs, Some(outputs));
                    found += 1;
                }
            }
            assert!(found * 10 >= n * 8, "{found} of {n}");
        }
    }
}
