//! EpochADEL, the variant that the paper analyses, in practice: the policies stay as they are during an epoch of M
//! iterations, whose descriptions are collected, and are refitted on them at its end.
//!
//! As the paper proposes after its convergence proof, every epoch is carried out twice at once. Episodes with even
//! numbers roll in with the current policy π_n (π_β here); what is described of them makes π_{n+1}. Episodes with odd
//! numbers roll in with the running average of all policies so far, (1/n) Σ π_t; what is described of them makes the
//! policy that is evaluated (π_θ). A draw from the average is a draw from one of its policies, chosen uniformly. Not all
//! of them can be kept: `algorithm.epoch.snapshots` of them are, a uniform sample (a reservoir) of all epochs'. There is
//! no approximate marginal beyond the pretrained π_1, and no replay: the passes of the refit are the re-use.

use crate::algorithm::explorer;
use crate::algorithm::learner::{Learner, Losses, Tensors, part};
use crate::algorithm::{Algorithm, AlgorithmState, Learning, LearnsInEpochs};
use crate::config::run::{AlgorithmConfig, EpochSettings};
use crate::protocol::{Agent, Augmentation, DescribedEpisode, Example, Lesson, Task, Utterance, World};
use crate::rng;
use candle_core::Result;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// Both policies, the sample of earlier ones, and the descriptions that this epoch has collected.
pub struct EpochAdel<W: World> {
    theta: Learner<W>,
    beta: Learner<W>,
    /// A uniform sample of π_1 … π_n.
    snapshots: Vec<Box<dyn Agent<W>>>,
    collected: Vec<DescribedEpisode<W>>,
    losses: Losses,
    state: State,
    settings: EpochSettings,
    batch: usize,
    word_dropout: f64,
    seed: u64,
}

/// The state that a checkpoint holds beside tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    /// Epochs ended.
    epoch: u64,
    /// Descriptions of the present epoch: so many of the description log's last lines.
    collected: usize,
    /// Adam steps of π_β; those of π_θ are the checkpoint's.
    beta_steps: u64,
    /// Policies kept.
    snapshots: usize,
}

impl<W: World> EpochAdel<W> {
    /// All policies start from `pretrained`, which is π_1.
    pub fn new(pretrained: Box<dyn Agent<W>>, settings: &AlgorithmConfig, seed: u64) -> Result<Self> {
        let (beta, first) = (pretrained.duplicate()?, pretrained.duplicate()?);
        Ok(Self {
            theta: Learner::new(pretrained, settings.learning_rate, settings.average)?,
            beta: Learner::new(beta, settings.learning_rate, 0.0)?,
            snapshots: vec![first],
            collected: Vec::new(),
            losses: Losses::default(),
            state: State::default(),
            settings: settings.epoch,
            batch: settings.batch,
            word_dropout: settings.word_dropout,
            seed,
        })
    }

    /// π_β, and the policies that stand for the running average.
    fn explorers(&self) -> Vec<&dyn Agent<W>> {
        std::iter::once(self.beta.agent()).chain(self.snapshots.iter().map(|s| &**s)).collect()
    }

    /// Refits a policy on examples by several passes of maximum likelihood, each in another order. The augmentation's draws are
    /// keyed by the policy's steps.
    fn refit(
        learner: &mut Learner<W>,
        examples: &[Example<W>],
        (passes, batch): (u64, usize),
        mut order: rng::Stream,
        augmentation: Augmentation,
        mut on_loss: impl FnMut(candle_core::Tensor) -> Result<()>,
    ) -> Result<()> {
        let mut examples = examples.to_vec();
        for _ in 0..passes {
            examples.shuffle(&mut order);
            for chunk in examples.chunks(batch) {
                let augmentation = Augmentation { counter: learner.steps(), ..augmentation };
                on_loss(learner.step(&Lesson::Varied(&[(chunk, 1.0)], augmentation))?)?;
            }
        }
        Ok(())
    }

    /// Takes π_n into the sample of policies: a reservoir, so that each of π_1 … π_n is in it with equal probability.
    fn keep(&mut self) -> Result<()> {
        let n = self.state.epoch + 1;
        let agent = self.beta.agent().duplicate()?;
        if self.snapshots.len() < self.settings.snapshots {
            self.snapshots.push(agent);
            return Ok(());
        }
        let place = rng::stream(self.seed, "epoch-reservoir", n).random_range(0..n) as usize;
        if let Some(old) = self.snapshots.get_mut(place) {
            *old = agent;
        }
        Ok(())
    }
}

impl<W: World> Algorithm<W> for EpochAdel<W> {
    /// π_θ, fitted on what the running average did.
    fn policy(&self) -> &dyn Agent<W> {
        self.theta.policy()
    }

    fn explore(&self, tasks: &[Task<W::Start>], first: u64) -> Result<Vec<W::Execution>> {
        explorer::explore(&self.explorers(), self.seed, tasks, first)
    }

    fn exploration_policies(&self) -> Option<Vec<&dyn Agent<W>>> {
        Some(self.explorers())
    }

    fn executes_own_policy(&self) -> bool {
        true
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        self.beta.learn_words(utterances)?;
        for snapshot in &mut self.snapshots {
            snapshot.learn_words(utterances)?;
        }
        self.theta.learn_words(utterances)
    }

    fn learning(&mut self) -> Learning<'_, W> {
        Learning::Epochs(self)
    }

    fn take_loss(&mut self) -> Result<(f64, u64)> {
        self.losses.take()
    }

    fn tensors(&self) -> Result<Tensors> {
        let mut all = Tensors::new();
        self.theta.tensors("theta", &mut all)?;
        self.beta.tensors("beta", &mut all)?;
        for (i, snapshot) in self.snapshots.iter().enumerate() {
            for (key, t) in snapshot.params().snapshot()? {
                all.insert(format!("snapshot-{i}.weights.{key}"), t);
            }
        }
        Ok(all)
    }

    fn state(&self) -> AlgorithmState {
        let state = State {
            collected: self.collected.len(),
            beta_steps: self.beta.steps(),
            snapshots: self.snapshots.len(),
            ..self.state
        };
        AlgorithmState {
            steps: self.theta.steps(),
            blueprint: self.theta.agent().blueprint(),
            state: serde_json::to_value(state).unwrap_or_default(),
        }
    }

    fn restore(&mut self, tensors: &Tensors, saved: &AlgorithmState) -> Result<()> {
        self.state = serde_json::from_value(saved.state.clone()).map_err(candle_core::Error::wrap)?;
        self.theta.restore("theta", tensors, saved.steps, &saved.blueprint)?;
        self.beta.restore("beta", tensors, self.state.beta_steps, &saved.blueprint)?;
        self.snapshots.clear();
        for i in 0..self.state.snapshots {
            let snapshot = self.beta.agent().duplicate()?;
            snapshot.params().load(&part(tensors, &format!("snapshot-{i}.weights.")))?;
            self.snapshots.push(snapshot);
        }
        self.collected.clear();
        Ok(())
    }
}

impl<W: World> LearnsInEpochs<W> for EpochAdel<W> {
    fn collect(&mut self, described: &[DescribedEpisode<W>]) {
        self.collected.extend_from_slice(described);
    }

    /// Refits both policies when the epoch is over.
    fn end_iteration(&mut self, update: u64) -> Result<()> {
        if !(update + 1).is_multiple_of(self.settings.iterations) {
            return Ok(());
        }
        let collected = std::mem::take(&mut self.collected);
        let (averaged, current): (Vec<_>, Vec<_>) = collected.into_iter().partition(|d| explorer::averaged(d.episode));
        let examples = |all: Vec<DescribedEpisode<W>>| all.into_iter().map(|d| d.example).collect::<Vec<_>>();
        let passes = (self.settings.passes, self.batch);
        let (word_dropout, seed) = (self.word_dropout, self.seed);
        let augmentation = |purpose| Augmentation { word_dropout, seed, purpose, counter: 0 };
        let order = |purpose| rng::stream(self.seed, purpose, self.state.epoch);
        let losses = &mut self.losses;
        let (for_theta, for_beta) = (order("epoch-theta"), order("epoch-beta"));
        let (theta_noise, beta_noise) = (augmentation("noise-theta"), augmentation("noise-beta"));
        Self::refit(&mut self.theta, &examples(averaged), passes, for_theta, theta_noise, |loss| losses.add(loss))?;
        Self::refit(&mut self.beta, &examples(current), passes, for_beta, beta_noise, |_| Ok(()))?;
        self.state.epoch += 1;
        self.keep()
    }

    fn collected(&self) -> usize {
        self.state.collected
    }

    fn restore_collected(&mut self, described: Vec<DescribedEpisode<W>>) {
        self.collected = described;
    }
}
