//! Layer normalisation with its backward pass: Candle's own fused one has none.

use crate::nn::cpu::{cpu_slice, dot, with};
use crate::nn::layers::{Grad, weight};
use crate::nn::params::Params;
use candle_core::{CpuStorage, CustomOp3, D, DType, Device, Layout, Result, Shape, Tensor, bail};

/// Added to the variance.
pub const EPSILON: f64 = 1e-6;

/// y = w · (x − mean) / √(variance + ε) + b over the last dimension; the variance is the biased one.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
}

impl LayerNorm {
    /// Adds `name.weight` (ones) and `name.bias` (zeros).
    pub fn init(params: &mut Params, name: &str, size: usize) -> Result<()> {
        params.add(&format!("{name}.weight"), &Tensor::ones(size, DType::F32, &Device::Cpu)?)?;
        params.add(&format!("{name}.bias"), &Tensor::zeros(size, DType::F32, &Device::Cpu)?)
    }

    /// The layer over existing parameters.
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<Self> {
        Ok(Self {
            weight: weight(params, &format!("{name}.weight"), grad)?,
            bias: weight(params, &format!("{name}.bias"), grad)?,
        })
    }

    /// Applies it to the last dimension of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.device().is_cpu() {
            return x.contiguous()?.apply_op3(&self.weight, &self.bias, Normalise);
        }
        self.plain(x)
    }

    /// The norm made of plain operations.
    pub fn plain(&self, x: &Tensor) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
        centred.broadcast_div(&deviation)?.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)
    }
}

/// The node (x, w, b) -> y on the CPU. Nothing is kept: mean and deviation cost less than they would take.
struct Normalise;

/// Mean and 1/√(variance + ε).
fn moments(row: &[f32]) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = row.iter().sum::<f32>() / n;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n;
    (mean, 1.0 / (variance + EPSILON as f32).sqrt())
}

impl CustomOp3 for Normalise {
    fn name(&self) -> &'static str {
        "layer norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, w, b) = (cpu_slice(x, lx)?, cpu_slice(w, lw)?, cpu_slice(b, lb)?);
        if lx.dims().last() != Some(&w.len()) || b.len() != w.len() {
            bail!("layer norm: x {:?}, weight {:?}, bias {:?} do not fit", lx.dims(), lw.dims(), lb.dims())
        }
        let mut y = Vec::with_capacity(x.len());
        for row in x.chunks(w.len()) {
            let (mean, scale) = moments(row);
            y.extend(row.iter().zip(w).zip(b).map(|((x, w), b)| (x - mean) * scale * w + b));
        }
        Ok((CpuStorage::F32(y), lx.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _b: &Tensor,
        _y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let size = w.elem_count();
        let (mut dx, mut dw, mut db) = (Vec::with_capacity(x.elem_count()), vec![0f32; size], vec![0f32; size]);
        with(x, |x| {
            with(w, |w| {
                with(grad, |grad| {
                    let (mut unit, mut d) = (vec![0f32; size], vec![0f32; size]);
                    for (row, grad) in x.chunks(size).zip(grad.chunks(size)) {
                        let (mean, scale) = moments(row);
                        for i in 0..size {
                            unit[i] = (row[i] - mean) * scale;
                            d[i] = grad[i] * w[i];
                            dw[i] += grad[i] * unit[i];
                            db[i] += grad[i];
                        }
                        let (level, slope) = (d.iter().sum::<f32>() / size as f32, dot(&d, &unit) / size as f32);
                        dx.extend(d.iter().zip(&unit).map(|(d, unit)| scale * (d - level - unit * slope)));
                    }
                    Ok(())
                })
            })
        })?;
        let device = x.device();
        Ok((
            Some(Tensor::from_vec(dx, x.shape(), device)?),
            Some(Tensor::from_vec(dw, size, device)?),
            Some(Tensor::from_vec(db, size, device)?),
        ))
    }
}
