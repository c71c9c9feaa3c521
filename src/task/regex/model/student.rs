//! The REGEX student policy π(a | s, d), and the teacher's executor π_T of the same shape: the student emits
//! characters of a regular expression, the executor characters of the output word.

use crate::nn::adam::Adam;
use crate::nn::attention::Memory;
use crate::nn::cuda::tape::Tape;
use crate::nn::cuda::workspace::{Workspace, rows, steps};
use crate::nn::decoder::{Decoder, DecoderSizes, Rolled};
use crate::nn::layers::{Embedding, Grad, Linear, Lstm, bridge};
use crate::nn::loss;
use crate::nn::params::Params;
use crate::nn::sizes::{MOST_ROWS, MOST_WIDE, within};
use crate::nn::tokens::{PAD, START, Tokens};
use crate::rng::Stream;
use crate::task::regex::model::gpu::{Packing, Unpacking, roll};
use crate::task::regex::model::gpu_training;
use crate::task::regex::model::names::*;
use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

const ATTENTIONS: [&str; 2] = [REQUEST_ATTENTION, WORD_ATTENTION];

/// Sizes of a student or executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudentSizes {
    /// Characters of words.
    pub characters: usize,
    /// Words of requests, reserve rows included.
    pub request_words: usize,
    /// Output symbols.
    pub outputs: usize,
    /// Hidden size H (paper: 512).
    pub hidden: usize,
    /// Character embedding (paper: 32), also of output symbols.
    pub character_embedding: usize,
    /// Request-word embedding (paper: 128).
    pub word_embedding: usize,
}

impl StudentSizes {
    /// Refuses sizes that no model of this program has, before anything is made of them.
    ///
    /// # Errors
    /// When a size is zero or absurd; says which.
    pub fn check(&self) -> Result<()> {
        let StudentSizes { characters, request_words, outputs, hidden, character_embedding, word_embedding } = *self;
        within("characters", characters, MOST_ROWS)?;
        within("request_words", request_words, MOST_ROWS)?;
        within("outputs", outputs, MOST_ROWS)?;
        within("hidden", hidden, MOST_WIDE)?;
        within("character_embedding", character_embedding, MOST_WIDE)?;
        within(WORD_EMBEDDING, word_embedding, MOST_WIDE)
    }
}

/// The model: parameters and sizes.
#[derive(Clone, Debug)]
pub struct RegexStudent {
    /// Parameters.
    pub params: Params,
    /// Sizes.
    pub sizes: StudentSizes,
    reference_padding: bool,
    gpu: std::sync::Arc<Workspace>,
}

/// A view of the current weights. Made anew for each pass: padding rows and summed biases are computed from them.
struct Net {
    word_embedding: Embedding,
    request_embedding: Embedding,
    word_encoder: Lstm,
    request_encoder: Lstm,
    word_bridge: Linear,
    request_bridge: Linear,
    decoder: Decoder,
}

impl Net {
    fn new(params: &Params, grad: Grad) -> Result<Self> {
        Ok(Self {
            word_embedding: Embedding::new(params, WORD_EMBEDDING, grad)?,
            request_embedding: Embedding::new(params, REQUEST_EMBEDDING, grad)?,
            word_encoder: Lstm::new(params, WORD_ENCODER, grad)?,
            request_encoder: Lstm::new(params, REQUEST_ENCODER, grad)?,
            word_bridge: Linear::new(params, WORD_BRIDGE, grad)?,
            request_bridge: Linear::new(params, REQUEST_BRIDGE, grad)?,
            decoder: Decoder::new(params, &ATTENTIONS, grad)?,
        })
    }

    /// Reads words and requests, row by row: memories (request, word) and the decoder's initial state.
    fn read(&self, words: &Tokens, requests: &Tokens) -> Result<(Vec<Memory>, Tensor)> {
        let zero = self.word_encoder.zero_state(words.rows)?;
        let (word_context, state) = self.word_encoder.read(&self.word_embedding, words, &zero)?;
        let state = bridge(&state, &self.word_bridge)?;
        let (request_context, state) = self.request_encoder.read(&self.request_embedding, requests, &state)?;
        let state = bridge(&state, &self.request_bridge)?;
        let memories = vec![
            self.decoder.attention(0).memory(&request_context, requests)?,
            self.decoder.attention(1).memory(&word_context, words)?,
        ];
        Ok((memories, state))
    }
}

impl RegexStudent {
    /// A model with PyTorch-like initial weights.
    pub fn new(sizes: StudentSizes, reference_padding: bool, stream: &mut Stream, device: &Device) -> Result<Self> {
        sizes.check()?;
        let mut params = Params::new(device);
        let h = sizes.hidden;
        Embedding::init(&mut params, WORD_EMBEDDING, sizes.characters, sizes.character_embedding, stream)?;
        Embedding::init(&mut params, REQUEST_EMBEDDING, sizes.request_words, sizes.word_embedding, stream)?;
        Lstm::init(&mut params, WORD_ENCODER, sizes.character_embedding, h, stream)?;
        Linear::init(&mut params, WORD_BRIDGE, h, h, stream)?;
        Lstm::init(&mut params, REQUEST_ENCODER, sizes.word_embedding, h, stream)?;
        Linear::init(&mut params, REQUEST_BRIDGE, h, h, stream)?;
        let decoder =
            DecoderSizes { vocabulary: sizes.outputs, embedding: sizes.character_embedding, hidden: sizes.hidden };
        Decoder::init(&mut params, decoder, &ATTENTIONS, stream)?;
        Ok(Self { params, sizes, reference_padding, gpu: std::sync::Arc::default() })
    }

    fn device(&self) -> &Device {
        self.params.device()
    }

    fn tokens(&self, sequences: &[Vec<u32>], vocabulary: usize) -> Result<Tokens> {
        Tokens::new(sequences, vocabulary, self.reference_padding, self.device())
    }

    /// Teacher-forced logits `[T · B, V]` (time-major) and the targets they are for.
    pub fn logits(&self, batch: &Batch, grad: Grad) -> Result<(Tensor, Vec<u32>)> {
        let net = Net::new(&self.params, grad)?;
        let words = self.tokens(&batch.words, self.sizes.characters)?;
        let requests = self.tokens(&batch.requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        let (inputs, targets) = Tokens::shifted(&batch.outputs, self.sizes.outputs, self.device())?;
        Ok((net.decoder.logits(&memories, &state, &inputs)?, targets))
    }

    /// −log π of the outputs, each step's mean summed over steps, within each group of rows of outputs times its share.
    pub fn loss(&self, batch: &Batch, groups: &[(usize, f32)]) -> Result<Tensor> {
        let (logits, targets) = self.logits(batch, Grad::On)?;
        let weights = loss::target_weights(&targets, batch.outputs.len(), groups);
        loss::weighted_nll(&logits, &targets, &weights)
    }

    /// One step of the optimiser on [`RegexStudent::loss`]; the loss, without history.
    pub fn step(&self, batch: &Batch, groups: &[(usize, f32)], adam: &mut Adam) -> Result<Tensor> {
        if self.device().is_cuda() {
            return self.step_on_gpu(batch, groups, adam);
        }
        let loss = self.loss(batch, groups)?;
        adam.step(&loss.backward()?)?;
        Ok(loss.detach())
    }

    /// Lets the policy act: output symbols per row (START and END removed), `None` where no END came in time.
    pub fn act(
        &self,
        words: &[Vec<u32>],
        requests: &[Vec<u32>],
        horizon: usize,
        sample: bool,
        stream: &mut Stream,
    ) -> Result<Vec<Option<Vec<u32>>>> {
        let rolled = self.roll_out(words, requests, horizon, sample, stream)?;
        Ok(rolled.into_iter().map(|r| r.ended.then_some(r.symbols)).collect())
    }

    /// As [`RegexStudent::act`], with the symbols of rows that did not come to an end as well.
    pub fn roll_out(
        &self,
        words: &[Vec<u32>],
        requests: &[Vec<u32>],
        horizon: usize,
        sample: bool,
        stream: &mut Stream,
    ) -> Result<Vec<Rolled>> {
        if self.device().is_cuda() {
            return self.act_on_gpu(words, requests, horizon, sample, stream);
        }
        let net = Net::new(&self.params, Grad::Off)?;
        let words = self.tokens(words, self.sizes.characters)?;
        let requests = self.tokens(requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        net.decoder.roll_out(&memories, state, 1, horizon, |_| !sample, stream)
    }

    /// DAgger's lesson: the decoder is fed `rolled` (START and what the policy wrote, one row each) and must answer with
    /// the batch's outputs, position by position. A roll-out shorter than the output is followed by padding, a longer
    /// one is cut.
    pub fn imitation(&self, batch: &Batch, rolled: &[Vec<u32>]) -> Fed {
        let steps = batch.outputs.iter().map(|o| o.len() - 1).max().unwrap_or(0);
        let rows = batch.outputs.len();
        let mut targets = vec![PAD; steps * rows];
        let mut inputs = Vec::with_capacity(rows);
        for (b, (output, rolled)) in batch.outputs.iter().zip(rolled).enumerate() {
            for (t, &id) in output[1..].iter().enumerate() {
                targets[t * rows + b] = id;
            }
            let mut row = rolled.clone();
            row.resize(steps, PAD);
            inputs.push(row);
        }
        let weights = loss::target_weights(&targets, rows, &[(rows, 1.0)]);
        Fed { inputs, targets, weights, entropy: Vec::new() }
    }

    /// REINFORCE's lesson from sampled actions (`actions[b]`: symbols of row b, END included where it came):
    /// −advantage · log π − entropy · H, means over the rows alive at a step, summed over steps.
    pub fn reward(&self, actions: &[Vec<u32>], advantages: &[f32], entropy: f32) -> Fed {
        let lengths: Vec<usize> = actions.iter().map(Vec::len).collect();
        let steps = lengths.iter().copied().max().unwrap_or(0);
        let rows = actions.len();
        let mut targets = vec![PAD; steps * rows];
        let mut inputs = Vec::with_capacity(rows);
        for (b, actions) in actions.iter().enumerate() {
            for (t, &id) in actions.iter().enumerate() {
                targets[t * rows + b] = id;
            }
            let mut row = vec![START];
            row.extend_from_slice(&actions[..actions.len().saturating_sub(1)]);
            row.resize(steps, PAD);
            inputs.push(row);
        }
        let weights = loss::alive_weights(&lengths, advantages, steps);
        Fed { inputs, targets, weights, entropy: loss::alive_weights(&lengths, &vec![entropy; rows], steps) }
    }

    /// Σ weight · −log p(target) − Σ entropy weight · H, where the decoder is fed whatever it is fed.
    pub fn loss_fed(&self, batch: &Batch, fed: &Fed) -> Result<Tensor> {
        let net = Net::new(&self.params, Grad::On)?;
        let words = self.tokens(&batch.words, self.sizes.characters)?;
        let requests = self.tokens(&batch.requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        // The decoder may run over its padding: nothing reads what it gives there.
        let inputs = Tokens::new(&fed.inputs, self.sizes.outputs, true, self.device())?;
        let logits = net.decoder.logits(&memories, &state, &inputs)?;
        let nll = loss::weighted_nll(&logits, &fed.targets, &fed.weights)?;
        if fed.entropy.is_empty() { Ok(nll) } else { nll - loss::weighted_entropy(&logits, &fed.entropy)? }
    }

    /// One step of the optimiser on [`RegexStudent::loss_fed`]; the loss, without history.
    pub fn step_fed(&self, batch: &Batch, fed: &Fed, adam: &mut Adam) -> Result<Tensor> {
        if self.device().is_cuda() {
            return self.step_fed_on_gpu(batch, fed, adam);
        }
        let loss = self.loss_fed(batch, fed)?;
        adam.step(&loss.backward()?)?;
        Ok(loss.detach())
    }

    /// log π of each row's output, on the CPU.
    pub fn log_likelihoods(&self, batch: &Batch) -> Result<Vec<f32>> {
        let (logits, targets) = self.logits(batch, Grad::Off)?;
        let rows = batch.outputs.len();
        let log_probabilities = candle_nn::ops::log_softmax(&logits, 1)?.to_vec2::<f32>()?;
        let mut sums = vec![0.0; rows];
        for (at, (target, log)) in targets.iter().zip(&log_probabilities).enumerate() {
            if *target != PAD {
                sums[at % rows] += log[*target as usize];
            }
        }
        Ok(sums)
    }

    /// For each row, whether acting greedily would give exactly its output.
    pub fn reproduces(&self, batch: &Batch) -> Result<Vec<bool>> {
        if self.device().is_cuda() {
            return self.reproduces_on_gpu(batch);
        }
        let net = Net::new(&self.params, Grad::Off)?;
        let words = self.tokens(&batch.words, self.sizes.characters)?;
        let requests = self.tokens(&batch.requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        let (inputs, targets) = Tokens::shifted(&batch.outputs, self.sizes.outputs, self.device())?;
        net.decoder.reproduces(&memories, &state, &inputs, &targets)
    }
}

/// The passes on a GPU, where batches of like sizes share a captured graph (`model::gpu`).
impl RegexStudent {
    fn read_packed(&self, net: &Net, packed: &mut Unpacking<'_>, shape: &Shape) -> Result<(Vec<Memory>, Tensor)> {
        let words = packed.tokens(shape.reads, shape.words, 1)?;
        let requests = packed.tokens(shape.reads, shape.requests, 1)?;
        net.read(&words, &requests)
    }

    fn pack(&self, words: &[Vec<u32>], requests: &[Vec<u32>], shape: &Shape) -> Result<Packing> {
        let mut packing = Packing::new(self.reference_padding);
        packing.sequences(words, shape.reads, shape.words, self.sizes.characters)?;
        packing.sequences(requests, shape.reads, shape.requests, self.sizes.request_words)?;
        Ok(packing)
    }

    fn step_on_gpu(&self, batch: &Batch, groups: &[(usize, f32)], adam: &mut Adam) -> Result<Tensor> {
        let n = batch.outputs.len();
        let steps = longest(&batch.outputs) - 1;
        let mut targets = vec![PAD; steps * n];
        for (b, output) in batch.outputs.iter().enumerate() {
            for (t, &id) in output[1..].iter().enumerate() {
                targets[t * n + b] = id;
            }
        }
        let inputs = batch.outputs.iter().map(|o| o[..o.len() - 1].to_vec()).collect();
        let weights = loss::target_weights(&targets, n, groups);
        self.step_fed_on_gpu(batch, &Fed { inputs, targets, weights, entropy: Vec::new() }, adam)
    }

    fn step_fed_on_gpu(&self, batch: &Batch, fed: &Fed, adam: &mut Adam) -> Result<Tensor> {
        let shape = Shape {
            copies: fed.inputs.len() / batch.words.len().max(1),
            outputs: steps(fed.targets.len() / fed.inputs.len().max(1)),
            ..Shape::reading(&batch.words, &batch.requests)
        };
        let mut packing = self.pack(&batch.words, &batch.requests, &shape)?;
        packing.fed(fed, batch.words.len(), shape.reads, shape.outputs, self.sizes.outputs)?;
        let bonus = !fed.entropy.is_empty();
        let name = format!("step {shape:?} {bonus}");
        let slot = self.gpu.put(&name, &packing.data, self.device())?;
        let loss = self.gpu.number(self.device())?;
        let training = self.gpu.training(&self.params)?;
        self.gpu.graphs.run(self.device(), &name, || {
            let mut packed = Unpacking::new(&slot);
            let words = packed.tokens(shape.reads, shape.words, 1)?;
            let requests = packed.tokens(shape.reads, shape.requests, 1)?;
            let targets = packed.targets(shape.reads * shape.copies, shape.outputs, bonus)?;
            let mut memory = training.memory.lock().unwrap();
            let tape = Tape::new(&self.params, &mut memory, Some(&training.grads));
            gpu_training::student(&tape, &words, &requests, &targets, &loss)?;
            adam.apply_from(&training.grads)
        })?;
        adam.count();
        loss.copy()
    }

    fn act_on_gpu(
        &self,
        words: &[Vec<u32>],
        requests: &[Vec<u32>],
        horizon: usize,
        sample: bool,
        stream: &mut Stream,
    ) -> Result<Vec<Rolled>> {
        let shape = Shape::reading(words, requests);
        let packing = self.pack(words, requests, &shape)?;
        let name = format!("act {shape:?}");
        let slot = self.gpu.put(&name, &packing.data, self.device())?;
        let rollout = self.gpu.rollout(
            crate::nn::cuda::decode::Shape {
                rows: shape.reads,
                group: 1,
                hidden: self.sizes.hidden,
                vocabulary: self.sizes.outputs,
                memories: vec![shape.requests, shape.words],
            },
            self.device(),
        )?;
        self.gpu.graphs.run(self.device(), &name, || {
            let net = Net::new(&self.params, Grad::Off)?;
            let (memories, state) = self.read_packed(&net, &mut Unpacking::new(&slot), &shape)?;
            rollout.begin(&state, &net.decoder.table()?, &net.decoder.sources(&memories)?, START)
        })?;
        let weights = Decoder::weights(&self.params)?;
        let steps = || self.gpu.graphs.run(self.device(), &format!("{name} steps"), || rollout.steps(&weights));
        roll(&rollout, words.len(), shape.reads, horizon, |_| !sample, stream, steps)
    }

    fn reproduces_on_gpu(&self, batch: &Batch) -> Result<Vec<bool>> {
        let shape = Shape::of(batch);
        let mut packing = self.pack(&batch.words, &batch.requests, &shape)?;
        let rows = batch.words.len();
        packing.outputs(&batch.outputs, rows, shape.reads, shape.outputs, self.sizes.outputs, &[])?;
        let name = format!("check {shape:?}");
        let slot = self.gpu.put(&name, &packing.data, self.device())?;
        let same = self.gpu.flags(shape.reads, self.device())?;
        self.gpu.graphs.run(self.device(), &name, || {
            let net = Net::new(&self.params, Grad::Off)?;
            let mut packed = Unpacking::new(&slot);
            let (memories, state) = self.read_packed(&net, &mut packed, &shape)?;
            let t = packed.targets(shape.reads, shape.outputs, false)?;
            let logits = net.decoder.logits(&memories, &state, &t.inputs)?;
            crate::nn::cuda::decode::matches(&logits, &t.targets, &same)
        })?;
        Ok(crate::nn::cuda::download(&same)?[..rows].iter().map(|same| *same != 0).collect())
    }
}

/// Sizes that batches are filled up to.
#[derive(Clone, Debug)]
struct Shape {
    reads: usize,
    copies: usize,
    words: usize,
    requests: usize,
    outputs: usize,
}

impl Shape {
    fn reading(words: &[Vec<u32>], requests: &[Vec<u32>]) -> Self {
        Self {
            reads: rows(words.len()),
            copies: 1,
            words: steps(longest(words)),
            requests: steps(longest(requests)),
            outputs: 0,
        }
    }

    fn of(batch: &Batch) -> Self {
        Self {
            copies: batch.outputs.len() / batch.words.len().max(1),
            outputs: steps(longest(&batch.outputs) - 1),
            ..Self::reading(&batch.words, &batch.requests)
        }
    }
}

fn longest(sequences: &[Vec<u32>]) -> usize {
    sequences.iter().map(Vec::len).max().unwrap_or(0).max(2)
}

/// Rows of (word, request), each a sequence with START and END, and their outputs: of g times as many outputs, number
/// k·rows + i belongs to row i, so that two outputs of a request need one reading.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Words in characters.
    pub words: Vec<Vec<u32>>,
    /// Requests in words.
    pub requests: Vec<Vec<u32>>,
    /// Outputs in output symbols.
    pub outputs: Vec<Vec<u32>>,
}

impl Batch {
    /// A batch of rows (word, request, output).
    pub fn of(rows: Vec<(Vec<u32>, Vec<u32>, Vec<u32>)>) -> Self {
        let mut batch = Self::default();
        for (word, request, output) in rows {
            batch.words.push(word);
            batch.requests.push(request);
            batch.outputs.push(output);
        }
        batch
    }
}

/// Inputs and targets of the decoder, where they are not an output itself: inputs, one row each, all of one length T;
/// targets and their weights, time-major `[T · rows]`; and weights of an entropy bonus, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Fed {
    /// Inputs.
    pub inputs: Vec<Vec<u32>>,
    /// Targets.
    pub targets: Vec<u32>,
    /// Weights of −log p(target).
    pub weights: Vec<f32>,
    /// Weights of the entropy, which is subtracted; empty: no bonus.
    pub entropy: Vec<f32>,
}
