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
        let places = Places {
            queries: DeviceSlice::of_storage(queries, lq)?,
            keys: DeviceSlice::of_storage(keys, lk)?,
            values: DeviceSlice::of_storage(values, lv)?,
            weights: scores.slice(),
        };
        let sizes = Sizes { q, b, s, d, h, ld };
        forward(&device, &sizes, &places, DeviceSlice::of(self.real.on_device()?)?, out.slice())?;
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
        let places = Places {
            queries: DeviceSlice::of(queries)?,
            keys: DeviceSlice::of(keys)?,
            values: DeviceSlice::of(values)?,
            weights: weights.slice(),
        };
        let sizes = Sizes { q, b, s, d, h, ld };
        let gradients = (d_q.slice(), d_k.slice(), d_v.slice());
        backward(&device, &sizes, &places, DeviceSlice::of(&grad)?, d_scores.slice(), gradients)?;
        Ok((
            Some(tensor(d_q, &device, (q, b, d))),
            Some(tensor(d_k, &device, (s, b, d))),
            Some(tensor(d_v, &device, (s, b, h))),
        ))
    }
}

/// Where attention reads: queries `[Q, B, D]`, keys `[S, B, D]`, values `[S, B, H]`; and its weights `[B, Q, ld]`.
#[derive(Clone, Copy)]
pub(crate) struct Places<'m> {
    pub queries: DeviceSlice<'m, f32>,
    pub keys: DeviceSlice<'m, f32>,
    pub values: DeviceSlice<'m, f32>,
    pub weights: DeviceSlice<'m, f32>,
}

/// The results `[Q, B, H]`, and the weights; `real` are the real steps of each row.
pub(crate) fn forward(
    device: &CudaDevice,
    sizes: &Sizes,
    at: &Places<'_>,
    real: DeviceSlice<'_, u32>,
    out: DeviceSlice<'_, f32>,
) -> Result<()> {
    let &Sizes { q, b, s, d, h, ld } = sizes;
    real.holding(b, "the real steps of an attention's memories")?;
    let p = Mat::new(at.weights, ld).every(q * ld);
    let keys = Mat::new(at.keys, b * d).every(d);
    let queries = Mat::new(at.queries, b * d).every(d);
    product(device, (q, s, d), queries, keys.t(), 0.0, p, b)?;
    let counts = [b, q, s, ld].map(|n| Arg::Int(n as i32));
    launch(device, "softmax_rows", warps(b * q), &[&[Arg::from(p.at), Arg::from(real)], &counts[..]].concat())?;
    let values = Mat::new(at.values, b * h).every(h);
    product(device, (q, h, s), p, values, 0.0, Mat::new(out, b * h).every(h), b)
}

/// Gradients of queries, keys and values from that of the results, by way of `d_scores` `[B, Q, ld]`.
pub(crate) fn backward(
    device: &CudaDevice,
    sizes: &Sizes,
    at: &Places<'_>,
    grad: DeviceSlice<'_, f32>,
    d_scores: DeviceSlice<'_, f32>,
    (d_q, d_k, d_v): (DeviceSlice<'_, f32>, DeviceSlice<'_, f32>, DeviceSlice<'_, f32>),
) -> Result<()> {
    let &Sizes { q, b, s, d, h, ld } = sizes;
    let p = Mat::new(at.weights, ld).every(q * ld);
    let ds = Mat::new(d_scores, ld).every(q * ld);
    let g = Mat::new(grad, b * h).every(h);
    product(device, (q, s, h), g, Mat::new(at.values, b * h).every(h).t(), 0.0, ds, b)?;
    product(device, (s, h, q), p.t(), g, 0.0, Mat::new(d_v, b * h).every(h), b)?;
    let args = [Arg::from(p.at), Arg::from(ds.at), Arg::Int((b * q) as i32), Arg::Int(s as i32), Arg::Int(ld as i32)];
    launch(device, "softmax_bwd", warps(b * q), &args)?;
    let keys = Mat::new(at.keys, b * d).every(d);
    product(device, (q, d, s), ds, keys, 0.0, Mat::new(d_q, b * d).every(d), b)?;
    let queries = Mat::new(at.queries, b * d).every(d);
    product(device, (s, d, q), ds.t(), queries, 0.0, Mat::new(d_k, b * d).every(d), b)
}
