//! The environment of REGEX tasks.

use super::corpus::{Corpus, Item, Vocabularies};
use super::grammar::Grammar;
use super::letters::form;
use super::marginal::{Marginal, MarginalDraw};
use super::marks::pair;
use super::metric::similarity;
use super::ngram_prior::shape;
use super::program::Expression;
use super::python_re::Scratch;
use super::{Edit, Words, operation};
use crate::datafile::DataError;
use crate::protocol::{Grouping, Score, Split, Task, World};
use crate::rng::Stream;
use rand::RngExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Words of an example that a practice step reads.
const EXCERPT: usize = 2;

/// The view of words and what an expression made of them; nothing where it is invalid.
pub(super) fn view(expression: &str, words: &[String], outputs: Option<&[String]>) -> serde_json::Value {
    let compiled = outputs.and_then(|_| Expression::new(expression));
    let mut scratch = Scratch::default();
    let pairs = words.iter().zip(outputs.unwrap_or(words));
    let pairs: Vec<_> = pairs.map(|(word, output)| pair(compiled.as_ref(), word, output, &mut scratch)).collect();
    json!({ "pairs": pairs })
}

/// Tasks, executions and P_ω of the word-modification problem.
#[derive(Clone, Debug)]
pub struct RegexWorld {
    corpus: Corpus,
    marginal: Marginal,
    more_words: usize,
    /// Pattern and replacement, without letters, of what tasks ask for.
    task_kinds: BTreeSet<String>,
}

impl RegexWorld {
    /// A world of the corpus at `folder` (format: [`super::corpus`]). P_ω draws from its unlabelled expressions.
    ///
    /// # Errors
    /// When a file is missing or not as it should be; says which, where and how.
    pub fn load(folder: &Path) -> Result<RegexWorld, DataError> {
        let mut corpus = Corpus::load(folder)?;
        let marginal = Marginal::List(std::mem::take(&mut corpus.unlabeled));
        Ok(RegexWorld::new(corpus, marginal))
    }

    /// The built-in world: all kinds of edits, about 9,000 tasks drawn from the seed.
    pub fn builtin(seed: u64) -> RegexWorld {
        RegexWorld::of(&Grammar::full(), seed)
    }

    /// The built-in world's small sister, which an agent learns in a minute.
    pub fn tiny(seed: u64) -> RegexWorld {
        RegexWorld::of(&Grammar::tiny(), seed)
    }

    fn of(grammar: &Grammar, seed: u64) -> RegexWorld {
        RegexWorld::new(grammar.corpus(seed), grammar.marginal())
    }

    /// A world made of a corpus and a marginal.
    pub fn new(corpus: Corpus, marginal: Marginal) -> RegexWorld {
        let task_kinds = corpus.train.iter().map(|item| shape(&item.expression)).collect();
        RegexWorld { corpus, marginal, more_words: 0, task_kinds }
    }

    /// This world, with descriptions learnt from on so many further words of the dictionary.
    pub fn with_more_words(self, more_words: usize) -> RegexWorld {
        RegexWorld { more_words, ..self }
    }

    /// This world, with P_ω drawing from a corpus' list in this way. Built-in worlds have no list and stay as they are.
    pub fn with_marginal(self, draw: MarginalDraw) -> RegexWorld {
        RegexWorld { marginal: self.marginal.drawn(draw), ..self }
    }

    /// Characters of words, in the order of their ids: `<PAD>`, `<UNK>`, `<`, `>`, then `@` and letters.
    pub fn char_vocab(&self) -> Vec<String> {
        self.corpus.vocabularies.char.clone()
    }

    /// Request tokens, in the order of their ids, beginning as [`RegexWorld::char_vocab`].
    pub fn request_vocab(&self) -> Vec<String> {
        self.corpus.vocabularies.word.clone()
    }

    /// Characters of expressions, in the order of their ids, beginning as [`RegexWorld::char_vocab`].
    pub fn expression_vocab(&self) -> Vec<String> {
        self.corpus.vocabularies.regex.clone()
    }

    /// All three vocabularies.
    pub fn vocabularies(&self) -> &Vocabularies {
        &self.corpus.vocabularies
    }

    /// The dictionary that words of tasks come from.
    pub fn words(&self) -> &[String] {
        &self.corpus.words
    }

    /// P_ω.
    pub fn marginal(&self) -> &Marginal {
        &self.marginal
    }

    /// The item behind a task. Panics when `index >= len(split)`.
    pub fn item(&self, split: Split, index: usize) -> &Item {
        &self.corpus.split(split)[index]
    }

    /// New words for an expression, drawn as a corpus' own are: five, of which it changes the first and two more. `None`
    /// where it changes too few words.
    pub fn fresh_examples(&self, expression: &str, stream: &mut Stream) -> Option<[(String, String); super::PAIRS]> {
        super::drawing::draw_examples(&self.corpus.words, expression, stream)
    }

    fn task_with(&self, split: Split, index: usize, request: &str) -> Task<Words> {
        let words = self.item(split, index).examples.iter().map(|(word, _)| word.clone()).collect();
        Task { split, index, request: request.to_owned(), start: Words { words } }
    }
}

impl World for RegexWorld {
    type Start = Words;
    type Execution = Edit;

    fn len(&self, split: Split) -> usize {
        self.corpus.split(split).len()
    }

    fn task(&self, split: Split, index: usize) -> Task<Words> {
        self.task_with(split, index, &self.item(split, index).requests[0])
    }

    fn requests(&self, split: Split, index: usize) -> Vec<String> {
        self.item(split, index).requests.clone()
    }

    fn gold(&self, split: Split, index: usize) -> Edit {
        let item = self.item(split, index);
        let outputs = item.examples.iter().map(|(_, output)| output.clone()).collect();
        Edit { expression: item.expression.clone(), outputs: Some(outputs) }
    }

    /// Panics when the split has no task.
    fn sample_task(&self, split: Split, stream: &mut Stream) -> Task<Words> {
        let index = stream.random_range(0..self.len(split));
        let requests = &self.item(split, index).requests;
        self.task_with(split, index, &requests[stream.random_range(0..requests.len())])
    }

    fn sample_marginal(&self, start: &Words, stream: &mut Stream) -> Edit {
        self.marginal.sample(start, stream)
    }

    fn solo(&self, start: &Words) -> Words {
        Words { words: start.words.iter().take(1).cloned().collect() }
    }

    fn describable(&self, start: &Words, execution: &Edit) -> bool {
        execution.changes(start)
    }

    fn valid(&self, _start: &Words, execution: &Edit) -> bool {
        execution.outputs.is_some()
    }

    /// perf is the share of words for which both executions give the same output; the paper's τ = J is 1.0 here, and
    /// larger values mean the same. Nothing performs that is invalid.
    fn performs(&self, _start: &Words, execution: &Edit, reference: &Edit, tau: f64) -> bool {
        let (Some(ours), Some(theirs)) = (&execution.outputs, &reference.outputs) else { return false };
        if ours.len() != theirs.len() || ours.is_empty() {
            return false;
        }
        let same = ours.iter().zip(theirs).filter(|(a, b)| a == b).count();
        same as f64 / ours.len() as f64 >= tau.min(1.0)
    }

    /// Half of the words are enough for the simulated teacher; a person who says what became of five words means them all.
    fn understood(&self, start: &Words, execution: &Edit, described: &Edit, _tau: f64) -> bool {
        self.performs(start, execution, described, 1.0)
    }

    fn groupings(&self) -> &'static [Grouping] {
        operation::GROUPINGS
    }

    fn group(&self, grouping: &str, split: Split, index: usize) -> Option<usize> {
        operation::group(grouping, &self.item(split, index).expression)
    }

    fn kind(&self, _start: &Words, execution: &Edit) -> String {
        form(&execution.expression)
    }

    fn task_kind(&self, _start: &Words, execution: &Edit) -> Option<String> {
        Some(shape(&execution.expression)).filter(|kind| self.task_kinds.contains(kind))
    }

    /// Two of the words.
    fn excerpt(&self, start: &Words, execution: &Edit, stream: &mut Stream) -> (Words, Edit) {
        let Some(outputs) = execution.outputs.as_ref().filter(|outputs| outputs.len() > EXCERPT) else {
            return (start.clone(), execution.clone());
        };
        let chosen = rand::seq::index::sample(stream, outputs.len(), EXCERPT);
        let of = |list: &[String]| chosen.iter().map(|i| list[i].clone()).collect();
        let outputs = Some(of(outputs));
        (Words { words: of(&start.words) }, Edit { expression: execution.expression.clone(), outputs })
    }

    /// The words, and after them further ones that the expression changes.
    fn elsewhere(&self, start: &Words, execution: &Edit, stream: &mut Stream) -> Option<(Words, Edit)> {
        if self.more_words == 0 || self.corpus.words.is_empty() {
            return None;
        }
        let compiled = Expression::new(&execution.expression)?;
        let (mut start, mut execution, mut scratch) = (start.clone(), execution.clone(), Scratch::default());
        let outputs = execution.outputs.as_mut()?;
        let wanted = outputs.len() + self.more_words;
        // An expression that changes hardly any word gets fewer.
        for _ in 0..50 * self.more_words {
            let word = &self.corpus.words[stream.random_range(0..self.corpus.words.len())];
            let Some(output) = compiled.apply(word, &mut scratch).filter(|output| output != word) else { continue };
            start.words.push(word.clone());
            outputs.push(output);
            if outputs.len() == wanted {
                break;
            }
        }
        Some((start, execution))
    }

    /// Five words of the dictionary, of which the expression changes the first and at least two more.
    fn another_start(&self, _start: &Words, execution: &Edit, stream: &mut Stream) -> Option<(Words, Edit)> {
        if self.corpus.words.is_empty() {
            return None;
        }
        let (words, outputs) = self.fresh_examples(&execution.expression, stream)?.into_iter().unzip();
        Some((Words { words }, Edit { expression: execution.expression.clone(), outputs: Some(outputs) }))
    }

    /// Success: the first word becomes what the gold expression makes of it. The figure `similarity` is the paper's
    /// continuous reward, (|w| − edit distance) / |w| with w the gold output: at most 1, and below 0 where more had to be
    /// edited than there are letters. An invalid execution leaves the word as it was and is never a success.
    fn score(&self, task: &Task<Words>, execution: &Edit) -> Score {
        let (word, gold) = &self.item(task.split, task.index).examples[0];
        let output = execution.outputs.as_ref().and_then(|outputs| outputs.first());
        Score {
            success: output == Some(gold),
            figures: vec![("similarity".into(), similarity(output.unwrap_or(word), gold))],
        }
    }

    /// `{"pairs": [{"in": …, "out": …, "marks": [[from, to, new], …]}, …]}`: what the expression matched and wrote anew in the
    /// words that it changed; the words themselves where the execution is invalid.
    fn view(&self, start: &Words, execution: &Edit) -> serde_json::Value {
        view(&execution.expression, &start.words, execution.outputs.as_deref())
    }

    /// The expression is the summary. A described edit is valid, so its outputs are what was shown.
    fn execution_of(&self, _start: &Words, view: &serde_json::Value, summary: &str) -> Option<Edit> {
        let pairs = view["pairs"].as_array()?;
        let outputs = pairs.iter().map(|pair| pair["out"].as_str().map(str::to_owned)).collect::<Option<_>>()?;
        Some(Edit { expression: summary.to_owned(), outputs: Some(outputs) })
    }

    fn summary(&self, execution: &Edit) -> String {
        execution.expression.clone()
    }
}
