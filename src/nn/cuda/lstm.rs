//! A whole LSTM layer over symbols as one node of the graph: the input projection is looked up, the recurrence is one
//! launch for all steps where the card and the sizes allow it and runs step by step elsewhere, and the backward pass gives
//! the gradient of the projected table by one product.

use super::*;
use crate::nn::tokens::Tokens;
use candle_core::{CpuStorage, CustomOp3};
use std::sync::Mutex;

/// Rows of a cluster and hidden units of a block in `recurrence.cu`.
const TILE: usize = 32;
/// Tiles from which on single steps are faster: clusters take them one after the other, and products use the whole card.
const MANY: usize = 33;

/// Runs the recurrence over symbols.
///
/// * `table` `[V, 4H]`: input projections of every symbol with both biases, gates in the order input, forget, cell,
///   output;
/// * `w_hh` `[4H, H]`; `state` `[2, B, H]`: initial (h, c).
///
/// With `keep` the backward pass can follow. Returns (h_1 … h_T as `[T, B, H]`, final state `[2, B, H]`).
pub fn lstm(table: &Tensor, w_hh: &Tensor, state: &Tensor, tokens: &Tokens, keep: bool) -> Result<(Tensor, Tensor)> {
    let op = Recurrence { tokens: tokens.clone(), keep, saved: Mutex::new(None) };
    let (table, w_hh, state) = (table.contiguous()?, w_hh.contiguous()?, state.contiguous()?);
    let out = if keep { table.apply_op3(&w_hh, &state, op)? } else { table.apply_op3_no_bwd(&w_hh, &state, &op)? };
    Ok((out.narrow(0, 0, tokens.steps)?, out.narrow(0, tokens.steps - 1, 2)?))
}

/// The node: (table, w_hh, state) -> `[T + 1, B, H]` = h_1 … h_T, c_T.
struct Recurrence {
    tokens: Tokens,
    keep: bool,
    /// Cells `[T, B, H]` and gates `[T, B, 4H]` after their functions.
    saved: Mutex<Option<(Floats, Floats)>>,
}

impl CustomOp3 for Recurrence {
    fn name(&self) -> &'static str {
        "lstm over symbols"
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
        table: &CudaStorage,
        lt: &Layout,
        w: &CudaStorage,
        lw: &Layout,
        state: &CudaStorage,
        ls: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let device = table.device().clone();
        let h = lw.shape().dims2()?.1;
        let run = Run::of(&self.tokens, h)?;
        let Run { t, b, .. } = run;
        if lt.shape().dims2()?.1 != 4 * h || lw.shape().dims2()?.0 != 4 * h || ls.dims() != [2, b, h] {
            bail!("lstm: table {:?}, weight {:?}, state {:?} do not fit", lt.shape(), lw.shape(), ls.shape())
        }
        let out = buffer(&device, (t + 1) * b * h)?;
        let cells = buffer(&device, if self.keep { t } else { 1 } * run.padded())?;
        let gates = if self.keep { Some(buffer(&device, t * 4 * run.padded())?) } else { None };
        let gh = buffer(&device, 4 * b * h)?;
        let o = of(&out);
        let s0 = address(state, ls)?;
        let places = Forward {
            table: address(table, lt)?,
            w: address(w, lw)?,
            h0: s0,
            c0: s0 + run.bytes(),
            hs: o,
            last: o + t as u64 * run.bytes(),
            cells: of(&cells),
            gates: gates.as_ref().map_or(0, of),
            gh: of(&gh),
        };
        forward(&device, &run, &places)?;
        if let Some(gates) = gates {
            *self.saved.lock().unwrap() = Some((cells, gates));
        }
        Ok((storage(out, &device), (t + 1, b, h).into()))
    }

    fn bwd(
        &self,
        table: &Tensor,
        w: &Tensor,
        state: &Tensor,
        out: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some((cells, gates)) = self.saved.lock().unwrap().take() else { bail!("lstm: backward was already run") };
        let device = device_of(w)?;
        let (v, h) = (table.dim(0)?, w.dim(1)?);
        let run = Run::of(&self.tokens, h)?;
        let Run { t, b, .. } = run;
        let grad = grad.contiguous()?;
        let d_gates = buffer(&device, t * 4 * b * h)?;
        let d_state = buffer(&device, 2 * b * h)?;
        let d_w = buffer(&device, 4 * h * h)?;
        let d_table = buffer(&device, v * 4 * h)?;
        let bags = buffer(&device, t * b * v)?;
        let (s0, g, dh) = (at(state)?, at(&grad)?, of(&d_state));
        let places = Backward {
            w: at(w)?,
            h0: s0,
            c0: s0 + run.bytes(),
            hs: at(out)?,
            cells: of(&cells),
            gates: of(&gates),
            grad: g,
            dh_last: 0,
            dc_last: g + t as u64 * run.bytes(),
            d_gates: of(&d_gates),
            dh,
            dc: dh + run.bytes(),
            d_w: of(&d_w),
        };
        backward(&device, &run, &places)?;
        table_gradient(&device, &run, v, places.d_gates, of(&bags), of(&d_table))?;
        Ok((
            Some(tensor(d_table, &device, (v, 4 * h))),
            Some(tensor(d_w, &device, (4 * h, h))),
            Some(tensor(d_state, &device, (2, b, h))),
        ))
    }
}

/// A recurrence over symbols: steps, rows, symbols of a position, hidden size, and where symbols and lengths are.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub t: usize,
    pub b: usize,
    pub g: usize,
    pub h: usize,
    pub ids: u64,
    pub len: u64,
    pub count_padding: bool,
}

impl Run {
    /// The recurrence over `tokens` with hidden size `h`.
    pub fn of(tokens: &Tokens, h: usize) -> Result<Self> {
        Ok(Self {
            t: tokens.steps,
            b: tokens.rows,
            g: tokens.width,
            h,
            ids: at(&tokens.ids)?,
            len: at(tokens.lengths.on_device()?)?,
            count_padding: tokens.count_padding,
        })
    }

    /// Bytes of one `[B, H]`.
    pub fn bytes(&self) -> u64 {
        (4 * self.b * self.h) as u64
    }

    /// Numbers of `[B, H]` with rows filled up to whole tiles: what is kept for the way back is a tile's.
    pub fn padded(&self) -> usize {
        self.b.next_multiple_of(TILE) * self.h
    }

    /// Blocks of a cluster, and clusters, if all steps in one launch are possible.
    fn clusters(&self, device: &CudaDevice) -> Result<Option<(usize, usize)>> {
        let options = options(device);
        let sizes = [64, 128, 256, 512].contains(&self.h) && self.b.div_ceil(TILE) < MANY;
        if !options.whole_recurrences || !options.tf32 || !sizes {
            return Ok(None);
        }
        let card = backend::properties(device)?;
        if card.major < 9 {
            return Ok(None);
        }
        let blocks = card.multiprocessors;
        let each = self.h / TILE;
        Ok(Some((each, self.b.div_ceil(TILE).min((blocks / each).max(1)))))
    }
}

/// Where the forward pass reads and writes. `h0` and `c0` may be 0: a zero state.
pub(crate) struct Forward {
    /// Projected symbols `[V, 4H]`.
    pub table: u64,
    /// Recurrent weight `[4H, H]`.
    pub w: u64,
    /// Initial h `[B, H]`.
    pub h0: u64,
    /// Initial c `[B, H]`.
    pub c0: u64,
    /// Outputs `[T, B, H]`.
    pub hs: u64,
    /// Final cells `[B, H]`, or 0.
    pub last: u64,
    /// Cells of T times (1 time when gates are not kept) [`Run::padded`] numbers, for [`backward`] in an order of its own.
    pub cells: u64,
    /// Gates, four times as many, or 0: nothing is kept for a backward pass.
    pub gates: u64,
    /// Room for one step's products `[B, 4H]`.
    pub gh: u64,
}

/// The recurrence.
pub(crate) fn forward(device: &CudaDevice, run: &Run, p: &Forward) -> Result<()> {
    match run.clusters(device)? {
        Some(clusters) => forward_whole(device, run, p, clusters),
        None => forward_by_step(device, run, p),
    }
}

fn forward_whole(device: &CudaDevice, run: &Run, p: &Forward, (each, clusters): (usize, usize)) -> Result<()> {
    let name = match each {
        2 => "lstm_fwd_2",
        4 => "lstm_fwd_4",
        8 => "lstm_fwd_8",
        _ => "lstm_fwd_16",
    };
    launch(
        device,
        name,
        (((each * clusters) as u32, 1), 256, shared(each) as u32),
        &[
            Arg::Address(p.table),
            Arg::Address(run.ids),
            Arg::Int(run.g as i32),
            Arg::Int(i32::from(run.count_padding)),
            Arg::Address(p.w),
            Arg::Address(p.h0),
            Arg::Address(p.c0),
            Arg::Address(p.hs),
            Arg::Address(p.cells),
            Arg::Address(p.gates),
            Arg::Address(p.last),
            Arg::Address(run.len),
            Arg::Int(run.t as i32),
            Arg::Int(run.b as i32),
        ],
    )
}

/// Bytes of shared memory: two boxes of h, and barriers.
fn shared(each: usize) -> usize {
    2 * each * 2048 + 64
}

/// Bytes of shared memory on the way back: two boxes each of what arrives and what leaves, scales, gradients of gates, and
/// barriers.
fn shared_back(each: usize) -> usize {
    2 * each * (2 * 2048 + 4) + 32 * 136 * 2 + 64
}

fn forward_by_step(device: &CudaDevice, run: &Run, p: &Forward) -> Result<()> {
    let Run { t, b, g, h, .. } = *run;
    let bytes = run.bytes();
    let keep = p.gates != 0;
    for s in 0..t as u64 {
        let h_prev = if s == 0 { p.h0 } else { p.hs + (s - 1) * bytes };
        let (c_prev, c_next, act) = if keep {
            (if s == 0 { p.c0 } else { p.cells + (s - 1) * bytes }, p.cells + s * bytes, p.gates + s * 4 * bytes)
        } else {
            // Each element is read before it is written, by the same thread.
            (if s == 0 { p.c0 } else { p.cells }, p.cells, 0)
        };
        if h_prev != 0 {
            let w = Mat::new(p.w, h).t();
            product(device, (b, 4 * h, h), Mat::new(h_prev, h), w, 0.0, Mat::new(p.gh, 4 * h), 1)?;
        }
        launch(
            device,
            "lstm_cell_fwd",
            each(b * h),
            &[
                Arg::Address(p.table),
                Arg::Address(run.ids + s * (4 * b * g) as u64),
                Arg::Int(g as i32),
                Arg::Int(i32::from(run.count_padding)),
                Arg::Address(if h_prev == 0 { 0 } else { p.gh }),
                Arg::Address(h_prev),
                Arg::Address(c_prev),
                Arg::Address(p.hs + s * bytes),
                Arg::Address(c_next),
                Arg::Address(if s as usize == t - 1 { p.last } else { 0 }),
                Arg::Address(act),
                Arg::Address(run.len),
                Arg::Int(s as i32),
                Arg::Int(b as i32),
                Arg::Int(h as i32),
            ],
        )?;
    }
    Ok(())
}

/// Where the backward pass reads and writes; the first six as in [`Forward`].
pub(crate) struct Backward {
    pub w: u64,
    pub h0: u64,
    pub c0: u64,
    pub hs: u64,
    pub cells: u64,
    pub gates: u64,
    /// Gradient of the outputs `[T, B, H]`.
    pub grad: u64,
    /// Further gradient of the last h `[B, H]`, or 0.
    pub dh_last: u64,
    /// Gradient of the last c `[B, H]`, or 0.
    pub dc_last: u64,
    /// Gradient of the gates `[T, B, 4H]`.
    pub d_gates: u64,
    /// Gradient of the initial h `[B, H]`.
    pub dh: u64,
    /// Gradient of the initial c `[B, H]`.
    pub dc: u64,
    /// Gradient of the recurrent weight `[4H, H]`.
    pub d_w: u64,
}

/// The recurrence backwards.
pub(crate) fn backward(device: &CudaDevice, run: &Run, p: &Backward) -> Result<()> {
    match run.clusters(device)? {
        Some(clusters) => backward_whole(device, run, p, clusters)?,
        None => backward_by_step(device, run, p)?,
    }
    recurrent_weight_gradient(device, run, p)
}

fn backward_whole(device: &CudaDevice, run: &Run, p: &Backward, (each, clusters): (usize, usize)) -> Result<()> {
    let name = match each {
        2 => "lstm_bwd_2",
        4 => "lstm_bwd_4",
        8 => "lstm_bwd_8",
        _ => "lstm_bwd_16",
    };
    launch(
        device,
        name,
        (((each * clusters) as u32, 1), 256, shared_back(each) as u32),
        &[
            Arg::Address(p.w),
            Arg::Address(p.h0),
            Arg::Address(p.c0),
            Arg::Address(p.cells),
            Arg::Address(p.gates),
            Arg::Address(p.grad),
            Arg::Address(p.dh_last),
            Arg::Address(p.dc_last),
            Arg::Address(p.d_gates),
            Arg::Address(p.dh),
            Arg::Address(p.dc),
            Arg::Address(run.len),
            Arg::Int(run.t as i32),
            Arg::Int(run.b as i32),
        ],
    )
}

fn backward_by_step(device: &CudaDevice, run: &Run, p: &Backward) -> Result<()> {
    let Run { t, b, h, .. } = *run;
    let bytes = run.bytes();
    for s in (0..t as u64).rev() {
        let last = s as usize == t - 1;
        launch(
            device,
            "lstm_cell_bwd",
            each(b * h),
            &[
                Arg::Address(p.gates + s * 4 * bytes),
                Arg::Address(if s == 0 { p.c0 } else { p.cells + (s - 1) * bytes }),
                Arg::Address(p.cells + s * bytes),
                Arg::Address(p.grad + s * bytes),
                Arg::Address(if last { p.dh_last } else { p.dh }),
                Arg::Address(if last { p.dc_last } else { p.dc }),
                Arg::Address(p.d_gates + s * 4 * bytes),
                Arg::Address(p.dh),
                Arg::Address(p.dc),
                Arg::Address(run.len),
                Arg::Int(s as i32),
                Arg::Int(b as i32),
                Arg::Int(h as i32),
            ],
        )?;
        if s > 0 || p.h0 != 0 {
            let d_s = Mat::new(p.d_gates + s * 4 * bytes, 4 * h);
            product(device, (b, h, 4 * h), d_s, Mat::new(p.w, h), 1.0, Mat::new(p.dh, h), 1)?;
        }
    }
    Ok(())
}

fn recurrent_weight_gradient(device: &CudaDevice, run: &Run, p: &Backward) -> Result<()> {
    let Run { t, b, h, .. } = *run;
    let bytes = run.bytes();
    let into = Mat::new(p.d_w, h);
    let mut beta = 0.0;
    if t > 1 {
        let later = Mat::new(p.d_gates + 4 * bytes, 4 * h).t();
        product(device, (4 * h, h, (t - 1) * b), later, Mat::new(p.hs, h), 0.0, into, 1)?;
        beta = 1.0;
    }
    if p.h0 != 0 {
        let first = Mat::new(p.d_gates, 4 * h).t();
        product(device, (4 * h, h, b), first, Mat::new(p.h0, h), beta, into, 1)?;
    } else if t == 1 {
        zero(device, p.d_w, 4 * h * h)?;
    }
    Ok(())
}

/// Gradient of the projected symbols `[V, 4H]`: a product with the bags `[T·B, V]`, which are made on the way.
pub(crate) fn table_gradient(
    device: &CudaDevice,
    run: &Run,
    v: usize,
    d_gates: u64,
    bags: u64,
    d_table: u64,
) -> Result<()> {
    let (n, h) = (run.t * run.b, run.h);
    launch(
        device,
        "bags",
        each(n * v),
        &[
            Arg::Address(run.ids),
            Arg::Int(run.g as i32),
            Arg::Int(i32::from(run.count_padding)),
            Arg::Int(n as i32),
            Arg::Int(v as i32),
            Arg::Address(bags),
        ],
    )?;
    let (bags, gradients) = (Mat::new(bags, v).t(), Mat::new(d_gates, 4 * h));
    product(device, (v, 4 * h, n), bags, gradients, 0.0, Mat::new(d_table, 4 * h), 1)
}
