//! The weighted negative log-likelihood of targets as one node.

use super::*;
use candle_core::{CpuStorage, CustomOp1};
use std::sync::Mutex;

/// Σ weight · −log p(target) for logits `[N, V]`, targets `[N]` (u32) and weights `[N]` (4-byte elements whose bits are
/// float32); a scalar.
pub fn weighted_nll(logits: &Tensor, targets: &Tensor, weights: &Tensor) -> Result<Tensor> {
    let op = Nll { targets: targets.clone(), weights: weights.clone(), lse: Mutex::new(None) };
    logits.contiguous()?.apply_op1(op)
}

struct Nll {
    targets: Tensor,
    weights: Tensor,
    lse: Mutex<Option<Floats>>,
}

impl CustomOp1 for Nll {
    fn name(&self) -> &'static str {
        "weighted nll"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("this operation is the GPU's")
    }

    fn cuda_fwd(&self, logits: &CudaStorage, ll: &Layout) -> Result<(CudaStorage, Shape)> {
        let device = logits.device().clone();
        let (n, v) = ll.shape().dims2()?;
        if self.targets.elem_count() != n || self.weights.elem_count() != n {
            bail!("loss: {n} rows of logits for {} targets", self.targets.elem_count())
        }
        let (lse, part, sum) = (buffer(&device, n)?, buffer(&device, n)?, buffer(&device, 1)?);
        let places = self.places(address(logits, ll)?, of(&lse))?;
        forward(&device, (n, v), &places, of(&part), of(&sum))?;
        *self.lse.lock().unwrap() = Some(lse);
        Ok((storage(sum, &device), ().into()))
    }

    fn bwd(&self, logits: &Tensor, _loss: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let Some(lse) = self.lse.lock().unwrap().take() else { bail!("loss: backward was already run") };
        let device = device_of(logits)?;
        let (n, v) = logits.dims2()?;
        let d = buffer(&device, n * v)?;
        let places = self.places(at(logits)?, of(&lse))?;
        backward(&device, (n, v), &places, at(&grad.contiguous()?)?, of(&d))?;
        Ok(Some(tensor(d, &device, (n, v))))
    }
}

impl Nll {
    fn places(&self, logits: u64, lse: u64) -> Result<Places> {
        Ok(Places { logits, targets: at(&self.targets)?, weights: at(&self.weights)?, bonus: 0, lse, entropy: 0 })
    }
}

/// Where the loss reads: logits `[N, V]`, targets, weights and (or 0) weights of an entropy bonus `[N]`; and each row's
/// log Σ exp and (where there is a bonus) entropy `[N]`.
pub(crate) struct Places {
    pub logits: u64,
    pub targets: u64,
    pub weights: u64,
    pub bonus: u64,
    pub lse: u64,
    pub entropy: u64,
}

impl Places {
    fn args(&self) -> [Arg; 6] {
        [self.logits, self.targets, self.weights, self.bonus, self.lse, self.entropy].map(Arg::Address)
    }
}

/// The loss into `sum`, by way of each row's share in `part` `[N]`.
pub(crate) fn forward(device: &CudaDevice, (n, v): (usize, usize), at: &Places, part: u64, sum: u64) -> Result<()> {
    let more = [Arg::Address(part), Arg::Int(n as i32), Arg::Int(v as i32)];
    launch(device, "nll_fwd", warps(n), &[&at.args()[..], &more].concat())?;
    launch(device, "total", ((1, 1), 1024, 0), &[Arg::Address(part), Arg::Address(sum), Arg::Int(n as i32)])
}

/// The gradient of the logits, from that of the loss (one number at `grad`; 0: it is one).
pub(crate) fn backward(device: &CudaDevice, (n, v): (usize, usize), at: &Places, grad: u64, d: u64) -> Result<()> {
    let more = [Arg::Address(grad), Arg::Address(d), Arg::Int(n as i32), Arg::Int(v as i32)];
    launch(device, "nll_bwd", each(n * v), &[&at.args()[..], &more].concat())
}
