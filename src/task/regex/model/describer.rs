//! The REGEX describer P̃_T(d | {(w_in, w_out)}_J): pairs are embedded, averaged position by position and
//! encoded; a decoder with one attention writes the description.

use crate::nn::adam::Adam;
use crate::nn::attention::Memory;
use crate::nn::cuda::tape::Tape;
use crate::nn::cuda::workspace::{Workspace, rows, steps};
use crate::nn::decoder::{Decoder, DecoderSizes, spread};
use crate::nn::layers::{Embedding, Grad, Linear, Lstm, bridge};
use crate::nn::loss;
use crate::nn::lstm::Lengths;
use crate::nn::params::Params;
use crate::nn::sizes::{MOST_ROWS, MOST_WIDE, within};
use crate::nn::tokens::START;
use crate::nn::tokens::{PAD, Tokens, check, mask, real_steps};
use crate::rng::Stream;
use crate::task::regex::model::gpu::{Packing, Unpacking, roll};
use crate::task::regex::model::gpu_training;
use crate::task::regex::model::names::*;
use candle_core::{Device, Result, Tensor, bail};
use serde::{Deserialize, Serialize};

const ATTENTIONS: [&str; 1] = [ATTENTION];

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

impl DescriberSizes {
    /// Refuses sizes that no model of this program has, before anything is made of them.
    ///
    /// # Errors
    /// When a size is zero or absurd; says which.
    pub fn check(&self) -> Result<()> {
        let DescriberSizes { characters, words, hidden, character_embedding, word_embedding } = *self;
        within("characters", characters, MOST_ROWS)?;
        within("words", words, MOST_ROWS)?;
        within("hidden", hidden, MOST_WIDE)?;
        within("character_embedding", character_embedding, MOST_WIDE)?;
        within(WORD_EMBEDDING, word_embedding, MOST_WIDE)
    }
}

/// The model: parameters and sizes.
#[derive(Clone, Debug)]
pub struct RegexDescriber {
    /// Parameters.
    pub params: Params,
    /// Sizes.
    pub sizes: DescriberSizes,
    reference_padding: bool,
    gpu: std::sync::Arc<Workspace>,
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
            embedding: Embedding::new(params, PAIR_EMBEDDING, grad)?,
            encoder: Lstm::new(params, ENCODER, grad)?,
            bridge: Linear::new(params, BRIDGE, grad)?,
            decoder: Decoder::new(params, &ATTENTIONS, grad)?,
        })
    }

    fn read(&self, pairs: &Pairs) -> Result<(Vec<Memory>, Tensor)> {
        let zero = self.encoder.zero_state(pairs.tokens.rows)?;
        let (context, state) = match &pairs.bags {
            Some(bags) => {
                let projected = bags.matmul(&self.encoder.project(self.embedding.table())?)?;
                // The rows of a bag sum to one, so the bias is counted once; projecting before averaging changes nothing.
                let gx = projected.reshape((pairs.tokens.steps, pairs.tokens.rows, projected.dim(1)?))?;
                self.encoder.run(&gx, &zero, &pairs.tokens.lengths)?
            }
            None => self.encoder.read(&self.embedding, &pairs.tokens, &zero)?,
        };
        let state = bridge(&state, &self.bridge)?;
        Ok((vec![self.decoder.attention(0).memory(&context, &pairs.tokens)?], state))
    }
}

/// A batch of J word pairs each.
struct Pairs {
    /// Symbols, J side by side.
    tokens: Tokens,
    /// On the CPU: row (t, b) holds the share of each character at position t of item b's pairs.
    bags: Option<Tensor>,
}

impl Pairs {
    fn new(items: &[Vec<Vec<u32>>], characters: usize, reference: bool, device: &Device) -> Result<Self> {
        let rows = items.len();
        let steps = items.iter().flatten().map(Vec::len).max().unwrap_or(0);
        let width = items.iter().map(Vec::len).max().unwrap_or(0);
        if rows == 0 || steps == 0 {
            bail!("an empty batch of word pairs")
        }
        let mut ids = vec![PAD; steps * rows * width];
        let mut real = Vec::with_capacity(rows);
        for (b, pairs) in items.iter().enumerate() {
            for (g, pair) in pairs.iter().enumerate() {
                check(pair, characters)?;
                for (t, &id) in pair.iter().enumerate() {
                    ids[(t * rows + b) * width + g] = id;
                }
            }
            let longest = pairs.iter().map(|p| real_steps(p)).max().unwrap_or(0);
            real.push(if reference { steps } else { longest } as u32);
        }
        let (mut bags, mut bias) = (None, None);
        if device.is_cpu() {
            let mut shares = vec![0f32; steps * rows * characters];
            for ((bag, ids), item) in shares.chunks_mut(characters).zip(ids.chunks(width)).zip((0..rows).cycle()) {
                let ids = &ids[..items[item].len()];
                let counts = |id: &&u32| reference || **id != PAD;
                let n = ids.iter().filter(counts).count();
                for &id in ids.iter().filter(counts) {
                    bag[id as usize] += 1.0 / n as f32;
                }
            }
            bags = Some(Tensor::from_vec(shares, (steps * rows, characters), device)?);
            bias = Some(mask(&real, steps, device)?);
        }
        let tokens = Tokens {
            ids: Tensor::from_vec(ids, steps * rows * width, device)?,
            steps,
            rows,
            width,
            count_padding: reference,
            lengths: Lengths::new(real.iter().map(|n| *n.max(&1)).collect(), device)?,
            real: Lengths::new(real, device)?,
            bias,
        };
        Ok(Self { tokens, bags })
    }
}

impl RegexDescriber {
    /// A model with PyTorch-like initial weights.
    pub fn new(sizes: DescriberSizes, reference_padding: bool, stream: &mut Stream, device: &Device) -> Result<Self> {
        sizes.check()?;
        let mut params = Params::new(device);
        let h = sizes.hidden;
        Embedding::init(&mut params, PAIR_EMBEDDING, sizes.characters, sizes.character_embedding, stream)?;
        Lstm::init(&mut params, ENCODER, sizes.character_embedding, h, stream)?;
        Linear::init(&mut params, BRIDGE, h, h, stream)?;
        let decoder = DecoderSizes { vocabulary: sizes.words, embedding: sizes.word_embedding, hidden: h };
        Decoder::init(&mut params, decoder, &ATTENTIONS, stream)?;
        Ok(Self { params, sizes, reference_padding, gpu: std::sync::Arc::default() })
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

    /// One step of the optimiser on [`RegexDescriber::loss`]; the loss, without history.
    pub fn step(&self, items: &[Vec<Vec<u32>>], descriptions: &[Vec<u32>], adam: &mut Adam) -> Result<Tensor> {
        if self.params.device().is_cuda() {
            return self.step_on_gpu(items, descriptions, adam);
        }
        let loss = self.loss(items, descriptions)?;
        adam.step(&loss.backward()?)?;
        Ok(loss.detach())
    }

    /// Candidate descriptions of each item: the greedy one first, then `samples` sampled ones; `None` where no END came.
    pub fn propose(
        &self,
        items: &[Vec<Vec<u32>>],
        samples: usize,
        horizon: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Vec<Option<Vec<u32>>>>> {
        if self.params.device().is_cuda() {
            return self.propose_on_gpu(items, samples, horizon, stream);
        }
        let net = Net::new(&self.params, Grad::Off)?;
        let (memories, state) = net.read(&self.pairs(items)?)?;
        let group = samples + 1;
        let state = spread(&state, group)?;
        let all = net.decoder.decode(&memories, state, group, horizon, |row| row.is_multiple_of(group), stream)?;
        Ok(all.chunks(group).map(<[_]>::to_vec).collect())
    }
}

/// The passes on a GPU, where batches of like sizes share a captured graph (`model::gpu`).
impl RegexDescriber {
    fn sizes_of(items: &[Vec<Vec<u32>>]) -> (usize, usize, usize) {
        let longest = items.iter().flatten().map(Vec::len).max().unwrap_or(0).max(2);
        let width = items.iter().map(Vec::len).max().unwrap_or(0).max(1);
        (rows(items.len()), steps(longest), width)
    }

    fn pairs_at(&self, packed: &mut Unpacking<'_>, (rows, steps, width): (usize, usize, usize)) -> Result<Pairs> {
        let tokens = packed.tokens(rows, steps, width)?;
        Ok(Pairs { tokens: Tokens { count_padding: self.reference_padding, ..tokens }, bags: None })
    }

    fn step_on_gpu(&self, items: &[Vec<Vec<u32>>], descriptions: &[Vec<u32>], adam: &mut Adam) -> Result<Tensor> {
        let device = self.params.device();
        let shape = Self::sizes_of(items);
        let outputs = steps(descriptions.iter().map(Vec::len).max().unwrap_or(0).max(2) - 1);
        let mut packing = Packing::new(self.reference_padding);
        packing.bags(items, shape.0, shape.1, shape.2, self.sizes.characters)?;
        let n = items.len();
        packing.outputs(descriptions, n, shape.0, outputs, self.sizes.words, &[(n, 1.0)])?;
        let name = format!("step {shape:?} {outputs}");
        let slot = self.gpu.put(&name, &packing.data, device)?;
        let loss = self.gpu.number(device)?;
        let training = self.gpu.training(&self.params)?;
        self.gpu.graphs.run(device, &name, || {
            let mut packed = Unpacking::new(&slot);
            let pairs = self.pairs_at(&mut packed, shape)?;
            let targets = packed.targets(shape.0, outputs, false)?;
            let mut memory = training.memory.lock().unwrap();
            let tape = Tape::new(&self.params, &mut memory, Some(&training.grads));
            gpu_training::describer(&tape, &pairs.tokens, &targets, &loss)?;
            adam.apply_from(&training.grads)
        })?;
        adam.count();
        loss.copy()
    }

    fn propose_on_gpu(
        &self,
        items: &[Vec<Vec<u32>>],
        samples: usize,
        horizon: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Vec<Option<Vec<u32>>>>> {
        let device = self.params.device();
        let shape = Self::sizes_of(items);
        let group = samples + 1;
        let mut packing = Packing::new(self.reference_padding);
        packing.bags(items, shape.0, shape.1, shape.2, self.sizes.characters)?;
        let name = format!("propose {shape:?} {group}");
        let slot = self.gpu.put(&name, &packing.data, device)?;
        let rollout = self.gpu.rollout(
            crate::nn::cuda::decode::Shape {
                rows: shape.0 * group,
                group,
                hidden: self.sizes.hidden,
                vocabulary: self.sizes.words,
                memories: vec![shape.1],
            },
            device,
        )?;
        self.gpu.graphs.run(device, &name, || {
            let net = Net::new(&self.params, Grad::Off)?;
            let (memories, state) = net.read(&self.pairs_at(&mut Unpacking::new(&slot), shape)?)?;
            rollout.begin(&state, &net.decoder.table()?, &net.decoder.sources(&memories)?, START)
        })?;
        let weights = Decoder::weights(&self.params)?;
        let steps = || self.gpu.graphs.run(device, &format!("{name} steps"), || rollout.steps(&weights));
        let greedy = |row: usize| row.is_multiple_of(group);
        let all = roll(&rollout, items.len() * group, shape.0 * group, horizon, greedy, stream, steps)?;
        let all: Vec<_> = all.into_iter().map(|r| r.ended.then_some(r.symbols)).collect();
        Ok(all.chunks(group).map(<[_]>::to_vec).collect())
    }
}
