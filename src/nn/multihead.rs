//! Multi-head attention: all positions at once (encoders), and one query at a time over a memory that is fixed
//! ([`Source`]) or grows by one entry a step ([`Growing`]).
//!
//! Queries, keys and values of size H are cut into heads of H/heads; scores are divided by √(H/heads). A memory keeps
//! its keys and values as they were projected: nothing is projected or copied twice. Row r of the queries looks at row
//! r mod B of a memory of B rows, so that several copies of a batch share what was read once. Keys and values stand
//! side by side, `[…, 2H]`, as one product gives them.
//!
//! On the CPU a step is one node of the graph, which collects the gradient of the memory over the steps (see
//! [`crate::nn::steps`]); elsewhere it is made of plain operations, which the tests hold against the node.

use crate::nn::cpu::{add_scaled, cpu_slice, dot, for_rows, softmax, softmax_backward, with};
use crate::nn::layers::{Grad, Linear};
use crate::nn::params::Params;
use crate::nn::steps::Order;
use crate::rng::Stream;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, D, Layout, Result, Shape, Tensor, bail};
use std::sync::{Arc, Mutex};

/// Added to the scores of what must not be seen.
pub const MASKED: f32 = -1e18;

/// The four projections H → H.
#[derive(Clone, Debug)]
pub struct MultiHead {
    /// Projects queries.
    pub query: Linear,
    /// Projects keys. Its bias adds the same to all scores of a query, and so has no effect and no gradient.
    pub key: Linear,
    /// Projects values.
    pub value: Linear,
    /// Projects the heads' results side by side.
    pub output: Linear,
    heads: usize,
}

impl MultiHead {
    /// Adds `name.query`, `name.key`, `name.value`, `name.output`.
    pub fn init(params: &mut Params, name: &str, size: usize, stream: &mut Stream) -> Result<()> {
        for part in ["query", "key", "value", "output"] {
            Linear::init(params, &format!("{name}.{part}"), size, size, stream)?;
        }
        Ok(())
    }

    /// The layer over existing parameters.
    pub fn new(params: &Params, name: &str, heads: usize, grad: Grad) -> Result<Self> {
        let part = |part: &str| Linear::new(params, &format!("{name}.{part}"), grad);
        let made =
            Self { query: part("query")?, key: part("key")?, value: part("value")?, output: part("output")?, heads };
        let size = made.output.parts().1.dim(0)?;
        if heads == 0 || !size.is_multiple_of(heads) {
            bail!("a hidden size of {size} cannot be cut into {heads} heads")
        }
        Ok(made)
    }

    /// Every position of `x` `[B, L, H]` attends over all of them; `bias` `[B, 1, 1, L]` is added to scores.
    pub fn among(&self, x: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let (rows, length, size) = x.dims3()?;
        let (q, k, v) = (self.query.forward(x)?, self.key.forward(x)?, self.value.forward(x)?);
        let split = |t: Tensor| t.reshape((rows, length, self.heads, size / self.heads))?.transpose(1, 2)?.contiguous();
        let q = (split(q)? * scale(size / self.heads))?;
        let scores = q.matmul(&split(k)?.t()?.contiguous()?)?.broadcast_add(bias)?;
        let seen = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&split(v)?)?;
        self.output.forward(&seen.transpose(1, 2)?.reshape((rows, length, size))?)
    }

    /// The projection H → 2H of keys and values.
    pub fn entries(&self) -> Result<Linear> {
        Linear::joined(&[&self.key, &self.value])
    }

    /// A fixed memory of `x` `[B, L, H]`, of which row b has `lengths[b]` real positions.
    pub fn source(&self, x: &Tensor, lengths: &[usize]) -> Result<Source> {
        Source::new(self.entries()?.forward(x)?, lengths, self.heads)
    }

    /// An empty growing memory of at most `capacity` entries a row.
    pub fn growing(&self, capacity: usize) -> Growing {
        Growing::new(self.heads, capacity)
    }
}

fn scale(head: usize) -> f64 {
    1.0 / (head as f64).sqrt()
}

/// `[B, 1, 1, L]` (0 at real positions, [`MASKED`] beyond) for [`MultiHead::among`].
pub fn mask(lengths: &[usize], longest: usize, device: &candle_core::Device) -> Result<Tensor> {
    let bias: Vec<f32> =
        lengths.iter().flat_map(|&n| (0..longest).map(move |i| if i < n { 0.0 } else { MASKED })).collect();
    Tensor::from_vec(bias, (lengths.len(), 1, 1, longest), device)
}

/// One query a row over `entries` `[B, L, 2H]` from plain operations; `bias` as for [`MultiHead::among`].
fn attend_plainly(q: &Tensor, entries: &Tensor, bias: Option<&Tensor>, heads: usize) -> Result<Tensor> {
    let (rows, size) = q.dims2()?;
    let (memories, length, _) = entries.dims3()?;
    let (copies, head) = (rows / memories, size / heads);
    // Row k·B + b becomes query k of memory b.
    let q = q.reshape((copies, memories, heads, head))?.permute((1, 2, 0, 3))?.contiguous()?;
    let split = |from: usize| {
        let part = entries.narrow(2, from, size)?.contiguous()?.reshape((memories, length, heads, head))?;
        part.transpose(1, 2)?.contiguous()
    };
    let scores = (q * scale(head))?.matmul(&split(0)?.t()?.contiguous()?)?;
    let scores = match bias {
        Some(bias) => scores.broadcast_add(bias)?,
        None => scores,
    };
    let seen = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&split(size)?)?;
    seen.permute((2, 0, 1, 3))?.reshape((rows, size))
}

/// A memory that is there from the beginning: what was read of a request or of a path.
#[derive(Debug)]
pub struct Source {
    entries: Tensor,
    lengths: Arc<Vec<usize>>,
    bias: Option<Tensor>,
    heads: usize,
    shared: Arc<Mutex<Shared>>,
    steps: usize,
    last: Option<Tensor>,
}

impl Source {
    /// Over projected keys and values `[B, L, 2H]`.
    fn new(entries: Tensor, lengths: &[usize], heads: usize) -> Result<Self> {
        let (rows, longest, _) = entries.dims3()?;
        if lengths.len() != rows || lengths.iter().any(|&n| n == 0 || n > longest) {
            bail!("lengths {lengths:?} of a memory of {rows} rows with {longest} places")
        }
        let bias = if entries.device().is_cpu() { None } else { Some(mask(lengths, longest, entries.device())?) };
        Ok(Self {
            entries: entries.contiguous()?,
            lengths: Arc::new(lengths.to_vec()),
            bias,
            heads,
            shared: Arc::default(),
            steps: 0,
            last: None,
        })
    }

    /// The next step's queries `[g·B, H]`, projected: what was seen, `[g·B, H]`, before the output's projection.
    pub fn attend(&mut self, q: &Tensor) -> Result<Tensor> {
        if let Some(bias) = &self.bias {
            return attend_plainly(q, &self.entries, Some(bias), self.heads);
        }
        let node = Look {
            t: self.steps,
            heads: self.heads,
            over: Over::Source(self.entries.detach(), self.lengths.clone()),
            shared: self.shared.clone(),
            keep: q.track_op() || self.entries.track_op(),
            weights: Mutex::default(),
        };
        let q = q.contiguous()?;
        let seen = match &self.last {
            None => q.apply_op2(&self.entries, node)?,
            Some(last) => q.apply_op2(last, node)?,
        };
        self.steps += 1;
        self.last = Some(seen.clone());
        Ok(seen)
    }
}

/// A memory that every step adds an entry to before it looks: a decoder's own earlier outputs.
#[derive(Debug)]
pub struct Growing {
    heads: usize,
    capacity: usize,
    shared: Arc<Mutex<Shared>>,
    steps: usize,
    last: Option<Tensor>,
    /// All entries, where they are not in `shared`.
    entries: Vec<Tensor>,
}

impl Growing {
    fn new(heads: usize, capacity: usize) -> Self {
        Self { heads, capacity, shared: Arc::default(), steps: 0, last: None, entries: Vec::new() }
    }

    /// The next step: the entry's projected key and value `[R, 2H]` are added, then queries `[R, H]` attend over all
    /// entries.
    pub fn attend(&mut self, q: &Tensor, entry: &Tensor) -> Result<Tensor> {
        if self.steps >= self.capacity {
            bail!("a memory of {} entries is full", self.capacity)
        }
        if !q.device().is_cpu() {
            self.steps += 1;
            self.entries.push(entry.clone());
            return attend_plainly(q, &Tensor::stack(&self.entries, 1)?, None, self.heads);
        }
        let node = Look {
            t: self.steps,
            heads: self.heads,
            over: Over::Growing(self.capacity),
            shared: self.shared.clone(),
            keep: q.track_op() || entry.track_op(),
            weights: Mutex::default(),
        };
        let (q, entry) = (q.contiguous()?, entry.contiguous()?);
        let seen = match &self.last {
            None => q.apply_op2(&entry, node)?,
            Some(last) => q.apply_op3(&entry, last, node)?,
        };
        self.steps += 1;
        self.last = Some(seen.clone());
        Ok(seen)
    }
}

/// The state that the steps of a memory share.
#[derive(Debug, Default)]
struct Shared {
    /// Entries of a growing memory, `[R, capacity, 2H]`.
    entries: Vec<f32>,
    order: Order,
    /// The gradient of the entries so far.
    gradient: Vec<f32>,
}

enum Over {
    /// Entries and lengths.
    Source(Tensor, Arc<Vec<usize>>),
    /// Capacity.
    Growing(usize),
}

/// The node of step `t`: (queries, entries, step before) -> what was seen. Entries are the whole of a source at the
/// first step and left out at the others; of a growing memory the new one. At the first step there is none before.
struct Look {
    t: usize,
    heads: usize,
    over: Over,
    shared: Arc<Mutex<Shared>>,
    keep: bool,
    weights: Mutex<Vec<f32>>,
}

/// Sizes of one look.
#[derive(Clone, Copy)]
struct Sizes {
    /// Queries.
    rows: usize,
    /// Rows of the memory.
    memories: usize,
    /// Places of a row of the memory.
    places: usize,
    heads: usize,
    head: usize,
}

impl Sizes {
    fn of(q: &[usize], memories: usize, places: usize, heads: usize) -> Result<Self> {
        let [rows, size] = *q else { bail!("attention: queries {q:?}") };
        if memories == 0 || !rows.is_multiple_of(memories) {
            bail!("attention: {rows} queries over a memory of {memories} rows")
        }
        Ok(Self { rows, memories, places, heads, head: size / heads })
    }

    fn size(&self) -> usize {
        self.heads * self.head
    }

    /// Numbers of a row of the memory.
    fn row(&self) -> usize {
        self.places * 2 * self.size()
    }

    /// Where the key of head `h` at place `j` of memory row `b` is.
    fn key(&self, b: usize, j: usize, h: usize) -> std::ops::Range<usize> {
        let from = b * self.row() + j * 2 * self.size() + h * self.head;
        from..from + self.head
    }

    /// Where the value is.
    fn value(&self, b: usize, j: usize, h: usize) -> std::ops::Range<usize> {
        let key = self.key(b, j, h);
        key.start + self.size()..key.end + self.size()
    }

    /// The attention results, `[rows, H]`, and the weights, `[rows, heads, places]`.
    fn look(&self, q: &[f32], entries: &[f32], length: impl Fn(usize) -> usize + Sync) -> [Vec<f32>; 2] {
        let mut seen = vec![0f32; self.rows * self.size()];
        let mut weights = vec![0f32; self.rows * self.heads * self.places];
        let scale = scale(self.head) as f32;
        let widths = [self.size(), self.heads * self.places];
        for_rows(&mut seen, &mut weights, widths, self.rows * self.row(), |r, seen, weights| {
            let b = r % self.memories;
            for h in 0..self.heads {
                let own = h * self.head..(h + 1) * self.head;
                let query = &q[r * self.size()..][own.clone()];
                let weights = &mut weights[h * self.places..][..length(b)];
                for (j, w) in weights.iter_mut().enumerate() {
                    *w = scale * dot(query, &entries[self.key(b, j, h)]);
                }
                softmax(weights);
                for (j, w) in weights.iter().enumerate() {
                    add_scaled(&mut seen[own.clone()], *w, &entries[self.value(b, j, h)]);
                }
            }
        });
        [seen, weights]
    }

    /// The gradient of the queries; that of the entries is added to `d_entries`.
    fn back(
        &self,
        [q, entries, weights, grad]: [&[f32]; 4],
        length: impl Fn(usize) -> usize + Sync,
        d_entries: &mut [f32],
    ) -> Vec<f32> {
        let scale = scale(self.head) as f32;
        let mut dq = vec![0f32; self.rows * self.size()];
        let mut d_scores = vec![0f32; weights.len()];
        let widths = [self.size(), self.heads * self.places];
        for_rows(&mut dq, &mut d_scores, widths, self.rows * self.row(), |r, dq, d_scores| {
            let b = r % self.memories;
            for h in 0..self.heads {
                let own = h * self.head..(h + 1) * self.head;
                let grad = &grad[r * self.size()..][own.clone()];
                let d_scores = &mut d_scores[h * self.places..][..length(b)];
                for (j, d) in d_scores.iter_mut().enumerate() {
                    *d = dot(grad, &entries[self.value(b, j, h)]);
                }
                softmax_backward(&weights[(r * self.heads + h) * self.places..][..length(b)], d_scores);
                for (j, d) in d_scores.iter_mut().enumerate() {
                    *d *= scale;
                    add_scaled(&mut dq[own.clone()], *d, &entries[self.key(b, j, h)]);
                }
            }
        });
        // By rows of the memory, which several queries may look at.
        let widths = [self.row(), 1];
        let mut nothing = vec![0f32; self.memories];
        for_rows(d_entries, &mut nothing, widths, self.rows * self.row(), |b, d_entries, _| {
            for r in (b..self.rows).step_by(self.memories) {
                for h in 0..self.heads {
                    let own = r * self.size() + h * self.head..r * self.size() + (h + 1) * self.head;
                    for j in 0..length(b) {
                        let at = (r * self.heads + h) * self.places + j;
                        add_scaled(&mut d_entries[self.key(0, j, h)], d_scores[at], &q[own.clone()]);
                        add_scaled(&mut d_entries[self.value(0, j, h)], weights[at], &grad[own.clone()]);
                    }
                }
            }
        });
        dq
    }
}

impl Look {
    fn forward(&self, q: &CpuStorage, lq: &Layout, given: &CpuStorage, lg: &Layout) -> Result<(CpuStorage, Shape)> {
        let query = cpu_slice(q, lq)?;
        let [seen, weights] = match &self.over {
            Over::Source(entries, lengths) => {
                let sizes = Sizes::of(lq.dims(), lengths.len(), entries.dim(1)?, self.heads)?;
                if entries.dim(2)? != 2 * sizes.size() {
                    bail!("attention: queries {:?} over entries {:?}", lq.dims(), entries.dims())
                }
                with(entries, |entries| Ok(sizes.look(query, entries, |b| lengths[b])))?
            }
            Over::Growing(capacity) => {
                let sizes = Sizes::of(lq.dims(), lq.dims()[0], *capacity, self.heads)?;
                let (entry, width) = (cpu_slice(given, lg)?, 2 * sizes.size());
                if entry.len() != sizes.rows * width {
                    bail!("attention: queries {:?}, a new entry {:?}", lq.dims(), lg.dims())
                }
                let all = &mut self.shared.lock().unwrap().entries;
                all.resize(sizes.rows * sizes.row(), 0.0);
                for (row, entry) in all.chunks_mut(sizes.row()).zip(entry.chunks(width)) {
                    row[self.t * width..][..width].copy_from_slice(entry);
                }
                sizes.look(query, all, |_| self.t + 1)
            }
        };
        if self.keep {
            *self.weights.lock().unwrap() = weights;
        }
        Ok((CpuStorage::F32(seen), lq.shape().clone()))
    }

    /// Gradients of the queries and of the entries that were an argument.
    fn backward(&self, q: &Tensor, grad: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let (weights, device) = (&*self.weights.lock().unwrap(), q.device());
        let Shared { entries: all, order, gradient } = &mut *self.shared.lock().unwrap();
        let begins = order.visit(self.t)?;
        let tensor = |values, shape: &[usize]| Tensor::from_vec(values, shape, device);
        match &self.over {
            Over::Source(entries, lengths) => {
                if begins {
                    *gradient = vec![0.0; entries.elem_count()];
                }
                let sizes = Sizes::of(q.dims(), lengths.len(), entries.dim(1)?, self.heads)?;
                let dq = with(q, |q| {
                    with(entries, |entries| {
                        with(grad, |grad| Ok(sizes.back([q, entries, weights, grad], |b| lengths[b], gradient)))
                    })
                })?;
                let last = (self.t == 0).then(|| tensor(std::mem::take(gradient), entries.dims()));
                Ok((tensor(dq, q.dims())?, last.transpose()?))
            }
            Over::Growing(capacity) => {
                if begins {
                    *gradient = vec![0.0; all.len()];
                }
                let sizes = Sizes::of(q.dims(), q.dim(0)?, *capacity, self.heads)?;
                let dq =
                    with(q, |q| with(grad, |grad| Ok(sizes.back([q, all, weights, grad], |_| self.t + 1, gradient))))?;
                // Later steps have been here: the gradient of this step's entry is complete.
                let width = 2 * sizes.size();
                let own = gradient.chunks(sizes.row()).flat_map(|row| &row[self.t * width..][..width]);
                let own = own.copied().collect::<Vec<_>>();
                Ok((tensor(dq, q.dims())?, Some(tensor(own, &[sizes.rows, width])?)))
            }
        }
    }
}

impl CustomOp2 for Look {
    fn name(&self) -> &'static str {
        "attention of a step"
    }

    fn cpu_fwd(&self, q: &CpuStorage, lq: &Layout, given: &CpuStorage, lg: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(q, lq, given, lg)
    }

    fn bwd(&self, q: &Tensor, given: &Tensor, _: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (dq, entries) = self.backward(q, grad)?;
        Ok((Some(dq), Some(entries.map_or_else(|| given.zeros_like(), Ok)?)))
    }
}

impl CustomOp3 for Look {
    fn name(&self) -> &'static str {
        "attention of a later step"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        lq: &Layout,
        entry: &CpuStorage,
        le: &Layout,
        _last: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(q, lq, entry, le)
    }

    fn bwd(
        &self,
        q: &Tensor,
        _entry: &Tensor,
        last: &Tensor,
        _seen: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (dq, entry) = self.backward(q, grad)?;
        Ok((Some(dq), entry, Some(last.zeros_like()?)))
    }
}

#[cfg(test)]
mod tests;
