//! The part that all algorithms with one policy share: the policy, its losses, and its place in checkpoints. What tells them
//! apart is their [`Rule`].

use crate::algorithm::learner::{Learner, Losses, Tensors};
use crate::algorithm::{Algorithm, AlgorithmState, Learning};
use crate::config::run::AlgorithmConfig;
use crate::protocol::{Agent, Augmentation, Lesson, Task, Utterance, World};
use candle_core::{Result, Tensor};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// The rule by which an algorithm with one policy explores and learns.
pub trait Rule<W: World>: Sized + Send + 'static {
    /// The rule's own state in checkpoints; `()` where it has none.
    type State: Default + Serialize + DeserializeOwned + Send;

    /// Whether the executions of [`Rule::explore`] are the policy's own.
    const EXECUTES_OWN_POLICY: bool;

    /// Whether people can teach it, so that its policy executes episodes for them.
    const TAUGHT_BY_PEOPLE: bool = false;

    /// The learning rate of the policy.
    fn learning_rate(settings: &AlgorithmConfig) -> f64 {
        settings.learning_rate
    }

    /// Executions of the tasks, which are the episodes from number `first` on.
    fn explore(
        &self,
        world: &W,
        policy: &dyn Agent<W>,
        tasks: &[Task<W::Start>],
        first: u64,
    ) -> Result<Vec<W::Execution>>;

    /// The way in which the algorithm learns.
    fn learning(algorithm: &mut SinglePolicy<W, Self>) -> Learning<'_, W>;
}

/// The gold executions of tasks, for rules that learn from those.
pub(super) fn gold_executions<W: World>(world: &W, tasks: &[Task<W::Start>]) -> Vec<W::Execution> {
    tasks.iter().map(|task| world.gold(task.split, task.index)).collect()
}

/// An algorithm with one policy π_θ, which learns by a rule.
pub struct SinglePolicy<W: World, R: Rule<W>> {
    pub(super) world: Arc<W>,
    pub(super) theta: Learner<W>,
    losses: Losses,
    word_dropout: f64,
    seed: u64,
    pub(super) rule: R,
    pub(super) state: R::State,
}

impl<W: World, R: Rule<W>> SinglePolicy<W, R> {
    /// An algorithm whose policy starts from `pretrained`.
    ///
    /// # Errors
    /// When the optimiser's tensors cannot be made.
    pub fn new(
        world: Arc<W>,
        pretrained: Box<dyn Agent<W>>,
        settings: &AlgorithmConfig,
        seed: u64,
        rule: R,
    ) -> Result<Self> {
        let theta = Learner::new(pretrained, R::learning_rate(settings), settings.average)?;
        let (losses, state) = (Losses::default(), R::State::default());
        Ok(Self { world, theta, losses, word_dropout: settings.word_dropout, seed, rule, state })
    }

    /// The augmentation of the step with this number.
    pub(super) fn augmentation(&self, counter: u64) -> Augmentation {
        Augmentation { word_dropout: self.word_dropout, seed: self.seed, purpose: "noise-theta", counter }
    }

    /// The augmentation of the next step of an algorithm that learns from episodes. Its draws are keyed by the steps made, which
    /// a resumed run knows.
    pub(super) fn augmentation_of_episodes(&self) -> Augmentation {
        Augmentation { purpose: "noise-episodes", ..self.augmentation(self.theta.steps()) }
    }

    /// One gradient step on a lesson; its loss, which is not counted yet.
    pub(super) fn step(&mut self, lesson: &Lesson<W>) -> Result<Tensor> {
        self.theta.step(lesson)
    }

    /// Counts a loss on new teaching in the curves.
    pub(super) fn count(&mut self, loss: Tensor) -> Result<()> {
        self.losses.add(loss)
    }
}

impl<W: World, R: Rule<W>> Algorithm<W> for SinglePolicy<W, R> {
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>> {
        self.rule.explore(&self.world, self.theta.agent(), tasks, first)
    }

    /// People are shown sampled executions, whatever the rule does without them: before anything is learnt they are those that
    /// another algorithm with this seed and this pretrained policy shows.
    fn exploration_policies(&self) -> Option<Vec<&dyn Agent<W>>> {
        R::TAUGHT_BY_PEOPLE.then(|| vec![self.theta.agent()])
    }

    fn executes_own_policy(&self) -> bool {
        R::EXECUTES_OWN_POLICY
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        self.theta.learn_words(utterances)
    }

    fn learning(&mut self) -> Learning<'_, W> {
        R::learning(self)
    }

    fn take_loss(&mut self) -> Result<(f64, u64)> {
        self.losses.take()
    }

    fn tensors(&self) -> Result<Tensors> {
        let mut all = Tensors::new();
        self.theta.tensors("theta", &mut all)?;
        Ok(all)
    }

    fn state(&self) -> AlgorithmState {
        AlgorithmState {
            steps: self.theta.steps(),
            blueprint: self.theta.agent().blueprint(),
            state: serde_json::to_value(&self.state).unwrap_or_default(),
        }
    }

    fn restore(&mut self, tensors: &Tensors, state: &AlgorithmState) -> Result<()> {
        self.state = serde_json::from_value(state.state.clone()).map_err(candle_core::Error::wrap)?;
        self.theta.restore("theta", tensors, state.steps, &state.blueprint)
    }
}
