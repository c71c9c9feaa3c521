//! Executing `pattern@replacement` on words, as the paper has it (`docs/models.md`).

use super::python_re::{Regex, Scratch, Template};
use super::{Edit, Words};
use std::collections::HashMap;

/// The class that `C` stands for in a pattern. So y is a consonant, and so is anything that is not a letter.
pub const CONSONANT: &str = "[^aeiou]";

/// The class that `V` stands for in a pattern.
pub const VOWEL: &str = "[aeiou]";

/// A pattern that compiles. Many expressions may share it.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern, in which `C` and `V` are the classes [`CONSONANT`] and [`VOWEL`]. `None` where Python refuses it.
    pub fn new(pattern: &str) -> Option<Pattern> {
        let mut spelled = String::with_capacity(pattern.len() + 32);
        for c in pattern.chars() {
            match c {
                'C' => spelled.push_str(CONSONANT),
                'V' => spelled.push_str(VOWEL),
                c => spelled.push(c),
            }
        }
        Regex::new(&spelled).ok().map(Pattern)
    }

    /// Compiles what takes the place of a match: group 1, the replacement, group 3. The replacement holds none of `@ C V ( )`.
    /// `None` where Python refuses it or groups are missing.
    pub fn replacement(&self, replacement: &str) -> Option<Template> {
        if replacement.contains(['@', 'C', 'V', '(', ')']) {
            return None;
        }
        self.0.template(&format!("\\1{replacement}\\3")).ok()
    }

    /// The word with every match replaced; `None` when the step bound is reached.
    pub fn replace(&self, template: &Template, word: &str, scratch: &mut Scratch) -> Option<String> {
        self.0.sub(template, word, scratch).ok()
    }
}

/// An expression that compiles.
#[derive(Clone, Debug)]
pub struct Expression {
    pattern: Pattern,
    template: Template,
}

impl Expression {
    /// Compiles `pattern@replacement`, with exactly one `@` ([`Pattern`]). `None` is an invalid execution.
    pub fn new(expression: &str) -> Option<Expression> {
        let (pattern, replacement) = expression.split_once('@')?;
        let pattern = Pattern::new(pattern)?;
        let template = pattern.replacement(replacement)?;
        Some(Expression { pattern, template })
    }

    /// The word after the edit; `None` when the step bound is reached.
    pub fn apply(&self, word: &str, scratch: &mut Scratch) -> Option<String> {
        self.pattern.replace(&self.template, word, scratch)
    }

    /// The parts of the word that match, as positions of letters; `None` when the step bound is reached.
    pub fn matches(&self, word: &str, scratch: &mut Scratch) -> Option<Vec<(usize, usize)>> {
        self.pattern.0.matches(word, scratch).ok()
    }

    /// The places that the edit writes anew, each with what stands there afterwards; `None` when the step bound is reached.
    pub fn replaced(&self, word: &str, scratch: &mut Scratch) -> Option<Vec<(usize, usize, String)>> {
        self.pattern.0.replaced(&self.template, word, scratch).ok()
    }
}

/// Executes an expression on one word. `None` is an invalid execution.
pub fn execute(expression: &str, word: &str) -> Option<String> {
    Expression::new(expression)?.apply(word, &mut Scratch::default())
}

/// Executes many expressions, keeping the patterns of the most recent ones compiled. Memory stays bounded.
#[derive(Debug)]
pub struct Executor {
    patterns: HashMap<String, Option<Pattern>>,
    capacity: usize,
    scratch: Scratch,
}

impl Default for Executor {
    fn default() -> Self {
        Executor::new(4096)
    }
}

impl Executor {
    /// An executor that keeps at most `capacity` patterns compiled.
    pub fn new(capacity: usize) -> Executor {
        Executor { patterns: HashMap::new(), capacity: capacity.max(1), scratch: Scratch::default() }
    }

    /// As [`execute`].
    pub fn execute(&mut self, expression: &str, word: &str) -> Option<String> {
        self.execute_all(expression, std::slice::from_ref(&word))?.pop()
    }

    /// The outputs for all words. One invalid output makes all invalid.
    pub fn execute_all(&mut self, expression: &str, words: &[impl AsRef<str>]) -> Option<Vec<String>> {
        let (pattern, replacement) = expression.split_once('@')?;
        // Looking up before inserting spares the copy of the text in the common case.
        if !self.patterns.contains_key(pattern) {
            if self.patterns.len() >= self.capacity {
                self.patterns.clear();
            }
            self.patterns.insert(pattern.to_owned(), Pattern::new(pattern));
        }
        let pattern = self.patterns.get(pattern)?.as_ref()?;
        let template = pattern.replacement(replacement)?;
        words.iter().map(|word| pattern.replace(&template, word.as_ref(), &mut self.scratch)).collect()
    }
}

impl Edit {
    /// Executes an expression on every word of a start. One invalid output makes all invalid.
    pub fn of(expression: &str, start: &Words) -> Edit {
        let outputs = Expression::new(expression).and_then(|compiled| {
            let mut scratch = Scratch::default();
            start.words.iter().map(|word| compiled.apply(word, &mut scratch)).collect()
        });
        Edit { expression: expression.to_owned(), outputs }
    }

    /// Whether the execution is valid and changes at least one of the words it was executed on.
    pub fn changes(&self, start: &Words) -> bool {
        self.outputs.as_ref().is_some_and(|outputs| outputs.iter().zip(&start.words).any(|(out, word)| out != word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example() {
        assert_eq!(execute("()(n)()@c", "embolden").as_deref(), Some("emboldec"));
    }

    #[test]
    fn groups_one_and_three_are_kept() {
        assert_eq!(execute("(e)(m)(b)@x", "embolden").as_deref(), Some("exbolden"));
        assert_eq!(execute("()(.)($)@\\2\\2", "embolden").as_deref(), Some("emboldenn"));
    }

    #[test]
    fn what_makes_an_execution_invalid() {
        for expression in [
            "",
            "n",
            "()(n)()",
            "()(n)()@c@d",
            "()(n)()@C",
            "()(n)()@V",
            "()(n)()@(",
            "()(n)()@)",
            "(n)@c",
            "()(n)@c",
            "()(n()@c",
            "()(n)()@\\4",
            "()(n)()@\\",
            "()(a**)()@b",
            "()(n)()@\\q",
        ] {
            // A backslash at the end of the replacement makes `\\3`: a backslash and a three, which Python accepts.
            let expected = (expression == "()(n)()@\\").then(|| "embolde\\3".to_owned());
            assert_eq!(execute(expression, "embolden"), expected, "{expression}");
        }
    }

    #[test]
    fn digits_after_group_one_join_it() {
        assert_eq!(execute("()(n)()@2", "embolden"), None, "group 12 does not exist");
        assert_eq!(execute("()(n)()@23", "embolden").as_deref(), Some("emboldeS"), "octal 123 is S");
    }

    #[test]
    fn the_executor_agrees_and_forgets() {
        let mut executor = Executor::new(2);
        for expression in ["()(n)()@c", "()(e)()@", "bad", "()(V)()@x", "()(n)()@c"] {
            assert_eq!(executor.execute(expression, "embolden"), execute(expression, "embolden"), "{expression}");
        }
        assert!(executor.patterns.len() <= 2);
    }

    #[test]
    fn one_invalid_output_makes_all_invalid() {
        let bomb = "()((a*)*b)()@x";
        let words = Words { words: vec!["b".into(), "a".repeat(40)] };
        assert_eq!(Edit::of(bomb, &words).outputs, None);
        assert!(!Edit::of("()(z)()@x", &words).changes(&words));
        assert!(Edit::of("()(b)()@x", &words).changes(&words));
    }
}
