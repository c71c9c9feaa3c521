//! ADEL in its practical form (paper, appendix "Practical Implementation"): an execution policy π_θ learns from what
//! was described; an exploration policy π_β learns from the same, mixed with draws of the approximate marginal.

use crate::algorithm::explorer;
use crate::algorithm::learner::{Learner, Losses, Tensors};
use crate::algorithm::practice::{excerpts, for_prior, relocated};
use crate::algorithm::{Algorithm, AlgorithmState, Learning, LearnsFromDescriptions, StepContext};
use crate::config::run::{AlgorithmConfig, Mixing};
use crate::protocol::{Agent, Augmentation, DescribedEpisode, Example, Lesson, Task, Utterance, World};
use crate::rng;
use candle_core::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Both policies and their optimisers.
pub struct Adel<W: World> {
    world: Arc<W>,
    theta: Learner<W>,
    beta: Learner<W>,
    losses: Losses,
    mixing: Mixing,
    word_dropout: f64,
    explore_every: u64,
    seed: u64,
}

/// The state that a checkpoint needs where practice has made the policies' numbers of steps differ.
#[derive(Serialize, Deserialize)]
struct State {
    exploration_steps: u64,
}

impl<W: World> Adel<W> {
    /// Both policies start from `pretrained` (π_ω learnt on the approximate marginal).
    pub fn new(world: Arc<W>, pretrained: Box<dyn Agent<W>>, settings: &AlgorithmConfig, seed: u64) -> Result<Self> {
        // On a GPU π_θ learns beside everything else: exploration waits for π_β alone.
        let theta = pretrained.duplicate_concurrent()?;
        Ok(Self {
            theta: Learner::new(theta, settings.learning_rate, settings.average)?,
            beta: Learner::new(pretrained, settings.learning_rate, 0.0)?,
            world,
            losses: Losses::default(),
            mixing: settings.mixing,
            word_dropout: settings.word_dropout,
            explore_every: settings.practice.explore_every,
            seed,
        })
    }
}

impl<W: World> Algorithm<W> for Adel<W> {
    /// The execution policy π_θ.
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    fn mixing(&self) -> Option<&Mixing> {
        Some(&self.mixing)
    }

    /// ê ~ π_β(· | s1, d*) for each task.
    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>> {
        explorer::explore(&[self.beta.agent()], self.seed, tasks, first)
    }

    fn exploration_policies(&self) -> Option<Vec<&dyn Agent<W>>> {
        Some(vec![self.beta.agent()])
    }

    fn executes_own_policy(&self) -> bool {
        true
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        self.beta.learn_words(utterances)?;
        self.theta.learn_words(utterances)
    }

    fn learning(&mut self) -> Learning<'_, W> {
        Learning::Descriptions(self)
    }

    fn take_loss(&mut self) -> Result<(f64, u64)> {
        self.losses.take()
    }

    fn tensors(&self) -> Result<Tensors> {
        let mut all = Tensors::new();
        self.theta.tensors("theta", &mut all)?;
        self.beta.tensors("beta", &mut all)?;
        Ok(all)
    }

    fn state(&self) -> AlgorithmState {
        let (steps, blueprint) = (self.theta.steps(), self.theta.agent().blueprint());
        let exploration_steps = self.beta.steps();
        let state = match exploration_steps == steps {
            true => serde_json::Value::Null,
            false => serde_json::to_value(State { exploration_steps }).unwrap_or_default(),
        };
        AlgorithmState { steps, blueprint, state }
    }

    fn restore(&mut self, tensors: &Tensors, state: &AlgorithmState) -> Result<()> {
        let exploration_steps = match &state.state {
            serde_json::Value::Null => state.steps,
            state => State::deserialize(state).map_err(candle_core::Error::wrap)?.exploration_steps,
        };
        self.theta.restore("theta", tensors, state.steps, &state.blueprint)?;
        self.beta.restore("beta", tensors, exploration_steps, &state.blueprint)
    }
}

impl<W: World> Adel<W> {
    /// The groups of π_β's loss, λ·−log π_β(ẽ | d̂) + (1−λ)·−log π_β(ê | d̂), ẽ ~ P_ω(· | s1), in one step of it.
    fn step_beta(&mut self, own: &[Example<W>], step: StepContext) -> Result<()> {
        let lambda = self.mixing.at(step.update);
        let mut draws = rng::stream(self.seed, "marginal", step.counter);
        let marginal: Vec<Example<W>> = own
            .iter()
            .map(|e| Example { execution: self.world.sample_marginal(&e.start, &mut draws), ..e.clone() })
            .collect();
        let mut groups: Vec<(&[Example<W>], f32)> = Vec::new();
        if lambda > 0.0 {
            groups.push((&marginal, lambda as f32));
        }
        if lambda < 1.0 {
            groups.push((own, (1.0 - lambda) as f32));
        }
        self.beta.step(&Lesson::Varied(&groups, self.augmentation("noise-beta", step)))?;
        Ok(())
    }

    fn augmentation(&self, purpose: &'static str, step: StepContext) -> Augmentation {
        Augmentation { word_dropout: self.word_dropout, seed: self.seed, purpose, counter: step.counter }
    }
}

impl<W: World> LearnsFromDescriptions<W> for Adel<W> {
    /// L(θ) = −log π_θ(ê | d̂) and L(β) = λ·−log π_β(ẽ | d̂) + (1−λ)·−log π_β(ê | d̂), ẽ ~ P_ω(· | s1), one Adam step on
    /// their sum. The counter numbers the draws of ẽ.
    fn learn(&mut self, described: &[DescribedEpisode<W>], step: StepContext) -> Result<()> {
        if described.is_empty() {
            return Ok(());
        }
        let own = relocated(&*self.world, described, &mut rng::stream(self.seed, "elsewhere", step.counter));
        // The policies share no parameter, so two backward passes make the gradients of the sum.
        self.theta.learn_prior(&for_prior(&own, described, step))?;
        self.step_beta(&own, step)?;
        let loss = self.theta.step(&Lesson::Varied(&[(&own, 1.0)], self.augmentation("noise-theta", step)))?;
        if step.fresh { self.losses.add(loss) } else { Ok(()) }
    }
    /// A step of one policy on a part of each example. Most are π_θ's, which people see; its prior takes a step on each example.
    fn practise(&mut self, replayed: &[DescribedEpisode<W>], step: StepContext) -> Result<()> {
        if replayed.is_empty() {
            return Ok(());
        }
        let own = excerpts(&*self.world, replayed, &mut rng::stream(self.seed, "excerpt", step.counter));
        if self.explore_every > 0 && step.counter.is_multiple_of(self.explore_every) {
            return self.step_beta(&own, step);
        }
        let whole: Vec<Example<W>> = replayed.iter().map(|d| d.example.clone()).collect();
        self.theta.learn_prior(&whole)?;
        self.theta.step(&Lesson::Varied(&[(&own, 1.0)], self.augmentation("noise-theta", step)))?;
        Ok(())
    }

    /// Always of the same part of each example, so that readings differ by what was learnt alone.
    fn practice_loss(&self, held_back: &[DescribedEpisode<W>]) -> Result<f32> {
        let own = excerpts(&*self.world, held_back, &mut rng::stream(self.seed, "excerpt", u64::MAX));
        self.theta.agent().loss(&Lesson::Likelihood(&[(&own, 1.0)]))?.to_scalar()
    }
}
