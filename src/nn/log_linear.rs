//! A log-linear model over candidates: p(c | request) ∝ exp(w · f(c, request)) with sparse binary features, which are hashed into
//! one table of weights. It learns by AdaGrad and needs few examples where a network needs many.
//!
//! A family uses it as a *prior over executions* that reads n-grams of a request beside the network's policy
//! ([`crate::protocol::Prior`]). Here stand the model, its file form, and how a network and a prior are one set of parameters;
//! which candidates there are, and which features they have, is the family's business.

use crate::nn::params::Params;
use crate::protocol::Parameters;
use candle_core::{Device, Result, Tensor, bail};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bits of a place in the table of weights, unless a model asks for a larger one. Whole numbers up to 24 bits are exact in the
/// float32 of a checkpoint.
const BITS: u32 = 18;
const MOST_BITS: u32 = 24;

/// Names of the tensors: places whose weight was ever moved, their weights, and their sums of squared gradients.
const PLACES: &str = "prior.places";
const WEIGHTS: &str = "prior.weights";
const SQUARES: &str = "prior.squares";
const ALL: [&str; 3] = [PLACES, WEIGHTS, SQUARES];

/// Candidates less probable than this, and gradients smaller than it, are left out of a step.
const NEGLIGIBLE: f32 = 1e-4;

/// A hashed feature. Two features that fall on one place share a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature(u32);

impl Feature {
    /// The feature of a text.
    pub fn of(text: &str) -> Self {
        let fnv = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        Self(text.bytes().fold(0x811c_9dc5, fnv)).and(Self(0))
    }

    /// The conjunction of two features; the order matters.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mixed = self.0.rotate_left(13).wrapping_mul(0x9e37_79b1) ^ other.0.wrapping_mul(0x85eb_ca6b);
        let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0xc2b2_ae35);
        Self(mixed ^ (mixed >> 13))
    }
}

/// The model: weights, and the sums of squares by which AdaGrad scales its steps.
#[derive(Clone, Debug)]
pub struct LogLinear {
    bits: u32,
    weights: Vec<f32>,
    squares: Vec<f32>,
    /// Gradients of the step under way; all zero between steps.
    gradient: Vec<f32>,
    rate: f32,
    decay: f32,
    /// Whether a model that follows another one is its average over steps, not its copy.
    averaged: bool,
    /// AdaGrad adds this to the root of a sum of squares.
    damping: f32,
}

impl LogLinear {
    /// A model with zero weights. `rate` is AdaGrad's learning rate, `decay` the weight of the L2 penalty.
    pub fn new(rate: f32, decay: f32) -> Self {
        let zeros = || vec![0.0; 1 << BITS];
        Self {
            bits: BITS,
            weights: zeros(),
            squares: zeros(),
            gradient: zeros(),
            rate,
            decay,
            averaged: false,
            damping: 1e-8,
        }
    }

    /// An untaught model with a table of 2^`bits` weights, at most 2^24. The more features there are, the larger it has to be for
    /// few of them to fall on one place.
    #[must_use]
    pub fn with_table(self, bits: u32) -> Self {
        let bits = bits.min(MOST_BITS);
        let zeros = || vec![0.0; 1 << bits];
        Self { bits, weights: zeros(), squares: zeros(), gradient: zeros(), ..self }
    }

    /// A model whose average over steps is what acts. Many examples that contradict each other keep its weights moving, and the
    /// average is surer; with few examples it would hide what was just learnt.
    #[must_use]
    pub fn averaged(self) -> Self {
        Self { averaged: true, ..self }
    }

    /// Weights in its table.
    pub fn table(&self) -> usize {
        self.weights.len()
    }

    fn place(&self, feature: Feature) -> usize {
        (feature.0 >> (32 - self.bits)) as usize
    }

    /// A model whose steps grow with the gradient as long as a weight's gradients together are smaller than `damping`. Without
    /// damping the first gradient of a weight moves it by the whole rate, however small it is; where candidates share most of
    /// their features, most first gradients are small and say nothing.
    #[must_use]
    pub fn damped(self, damping: f32) -> Self {
        Self { damping, ..self }
    }

    /// Whether it has never learnt anything.
    pub fn is_untaught(&self) -> bool {
        self.squares.iter().all(|square| *square == 0.0)
    }

    /// The weight of one feature.
    pub fn weight(&self, feature: Feature) -> f32 {
        self.weights[self.place(feature)]
    }

    /// w · f of a candidate.
    pub fn score(&self, features: &[Feature]) -> f32 {
        features.iter().map(|feature| self.weight(*feature)).sum()
    }

    /// One AdaGrad step that raises the probability of the right ones among the candidates, together: which of several right
    /// ones is meant is left open. Returns their probability before the step; nothing is learnt where none is right.
    pub fn step(&mut self, candidates: &[Vec<Feature>], right: &[bool]) -> f32 {
        self.step_given(candidates, &vec![0.0; candidates.len()], right)
    }

    /// [`LogLinear::step`] where each candidate has a score of its own that is given, beside w · f.
    pub fn step_given(&mut self, candidates: &[Vec<Feature>], given: &[f32], right: &[bool]) -> f32 {
        let score = |(features, given): (&Vec<Feature>, &f32)| given + self.score(features);
        let scores: Vec<f32> = candidates.iter().zip(given).map(score).collect();
        let Some((of_right, gradient)) = gradient(&scores, right) else { return 0.0 };
        let spread = candidates.iter().zip(gradient).filter(|(_, d)| *d != 0.0);
        self.ascend(spread.flat_map(|(features, d)| features.iter().map(move |feature| (*feature, d))));
        of_right
    }

    /// One AdaGrad step along a gradient of the log likelihood, given in parts: the parts of one feature add up.
    pub fn ascend(&mut self, parts: impl IntoIterator<Item = (Feature, f32)>) {
        let mut touched = Vec::new();
        for (feature, part) in parts {
            let place = self.place(feature);
            self.gradient[place] += part;
            touched.push(place);
        }
        for place in touched {
            let gradient = std::mem::take(&mut self.gradient[place]);
            if gradient == 0.0 {
                continue;
            }
            let gradient = gradient - self.decay * self.weights[place];
            self.squares[place] += gradient * gradient;
            self.weights[place] += self.rate * gradient / (self.squares[place].sqrt() + self.damping);
        }
    }

    /// Follows another model with a table of the same size: it moves towards it where such models are averaged, and is its copy
    /// otherwise.
    ///
    /// # Errors
    /// When the tables differ in size.
    pub fn follow(&mut self, other: &LogLinear, decay: f32) -> Result<()> {
        if self.table() != other.table() {
            bail!("a prior with {} weights cannot follow one with {}", self.table(), other.table())
        }
        if self.averaged {
            let pairs = self.weights.iter_mut().zip(&other.weights);
            pairs.for_each(|(weight, to)| *weight = decay * *weight + (1.0 - decay) * to);
        } else {
            self.weights.copy_from_slice(&other.weights);
        }
        self.squares.copy_from_slice(&other.squares);
        Ok(())
    }

    /// Its tensors; none while it is untaught.
    fn tensors(&self) -> Result<BTreeMap<String, Tensor>> {
        ALL.into_iter()
            .filter_map(|name| Some((name.to_owned(), self.tensor(name)?)))
            .map(|(n, t)| Ok((n, t?)))
            .collect()
    }

    /// The tensor of a name; `None` while it is untaught.
    fn tensor(&self, name: &str) -> Option<Result<Tensor>> {
        let places = (0..self.weights.len()).filter(|place| self.squares[*place] != 0.0);
        let values: Vec<f32> = match name {
            PLACES => places.map(|place| place as f32).collect(),
            WEIGHTS => places.map(|place| self.weights[place]).collect(),
            _ => places.map(|place| self.squares[place]).collect(),
        };
        (!values.is_empty()).then(|| {
            let n = values.len();
            Tensor::from_vec(values, n, &Device::Cpu)
        })
    }

    /// Takes tensors over; without any it is untaught again.
    fn load(&mut self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        let get = |name: &str| match values.get(name) {
            Some(tensor) => tensor.to_vec1::<f32>(),
            None if values.is_empty() => Ok(Vec::new()),
            None => bail!("the file lacks `{name}`"),
        };
        let (places, weights, squares) = (get(PLACES)?, get(WEIGHTS)?, get(SQUARES)?);
        if weights.len() != places.len() || squares.len() != places.len() {
            bail!("the prior's tensors differ in length")
        }
        if places.iter().any(|place| !(0.0..self.weights.len() as f32).contains(place)) {
            bail!("the prior has a place beyond its table")
        }
        self.weights.fill(0.0);
        self.squares.fill(0.0);
        for ((place, weight), square) in places.into_iter().zip(weights).zip(squares) {
            (self.weights[place as usize], self.squares[place as usize]) = (weight, square);
        }
        Ok(())
    }
}

/// The probability of the right candidates together, and the gradient of its logarithm with respect to each candidate's score,
/// in which negligible ones are 0; `None` where no candidate is right.
pub fn gradient(scores: &[f32], right: &[bool]) -> Option<(f32, Vec<f32>)> {
    if !right.contains(&true) {
        return None;
    }
    let probabilities = softmax(scores);
    let of_right: f32 = probabilities.iter().zip(right).filter(|(_, right)| **right).map(|(p, _)| p).sum();
    let of_one = |(p, right): (&f32, &bool)| {
        let share = if *right { p / of_right.max(f32::MIN_POSITIVE) } else { 0.0 };
        let difference = share - p;
        if difference.abs() < NEGLIGIBLE { 0.0 } else { difference }
    };
    let gradient = probabilities.iter().zip(right).map(of_one).collect();
    Some((of_right, gradient))
}

/// Probabilities from scores.
pub fn softmax(scores: &[f32]) -> Vec<f32> {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponents: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f32 = exponents.iter().sum();
    exponents.into_iter().map(|e| e / sum).collect()
}

/// A network's parameters and those of the prior beside it, as one set. The network's may be on a GPU; the prior is on the CPU.
#[derive(Clone, Debug)]
pub struct ParamsWithPrior {
    network: Params,
    prior: Arc<Mutex<LogLinear>>,
}

impl ParamsWithPrior {
    /// Both as one. `network` shares its memory with the network.
    pub fn new(network: Params, prior: LogLinear) -> Self {
        Self { network, prior: Arc::new(Mutex::new(prior)) }
    }

    /// The prior.
    pub fn prior(&self) -> MutexGuard<'_, LogLinear> {
        self.prior.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Parameters for ParamsWithPrior {
    fn device(&self) -> &Device {
        self.network.device()
    }

    fn tensor(&self, name: &str) -> Result<Tensor> {
        if ALL.contains(&name) {
            return self.prior().tensor(name).unwrap_or_else(|| bail!("the prior is untaught"));
        }
        self.network.tensor(name)
    }

    fn snapshot(&self) -> Result<BTreeMap<String, Tensor>> {
        let mut all = self.network.snapshot()?;
        all.append(&mut self.prior().tensors()?);
        Ok(all)
    }

    /// With weights that have no prior, such as those of a policy pretrained without one, the prior is untaught.
    fn load(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        let (prior, network): (BTreeMap<_, _>, BTreeMap<_, _>) =
            values.iter().map(|(k, v)| (k.clone(), v.clone())).partition(|(name, _)| ALL.contains(&name.as_str()));
        self.network.load(&network)?;
        self.prior().load(&prior)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    /// The network's weights move, and the prior follows; parameters of another type give it as a copy.
    fn move_towards(&self, other: &dyn Parameters, decay: f64) -> Result<()> {
        self.network.move_towards(other, decay)?;
        // A step of the network comes with every few examples, so the copy goes straight from table to table.
        if let Some(other) = other.as_any().downcast_ref::<Self>() {
            // One that shares this one's table has nothing to copy, and its lock is this one's.
            if !Arc::ptr_eq(&self.prior, &other.prior) {
                self.prior().follow(&other.prior(), decay as f32)?;
            }
            return Ok(());
        }
        let prior = ALL.iter().filter_map(|name| Some(((*name).to_owned(), other.tensor(name).ok()?))).collect();
        self.prior().load(&prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(texts: &[&str]) -> Vec<Feature> {
        texts.iter().map(|text| Feature::of(text)).collect()
    }

    #[test]
    fn it_learns_which_candidate_is_right() {
        let mut model = LogLinear::new(0.3, 0.0);
        let candidates = [features(&["red", "common"]), features(&["blue", "common"]), features(&["green"])];
        assert!(model.is_untaught());
        let before = model.step(&candidates, &[false, true, false]);
        assert!((before - 1.0 / 3.0).abs() < 1e-6);
        for _ in 0..20 {
            model.step(&candidates, &[false, true, false]);
        }
        let p = softmax(&candidates.iter().map(|c| model.score(c)).collect::<Vec<_>>());
        assert!(p[1] > 0.9, "{p:?}");
        assert!(!model.is_untaught());
    }

    #[test]
    fn several_right_candidates_share_what_is_learnt() {
        let mut model = LogLinear::new(0.3, 0.0);
        let candidates = [features(&["a"]), features(&["b"]), features(&["c"])];
        for _ in 0..20 {
            model.step(&candidates, &[true, true, false]);
        }
        let p = softmax(&candidates.iter().map(|c| model.score(c)).collect::<Vec<_>>());
        assert!((p[0] - p[1]).abs() < 1e-5 && p[2] < 0.1, "{p:?}");
        let weights = model.weights.clone();
        assert_eq!(model.step(&candidates, &[false; 3]), 0.0);
        assert_eq!(model.weights, weights, "where nothing is right nothing is learnt");
    }

    #[test]
    fn steps_follow_the_gradient_of_the_log_likelihood() {
        let mut model = LogLinear::new(0.1, 0.0);
        let candidates = [features(&["a", "b"]), features(&["b", "c"]), features(&["d"])];
        let right = [true, false, false];
        model.step(&candidates, &right);
        let log_likelihood = |model: &LogLinear| {
            let p = softmax(&candidates.iter().map(|c| model.score(c)).collect::<Vec<_>>());
            f64::from(p[0]).ln()
        };
        for text in ["a", "b", "c", "d"] {
            let place = model.place(Feature::of(text));
            let by = 1e-2;
            let at = |delta: f32| {
                let mut moved = model.clone();
                moved.weights[place] += delta;
                log_likelihood(&moved)
            };
            let numeric = (at(by) - at(-by)) / (2.0 * f64::from(by));
            let mut stepped = model.clone();
            stepped.squares.fill(0.0);
            stepped.step(&candidates, &right);
            // With fresh squares AdaGrad's first step is the sign of the gradient times the rate, and its square is kept.
            let gradient = f64::from(stepped.squares[place].sqrt())
                * f64::from((stepped.weights[place] - model.weights[place]).signum());
            assert!((numeric - gradient).abs() < 2e-3, "{text}: {numeric} {gradient}");
        }
    }

    #[test]
    fn weights_with_a_prior_restore_it_and_weights_without_one_leave_it_untaught() {
        let network = || {
            let mut params = Params::new(&Device::Cpu);
            params.add("a", &Tensor::new(&[1f32], &Device::Cpu).unwrap()).unwrap();
            params
        };
        let bare = network().snapshot().unwrap();
        let both = ParamsWithPrior::new(network(), LogLinear::new(0.3, 0.0));
        both.prior().step(&[features(&["a"]), features(&["b"])], &[true, false]);
        let score = both.prior().score(&features(&["a"]));
        assert!(score > 0.0);
        let copy = ParamsWithPrior::new(network(), LogLinear::new(0.3, 0.0));
        copy.load(&both.snapshot().unwrap()).unwrap();
        assert_eq!(copy.prior().score(&features(&["a"])), score);
        let average = ParamsWithPrior::new(network(), LogLinear::new(0.3, 0.0));
        average.move_towards(&both, 0.9).unwrap();
        assert_eq!(average.prior().weights, both.prior().weights);
        let mut damaged = both.snapshot().unwrap();
        damaged.insert(PLACES.into(), Tensor::new(&[1e6f32], &Device::Cpu).unwrap());
        assert!(copy.load(&damaged).is_err());
        copy.load(&bare).unwrap();
        assert!(copy.prior().is_untaught());
    }

    #[test]
    fn a_damped_model_moves_little_by_a_small_gradient() {
        let candidates = [features(&["a"]), features(&["b"])];
        let moved = |mut model: LogLinear| {
            // The wrong one is hardly probable already.
            model.step_given(&candidates, &[6.0, 0.0], &[true, false]);
            model.score(&candidates[0])
        };
        assert!(moved(LogLinear::new(0.3, 0.0)) > 0.29);
        assert!(moved(LogLinear::new(0.3, 0.0).damped(1.0)) < 0.001);
    }

    #[test]
    fn conjunctions_are_ordered() {
        let (a, b) = (Feature::of("a"), Feature::of("b"));
        assert_ne!(a.and(b), b.and(a));
        assert_ne!(a.and(b), a);
    }
}
