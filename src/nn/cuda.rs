//! The GPU side of the fused operations: kernels that `build.rs` compiled, launched on the device's own stream. Addresses are of live buffers of that stream; the stream orders a
//! buffer's release after the work that was enqueued before.

pub mod adam;
pub mod arena;
pub mod attention;
pub mod combine;
pub mod decode;
mod fills;
pub mod linear;
pub mod loss;
pub mod lstm;
pub mod module;
pub mod operands;
pub mod profile;
pub mod record;
pub mod steps;
pub mod tape;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::{cublas, driver::*};
use candle_core::cuda_backend::{CudaDevice, CudaStorage, WrapErr};
use candle_core::op::BackpropOp;
use candle_core::{Layout, Result, Shape, Storage, Tensor, bail};
use module::kernel;

/// The first number of the card's compute capability.
fn major(device: &CudaDevice) -> Result<i32> {
    Ok(device.cuda_stream().context().compute_capability().w()?.0)
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Arg {
    /// An address; 0 for none.
    P(u64),
    /// A whole number.
    I(i32),
    /// A number in double precision.
    D(f64),
    /// A number.
    F(f32),
    /// Sizes of an attention.
    H(operands::Heads),
    /// What can be done at each pose.
    W(operands::Ways),
}

/// Blocks, threads of a block, bytes of shared memory.
pub(crate) type Grid = ((u32, u32), u32, u32);

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

/// The same for a kernel that first takes a list of what it is to do; a profile calls it `called`.
fn launch_with<T: DeviceRepr>(
    device: &CudaDevice,
    name: &'static str,
    grid: Grid,
    list: Option<&T>,
    args: &[Arg],
    called: impl FnOnce() -> String,
) -> Result<()> {
    let f = kernel(device, name)?;
    let ((x, y), threads, shared_mem_bytes) = grid;
    // Over 48 KiB of dynamic shared memory, and clusters of 16 blocks, need an explicit opt-in.
    use sys::CUfunction_attribute_enum::*;
    if shared_mem_bytes > 48 << 10 {
        f.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_mem_bytes as i32).w()?;
    }
    if name.ends_with("_16") {
        f.set_attribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1).w()?;
    }
    let stream = device.cuda_stream();
    let mut l = stream.launch_builder(&f);
    if let Some(list) = list {
        l.arg(list);
    }
    for arg in args {
        match arg {
            Arg::P(x) => l.arg(x),
            Arg::I(x) => l.arg(x),
            Arg::D(x) => l.arg(x),
            Arg::F(x) => l.arg(x),
            Arg::H(x) => l.arg(x),
            Arg::W(x) => l.arg(x),
        };
    }
    let config = LaunchConfig { grid_dim: (x, y, 1), block_dim: (threads, 1, 1), shared_mem_bytes };
    // Safety: the callers state the kernel's arguments, with buffers of the sizes it works on; the driver copies them at once.
    let mut go = || unsafe { l.launch(config) }.w().map(drop);
    profile::span(device, called, 0.0, &mut go)
}

/// Address of a contiguous storage of 4-byte elements. Only for use on the device's own stream.
pub(crate) fn address(storage: &CudaStorage, layout: &Layout) -> Result<u64> {
    if !layout.is_contiguous() {
        bail!("expected a contiguous tensor")
    }
    let stream = storage.device().cuda_stream();
    let base = match storage.dtype() {
        candle_core::DType::F32 => storage.as_cuda_slice::<f32>()?.device_ptr(&stream).0,
        candle_core::DType::U32 => storage.as_cuda_slice::<u32>()?.device_ptr(&stream).0,
        other => bail!("expected 4-byte elements, not {other:?}"),
    };
    Ok(base + (layout.start_offset() * 4) as u64)
}

/// Address of the first of a storage of float16.
pub(crate) fn half_address(storage: &CudaStorage) -> Result<u64> {
    let stream = storage.device().cuda_stream();
    Ok(storage.as_cuda_slice::<half::f16>()?.device_ptr(&stream).0)
}

/// Address of a contiguous tensor on the GPU.
pub(crate) fn at(t: &Tensor) -> Result<u64> {
    let (storage, layout) = t.storage_and_layout();
    match &*storage {
        Storage::Cuda(s) => address(s, layout),
        _ => bail!("expected a tensor on the GPU"),
    }
}

/// The device of a tensor.
pub(crate) fn device_of(t: &Tensor) -> Result<CudaDevice> {
    Ok(t.device().as_cuda_device()?.clone())
}

/// A buffer of `n` numbers that nobody has written yet.
pub(crate) fn buffer(device: &CudaDevice, n: usize) -> Result<CudaSlice<f32>> {
    // Safety: every operation here writes its whole result before anything reads it.
    unsafe { device.alloc::<f32>(n) }
}

/// Address of a buffer.
pub(crate) fn of(s: &CudaSlice<f32>, device: &CudaDevice) -> u64 {
    let stream = device.cuda_stream();
    let (p, _guard) = s.device_ptr(&stream);
    p
}

/// A buffer as a tensor without history.
pub(crate) fn tensor(s: CudaSlice<f32>, device: &CudaDevice, shape: impl Into<Shape>) -> Tensor {
    let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(s, device.clone()));
    Tensor::from_storage(storage, shape, BackpropOp::none(), false)
}

/// A buffer as the result of an operation.
pub(crate) fn storage(s: CudaSlice<f32>, device: &CudaDevice) -> CudaStorage {
    CudaStorage::wrap_cuda_slice(s, device.clone())
}

/// Overwrites a tensor by another of the same number of 4-byte elements, in place: everything that looks at it sees the
/// new values. Both contiguous.
pub fn overwrite(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.elem_count() != source.elem_count() {
        bail!("cannot overwrite {:?} by {:?}", target.shape(), source.shape())
    }
    let device = device_of(target)?;
    let (to, from) = (at(target)?, at(source)?);
    // Safety: both are live and of that size.
    unsafe { result::memcpy_dtod_async(to, from, 4 * target.elem_count(), device.cuda_stream().cu_stream()) }.w()
}

/// Sets `n` numbers to zero.
pub(crate) fn zero(device: &CudaDevice, at: u64, n: usize) -> Result<()> {
    // Safety: the callers pass a live buffer of that size.
    unsafe { result::memset_d8_async(at, 0, 4 * n, device.cuda_stream().cu_stream()) }.w()
}

/// Copies `n` numbers.
pub(crate) fn copy(device: &CudaDevice, from: u64, to: u64, n: usize) -> Result<()> {
    // Safety: the callers pass live buffers of that size.
    unsafe { result::memcpy_dtod_async(to, from, 4 * n, device.cuda_stream().cu_stream()) }.w()
}

/// Elements that the driver takes from pageable memory without waiting for the stream.
const STAGED: usize = 16 << 10;

/// Writes numbers of the host into a tensor of 4-byte elements, in place.
pub fn upload<T: Copy>(target: &Tensor, values: &[T]) -> Result<()> {
    if target.elem_count() != values.len() || size_of::<T>() != 4 {
        bail!("cannot write {} values into {:?}", values.len(), target.shape())
    }
    let device = device_of(target)?;
    let stream = device.cuda_stream();
    stream.context().bind_to_thread().w()?;
    let begin = at(target)?;
    for (i, part) in values.chunks(STAGED).enumerate() {
        // Safety: the target has that size; the driver has read pageable memory before the call returns.
        unsafe { result::memcpy_htod_async(begin + (4 * i * STAGED) as u64, part, stream.cu_stream()) }.w()?;
    }
    Ok(())
}

/// Numbers (u32) of the device, once they are made. They are waited for before they are asked for: the driver keeps other threads
/// out while a copy to pageable memory waits.
pub(crate) fn download(t: &Tensor) -> Result<Vec<u32>> {
    device_of(t)?.cuda_stream().synchronize().w()?;
    t.to_vec1()
}

/// Pinned memory of the host that batches go through: the copy is made beside whatever the device is doing, and the host
/// only waits for it when it is several batches ahead.
pub struct Staging {
    device: CudaDevice,
    places: Vec<Place>,
    next: usize,
}

struct Place {
    at: *mut u32,
    room: usize,
    /// When what was last here has been copied.
    copied: Option<CudaEvent>,
}

// Safety: the memory is this structure's own, and it is only touched through exclusive references.
unsafe impl Send for Staging {}

impl Staging {
    /// Room for a few batches on their way to `device`.
    pub fn new(device: &CudaDevice) -> Self {
        let empty = || Place { at: std::ptr::null_mut(), room: 0, copied: None };
        Self { device: device.clone(), places: (0..4).map(|_| empty()).collect(), next: 0 }
    }

    /// Writes numbers of the host into a tensor (u32), in place.
    pub fn put(&mut self, target: &Tensor, values: &[u32]) -> Result<()> {
        if target.elem_count() != values.len() {
            bail!("cannot write {} values into {:?}", values.len(), target.shape())
        }
        let stream = self.device.cuda_stream();
        stream.context().bind_to_thread().w()?;
        let count = self.places.len();
        let place = &mut self.places[self.next % count];
        self.next += 1;
        if let Some(copied) = place.copied.take() {
            copied.synchronize().w()?;
        }
        if place.room < values.len() {
            let room = values.len().next_power_of_two();
            // Safety: nothing copies from the old memory any more; the new one has the size that is noted.
            unsafe {
                if !place.at.is_null() {
                    result::free_host(place.at.cast()).w()?;
                    place.at = std::ptr::null_mut();
                }
                place.at = result::malloc_host(4 * room, 0).w()?.cast();
            }
            place.room = room;
        }
        // Safety: the memory has room for the values, and nobody else uses it; the target has their size.
        unsafe {
            std::ptr::copy_nonoverlapping(values.as_ptr(), place.at, values.len());
            let there = std::slice::from_raw_parts(place.at, values.len());
            result::memcpy_htod_async(at(target)?, there, stream.cu_stream()).w()?;
        }
        place.copied = Some(stream.record_event(None).w()?);
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for place in &self.places {
            if let Some(copied) = &place.copied {
                let _ = copied.synchronize();
            }
            if !place.at.is_null() {
                // Safety: allocated by malloc_host, and no copy is under way.
                let _ = unsafe { result::free_host(place.at.cast()) };
            }
        }
    }
}

/// One operand of a product: address, whether it is stored transposed, elements from one stored row to the next, and
/// from one matrix of a batch to the next.
#[derive(Clone, Copy)]
pub(crate) struct Mat {
    /// Address.
    pub at: u64,
    /// Stored transposed.
    pub t: bool,
    /// Elements from row to row as stored.
    pub ld: usize,
    /// Elements from matrix to matrix.
    pub stride: usize,
}

impl Mat {
    /// A dense matrix with `ld` columns as stored.
    pub fn new(at: u64, ld: usize) -> Self {
        Self { at, t: false, ld, stride: 0 }
    }

    /// The same, stored transposed.
    pub fn t(self) -> Self {
        Self { t: true, ..self }
    }

    /// One of a batch.
    pub fn every(self, stride: usize) -> Self {
        Self { stride, ..self }
    }
}

/// Row-major `C[m, n] = op(A)[m, k] · op(B)[k, n] + beta·C` for each of `batch` matrices. TF32 where that is switched on
/// ([`crate::nn::device::set_fast_products`]).
#[allow(clippy::too_many_arguments)]
pub(crate) fn product(
    device: &CudaDevice,
    sizes: (usize, usize, usize),
    a: Mat,
    b: Mat,
    beta: f32,
    c: Mat,
    batch: usize,
) -> Result<()> {
    let (m, n, k) = sizes;
    let letter = |x: Mat| if x.t { 't' } else { 'n' };
    let name = || format!("product {}{} {m}x{n}x{k} x{batch}", letter(a), letter(b));
    let flops = 2.0 * (m * n * k * batch) as f64;
    profile::span(device, name, flops, || multiply(device, sizes, a, b, beta, c, batch))
}

/// Rows up to which a product is made by `small.cu`.
const FEW: usize = 256;

/// Rows up to which `small.cu` makes one whose weights are not turned: with some sizes of that kind cuBLAS takes long.
const SOME: usize = 2048;

/// What a product is added to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Onto {
    /// Nothing.
    Nothing,
    /// What lies there.
    Itself,
    /// A row at this address, for all rows; only where `small.cu` makes it.
    Row(u64),
}

impl Onto {
    /// A row at an address, or (0) what lies there.
    fn of(bias: u64) -> Self {
        if bias == 0 { Self::Itself } else { Self::Row(bias) }
    }

    /// Address of the row; 0 for none.
    fn row(self) -> u64 {
        if let Self::Row(at) = self { at } else { 0 }
    }
}

/// [`product`] of few rows: `C[m, n] = A·op(B)`, added to something, through ReLU or not. In TF32 where that is switched on.
pub(crate) fn product_of_few(
    device: &CudaDevice,
    (m, n, k): (usize, usize, usize),
    a: Mat,
    b: Mat,
    onto: Onto,
    c: Mat,
    relu: bool,
) -> Result<()> {
    let add = onto == Onto::Itself;
    if a.t || !some(m, b) {
        product(device, (m, n, k), a, b, if add { 1.0 } else { 0.0 }, c, 1)?;
        if !relu {
            return Ok(());
        }
        if c.ld != n {
            bail!("a product through ReLU has to lie side by side")
        }
        return launch(device, "act_fwd", each(m * n), &[Arg::P(c.at), Arg::I((m * n) as i32), Arg::I(0)]);
    }
    let letter = if b.t { 't' } else { 'n' };
    let name = || format!("few n{letter} {m}x{n}x{k}");
    let whole = |x: usize| Arg::I(x as i32);
    let args = [
        Arg::P(a.at),
        whole(a.ld),
        Arg::P(b.at),
        whole(b.ld),
        whole((!b.t).into()),
        Arg::P(c.at),
        whole(c.ld),
        whole(m),
        whole(n),
        whole(k),
        whole(add.into()),
        whole(relu.into()),
        Arg::P(onto.row()),
    ];
    let grid = ((n.div_ceil(32) as u32, m.div_ceil(32) as u32), 256, 0);
    profile::named(name, 2.0 * (m * n * k) as f64, || launch(device, "small_product", grid, &args))
}

/// Whether a product of `rows` rows is made by `small.cu`, whatever the weights.
fn few(rows: usize) -> bool {
    rows <= FEW && candle_core::cuda::gemm_reduced_precision_f32() && small_products()
}

/// Whether a product of `rows` rows with the weights `b` is.
fn some(rows: usize, b: Mat) -> bool {
    few(if rows <= SOME && b.t { 1 } else { rows })
}

/// Whether products of few rows are made by `small.cu`.
static SMALL: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);

/// Leaves products of few rows to cuBLAS, or not (for comparisons).
pub fn set_small_products(on: bool) {
    SMALL.store(on, std::sync::atomic::Ordering::Relaxed);
}

fn small_products() -> bool {
    SMALL.load(std::sync::atomic::Ordering::Relaxed)
}

fn multiply(
    device: &CudaDevice,
    (m, n, k): (usize, usize, usize),
    a: Mat,
    b: Mat,
    beta: f32,
    c: Mat,
    batch: usize,
) -> Result<()> {
    use cublas::sys::*;
    let op = |t: bool| if t { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N };
    let compute = if candle_core::cuda::gemm_reduced_precision_f32() {
        cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32
    } else {
        cublasComputeType_t::CUBLAS_COMPUTE_32F
    };
    let (alpha, f32_type) = (1f32, cudaDataType_t::CUDA_R_32F);
    let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT_TENSOR_OP;
    let handle = *device.cublas_handle().handle();
    let (alpha, beta) = (&alpha as *const f32 as *const _, &beta as *const f32 as *const _);
    // cuBLAS counts columns first, so the operands change places. Safety: the callers pass addresses of live buffers of
    // the sizes that m, n, k, the strides and the batch state.
    unsafe {
        if batch == 1 {
            cublas::result::gemm_ex(
                handle,
                op(b.t),
                op(a.t),
                n as i32,
                m as i32,
                k as i32,
                alpha,
                b.at as *const _,
                f32_type,
                b.ld as i32,
                a.at as *const _,
                f32_type,
                a.ld as i32,
                beta,
                c.at as *mut _,
                f32_type,
                c.ld as i32,
                compute,
                algorithm,
            )
        } else {
            cublas::result::gemm_strided_batched_ex(
                handle,
                op(b.t),
                op(a.t),
                n as i32,
                m as i32,
                k as i32,
                alpha,
                b.at as *const _,
                f32_type,
                b.ld as i32,
                b.stride as i64,
                a.at as *const _,
                f32_type,
                a.ld as i32,
                a.stride as i64,
                beta,
                c.at as *mut _,
                f32_type,
                c.ld as i32,
                c.stride as i64,
                batch as i32,
                compute,
                algorithm,
            )
        }
    }
    .w()
}
