//! Adam with bias correction as in PyTorch (no weight decay), one pass over each parameter, with its state saved.

use crate::nn::cpu::cpu_slice;
use crate::nn::params::Params;
use crate::nn::tokens::UNKNOWN;
use crate::protocol::Optimizer;
use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, DType, Device, InplaceOp2, Layout, Result, Tensor, bail};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// First and second moments of one parameter, on its device.
enum Moments {
    Cpu { m: Vec<f32>, v: Vec<f32> },
    Cuda { m: Tensor, v: Tensor },
}

/// `[steps, 1/(1−β1^t), 1/(1−β2^t)]` on the GPU, none on the CPU.
type Clock = Option<Tensor>;

/// The optimiser of one or more models: parameters, moments, step count.
pub struct Adam {
    params: Params,
    moments: Vec<Moments>,
    clock: Clock,
    step: u64,
    rate: f32,
}

impl Adam {
    /// An optimiser at step 0 with zero moments. `rate` is the learning rate.
    pub fn new(params: &Params, rate: f64) -> Result<Self> {
        let moments = params
            .iter()
            .map(|(_, var)| match var.device() {
                Device::Cpu => Ok(Moments::Cpu { m: vec![0.0; var.elem_count()], v: vec![0.0; var.elem_count()] }),
                Device::Cuda(_) => Ok(Moments::Cuda {
                    m: var.as_detached_tensor().zeros_like()?,
                    v: var.as_detached_tensor().zeros_like()?,
                }),
                _ => bail!("Adam runs on the CPU and on CUDA devices"),
            })
            .collect::<Result<_>>()?;
        let clock = if params.device().is_cpu() { None } else { Some(Tensor::zeros(3, DType::F32, params.device())?) };
        Ok(Self { params: params.clone(), moments, clock, step: 0, rate: rate as f32 })
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// One update of every parameter from the gradients of one backward pass. A parameter without a gradient is an
    /// error: in these models it means that a part of the graph was cut off.
    pub fn step(&mut self, grads: &GradStore) -> Result<()> {
        self.count();
        self.apply(grads)
    }

    /// Counts a step without making it: the step itself is one that [`Adam::apply`] has captured on the device, which
    /// keeps its own count.
    pub fn count(&mut self) {
        self.step += 1;
    }

    /// The step itself. On a GPU it only enqueues work, so that it can be captured.
    pub fn apply(&mut self, grads: &GradStore) -> Result<()> {
        // The corrections in f64, as 1 − 0.999^t loses its digits in f32.
        let c1 = (1.0 / (1.0 - f64::from(BETA1).powf(self.step as f64))) as f32;
        let c2 = (1.0 / (1.0 - f64::from(BETA2).powf(self.step as f64))) as f32;
        let gradient = |name: &str, var| match grads.get(var) {
            Some(grad) => grad.contiguous(),
            None => bail!("no gradient reached the parameter `{name}`"),
        };
        if self.clock.is_some() {
            let found = self.params.iter().map(|(n, v)| Ok((n.to_owned(), gradient(n, v)?))).collect::<Result<_>>()?;
            return self.apply_from(&found);
        }
        for ((name, var), moments) in self.params.iter().zip(&mut self.moments) {
            let grad = gradient(name, var)?;
            match moments {
                Moments::Cpu { m, v } => {
                    let pass = Pass { moments: Mutex::new((m, v)), c1, c2, rate: self.rate };
                    var.inplace_op2(&grad, &pass)?;
                }
                Moments::Cuda { .. } => bail!("Adam's moments are not on the CPU"),
            }
        }
        Ok(())
    }

    /// The step from gradients by name, on a GPU.
    pub fn apply_from(&mut self, grads: &std::collections::HashMap<String, Tensor>) -> Result<()> {
        let Some(clock) = &self.clock else { bail!("this optimiser is not on a GPU") };
        let mut parts = Vec::with_capacity(self.moments.len());
        for ((name, var), moments) in self.params.iter().zip(&self.moments) {
            let Moments::Cuda { m, v } = moments else { bail!("Adam's moments are not on the GPU") };
            let Some(grad) = grads.get(name) else { bail!("no gradient reached the parameter `{name}`") };
            parts.push((var.as_tensor(), m, v, grad));
        }
        crate::nn::cuda::adam::tick(clock, f64::from(BETA1), f64::from(BETA2))?;
        crate::nn::cuda::adam::step(&parts, clock, [self.rate, BETA1, BETA2, EPSILON])
    }

    /// Forgets the moments of a row of a matrix, whose weights have begun anew.
    pub fn forget_row(&mut self, name: &str, row: usize) -> Result<()> {
        for ((own, var), moments) in self.params.iter().zip(&mut self.moments) {
            if own != name {
                continue;
            }
            let width = var.elem_count() / var.dim(0)?;
            let at = row * width..(row + 1) * width;
            if at.end > var.elem_count() {
                bail!("parameter `{name}` has no row {row}")
            }
            match moments {
                Moments::Cpu { m, v } => {
                    m[at.clone()].fill(0.0);
                    v[at].fill(0.0);
                }
                // In place: captured steps know these addresses.
                Moments::Cuda { m, v } => {
                    for moment in [m, v] {
                        let mut all = moment.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?;
                        all[at.clone()].fill(0.0);
                        crate::nn::cuda::upload(moment, &all)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Moments and step count by name (`m.…`, `v.…`), on the CPU.
    pub fn state(&self) -> Result<(u64, BTreeMap<String, Tensor>)> {
        let mut map = BTreeMap::new();
        for ((name, var), moments) in self.params.iter().zip(&self.moments) {
            let (m, v) = match moments {
                Moments::Cpu { m, v } => {
                    (Tensor::from_slice(m, var.dims(), &Device::Cpu)?, Tensor::from_slice(v, var.dims(), &Device::Cpu)?)
                }
                Moments::Cuda { m, v } => (m.to_device(&Device::Cpu)?, v.to_device(&Device::Cpu)?),
            };
            map.insert(format!("m.{name}"), m);
            map.insert(format!("v.{name}"), v);
        }
        Ok((self.step, map))
    }

    /// Restores what [`Adam::state`] gave. Every moment must be there with the right shape.
    pub fn restore(&mut self, step: u64, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut loaded = Vec::with_capacity(self.moments.len());
        for (name, var) in self.params.iter() {
            let get = |key: String| -> Result<Tensor> {
                match state.get(&key) {
                    Some(t) if t.dims() == var.dims() => Ok(t.clone()),
                    Some(_) => bail!("the optimiser state `{key}` has another shape than its weight"),
                    None => bail!("the optimiser state `{key}` is missing"),
                }
            };
            let (m, v) = (get(format!("m.{name}"))?, get(format!("v.{name}"))?);
            loaded.push((m, v));
        }
        for ((m, v), moments) in loaded.into_iter().zip(&mut self.moments) {
            match moments {
                Moments::Cpu { m: own_m, v: own_v } => {
                    *own_m = m.flatten_all()?.to_vec1()?;
                    *own_v = v.flatten_all()?.to_vec1()?;
                }
                // In place: captured steps know these addresses.
                Moments::Cuda { m: own_m, v: own_v } => {
                    crate::nn::cuda::upload(own_m, &m.flatten_all()?.to_vec1::<f32>()?)?;
                    crate::nn::cuda::upload(own_v, &v.flatten_all()?.to_vec1::<f32>()?)?;
                }
            }
        }
        if let Some(clock) = &self.clock {
            crate::nn::cuda::upload(clock, &[step as f32, 1.0, 1.0])?;
        }
        self.step = step;
        Ok(())
    }
}

struct Pass<'a> {
    moments: Mutex<(&'a mut Vec<f32>, &'a mut Vec<f32>)>,
    c1: f32,
    c2: f32,
    rate: f32,
}

impl InplaceOp2 for Pass<'_> {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn cpu_fwd(&self, p: &mut CpuStorage, lp: &Layout, g: &CpuStorage, lg: &Layout) -> Result<()> {
        let g = cpu_slice(g, lg)?;
        let Some((from, to)) = lp.contiguous_offsets() else { bail!("adam: a parameter is not contiguous") };
        let CpuStorage::F32(p) = p else { bail!("adam: parameters are float32") };
        let p = &mut p[from..to];
        let mut guard = self.moments.lock().unwrap();
        let (m, v) = &mut *guard;
        const CHUNK: usize = 1 << 15;
        p.par_chunks_mut(CHUNK)
            .zip(m.par_chunks_mut(CHUNK))
            .zip(v.par_chunks_mut(CHUNK))
            .zip(g.par_chunks(CHUNK))
            .with_min_len(super::sharing::fewest())
            .for_each(|(((p, m), v), g)| {
                for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
                    *m = BETA1 * *m + (1.0 - BETA1) * g;
                    *v = BETA2 * *v + (1.0 - BETA2) * g * g;
                    *p -= self.rate * (*m * self.c1) / ((*v * self.c2).sqrt() + EPSILON);
                }
            });
        Ok(())
    }
}

impl Optimizer for Adam {
    fn steps(&self) -> u64 {
        Adam::steps(self)
    }

    fn tensors(&self) -> Result<BTreeMap<String, Tensor>> {
        Ok(self.state()?.1)
    }

    fn restore(&mut self, steps: u64, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
        Adam::restore(self, steps, tensors)
    }
}

/// The optimizer of an agent that has begun to learn.
///
/// # Errors
/// When it has none yet.
pub fn begun(adam: Option<&Adam>) -> Result<&Adam> {
    adam.ok_or_else(not_begun)
}

/// The optimizer of an agent that has begun to learn, to be changed.
///
/// # Errors
/// When it has none yet.
pub fn begun_mut(adam: Option<&mut Adam>) -> Result<&mut Adam> {
    adam.ok_or_else(not_begun)
}

fn not_begun() -> candle_core::Error {
    candle_core::Error::msg("the agent has not begun to learn: it has no optimizer yet")
}

/// Lets rows of an embedding that were given over to other words begin anew: as the unknown word, with zero moments.
///
/// # Errors
/// When there is no such parameter or row.
pub fn renew_rows(params: &Params, adam: Option<&mut Adam>, embedding: &str, rows: &[u32]) -> Result<()> {
    for row in rows {
        params.copy_row(embedding, UNKNOWN as usize, *row as usize)?;
    }
    if let Some(adam) = adam {
        for row in rows {
            adam.forget_row(embedding, *row as usize)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Parameters;

    fn params() -> Params {
        let mut p = Params::new(&Device::Cpu);
        p.add("w", &Tensor::new(&[1f32, -2.0, 3.0], &Device::Cpu).unwrap()).unwrap();
        p
    }

    fn step(p: &Params, adam: &mut Adam) {
        let w = p.get("w").unwrap();
        let loss = w.sqr().unwrap().sum_all().unwrap();
        adam.step(&loss.backward().unwrap()).unwrap();
    }

    #[test]
    fn the_first_steps_are_pytorchs() {
        // torch.optim.Adam([1, -2, 3], lr=0.1) on sum(w²), by hand: the first step moves each weight by the rate.
        let p = params();
        let mut adam = Adam::new(&p, 0.1).unwrap();
        step(&p, &mut adam);
        let w = p.get("w").unwrap().to_vec1::<f32>().unwrap();
        for (a, b) in w.iter().zip([0.9, -1.9, 2.9]) {
            assert!((a - b).abs() < 1e-6, "{w:?}");
        }
        // Second step: m = 0.9·0.1·g1 + 0.1·g2, v likewise; for the first weight g1 = 2, g2 = 1.8.
        step(&p, &mut adam);
        let (m, v): (f64, f64) = (0.9 * 0.2 + 0.18, 0.999 * 0.004 + 0.00324);
        let expected = 0.9 - 0.1 * (m / 0.19) / ((v / 0.001_999).sqrt() + 1e-8);
        assert!((f64::from(p.get("w").unwrap().to_vec1::<f32>().unwrap()[0]) - expected).abs() < 1e-5);
    }

    #[test]
    fn a_restored_optimiser_goes_on_bit_for_bit() {
        let (p, q) = (params(), params());
        let mut a = Adam::new(&p, 0.05).unwrap();
        for _ in 0..5 {
            step(&p, &mut a);
        }
        q.copy_from(&p).unwrap();
        let (steps, state) = a.state().unwrap();
        let mut b = Adam::new(&q, 0.05).unwrap();
        b.restore(steps, &state).unwrap();
        for _ in 0..5 {
            step(&p, &mut a);
            step(&q, &mut b);
        }
        assert_eq!(p.get("w").unwrap().to_vec1::<f32>().unwrap(), q.get("w").unwrap().to_vec1::<f32>().unwrap());
        assert!(b.restore(1, &BTreeMap::new()).is_err());
    }

    #[test]
    fn a_parameter_that_no_gradient_reaches_is_reported() {
        let mut p = params();
        p.add("idle", &Tensor::new(&[1f32], &Device::Cpu).unwrap()).unwrap();
        let mut adam = Adam::new(&p, 0.1).unwrap();
        let loss = p.get("w").unwrap().sqr().unwrap().sum_all().unwrap();
        assert!(adam.step(&loss.backward().unwrap()).unwrap_err().to_string().contains("idle"));
    }
}
