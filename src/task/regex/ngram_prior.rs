//! The prior of word edits: a log-linear model that reads n-grams of a description, and learns from the first one on.
//!
//! Its candidates are the edits that the world's kinds are made of (each pattern with each replacement), with the letters that
//! the description names. Its features are n-grams of the description, in which those letters are marked by the part that they
//! play, joined with parts of the edit: so what was said of one edit helps with others that share its pattern or its
//! replacement. The manner is that of SHRDLURN (Wang, Liang and Manning 2016); the paper has nothing of the kind
//! (`docs/deviations.md`).

use super::letters::form;
use super::marginal::Marginal;
use super::program::Executor;
use super::{Edit, Words};
use crate::nn::log_linear::{Feature, LogLinear, softmax};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Patterns and replacements of the grid at most; the most frequent ones are kept.
const MOST_PATTERNS: usize = 40;
const MOST_REPLACEMENTS: usize = 12;

/// Words of a start that are looked at to see what an edit changes.
const WORDS_LOOKED_AT: usize = 5;

/// Longest string of letters that a replacement puts in.
const LONGEST_INSERTION: usize = 3;

/// Candidates of one description at most. More come only from descriptions that name many letters.
const MOST_CANDIDATES: usize = 1500;

/// Letters of a word's beginning, which is a feature of longer words.
const BEGINNING: usize = 4;

/// Learning rate and L2 penalty of the model.
const RATE: f32 = 0.3;
const DECAY: f32 = 1e-3;

/// Examples whose effects are remembered, so that practice does not execute every candidate again.
const REMEMBERED: usize = 2000;

/// The edits that are considered: each pattern with each replacement. `{x}` is a letter that the pattern names, `{y}` the letters
/// that the replacement puts in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    patterns: Vec<String>,
    replacements: Vec<String>,
}

impl Grid {
    /// The grid of a world's edits, as its P_ω knows them.
    pub fn of(marginal: &Marginal) -> Self {
        let mut patterns: BTreeMap<String, usize> = BTreeMap::new();
        let mut replacements: BTreeMap<String, usize> = BTreeMap::new();
        let mut count = |expression: &str| {
            if let Some((pattern, replacement)) = parts(expression) {
                *patterns.entry(pattern).or_default() += 1;
                *replacements.entry(replacement).or_default() += 1;
            }
        };
        match marginal {
            Marginal::List(list) => list.iter().for_each(|expression| count(expression)),
            Marginal::Forms(forms) => forms.iter().flatten().for_each(|expression| count(expression)),
            Marginal::Composed { forms, .. } => {
                forms.iter().for_each(|form| count(&form.replace("{x}", "k").replace("{yy}", "b").replace("{y}", "b")));
            }
        }
        Self {
            patterns: most_frequent(patterns, MOST_PATTERNS),
            replacements: most_frequent(replacements, MOST_REPLACEMENTS),
        }
    }

    /// The patterns.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// The replacements.
    pub fn replacements(&self) -> &[String] {
        &self.replacements
    }

    /// Number of the edits that so many letters for patterns and strings for replacements make.
    fn candidates(&self, letters: usize, strings: usize) -> usize {
        let of = |shapes: &[String], slot: &str, n: usize| -> usize {
            shapes.iter().map(|shape| if shape.contains(slot) { n } else { 1 }).sum()
        };
        of(&self.patterns, "{x}", letters) * of(&self.replacements, "{y}", strings)
    }
}

/// The names with the highest counts, in alphabetical order.
fn most_frequent(counts: BTreeMap<String, usize>, most: usize) -> Vec<String> {
    let mut all: Vec<(String, usize)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(most);
    let mut names: Vec<String> = all.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

/// Pattern and replacement of an expression with `{x}` and `{y}` for its letters; `None` where it names more than one letter in
/// its pattern or puts letters in at more than one place.
fn parts(expression: &str) -> Option<(String, String)> {
    let (pattern, replacement) = expression.split_once('@')?;
    let pattern = form(pattern);
    if pattern.contains("{2}") {
        return None;
    }
    let mut shape = String::new();
    for c in replacement.chars() {
        match c {
            c if c.is_alphabetic() && !shape.ends_with('\\') => {
                if !shape.ends_with("{y}") {
                    shape.push_str("{y}");
                }
            }
            c => shape.push(c),
        }
    }
    (shape.matches("{y}").count() <= 1).then(|| (pattern.replace("{1}", "{x}"), shape))
}

/// The pattern and the replacement of an expression without their letters; its form where it is beyond every grid.
pub fn shape(expression: &str) -> String {
    parts(expression).map_or_else(|| form(expression), |(pattern, replacement)| format!("{pattern}@{replacement}"))
}

/// One considered edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// `pattern@replacement` with its letters.
    pub expression: String,
    pattern: usize,
    replacement: usize,
    x: String,
    y: String,
}

/// A token of a description: a word, or a group of letters that are meant as letters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Letters(String),
}

/// A description as the prior reads it.
#[derive(Clone, Debug)]
pub struct Reading(Vec<Token>);

impl Reading {
    /// Reads tokens as the tokeniser gives them: letters are in brackets.
    pub fn of(tokens: &[String]) -> Self {
        let mut read = Vec::new();
        let mut letters: Option<String> = None;
        for token in tokens {
            match (token.as_str(), &mut letters) {
                ("[", _) => letters = Some(String::new()),
                ("]", Some(_)) => read.push(Token::Letters(letters.take().unwrap_or_default())),
                (letter, Some(group)) => group.push_str(letter),
                (word, None) => read.push(Token::Word(word.to_owned())),
            }
        }
        Self(read)
    }

    /// Strings of letters that the description may name, in the order in which it does: groups, letters of groups, and words of
    /// one letter.
    fn named(&self) -> Vec<String> {
        let mut named: Vec<String> = Vec::new();
        let mut add = |string: String| {
            if !named.contains(&string) {
                named.push(string);
            }
        };
        for token in &self.0 {
            match token {
                Token::Letters(group) if !group.is_empty() => {
                    add(group.clone());
                    group.chars().take(LONGEST_INSERTION).for_each(|letter| add(letter.to_string()));
                }
                Token::Word(word) if word.chars().count() == 1 && word.chars().all(char::is_alphabetic) => {
                    add(word.clone());
                }
                _ => {}
            }
        }
        named
    }
}

/// The effect of a candidate on a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Nothing,
    SomeWords,
    AllWords,
    Invalid,
}

/// A described edit: its tokens, the words that are looked at, and what they became.
type Shown = (String, Vec<String>, Vec<String>);

/// The effect of each candidate, and whether it does what was shown.
type Known = (Vec<Effect>, Vec<bool>);

/// The prior: its grid, the features of its parts, and a cache of what candidates do.
pub struct NgramPrior {
    grid: Grid,
    parts: Parts,
    executor: Executor,
    /// Effects of the candidates of an example, and which of them do what it shows.
    remembered: HashMap<Shown, Known>,
}

/// Features of the grid's parts: of each pattern itself, its anchors, its symbols, and of each replacement.
struct Parts {
    patterns: Vec<[Feature; 3]>,
    replacements: Vec<Feature>,
}

impl NgramPrior {
    /// A prior over a grid.
    pub fn new(grid: Grid) -> Self {
        let split = |pattern: &String| {
            // "(^)(V)()": what stands before, what is matched, what stands behind.
            let mut groups = pattern.trim_matches(['(', ')']).split(")(");
            let (before, symbols, behind) =
                (groups.next().unwrap_or(""), groups.next().unwrap_or(""), groups.next().unwrap_or(""));
            [
                Feature::of(&format!("pattern {pattern}")),
                Feature::of(&format!("anchors {before} {behind}")),
                Feature::of(&format!("symbols {symbols}")),
            ]
        };
        let parts = Parts {
            patterns: grid.patterns.iter().map(split).collect(),
            replacements: grid.replacements.iter().map(|r| Feature::of(&format!("replacement {r}"))).collect(),
        };
        Self { grid, parts, executor: Executor::default(), remembered: HashMap::new() }
    }

    /// The model that fits this prior, untaught.
    pub fn model() -> LogLinear {
        LogLinear::new(RATE, DECAY)
    }

    /// The edits that a description may mean.
    fn candidates(&self, reading: &Reading) -> Vec<Candidate> {
        let none = [String::new()];
        let mut named = reading.named();
        let (single, short) = loop {
            let at_most = |n: usize| {
                let mut strings: Vec<String> = named.iter().filter(|s| s.chars().count() <= n).cloned().collect();
                strings.sort();
                strings
            };
            let (single, short) = (at_most(1), at_most(LONGEST_INSERTION));
            // Where a description names many letters, the first of them are considered, in every edit.
            if named.is_empty() || self.grid.candidates(single.len(), short.len()) <= MOST_CANDIDATES {
                break (single, short);
            }
            named.pop();
        };
        let mut all = Vec::new();
        for (r, replacement) in self.grid.replacements.iter().enumerate() {
            for (p, pattern) in self.grid.patterns.iter().enumerate() {
                let xs = if pattern.contains("{x}") { single.as_slice() } else { &none };
                let ys = if replacement.contains("{y}") { short.as_slice() } else { &none };
                for x in xs {
                    for y in ys {
                        let expression = format!("{}@{}", pattern.replace("{x}", x), replacement.replace("{y}", y));
                        all.push(Candidate { expression, pattern: p, replacement: r, x: x.clone(), y: y.clone() });
                    }
                }
            }
        }
        all
    }

    fn effects(&mut self, candidates: &[Candidate], words: &[String]) -> Vec<Effect> {
        let effect = |candidate: &Candidate| {
            let mut changed = 0;
            for word in words {
                match self.executor.execute(&candidate.expression, word) {
                    None => return Effect::Invalid,
                    Some(output) => changed += usize::from(output != *word),
                }
            }
            match changed {
                0 => Effect::Nothing,
                n if n == words.len() => Effect::AllWords,
                _ => Effect::SomeWords,
            }
        };
        candidates.iter().map(effect).collect()
    }

    /// The features of every candidate.
    fn features(&self, reading: &Reading, candidates: &[Candidate], effects: &[Effect]) -> Vec<Vec<Feature>> {
        let mut grams: HashMap<(&str, &str), Marked> = HashMap::new();
        let mut all = Vec::with_capacity(candidates.len());
        for (candidate, effect) in candidates.iter().zip(effects) {
            let marked = grams
                .entry((&candidate.x, &candidate.y))
                .or_insert_with(|| Marked::of(reading, &candidate.x, &candidate.y));
            let [pattern, anchors, symbols] = self.parts.patterns[candidate.pattern];
            let replacement = self.parts.replacements[candidate.replacement];
            let mut features = vec![pattern, replacement, pattern.and(replacement), marked.letters.and(replacement)];
            features.push(match effect {
                Effect::Nothing => Feature::of("changes nothing"),
                Effect::SomeWords => Feature::of("changes some words"),
                Effect::AllWords => Feature::of("changes all words"),
                Effect::Invalid => Feature::of("is invalid"),
            });
            for (length, gram) in &marked.grams {
                features.push(gram.and(replacement));
                features.push(gram.and(pattern));
                if *length <= 2 {
                    features.push(gram.and(anchors));
                    features.push(gram.and(symbols));
                }
            }
            all.push(features);
        }
        all
    }

    /// One step on a described edit. Nothing is learnt where no candidate does what was shown.
    pub fn learn(&mut self, model: &mut LogLinear, tokens: &[String], start: &Words, edit: &Edit) {
        let Some(outputs) = &edit.outputs else { return };
        let reading = Reading::of(tokens);
        let candidates = self.candidates(&reading);
        let n = start.words.len().min(outputs.len()).min(WORDS_LOOKED_AT);
        let (words, outputs) = (&start.words[..n], &outputs[..n]);
        let key = (tokens.join(" "), words.to_vec(), outputs.to_vec());
        let (effects, right) = match self.remembered.get(&key) {
            Some(known) => known.clone(),
            None => {
                let effects = self.effects(&candidates, words);
                let mut does = |candidate: &Candidate| {
                    let executor = &mut self.executor;
                    words
                        .iter()
                        .zip(outputs)
                        .all(|(w, out)| executor.execute(&candidate.expression, w).as_ref() == Some(out))
                };
                let right: Vec<bool> = candidates.iter().map(&mut does).collect();
                if self.remembered.len() >= REMEMBERED {
                    self.remembered.clear();
                }
                self.remembered.insert(key, (effects.clone(), right.clone()));
                (effects, right)
            }
        };
        if right.contains(&true) {
            model.step(&self.features(&reading, &candidates, &effects), &right);
        }
    }

    /// The `most` most probable edits for a description on a start, each with its log probability, best first.
    pub fn best(&mut self, model: &LogLinear, tokens: &[String], start: &Words, most: usize) -> Vec<(String, f32)> {
        let reading = Reading::of(tokens);
        let candidates = self.candidates(&reading);
        let n = start.words.len().min(WORDS_LOOKED_AT);
        let effects = self.effects(&candidates, &start.words[..n]);
        let features = self.features(&reading, &candidates, &effects);
        let probabilities = softmax(&features.iter().map(|f| model.score(f)).collect::<Vec<_>>());
        let mut order: Vec<usize> = (0..candidates.len()).filter(|i| effects[*i] != Effect::Invalid).collect();
        // Candidates of equal probability keep their order.
        order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
        order.truncate(most);
        order.into_iter().map(|i| (candidates[i].expression.clone(), probabilities[i].ln())).collect()
    }
}

/// The n-grams of a description in which the letters of a candidate are marked, each with its length.
struct Marked {
    grams: Vec<(usize, Feature)>,
    /// Whether the letters of the candidate are named, and how many others are.
    letters: Feature,
}

impl Marked {
    fn of(reading: &Reading, x: &str, y: &str) -> Self {
        let (mut x_named, mut y_named, mut others) = (false, false, 0);
        let mut tokens = vec!["^"];
        for token in &reading.0 {
            let (Token::Letters(text) | Token::Word(text)) = token;
            let is_x = !x.is_empty() && text == x && !(x_named && text == y);
            tokens.push(if is_x {
                x_named = true;
                "{x}"
            } else if !y.is_empty() && text == y {
                y_named = true;
                "{y}"
            } else if matches!(token, Token::Letters(_)) {
                others += 1;
                "{letters}"
            } else {
                text
            });
        }
        tokens.push("$");
        let mut grams = Vec::new();
        for n in 1..=3 {
            for window in tokens.windows(n).filter(|w| !matches!(w, ["^" | "$"])) {
                grams.push((n, Feature::of(&window.join(" "))));
            }
        }
        // Beginnings of words, so that other forms of a word and misspelt ones are not wholly unknown.
        for token in &reading.0 {
            if let Token::Word(word) = token
                && let Some((at, _)) = word.char_indices().nth(BEGINNING)
            {
                grams.push((1, Feature::of(&format!("{}…", &word[..at]))));
            }
        }
        let named = |letters: &str, named: bool| match (letters.is_empty(), named) {
            (true, _) => "none",
            (false, true) => "named",
            (false, false) => "unnamed",
        };
        let letters = format!("letters {} {} others {}", named(x, x_named), named(y, y_named), others.min(2));
        Self { grams, letters: Feature::of(&letters) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokenise::tokenise;
    use super::*;

    fn grid() -> Grid {
        let forms = ["()({x})()@", "()(V)()@\\2\\2", "(^)(.)()@{y}\\2", "()(.)($)@{yy}"];
        Grid::of(&Marginal::Composed { letters: ('a'..='z').collect(), forms: forms.map(String::from).to_vec() })
    }

    fn tokens(text: &str) -> Vec<String> {
        tokenise(text, &|token| token.len() > 2)
    }

    fn words(list: &[&str]) -> Words {
        Words { words: list.iter().map(|w| w.to_string()).collect() }
    }

    #[test]
    fn the_grid_has_every_pattern_and_every_replacement() {
        let grid = grid();
        assert_eq!(grid.patterns, ["()(.)($)", "()(V)()", "()({x})()", "(^)(.)()"]);
        assert_eq!(grid.replacements, ["", "\\2\\2", "{y}", "{y}\\2"]);
        assert_eq!(parts("()(ab)()@x"), None, "two letters");
        assert_eq!(parts("()(a)()@x\\2y"), None, "two insertions");
        assert_eq!(parts("()(a)()@xy"), Some(("()({x})()".into(), "{y}".into())));
    }

    #[test]
    fn candidates_use_the_letters_that_are_named() {
        let prior = NgramPrior::new(grid());
        let of = |text: &str| {
            let all = prior.candidates(&Reading::of(&tokens(text)));
            all.into_iter().map(|c| c.expression).collect::<Vec<_>>()
        };
        let plain = of("double every vowel");
        assert!(plain.contains(&"()(V)()@\\2\\2".into()) && plain.iter().all(|e| !e.contains('{')), "{plain:?}");
        let named = of("put 'k' before 't'");
        for expression in ["()(t)()@k\\2", "()(k)()@t\\2", "(^)(.)()@k\\2", "()(t)()@"] {
            assert!(named.contains(&expression.into()), "{expression}");
        }
        let many = "'a' 'b' 'c' 'd' 'e' 'f' 'g' 'h' 'j' 'k' 'l' 'm' 'n' 'o' 'p' 'q' 'r' 's' 't' 'u'";
        let many = of(many);
        assert!(many.len() <= MOST_CANDIDATES);
        assert!(many.contains(&"(^)(.)()@a\\2".into()), "letters that are named first stand in every edit");
    }

    #[test]
    fn a_few_sentences_teach_edits_that_were_never_described() {
        let (mut prior, mut model) = (NgramPrior::new(grid()), NgramPrior::model());
        let start = words(&["banana", "orange", "letter", "garden", "window"]);
        let told = [
            ("drop each 'a'", "()(a)()@"),
            ("drop each 'e'", "()(e)()@"),
            ("write each vowel two times", "()(V)()@\\2\\2"),
            ("write the closing letter two times", "()(.)($)@\\2\\2"),
            ("'k' comes before the opening letter", "(^)(.)()@k\\2"),
            ("the opening letter becomes 'p'", "(^)(.)()@p"),
            ("'m' comes before each vowel", "()(V)()@m\\2"),
            ("the closing letter becomes 'm'", "()(.)($)@m"),
        ];
        for _ in 0..10 {
            for (text, expression) in told {
                prior.learn(&mut model, &tokens(text), &start, &Edit::of(expression, &start));
            }
        }
        // New letters, and a pattern with a replacement that were told about in other edits only.
        for (text, expression) in [
            ("drop each 'n'", "()(n)()@"),
            ("write the opening letter two times", "(^)(.)()@\\2\\2"),
            ("'z' comes before the opening letter", "(^)(.)()@z\\2"),
        ] {
            let best = prior.best(&model, &tokens(text), &start, 3);
            assert_eq!(best[0].0, expression, "{text}: {best:?}");
        }
    }

    #[test]
    fn nothing_is_learnt_from_edits_beyond_the_grid_and_nonsense_is_no_error() {
        let (mut prior, mut model) = (NgramPrior::new(grid()), NgramPrior::model());
        let start = words(&["banana"]);
        prior.learn(&mut model, &tokens("something odd"), &start, &Edit::of("(b)(an)()@xyz", &start));
        prior.learn(&mut model, &tokens("something"), &start, &Edit { expression: "bad".into(), outputs: None });
        assert!(model.is_untaught());
        for text in ["", "!!!", "[ ] [", "\u{1f600}", &"x ".repeat(500)] {
            let best = prior.best(&model, &tokens(text), &start, 4);
            assert!(best.len() <= 4);
        }
    }

    #[test]
    fn it_learns_the_same_whether_effects_are_remembered_or_not() {
        let start = words(&["banana", "letter"]);
        let edit = Edit::of("()(a)()@", &start);
        let twice = |forget: bool| {
            let (mut prior, mut model) = (NgramPrior::new(grid()), NgramPrior::model());
            for _ in 0..2 {
                prior.learn(&mut model, &tokens("drop 'a'"), &start, &edit);
                if forget {
                    prior.remembered.clear();
                }
            }
            prior.best(&model, &tokens("drop 'a'"), &start, 5)
        };
        assert_eq!(twice(true), twice(false));
    }
}
