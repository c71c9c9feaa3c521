//! A whole LSTM layer over T steps as one node of the graph, length-aware, with its backward pass.
//!
//! The input projection is done for all steps at once before (see [`crate::nn::layers`]); the node holds the recurrence
//! alone. A row stops at its length: from there on its state is carried unchanged, so that padding cannot change what
//! the agent does. The same node with T = 1 is a decoding step. This is the CPU's; the GPU's is `nn::cuda::lstm`.

use crate::nn::cpu::{cpu_slice, gemm, has_avx2};
use crate::nn::fast_math::{sigmoid, tanh};
use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// How many steps each row of a batch has.
#[derive(Clone, Debug)]
pub struct Lengths {
    pub(crate) host: Arc<Vec<u32>>,
    /// The lengths on the device, where the recurrence runs there.
    device: Option<Tensor>,
}

impl Lengths {
    /// Lengths of the rows, put on `device`.
    pub fn new(lengths: Vec<u32>, device: &candle_core::Device) -> Result<Self> {
        let on_device = if device.is_cpu() { None } else { Some(Tensor::new(lengths.as_slice(), device)?) };
        Ok(Self { host: Arc::new(lengths), device: on_device })
    }

    /// Every one of `rows` rows has `steps` steps.
    pub fn full(rows: usize, steps: usize, device: &candle_core::Device) -> Result<Self> {
        Self::new(vec![steps as u32; rows], device)
    }

    /// Lengths that are on a GPU already, as `[B]` (u32).
    pub fn there(device: Tensor) -> Self {
        Self { host: Arc::default(), device: Some(device) }
    }

    /// The lengths on the GPU, `[B]` (u32).
    pub fn on_device(&self) -> Result<&Tensor> {
        match &self.device {
            Some(t) => Ok(t),
            None => bail!("lengths are not on the GPU"),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.host.len()
    }
}

/// Runs the recurrence.
///
/// * `gx` `[T, B, 4H]`: input projections with both biases, gates in the order input, forget, cell, output;
/// * `w_hh` `[4H, H]`;
/// * `state` `[2, B, H]`: initial (h, c).
///
/// Returns `(h_1 … h_T` as `[T, B, H]`, final state `[2, B, H])`; the final state of a row is that after its last real step.
pub fn lstm(gx: &Tensor, w_hh: &Tensor, state: &Tensor, lengths: &Lengths) -> Result<(Tensor, Tensor)> {
    let steps = gx.dim(0)?;
    let out = gx.contiguous()?.apply_op3(
        &w_hh.contiguous()?,
        &state.contiguous()?,
        Recurrence { lengths: lengths.clone(), saved: Mutex::new(None) },
    )?;
    Ok((out.narrow(0, 0, steps)?, out.narrow(0, steps - 1, 2)?))
}

/// Activations kept for the backward pass.
struct Saved {
    cells: Vec<f32>,
    gates: Vec<f32>,
}

/// The node: (gx, w_hh, state) -> `[T + 1, B, H]` = h_1 … h_T, c_T.
struct Recurrence {
    lengths: Lengths,
    saved: Mutex<Option<Saved>>,
}

struct Sizes {
    t: usize,
    b: usize,
    h: usize,
}

fn sizes(gx: &Shape, w: &Shape, state: &Shape, lengths: &Lengths) -> Result<Sizes> {
    let (t, b, g) = gx.dims3()?;
    let (rows, h) = w.dims2()?;
    if g != 4 * h || rows != 4 * h || state.dims() != [2, b, h] || lengths.rows() != b || t == 0 {
        bail!("lstm: gates {gx:?}, recurrent weight {w:?}, state {state:?}, {} lengths do not fit", lengths.rows())
    }
    Ok(Sizes { t, b, h })
}

/// Rows a thread takes at a time: enough work to pay for the hand-over.
fn rows_per_task(h: usize) -> usize {
    (8192 / h.max(1)).max(1)
}

#[inline(always)]
fn cell_forward_row(gates: &mut [f32], c_prev: &[f32], h_out: &mut [f32], c_out: &mut [f32]) {
    let n = c_prev.len();
    let (i, rest) = gates.split_at_mut(n);
    let (f, rest) = rest.split_at_mut(n);
    let (g, o) = rest.split_at_mut(n);
    let o = &mut o[..n];
    let (h_out, c_out) = (&mut h_out[..n], &mut c_out[..n]);
    for j in 0..n {
        i[j] = sigmoid(i[j]);
        f[j] = sigmoid(f[j]);
        g[j] = tanh(g[j]);
        o[j] = sigmoid(o[j]);
        let c = f[j] * c_prev[j] + i[j] * g[j];
        c_out[j] = c;
        h_out[j] = o[j] * tanh(c);
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn cell_backward_row(gates: &[f32], c_prev: &[f32], c: &[f32], dh: &[f32], dc: &mut [f32], d_gates: &mut [f32]) {
    let n = c_prev.len();
    let (i, rest) = gates.split_at(n);
    let (f, rest) = rest.split_at(n);
    let (g, o) = rest.split_at(n);
    let (di, rest) = d_gates.split_at_mut(n);
    let (df, rest) = rest.split_at_mut(n);
    let (dg, d_o) = rest.split_at_mut(n);
    let (o, d_o, c, dh, dc) = (&o[..n], &mut d_o[..n], &c[..n], &dh[..n], &mut dc[..n]);
    for j in 0..n {
        let tc = tanh(c[j]);
        let d = dc[j] + dh[j] * o[j] * (1.0 - tc * tc);
        di[j] = d * g[j] * i[j] * (1.0 - i[j]);
        df[j] = d * c_prev[j] * f[j] * (1.0 - f[j]);
        dg[j] = d * i[j] * (1.0 - g[j] * g[j]);
        d_o[j] = dh[j] * tc * o[j] * (1.0 - o[j]);
        dc[j] = d * f[j];
    }
}

// These are the same loops compiled for wider vectors, taken where the processor has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn cell_forward_row_avx2(gates: &mut [f32], c_prev: &[f32], h_out: &mut [f32], c_out: &mut [f32]) {
    cell_forward_row(gates, c_prev, h_out, c_out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn cell_backward_row_avx2(gates: &[f32], c_prev: &[f32], c: &[f32], dh: &[f32], dc: &mut [f32], d_gates: &mut [f32]) {
    cell_backward_row(gates, c_prev, c, dh, dc, d_gates)
}

fn forward_row(wide: bool, gates: &mut [f32], c_prev: &[f32], h_out: &mut [f32], c_out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if wide {
        // Safety: `wide` is only true where the features were detected.
        return unsafe { cell_forward_row_avx2(gates, c_prev, h_out, c_out) };
    }
    let _ = wide;
    cell_forward_row(gates, c_prev, h_out, c_out)
}

fn backward_row(wide: bool, gates: &[f32], c_prev: &[f32], c: &[f32], dh: &[f32], dc: &mut [f32], d_gates: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if wide {
        // Safety: `wide` is only true where the features were detected.
        return unsafe { cell_backward_row_avx2(gates, c_prev, c, dh, dc, d_gates) };
    }
    let _ = wide;
    cell_backward_row(gates, c_prev, c, dh, dc, d_gates)
}

impl CustomOp3 for Recurrence {
    fn name(&self) -> &'static str {
        "lstm"
    }

    fn cpu_fwd(
        &self,
        gx: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        state: &CpuStorage,
        ls: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Sizes { t, b, h } = sizes(lx.shape(), lw.shape(), ls.shape(), &self.lengths)?;
        let (w, state) = (cpu_slice(w, lw)?, cpu_slice(state, ls)?);
        let mut gates = cpu_slice(gx, lx)?.to_vec();
        let mut out = vec![0f32; (t + 1) * b * h];
        let mut cells = vec![0f32; t * b * h];
        let (bh, wide) = (b * h, has_avx2());
        for s in 0..t {
            let (before, from_s) = out.split_at_mut(s * bh);
            let h_prev = if s == 0 { &state[..bh] } else { &before[(s - 1) * bh..] };
            let (cells_before, cells_from) = cells.split_at_mut(s * bh);
            let c_prev = if s == 0 { &state[bh..] } else { &cells_before[(s - 1) * bh..] };
            let gates_s = &mut gates[s * 4 * bh..(s + 1) * 4 * bh];
            gemm(b, 4 * h, h, gates_s, true, h_prev, (h, 1), w, (1, h));
            let rows = rows_per_task(h);
            gates_s
                .par_chunks_mut(rows * 4 * h)
                .zip(c_prev.par_chunks(rows * h))
                .zip(h_prev.par_chunks(rows * h))
                .zip(from_s[..bh].par_chunks_mut(rows * h))
                .zip(cells_from[..bh].par_chunks_mut(rows * h))
                .zip(self.lengths.host.par_chunks(rows))
                .with_min_len(super::sharing::fewest())
                .for_each(|(((((gates, c_prev), h_prev), h_out), c_out), lengths)| {
                    for (r, &length) in lengths.iter().enumerate() {
                        let at = r * h..(r + 1) * h;
                        if s < length as usize {
                            let g = &mut gates[r * 4 * h..(r + 1) * 4 * h];
                            forward_row(wide, g, &c_prev[at.clone()], &mut h_out[at.clone()], &mut c_out[at]);
                        } else {
                            h_out[at.clone()].copy_from_slice(&h_prev[at.clone()]);
                            c_out[at.clone()].copy_from_slice(&c_prev[at]);
                        }
                    }
                });
        }
        out[t * bh..].copy_from_slice(&cells[(t - 1) * bh..]);
        *self.saved.lock().unwrap() = Some(Saved { cells, gates });
        Ok((CpuStorage::F32(out), (t + 1, b, h).into()))
    }

    fn bwd(
        &self,
        gx: &Tensor,
        w: &Tensor,
        state: &Tensor,
        out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Sizes { t, b, h } = sizes(gx.shape(), w.shape(), state.shape(), &self.lengths)?;
        let Some(Saved { cells, gates }) = self.saved.lock().unwrap().take() else {
            bail!("lstm: backward was already run")
        };
        let grad = grad.flatten_all()?.to_vec1::<f32>()?;
        let (out_guard, out_layout) = out.storage_and_layout();
        let (w_guard, w_layout) = w.storage_and_layout();
        let (state_guard, state_layout) = state.storage_and_layout();
        let cpu = |s: &'_ candle_core::Storage| -> Result<()> {
            if matches!(s, candle_core::Storage::Cpu(_)) { Ok(()) } else { bail!("lstm: mixed devices") }
        };
        cpu(&out_guard)?;
        let (candle_core::Storage::Cpu(out_s), candle_core::Storage::Cpu(w_s), candle_core::Storage::Cpu(state_s)) =
            (&*out_guard, &*w_guard, &*state_guard)
        else {
            bail!("lstm: mixed devices")
        };
        let (out, w, state) =
            (cpu_slice(out_s, out_layout)?, cpu_slice(w_s, w_layout)?, cpu_slice(state_s, state_layout)?);
        let (bh, wide, rows) = (b * h, has_avx2(), rows_per_task(h));
        let mut d_gates = vec![0f32; t * 4 * bh];
        let mut dh = vec![0f32; bh];
        let mut dc = grad[t * bh..].to_vec();
        for s in (0..t).rev() {
            let c_prev = if s == 0 { &state[bh..] } else { &cells[(s - 1) * bh..s * bh] };
            let c = &cells[s * bh..(s + 1) * bh];
            for (d, g) in dh.iter_mut().zip(&grad[s * bh..(s + 1) * bh]) {
                *d += g;
            }
            let d_s = &mut d_gates[s * 4 * bh..(s + 1) * 4 * bh];
            d_s.par_chunks_mut(rows * 4 * h)
                .zip(gates[s * 4 * bh..(s + 1) * 4 * bh].par_chunks(rows * 4 * h))
                .zip(c_prev.par_chunks(rows * h))
                .zip(c.par_chunks(rows * h))
                .zip(dh.par_chunks_mut(rows * h))
                .zip(dc.par_chunks_mut(rows * h))
                .zip(self.lengths.host.par_chunks(rows))
                .with_min_len(super::sharing::fewest())
                .for_each(|((((((d, gates), c_prev), c), dh), dc), lengths)| {
                    for (r, &length) in lengths.iter().enumerate() {
                        // A carried row passes its gradient on: its gates stay zero and dh, dc as they are.
                        if s < length as usize {
                            let at = r * h..(r + 1) * h;
                            let at4 = r * 4 * h..(r + 1) * 4 * h;
                            backward_row(
                                wide,
                                &gates[at4.clone()],
                                &c_prev[at.clone()],
                                &c[at.clone()],
                                &dh[at.clone()],
                                &mut dc[at.clone()],
                                &mut d[at4],
                            );
                            dh[at].fill(0.0);
                        }
                    }
                });
            gemm(b, h, 4 * h, &mut dh, true, d_s, (4 * h, 1), w, (h, 1));
        }
        let mut dw = vec![0f32; 4 * h * h];
        gemm(4 * h, h, b, &mut dw, false, &d_gates[..4 * bh], (1, 4 * h), &state[..bh], (h, 1));
        if t > 1 {
            gemm(4 * h, h, (t - 1) * b, &mut dw, true, &d_gates[4 * bh..], (1, 4 * h), out, (h, 1));
        }
        dh.extend_from_slice(&dc);
        let device = w_guard.device();
        Ok((
            Some(Tensor::from_vec(d_gates, (t, b, 4 * h), &device)?),
            Some(Tensor::from_vec(dw, (4 * h, h), &device)?),
            Some(Tensor::from_vec(dh, (2, b, h), &device)?),
        ))
    }
}
