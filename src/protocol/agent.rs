//! The agent as learners see it: it acts, and it says how unlikely an execution is given a description.

use super::parameters::{Optimizer, Parameters};
use super::{ReserveRows, Utterance, World};
use crate::rng::{Stream, stream};
use candle_core::{Device, Result, Tensor};
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
pub enum Decoding {
    /// Most likely action each time (execution policy at evaluation), and where the settings say so the vote of several readings.
    Greedy,
    /// Most likely action each time and no vote: the states that the policy itself comes to, which imitation learns in.
    RollIn,
    /// Sampled (exploration).
    Sample,
}

/// The input of one gradient step. All lists of one lesson are of equal length, position by position.
pub enum Lesson<'a, W: World> {
    /// Σ over groups of share · mean −log π(e | s1, d) of the group (means per decoding step, `docs/models.md`).
    /// The groups are computed in one batched pass. ADEL, supervised learning, pretraining.
    Likelihood(&'a [(&'a [Example<W>], f32)]),
    /// The likelihood of examples that are augmented on the way, as far as the agent's settings ask for it.
    Varied(&'a [(&'a [Example<W>], f32)], Augmentation),
    /// DAgger: the policy's own greedy roll-out `rolled` is fed position by position; −log π of the demonstrated symbol
    /// or action at each position of `shown`, as a mean over the tasks that have this position, summed over positions. All
    /// three are augmented alike.
    Imitation {
        /// Start and request of each task.
        tasks: &'a [(&'a W::Start, &'a str)],
        /// The executions of the policy.
        rolled: &'a [W::Execution],
        /// The executions that a demonstrator would have made.
        shown: &'a [W::Execution],
        /// The variation of the examples.
        augmentation: Augmentation,
    },
    /// REINFORCE: −advantage · log π(e) − entropy · H(π), as means over the episodes alive at a step, summed over steps.
    Reward {
        /// Start and request of each task.
        tasks: &'a [(&'a W::Start, &'a str)],
        /// Executions sampled from the policy.
        executions: &'a [W::Execution],
        /// Reward minus baseline of each.
        advantages: &'a [f32],
        /// Weight of the entropy bonus (paper: 0.1).
        entropy: f32,
    },
}

/// How examples are varied while they are learnt from.
#[derive(Clone, Copy, Debug)]
pub struct Augmentation {
    /// Probability that a word reads as unknown.
    pub word_dropout: f64,
    /// The run's seed.
    pub seed: u64,
    /// Names the draws, with `counter`.
    pub purpose: &'static str,
    /// Number of the step among all of the run.
    pub counter: u64,
}

impl Augmentation {
    /// The random stream of the draws.
    pub fn stream(&self) -> Stream {
        stream(self.seed, self.purpose, self.counter)
    }
}

/// A policy π(a | s, d) of one task family, with its words.
pub trait Agent<W: World>: Send {
    /// Executes the words from each start. Randomness comes from `stream` alone.
    fn act(&self, tasks: &[(&W::Start, &str)], how: Decoding, stream: &mut Stream) -> Result<Vec<W::Execution>>;

    /// The loss of a lesson as one scalar in the graph, so that its gradients can be taken.
    fn loss(&self, lesson: &Lesson<W>) -> Result<Tensor>;

    /// Makes a fresh optimizer with this learning rate and zero moments; [`Agent::step`] needs one.
    fn begin_learning(&mut self, learning_rate: f64) -> Result<()>;

    /// One optimizer step on a lesson. The loss stays on the device (a scalar tensor, detached): reading it waits for
    /// everything that the device was asked to do before.
    ///
    /// # Errors
    /// When [`Agent::begin_learning`] was not called, or the tensors do not compute.
    fn step(&mut self, lesson: &Lesson<W>) -> Result<Tensor>;

    /// The optimizer.
    ///
    /// # Errors
    /// When [`Agent::begin_learning`] was not called.
    fn optimizer(&self) -> Result<&dyn Optimizer>;

    /// The optimizer, to be restored from a checkpoint.
    ///
    /// # Errors
    /// When [`Agent::begin_learning`] was not called.
    fn optimizer_mut(&mut self) -> Result<&mut dyn Optimizer>;

    /// Reads the words of descriptions: those that were met before take reserve rows. A row that was given over to another word
    /// begins as an unknown word, with zero moments: its weights meant the word before. How many words took a row.
    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize>;

    /// Words of a request that the vocabulary does not have, each once, in their order: the agent tells none of them from another.
    /// An agent that reads every word has none.
    fn unknown_words(&self, request: &str) -> Vec<String> {
        let _ = request;
        Vec::new()
    }

    /// How full the rows for words of people are.
    fn spare_words(&self) -> ReserveRows;

    /// The prior beside the network, where the agent has one.
    fn prior(&mut self) -> Option<&mut dyn Prior<W>>;

    /// Parameters.
    fn params(&self) -> &dyn Parameters;

    /// Everything but the weights that is needed to rebuild the agent (sizes, vocabularies).
    fn blueprint(&self) -> serde_json::Value;

    /// A second agent with the same blueprint and a deep copy of the weights, on `device`. It has no optimizer.
    fn duplicate_on(&self, device: &Device) -> Result<Box<dyn Agent<W>>>;

    /// A copy on the agent's own device that computes beside it: on a GPU it has a stream of its own. The CPU has one only.
    fn duplicate_concurrent(&self) -> Result<Box<dyn Agent<W>>> {
        self.duplicate()
    }

    /// A copy on the agent's own device.
    fn duplicate(&self) -> Result<Box<dyn Agent<W>>> {
        self.duplicate_on(self.params().device())
    }

    /// Replaces the vocabulary part of the blueprint (after words were learnt in a run that is being resumed).
    fn restore_blueprint(&mut self, blueprint: &serde_json::Value) -> std::result::Result<(), String>;
}

/// A prior over executions beside a network: a small model that reads n-grams of descriptions and learns from the first of them
/// on. When the agent acts greedily its candidates compete with what the network would do.
pub trait Prior<W: World> {
    /// Learns from described executions, one step each.
    ///
    /// # Errors
    /// When an execution cannot be understood by the family.
    fn learn(&mut self, examples: &[Example<W>]) -> Result<()>;
}
