//! The CUDA driver and cuBLAS through cudarc. All `unsafe` calls of the program into CUDA are in this file.

use super::module::{keep_compiled_kernels, kernel};
use super::{Address, Arg, DeviceSlice, Gemm, Grid, Mat, Properties};
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::{cublas, driver::*};
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorage, WrapErr};
use candle_core::{DType, Device, Result, Storage, Tensor, bail};
use std::path::Path;

pub(crate) use candle_core::cuda_backend::cudarc::driver::DeviceRepr;

/// Whether this build can use GPUs.
pub(crate) const AVAILABLE: bool = true;

/// Opens a GPU with a stream of its own.
pub(crate) fn open(ordinal: usize) -> Result<Device> {
    // An explicit stream, not the per-thread default: work stays ordered when a tensor is read from another thread.
    let device = Device::new_cuda_with_stream(ordinal)?;
    // SAFETY: no buffer is ever used on another stream than its own device's, so no events are needed to order its uses.
    unsafe { device.as_cuda_device()?.cuda_stream().context().disable_event_tracking() };
    Ok(device)
}

/// The number of GPUs of this machine; nothing is opened on them.
pub(crate) fn device_count() -> usize {
    // Without a driver the library cannot be loaded, which cudarc answers with a panic.
    std::panic::catch_unwind(|| CudaContext::device_count().ok()).ok().flatten().map_or(0, |n| n.max(0) as usize)
}

/// The card's name.
pub(crate) fn device_name(device: &CudaDevice) -> Result<String> {
    device.cuda_stream().context().name().w()
}

/// The properties of the card.
pub(crate) fn properties(device: &CudaDevice) -> Result<Properties> {
    use sys::CUdevice_attribute::*;
    let stream = device.cuda_stream();
    let context = stream.context();
    Ok(Properties {
        major: context.compute_capability().w()?.0,
        multiprocessors: context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).w()? as usize,
        shared_memory: context.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).w()? as usize,
    })
}

/// An owned buffer of the device.
pub(crate) struct Buffer<T: CudaDType + DeviceRepr>(CudaSlice<T>, u64);

/// A buffer of `n` elements with undefined content.
pub(crate) fn allocate<T: CudaDType + DeviceRepr>(device: &CudaDevice, n: usize) -> Result<Buffer<T>> {
    // SAFETY: every operation here writes its whole result before anything reads it.
    let slice = unsafe { device.alloc::<T>(n)? };
    let address = slice.device_ptr(&device.cuda_stream()).0;
    Ok(Buffer(slice, address))
}

impl<T: CudaDType + DeviceRepr> Buffer<T> {
    /// All its elements.
    pub fn slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.1, self.0.len())
    }

    /// The buffer as a storage of Candle.
    pub fn into_storage(self, device: &CudaDevice) -> CudaStorage {
        T::wrap_cuda_slice(self.0, device.clone())
    }
}

/// Address of the first element of a storage, whose elements must be of the type `dtype`.
pub(crate) fn storage_address(storage: &CudaStorage, dtype: DType) -> Result<u64> {
    let stream = storage.device().cuda_stream();
    if storage.dtype() != dtype {
        bail!("expected a buffer of {dtype:?}, not of {:?}", storage.dtype())
    }
    Ok(match dtype {
        DType::F32 => storage.as_cuda_slice::<f32>()?.device_ptr(&stream).0,
        DType::U32 => storage.as_cuda_slice::<u32>()?.device_ptr(&stream).0,
        DType::F16 => storage.as_cuda_slice::<half::f16>()?.device_ptr(&stream).0,
        other => bail!("no kernel works on buffers of {other:?}"),
    })
}

/// Address of the first element of a contiguous tensor of the type `dtype`.
pub(crate) fn tensor_address(t: &Tensor, dtype: DType) -> Result<u64> {
    let (storage, layout) = t.storage_and_layout();
    match &*storage {
        Storage::Cuda(s) if layout.is_contiguous() => {
            Ok(storage_address(s, dtype)? + (layout.start_offset() * dtype.size_in_bytes()) as u64)
        }
        Storage::Cuda(_) => bail!("expected a contiguous tensor"),
        _ => bail!("expected a tensor on the GPU"),
    }
}

/// The device of a tensor.
pub(crate) fn device_of(t: &Tensor) -> Result<CudaDevice> {
    Ok(t.device().as_cuda_device()?.clone())
}

/// Launches a kernel. `list` is its first argument where it takes a parameter struct.
pub(crate) fn launch<T: DeviceRepr>(
    device: &CudaDevice,
    name: &'static str,
    grid: Grid,
    list: Option<&T>,
    args: &[Arg],
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
            Arg::Address(x) => l.arg(&x.0),
            Arg::Int(x) => l.arg(x),
            Arg::Double(x) => l.arg(x),
            Arg::Float(x) => l.arg(x),
            Arg::Heads(x) => l.arg(x),
            Arg::Transitions(x) => l.arg(x),
        };
    }
    let config = LaunchConfig { grid_dim: (x, y, 1), block_dim: (threads, 1, 1), shared_mem_bytes };
    // SAFETY: the callers in `nn/cuda` give the arguments that the kernel declares, with buffers of the sizes that it works
    // on; the driver copies the arguments before the call returns.
    unsafe { l.launch(config) }.w().map(drop)
}

/// Sets all bytes of elements to zero.
pub(crate) fn zero<T>(device: &CudaDevice, to: DeviceSlice<'_, T>) -> Result<()> {
    let (to, bytes) = (Address::from(to).0, to.len() * size_of::<T>());
    // SAFETY: the slice borrows a live buffer, which has its elements.
    unsafe { result::memset_d8_async(to, 0, bytes, device.cuda_stream().cu_stream()) }.w()
}

/// Copies elements within the device; the caller has compared the numbers of elements.
pub(crate) fn copy<T>(device: &CudaDevice, from: DeviceSlice<'_, T>, to: DeviceSlice<'_, T>) -> Result<()> {
    let bytes = from.len().min(to.len()) * size_of::<T>();
    let (from, to) = (Address::from(from).0, Address::from(to).0);
    // SAFETY: the slices borrow live buffers, which have their elements.
    unsafe { result::memcpy_dtod_async(to, from, bytes, device.cuda_stream().cu_stream()) }.w()
}

/// Elements that the driver takes from pageable memory without waiting for the stream.
const STAGED: usize = 16 << 10;

/// Copies 4-byte elements of the host to the device; the caller has compared the numbers of elements.
pub(crate) fn upload_words<T: Copy>(device: &CudaDevice, to: DeviceSlice<'_, u32>, values: &[T]) -> Result<()> {
    const { assert!(size_of::<T>() == 4) };
    let to = Address::from(to.part(0, values.len())).0;
    let stream = device.cuda_stream();
    stream.context().bind_to_thread().w()?;
    for (i, part) in values.chunks(STAGED).enumerate() {
        // SAFETY: the callers pass a live buffer of that size; the driver has read pageable memory before the call returns.
        unsafe { result::memcpy_htod_async(to + (4 * i * STAGED) as u64, part, stream.cu_stream()) }.w()?;
    }
    Ok(())
}

/// Waits until the device's stream has done everything.
pub(crate) fn synchronize(device: &CudaDevice) -> Result<()> {
    device.cuda_stream().synchronize().w()
}

/// A moment of a stream.
pub(crate) struct Event(CudaEvent);

/// Marks the present end of the device's stream. `timed` events can be measured.
pub(crate) fn event(device: &CudaDevice, timed: bool) -> Result<Event> {
    let flags = timed.then_some(sys::CUevent_flags::CU_EVENT_DEFAULT);
    device.cuda_stream().record_event(flags).w().map(Event)
}

impl Event {
    /// Waits until the stream has come here.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize().w()
    }

    /// Milliseconds from here to a later event.
    pub fn milliseconds_to(&self, end: &Self) -> Result<f32> {
        self.0.elapsed_ms(&end.0).w()
    }
}

/// Pinned memory of the host, for 4-byte elements.
pub(crate) struct Pinned {
    at: *mut u32,
    room: usize,
}

// SAFETY: the memory is this structure's own, and it is only touched through exclusive references.
unsafe impl Send for Pinned {}

impl Pinned {
    /// No memory yet.
    pub fn empty() -> Self {
        Self { at: std::ptr::null_mut(), room: 0 }
    }

    /// Copies values here and from here to the device, beside whatever the stream is doing. No earlier copy may be under way.
    pub fn send(&mut self, device: &CudaDevice, to: DeviceSlice<'_, u32>, values: &[u32]) -> Result<()> {
        let to = Address::from(to.part(0, values.len())).0;
        let stream = device.cuda_stream();
        stream.context().bind_to_thread().w()?;
        if self.room < values.len() {
            let room = values.len().next_power_of_two();
            // SAFETY: nothing copies from the old memory any more; the new one has the size that is noted.
            unsafe {
                if !self.at.is_null() {
                    result::free_host(self.at.cast()).w()?;
                    (self.at, self.room) = (std::ptr::null_mut(), 0);
                }
                self.at = result::malloc_host(4 * room, 0).w()?.cast();
            }
            self.room = room;
        }
        // SAFETY: the memory has room for the values, and nobody else uses it; the target has their size.
        unsafe {
            std::ptr::copy_nonoverlapping(values.as_ptr(), self.at, values.len());
            let there = std::slice::from_raw_parts(self.at, values.len());
            result::memcpy_htod_async(to, there, stream.cu_stream()).w()
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.at.is_null() {
            // SAFETY: the memory was allocated by malloc_host, and the owner has waited for the last copy from it.
            let _ = unsafe { result::free_host(self.at.cast()) };
        }
    }
}

/// A captured CUDA graph.
pub(crate) struct Graph(CudaGraph);

// SAFETY: a graph is launched by whoever holds the lock of the cache that owns it; the driver binds the context to the thread.
unsafe impl Send for Graph {}

impl Graph {
    /// Captures what `body` enqueues on the device's stream, without running it; `None` where that is nothing.
    pub fn capture(device: &CudaDevice, body: impl FnOnce() -> Result<()>) -> Result<Option<Self>> {
        let stream = device.cuda_stream();
        stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).w()?;
        let done = body();
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let ended = stream.end_capture(flags).w();
        done?;
        Ok(ended?.map(Self))
    }

    /// Runs what was captured.
    pub fn launch(&self) -> Result<()> {
        self.0.launch().w()
    }
}

/// Keeps the shape parameters that Candle sends along with its kernels where a captured graph finds them, while it lives.
pub(crate) fn keep_shape_parameters(device: &CudaDevice) -> impl Drop + use<> {
    device.enable_cuda_graph_htod_cache()
}

/// Row-major `C[m, n] = op(A)[m, k] · op(B)[k, n] + beta·C` for each matrix of a batch, by cuBLAS.
pub(crate) fn gemm(device: &CudaDevice, sizes: Gemm, a: Mat<'_>, b: Mat<'_>, c: Mat<'_>) -> Result<()> {
    use cublas::sys::*;
    let Gemm { m, n, k, beta, batch, tf32 } = sizes;
    let op = |t: bool| if t { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N };
    let compute =
        if tf32 { cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32 } else { cublasComputeType_t::CUBLAS_COMPUTE_32F };
    let (alpha, f32_type) = (1f32, cudaDataType_t::CUDA_R_32F);
    let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT_TENSOR_OP;
    let handle = *device.cublas_handle().handle();
    let (alpha, beta) = (&alpha as *const f32 as *const _, &beta as *const f32 as *const _);
    let [a_at, b_at, c_at] = [a, b, c].map(|x| Address::from(x.at).0);
    // cuBLAS counts columns first, so the operands change places.
    // SAFETY: the slices borrow live buffers, and the caller has checked that they hold what the sizes say.
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
                b_at as *const _,
                f32_type,
                b.ld as i32,
                a_at as *const _,
                f32_type,
                a.ld as i32,
                beta,
                c_at as *mut _,
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
                b_at as *const _,
                f32_type,
                b.ld as i32,
                b.stride as i64,
                a_at as *const _,
                f32_type,
                a.ld as i32,
                a.stride as i64,
                beta,
                c_at as *mut _,
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

/// See [`crate::nn::device::keep_compiled`].
pub(crate) fn keep_compiled(folder: &Path) {
    keep_compiled_kernels(folder);
}
