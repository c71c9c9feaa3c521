//! The agent as learners see it: it acts, and it says how unlikely an execution is given a description.

use crate::nn::params::Params;
use crate::rng::{Stream, stream};
use crate::task::World;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

/// One example for learning: from start s1, the words d lead to the execution e.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Example<W: World> {
    /// Start s1.
    pub start: W::Start,
    /// Words: a request or a description.
    pub words: String,
    /// Execution.
    pub execution: W::Execution,
}

// Not derived: that would ask the world itself to be cloned and printed.
impl<W: World> Clone for Example<W> {
    fn clone(&self) -> Self {
        Self { start: self.start.clone(), words: self.words.clone(), execution: self.execution.clone() }
    }
}

impl<W: World> std::fmt::Debug for Example<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Example")
            .field("start", &self.start)
            .field("words", &self.words)
            .field("execution", &self.execution)
            .finish()
    }
}

/// How actions are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Most likely action each time (execution policy at evaluation).
    Greedy,
    /// Sampled (exploration).
    Sample,
}

/// How examples are varied while they are learnt from.
pub struct Noise {
    /// Probability that a word reads as unknown.
    pub word_dropout: f64,
    /// What decides.
    pub stream: Stream,
}

impl Noise {
    /// Noise of the pass that `purpose` and `counter` name.
    pub fn new(word_dropout: f64, seed: u64, purpose: &str, counter: u64) -> Self {
        Self { word_dropout, stream: stream(seed, purpose, counter) }
    }
}

/// A policy π(a | s, d) of one task family, with its words.
pub trait Agent<W: World>: Send {
    /// Executes the words from each start. Randomness comes from `stream` alone.
    fn act(&self, tasks: &[(&W::Start, &str)], how: Act, stream: &mut Stream) -> Result<Vec<W::Execution>>;

    /// Σ over groups of share · mean −log π(e | s1, d) of the group (means per decoding step, `docs/models.md`), as one
    /// scalar in the graph. Groups of one call are computed in one batched pass. `noise` varies the examples, as far as
    /// the agent's settings ask for it.
    fn loss(&self, groups: &[(&[Example<W>], f32)], noise: Option<&mut Noise>) -> Result<Tensor>;

    /// Lets unknown words of the texts take reserve rows; how many did.
    fn learn_words(&mut self, texts: &[&str]) -> usize;

    /// Parameters.
    fn params(&self) -> &Params;

    /// Everything but the weights that is needed to rebuild the agent (sizes, vocabularies).
    fn blueprint(&self) -> serde_json::Value;

    /// A second agent with the same blueprint and a deep copy of the weights.
    fn duplicate(&self) -> Result<Box<dyn Agent<W>>>;

    /// Replaces the vocabulary part of the blueprint (after words were learnt in a run that is being resumed).
    fn restore_blueprint(&mut self, blueprint: &serde_json::Value) -> std::result::Result<(), String>;
}
