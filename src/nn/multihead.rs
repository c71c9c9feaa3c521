//! Multi-head attention: all positions at once (encoders), and one query at a time over a memory that is fixed
//! ([`Source`]) or grows by one entry a step ([`Growing`]).
//!
//! Queries, keys and values of size H are cut into heads of H/heads; scores are divided by √(H/heads). A memory keeps its
//! keys and values as they were projected: nothing is projected or copied twice. Row r of the queries looks at row r mod B
//! of a memory of B rows, so that several copies of a batch share what was read once.
//!
//! On the CPU a step is one node of the graph, which collects the gradient of the memory over the steps (see
//! [`crate::nn::steps`]); elsewhere it is made of plain operations, which the tests hold against the node.

use crate::nn::cpu::{add_scaled, cpu_slice, dot, softmax, softmax_backward, with};
use crate::nn::layers::{Grad, Linear};
use crate::nn::params::Params;
use crate::nn::steps::Order;
use crate::rng::Stream;
use candle_core::{CpuStorage, CustomOp3, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Added to the scores of what must not be seen.
pub const MASKED: f32 = -1e18;

/// The four projections H → H.
#[derive(Clone, Debug)]
pub struct MultiHead {
    /// Of queries.
    pub query: Linear,
    /// Of keys. Its bias adds the same to all scores of a query, and so has no effect and no gradient.
    pub key: Linear,
    /// Of values.
    pub value: Linear,
    /// Of the heads' results side by side.
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
        if heads == 0 || size % heads != 0 {
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

    /// A fixed memory of `x` `[B, L, H]`, of which row b has `lengths[b]` real positions.
    pub fn source(&self, x: &Tensor, lengths: &[usize]) -> Result<Source> {
        Source::new(self.key.forward(x)?, self.value.forward(x)?, lengths, self.heads)
    }

    /// An empty growing memory of at most `capacity` entries a row.
    pub fn growing(&self, capacity: usize) -> Growing {
        Growing { heads: self.heads, capacity, steps: 0, keys: Vec::new(), values: Vec::new(), shared: Arc::default() }
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

/// One query a row over keys and values `[B, L, H]` from plain operations; `bias` as for [`MultiHead::among`].
fn attend_plainly(q: &Tensor, keys: &Tensor, values: &Tensor, bias: Option<&Tensor>, heads: usize) -> Result<Tensor> {
    let (rows, size) = q.dims2()?;
    let (memories, length, _) = keys.dims3()?;
    let (copies, head) = (rows / memories, size / heads);
    // Row k·B + b becomes query k of memory b.
    let q = q.reshape((copies, memories, heads, head))?.permute((1, 2, 0, 3))?.contiguous()?;
    let split = |t: &Tensor| t.reshape((memories, length, heads, head))?.transpose(1, 2)?.contiguous();
    let scores = (q * scale(head))?.matmul(&split(keys)?.t()?.contiguous()?)?;
    let scores = match bias {
        Some(bias) => scores.broadcast_add(bias)?,
        None => scores,
    };
    let seen = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&split(values)?)?;
    seen.permute((2, 0, 1, 3))?.reshape((rows, size))
}

/// A memory that is there from the beginning: what was read of a request or of a path.
#[derive(Clone, Debug)]
pub struct Source {
    keys: Tensor,
    values: Tensor,
    lengths: Arc<Vec<usize>>,
    bias: Option<Tensor>,
    heads: usize,
    steps: usize,
    shared: Arc<Mutex<Collected>>,
}

impl Source {
    /// Over projected keys and values `[B, L, H]`.
    fn new(keys: Tensor, values: Tensor, lengths: &[usize], heads: usize) -> Result<Self> {
        let (rows, longest, _) = keys.dims3()?;
        if lengths.len() != rows || lengths.iter().any(|&n| n == 0 || n > longest) {
            bail!("lengths {lengths:?} of a memory of {rows} rows with {longest} places")
        }
        let bias = if keys.device().is_cpu() { None } else { Some(mask(lengths, longest, keys.device())?) };
        let lengths = Arc::new(lengths.to_vec());
        Ok(Self {
            keys: keys.contiguous()?,
            values: values.contiguous()?,
            lengths,
            bias,
            heads,
            steps: 0,
            shared: Arc::default(),
        })
    }

    /// Rows B.
    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// The next step's queries `[g·B, H]`, projected: what was seen, `[g·B, H]`, before the output's projection.
    pub fn attend(&mut self, q: &Tensor) -> Result<Tensor> {
        let t = self.steps;
        self.steps += 1;
        if let Some(bias) = &self.bias {
            return attend_plainly(q, &self.keys, &self.values, Some(bias), self.heads);
        }
        let node = Look {
            t,
            heads: self.heads,
            over: Over::Source { lengths: self.lengths.clone(), shared: self.shared.clone() },
            keep: q.track_op() || self.keys.track_op(),
            weights: Mutex::default(),
        };
        q.contiguous()?.apply_op3(&self.keys, &self.values, node)
    }
}

/// A memory that every step adds an entry to before it looks: a decoder's own earlier outputs.
#[derive(Clone, Debug)]
pub struct Growing {
    heads: usize,
    capacity: usize,
    steps: usize,
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
    shared: Arc<Mutex<Grown>>,
}

impl Growing {
    /// The next step: the entry's projected key and value `[R, H]` are added, then queries `[R, H]` attend over all entries.
    pub fn attend(&mut self, q: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
        let t = self.steps;
        if t >= self.capacity {
            bail!("a memory of {} entries is full", self.capacity)
        }
        self.steps += 1;
        if !q.device().is_cpu() {
            self.keys.push(key.clone());
            self.values.push(value.clone());
            let (keys, values) = (Tensor::stack(&self.keys, 1)?, Tensor::stack(&self.values, 1)?);
            return attend_plainly(q, &keys, &values, None, self.heads);
        }
        let node = Look {
            t,
            heads: self.heads,
            over: Over::Growing { capacity: self.capacity, shared: self.shared.clone() },
            keep: q.track_op() || key.track_op() || value.track_op(),
            weights: Mutex::default(),
        };
        q.contiguous()?.apply_op3(&key.contiguous()?, &value.contiguous()?, node)
    }
}

/// The gradient of a fixed memory so far.
#[derive(Debug, Default)]
struct Collected {
    order: Order,
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// A growing memory's entries, `[R, capacity, H]`, and their gradients so far.
#[derive(Debug, Default)]
struct Grown {
    keys: Vec<f32>,
    values: Vec<f32>,
    gradient: Collected,
}

enum Over {
    Source { lengths: Arc<Vec<usize>>, shared: Arc<Mutex<Collected>> },
    Growing { capacity: usize, shared: Arc<Mutex<Grown>> },
}

/// The node of step `t`: (q, keys, values) -> what was seen. Keys and values are the whole memory, or the new entry.
struct Look {
    t: usize,
    heads: usize,
    over: Over,
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
        if memories == 0 || rows % memories != 0 {
            bail!("attention: {rows} queries over a memory of {memories} rows")
        }
        Ok(Self { rows, memories, places, heads, head: size / heads })
    }

    fn size(&self) -> usize {
        self.heads * self.head
    }

    /// Rows that a thread takes at a time.
    fn task(&self) -> usize {
        (16_384 / (self.size() * self.places).max(1)).max(1)
    }

    /// Where head `h` of place `j` of memory row `b` is.
    fn at(&self, b: usize, j: usize, h: usize) -> std::ops::Range<usize> {
        let from = ((b * self.places + j) * self.heads + h) * self.head;
        from..from + self.head
    }

    /// What is seen, `[rows, H]`, and the weights, `[rows, heads, places]`.
    fn look(&self, q: &[f32], keys: &[f32], values: &[f32], length: impl Fn(usize) -> usize + Sync) -> [Vec<f32>; 2] {
        let mut seen = vec![0f32; self.rows * self.size()];
        let mut weights = vec![0f32; self.rows * self.heads * self.places];
        let scale = scale(self.head) as f32;
        seen.par_chunks_mut(self.size())
            .zip(weights.par_chunks_mut(self.heads * self.places))
            .zip(q.par_chunks(self.size()))
            .enumerate()
            .with_min_len(self.task())
            .for_each(|(r, ((seen, weights), q))| {
                let b = r % self.memories;
                for h in 0..self.heads {
                    let own = h * self.head..(h + 1) * self.head;
                    let weights = &mut weights[h * self.places..][..length(b)];
                    for (j, w) in weights.iter_mut().enumerate() {
                        *w = scale * dot(&q[own.clone()], &keys[self.at(b, j, h)]);
                    }
                    softmax(weights);
                    for (j, w) in weights.iter().enumerate() {
                        add_scaled(&mut seen[own.clone()], *w, &values[self.at(b, j, h)]);
                    }
                }
            });
        [seen, weights]
    }

    /// The gradient of the queries; those of keys and values are added to `d_keys`, `d_values`.
    fn back(
        &self,
        [q, keys, values, weights, grad]: [&[f32]; 5],
        length: impl Fn(usize) -> usize + Sync,
        d_keys: &mut [f32],
        d_values: &mut [f32],
    ) -> Vec<f32> {
        let scale = scale(self.head) as f32;
        let mut dq = vec![0f32; self.rows * self.size()];
        let mut d_scores = vec![0f32; weights.len()];
        dq.par_chunks_mut(self.size())
            .zip(d_scores.par_chunks_mut(self.heads * self.places))
            .enumerate()
            .with_min_len(self.task())
            .for_each(|(r, (dq, d_scores))| {
                let b = r % self.memories;
                for h in 0..self.heads {
                    let own = h * self.head..(h + 1) * self.head;
                    let grad = &grad[r * self.size()..][own.clone()];
                    let d_scores = &mut d_scores[h * self.places..][..length(b)];
                    for (j, d) in d_scores.iter_mut().enumerate() {
                        *d = dot(grad, &values[self.at(b, j, h)]);
                    }
                    softmax_backward(&weights[(r * self.heads + h) * self.places..][..length(b)], d_scores);
                    for (j, d) in d_scores.iter_mut().enumerate() {
                        *d *= scale;
                        add_scaled(&mut dq[own.clone()], *d, &keys[self.at(b, j, h)]);
                    }
                }
            });
        d_keys
            .par_chunks_mut(self.places * self.size())
            .zip(d_values.par_chunks_mut(self.places * self.size()))
            .enumerate()
            .with_min_len(self.task())
            .for_each(|(b, (d_keys, d_values))| {
                for r in (b..self.rows).step_by(self.memories) {
                    for h in 0..self.heads {
                        let own = r * self.size() + h * self.head..r * self.size() + (h + 1) * self.head;
                        for j in 0..length(b) {
                            let at = (r * self.heads + h) * self.places + j;
                            add_scaled(&mut d_keys[self.at(0, j, h)], d_scores[at], &q[own.clone()]);
                            add_scaled(&mut d_values[self.at(0, j, h)], weights[at], &grad[own.clone()]);
                        }
                    }
                }
            });
        dq
    }
}

impl CustomOp3 for Look {
    fn name(&self) -> &'static str {
        "attention of a step"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        lq: &Layout,
        keys: &CpuStorage,
        lk: &Layout,
        values: &CpuStorage,
        lv: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (q, keys, values) = (cpu_slice(q, lq)?, cpu_slice(keys, lk)?, cpu_slice(values, lv)?);
        if lk.dims() != lv.dims() || lk.dims().last() != lq.dims().last() {
            bail!("attention: queries {:?}, keys {:?}, values {:?} do not fit", lq.dims(), lk.dims(), lv.dims())
        }
        let [seen, weights] = match &self.over {
            Over::Source { lengths, .. } => {
                let sizes = Sizes::of(lq.dims(), lengths.len(), lk.dims()[1], self.heads)?;
                sizes.look(q, keys, values, |b| lengths[b])
            }
            Over::Growing { capacity, shared } => {
                let sizes = Sizes::of(lq.dims(), lk.dims()[0], *capacity, self.heads)?;
                let (grown, size) = (&mut *shared.lock().unwrap(), sizes.size());
                grown.keys.resize(sizes.memories * capacity * size, 0.0);
                grown.values.resize(sizes.memories * capacity * size, 0.0);
                for (whole, new) in [(&mut grown.keys, keys), (&mut grown.values, values)] {
                    for (row, new) in whole.chunks_mut(capacity * size).zip(new.chunks(size)) {
                        row[self.t * size..][..size].copy_from_slice(new);
                    }
                }
                sizes.look(q, &grown.keys, &grown.values, |_| self.t + 1)
            }
        };
        if self.keep {
            *self.weights.lock().unwrap() = weights;
        }
        Ok((CpuStorage::F32(seen), lq.shape().clone()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        _seen: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let weights = &*self.weights.lock().unwrap();
        let device = q.device();
        let (dq, d_keys, d_values) = match &self.over {
            Over::Source { lengths, shared } => {
                let collected = &mut *shared.lock().unwrap();
                collected.begin(self.t, keys.elem_count())?;
                let sizes = Sizes::of(q.dims(), lengths.len(), keys.dim(1)?, self.heads)?;
                let (d_keys, d_values) = (&mut collected.keys, &mut collected.values);
                let dq = with(q, |q| {
                    with(keys, |keys| {
                        with(values, |values| {
                            with(grad, |grad| {
                                let given = [q, keys, values, weights, grad];
                                Ok(sizes.back(given, |b| lengths[b], d_keys, d_values))
                            })
                        })
                    })
                })?;
                if self.t > 0 {
                    return Ok((Some(Tensor::from_vec(dq, q.shape(), device)?), None, None));
                }
                (dq, std::mem::take(d_keys), std::mem::take(d_values))
            }
            Over::Growing { capacity, shared } => {
                let Grown { keys: all_keys, values: all_values, gradient } = &mut *shared.lock().unwrap();
                gradient.begin(self.t, all_keys.len())?;
                let sizes = Sizes::of(q.dims(), keys.dim(0)?, *capacity, self.heads)?;
                let (d_keys, d_values) = (&mut gradient.keys, &mut gradient.values);
                let dq = with(q, |q| {
                    with(grad, |grad| {
                        let given = [q, all_keys, all_values, weights, grad];
                        Ok(sizes.back(given, |_| self.t + 1, d_keys, d_values))
                    })
                })?;
                // Later steps have been here: the gradient of this step's entry is complete.
                let own = |all: &[f32]| {
                    let rows = all.chunks(capacity * sizes.size());
                    rows.flat_map(|row| &row[self.t * sizes.size()..][..sizes.size()]).copied().collect::<Vec<_>>()
                };
                (dq, own(d_keys), own(d_values))
            }
        };
        Ok((
            Some(Tensor::from_vec(dq, q.shape(), device)?),
            Some(Tensor::from_vec(d_keys, keys.shape(), device)?),
            Some(Tensor::from_vec(d_values, values.shape(), device)?),
        ))
    }
}

impl Collected {
    /// The backward pass comes to step `t` of a memory of `n` numbers.
    fn begin(&mut self, t: usize, n: usize) -> Result<()> {
        if self.order.visit(t)? {
            self.keys = vec![0.0; n];
            self.values = vec![0.0; n];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::init::uniform;
    use crate::rng::stream;
    use candle_core::{Device, Var};

    const HEADS: usize = 2;
    const SIZE: usize = 6;

    fn var(shape: &[usize], s: &mut Stream) -> Var {
        Var::from_tensor(&uniform(shape, 1.0, s).unwrap()).unwrap()
    }

    fn furthest(a: &Tensor, b: &Tensor) -> f32 {
        (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
    }

    /// Three steps in a chain over a source of two rows, with two copies; the same from plain operations.
    #[test]
    fn a_source_gives_what_plain_operations_give_and_so_do_its_gradients() {
        let s = &mut stream(1, "source", 0);
        let (keys, values, first) = (var(&[2, 4, SIZE], s), var(&[2, 4, SIZE], s), var(&[4, SIZE], s));
        let lengths = [4, 2];
        let bias = mask(&lengths, 4, &Device::Cpu).unwrap();
        let run = |plain: bool| {
            let mut source =
                Source::new(keys.as_tensor().clone(), values.as_tensor().clone(), &lengths, HEADS).unwrap();
            let mut q = first.as_tensor().clone();
            let mut seen = Vec::new();
            for _ in 0..3 {
                q = if plain {
                    attend_plainly(&q, &keys, &values, Some(&bias), HEADS).unwrap()
                } else {
                    source.attend(&q).unwrap()
                };
                q = (q * 1.7).unwrap();
                seen.push(q.clone());
            }
            Tensor::stack(&seen, 0).unwrap()
        };
        let (node, plain) = (run(false), run(true));
        assert!(furthest(&node, &plain) < 1e-6);
        let (a, b) =
            (node.sqr().unwrap().backward().unwrap(), plain.sqr().unwrap().sum_all().unwrap().backward().unwrap());
        for v in [&keys, &values, &first] {
            assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5);
        }
        // What lies beyond the second row's length has no part.
        let d = a.get(&keys).unwrap().to_vec3::<f32>().unwrap();
        assert!(d[1][2..].iter().flatten().all(|x| *x == 0.0) && d[1][1].iter().any(|x| *x != 0.0));
    }

    #[test]
    fn a_growing_memory_gives_what_plain_operations_give_and_so_do_its_gradients() {
        let s = &mut stream(2, "growing", 0);
        let (first, key, value) = (var(&[3, SIZE], s), var(&[SIZE, SIZE], s), var(&[SIZE, SIZE], s));
        let run = |plain: bool| {
            let mut memory = Growing {
                heads: HEADS,
                capacity: 4,
                steps: 0,
                keys: Vec::new(),
                values: Vec::new(),
                shared: Arc::default(),
            };
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            let mut x = first.as_tensor().clone();
            for t in 0..4 {
                let (k, v) = (x.matmul(&key).unwrap(), x.matmul(&value).unwrap());
                let q = (&x * (1.0 + f64::from(t))).unwrap();
                x = if plain {
                    keys.push(k);
                    values.push(v);
                    let (k, v) = (Tensor::stack(&keys, 1).unwrap(), Tensor::stack(&values, 1).unwrap());
                    attend_plainly(&q, &k, &v, None, HEADS).unwrap()
                } else {
                    memory.attend(&q, &k, &v).unwrap()
                };
            }
            assert!(plain || memory.attend(&x, &x, &x).is_err(), "it is full");
            x
        };
        let (node, plain) = (run(false), run(true));
        assert!(furthest(&node, &plain) < 1e-6);
        // Twice: a second pass over the same graph starts anew.
        for _ in 0..2 {
            let loss = |t: &Tensor| t.sqr().unwrap().sum_all().unwrap();
            let (a, b) = (loss(&node).backward().unwrap(), loss(&plain).backward().unwrap());
            for v in [&first, &key, &value] {
                assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5);
            }
        }
    }
}
