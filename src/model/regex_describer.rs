//! The REGEX describer P̃_T(d | {(w_in, w_out)}_J): pairs are embedded, averaged position by position and
//! encoded; a decoder with one attention writes the description.

use crate::model::decoder::{Decoder, DecoderSizes, spread};
use crate::nn::attention::Memory;
use crate::nn::layers::{Embedding, Grad, Linear, Lstm, bridge};
use crate::nn::loss;
use crate::nn::lstm::Lengths;
use crate::nn::params::Params;
use crate::nn::tokens::{PAD, Tokens};
use crate::rng::Stream;
use candle_core::{Device, Result, Tensor, bail};
use serde::{Deserialize, Serialize};

const ATTENTIONS: [&str; 1] = ["attention"];

/// Sizes of a describer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriberSizes {
    /// Characters of words, `@` included.
    pub characters: usize,
    /// Words of descriptions.
    pub words: usize,
    /// Hidden size H (paper: 512).
    pub hidden: usize,
    /// Character embedding (paper: 32).
    pub character_embedding: usize,
    /// Description-word embedding (paper: 128).
    pub word_embedding: usize,
}

/// The model: parameters and sizes.
#[derive(Clone, Debug)]
pub struct RegexDescriber {
    /// Parameters.
    pub params: Params,
    /// Sizes.
    pub sizes: DescriberSizes,
    reference_padding: bool,
}

/// A view of the current weights.
struct Net {
    embedding: Embedding,
    encoder: Lstm,
    bridge: Linear,
    decoder: Decoder,
}

impl Net {
    fn new(params: &Params, grad: Grad) -> Result<Self> {
        Ok(Self {
            embedding: Embedding::new(params, "pair_embedding", grad)?,
            encoder: Lstm::new(params, "encoder", grad)?,
            bridge: Linear::new(params, "bridge", grad)?,
            decoder: Decoder::new(params, &ATTENTIONS, grad)?,
        })
    }

    fn read(&self, pairs: &Pairs) -> Result<(Vec<Memory>, Tensor)> {
        let projected = pairs.bags.matmul(&self.encoder.project(self.embedding.table())?)?;
        // The rows of a bag sum to one, so the bias is counted once; projecting before averaging changes nothing.
        let gx = projected.reshape((pairs.steps, pairs.rows, projected.dim(1)?))?;
        let (context, state) = self.encoder.run(&gx, &self.encoder.zero_state(pairs.rows)?, &pairs.lengths)?;
        let state = bridge(&state, &self.bridge)?;
        Ok((vec![self.decoder.attention(0).memory(&context, pairs.bias.as_ref())?], state))
    }
}

/// A batch of J word pairs each, as bags: row (t, b) holds the share of each character at position t of item b's pairs.
struct Pairs {
    bags: Tensor,
    bias: Option<Tensor>,
    lengths: Lengths,
    steps: usize,
    rows: usize,
}

impl Pairs {
    fn new(items: &[Vec<Vec<u32>>], characters: usize, reference: bool, device: &Device) -> Result<Self> {
        let rows = items.len();
        let steps = items.iter().flatten().map(Vec::len).max().unwrap_or(0);
        if rows == 0 || steps == 0 {
            bail!("an empty batch of word pairs")
        }
        let mut bags = vec![0f32; steps * rows * characters];
        let mut bias = vec![0f32; rows * steps];
        let mut lengths = Vec::with_capacity(rows);
        for (b, pairs) in items.iter().enumerate() {
            let mut length = 0;
            for t in 0..steps {
                let bag = &mut bags[(t * rows + b) * characters..][..characters];
                let mut real = 0;
                for pair in pairs {
                    let id = pair.get(t).copied().unwrap_or(PAD);
                    if id as usize >= characters {
                        bail!("character {id} in a vocabulary of {characters}")
                    }
                    real += usize::from(id != PAD);
                    if reference || id != PAD {
                        bag[id as usize] += 1.0;
                    }
                }
                let n = if reference { pairs.len() } else { real };
                if n > 0 {
                    bag.iter_mut().for_each(|x| *x /= n as f32);
                }
                if real > 0 {
                    length = t + 1;
                } else {
                    bias[b * steps + t] = -1e9;
                }
            }
            lengths.push(if reference { steps } else { length.max(1) } as u32);
        }
        Ok(Self {
            bags: Tensor::from_vec(bags, (steps * rows, characters), device)?,
            bias: if reference { None } else { Some(Tensor::from_vec(bias, (rows, 1, steps), device)?) },
            lengths: Lengths::new(lengths, device)?,
            steps,
            rows,
        })
    }
}

impl RegexDescriber {
    /// A model with PyTorch-like initial weights.
    pub fn new(sizes: DescriberSizes, reference_padding: bool, stream: &mut Stream, device: &Device) -> Result<Self> {
        let mut params = Params::new(device);
        let h = sizes.hidden;
        Embedding::init(&mut params, "pair_embedding", sizes.characters, sizes.character_embedding, stream)?;
        Lstm::init(&mut params, "encoder", sizes.character_embedding, h, stream)?;
        Linear::init(&mut params, "bridge", h, h, stream)?;
        let decoder = DecoderSizes { vocabulary: sizes.words, embedding: sizes.word_embedding, hidden: h };
        Decoder::init(&mut params, decoder, &ATTENTIONS, stream)?;
        Ok(Self { params, sizes, reference_padding })
    }

    fn pairs(&self, items: &[Vec<Vec<u32>>]) -> Result<Pairs> {
        Pairs::new(items, self.sizes.characters, self.reference_padding, self.params.device())
    }

    /// Teacher-forced logits `[T · B, V]` (time-major) and the targets they are for. `items` are J pair sequences each.
    pub fn logits(&self, items: &[Vec<Vec<u32>>], descriptions: &[Vec<u32>], grad: Grad) -> Result<(Tensor, Vec<u32>)> {
        let net = Net::new(&self.params, grad)?;
        let (memories, state) = net.read(&self.pairs(items)?)?;
        let (inputs, targets) = Tokens::shifted(descriptions, self.sizes.words, self.params.device())?;
        Ok((net.decoder.logits(&memories, &state, &inputs)?, targets))
    }

    /// −log P̃_T of the descriptions, each step's mean summed over steps.
    pub fn loss(&self, items: &[Vec<Vec<u32>>], descriptions: &[Vec<u32>]) -> Result<Tensor> {
        let (logits, targets) = self.logits(items, descriptions, Grad::On)?;
        let weights = loss::target_weights(&targets, items.len(), &[(items.len(), 1.0)]);
        loss::weighted_nll(&logits, &targets, &weights)
    }

    /// Candidate descriptions of each item: the greedy one first, then `samples` sampled ones; `None` where no END came.
    pub fn propose(
        &self,
        items: &[Vec<Vec<u32>>],
        samples: usize,
        horizon: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Vec<Option<Vec<u32>>>>> {
        let net = Net::new(&self.params, Grad::Off)?;
        let (memories, state) = net.read(&self.pairs(items)?)?;
        let group = samples + 1;
        let state = spread(&state, group)?;
        let all = net.decoder.decode(&memories, state, group, horizon, |row| row % group == 0, stream)?;
        Ok(all.chunks(group).map(<[_]>::to_vec).collect())
    }
}
