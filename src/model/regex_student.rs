//! The REGEX student policy π(a | s, d), and the teacher's executor π_T of the same shape: the student emits
//! characters of a regular expression, the executor characters of the output word.

use crate::model::decoder::{Decoder, DecoderSizes, Rolled};
use crate::nn::attention::Memory;
use crate::nn::layers::{Embedding, Grad, Linear, Lstm, bridge, lookup};
use crate::nn::loss;
use crate::nn::params::Params;
use crate::nn::tokens::{PAD, START, Tokens};
use crate::rng::Stream;
use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

const ATTENTIONS: [&str; 2] = ["request_attention", "word_attention"];

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

/// The model: parameters and sizes.
#[derive(Clone, Debug)]
pub struct RegexStudent {
    /// Parameters.
    pub params: Params,
    /// Sizes.
    pub sizes: StudentSizes,
    reference_padding: bool,
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
            word_embedding: Embedding::new(params, "word_embedding", grad)?,
            request_embedding: Embedding::new(params, "request_embedding", grad)?,
            word_encoder: Lstm::new(params, "word_encoder", grad)?,
            request_encoder: Lstm::new(params, "request_encoder", grad)?,
            word_bridge: Linear::new(params, "word_bridge", grad)?,
            request_bridge: Linear::new(params, "request_bridge", grad)?,
            decoder: Decoder::new(params, &ATTENTIONS, grad)?,
        })
    }

    /// Reads words and requests, row by row: memories (request, word) and the decoder's initial state.
    fn read(&self, words: &Tokens, requests: &Tokens) -> Result<(Vec<Memory>, Tensor)> {
        let gx = lookup(&self.word_encoder.project(self.word_embedding.table())?, words)?;
        let (word_context, state) =
            self.word_encoder.run(&gx, &self.word_encoder.zero_state(words.rows)?, &words.lengths)?;
        let state = bridge(&state, &self.word_bridge)?;
        let gx = lookup(&self.request_encoder.project(self.request_embedding.table())?, requests)?;
        let (request_context, state) = self.request_encoder.run(&gx, &state, &requests.lengths)?;
        let state = bridge(&state, &self.request_bridge)?;
        let memories = vec![
            self.decoder.attention(0).memory(&request_context, Some(&requests.bias))?,
            self.decoder.attention(1).memory(&word_context, Some(&words.bias))?,
        ];
        Ok((memories, state))
    }
}

impl RegexStudent {
    /// A model with PyTorch-like initial weights.
    pub fn new(sizes: StudentSizes, reference_padding: bool, stream: &mut Stream, device: &Device) -> Result<Self> {
        let mut params = Params::new(device);
        let h = sizes.hidden;
        Embedding::init(&mut params, "word_embedding", sizes.characters, sizes.character_embedding, stream)?;
        Embedding::init(&mut params, "request_embedding", sizes.request_words, sizes.word_embedding, stream)?;
        Lstm::init(&mut params, "word_encoder", sizes.character_embedding, h, stream)?;
        Linear::init(&mut params, "word_bridge", h, h, stream)?;
        Lstm::init(&mut params, "request_encoder", sizes.word_embedding, h, stream)?;
        Linear::init(&mut params, "request_bridge", h, h, stream)?;
        let decoder =
            DecoderSizes { vocabulary: sizes.outputs, embedding: sizes.character_embedding, hidden: sizes.hidden };
        Decoder::init(&mut params, decoder, &ATTENTIONS, stream)?;
        Ok(Self { params, sizes, reference_padding })
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

    /// −log π of the outputs, each step's mean summed over steps, within each group of rows times its share.
    pub fn loss(&self, batch: &Batch, groups: &[(usize, f32)]) -> Result<Tensor> {
        let (logits, targets) = self.logits(batch, Grad::On)?;
        let weights = loss::target_weights(&targets, batch.words.len(), groups);
        loss::weighted_nll(&logits, &targets, &weights)
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
        let net = Net::new(&self.params, Grad::Off)?;
        let words = self.tokens(words, self.sizes.characters)?;
        let requests = self.tokens(requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        net.decoder.decode(&memories, state, 1, horizon, |_| !sample, stream)
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
        let net = Net::new(&self.params, Grad::Off)?;
        let words = self.tokens(words, self.sizes.characters)?;
        let requests = self.tokens(requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        net.decoder.roll_out(&memories, state, 1, horizon, |_| !sample, stream)
    }

    /// DAgger's loss: the decoder is fed `rolled` (START and what the policy wrote, one row each) and must answer with
    /// the batch's outputs, position by position. A roll-out shorter than the output is followed by padding, a longer
    /// one is cut.
    pub fn imitation_loss(&self, batch: &Batch, rolled: &[Vec<u32>]) -> Result<Tensor> {
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
        let logits = self.logits_fed(batch, &inputs)?;
        let weights = loss::target_weights(&targets, rows, &[(rows, 1.0)]);
        loss::weighted_nll(&logits, &targets, &weights)
    }

    /// REINFORCE's loss of sampled actions (`actions[b]`: symbols of row b, END included where it came):
    /// −advantage · log π − entropy · H, means over the rows alive at a step, summed over steps.
    pub fn reward_loss(&self, batch: &Batch, actions: &[Vec<u32>], advantages: &[f32], entropy: f32) -> Result<Tensor> {
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
        let logits = self.logits_fed(batch, &inputs)?;
        let nll = loss::weighted_nll(&logits, &targets, &loss::alive_weights(&lengths, advantages, steps))?;
        let bonus = loss::weighted_entropy(&logits, &loss::alive_weights(&lengths, &vec![entropy; rows], steps))?;
        nll - bonus
    }

    /// Logits `[T · B, V]` (time-major) where the decoder is fed `inputs`, all of one length T, whatever they are.
    fn logits_fed(&self, batch: &Batch, inputs: &[Vec<u32>]) -> Result<Tensor> {
        let net = Net::new(&self.params, Grad::On)?;
        let words = self.tokens(&batch.words, self.sizes.characters)?;
        let requests = self.tokens(&batch.requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        // The decoder may run over its padding: nothing reads what it gives there.
        net.decoder.logits(&memories, &state, &Tokens::new(inputs, self.sizes.outputs, true, self.device())?)
    }

    /// For each row, whether acting greedily would give exactly its output.
    pub fn reproduces(&self, batch: &Batch) -> Result<Vec<bool>> {
        let net = Net::new(&self.params, Grad::Off)?;
        let words = self.tokens(&batch.words, self.sizes.characters)?;
        let requests = self.tokens(&batch.requests, self.sizes.request_words)?;
        let (memories, state) = net.read(&words, &requests)?;
        let (inputs, targets) = Tokens::shifted(&batch.outputs, self.sizes.outputs, self.device())?;
        net.decoder.reproduces(&memories, &state, &inputs, &targets)
    }
}

/// Rows of (word, request, output), each a sequence with START and END.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Words in characters.
    pub words: Vec<Vec<u32>>,
    /// Requests in words.
    pub requests: Vec<Vec<u32>>,
    /// Outputs in output symbols.
    pub outputs: Vec<Vec<u32>>,
}
