//! Dot attention over time-major memories as one node: nothing is transposed, the products stride over the batch.

use super::*;
use crate::nn::lstm::Lengths;
use candle_core::{CpuStorage, CustomOp3};
use std::sync::Mutex;

/// Attends for projected queries `[Q, B, D]` over keys `[S, B, D]` and values `[S, B, H]`, of which row b has `real[b]` steps:
/// `[Q, B, H]`.
pub fn attend(queries: &Tensor, keys: &Tensor, values: &Tensor, real: &Lengths) -> Result<Tensor> {
    let op = Attend { real: real.clone(), weights: Mutex::new(None) };
    queries.contiguous()?.apply_op3(&keys.contiguous()?, &values.contiguous()?, op)
}

struct Attend {
    real: Lengths,
    /// Attention weights `[B, Q, ld]`.
    weights: Mutex<Option<Floats>>,
}

/// Sizes: queries, rows, memory steps, sizes of keys and values, and columns of the score matrix as stored.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub q: usize,
    pub b: usize,
    pub s: usize,
    pub d: usize,
    pub h: usize,
    pub ld: usize,
}

impl Sizes {
    /// Sizes for memories of `s` steps. Rows of scores begin at multiples of 16 bytes, which the products like.
    pub fn new(q: usize, b: usize, s: usize, d: usize, h: usize) -> Self {
        Self { q, b, s, d, h, ld: s.next_multiple_of(4) }
    }
}

fn sizes(queries: &[usize], keys: &[usize], values: &[usize]) -> Result<Sizes> {
    match (queries, keys, values) {
        (&[q, b, d], &[s, kb, kd], &[vs, vb, h]) if kb == b && vb == b && kd == d && vs == s => {
            Ok(Sizes::new(q, b, s, d, h))
        }
        _ => bail!("attention: queries {queries:?}, keys {keys:?}, values {values:?} do not fit"),
    }
}

impl CustomOp3 for Attend {
    fn name(&self) -> &'static str {
        "attend"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        bail!("this operation is the GPU's")
    }

    fn cuda_fwd(
        &self,
        queries: &CudaStorage,
        lq: &Layout,
        keys: &CudaStorage,
        lk: &Layout,
        values: &CudaStorage,
        lv: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let device = queries.device().clone();
        let Sizes { q, b, s, d, h, ld } = sizes(lq.dims(), lk.dims(), lv.dims())?;
        let (scores, out) = (buffer(&device, b * q * ld)?, buffer(&device, q * b * h)?);
        let (queries, keys, values) = (address(queries, lq)?, address(keys, lk)?, address(values, lv)?);
        let places = Places { queries, keys, values, weights: of(&scores) };
        let sizes = Sizes { q, b, s, d, h, ld };
        forward(&device, &sizes, &places, at(self.real.on_device()?)?, of(&out))?;
        *self.weights.lock().unwrap() = Some(scores);
        Ok((storage(out, &device), (q, b, h).into()))
    }

    fn bwd(
        &self,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(weights) = self.weights.lock().unwrap().take() else { bail!("attention: backward was already run") };
        let device = device_of(queries)?;
        let Sizes { q, b, s, d, h, ld } = sizes(queries.dims(), keys.dims(), values.dims())?;
        let grad = grad.contiguous()?;
        let d_scores = buffer(&device, b * q * ld)?;
        let (d_q, d_k, d_v) = (buffer(&device, q * b * d)?, buffer(&device, s * b * d)?, buffer(&device, s * b * h)?);
        let places = Places { queries: at(queries)?, keys: at(keys)?, values: at(values)?, weights: of(&weights) };
        let sizes = Sizes { q, b, s, d, h, ld };
        let (dq, dk, dv) = (of(&d_q), of(&d_k), of(&d_v));
        backward(&device, &sizes, &places, at(&grad)?, of(&d_scores), (dq, dk, dv))?;
        Ok((
            Some(tensor(d_q, &device, (q, b, d))),
            Some(tensor(d_k, &device, (s, b, d))),
            Some(tensor(d_v, &device, (s, b, h))),
        ))
    }
}

/// Where attention reads: queries `[Q, B, D]`, keys `[S, B, D]`, values `[S, B, H]`; and its weights `[B, Q, ld]`.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub queries: u64,
    pub keys: u64,
    pub values: u64,
    pub weights: u64,
}

/// The results `[Q, B, H]`, and the weights; `real` are the real steps of each row.
pub(crate) fn forward(device: &CudaDevice, sizes: &Sizes, at: &Places, real: u64, out: u64) -> Result<()> {
    let &Sizes { q, b, s, d, h, ld } = sizes;
    let p = Mat::new(at.weights, ld).every(q * ld);
    let keys = Mat::new(at.keys, b * d).every(d);
    let queries = Mat::new(at.queries, b * d).every(d);
    product(device, (q, s, d), queries, keys.t(), 0.0, p, b)?;
    let counts = [b, q, s, ld].map(|n| Arg::Int(n as i32));
    launch(device, "softmax_rows", warps(b * q), &[&[Arg::Address(p.at), Arg::Address(real)], &counts[..]].concat())?;
    let values = Mat::new(at.values, b * h).every(h);
    product(device, (q, h, s), p, values, 0.0, Mat::new(out, b * h).every(h), b)
}

/// Gradients of queries, keys and values from that of the results, by way of `d_scores` `[B, Q, ld]`.
pub(crate) fn backward(
    device: &CudaDevice,
    sizes: &Sizes,
    at: &Places,
    grad: u64,
    d_scores: u64,
    (d_q, d_k, d_v): (u64, u64, u64),
) -> Result<()> {
    let &Sizes { q, b, s, d, h, ld } = sizes;
    let p = Mat::new(at.weights, ld).every(q * ld);
    let ds = Mat::new(d_scores, ld).every(q * ld);
    let g = Mat::new(grad, b * h).every(h);
    product(device, (q, s, h), g, Mat::new(at.values, b * h).every(h).t(), 0.0, ds, b)?;
    product(device, (s, h, q), p.t(), g, 0.0, Mat::new(d_v, b * h).every(h), b)?;
    let args =
        [Arg::Address(p.at), Arg::Address(ds.at), Arg::Int((b * q) as i32), Arg::Int(s as i32), Arg::Int(ld as i32)];
    launch(device, "softmax_bwd", warps(b * q), &args)?;
    let keys = Mat::new(at.keys, b * d).every(d);
    product(device, (q, d, s), ds, keys, 0.0, Mat::new(d_q, b * d).every(d), b)?;
    let queries = Mat::new(at.queries, b * d).every(d);
    product(device, (s, d, q), ds.t(), queries, 0.0, Mat::new(d_k, b * d).every(d), b)
}
