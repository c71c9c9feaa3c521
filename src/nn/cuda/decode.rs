//! Decoding step by step on the GPU: everything a roll-out needs lives in buffers that stay where they are, so that
//! its steps can be captured.

use super::*;
use crate::nn::lstm::Lengths;
use candle_core::Device;

/// Steps between two looks at what was decoded.
pub const STRIDE: usize = 8;

/// Sizes of a roll-out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Sequences decoded.
    pub rows: usize,
    /// Neighbouring sequences that share a row of the memories.
    pub group: usize,
    /// Hidden size H.
    pub hidden: usize,
    /// Output vocabulary V.
    pub vocabulary: usize,
    /// Steps of each memory.
    pub memories: Vec<usize>,
}

/// A memory as decoding reads it.
struct Memory {
    /// Keys times the query's weight `[S, B, H]`: h itself is then the query.
    keys: Tensor,
    /// Keys times the query's bias `[S, B]`.
    offsets: Tensor,
    /// Values `[S, B, H]`.
    values: Tensor,
    /// Real steps `[B]`.
    real: Tensor,
}

/// The weights of decoding: the recurrent weight and the predictor's two layers.
pub struct Weights<'a> {
    /// `[4H, H]`.
    pub w_hh: &'a Tensor,
    /// `[H, (1 + memories)·H]` and `[H]`.
    pub hidden: (&'a Tensor, &'a Tensor),
    /// `[V, H]` and `[V]`.
    pub output: (&'a Tensor, &'a Tensor),
}

/// A memory to begin with: keys `[S, B, D]`, values `[S, B, H]`, real steps, and the query's weight `[D, H]` and bias `[D]`.
pub struct Source<'a> {
    /// Keys.
    pub keys: &'a Tensor,
    /// Values.
    pub values: &'a Tensor,
    /// Real steps of each row.
    pub real: &'a Lengths,
    /// Weight and bias of the query's projection.
    pub query: (&'a Tensor, &'a Tensor),
}

/// The buffers of a roll-out.
pub struct Rollout {
    shape: Shape,
    /// h and the attention results, side by side: `[rows, (1 + memories)·H]`.
    x: Tensor,
    cells: Tensor,
    previous: Tensor,
    gates: Tensor,
    inner: Tensor,
    logits: Tensor,
    table: Tensor,
    memories: Vec<Memory>,
    /// Numbers to choose symbols by, `[STRIDE, rows]`.
    pub noise: Tensor,
    /// Symbols chosen, `[STRIDE, rows]` (u32).
    pub symbols: Tensor,
}

impl Rollout {
    /// Buffers for a shape.
    pub fn new(shape: Shape, device: &Device) -> Result<Self> {
        let (r, h, v) = (shape.rows, shape.hidden, shape.vocabulary);
        let zeros = |n: usize| Tensor::zeros(n, DType::F32, device);
        let items = r / shape.group;
        let memories = shape
            .memories
            .iter()
            .map(|&s| {
                Ok(Memory {
                    keys: zeros(s * items * h)?,
                    offsets: zeros(s * items)?,
                    values: zeros(s * items * h)?,
                    real: Tensor::zeros(items, DType::U32, device)?,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            x: zeros(r * (1 + memories.len()) * h)?,
            cells: zeros(r * h)?,
            previous: Tensor::zeros(r, DType::U32, device)?,
            gates: zeros(r * 4 * h)?,
            inner: zeros(r * h)?,
            logits: zeros(r * v)?,
            table: zeros(v * 4 * h)?,
            memories,
            noise: zeros(STRIDE * r)?,
            symbols: Tensor::zeros(STRIDE * r, DType::U32, device)?,
            shape,
        })
    }

    /// Begins from a state `[2, B, H]`: every row with the symbol `start`.
    pub fn begin(&self, state: &Tensor, table: &Tensor, sources: &[Source<'_>], start: u32) -> Result<()> {
        let device = device_of(&self.x)?;
        let (h, rows) = (self.shape.hidden, self.shape.rows);
        overwrite(&self.table, table)?;
        for (memory, source) in self.memories.iter().zip(sources) {
            let (s, b, d) = source.keys.dims3()?;
            overwrite(&memory.values, source.values)?;
            overwrite(&memory.real, source.real.on_device()?)?;
            let keys = at(source.keys)?;
            let to = Mat::new(at(&memory.keys)?, h);
            product(&device, (s * b, h, d), Mat::new(keys, d), Mat::new(at(source.query.0)?, h), 0.0, to, 1)?;
            let args = [
                Arg::Address(keys),
                Arg::Address(at(source.query.1)?),
                Arg::Address(at(&memory.offsets)?),
                Arg::Int((s * b) as i32),
                Arg::Int(d as i32),
            ];
            launch(&device, "row_dots", warps(s * b), &args)?;
        }
        let args = [
            Arg::Address(at(&state.contiguous()?)?),
            Arg::Address(at(&self.x)?),
            Arg::Address(at(&self.cells)?),
            Arg::Address(at(&self.previous)?),
            Arg::Int(rows as i32),
            Arg::Int(self.shape.group as i32),
            Arg::Int(h as i32),
            Arg::Int(self.width() as i32),
            Arg::Int(start as i32),
        ];
        launch(&device, "decode_init", each(rows * h), &args)
    }

    fn width(&self) -> usize {
        (1 + self.memories.len()) * self.shape.hidden
    }

    /// Makes [`STRIDE`] steps.
    pub fn steps(&self, weights: &Weights<'_>) -> Result<()> {
        let device = device_of(&self.x)?;
        let Shape { rows, hidden: h, vocabulary: v, .. } = self.shape;
        let (width, items) = (self.width(), rows / self.shape.group);
        let (x, c, previous) = (at(&self.x)?, at(&self.cells)?, at(&self.previous)?);
        let (gates, inner, logits) = (at(&self.gates)?, at(&self.inner)?, at(&self.logits)?);
        let mut attended = Vec::with_capacity(12);
        for i in 0..2 {
            match self.memories.get(i) {
                Some(m) => {
                    let steps = self.shape.memories[i] as i32;
                    attended.extend([&m.keys, &m.offsets, &m.values, &m.real].map(at).map(|a| a.map(Arg::Address)));
                    attended.extend([Ok(Arg::Int(steps)), Ok(Arg::Int(items as i32))]);
                }
                None => {
                    attended.extend((0..4).map(|_| Ok(Arg::Address(0))));
                    attended.extend([Ok(Arg::Int(0)), Ok(Arg::Int(1))]);
                }
            }
        }
        let attended: Vec<Arg> = attended.into_iter().collect::<Result<_>>()?;
        let longest = self.shape.memories.iter().copied().max().unwrap_or(0);
        let grid = ((rows as u32, 1), 256, (4 * (h + longest)) as u32);
        let mut step = vec![
            Arg::Address(at(&self.table)?),
            Arg::Address(previous),
            Arg::Address(gates),
            Arg::Address(c),
            Arg::Address(x),
            Arg::Int(width as i32),
            Arg::Int(h as i32),
            Arg::Int(rows as i32),
        ];
        step.extend(attended);
        for s in 0..STRIDE as u64 {
            let (state, w_hh) = (Mat::new(x, width), Mat::new(at(weights.w_hh)?, h).t());
            product(&device, (rows, 4 * h, h), state, w_hh, 0.0, Mat::new(gates, 4 * h), 1)?;
            launch(&device, "decode_step", grid, &step)?;
            let w1 = Mat::new(at(weights.hidden.0)?, width).t();
            product(&device, (rows, h, width), Mat::new(x, width), w1, 0.0, Mat::new(inner, h), 1)?;
            let bias = [
                Arg::Address(inner),
                Arg::Address(at(weights.hidden.1)?),
                Arg::Int(rows as i32),
                Arg::Int(h as i32),
                Arg::Int(1),
            ];
            launch(&device, "bias_act", each(rows * h), &bias)?;
            let w2 = Mat::new(at(weights.output.0)?, h).t();
            product(&device, (rows, v, h), Mat::new(inner, h), w2, 0.0, Mat::new(logits, v), 1)?;
            let offset = s * (4 * rows) as u64;
            let pick = [
                Arg::Address(logits),
                Arg::Address(at(weights.output.1)?),
                Arg::Address(at(&self.noise)? + offset),
                Arg::Address(at(&self.symbols)? + offset),
                Arg::Address(previous),
                Arg::Int(rows as i32),
                Arg::Int(v as i32),
            ];
            launch(&device, "pick", warps(rows), &pick)?;
        }
        Ok(())
    }
}

/// Next symbols of rows of logits; see [`crate::nn::sample::pick`].
pub fn pick(
    logits: &CudaStorage,
    ll: &Layout,
    u: &CudaStorage,
    lu: &Layout,
    n: usize,
    v: usize,
) -> Result<CudaStorage> {
    let device = logits.device().clone();
    let out = allocate::<u32>(&device, n)?;
    let to = out.address();
    let args = [
        Arg::Address(address(logits, ll)?),
        Arg::Address(0),
        Arg::Address(address(u, lu)?),
        Arg::Address(to),
        Arg::Address(0),
        Arg::Int(n as i32),
        Arg::Int(v as i32),
    ];
    launch(&device, "pick", warps(n), &args)?;
    Ok(out.into_storage(&device))
}

/// Whether the first largest logit of every step is the target, wherever that is no padding: `same` `[B]` (u32) from logits
/// `[T·B, V]` and targets `[T·B]`.
pub fn matches(logits: &Tensor, targets: &Tensor, same: &Tensor) -> Result<()> {
    let device = device_of(logits)?;
    let (n, v) = logits.dims2()?;
    let b = same.elem_count();
    let picked = allocate::<u32>(&device, n)?;
    let p = picked.address();
    let rows = [
        Arg::Address(at(logits)?),
        Arg::Address(0),
        Arg::Address(0),
        Arg::Address(p),
        Arg::Address(0),
        Arg::Int(n as i32),
        Arg::Int(v as i32),
    ];
    launch(&device, "pick", warps(n), &rows)?;
    let args = [
        Arg::Address(p),
        Arg::Address(at(targets)?),
        Arg::Address(at(same)?),
        Arg::Int((n / b) as i32),
        Arg::Int(b as i32),
    ];
    launch(&device, "matches", each(b), &args)
}
