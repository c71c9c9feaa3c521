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
        let (n, state) = (run.numbers(), DeviceSlice::of_storage(state, ls)?);
        let places = Forward {
            table: DeviceSlice::of_storage(table, lt)?,
            w: DeviceSlice::of_storage(w, lw)?,
            h0: Some(state.part(0, n)),
            c0: Some(state.part(n, n)),
            hs: out.slice().part(0, t * n),
            last: Some(out.slice().part(t * n, n)),
            cells: cells.slice(),
            gates: gates.as_ref().map(Buffer::slice),
            gh: gh.slice(),
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
        let (n, state, g) = (run.numbers(), DeviceSlice::of(state)?, DeviceSlice::of(&grad)?);
        let places = Backward {
            w: DeviceSlice::of(w)?,
            h0: Some(state.part(0, n)),
            c0: Some(state.part(n, n)),
            hs: DeviceSlice::of(out)?,
            cells: cells.slice(),
            gates: gates.slice(),
            grad: g.part(0, t * n),
            dh_last: None,
            dc_last: Some(g.part(t * n, n)),
            d_gates: d_gates.slice(),
            dh: d_state.slice().part(0, n),
            dc: d_state.slice().part(n, n),
            d_w: d_w.slice(),
        };
        backward(&device, &run, &places)?;
        table_gradient(&device, &run, v, places.d_gates, bags.slice(), d_table.slice())?;
        Ok((
            Some(tensor(d_table, &device, (v, 4 * h))),
            Some(tensor(d_w, &device, (4 * h, h))),
            Some(tensor(d_state, &device, (2, b, h))),
        ))
    }
}

/// A recurrence over symbols: steps, rows, symbols of a position, hidden size, and where symbols and lengths are.
#[derive(Clone, Copy)]
pub(crate) struct Run<'m> {
    pub t: usize,
    pub b: usize,
    pub g: usize,
    pub h: usize,
    pub ids: DeviceSlice<'m, u32>,
    pub len: DeviceSlice<'m, u32>,
    pub count_padding: bool,
}

impl<'m> Run<'m> {
    /// The recurrence over `tokens` with hidden size `h`.
    pub fn of(tokens: &'m Tokens, h: usize) -> Result<Self> {
        let (t, b, g) = (tokens.steps, tokens.rows, tokens.width);
        let ids = DeviceSlice::of(&tokens.ids)?.holding(t * b * g, "the symbols of a recurrence")?;
        let len = DeviceSlice::of(tokens.lengths.on_device()?)?.holding(b, "the lengths of a recurrence")?;
        Ok(Self { t, b, g, h, ids, len, count_padding: tokens.count_padding })
    }

    /// Numbers of one `[B, H]`.
    pub fn numbers(&self) -> usize {
        self.b * self.h
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

/// Where the forward pass reads and writes. `h0` and `c0` may be missing: a zero state.
pub(crate) struct Forward<'m> {
    /// Projected symbols `[V, 4H]`.
    pub table: DeviceSlice<'m, f32>,
    /// Recurrent weight `[4H, H]`.
    pub w: DeviceSlice<'m, f32>,
    /// Initial h `[B, H]`.
    pub h0: Option<DeviceSlice<'m, f32>>,
    /// Initial c `[B, H]`.
    pub c0: Option<DeviceSlice<'m, f32>>,
    /// Outputs `[T, B, H]`.
    pub hs: DeviceSlice<'m, f32>,
    /// Final cells `[B, H]`, where they are asked for.
    pub last: Option<DeviceSlice<'m, f32>>,
    /// Cells of T times (1 time when gates are not kept) [`Run::padded`] numbers, for [`backward`] in an order of its own.
    pub cells: DeviceSlice<'m, f32>,
    /// Gates, four times as many; without them nothing is kept for a backward pass.
    pub gates: Option<DeviceSlice<'m, f32>>,
    /// Room for one step's products `[B, 4H]`.
    pub gh: DeviceSlice<'m, f32>,
}

impl Forward<'_> {
    /// Refuses places that are too small for `run`.
    fn check(&self, run: &Run<'_>) -> Result<()> {
        let (n, kept) = (run.numbers(), if self.gates.is_some() { run.t } else { 1 });
        check_state(self.h0, self.c0, run)?;
        self.w.holding(4 * run.h * run.h, "the weight of a recurrence")?;
        self.hs.holding(run.t * n, "the outputs of a recurrence")?;
        self.cells.holding(kept * run.padded(), "the cells of a recurrence")?;
        self.gh.holding(4 * n, "the room of a recurrence")?;
        if let Some(last) = self.last {
            last.holding(n, "the last cells of a recurrence")?;
        }
        if let Some(gates) = self.gates {
            gates.holding(run.t * 4 * run.padded(), "the gates of a recurrence")?;
        }
        Ok(())
    }
}

fn check_state(h0: Option<DeviceSlice<'_, f32>>, c0: Option<DeviceSlice<'_, f32>>, run: &Run<'_>) -> Result<()> {
    [h0, c0]
        .into_iter()
        .flatten()
        .try_for_each(|x| x.holding(run.numbers(), "the first state of a recurrence").map(drop))
}

/// The recurrence.
pub(crate) fn forward(device: &CudaDevice, run: &Run<'_>, p: &Forward<'_>) -> Result<()> {
    p.check(run)?;
    match run.clusters(device)? {
        Some(clusters) => forward_whole(device, run, p, clusters),
        None => forward_by_step(device, run, p),
    }
}

fn forward_whole(device: &CudaDevice, run: &Run<'_>, p: &Forward<'_>, (each, clusters): (usize, usize)) -> Result<()> {
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
            Arg::from(p.table),
            Arg::from(run.ids),
            Arg::Int(run.g as i32),
            Arg::Int(i32::from(run.count_padding)),
            Arg::from(p.w),
            Arg::from(p.h0),
            Arg::from(p.c0),
            Arg::from(p.hs),
            Arg::from(p.cells),
            Arg::from(p.gates),
            Arg::from(p.last),
            Arg::from(run.len),
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

fn forward_by_step(device: &CudaDevice, run: &Run<'_>, p: &Forward<'_>) -> Result<()> {
    let Run { t, b, g, h, .. } = *run;
    let n = run.numbers();
    for s in 0..t {
        let h_prev = if s == 0 { p.h0 } else { Some(p.hs.part((s - 1) * n, n)) };
        let (c_prev, c_next, act) = match p.gates {
            Some(gates) => {
                let c_prev = if s == 0 { p.c0 } else { Some(p.cells.part((s - 1) * n, n)) };
                (c_prev, p.cells.part(s * n, n), Some(gates.part(s * 4 * n, 4 * n)))
            }
            // Each element is read before it is written, by the same thread.
            None => (if s == 0 { p.c0 } else { Some(p.cells) }, p.cells, None),
        };
        if let Some(h_prev) = h_prev {
            let w = Mat::new(p.w, h).t();
            product(device, (b, 4 * h, h), Mat::new(h_prev, h), w, 0.0, Mat::new(p.gh, 4 * h), 1)?;
        }
        launch(
            device,
            "lstm_cell_fwd",
            each(b * h),
            &[
                Arg::from(p.table),
                Arg::from(run.ids.part(s * b * g, b * g)),
                Arg::Int(g as i32),
                Arg::Int(i32::from(run.count_padding)),
                Arg::from(h_prev.map(|_| p.gh)),
                Arg::from(h_prev),
                Arg::from(c_prev),
                Arg::from(p.hs.part(s * n, n)),
                Arg::from(c_next),
                Arg::from(p.last.filter(|_| s == t - 1)),
                Arg::from(act),
                Arg::from(run.len),
                Arg::Int(s as i32),
                Arg::Int(b as i32),
                Arg::Int(h as i32),
            ],
        )?;
    }
    Ok(())
}

/// Where the backward pass reads and writes; the first six as in [`Forward`].
pub(crate) struct Backward<'m> {
    pub w: DeviceSlice<'m, f32>,
    pub h0: Option<DeviceSlice<'m, f32>>,
    pub c0: Option<DeviceSlice<'m, f32>>,
    pub hs: DeviceSlice<'m, f32>,
    pub cells: DeviceSlice<'m, f32>,
    pub gates: DeviceSlice<'m, f32>,
    /// Gradient of the outputs `[T, B, H]`.
    pub grad: DeviceSlice<'m, f32>,
    /// Further gradient of the last h `[B, H]`, where there is one.
    pub dh_last: Option<DeviceSlice<'m, f32>>,
    /// Gradient of the last c `[B, H]`, where there is one.
    pub dc_last: Option<DeviceSlice<'m, f32>>,
    /// Gradient of the gates `[T, B, 4H]`.
    pub d_gates: DeviceSlice<'m, f32>,
    /// Gradient of the initial h `[B, H]`.
    pub dh: DeviceSlice<'m, f32>,
    /// Gradient of the initial c `[B, H]`.
    pub dc: DeviceSlice<'m, f32>,
    /// Gradient of the recurrent weight `[4H, H]`.
    pub d_w: DeviceSlice<'m, f32>,
}

impl Backward<'_> {
    /// Refuses places that are too small for `run`.
    fn check(&self, run: &Run<'_>) -> Result<()> {
        let (t, n, weight) = (run.t, run.numbers(), 4 * run.h * run.h);
        check_state(self.h0, self.c0, run)?;
        self.w.holding(weight, "the weight of a recurrence")?;
        self.hs.holding(t * n, "the outputs of a recurrence")?;
        self.cells.holding(t * run.padded(), "the cells of a recurrence")?;
        self.gates.holding(t * 4 * run.padded(), "the gates of a recurrence")?;
        self.grad.holding(t * n, "the gradient of a recurrence's outputs")?;
        self.d_gates.holding(t * 4 * n, "the gradient of a recurrence's gates")?;
        let state = [Some(self.dh), Some(self.dc), self.dh_last, self.dc_last];
        state.into_iter().flatten().try_for_each(|x| x.holding(n, "the gradient of a recurrence's state").map(drop))?;
        self.d_w.holding(weight, "the gradient of a recurrence's weight").map(drop)
    }
}

/// The recurrence backwards.
pub(crate) fn backward(device: &CudaDevice, run: &Run<'_>, p: &Backward<'_>) -> Result<()> {
    p.check(run)?;
    match run.clusters(device)? {
        Some(clusters) => backward_whole(device, run, p, clusters)?,
        None => backward_by_step(device, run, p)?,
    }
    recurrent_weight_gradient(device, run, p)
}

fn backward_whole(
    device: &CudaDevice,
    run: &Run<'_>,
    p: &Backward<'_>,
    (each, clusters): (usize, usize),
) -> Result<()> {
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
            Arg::from(p.w),
            Arg::from(p.h0),
            Arg::from(p.c0),
            Arg::from(p.cells),
            Arg::from(p.gates),
            Arg::from(p.grad),
            Arg::from(p.dh_last),
            Arg::from(p.dc_last),
            Arg::from(p.d_gates),
            Arg::from(p.dh),
            Arg::from(p.dc),
            Arg::from(run.len),
            Arg::Int(run.t as i32),
            Arg::Int(run.b as i32),
        ],
    )
}

fn backward_by_step(device: &CudaDevice, run: &Run<'_>, p: &Backward<'_>) -> Result<()> {
    let Run { t, b, h, .. } = *run;
    let n = run.numbers();
    for s in (0..t).rev() {
        let last = s == t - 1;
        let d_gates = p.d_gates.part(s * 4 * n, 4 * n);
        launch(
            device,
            "lstm_cell_bwd",
            each(b * h),
            &[
                Arg::from(p.gates.part(s * 4 * n, 4 * n)),
                Arg::from(if s == 0 { p.c0 } else { Some(p.cells.part((s - 1) * n, n)) }),
                Arg::from(p.cells.part(s * n, n)),
                Arg::from(p.grad.part(s * n, n)),
                Arg::from(if last { p.dh_last } else { Some(p.dh) }),
                Arg::from(if last { p.dc_last } else { Some(p.dc) }),
                Arg::from(d_gates),
                Arg::from(p.dh),
                Arg::from(p.dc),
                Arg::from(run.len),
                Arg::Int(s as i32),
                Arg::Int(b as i32),
                Arg::Int(h as i32),
            ],
        )?;
        if s > 0 || p.h0.is_some() {
            product(device, (b, h, 4 * h), Mat::new(d_gates, 4 * h), Mat::new(p.w, h), 1.0, Mat::new(p.dh, h), 1)?;
        }
    }
    Ok(())
}

fn recurrent_weight_gradient(device: &CudaDevice, run: &Run<'_>, p: &Backward<'_>) -> Result<()> {
    let Run { t, b, h, .. } = *run;
    let into = Mat::new(p.d_w, h);
    let mut beta = 0.0;
    if t > 1 {
        let later = Mat::new(p.d_gates.rest(4 * run.numbers()), 4 * h).t();
        product(device, (4 * h, h, (t - 1) * b), later, Mat::new(p.hs, h), 0.0, into, 1)?;
        beta = 1.0;
    }
    if let Some(h0) = p.h0 {
        let first = Mat::new(p.d_gates, 4 * h).t();
        product(device, (4 * h, h, b), first, Mat::new(h0, h), beta, into, 1)?;
    } else if t == 1 {
        zero(device, p.d_w.part(0, 4 * h * h))?;
    }
    Ok(())
}

/// Gradient of the projected symbols `[V, 4H]`: a product with the bags `[T·B, V]`, which are made on the way.
pub(crate) fn table_gradient(
    device: &CudaDevice,
    run: &Run<'_>,
    v: usize,
    d_gates: DeviceSlice<'_, f32>,
    bags: DeviceSlice<'_, f32>,
    d_table: DeviceSlice<'_, f32>,
) -> Result<()> {
    let (n, h) = (run.t * run.b, run.h);
    bags.holding(n * v, "the bags of a recurrence")?;
    launch(
        device,
        "bags",
        each(n * v),
        &[
            Arg::from(run.ids),
            Arg::Int(run.g as i32),
            Arg::Int(i32::from(run.count_padding)),
            Arg::Int(n as i32),
            Arg::Int(v as i32),
            Arg::from(bags),
        ],
    )?;
    let (bags, gradients) = (Mat::new(bags, v).t(), Mat::new(d_gates, 4 * h));
    product(device, (v, 4 * h, n), bags, gradients, 0.0, Mat::new(d_table, 4 * h), 1)
}
