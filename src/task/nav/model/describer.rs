//! The NAV describer P̃_T(d | path): a transformer that walks along a path, looking at the views of each viewpoint, and
//! then writes the description word by word.
//!
//! A path is read once, however many descriptions are written of it; a word costs one step, since the memory of the
//! words before it is kept as projected keys and values.

use crate::nn::adam::Adam;
use crate::nn::decoder::Rolled;
use crate::nn::layers::{Embedding, Grad, Linear};
use crate::nn::loss;
use crate::nn::params::Params;
use crate::nn::sample::{draws, pick};
use crate::nn::steps::{Sequence, StepLinear};
use crate::nn::tokens::{END, PAD, START, Tokens};
use crate::rng::Stream;
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::blocks::{
    FeedForward, OverMemory, OverSource, OverViews, Time, folded, init_attention, parts, without_bias,
};
use crate::task::nav::model::names::*;
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::{Walk, Walks};
use candle_core::{DType, Device, Result, Tensor, bail};

/// Words of a description that are written at most.
pub const DESCRIPTION_WORDS: usize = 50;

/// The model: parameters, sizes, setting.
#[derive(Clone, Debug)]
pub struct NavDescriber {
    /// Parameters.
    pub params: Params,
    /// Sizes; `words` are those of descriptions.
    pub sizes: NavSizes,
    /// The word decoder starts from the path encoder's output at the batch's longest path, padding included, as in the
    /// authors' program.
    pub reference_padding: bool,
    /// Its state on a GPU.
    pub(crate) gpu: std::sync::Arc<crate::task::nav::model::gpu::Workspace>,
}

/// Paths that have been read.
pub struct Paths {
    /// `[B, S, H]`: the path encoder's outputs.
    context: Tensor,
    lengths: Vec<usize>,
    /// `[B, H]`: the word decoder's initial state.
    initial: Tensor,
}

impl NavDescriber {
    /// Says whether the weights stay as they are from now on: on a GPU, what is made of them alone is then made once.
    pub fn settle(&self, settled: bool) {
        self.gpu.settle(settled);
    }

    /// A model with PyTorch-like initial weights.
    pub fn new(sizes: NavSizes, reference_padding: bool, stream: &mut Stream, device: &Device) -> Result<Self> {
        sizes.check()?;
        let mut params = Params::new(device);
        let p = &mut params;
        let NavSizes { words, hidden: h, features, direction, .. } = sizes;
        OverViews::init(p, PATH_VIEW, &sizes, stream)?;
        Linear::init(p, PATH_INPUT, 2 * features + direction, h, stream)?;
        Time::init(p, PATH_TIME, h, stream)?;
        init_attention(p, PATH_MEMORY, &sizes, stream)?;
        FeedForward::init(p, PATH_FORWARD, h, stream)?;
        Linear::init(p, BRIDGE, h, h, stream)?;
        Embedding::init(p, WORD_EMBEDDING, words, h, stream)?;
        Linear::init(p, WORD_INPUT, h, h, stream)?;
        Time::init(p, WORD_TIME, h, stream)?;
        init_attention(p, WORD_MEMORY, &sizes, stream)?;
        init_attention(p, WORD_PATH, &sizes, stream)?;
        FeedForward::init(p, WORD_FORWARD, h, stream)?;
        Linear::init(p, PREDICTOR, h, words, stream)?;
        Ok(Self { params, sizes, reference_padding, gpu: std::sync::Arc::default() })
    }

    /// Reads paths.
    pub fn read(&self, walks: &Walks, views: &ViewTable, grad: Grad) -> Result<Paths> {
        let (p, sizes, h) = (&self.params, &self.sizes, self.sizes.hidden);
        let (steps, rows) = (walks.steps(), walks.lengths.len());
        let (view, query) = OverViews::new(p, PATH_VIEW, grad)?;
        let (mut memory, entry) = OverMemory::new(p, PATH_MEMORY, sizes, steps, grad)?;
        let from_output = StepLinear::new(Linear::joined(&[&query, &entry])?);
        let forward = FeedForward::new(p, PATH_FORWARD, grad)?;
        let input = Linear::new(p, PATH_INPUT, grad)?;
        let (weight, bias) = input.parts();
        let action = sizes.features + sizes.direction;
        let current = StepLinear::new(without_bias(&weight.narrow(1, action, sizes.features)?)?);
        let brought = Linear::of(folded(&weight.narrow(1, 0, action)?, sizes, walks.scene.width()?)?, bias.clone());
        let given = brought.forward(&walks.chosen(views)?)?.reshape((steps, rows, h))?;
        let given = given.broadcast_add(&Time::table(p, PATH_TIME, steps, grad)?.unsqueeze(1)?)?;
        let mut given = Sequence::new(&given)?;
        let mut output = Tensor::zeros((rows, h), DType::F32, p.device())?;
        let mut outputs = Vec::with_capacity(steps);
        for t in 0..steps {
            let [query, entry] = parts(&from_output.forward(&output)?, [h, 2 * h])?;
            let seen = view.look(&query, views, &walks.places(t)?)?;
            let x = (given.take()? + current.forward(&seen)?)?;
            output = forward.forward(&memory.step(&x, &entry)?)?;
            outputs.push(output.clone());
        }
        let context = Tensor::stack(&outputs, 1)?;
        let last = walks.lengths.iter().enumerate().map(|(b, &n)| {
            let n = if self.reference_padding { steps } else { n };
            (b * steps + n - 1) as u32
        });
        let last = Tensor::from_vec(last.collect::<Vec<_>>(), rows, p.device())?;
        let last = context.reshape((rows * steps, h))?.index_select(&last, 0)?;
        let initial = Linear::new(p, BRIDGE, grad)?.forward_tanh(&last)?;
        Ok(Paths { context, lengths: walks.lengths.clone(), initial })
    }

    /// Teacher-forced logits `[T · B, V]` (time-major) and the targets they are for. Descriptions are wrapped in START
    /// and END.
    pub fn logits(
        &self,
        walks: &Walks,
        descriptions: &[Vec<u32>],
        views: &ViewTable,
        grad: Grad,
    ) -> Result<(Tensor, Vec<u32>)> {
        if descriptions.len() != walks.lengths.len() || descriptions.iter().any(|d| d.len() < 2) {
            bail!("{} descriptions of at least START and END for {} walks", descriptions.len(), walks.lengths.len())
        }
        let paths = self.read(walks, views, grad)?;
        let (inputs, targets) = Tokens::shifted(descriptions, self.sizes.words, self.params.device())?;
        let mut run = Words::new(self, &paths, 1, inputs.steps, grad)?;
        let x = run.table.index_select(&inputs.ids, 0)?.reshape((inputs.steps, inputs.rows, ()))?;
        let x = x.broadcast_add(&run.time.unsqueeze(1)?)?;
        let (mut queries, mut x) = (Sequence::new(&run.memory.queries(&x)?)?, Sequence::new(&x)?);
        let mut outputs = Vec::with_capacity(inputs.steps);
        for _ in 0..inputs.steps {
            outputs.push(run.step(&x.take()?, Some(&queries.take()?))?);
        }
        Ok((run.predictor.forward(&Tensor::cat(&outputs, 0)?)?, targets))
    }

    /// −log P̃_T of the descriptions, each step's mean summed over steps.
    pub fn loss(&self, walks: &[Walk], descriptions: &[Vec<u32>], views: &ViewTable) -> Result<Tensor> {
        let (logits, targets) = self.logits(&Walks::new(walks, views)?, descriptions, views, Grad::On)?;
        let weights = loss::target_weights(&targets, walks.len(), &[(walks.len(), 1.0)]);
        loss::weighted_nll(&logits, &targets, &weights)
    }

    /// One step of the optimiser on [`NavDescriber::loss`]; the loss, without history.
    pub fn step(
        &self,
        walks: &[Walk],
        descriptions: &[Vec<u32>],
        views: &ViewTable,
        adam: &mut Adam,
    ) -> Result<Tensor> {
        if self.params.device().is_cuda()
            && let Some(loss) = self.step_on_gpu(walks, descriptions, views, adam)?
        {
            return Ok(loss);
        }
        let loss = self.loss(walks, descriptions, views)?;
        adam.step(&loss.backward()?)?;
        Ok(loss.detach())
    }

    /// Candidate descriptions of each walk: the greedy one first, then `samples` sampled ones, without START and END.
    /// One that did not end within `horizon` symbols has as many words.
    pub fn propose(
        &self,
        walks: &[Walk],
        views: &ViewTable,
        samples: usize,
        horizon: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Vec<Rolled>>> {
        if self.params.device().is_cuda()
            && let Some(rolled) = self.propose_on_gpu(walks, views, samples, horizon, stream)?
        {
            return Ok(rolled);
        }
        let paths = self.read(&Walks::new(walks, views)?, views, Grad::Off)?;
        let (rows, device) = (walks.len() * (samples + 1), self.params.device());
        let draws = draws(horizon * rows, |i| i % rows < walks.len(), stream);
        let draws = Tensor::from_vec(draws, (horizon, rows), device)?;
        let mut run = Words::new(self, &paths, samples + 1, horizon, Grad::Off)?;
        let mut previous = Tensor::full(START, rows, device)?;
        let mut written: Vec<Vec<u32>> = Vec::with_capacity(horizon);
        let mut ended = vec![false; rows];
        for t in 0..horizon {
            let x = run.table.index_select(&previous, 0)?.broadcast_add(&run.time.narrow(0, t, 1)?)?;
            let output = run.step(&x, None)?;
            let logits = run.predictor.forward(&output)?.broadcast_add(&run.unspeakable)?;
            previous = pick(&logits, &draws.get(t)?)?;
            let symbols = previous.to_vec1::<u32>()?;
            ended.iter_mut().zip(&symbols).for_each(|(ended, id)| *ended |= *id == END);
            written.push(symbols);
            if ended.iter().all(|e| *e) {
                break;
            }
        }
        let rolled = |row| Rolled::of(&written, row);
        Ok((0..walks.len()).map(|b| (0..=samples).map(|k| rolled(k * walks.len() + b)).collect()).collect())
    }
}

/// Descriptions on their way, word by word: the recurrent part of the word decoder.
struct Words {
    /// `[V, H]`: what each word brings to the input, bias included.
    table: Tensor,
    /// `[T, H]`: encodings of time.
    time: Tensor,
    /// Last output → entry of the memory.
    from_output: StepLinear,
    memory: OverMemory,
    path: OverSource,
    forward: FeedForward,
    predictor: Linear,
    /// `[V]`: keeps padding and START from being written.
    unspeakable: Tensor,
    output: Tensor,
}

impl Words {
    /// Ready for `capacity` steps of `copies` descriptions of each path; row k · B + b is of path b.
    fn new(model: &NavDescriber, paths: &Paths, copies: usize, capacity: usize, grad: Grad) -> Result<Self> {
        let (p, sizes) = (&model.params, &model.sizes);
        let (memory, entry) = OverMemory::new(p, WORD_MEMORY, sizes, capacity, grad)?;
        let mut unspeakable = vec![0f32; sizes.words];
        unspeakable[PAD as usize] = -1e9;
        unspeakable[START as usize] = -1e9;
        Ok(Self {
            table: Linear::new(p, WORD_INPUT, grad)?.forward(Embedding::new(p, WORD_EMBEDDING, grad)?.table())?,
            time: Time::table(p, WORD_TIME, capacity, grad)?,
            from_output: StepLinear::new(entry),
            memory,
            path: OverSource::new(p, WORD_PATH, sizes, &paths.context, &paths.lengths, grad)?,
            forward: FeedForward::new(p, WORD_FORWARD, grad)?,
            predictor: Linear::new(p, PREDICTOR, grad)?,
            unspeakable: Tensor::new(unspeakable, p.device())?,
            output: Tensor::cat(&vec![paths.initial.clone(); copies], 0)?,
        })
    }

    /// The next step for inputs `[N, H]`, with their queries of the memory where they are there already: outputs `[N,
    /// H]`.
    fn step(&mut self, x: &Tensor, query: Option<&Tensor>) -> Result<Tensor> {
        let entry = self.from_output.forward(&self.output)?;
        let x = match query {
            Some(query) => self.memory.step_with(x, query, &entry)?,
            None => self.memory.step(x, &entry)?,
        };
        self.output = self.forward.forward(&self.path.step(&x)?)?;
        Ok(self.output.clone())
    }
}
