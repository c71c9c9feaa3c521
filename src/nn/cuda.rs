//! The GPU engine: kernels that `build.rs` compiled, launched on the device's own stream, and what is built of them. Memory is handed
//! around as typed slices of live buffers of that stream (`DeviceSlice`); the stream orders a buffer's release after the work that
//! was enqueued before.
//!
//! Only `backend` differs between builds with and without the feature `cuda`.

pub mod adam;
pub(crate) mod arena;
pub mod attention;
pub(crate) mod backend;
mod bias_init;
pub mod decode;
pub mod graph_capture;
pub mod linear;
pub mod loss;
pub mod lstm;
pub(crate) mod operands;
mod persistent_kernel;
pub mod profile;
pub(crate) mod tape;
pub(crate) mod weight_folding;
pub(crate) mod workspace;

use crate::nn::device::LaunchOptions;
pub(crate) use backend::{Address, Arg, DeviceSlice, Grid, Mat, device_of};
use backend::{Buffer, DeviceRepr, Event, Gemm, Pinned, allocate};
use candle_core::backend::BackendStorage;
use candle_core::cuda::DeviceId;
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, DType, Layout, Result, Shape, Storage, Tensor, bail};
use std::sync::{PoisonError, RwLock};

/// Buffers of numbers.
type Floats = Buffer<f32>;

/// The options of each open device handle: Candle's handle has no room for them.
static OPTIONS: RwLock<Vec<(DeviceId, LaunchOptions)>> = RwLock::new(Vec::new());

/// Opens a GPU whose work is launched as `options` say.
pub(crate) fn open(ordinal: usize, options: LaunchOptions) -> Result<candle_core::Device> {
    let device = backend::open(ordinal)?;
    // Candle's own products know one precision for the whole process; those of this module follow the device's options.
    candle_core::cuda::set_gemm_reduced_precision_f32(options.tf32);
    OPTIONS.write().unwrap_or_else(PoisonError::into_inner).push((device.as_cuda_device()?.id(), options));
    Ok(device)
}

/// How work is launched on a device.
pub(crate) fn options(device: &CudaDevice) -> LaunchOptions {
    let all = OPTIONS.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(known, _)| *known == device.id()).map(|(_, options)| *options).unwrap_or_default()
}

/// The first number of the card's compute capability.
fn major(device: &CudaDevice) -> Result<i32> {
    Ok(backend::properties(device)?.major)
}

/// A thread for each of `n` elements (they loop where there are too many).
pub(crate) fn each(n: usize) -> Grid {
    ((n.div_ceil(256).clamp(1, 4096) as u32, 1), 256, 0)
}

/// A warp for each of `n` rows.
pub(crate) fn warps(n: usize) -> Grid {
    ((n.div_ceil(4).max(1) as u32, 1), 128, 0)
}

/// Launches a kernel of the `.cu` files beside this one.
pub(crate) fn launch(device: &CudaDevice, name: &'static str, grid: Grid, args: &[Arg]) -> Result<()> {
    launch_with::<u32>(device, name, grid, None, args, || name.to_owned())
}

/// Launches a kernel whose first argument is the parameter struct `list`; a profile calls it `called`.
fn launch_with<T: DeviceRepr>(
    device: &CudaDevice,
    name: &'static str,
    grid: Grid,
    list: Option<&T>,
    args: &[Arg],
    called: impl FnOnce() -> String,
) -> Result<()> {
    profile::span(device, called, 0.0, || backend::launch(device, name, grid, list, args))
}

/// A buffer of `n` numbers that nobody has written yet.
pub(crate) fn buffer(device: &CudaDevice, n: usize) -> Result<Floats> {
    allocate::<f32>(device, n)
}

/// A buffer as a tensor without history.
pub(crate) fn tensor(s: Floats, device: &CudaDevice, shape: impl Into<Shape>) -> Tensor {
    Tensor::from_storage(Storage::Cuda(s.into_storage(device)), shape, BackpropOp::none(), false)
}

/// A buffer as the result of an operation.
pub(crate) fn storage(s: Floats, device: &CudaDevice) -> CudaStorage {
    s.into_storage(device)
}

/// Overwrites a tensor by another of the same number of 4-byte elements, in place: everything that looks at it sees the
/// new values. Both contiguous.
pub fn overwrite(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.elem_count() != source.elem_count() {
        bail!("cannot overwrite {:?} by {:?}", target.shape(), source.shape())
    }
    copy(&device_of(target)?, DeviceSlice::<u32>::of_bits(source)?, DeviceSlice::of_bits(target)?)
}

/// Sets elements to zero.
pub(crate) fn zero<T>(device: &CudaDevice, to: DeviceSlice<'_, T>) -> Result<()> {
    backend::zero(device, to)
}

/// Copies elements.
pub(crate) fn copy<T: Copy>(device: &CudaDevice, from: DeviceSlice<'_, T>, to: DeviceSlice<'_, T>) -> Result<()> {
    if from.len() != to.len() {
        bail!("cannot copy {} elements to {}", from.len(), to.len())
    }
    backend::copy(device, from, to)
}

/// Writes numbers of the host into a tensor of 4-byte elements, in place.
pub fn upload<T: Copy>(target: &Tensor, values: &[T]) -> Result<()> {
    if target.elem_count() != values.len() {
        bail!("cannot write {} values into {:?}", values.len(), target.shape())
    }
    backend::upload_words(&device_of(target)?, DeviceSlice::of_bits(target)?, values)
}

/// Numbers (u32) of the device, once they are made. They are waited for before they are asked for: the driver keeps other threads
/// out while a copy to pageable memory waits.
pub(crate) fn download(t: &Tensor) -> Result<Vec<u32>> {
    backend::synchronize(&device_of(t)?)?;
    t.to_vec1()
}

/// Pinned memory of the host that batches go through: the copy is made beside whatever the device is doing, and the host
/// only waits for it when it is several batches ahead.
pub(crate) struct Staging {
    device: CudaDevice,
    places: Vec<(Pinned, Option<Event>)>,
    next: usize,
}

impl Staging {
    /// Room for a few batches on their way to `device`.
    pub fn new(device: &CudaDevice) -> Self {
        Self { device: device.clone(), places: (0..4).map(|_| (Pinned::empty(), None)).collect(), next: 0 }
    }

    /// Writes numbers of the host into a tensor (u32), in place.
    pub fn put(&mut self, target: &Tensor, values: &[u32]) -> Result<()> {
        if target.elem_count() != values.len() {
            bail!("cannot write {} values into {:?}", values.len(), target.shape())
        }
        let count = self.places.len();
        let (memory, copied) = &mut self.places[self.next % count];
        self.next += 1;
        if let Some(copied) = copied.take() {
            copied.synchronize()?;
        }
        memory.send(&self.device, DeviceSlice::of(target)?, values)?;
        *copied = Some(backend::event(&self.device, false)?);
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for (_, copied) in &self.places {
            if let Some(copied) = copied {
                let _ = copied.synchronize();
            }
        }
    }
}

impl<'m> Mat<'m> {
    /// A dense matrix with `ld` columns as stored.
    pub fn new(at: DeviceSlice<'m, f32>, ld: usize) -> Self {
        Self { at, t: false, ld, stride: 0 }
    }

    /// The transposed matrix.
    pub fn t(self) -> Self {
        Self { t: !self.t, ..self }
    }

    /// One of a batch.
    pub fn every(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    /// Refuses memory that does not hold `batch` matrices of `rows` x `cols`.
    fn check(&self, rows: usize, cols: usize, batch: usize, what: &str) -> Result<()> {
        let (rows, cols) = if self.t { (cols, rows) } else { (rows, cols) };
        self.at.holding_strided(&[(batch, self.stride), (rows, self.ld), (cols, 1)], what).map(drop)
    }
}

/// Refuses the operands of a product that do not have its sizes.
fn check_product(
    (m, n, k): (usize, usize, usize),
    a: Mat<'_>,
    b: Mat<'_>,
    onto: Onto<'_>,
    c: Mat<'_>,
    batch: usize,
) -> Result<()> {
    a.check(m, k, batch, "the first factor of a product")?;
    b.check(k, n, batch, "the second factor of a product")?;
    c.check(m, n, batch, "the result of a product")?;
    onto.row().map_or(Ok(()), |row| row.holding(n, "the bias of a product").map(drop))
}

/// Row-major `C[m, n] = op(A)[m, k] · op(B)[k, n] + beta·C` for each of `batch` matrices. In TF32 where the
/// device's options allow it.
#[allow(clippy::too_many_arguments)]
pub(crate) fn product(
    device: &CudaDevice,
    sizes: (usize, usize, usize),
    a: Mat<'_>,
    b: Mat<'_>,
    beta: f32,
    c: Mat<'_>,
    batch: usize,
) -> Result<()> {
    let (m, n, k) = sizes;
    check_product(sizes, a, b, Onto::Nothing, c, batch)?;
    let letter = |x: Mat<'_>| if x.t { 't' } else { 'n' };
    let name = || format!("product {}{} {m}x{n}x{k} x{batch}", letter(a), letter(b));
    let flops = 2.0 * (m * n * k * batch) as f64;
    let tf32 = options(device).tf32;
    profile::span(device, name, flops, || backend::gemm(device, Gemm { m, n, k, beta, batch, tf32 }, a, b, c))
}

/// Rows up to which a product is made by `small_gemm.cu`.
const FEW: usize = 256;

/// Rows up to which `small_gemm.cu` makes one whose weights are not transposed: with some sizes of that kind cuBLAS takes long.
const SOME: usize = 2048;

/// The previous content of a product's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Onto<'m> {
    /// Nothing.
    Nothing,
    /// The product is added to the content.
    Itself,
    /// A row for all rows; only where `small_gemm.cu` makes it.
    Row(DeviceSlice<'m, f32>),
}

impl<'m> Onto<'m> {
    /// A row, or (`None`) what lies there.
    fn of(bias: Option<DeviceSlice<'m, f32>>) -> Self {
        bias.map_or(Self::Itself, Self::Row)
    }

    /// The row, where there is one.
    fn row(self) -> Option<DeviceSlice<'m, f32>> {
        if let Self::Row(row) = self { Some(row) } else { None }
    }
}

/// [`product`] of few rows: `C[m, n] = A·op(B)`, added to something, through ReLU or not. In TF32 where that is switched on.
pub(crate) fn small_gemm(
    device: &CudaDevice,
    (m, n, k): (usize, usize, usize),
    a: Mat<'_>,
    b: Mat<'_>,
    onto: Onto<'_>,
    c: Mat<'_>,
    relu: bool,
) -> Result<()> {
    let add = onto == Onto::Itself;
    if a.t || !some(options(device), m, b) {
        product(device, (m, n, k), a, b, if add { 1.0 } else { 0.0 }, c, 1)?;
        if !relu {
            return Ok(());
        }
        if c.ld != n {
            bail!("a product through ReLU has to lie side by side")
        }
        return launch(device, "act_fwd", each(m * n), &[Arg::from(c.at), Arg::Int((m * n) as i32), Arg::Int(0)]);
    }
    let letter = if b.t { 't' } else { 'n' };
    let name = || format!("few n{letter} {m}x{n}x{k}");
    let whole = |x: usize| Arg::Int(x as i32);
    let args = [
        Arg::from(a.at),
        whole(a.ld),
        Arg::from(b.at),
        whole(b.ld),
        whole((!b.t).into()),
        Arg::from(c.at),
        whole(c.ld),
        whole(m),
        whole(n),
        whole(k),
        whole(add.into()),
        whole(relu.into()),
        Arg::from(onto.row()),
    ];
    let grid = ((n.div_ceil(32) as u32, m.div_ceil(32) as u32), 256, 0);
    profile::named(name, 2.0 * (m * n * k) as f64, || launch(device, "small_gemm", grid, &args))
}

/// Whether a product of `rows` rows is made by `small_gemm.cu`, whatever the weights.
fn few(options: LaunchOptions, rows: usize) -> bool {
    rows <= FEW && options.tf32 && options.small_gemm
}

/// Whether a product of `rows` rows with the weights `b` is.
fn some(options: LaunchOptions, rows: usize, b: Mat<'_>) -> bool {
    few(options, if rows <= SOME && b.t { 1 } else { rows })
}
