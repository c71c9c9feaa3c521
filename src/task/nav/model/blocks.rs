//! Blocks of both NAV models, each LayerNorm(x + f(x)): attention, feed-forward, the encoding of time; the attention
//! over the views of a place; and the weights that meet an action's embedding.

use crate::nn::init;
use crate::nn::layers::{Grad, Linear, weight};
use crate::nn::multihead::{Growing, MultiHead, Source};
use crate::nn::norm::LayerNorm;
use crate::nn::params::Params;
use crate::nn::steps::StepLinear;
use crate::rng::Stream;
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::names::{INNER, LINEAR, NORM, OUTER, QUERY, part};
use crate::task::nav::model::views::ViewTable;
use candle_core::{DType, Device, Result, Tensor, bail};

/// Adds the parameters of an attention block: four projections and `name.norm`.
pub fn init_attention(params: &mut Params, name: &str, sizes: &NavSizes, stream: &mut Stream) -> Result<()> {
    MultiHead::init(params, name, sizes.hidden, stream)?;
    LayerNorm::init(params, &part(name, NORM), sizes.hidden)
}

/// Self-attention over all positions, as one block.
pub struct Among {
    attention: MultiHead,
    norm: LayerNorm,
}

impl Among {
    /// Over existing parameters.
    pub fn new(params: &Params, name: &str, sizes: &NavSizes, grad: Grad) -> Result<Self> {
        let norm = LayerNorm::new(params, &part(name, NORM), grad)?;
        Ok(Self { attention: MultiHead::new(params, name, sizes.heads, grad)?, norm })
    }

    /// `x` `[B, L, H]`; `bias` `[B, 1, 1, L]`.
    pub fn forward(&self, x: &Tensor, bias: &Tensor) -> Result<Tensor> {
        self.norm.forward(&(x + self.attention.among(x, bias)?)?)
    }
}

/// Attention of one step over a decoder's own earlier outputs, as one block. Entries (keys and values) come projected:
/// their projection shares a product with whatever else reads those outputs.
pub struct OverMemory {
    query: StepLinear,
    output: StepLinear,
    norm: LayerNorm,
    memory: Growing,
}

impl OverMemory {
    /// The block with an empty memory, and the projection H → 2H of its entries.
    pub fn new(params: &Params, name: &str, sizes: &NavSizes, capacity: usize, grad: Grad) -> Result<(Self, Linear)> {
        let attention = MultiHead::new(params, name, sizes.heads, grad)?;
        let (memory, entries) = (attention.growing(capacity), attention.entries()?);
        let block = Self {
            query: StepLinear::new(attention.query),
            output: StepLinear::new(attention.output),
            norm: LayerNorm::new(params, &part(name, NORM), grad)?,
            memory,
        };
        Ok((block, entries))
    }

    /// The next step for inputs `[N, H]`, with the entry `[N, 2H]` of the latest output.
    pub fn step(&mut self, x: &Tensor, entry: &Tensor) -> Result<Tensor> {
        let query = self.query.forward(x)?;
        self.step_with(x, &query, entry)
    }

    /// The queries of many steps at once, to be given to [`OverMemory::step_with`] one after the other.
    pub fn queries(&self, x: &Tensor) -> Result<Tensor> {
        self.query.forward(x)
    }

    /// [`OverMemory::step`] where the query is there already.
    pub fn step_with(&mut self, x: &Tensor, query: &Tensor, entry: &Tensor) -> Result<Tensor> {
        let seen = self.memory.attend(query, entry)?;
        self.norm.forward(&(x + self.output.forward(&seen)?)?)
    }
}

/// Attention of one step over something read before, as one block.
pub struct OverSource {
    query: StepLinear,
    output: StepLinear,
    norm: LayerNorm,
    source: Source,
}

impl OverSource {
    /// The block over `context` `[B, L, H]` with the rows' lengths.
    pub fn new(
        params: &Params,
        name: &str,
        sizes: &NavSizes,
        context: &Tensor,
        lengths: &[usize],
        grad: Grad,
    ) -> Result<Self> {
        let attention = MultiHead::new(params, name, sizes.heads, grad)?;
        let source = attention.source(context, lengths)?;
        Ok(Self {
            query: StepLinear::new(attention.query),
            output: StepLinear::new(attention.output),
            norm: LayerNorm::new(params, &part(name, NORM), grad)?,
            source,
        })
    }

    /// The next step for inputs `[g·B, H]`.
    pub fn step(&mut self, x: &Tensor) -> Result<Tensor> {
        let seen = self.source.attend(&self.query.forward(x)?)?;
        self.norm.forward(&(x + self.output.forward(&seen)?)?)
    }
}

/// Linear H → 4H, ReLU, Linear 4H → H, as one block.
pub struct FeedForward {
    inner: StepLinear,
    outer: StepLinear,
    norm: LayerNorm,
}

impl FeedForward {
    /// Adds `name.inner`, `name.outer`, `name.norm`.
    pub fn init(params: &mut Params, name: &str, size: usize, stream: &mut Stream) -> Result<()> {
        Linear::init(params, &part(name, INNER), size, 4 * size, stream)?;
        Linear::init(params, &part(name, OUTER), 4 * size, size, stream)?;
        LayerNorm::init(params, &part(name, NORM), size)
    }

    /// Over existing parameters.
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<Self> {
        let layer = |own: &str| Linear::new(params, &part(name, own), grad);
        Ok(Self {
            inner: StepLinear::with_relu(layer(INNER)?),
            outer: StepLinear::new(layer(OUTER)?),
            norm: LayerNorm::new(params, &part(name, NORM), grad)?,
        })
    }

    /// Applies it to the last dimension.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.norm.forward(&(x + self.outer.forward(&self.inner.forward(x)?)?)?)
    }
}

/// The encoding of time: the zero vector at step 0, then t ← LayerNorm(t + ReLU(Linear(t))).
pub struct Time;

impl Time {
    /// Adds `name.linear`, `name.norm`.
    pub fn init(params: &mut Params, name: &str, size: usize, stream: &mut Stream) -> Result<()> {
        Linear::init(params, &part(name, LINEAR), size, size, stream)?;
        LayerNorm::init(params, &part(name, NORM), size)
    }

    /// The encodings of steps 0 … `steps` − 1, `[steps, H]`: they depend on nothing but the weights.
    pub fn table(params: &Params, name: &str, steps: usize, grad: Grad) -> Result<Tensor> {
        let linear = StepLinear::with_relu(Linear::new(params, &part(name, LINEAR), grad)?);
        let norm = LayerNorm::new(params, &part(name, NORM), grad)?;
        let size = params.get(&format!("{name}.linear.weight"))?.dim(0)?;
        let mut all = vec![Tensor::zeros((1, size), DType::F32, params.device())?];
        // Two at least, so that the weights are part of the graph however short the batch is.
        for t in 1..steps.max(2) {
            let next = (&all[t - 1] + linear.forward(&all[t - 1])?)?;
            all.push(norm.forward(&next)?);
        }
        Tensor::cat(&all, 0)?.narrow(0, 0, steps)
    }
}

/// A Linear layer without bias: y = x·Wᵀ.
pub fn without_bias(weight: &Tensor) -> Result<Linear> {
    let zeros = Tensor::zeros(weight.dim(0)?, DType::F32, weight.device())?;
    Ok(Linear::of(weight.contiguous()?, zeros))
}

/// The attention of a state over the 36 views of a place: scores (W_h·state)·(W_v·view), the result the weighted sum of
/// the views themselves. The state is projected on into the space of views, so that no view is ever projected. W_v's
/// bias would add the same to the scores of all views; it has no effect, and is left out.
pub struct OverViews {
    back: StepLinear,
}

impl OverViews {
    /// Adds `name.query` and `name.key.weight`.
    pub fn init(params: &mut Params, name: &str, sizes: &NavSizes, stream: &mut Stream) -> Result<()> {
        Linear::init(params, &part(name, QUERY), sizes.hidden, sizes.hidden, stream)?;
        let bound = 1.0 / (sizes.features as f32).sqrt();
        let key = init::uniform(&[sizes.hidden, sizes.features], bound, stream)?;
        params.add(&format!("{name}.key.weight"), &key)
    }

    /// Over existing parameters, and the projection of queries (which shares a product with others).
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<(Self, Linear)> {
        let key = weight(params, &format!("{name}.key.weight"), grad)?;
        Ok((Self { back: StepLinear::new(without_bias(&key.t()?)?) }, Linear::new(params, &part(name, QUERY), grad)?))
    }

    /// The attention results of projected queries `[N, H]` at `places` `[N]`: `[N, F]`.
    pub fn look(&self, queries: &Tensor, views: &ViewTable, places: &Tensor) -> Result<Tensor> {
        views.look(&self.back.forward(queries)?, places)
    }
}

/// A weight `[H, F + D]` that meets action embeddings, for directions given by W numbers: `[H, F + W]`. W is D, or 4
/// where each number stands for a block of D/4.
pub fn folded(weight: &Tensor, sizes: &NavSizes, width: usize) -> Result<Tensor> {
    let (rows, columns) = weight.dims2()?;
    let direction = columns - sizes.features;
    if width == direction {
        return Ok(weight.clone());
    }
    if width == 0 || !direction.is_multiple_of(width) {
        bail!("{width} numbers of a direction whose embedding has {direction}")
    }
    let features = weight.narrow(1, 0, sizes.features)?;
    let blocks = weight.narrow(1, sizes.features, direction)?.reshape((rows, width, direction / width))?;
    Tensor::cat(&[&features, &blocks.sum(2)?], 1)
}

/// Parts of `x` `[N, …]` of the given widths, side by side in its last dimension.
pub fn parts<const K: usize>(x: &Tensor, widths: [usize; K]) -> Result<[Tensor; K]> {
    let (mut from, mut all) = (0, Vec::with_capacity(K));
    for width in widths {
        all.push(x.narrow(1, from, width)?.contiguous()?);
        from += width;
    }
    all.try_into().map_err(|_| candle_core::Error::Msg("parts of a projection".into()))
}

/// Sinusoidal encodings of positions 0 … `length` − 1, `[length, size]`: sines in the even places, cosines in the odd
/// ones, with wavelengths from 2π to 10,000 · 2π.
pub fn positions(length: usize, size: usize, device: &Device) -> Result<Tensor> {
    let value = |p: usize, i: usize| {
        let angle = p as f64 * 10_000f64.powf(-((i / 2 * 2) as f64) / size as f64);
        if i.is_multiple_of(2) { angle.sin() as f32 } else { angle.cos() as f32 }
    };
    let all: Vec<f32> = (0..length).flat_map(|p| (0..size).map(move |i| value(p, i))).collect();
    Tensor::from_vec(all, (length, size), device)
}
