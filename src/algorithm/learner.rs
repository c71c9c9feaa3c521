//! One policy that learns: its agent, its optimiser, the sum of its losses, and perhaps an average of its weights.

use crate::protocol::{Agent, Example, Lesson, Utterance, World};
use candle_core::{Result, Tensor};
use std::collections::BTreeMap;

/// Named tensors of a checkpoint.
pub type Tensors = BTreeMap<String, Tensor>;

/// A sum of losses that stays on the device until it is asked for: reading a loss after each update would stall a GPU.
#[derive(Debug, Default)]
pub struct Losses {
    sum: Option<Tensor>,
    count: u64,
}

impl Losses {
    /// Adds a scalar loss.
    pub fn add(&mut self, loss: Tensor) -> Result<()> {
        self.sum = Some(match self.sum.take() {
            None => loss,
            Some(sum) => (sum + loss)?,
        });
        self.count += 1;
        Ok(())
    }

    /// Sum and number of the losses since the last call; waits for the device. They start again from zero.
    pub fn take(&mut self) -> Result<(f64, u64)> {
        let count = std::mem::take(&mut self.count);
        let sum = self.sum.take().map_or(Ok(0.0), |sum| sum.to_scalar::<f32>())?;
        Ok((f64::from(sum), count))
    }
}

/// A policy with its optimiser.
pub struct Learner<W: World> {
    agent: Box<dyn Agent<W>>,
    average: Option<Box<dyn Agent<W>>>,
    decay: f64,
}

impl<W: World> Learner<W> {
    /// A learner with zero moments. With `decay` above 0 an exponential moving average of the weights is kept beside
    /// them, beginning with the weights as they are.
    pub fn new(mut agent: Box<dyn Agent<W>>, learning_rate: f64, decay: f64) -> Result<Self> {
        let average = if decay > 0.0 { Some(agent.duplicate()?) } else { None };
        agent.begin_learning(learning_rate)?;
        Ok(Self { average, agent, decay })
    }

    /// The policy with the weights that learn.
    pub fn agent(&self) -> &dyn Agent<W> {
        &*self.agent
    }

    /// The policy to evaluate: with averaged weights where they are kept.
    pub fn policy(&self) -> &dyn Agent<W> {
        self.average.as_deref().unwrap_or(&*self.agent)
    }

    /// One step on a lesson; the loss as a scalar on the device.
    pub fn step(&mut self, lesson: &Lesson<W>) -> Result<Tensor> {
        let loss = self.agent.step(lesson)?;
        if let Some(average) = &self.average {
            // Early on the average would be the beginning for long: the decay grows towards its setting.
            let steps = self.agent.optimizer()?.steps() as f64;
            let decay = self.decay.min((1.0 + steps) / (10.0 + steps));
            average.params().move_towards(self.agent.params(), decay)?;
        }
        Ok(loss)
    }

    /// Lets the prior beside the network learn from examples, where the agent has one. The average follows it with its next step.
    pub fn learn_prior(&mut self, examples: &[Example<W>]) -> Result<()> {
        match self.agent.prior() {
            Some(prior) => prior.learn(examples),
            None => Ok(()),
        }
    }

    /// Reads new words; those that have earned it take reserve rows. How many did.
    pub fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        if let Some(average) = &mut self.average {
            average.learn_words(utterances)?;
        }
        self.agent.learn_words(utterances)
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.agent.optimizer().map_or(0, |optimizer| optimizer.steps())
    }

    /// Weights (`NAME.weights.…`), moments (`NAME.adam.…`) and averaged weights (`average.weights.…`) for a checkpoint.
    pub fn tensors(&self, name: &str, all: &mut Tensors) -> Result<()> {
        for (key, t) in self.agent.params().snapshot()? {
            all.insert(format!("{name}.weights.{key}"), t);
        }
        for (key, t) in self.agent.optimizer()?.tensors()? {
            all.insert(format!("{name}.adam.{key}"), t);
        }
        if let Some(average) = &self.average {
            for (key, t) in average.params().snapshot()? {
                all.insert(format!("average.weights.{key}"), t);
            }
        }
        Ok(())
    }

    /// Restores what [`Learner::tensors`] gave.
    pub fn restore(&mut self, name: &str, tensors: &Tensors, steps: u64, blueprint: &serde_json::Value) -> Result<()> {
        self.agent.restore_blueprint(blueprint).map_err(candle_core::Error::msg)?;
        self.agent.params().load(&part(tensors, &format!("{name}.weights.")))?;
        self.agent.optimizer_mut()?.restore(steps, &part(tensors, &format!("{name}.adam.")))?;
        if let Some(average) = &mut self.average {
            average.restore_blueprint(blueprint).map_err(candle_core::Error::msg)?;
            average.params().load(&part(tensors, "average.weights."))?;
        }
        Ok(())
    }
}

/// The tensors whose names begin with `prefix`, without it.
pub fn part(tensors: &Tensors, prefix: &str) -> Tensors {
    tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(prefix)?.to_owned(), t.clone()))).collect()
}

/// The weights of the policy that a checkpoint reports: the averaged ones where there are any, else those of π_θ.
pub fn reported(tensors: &Tensors) -> Tensors {
    let average = part(tensors, "average.weights.");
    if average.is_empty() { part(tensors, "theta.weights.") } else { average }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn losses_are_summed_and_read_once() {
        let mut losses = Losses::default();
        assert_eq!(losses.take().unwrap(), (0.0, 0));
        for loss in [1f32, 2.5] {
            losses.add(Tensor::new(loss, &Device::Cpu).unwrap()).unwrap();
        }
        assert_eq!(losses.take().unwrap(), (3.5, 2));
        assert_eq!(losses.take().unwrap(), (0.0, 0));
    }

    #[test]
    fn averaged_weights_are_the_reported_ones() {
        let one = |v: f32| Tensor::new(v, &Device::Cpu).unwrap();
        let mut all: Tensors = [("theta.weights.a".to_owned(), one(1.0))].into();
        assert_eq!(reported(&all)["a"].to_scalar::<f32>().unwrap(), 1.0);
        all.insert("average.weights.a".into(), one(2.0));
        assert_eq!(reported(&all)["a"].to_scalar::<f32>().unwrap(), 2.0);
    }
}
