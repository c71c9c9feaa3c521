//! An LSTM decoder with attention over memories, teacher-forced or step by step.

use crate::nn::attention::{DotAttention, Memory};
use crate::nn::layers::{Embedding, Grad, Linear, Lstm};
use crate::nn::lstm::Lengths;
use crate::nn::params::Params;
use crate::nn::sample::{GREEDY, pick};
use crate::nn::tokens::{END, PAD, START, Tokens};
use crate::rng::Stream;
use candle_core::{Result, Tensor};
use names::*;
use rand::RngExt;

/// The names of the decoder's weights.
pub mod names {
    /// Embeddings of output symbols.
    pub const OUTPUT_EMBEDDING: &str = "output_embedding";
    /// The LSTM.
    pub const DECODER: &str = "decoder";
    /// The predictor's first layer.
    pub const PREDICTOR_HIDDEN: &str = "predictor.hidden";
    /// The predictor's second layer.
    pub const PREDICTOR_OUTPUT: &str = "predictor.output";
}

/// Decoder: embedding, LSTM, one attention per memory, two-layer predictor.
#[derive(Clone, Debug)]
pub struct Decoder {
    embedding: Embedding,
    lstm: Lstm,
    attentions: Vec<DotAttention>,
    hidden: Linear,
    output: Linear,
}

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug)]
pub struct DecoderSizes {
    /// Output vocabulary V.
    pub vocabulary: usize,
    /// Size of the embedding of the previous symbol.
    pub embedding: usize,
    /// Hidden size H.
    pub hidden: usize,
}

impl Decoder {
    /// Adds the parameters; `attentions` names one attention per memory.
    pub fn init(params: &mut Params, sizes: DecoderSizes, attentions: &[&str], stream: &mut Stream) -> Result<()> {
        let h = sizes.hidden;
        Embedding::init(params, OUTPUT_EMBEDDING, sizes.vocabulary, sizes.embedding, stream)?;
        Lstm::init(params, DECODER, sizes.embedding, h, stream)?;
        for name in attentions {
            DotAttention::init(params, name, h, h, h / 2, stream)?;
        }
        Linear::init(params, PREDICTOR_HIDDEN, (1 + attentions.len()) * h, h, stream)?;
        Linear::init(params, PREDICTOR_OUTPUT, h, sizes.vocabulary, stream)
    }

    /// The decoder over existing parameters.
    pub fn new(params: &Params, attentions: &[&str], grad: Grad) -> Result<Self> {
        Ok(Self {
            embedding: Embedding::new(params, OUTPUT_EMBEDDING, grad)?,
            lstm: Lstm::new(params, DECODER, grad)?,
            attentions: attentions.iter().map(|n| DotAttention::new(params, n, grad)).collect::<Result<_>>()?,
            hidden: Linear::new(params, PREDICTOR_HIDDEN, grad)?,
            output: Linear::new(params, PREDICTOR_OUTPUT, grad)?,
        })
    }

    /// The attention of memory `i`, to prepare that memory with.
    pub fn attention(&self, i: usize) -> &DotAttention {
        &self.attentions[i]
    }

    /// Teacher-forced logits, time-major `[T · g·B, V]`, for memories and a state of B rows and inputs of g·B rows, of which
    /// row k·B + b goes on from row b.
    pub fn logits(&self, memories: &[Memory], state: &Tensor, inputs: &Tokens) -> Result<Tensor> {
        let copies = inputs.rows / state.dim(1)?;
        let state = if copies == 1 { state.clone() } else { Tensor::cat(&vec![state; copies], 1)? };
        let (o, _) = self.lstm.read(&self.embedding, inputs, &state)?;
        let mut parts = vec![o.clone()];
        for (attention, memory) in self.attentions.iter().zip(memories) {
            parts.push(attention.attend(&o, memory)?);
        }
        let logits = self.predict(&Tensor::cat(&parts, 2)?)?;
        let v = logits.dim(2)?;
        logits.reshape((inputs.steps * inputs.rows, v))
    }

    /// Input projections of the output symbols `[V, 4H]`.
    pub fn table(&self) -> Result<Tensor> {
        self.lstm.project(self.embedding.table())
    }

    /// The parameters that a roll-out on the GPU decodes with, which stay where they are.
    pub fn weights(params: &Params) -> Result<crate::nn::cuda::decode::Weights<'_>> {
        let get = |layer: &str, part: &str| params.get(&format!("{layer}.{part}")).map(|var| var.as_tensor());
        Ok(crate::nn::cuda::decode::Weights {
            w_hh: get(DECODER, Lstm::WEIGHT_HH)?,
            hidden: (get(PREDICTOR_HIDDEN, "weight")?, get(PREDICTOR_HIDDEN, "bias")?),
            output: (get(PREDICTOR_OUTPUT, "weight")?, get(PREDICTOR_OUTPUT, "bias")?),
        })
    }

    /// Memories as a roll-out on the GPU begins with them.
    pub fn sources<'a>(&'a self, memories: &'a [Memory]) -> Result<Vec<crate::nn::cuda::decode::Source<'a>>> {
        let mut all = Vec::with_capacity(memories.len());
        for (attention, memory) in self.attentions.iter().zip(memories) {
            let Memory::Gpu { keys, values, real } = memory else { candle_core::bail!("this memory is not the GPU's") };
            all.push(crate::nn::cuda::decode::Source { keys, values, real, query: attention.query() });
        }
        Ok(all)
    }

    fn predict(&self, x: &Tensor) -> Result<Tensor> {
        self.output.forward(&self.hidden.forward_tanh(x)?)
    }

    /// Decodes `group` sequences for each row of the memories, neighbours sharing the row, until each has ended or
    /// `horizon` symbols were made. `state` is `[2, B · group, H]`. Row i is greedy when `greedy(i)`, else sampled with
    /// numbers from `stream`.
    ///
    /// A sequence comes without START and END; `None` where no END came within the horizon. This is the CPU's; on a GPU
    /// roll-outs live in `model::gpu`.
    pub fn decode(
        &self,
        memories: &[Memory],
        state: Tensor,
        group: usize,
        horizon: usize,
        greedy: impl Fn(usize) -> bool,
        stream: &mut Stream,
    ) -> Result<Vec<Option<Vec<u32>>>> {
        let rolled = self.roll_out(memories, state, group, horizon, greedy, stream)?;
        Ok(rolled.into_iter().map(|r| r.ended.then_some(r.symbols)).collect())
    }

    /// As [`Decoder::decode`], with the symbols of sequences that did not come to an end as well.
    pub fn roll_out(
        &self,
        memories: &[Memory],
        state: Tensor,
        group: usize,
        horizon: usize,
        greedy: impl Fn(usize) -> bool,
        stream: &mut Stream,
    ) -> Result<Vec<Rolled>> {
        let rows = state.dim(1)?;
        let device = state.device().clone();
        let one_step = Lengths::full(rows, 1, &device)?;
        let table = self.lstm.project(self.embedding.table())?;
        // All numbers of the roll-out at once: what a row draws depends on its place alone, not on when others end.
        let noise: Vec<f32> = (0..horizon * rows)
            .map(|i| {
                let u = stream.random::<f32>();
                if greedy(i % rows) { GREEDY } else { u }
            })
            .collect();
        let noise = Tensor::from_vec(noise, (horizon, rows), &device)?;
        let mut state = state;
        let mut previous = Tensor::full(START, rows, &device)?;
        let mut steps = Vec::new();
        let mut ended = vec![false; rows];
        for t in 0..horizon {
            let gx = table.index_select(&previous, 0)?.unsqueeze(0)?;
            let (_, next) = self.lstm.run(&gx, &state, &one_step)?;
            state = next;
            let h = state.get(0)?;
            let mut parts = vec![h.clone()];
            for (attention, memory) in self.attentions.iter().zip(memories) {
                parts.push(attention.attend_step(&h, memory, group)?);
            }
            previous = pick(&self.predict(&Tensor::cat(&parts, 1)?)?, &noise.get(t)?)?;
            steps.push(previous.clone());
            for (e, id) in ended.iter_mut().zip(previous.to_vec1::<u32>()?) {
                *e |= id == END;
            }
            if ended.iter().all(|e| *e) {
                break;
            }
        }
        let symbols = Tensor::stack(&steps, 0)?.to_vec2::<u32>()?;
        Ok((0..rows)
            .map(|b| {
                let end = symbols.iter().position(|row| row[b] == END);
                let symbols = symbols[..end.unwrap_or(symbols.len())].iter().map(|row| row[b]).collect();
                Rolled { symbols, ended: end.is_some() }
            })
            .collect())
    }

    /// For each row, whether greedy decoding would give exactly `targets` (time-major, padded): it does if and only if
    /// every teacher-forced argmax does, so nothing needs to be decoded.
    pub fn reproduces(
        &self,
        memories: &[Memory],
        state: &Tensor,
        inputs: &Tokens,
        targets: &[u32],
    ) -> Result<Vec<bool>> {
        let logits = self.logits(memories, state, inputs)?;
        let greedy = Tensor::full(GREEDY, logits.dim(0)?, logits.device())?;
        let picked = pick(&logits, &greedy)?.to_vec1::<u32>()?;
        let mut same = vec![true; inputs.rows];
        for (i, (&a, &b)) in picked.iter().zip(targets).enumerate() {
            if b != PAD && a != b {
                same[i % inputs.rows] = false;
            }
        }
        Ok(same)
    }
}

/// Repeats each row of a state `[2, B, H]` `group` times, side by side.
pub fn spread(state: &Tensor, group: usize) -> Result<Tensor> {
    let (two, b, h) = state.dims3()?;
    state.unsqueeze(2)?.broadcast_as((two, b, group, h))?.reshape((two, b * group, h))
}

/// Wraps symbols in START … END.
pub fn wrap(ids: &[u32]) -> Vec<u32> {
    let mut out = Vec::with_capacity(ids.len() + 2);
    out.push(START);
    out.extend_from_slice(ids);
    out.push(END);
    out
}

/// The result of a roll-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolled {
    /// Its symbols, without START and END; as many as the horizon where it did not end.
    pub symbols: Vec<u32>,
    /// Whether END came within the horizon.
    pub ended: bool,
}

impl Rolled {
    /// Row `row` of what was written step by step.
    pub fn of(steps: &[Vec<u32>], row: usize) -> Self {
        let end = steps.iter().position(|step| step[row] == END);
        let symbols = steps[..end.unwrap_or(steps.len())].iter().map(|step| step[row]).collect();
        Self { symbols, ended: end.is_some() }
    }
}
