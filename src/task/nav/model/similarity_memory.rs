//! The similarity memory of the state decoder: the cosine similarity of its input with each of its earlier outputs, those under
//! [`SIMILAR`] set to 0, the others made to sum to one; then the sum of the outputs weighted so. Where nothing is
//! similar the result is zero.

use crate::nn::cpu::{add_scaled, cpu_slice, dot, with};
use crate::nn::steps::Order;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Layout, Result, Shape, Tensor, bail};
use std::sync::{Arc, Mutex};

/// Similarities below this count as none.
pub const SIMILAR: f32 = 0.9;
/// Added to the sum that similarities are divided by, and the least product of norms.
const EPSILON: f32 = 1e-8;

/// A decoder's outputs so far, as they are compared with its inputs.
#[derive(Debug)]
pub struct SimilarityMemory {
    capacity: usize,
    shared: Arc<Mutex<Shared>>,
    steps: usize,
    last: Option<Tensor>,
    /// All outputs, where they are not in `shared`.
    outputs: Vec<Tensor>,
}

/// Outputs `[N, capacity, H]` and their gradient so far.
#[derive(Debug, Default)]
struct Shared {
    outputs: Vec<f32>,
    order: Order,
    gradient: Vec<f32>,
}

impl SimilarityMemory {
    /// Nothing yet; at most `capacity` outputs.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, shared: Arc::default(), steps: 0, last: None, outputs: Vec::new() }
    }

    /// The next step: the latest output `[N, H]` is added (first: the initial state), then `input` `[N, H]` is compared
    /// with all of them. Returns what is recalled, `[N, H]`.
    pub fn recall(&mut self, input: &Tensor, output: &Tensor) -> Result<Tensor> {
        if self.steps >= self.capacity {
            bail!("a memory of {} entries is full", self.capacity)
        }
        if !input.device().is_cpu() {
            self.steps += 1;
            self.outputs.push(output.clone());
            return recall_plainly(input, &Tensor::stack(&self.outputs, 1)?);
        }
        let node = Node { t: self.steps, capacity: self.capacity, shared: self.shared.clone() };
        let (input, output) = (input.contiguous()?, output.contiguous()?);
        let recalled = match &self.last {
            None => input.apply_op2(&output, node)?,
            Some(last) => input.apply_op3(&output, last, node)?,
        };
        self.steps += 1;
        self.last = Some(recalled.clone());
        Ok(recalled)
    }
}

/// The memory read by `input` `[N, H]` from `outputs` `[N, T, H]`, made of plain operations.
pub fn recall_plainly(input: &Tensor, outputs: &Tensor) -> Result<Tensor> {
    let products = outputs.matmul(&input.unsqueeze(2)?.contiguous()?)?.squeeze(2)?;
    let norms = outputs.sqr()?.sum(2)?.sqrt()?.broadcast_mul(&input.sqr()?.sum_keepdim(1)?.sqrt()?)?;
    let cosines = (products / norms.maximum(f64::from(EPSILON))?)?;
    let similar = cosines.ge(SIMILAR)?.to_dtype(DType::F32)?;
    let kept = (cosines * similar)?;
    let weights = kept.broadcast_div(&(kept.sum_keepdim(1)? + f64::from(EPSILON))?)?;
    weights.unsqueeze(1)?.matmul(outputs)?.squeeze(1)
}

/// The node (input, latest output, step before) -> what is recalled, at step `t`; at the first there is none before.
struct Node {
    t: usize,
    capacity: usize,
    shared: Arc<Mutex<Shared>>,
}

/// Cosines of one row that count, with the norms they came from: (entry, cosine, product of norms, norm of the output).
struct Found {
    entries: Vec<(usize, f32, f32, f32)>,
    norm: f32,
    total: f32,
}

fn find(input: &[f32], outputs: &[f32]) -> Found {
    let norm = dot(input, input).sqrt();
    let mut entries = Vec::new();
    for (j, output) in outputs.chunks(input.len()).enumerate() {
        let own = dot(output, output).sqrt();
        let product = (norm * own).max(EPSILON);
        let cosine = dot(input, output) / product;
        if cosine >= SIMILAR {
            entries.push((j, cosine, product, own));
        }
    }
    let total = entries.iter().map(|e| e.1).sum::<f32>() + EPSILON;
    Found { entries, norm, total }
}

impl Node {
    fn forward(
        &self,
        input: &CpuStorage,
        li: &Layout,
        output: &CpuStorage,
        lo: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, size) = li.shape().dims2()?;
        let (input, output) = (cpu_slice(input, li)?, cpu_slice(output, lo)?);
        if li.dims() != lo.dims() {
            bail!("recall: inputs {:?} and outputs {:?} do not fit", li.dims(), lo.dims())
        }
        let all = &mut self.shared.lock().unwrap().outputs;
        all.resize(rows * self.capacity * size, 0.0);
        let mut recalled = vec![0f32; rows * size];
        for (((all, output), input), recalled) in all
            .chunks_mut(self.capacity * size)
            .zip(output.chunks(size))
            .zip(input.chunks(size))
            .zip(recalled.chunks_mut(size))
        {
            all[self.t * size..][..size].copy_from_slice(output);
            let found = find(input, &all[..(self.t + 1) * size]);
            for (j, cosine, ..) in found.entries {
                add_scaled(recalled, cosine / found.total, &all[j * size..][..size]);
            }
        }
        Ok((CpuStorage::F32(recalled), li.shape().clone()))
    }

    fn backward(&self, input: &Tensor, output: &Tensor, grad: &Tensor) -> Result<(Tensor, Tensor)> {
        let size = input.dim(1)?;
        let Shared { outputs, order, gradient } = &mut *self.shared.lock().unwrap();
        if order.visit(self.t)? {
            *gradient = vec![0.0; outputs.len()];
        }
        let mut d_input = vec![0f32; input.elem_count()];
        with(input, |input| {
            with(grad, |grad| {
                for ((((all, d_all), input), grad), d_input) in outputs
                    .chunks(self.capacity * size)
                    .zip(gradient.chunks_mut(self.capacity * size))
                    .zip(input.chunks(size))
                    .zip(grad.chunks(size))
                    .zip(d_input.chunks_mut(size))
                {
                    let found = find(input, &all[..(self.t + 1) * size]);
                    // weight_j = c_j / total; dL/dweight_j = grad · output_j.
                    let gains: Vec<f32> = found.entries.iter().map(|e| dot(grad, &all[e.0 * size..][..size])).collect();
                    let mean: f32 = found.entries.iter().zip(&gains).map(|(e, g)| e.1 * g).sum::<f32>() / found.total;
                    for (&(j, cosine, product, own), gain) in found.entries.iter().zip(&gains) {
                        let output = &all[j * size..][..size];
                        let d_output = &mut d_all[j * size..][..size];
                        add_scaled(d_output, cosine / found.total, grad);
                        let d_cosine = (gain - mean) / found.total;
                        add_scaled(d_input, d_cosine / product, output);
                        add_scaled(d_output, d_cosine / product, input);
                        // A product of norms that was raised to the least one does not change with them.
                        if product > EPSILON {
                            add_scaled(d_input, -d_cosine * cosine / (found.norm * found.norm), input);
                            add_scaled(d_output, -d_cosine * cosine / (own * own), output);
                        }
                    }
                }
                Ok(())
            })
        })?;
        let own = gradient.chunks(self.capacity * size).flat_map(|row| &row[self.t * size..][..size]);
        let d_output = Tensor::from_vec(own.copied().collect::<Vec<_>>(), output.shape(), output.device())?;
        Ok((Tensor::from_vec(d_input, input.shape(), input.device())?, d_output))
    }
}

impl CustomOp2 for Node {
    fn name(&self) -> &'static str {
        "recall"
    }

    fn cpu_fwd(
        &self,
        input: &CpuStorage,
        li: &Layout,
        output: &CpuStorage,
        lo: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(input, li, output, lo)
    }

    fn bwd(
        &self,
        input: &Tensor,
        output: &Tensor,
        _recalled: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (d_input, d_output) = self.backward(input, output, grad)?;
        Ok((Some(d_input), Some(d_output)))
    }
}

impl CustomOp3 for Node {
    fn name(&self) -> &'static str {
        "recall of a later step"
    }

    fn cpu_fwd(
        &self,
        input: &CpuStorage,
        li: &Layout,
        output: &CpuStorage,
        lo: &Layout,
        _last: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(input, li, output, lo)
    }

    fn bwd(
        &self,
        input: &Tensor,
        output: &Tensor,
        last: &Tensor,
        _recalled: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (d_input, d_output) = self.backward(input, output, grad)?;
        Ok((Some(d_input), Some(d_output), Some(last.zeros_like()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::init::uniform;
    use crate::rng::stream;
    use candle_core::{Device, Var};

    #[test]
    fn only_what_is_similar_is_recalled() {
        let t = |v: &[f32]| Tensor::from_slice(v, (1, 2), &Device::Cpu).unwrap();
        let mut memory = SimilarityMemory::new(3);
        let row = |t: Tensor| t.to_vec2::<f32>().unwrap().remove(0);
        // At right angles: nothing. The same direction: all of it, whatever the lengths.
        assert_eq!(row(memory.recall(&t(&[1.0, 0.0]), &t(&[0.0, 2.0])).unwrap()), [0.0, 0.0]);
        assert_eq!(row(memory.recall(&t(&[1.0, 0.0]), &t(&[5.0, 0.0])).unwrap()), [5.0, 0.0]);
        // Cosines 1 and 0.96 with (5, 0) and (24, 7): weights 1/1.96 and 0.96/1.96.
        let both = row(memory.recall(&t(&[3.0, 0.0]), &t(&[24.0, 7.0])).unwrap());
        assert!((both[0] - (5.0 + 0.96 * 24.0) / 1.96).abs() < 1e-4 && (both[1] - 0.96 * 7.0 / 1.96).abs() < 1e-4);
        assert!(memory.recall(&t(&[3.0, 0.0]), &t(&[1.0, 1.0])).is_err(), "it is full");
    }

    #[test]
    fn recalling_is_what_plain_operations_say_with_all_gradients() {
        let s = &mut stream(1, "recall", 0);
        let var = |shape: &[usize], s: &mut _| Var::from_tensor(&uniform(shape, 1.0, s).unwrap()).unwrap();
        let (first, inputs) = (var(&[5, 6], s), var(&[4, 5, 6], s));
        let run = |plain: bool| {
            let mut memory = SimilarityMemory::new(4);
            let (mut outputs, mut last) = (Vec::new(), first.as_tensor().clone());
            for t in 0..4 {
                // Near the first output, so that some weights count.
                let input = ((inputs.get(t).unwrap() * 0.3).unwrap() + (first.as_tensor() * 1.5).unwrap()).unwrap();
                outputs.push(last.clone());
                let seen = if plain {
                    recall_plainly(&input, &Tensor::stack(&outputs, 1).unwrap()).unwrap()
                } else {
                    memory.recall(&input, &last).unwrap()
                };
                last = ((seen * 1.1).unwrap() + inputs.get(t).unwrap() * 0.1).unwrap();
            }
            last
        };
        let (node, plain) = (run(false), run(true));
        let furthest =
            |a: &Tensor, b: &Tensor| (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(furthest(&node, &plain) < 1e-5);
        assert!(node.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap() > 1.0, "something is recalled");
        let loss = |t: &Tensor| t.sqr().unwrap().sum_all().unwrap();
        let (a, b) = (loss(&node).backward().unwrap(), loss(&plain).backward().unwrap());
        for v in [&first, &inputs] {
            let scale = b.get(v).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5 * scale.max(1.0));
        }
    }
}
