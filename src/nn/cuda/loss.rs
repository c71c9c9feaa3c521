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
        let places = self.places(DeviceSlice::of_storage(logits, ll)?, lse.slice())?;
        forward(&device, (n, v), &places, part.slice(), sum.slice())?;
        *self.lse.lock().unwrap() = Some(lse);
        Ok((storage(sum, &device), ().into()))
    }

    fn bwd(&self, logits: &Tensor, _loss: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let Some(lse) = self.lse.lock().unwrap().take() else { bail!("loss: backward was already run") };
        let device = device_of(logits)?;
        let (n, v) = logits.dims2()?;
        let d = buffer(&device, n * v)?;
        let (grad, places) = (grad.contiguous()?, self.places(DeviceSlice::of(logits)?, lse.slice())?);
        backward(&device, (n, v), &places, Some(DeviceSlice::of(&grad)?), d.slice())?;
        Ok(Some(tensor(d, &device, (n, v))))
    }
}

impl Nll {
    fn places<'m>(&'m self, logits: DeviceSlice<'m, f32>, lse: DeviceSlice<'m, f32>) -> Result<Places<'m>> {
        let (targets, weights) = (DeviceSlice::of(&self.targets)?, DeviceSlice::of_bits(&self.weights)?);
        Ok(Places { logits, targets, weights, bonus: None, lse, entropy: None })
    }
}

/// Where the loss reads: logits `[N, V]`, targets, weights and, where there is one, weights of an entropy bonus `[N]`; and each row's
/// log Σ exp and (where there is a bonus) entropy `[N]`.
#[derive(Clone, Copy)]
pub(crate) struct Places<'m> {
    pub logits: DeviceSlice<'m, f32>,
    pub targets: DeviceSlice<'m, u32>,
    pub weights: DeviceSlice<'m, f32>,
    pub bonus: Option<DeviceSlice<'m, f32>>,
    pub lse: DeviceSlice<'m, f32>,
    pub entropy: Option<DeviceSlice<'m, f32>>,
}

impl Places<'_> {
    fn args(&self, (n, v): (usize, usize)) -> Result<[Arg; 6]> {
        let optional = |slice: Option<DeviceSlice<'_, f32>>, what: &str| match slice {
            Some(slice) => slice.holding(n, what).map(Arg::from),
            None => Ok(Arg::from(slice)),
        };
        Ok([
            self.logits.holding(n * v, "the logits of a loss")?.into(),
            self.targets.holding(n, "the targets of a loss")?.into(),
            self.weights.holding(n, "the weights of a loss")?.into(),
            optional(self.bonus, "the weights of an entropy bonus")?,
            self.lse.holding(n, "the normalisers of a loss")?.into(),
            optional(self.entropy, "the entropies of a loss")?,
        ])
    }
}

/// The loss into `sum`, by way of each row's share in `part` `[N]`.
pub(crate) fn forward(
    device: &CudaDevice,
    (n, v): (usize, usize),
    at: &Places<'_>,
    part: DeviceSlice<'_, f32>,
    sum: DeviceSlice<'_, f32>,
) -> Result<()> {
    part.holding(n, "the shares of a loss")?;
    sum.holding(1, "a loss")?;
    let more = [Arg::from(part), Arg::Int(n as i32), Arg::Int(v as i32)];
    launch(device, "nll_fwd", warps(n), &[&at.args((n, v))?[..], &more].concat())?;
    launch(device, "total", ((1, 1), 1024, 0), &[Arg::from(part), Arg::from(sum), Arg::Int(n as i32)])
}

/// The gradient of the logits, from that of the loss (one number at `grad`; `None`: it is one).
pub(crate) fn backward(
    device: &CudaDevice,
    (n, v): (usize, usize),
    at: &Places<'_>,
    grad: Option<DeviceSlice<'_, f32>>,
    d: DeviceSlice<'_, f32>,
) -> Result<()> {
    d.holding(n * v, "the gradient of logits")?;
    let more = [Arg::from(grad), Arg::from(d), Arg::Int(n as i32), Arg::Int(v as i32)];
    launch(device, "nll_bwd", each(n * v), &[&at.args((n, v))?[..], &more].concat())
}
