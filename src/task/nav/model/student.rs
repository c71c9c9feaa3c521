//! The NAV student policy π(a | s, d), and the teacher's executor of the same shape: a transformer that reads a request
//! once and then, at every viewpoint, looks at the 36 views, at the request and at what it did before, and scores the
//! moves.
//!
//! A step depends on the one before only through the last output, which decides where to look. Everything else is taken
//! out of the loop: the request's keys and values, the encodings of time, what the previous actions bring to the input
//! and the scores of all actions (with teacher forcing, where the actions are known), and all parts that read the same
//! vector share one product. [`Steps`] is the loop's body; it can be replaced by one of another make.

use crate::nn::adam::Adam;
use crate::nn::layers::{Embedding, Grad, Linear};
use crate::nn::loss;
use crate::nn::multihead;
use crate::nn::params::Params;
use crate::nn::steps::{Sequence, StepLinear};
use crate::nn::tokens::{END, PAD, check, real_steps};
use crate::rng::Stream;
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::blocks::{
    Among, FeedForward, OverMemory, OverSource, OverViews, Time, folded, init_attention, parts, positions, without_bias,
};
use crate::task::nav::model::names::*;
use crate::task::nav::model::similarity_memory::SimilarityMemory;
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::{Scene, Walk, Walks};
use candle_core::{D, DType, Device, Result, Tensor, bail};
use serde::{Deserialize, Serialize};

/// Words of a request that are read.
pub const REQUEST_WORDS: usize = 80;

/// How requests are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The mean over a request's positions counts the batch's padding, as in the authors' program.
    pub reference_padding: bool,
    /// Sinusoidal encodings of positions are added to the words; without them the order of words has no effect.
    pub positions: bool,
}

/// A request as the model reads it: the end symbol, then its words (80 at most) from the last to the first.
pub fn as_read(words: &[u32]) -> Vec<u32> {
    std::iter::once(END).chain(words.iter().take(REQUEST_WORDS).rev().copied()).collect()
}

/// The model: parameters, sizes, settings.
#[derive(Clone, Debug)]
pub struct NavStudent {
    /// Parameters.
    pub params: Params,
    /// Sizes.
    pub sizes: NavSizes,
    /// How requests are read.
    pub reading: Reading,
    /// Its state on a GPU.
    pub(crate) gpu: std::sync::Arc<crate::task::nav::model::gpu::Workspace>,
}

/// Lessons for the student: requests as read ([`as_read`]), B of them, and g·B walks, of which walk k·B + b belongs to
/// request b.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Requests.
    pub requests: Vec<Vec<u32>>,
    /// Observations and actions; an action is fed to the next step.
    pub walks: Vec<Walk>,
}

/// The target actions of a batch's walks and their weights. Time-major, `[S · g·B]`.
#[derive(Clone, Debug, Default)]
pub struct Lesson {
    /// Target actions.
    pub targets: Vec<u32>,
    /// Weight of −log π(target); 0 where a walk is over.
    pub weights: Vec<f32>,
    /// Weight of the entropy, taken away from the loss; empty for none.
    pub entropy: Vec<f32>,
}

impl Lesson {
    /// Likelihood of `targets` (one action a step of each walk): the mean of each step over the walks that are still
    /// going, summed over steps, within each group of walks (number, share) times its share.
    pub fn likelihood(targets: &[Vec<u32>], groups: &[(usize, f32)]) -> Self {
        let lengths: Vec<usize> = targets.iter().map(Vec::len).collect();
        let (steps, rows) = (lengths.iter().copied().max().unwrap_or(0), targets.len());
        let mut weights = vec![0f32; steps * rows];
        let mut from = 0;
        for &(size, share) in groups {
            let own = loss::alive_weights(&lengths[from..from + size], &vec![share; size], steps);
            for (row, own) in weights.chunks_mut(rows).zip(own.chunks(size)) {
                row[from..from + size].copy_from_slice(own);
            }
            from += size;
        }
        Self { targets: time_major(targets, steps), weights, entropy: Vec::new() }
    }

    /// REINFORCE: −advantage · log π(action) − bonus · H, means over the walks still going at a step, summed over
    /// steps.
    pub fn reward(actions: &[Vec<u32>], advantages: &[f32], bonus: f32) -> Self {
        let lengths: Vec<usize> = actions.iter().map(Vec::len).collect();
        let steps = lengths.iter().copied().max().unwrap_or(0);
        Self {
            targets: time_major(actions, steps),
            weights: loss::alive_weights(&lengths, advantages, steps),
            entropy: loss::alive_weights(&lengths, &vec![bonus; actions.len()], steps),
        }
    }

    /// The loss for logits `[S · g·B, A]`; a scalar.
    pub fn loss(&self, logits: &Tensor) -> Result<Tensor> {
        let nll = loss::weighted_nll(logits, &self.targets, &self.weights)?;
        if self.entropy.is_empty() { Ok(nll) } else { nll - loss::weighted_entropy(logits, &self.entropy)? }
    }
}

fn time_major(actions: &[Vec<u32>], steps: usize) -> Vec<u32> {
    let mut all = vec![0; steps * actions.len()];
    for (b, actions_b) in actions.iter().enumerate() {
        for (t, &action) in actions_b.iter().enumerate() {
            all[t * actions.len() + b] = action;
        }
    }
    all
}

impl NavStudent {
    /// Says whether the weights stay as they are from now on: on a GPU, what is made of them alone is then made once.
    pub fn settle(&self, settled: bool) {
        self.gpu.settle(settled);
    }

    /// A model with PyTorch-like initial weights.
    pub fn new(sizes: NavSizes, reading: Reading, stream: &mut Stream, device: &Device) -> Result<Self> {
        sizes.check()?;
        let mut params = Params::new(device);
        let p = &mut params;
        let NavSizes { words, hidden: h, features, direction, .. } = sizes;
        Embedding::init(p, REQUEST_EMBEDDING, words, h, stream)?;
        init_attention(p, ENCODER_ATTENTION, &sizes, stream)?;
        FeedForward::init(p, ENCODER_FORWARD, h, stream)?;
        Linear::init(p, BRIDGE, h, h, stream)?;
        Time::init(p, TIME, h, stream)?;
        OverViews::init(p, CURRENT_VIEW, &sizes, stream)?;
        Linear::init(p, TEXT_INPUT, 2 * features + direction, h, stream)?;
        init_attention(p, TEXT_MEMORY, &sizes, stream)?;
        init_attention(p, TEXT_REQUEST, &sizes, stream)?;
        FeedForward::init(p, TEXT_FORWARD, h, stream)?;
        OverViews::init(p, NEXT_VIEW, &sizes, stream)?;
        Linear::init(p, STATE_INPUT, h + features, h, stream)?;
        init_attention(p, STATE_MEMORY, &sizes, stream)?;
        FeedForward::init(p, STATE_FORWARD, h, stream)?;
        Linear::init(p, STATE_GATE, 2 * h, h, stream)?;
        Linear::init(p, PREDICTOR_STATE, h, h, stream)?;
        Linear::init(p, PREDICTOR_ACTION, features + direction, h, stream)?;
        Linear::init(p, PREDICTOR_OUTPUT, h, 1, stream)?;
        Ok(Self { params, sizes, reading, gpu: std::sync::Arc::default() })
    }

    /// Reads requests and gets ready for at most `capacity` steps of `copies` walks each, whose directions have `width`
    /// numbers.
    pub fn begin(
        &self,
        requests: &[Vec<u32>],
        copies: usize,
        capacity: usize,
        width: usize,
        grad: Grad,
    ) -> Result<Steps> {
        let (context, lengths, summary) = self.read(requests, grad)?;
        let initial = Linear::new(&self.params, BRIDGE, grad)?.forward_tanh(&summary)?;
        let initial = if copies == 1 { initial } else { Tensor::cat(&vec![initial; copies], 0)? };
        Steps::new(self, &context, &lengths, initial, capacity, width, grad)
    }

    /// The encoder: contexts `[B, L, H]`, lengths, summaries `[B, H]`.
    fn read(&self, requests: &[Vec<u32>], grad: Grad) -> Result<(Tensor, Vec<usize>, Tensor)> {
        let (rows, longest) = (requests.len(), requests.iter().map(Vec::len).max().unwrap_or(0));
        let lengths: Vec<usize> = requests.iter().map(|r| real_steps(r)).collect();
        if lengths.contains(&0) || rows == 0 {
            bail!("a request without a word")
        }
        let mut ids = vec![PAD; rows * longest];
        for (row, request) in ids.chunks_mut(longest).zip(requests) {
            check(request, self.sizes.words)?;
            row[..request.len()].copy_from_slice(request);
        }
        let (p, device, h) = (&self.params, self.params.device(), self.sizes.hidden);
        let ids = Tensor::from_vec(ids, rows * longest, device)?;
        let words = Embedding::new(p, REQUEST_EMBEDDING, grad)?.rows(&ids)?.reshape((rows, longest, h))?;
        let mut x = (words * (h as f64).sqrt())?;
        if self.reading.positions {
            x = x.broadcast_add(&positions(longest, h, device)?)?;
        }
        let x = Among::new(p, ENCODER_ATTENTION, &self.sizes, grad)?
            .forward(&x, &multihead::mask(&lengths, longest, device)?)?;
        let context = FeedForward::new(p, ENCODER_FORWARD, grad)?.forward(&x)?;
        let counted = |n: usize| if self.reading.reference_padding { longest } else { n };
        let shares = lengths
            .iter()
            .flat_map(|&n| (0..longest).map(move |i| if i < counted(n) { 1.0 / counted(n) as f32 } else { 0.0 }));
        let shares = Tensor::from_vec(shares.collect::<Vec<f32>>(), (rows, 1, longest), device)?;
        let summary = shares.matmul(&context)?.squeeze(1)?;
        Ok((context, lengths, summary))
    }

    /// Teacher-forced logits `[S · g·B, A]`, time-major.
    pub fn logits(&self, batch: &Batch, views: &ViewTable, grad: Grad) -> Result<Tensor> {
        self.logits_of(&batch.requests, &Walks::new(&batch.walks, views)?, views, grad)
    }

    /// The logits for walks that are on the device already.
    pub fn logits_of(&self, requests: &[Vec<u32>], walks: &Walks, views: &ViewTable, grad: Grad) -> Result<Tensor> {
        let (steps, rows) = (walks.steps(), walks.lengths.len());
        if requests.is_empty() || !rows.is_multiple_of(requests.len()) {
            bail!("{rows} walks for {} requests", requests.len())
        }
        let mut run = self.begin(requests, rows / requests.len(), steps, walks.scene.width()?, grad)?;
        let mut given = Sequence::new(&run.given(&walks.chosen(views)?, steps)?)?;
        let mut outputs = Vec::with_capacity(steps);
        for t in 0..steps {
            outputs.push(run.step(&given.take()?, views, &walks.places(t)?)?);
        }
        run.scores(&Tensor::cat(&outputs, 0)?, &walks.scene, views)
    }

    /// The loss of a lesson; a scalar with its history.
    pub fn loss(&self, batch: &Batch, lesson: &Lesson, views: &ViewTable) -> Result<Tensor> {
        lesson.loss(&self.logits(batch, views, Grad::On)?)
    }

    /// One step of the optimiser on [`NavStudent::loss`]; the loss, without history.
    pub fn step(&self, batch: &Batch, lesson: &Lesson, views: &ViewTable, adam: &mut Adam) -> Result<Tensor> {
        if self.params.device().is_cuda()
            && let Some(loss) = self.step_on_gpu(batch, lesson, views, adam)?
        {
            return Ok(loss);
        }
        let loss = self.loss(batch, lesson, views)?;
        adam.step(&loss.backward()?)?;
        Ok(loss.detach())
    }

    /// log π(actions | request) of each walk, summed over its steps.
    pub fn log_likelihood(&self, batch: &Batch, views: &ViewTable) -> Result<Vec<f32>> {
        let walks = Walks::new(&batch.walks, views)?;
        let logits = self.logits_of(&batch.requests, &walks, views, Grad::Off)?;
        let made = Tensor::new(walks.actions.as_slice(), logits.device())?.unsqueeze(1)?;
        let all = candle_nn::ops::log_softmax(&logits, D::Minus1)?.gather(&made, 1)?.flatten_all()?.to_vec1::<f32>()?;
        let mut sums = vec![0f32; walks.lengths.len()];
        for step in 0..walks.steps() {
            for (b, sum) in sums.iter_mut().enumerate().filter(|(b, _)| step < walks.lengths[*b]) {
                *sum += all[step * walks.lengths.len() + b];
            }
        }
        Ok(sums)
    }
}

/// A batch on its walks, step by step: the recurrent part of the model.
pub struct Steps {
    /// Encodings of time with the input's bias, `[S, H]` and `[S, H]`, of the text and the state decoder.
    text_time: Tensor,
    state_time: Tensor,
    /// The part of the input that the previous action brings.
    previous: StepLinear,
    /// Last output → query of the current view; entry of the state memory.
    from_state: StepLinear,
    current_view: OverViews,
    current_input: StepLinear,
    /// Initial state → first entry of the text memory.
    from_start: StepLinear,
    text_memory: OverMemory,
    text_request: OverSource,
    text_forward: FeedForward,
    /// Text output → query of the next view; the state decoder's input; entry of the text memory.
    from_text: StepLinear,
    next_view: OverViews,
    next_input: StepLinear,
    state_memory: OverMemory,
    state_forward: FeedForward,
    recall: SimilarityMemory,
    gate: StepLinear,
    predictor: StepLinear,
    actions: StepLinear,
    features: usize,
    width: usize,
    /// The last output, at first the initial state.
    output: Tensor,
    /// The latest entry of the text memory.
    text: Option<Tensor>,
    made: usize,
}

impl Steps {
    fn new(
        model: &NavStudent,
        context: &Tensor,
        lengths: &[usize],
        initial: Tensor,
        capacity: usize,
        width: usize,
        grad: Grad,
    ) -> Result<Self> {
        let (p, sizes, h) = (&model.params, &model.sizes, model.sizes.hidden);
        let linear = |name: &str| Linear::new(p, name, grad);
        let step = StepLinear::new;
        let (current_view, current_query) = OverViews::new(p, CURRENT_VIEW, grad)?;
        let (next_view, next_query) = OverViews::new(p, NEXT_VIEW, grad)?;
        let (text_memory, text_entry) = OverMemory::new(p, TEXT_MEMORY, sizes, capacity, grad)?;
        let (state_memory, state_entry) = OverMemory::new(p, STATE_MEMORY, sizes, capacity, grad)?;

        // The inputs' weights, in parts: [previous action; current view] and [text output; next view].
        let (text_input, state_input) = (linear(TEXT_INPUT)?, linear(STATE_INPUT)?);
        let ((text_w, text_b), (state_w, state_b)) = (text_input.parts(), state_input.parts());
        let action = sizes.features + sizes.direction;
        let zeros = Tensor::zeros(h, DType::F32, p.device())?;
        let state_in = Linear::of(state_w.narrow(1, 0, h)?, zeros);
        let time = Time::table(p, TIME, capacity, grad)?;

        // W_o·((W_h·x + b_h) ⊙ (W_a·e + b_a)) + b_o = e·W_aᵀq + q·b_a + b_o with q = W_o ⊙ (W_h·x + b_h): one product
        // gives what an action's embedding is multiplied with, and the constant. No action is ever projected.
        let (state, action_layer, out) =
            (linear(PREDICTOR_STATE)?, linear(PREDICTOR_ACTION)?, linear(PREDICTOR_OUTPUT)?);
        let ((state_w_h, state_b_h), (action_w, action_b), (out_w, out_b)) =
            (state.parts(), action_layer.parts(), out.parts());
        let query = Linear::of(state_w_h.broadcast_mul(&out_w.t()?)?, (state_b_h * out_w.squeeze(0)?)?);
        let back = Tensor::cat(&[&folded(action_w, sizes, width)?.t()?, &action_b.unsqueeze(0)?], 0)?;
        let constant = Tensor::cat(&[&Tensor::zeros(sizes.features + width, DType::F32, p.device())?, out_b], 0)?;

        Ok(Self {
            text_time: time.broadcast_add(text_b)?,
            state_time: time.broadcast_add(state_b)?,
            previous: step(without_bias(&folded(&text_w.narrow(1, 0, action)?, sizes, width)?)?),
            from_state: step(Linear::joined(&[&current_query, &state_entry])?),
            current_view,
            current_input: step(without_bias(&text_w.narrow(1, action, sizes.features)?)?),
            from_start: step(text_entry.clone()),
            text_memory,
            text_request: OverSource::new(p, TEXT_REQUEST, sizes, context, lengths, grad)?,
            text_forward: FeedForward::new(p, TEXT_FORWARD, grad)?,
            from_text: step(Linear::joined(&[&next_query, &state_in, &text_entry])?),
            next_view,
            next_input: step(without_bias(&state_w.narrow(1, h, sizes.features)?)?),
            state_memory,
            state_forward: FeedForward::new(p, STATE_FORWARD, grad)?,
            recall: SimilarityMemory::new(capacity),
            gate: step(linear(STATE_GATE)?),
            predictor: step(query),
            actions: step(Linear::of(back, constant)),
            features: sizes.features,
            width,
            output: initial,
            text: None,
            made: 0,
        })
    }

    /// The input of the text decoder for the actions `[S · R, F + W]` of all `steps` steps (of which step t is fed
    /// with the one before, step 0 with none): `[S, R, H]`.
    pub fn given(&self, chosen: &Tensor, steps: usize) -> Result<Tensor> {
        let rows = chosen.dim(0)? / steps;
        let none = Tensor::zeros((rows, chosen.dim(1)?), DType::F32, chosen.device())?;
        let before = Tensor::cat(&[&none, &chosen.narrow(0, 0, (steps - 1) * rows)?], 0)?;
        let brought = self.previous.forward(&before)?.reshape((steps, rows, ()))?;
        brought.broadcast_add(&self.text_time.narrow(0, 0, steps)?.unsqueeze(1)?)
    }

    /// The input of the next step alone, whose previous actions are `chosen` `[R, F + W]`: `[R, H]`.
    pub fn given_next(&self, chosen: &Tensor) -> Result<Tensor> {
        self.previous.forward(chosen)?.broadcast_add(&self.text_time.narrow(0, self.made, 1)?)
    }

    /// The next step at `places` `[R]`, given what [`Steps::given`] says: the output, `[R, H]`.
    pub fn step(&mut self, given: &Tensor, views: &ViewTable, places: &Tensor) -> Result<Tensor> {
        let t = self.made;
        self.made += 1;
        let h = self.output.dim(1)?;
        let [query, state_entry] = parts(&self.from_state.forward(&self.output)?, [h, 2 * h])?;
        let seen = self.current_view.look(&query, views, places)?;
        let x = (given + self.current_input.forward(&seen)?)?;
        let entry = match self.text.take() {
            Some(entry) => entry,
            None => self.from_start.forward(&self.output)?,
        };
        let x = self.text_memory.step(&x, &entry)?;
        let x = self.text_request.step(&x)?;
        let text = self.text_forward.forward(&x)?;

        let [query, input, entry] = parts(&self.from_text.forward(&text)?, [h, h, 2 * h])?;
        self.text = Some(entry);
        let seen = self.next_view.look(&query, views, places)?;
        let x = (input + self.next_input.forward(&seen)?)?.broadcast_add(&self.state_time.narrow(0, t, 1)?)?;
        let u = self.state_memory.step(&x, &state_entry)?;
        let u = self.state_forward.forward(&u)?;
        let recalled = self.recall.recall(&x, &self.output)?;
        let gate = candle_nn::ops::sigmoid(&self.gate.forward(&Tensor::cat(&[&u, &recalled], 1)?)?)?;
        self.output = (u - (gate * recalled)?)?;
        Ok(self.output.clone())
    }

    /// Logits `[N, A]` of the actions of `scene` for outputs `[N, H]`.
    pub fn scores(&self, outputs: &Tensor, scene: &Scene, views: &ViewTable) -> Result<Tensor> {
        let q = self.actions.forward(&self.predictor.forward(outputs)?)?;
        let by_view = views.score(&q.narrow(1, 0, self.features)?, &scene.rows)?;
        let direction = q.narrow(1, self.features, self.width)?.unsqueeze(2)?.contiguous()?;
        let by_direction = scene.directions.matmul(&direction)?.squeeze(2)?;
        let constant = q.narrow(1, self.features + self.width, 1)?;
        (by_view + by_direction)?.broadcast_add(&constant)? + &scene.bias
    }
}
