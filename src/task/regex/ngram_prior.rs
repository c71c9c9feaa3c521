//! The prior of word edits: a log-linear model that reads n-grams of a description, and learns from the first one on.
//!
//! Its candidates are the edits that the world's kinds are made of (each pattern with each replacement), with the letters that
//! the description names. Its features are n-grams of the description, in which those letters are marked by the part that they
//! play, joined with parts of the edit: so what was said of one edit helps with others that share its pattern or its
//! replacement. The manner is that of SHRDLURN (Wang, Liang and Manning 2016); the paper has nothing of the kind
//! (`docs/deviations.md`).

mod features;

use self::features::{Parts, SharedFeatures};
use super::letters::form;
use super::marginal::Marginal;
use super::program::Executor;
use super::{Edit, Words};
use crate::nn::log_linear::{self, LogLinear, softmax};
use crate::nn::sharing;
use rayon::prelude::*;
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

/// Learning rate and L2 penalty of the model.
const RATE: f32 = 0.3;
const DECAY: f32 = 1e-3;

/// Patterns and replacements above which a grid is that of a large corpus. Its thousands of n-grams make a feature with each of
/// them, so it has a table of 2^`LARGE_TABLE` weights; and it learns from thousands of descriptions, some of them wrong, so its
/// rate is lower and the average of its weights acts.
const LARGE_GRID: usize = 44;
const LARGE_TABLE: u32 = 20;
const LARGE_RATE: f32 = 0.1;

/// Examples whose effects are remembered, so that learning from them again does not execute every candidate again; up to 4 KB
/// each.
const REMEMBERED: usize = 10_000;

/// The edits that are considered: each pattern with each replacement. `{x}` is a letter that the pattern names, `{y}` the letters
/// that the replacement puts in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    patterns: Vec<String>,
    replacements: Vec<String>,
    /// Whether it is that of a large corpus. Checkpoints of before there was the difference have none of these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    large: bool,
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
        let patterns = most_frequent(patterns, MOST_PATTERNS);
        let replacements = most_frequent(replacements, MOST_REPLACEMENTS);
        let large = patterns.len() + replacements.len() > LARGE_GRID;
        Self { patterns, replacements, large }
    }

    /// Whether both consider the same edits.
    pub fn has_the_edits_of(&self, other: &Grid) -> bool {
        self.patterns == other.patterns && self.replacements == other.replacements
    }

    /// The patterns.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// The replacements.
    pub fn replacements(&self) -> &[String] {
        &self.replacements
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
            if named.is_empty() || self.number(single.len(), short.len()) <= MOST_CANDIDATES {
                break (single, short);
            }
            named.pop();
        };
        let mut all = Vec::new();
        for (r, replacement) in self.replacements.iter().enumerate() {
            for (p, pattern) in self.patterns.iter().enumerate() {
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

    /// Number of the edits that so many letters for patterns and strings for replacements make.
    fn number(&self, letters: usize, strings: usize) -> usize {
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

/// The effects of candidates on words, and which of them turn the words into the outputs.
fn known(executor: &mut Executor, candidates: &[Candidate], words: &[String], outputs: &[String]) -> Known {
    let of_one = |candidate: &Candidate| match executor.execute_all(&candidate.expression, words) {
        None => (Effect::Invalid, false),
        Some(made) => {
            let changed = made.iter().zip(words).filter(|(output, word)| output != word).count();
            let effect = match changed {
                0 => Effect::Nothing,
                n if n == words.len() => Effect::AllWords,
                _ => Effect::SomeWords,
            };
            (effect, made == outputs)
        }
    };
    candidates.iter().map(of_one).collect()
}

/// Does the same to each part, several at once while the machine has room. `own` serves where one thread does all of them.
fn with_executors<T: Send, R: Send>(
    own: &mut Executor,
    parts: Vec<T>,
    one: impl Fn(&mut Executor, T) -> R + Send + Sync,
) -> Vec<R> {
    if parts.len() < 2 || sharing::now() == 1 {
        return parts.into_iter().map(|part| one(own, part)).collect();
    }
    parts.into_par_iter().map_init(Executor::default, one).collect()
}

/// A described edit: its tokens, the words that are looked at, and what they became.
type Shown = (String, Vec<String>, Vec<String>);

/// The effect of each candidate, and whether it does what was shown.
type Known = Vec<(Effect, bool)>;

/// An example as its effects are remembered; `None` for an invalid edit, from which nothing is learnt.
fn shown(tokens: &[String], start: &Words, edit: &Edit) -> Option<Shown> {
    let outputs = edit.outputs.as_ref()?;
    let n = start.words.len().min(outputs.len()).min(WORDS_LOOKED_AT);
    Some((tokens.join(" "), start.words[..n].to_vec(), outputs[..n].to_vec()))
}

/// The prior: its grid, the features of its parts, and a cache of what candidates do.
pub struct NgramPrior {
    grid: Grid,
    parts: Parts,
    executor: Executor,
    /// Effects of the candidates of an example, and which of them do what it shows.
    remembered: HashMap<Shown, Known>,
}

impl NgramPrior {
    /// A prior over a grid.
    pub fn new(grid: Grid) -> Self {
        let parts = Parts::of(&grid);
        Self { grid, parts, executor: Executor::default(), remembered: HashMap::new() }
    }

    /// The model that fits a prior over such a grid, untaught.
    pub fn model(grid: &Grid) -> LogLinear {
        match grid.large {
            true => LogLinear::new(LARGE_RATE, DECAY).with_table(LARGE_TABLE).averaged(),
            false => LogLinear::new(RATE, DECAY),
        }
    }

    /// One step on each described edit, one after the other. Nothing is learnt where no candidate does what was shown.
    pub fn learn(&mut self, model: &mut LogLinear, examples: &[(Vec<String>, &Words, &Edit)]) {
        let shown: Vec<Option<Shown>> =
            examples.iter().map(|(tokens, start, edit)| shown(tokens, start, edit)).collect();
        self.remember(examples, &shown);
        for ((tokens, ..), shown) in examples.iter().zip(&shown) {
            let Some(known) = shown.as_ref().and_then(|shown| self.remembered.get(shown)) else { continue };
            let (effects, right): (Vec<Effect>, Vec<bool>) = known.iter().copied().unzip();
            if !right.contains(&true) {
                continue;
            }
            let reading = Reading::of(tokens);
            let candidates = self.grid.candidates(&reading);
            let shared = SharedFeatures::of(&reading, &candidates);
            let scores = shared.scores(&self.parts, model, &candidates, &effects);
            if let Some((_, gradient)) = log_linear::gradient(&scores, &right) {
                model.ascend(shared.spread(&self.parts, &candidates, &effects, &gradient));
            }
        }
    }

    /// Executes the candidates of the examples that are not remembered.
    fn remember(&mut self, examples: &[(Vec<String>, &Words, &Edit)], shown: &[Option<Shown>]) {
        let mut new: BTreeMap<&Shown, &[String]> = BTreeMap::new();
        for ((tokens, ..), shown) in examples.iter().zip(shown) {
            if let Some(shown) = shown.as_ref().filter(|shown| !self.remembered.contains_key(*shown)) {
                new.insert(shown, tokens);
            }
        }
        if self.remembered.len() + new.len() > REMEMBERED {
            self.remembered.clear();
            new = examples.iter().zip(shown).filter_map(|((tokens, ..), s)| Some((s.as_ref()?, &tokens[..]))).collect();
        }
        let grid = &self.grid;
        let found = with_executors(&mut self.executor, new.into_iter().collect(), |executor, (shown, tokens)| {
            let candidates = grid.candidates(&Reading::of(tokens));
            (shown.clone(), known(executor, &candidates, &shown.1, &shown.2))
        });
        self.remembered.extend(found);
    }

    /// For each description on a start the `most` most probable edits, each with its log probability, best first.
    pub fn best(
        &mut self,
        model: &LogLinear,
        tasks: Vec<(Vec<String>, &Words)>,
        most: usize,
    ) -> Vec<Vec<(String, f32)>> {
        let (grid, parts) = (&self.grid, &self.parts);
        with_executors(&mut self.executor, tasks, |executor, (tokens, start)| {
            let reading = Reading::of(&tokens);
            let candidates = grid.candidates(&reading);
            let n = start.words.len().min(WORDS_LOOKED_AT);
            let known = known(executor, &candidates, &start.words[..n], &[]);
            let effects: Vec<Effect> = known.into_iter().map(|(effect, _)| effect).collect();
            let shared = SharedFeatures::of(&reading, &candidates);
            let probabilities = softmax(&shared.scores(parts, model, &candidates, &effects));
            let mut order: Vec<usize> = (0..candidates.len()).filter(|i| effects[*i] != Effect::Invalid).collect();
            // Candidates of equal probability keep their order.
            order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
            order.truncate(most);
            order.into_iter().map(|i| (candidates[i].expression.clone(), probabilities[i].ln())).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokenise::tokenise;
    use super::*;

    pub(super) fn grid() -> Grid {
        let forms = ["()({x})()@", "()(V)()@\\2\\2", "(^)(.)()@{y}\\2", "()(.)($)@{yy}"];
        Grid::of(&Marginal::Composed { letters: ('a'..='z').collect(), forms: forms.map(String::from).to_vec() })
    }

    pub(super) fn tokens(text: &str) -> Vec<String> {
        tokenise(text, &|token| token.len() > 2)
    }

    fn best(prior: &mut NgramPrior, model: &LogLinear, text: &str, start: &Words, most: usize) -> Vec<(String, f32)> {
        prior.best(model, vec![(tokens(text), start)], most).remove(0)
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
    fn a_large_grid_has_a_large_table_unless_its_checkpoint_is_older() {
        let mut list = Vec::new();
        for (before, behind) in [("", ""), ("^", ""), ("", "$")] {
            for symbols in ["a", ".", "C", "V", "a.", "aC", "aV", ".a", "Ca", "Va", "CC", "VV", "CV", "VC", ".."] {
                for replacement in ["", "b", "b\\2", "\\2b", "\\2\\2"] {
                    list.push(format!("({before})({symbols})({behind})@{replacement}"));
                }
            }
        }
        let large = Grid::of(&Marginal::List(list));
        assert!(large.large && !grid().large);
        let mut json = serde_json::to_value(&large).unwrap();
        assert_eq!(json["large"], true);
        json.as_object_mut().unwrap().remove("large");
        let older: Grid = serde_json::from_value(json).unwrap();
        assert!(older.has_the_edits_of(&large) && older != large);
        let weights = |grid: &Grid| NgramPrior::model(grid).table();
        assert_eq!((weights(&large), weights(&older)), (1 << LARGE_TABLE, weights(&grid())));
        // The grids of small worlds are written as before.
        assert!(serde_json::to_value(grid()).unwrap().get("large").is_none());
    }

    #[test]
    fn candidates_use_the_letters_that_are_named() {
        let prior = NgramPrior::new(grid());
        let of = |text: &str| {
            let all = prior.grid.candidates(&Reading::of(&tokens(text)));
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
        let (mut prior, mut model) = (NgramPrior::new(grid()), NgramPrior::model(&grid()));
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
                prior.learn(&mut model, &[(tokens(text), &start, &Edit::of(expression, &start))]);
            }
        }
        // New letters, and a pattern with a replacement that were told about in other edits only.
        for (text, expression) in [
            ("drop each 'n'", "()(n)()@"),
            ("write the opening letter two times", "(^)(.)()@\\2\\2"),
            ("'z' comes before the opening letter", "(^)(.)()@z\\2"),
        ] {
            let best = best(&mut prior, &model, text, &start, 3);
            assert_eq!(best[0].0, expression, "{text}: {best:?}");
        }
    }

    #[test]
    fn nothing_is_learnt_from_edits_beyond_the_grid_and_nonsense_is_no_error() {
        let (mut prior, mut model) = (NgramPrior::new(grid()), NgramPrior::model(&grid()));
        let start = words(&["banana"]);
        prior.learn(&mut model, &[(tokens("something odd"), &start, &Edit::of("(b)(an)()@xyz", &start))]);
        prior.learn(&mut model, &[(tokens("something"), &start, &Edit { expression: "bad".into(), outputs: None })]);
        assert!(model.is_untaught());
        for text in ["", "!!!", "[ ] [", "\u{1f600}", &"x ".repeat(500)] {
            let best = best(&mut prior, &model, text, &start, 4);
            assert!(best.len() <= 4);
        }
    }

    #[test]
    fn it_learns_the_same_whether_effects_are_remembered_or_not() {
        let start = words(&["banana", "letter"]);
        let edit = Edit::of("()(a)()@", &start);
        let twice = |forget: bool| {
            let (mut prior, mut model) = (NgramPrior::new(grid()), NgramPrior::model(&grid()));
            for _ in 0..2 {
                prior.learn(&mut model, &[(tokens("drop 'a'"), &start, &edit)]);
                if forget {
                    prior.remembered.clear();
                }
            }
            best(&mut prior, &model, "drop 'a'", &start, 5)
        };
        assert_eq!(twice(true), twice(false));
    }
}
