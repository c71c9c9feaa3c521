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
            let (keys, offsets) = (numbers(source.keys, s * b * d)?, numbers(&memory.offsets, s * b)?);
            let to = Mat::new(numbers(&memory.keys, s * b * h)?, h);
            let query = Mat::new(numbers(source.query.0, d * h)?, h);
            product(&device, (s * b, h, d), Mat::new(keys, d), query, 0.0, to, 1)?;
            let args = [
                Arg::from(keys),
                Arg::from(numbers(source.query.1, d)?),
                Arg::from(offsets),
                Arg::Int((s * b) as i32),
                Arg::Int(d as i32),
            ];
            launch(&device, "row_dots", warps(s * b), &args)?;
        }
        let state = state.contiguous()?;
        let args = [
            Arg::from(numbers(&state, 2 * rows / self.shape.group * h)?),
            Arg::from(numbers(&self.x, rows * self.width())?),
            Arg::from(numbers(&self.cells, rows * h)?),
            Arg::from(DeviceSlice::<u32>::of(&self.previous)?),
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
        let (x, c) = (numbers(&self.x, rows * width)?, numbers(&self.cells, rows * h)?);
        let previous = symbols(&self.previous, rows)?;
        let (gates, inner) = (numbers(&self.gates, rows * 4 * h)?, numbers(&self.inner, rows * h)?);
        let logits = numbers(&self.logits, rows * v)?;
        let (noise, chosen) = (numbers(&self.noise, STRIDE * rows)?, symbols(&self.symbols, STRIDE * rows)?);
        let mut attended = Vec::with_capacity(12);
        for i in 0..2 {
            match self.memories.get(i) {
                Some(m) => {
                    let s = self.shape.memories[i];
                    attended.push(Arg::from(numbers(&m.keys, s * items * h)?));
                    attended.push(Arg::from(numbers(&m.offsets, s * items)?));
                    attended.push(Arg::from(numbers(&m.values, s * items * h)?));
                    attended.push(Arg::from(symbols(&m.real, items)?));
                    attended.extend([Arg::Int(s as i32), Arg::Int(items as i32)]);
                }
                None => {
                    attended.extend([Arg::Address(Address::default()); 4]);
                    attended.extend([Arg::Int(0), Arg::Int(1)]);
                }
            }
        }
        let longest = self.shape.memories.iter().copied().max().unwrap_or(0);
        let grid = ((rows as u32, 1), 256, (4 * (h + longest)) as u32);
        let mut step = vec![
            Arg::from(numbers(&self.table, v * 4 * h)?),
            Arg::from(previous),
            Arg::from(gates),
            Arg::from(c),
            Arg::from(x),
            Arg::Int(width as i32),
            Arg::Int(h as i32),
            Arg::Int(rows as i32),
        ];
        step.extend(attended);
        for s in 0..STRIDE {
            let (state, w_hh) = (Mat::new(x, width), Mat::new(DeviceSlice::of(weights.w_hh)?, h).t());
            product(&device, (rows, 4 * h, h), state, w_hh, 0.0, Mat::new(gates, 4 * h), 1)?;
            launch(&device, "decode_step", grid, &step)?;
            let w1 = Mat::new(DeviceSlice::of(weights.hidden.0)?, width).t();
            product(&device, (rows, h, width), Mat::new(x, width), w1, 0.0, Mat::new(inner, h), 1)?;
            let bias = [
                Arg::from(inner),
                Arg::from(numbers(weights.hidden.1, h)?),
                Arg::Int(rows as i32),
                Arg::Int(h as i32),
                Arg::Int(1),
            ];
            launch(&device, "bias_act", each(rows * h), &bias)?;
            let w2 = Mat::new(DeviceSlice::of(weights.output.0)?, h).t();
            product(&device, (rows, v, h), Mat::new(inner, h), w2, 0.0, Mat::new(logits, v), 1)?;
            let pick = [
                Arg::from(logits),
                Arg::from(numbers(weights.output.1, v)?),
                Arg::from(noise.part(s * rows, rows)),
                Arg::from(chosen.part(s * rows, rows)),
                Arg::from(previous),
                Arg::Int(rows as i32),
                Arg::Int(v as i32),
            ];
            launch(&device, "pick", warps(rows), &pick)?;
        }
        Ok(())
    }
}

/// The `n` numbers of a tensor.
fn numbers(t: &Tensor, n: usize) -> Result<DeviceSlice<'_, f32>> {
    DeviceSlice::of(t)?.holding(n, "a tensor of decoding")
}

/// The `n` symbols (or counts) of a tensor.
fn symbols(t: &Tensor, n: usize) -> Result<DeviceSlice<'_, u32>> {
    DeviceSlice::of(t)?.holding(n, "a tensor of decoding")
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
    let logits = DeviceSlice::<f32>::of_storage(logits, ll)?.holding(n * v, "logits")?;
    let u = DeviceSlice::<f32>::of_storage(u, lu)?.holding(n, "draws")?;
    let args = [
        Arg::from(logits),
        Arg::Address(Address::default()),
        Arg::from(u),
        Arg::from(out.slice()),
        Arg::Address(Address::default()),
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
    let none = Arg::Address(Address::default());
    let rows = [
        Arg::from(numbers(logits, n * v)?),
        none,
        none,
        Arg::from(picked.slice()),
        none,
        Arg::Int(n as i32),
        Arg::Int(v as i32),
    ];
    launch(&device, "pick", warps(n), &rows)?;
    let args = [
        Arg::from(picked.slice()),
        Arg::from(symbols(targets, n)?),
        Arg::from(symbols(same, b)?),
        Arg::Int((n / b) as i32),
        Arg::Int(b as i32),
    ];
    launch(&device, "matches", each(b), &args)
}
