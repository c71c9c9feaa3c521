//! Batches of the REGEX models on their way to a GPU, and roll-outs there.
//!
//! A batch goes there in one piece: all its symbols and lengths, one after the other, as 4-byte elements. It is filled up
//! to one of a few sizes, so that few captured graphs serve all batches; what it is filled up with has no weight, is masked, and
//! is not looked at.

use crate::nn::cuda;
use crate::nn::cuda::decode::{Rollout, STRIDE};
use crate::nn::decoder::Rolled;
use crate::nn::loss::target_weights;
use crate::nn::lstm::Lengths;
use crate::nn::sample::GREEDY;
use crate::nn::tokens::{END, PAD, Tokens, check, real_steps};
use crate::rng::Stream;
use crate::task::regex::model::student::Fed;
use candle_core::{Result, Tensor, bail};
use rand::RngExt;

/// A batch on its way.
pub struct Packing {
    /// Its 4-byte elements.
    pub data: Vec<u32>,
    reference_padding: bool,
}

impl Packing {
    /// An empty one. With `reference_padding` encoders run over the padding.
    pub fn new(reference_padding: bool) -> Self {
        Self { data: Vec::new(), reference_padding }
    }

    /// Sequences, filled up to `rows` of `steps`, then the steps that encoders run over, then the real ones.
    pub fn sequences(&mut self, all: &[Vec<u32>], rows: usize, steps: usize, vocabulary: usize) -> Result<()> {
        let begin = self.data.len();
        self.data.resize(begin + rows * steps, PAD);
        for (b, sequence) in all.iter().enumerate() {
            check(sequence, vocabulary)?;
            for (t, &id) in sequence.iter().enumerate() {
                self.data[begin + t * rows + b] = id;
            }
        }
        let longest = all.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let real = |b: usize| all.get(b).map_or(0, |s| real_steps(s) as u32);
        let reference = self.reference_padding;
        self.data.extend((0..rows).map(|b| if reference { longest } else { real(b).max(1) }));
        self.data.extend((0..rows).map(real));
        Ok(())
    }

    /// Bags of sequences (the J pairs of an item), side by side at each step; then the steps to run over and the real ones.
    pub fn bags(
        &mut self,
        all: &[Vec<Vec<u32>>],
        rows: usize,
        steps: usize,
        width: usize,
        vocabulary: usize,
    ) -> Result<()> {
        let begin = self.data.len();
        self.data.resize(begin + rows * steps * width, PAD);
        for (b, bag) in all.iter().enumerate() {
            if bag.len() > width {
                bail!("{} sequences in a bag of {width}", bag.len())
            }
            for (g, sequence) in bag.iter().enumerate() {
                check(sequence, vocabulary)?;
                for (t, &id) in sequence.iter().enumerate() {
                    self.data[begin + (t * rows + b) * width + g] = id;
                }
            }
        }
        let longest = all.iter().flatten().map(Vec::len).max().unwrap_or(0) as u32;
        let reference = self.reference_padding;
        let real = |b: usize| match all.get(b) {
            Some(_) if reference => longest,
            Some(bag) => bag.iter().map(|s| real_steps(s)).max().unwrap_or(0) as u32,
            None => 0,
        };
        self.data.extend((0..rows).map(|b| real(b).max(1)));
        self.data.extend((0..rows).map(real));
        Ok(())
    }

    /// Outputs as inputs and targets of teacher forcing, with each target's weight. `all` are k·`real` sequences, number
    /// j·real + i belonging to row i; rows are filled up to `rows` in each of the k parts.
    pub fn outputs(
        &mut self,
        all: &[Vec<u32>],
        real: usize,
        rows: usize,
        steps: usize,
        vocabulary: usize,
        groups: &[(usize, f32)],
    ) -> Result<()> {
        let longest = all.iter().map(Vec::len).max().unwrap_or(0).max(2) - 1;
        let mut targets = vec![PAD; longest * all.len()];
        for (i, sequence) in all.iter().enumerate() {
            for (t, &id) in sequence.iter().skip(1).enumerate() {
                targets[t * all.len() + i] = id;
            }
        }
        let weights = target_weights(&targets, all.len(), groups);
        let inputs = all.iter().map(|o| o[..o.len() - 1].to_vec()).collect();
        self.fed(&Fed { inputs, targets, weights, entropy: Vec::new() }, real, rows, steps, vocabulary)
    }

    /// Adds the inputs, targets and weights of teacher forcing.
    pub fn fed(&mut self, fed: &Fed, real: usize, rows: usize, steps: usize, vocabulary: usize) -> Result<()> {
        let n = fed.inputs.len();
        let width = rows * (n / real.max(1));
        let column = |i: usize| i / real * rows + i % real;
        let begin = self.data.len();
        self.data.resize(begin + width * steps, PAD);
        for (i, sequence) in fed.inputs.iter().enumerate() {
            check(sequence, vocabulary)?;
            for (t, &id) in sequence.iter().enumerate() {
                self.data[begin + t * width + column(i)] = id;
            }
        }
        check(&fed.targets, vocabulary)?;
        let weights: Vec<u32> = fed.weights.iter().map(|w| w.to_bits()).collect();
        let entropy: Vec<u32> = fed.entropy.iter().map(|w| w.to_bits()).collect();
        for values in [&fed.targets, &weights, &entropy] {
            if values.is_empty() {
                continue;
            }
            let begin = self.data.len();
            self.data.resize(begin + width * steps, 0);
            for (at, value) in values.iter().enumerate() {
                self.data[begin + at / n * width + column(at % n)] = *value;
            }
        }
        // A decoder may run over its padding: nothing reads what it gives there.
        self.data.extend(std::iter::repeat_n(steps as u32, width));
        Ok(())
    }
}

/// A batch that has arrived.
pub struct Unpacking<'a> {
    slot: &'a Tensor,
    at: usize,
}

impl<'a> Unpacking<'a> {
    /// From the beginning.
    pub fn new(slot: &'a Tensor) -> Self {
        Self { slot, at: 0 }
    }

    fn take(&mut self, n: usize) -> Result<Tensor> {
        let part = self.slot.narrow(0, self.at, n)?;
        self.at += n;
        Ok(part)
    }

    /// The tokens that [`Packing::sequences`] (`width` 1) or [`Packing::bags`] put there.
    pub fn tokens(&mut self, rows: usize, steps: usize, width: usize) -> Result<Tokens> {
        Ok(Tokens {
            ids: self.take(rows * steps * width)?,
            steps,
            rows,
            width,
            count_padding: width == 1,
            lengths: Lengths::there(self.take(rows)?),
            real: Lengths::there(self.take(rows)?),
            bias: None,
        })
    }

    /// The targets that [`Packing::outputs`] or [`Packing::fed`] put there; `bonus`: with weights of an entropy.
    pub fn targets(&mut self, rows: usize, steps: usize, bonus: bool) -> Result<Targets> {
        let ids = self.take(rows * steps)?;
        let (targets, weights) = (self.take(rows * steps)?, self.take(rows * steps)?);
        let entropy = if bonus { Some(self.take(rows * steps)?) } else { None };
        let full = Lengths::there(self.take(rows)?);
        let inputs =
            Tokens { ids, steps, rows, width: 1, count_padding: true, lengths: full.clone(), real: full, bias: None };
        Ok(Targets { inputs, targets, weights, entropy })
    }
}

/// Inputs and targets of a decoder on the device.
pub struct Targets {
    /// Inputs.
    pub inputs: Tokens,
    /// Targets (u32).
    pub targets: Tensor,
    /// Their weights (bits of float32).
    pub weights: Tensor,
    /// Weights of the entropy, likewise.
    pub entropy: Option<Tensor>,
}

/// Decodes with a roll-out that has begun, until each of the first `real` rows has ended or `horizon` symbols were made.
/// Row i is greedy when `greedy(i)`, else sampled with numbers from `stream`: the same as on the CPU. Sequences come
/// without START and END.
pub fn roll(
    rollout: &Rollout,
    real: usize,
    rows: usize,
    horizon: usize,
    greedy: impl Fn(usize) -> bool,
    stream: &mut Stream,
    steps: impl Fn() -> Result<()>,
) -> Result<Vec<Rolled>> {
    let mut done: Vec<Vec<u32>> = vec![Vec::new(); real];
    let mut ended = vec![false; real];
    let mut noise = vec![GREEDY; STRIDE * rows];
    let mut made = 0;
    while made < horizon && !ended.iter().all(|e| *e) {
        for row in noise.chunks_mut(rows) {
            for (i, u) in row[..real].iter_mut().enumerate() {
                let drawn = stream.random::<f32>();
                *u = if greedy(i) { GREEDY } else { drawn };
            }
        }
        cuda::upload(&rollout.noise, &noise)?;
        steps()?;
        let symbols = cuda::download(&rollout.symbols)?;
        for row in symbols.chunks(rows).take(horizon - made) {
            for ((sequence, ended), &id) in done.iter_mut().zip(&mut ended).zip(row) {
                if !*ended && id == END {
                    *ended = true;
                } else if !*ended {
                    sequence.push(id);
                }
            }
        }
        made += STRIDE;
    }
    Ok(done.into_iter().zip(ended).map(|(symbols, ended)| Rolled { symbols, ended }).collect())
}
