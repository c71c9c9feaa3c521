//! ADEL in its practical form (paper, appendix "Practical Implementation"): an execution policy π_θ learns from what
//! was described; an exploration policy π_β learns from the same, mixed with draws of the approximate marginal.

use crate::agent::{Act, Agent, Example, Noise};
use crate::algorithm::Described;
use crate::algorithm::mixing::Mixing;
use crate::nn::adam::Adam;
use crate::rng;
use crate::task::{Task, World};
use candle_core::{Result, Tensor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Both policies and their optimisers.
pub struct Adel<W: World> {
    world: Arc<W>,
    theta: Box<dyn Agent<W>>,
    beta: Box<dyn Agent<W>>,
    adam_theta: Adam,
    adam_beta: Adam,
    mixing: Mixing,
    word_dropout: f64,
    seed: u64,
}

impl<W: World> Adel<W> {
    /// Both policies start from `pretrained` (π_ω learnt on the approximate marginal).
    pub fn new(
        world: Arc<W>,
        pretrained: Box<dyn Agent<W>>,
        mixing: Mixing,
        learning_rate: f64,
        seed: u64,
    ) -> Result<Self> {
        let beta = pretrained.duplicate()?;
        Ok(Self {
            adam_theta: Adam::new(pretrained.params(), learning_rate)?,
            adam_beta: Adam::new(beta.params(), learning_rate)?,
            world,
            theta: pretrained,
            beta,
            mixing,
            word_dropout: 0.0,
            seed,
        })
    }

    /// Words of requests read as unknown with this probability while learning.
    pub fn with_word_dropout(self, word_dropout: f64) -> Self {
        Self { word_dropout, ..self }
    }

    /// The execution policy π_θ.
    pub fn policy(&self) -> &dyn Agent<W> {
        &*self.theta
    }

    /// λ in force at an update.
    pub fn lambda(&self, update: u64) -> f64 {
        self.mixing.at(update)
    }

    /// ê ~ π_β(· | s1, d*) for each task. `counter` numbers the roll-out.
    pub fn explore(&self, tasks: &[Task<W::Start>], counter: u64) -> Result<Vec<W::Execution>> {
        let batch: Vec<_> = tasks.iter().map(|t| (&t.start, t.request.as_str())).collect();
        self.beta.act(&batch, Act::Sample, &mut rng::stream(self.seed, "rollout", counter))
    }

    /// Lets new words of descriptions take reserve rows in both policies; how many did.
    pub fn learn_words(&mut self, texts: &[&str]) -> usize {
        let learnt = self.theta.learn_words(texts);
        self.beta.learn_words(texts);
        learnt
    }

    /// One update on described executions: L(θ) = −log π_θ(ê | d̂) and
    /// L(β) = λ·−log π_β(ẽ | d̂) + (1−λ)·−log π_β(ê | d̂), ẽ ~ P_ω(· | s1), one Adam step on their sum.
    /// `update` sets λ; `counter` numbers the draws of ẽ. Returns the mean L(θ) in nats a sequence.
    pub fn update(&mut self, batch: &[Described<W>], update: u64, counter: u64) -> Result<f64> {
        let lambda = self.mixing.at(update);
        let mut places = rng::stream(self.seed, "elsewhere", counter);
        let practised = |e: &Example<W>| match self.world.elsewhere(&e.start, &e.execution, &mut places) {
            Some((start, execution)) => Example { start, execution, words: e.words.clone() },
            None => e.clone(),
        };
        let own: Vec<Example<W>> = batch.iter().map(|d| &d.example).map(practised).collect();
        let mut draws = rng::stream(self.seed, "marginal", counter);
        let marginal: Vec<Example<W>> = own
            .iter()
            .map(|e| Example { execution: self.world.sample_marginal(&e.start, &mut draws), ..e.clone() })
            .collect();
        let noise = |purpose| Noise::new(self.word_dropout, self.seed, purpose, counter);
        let loss_theta = self.theta.loss(&[(&own, 1.0)], Some(&mut noise("noise-theta")))?;
        let mut groups: Vec<(&[Example<W>], f32)> = Vec::new();
        if lambda > 0.0 {
            groups.push((&marginal, lambda as f32));
        }
        if lambda < 1.0 {
            groups.push((&own, (1.0 - lambda) as f32));
        }
        // The policies share no parameter, so two backward passes make the gradients of the sum.
        let loss_beta = self.beta.loss(&groups, Some(&mut noise("noise-beta")))?;
        self.adam_theta.step(&loss_theta.backward()?)?;
        self.adam_beta.step(&loss_beta.backward()?)?;
        Ok(f64::from(loss_theta.to_scalar::<f32>()?))
    }

    /// All tensors of the learner: weights and moments of both policies.
    pub fn tensors(&self) -> Result<BTreeMap<String, Tensor>> {
        let mut all = BTreeMap::new();
        for (name, agent, adam) in [("theta", &self.theta, &self.adam_theta), ("beta", &self.beta, &self.adam_beta)] {
            for (key, t) in agent.params().snapshot()? {
                all.insert(format!("{name}.weights.{key}"), t);
            }
            for (key, t) in adam.state()?.1 {
                all.insert(format!("{name}.adam.{key}"), t);
            }
        }
        Ok(all)
    }

    /// Adam steps made (the same for both policies).
    pub fn steps(&self) -> u64 {
        self.adam_theta.steps()
    }

    /// What else is needed to rebuild the learner.
    pub fn blueprint(&self) -> serde_json::Value {
        self.theta.blueprint()
    }

    /// Restores what [`Adel::tensors`], [`Adel::steps`] and [`Adel::blueprint`] gave.
    pub fn restore(
        &mut self,
        tensors: &BTreeMap<String, Tensor>,
        steps: u64,
        blueprint: &serde_json::Value,
    ) -> Result<()> {
        let part = |prefix: &str| -> BTreeMap<String, Tensor> {
            tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(prefix)?.to_owned(), t.clone()))).collect()
        };
        for (name, agent, adam) in
            [("theta", &mut self.theta, &mut self.adam_theta), ("beta", &mut self.beta, &mut self.adam_beta)]
        {
            agent.restore_blueprint(blueprint).map_err(candle_core::Error::msg)?;
            agent.params().load(&part(&format!("{name}.weights.")))?;
            adam.restore(steps, &part(&format!("{name}.adam.")))?;
        }
        Ok(())
    }
}
