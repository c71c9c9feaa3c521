//! The GPU side of the fused operations: kernels compiled at run time (these need no CUDA compiler at build time; Candle's own do), launched
//! on the device's own stream.

use crate::nn::lstm::Lengths;
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::{self, cublas, driver::*};
use candle_core::cuda_backend::{CudaDevice, CudaStorage, WrapErr};
use candle_core::op::BackpropOp;
use candle_core::{Layout, Result, Shape, Storage, Tensor, Var, bail};
use std::sync::OnceLock;

const SOURCE: &str = include_str!("kernels.cu");

fn ptx() -> &'static str {
    static PTX: OnceLock<String> = OnceLock::new();
    PTX.get_or_init(|| cudarc::nvrtc::compile_ptx(SOURCE).expect("the kernels of this program compile").to_src())
}

fn launch_config(n: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (n.div_ceil(256).clamp(1, 4096) as u32, 1, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    }
}

/// Device address of a contiguous storage of 4-byte elements. Only for use on the device's own stream.
fn address(storage: &CudaStorage, layout: &Layout) -> Result<u64> {
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

fn tensor_address(t: &Tensor) -> Result<u64> {
    let (storage, layout) = t.storage_and_layout();
    match &*storage {
        Storage::Cuda(s) => address(s, layout),
        _ => bail!("expected a tensor on the GPU"),
    }
}

fn slice_address(s: &CudaSlice<f32>, device: &CudaDevice) -> u64 {
    let stream = device.cuda_stream();
    let (p, _guard) = s.device_ptr(&stream);
    p
}

fn wrap(s: CudaSlice<f32>, device: &CudaDevice, shape: impl Into<Shape>) -> Tensor {
    let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(s, device.clone()));
    Tensor::from_storage(storage, shape, BackpropOp::none(), false)
}

/// Row-major `C[m, n] = op(A)·op(B) + beta·C`.
#[allow(clippy::too_many_arguments)]
fn gemm(
    device: &CudaDevice,
    ta: bool,
    tb: bool,
    m: usize,
    n: usize,
    k: usize,
    a: u64,
    b: u64,
    beta: f32,
    c: u64,
) -> Result<()> {
    use cublas::sys::*;
    let op = |t: bool| if t { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N };
    let compute = if candle_core::cuda::gemm_reduced_precision_f32() {
        cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32
    } else {
        cublasComputeType_t::CUBLAS_COMPUTE_32F
    };
    let alpha = 1f32;
    let f32_type = cudaDataType_t::CUDA_R_32F;
    // Safety: the callers pass addresses of live buffers of the sizes that m, n, k state.
    unsafe {
        cublas::result::gemm_ex(
            *device.cublas_handle().handle(),
            op(tb),
            op(ta),
            n as i32,
            m as i32,
            k as i32,
            &alpha as *const f32 as *const _,
            b as *const _,
            f32_type,
            if tb { k } else { n } as i32,
            a as *const _,
            f32_type,
            if ta { m } else { k } as i32,
            &beta as *const f32 as *const _,
            c as *mut _,
            f32_type,
            n as i32,
            compute,
            cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT_TENSOR_OP,
        )
    }
    .w()
}

/// Activations kept for the backward pass.
pub struct Saved {
    cells: CudaSlice<f32>,
    gates: CudaSlice<f32>,
}

fn lengths_address(lengths: &Lengths) -> Result<u64> {
    match &lengths.device {
        Some(t) => tensor_address(t),
        None => bail!("lstm: lengths are not on the GPU"),
    }
}

/// Forward pass of the recurrence; see [`crate::nn::lstm::lstm`]. Output `[T + 1, B, H]`.
#[allow(clippy::too_many_arguments)]
pub fn forward(
    gx: &CudaStorage,
    lx: &Layout,
    w: &CudaStorage,
    lw: &Layout,
    state: &CudaStorage,
    ls: &Layout,
    lengths: &Lengths,
    (t, b, h): (usize, usize, usize),
) -> Result<(CudaStorage, Saved)> {
    let device = gx.device().clone();
    let bytes = (4 * b * h) as u64;
    // Safety: every element is written below before anything reads it.
    let (out, cells, gates, gh) = unsafe {
        (
            device.alloc::<f32>((t + 1) * b * h)?,
            device.alloc::<f32>(t * b * h)?,
            device.alloc::<f32>(t * 4 * b * h)?,
            device.alloc::<f32>(4 * b * h)?,
        )
    };
    let (o, c, a, g) = (
        slice_address(&out, &device),
        slice_address(&cells, &device),
        slice_address(&gates, &device),
        slice_address(&gh, &device),
    );
    let (x, w, s0, len) = (address(gx, lx)?, address(w, lw)?, address(state, ls)?, lengths_address(lengths)?);
    let f = device.get_or_load_custom_func("lstm_cell_fwd", "iliad", ptx())?;
    for s in 0..t as u64 {
        let h_prev = if s == 0 { s0 } else { o + (s - 1) * bytes };
        let c_prev = if s == 0 { s0 + bytes } else { c + (s - 1) * bytes };
        // The last step's cells go to the output's last row, and to the saved cells for the backward pass.
        let c_last = if s as usize == t - 1 { o + t as u64 * bytes } else { 0 };
        gemm(&device, false, true, b, 4 * h, h, h_prev, w, 0.0, g)?;
        let (xs, hs, cs, gs) = (x + s * 4 * bytes, o + s * bytes, c + s * bytes, a + s * 4 * bytes);
        let (bi, hi, si) = (b as i32, h as i32, s as i32);
        let mut l = f.builder();
        l.arg(&xs)
            .arg(&g)
            .arg(&h_prev)
            .arg(&c_prev)
            .arg(&hs)
            .arg(&cs)
            .arg(&c_last)
            .arg(&gs)
            .arg(&len)
            .arg(&si)
            .arg(&bi)
            .arg(&hi);
        // Safety: arguments are those of the kernel, buffers as sized above.
        unsafe { l.launch(launch_config(b * h)) }.w()?;
    }
    Ok((CudaStorage::wrap_cuda_slice(out, device), Saved { cells, gates }))
}

/// Backward pass: gradients of (gx, w_hh, state).
pub fn backward(
    w: &Tensor,
    state: &Tensor,
    out: &Tensor,
    grad: &Tensor,
    lengths: &Lengths,
    saved: Saved,
    (t, b, h): (usize, usize, usize),
) -> Result<(Tensor, Tensor, Tensor)> {
    let device = w.device().as_cuda_device()?.clone();
    let bytes = (4 * b * h) as u64;
    // Safety: every element is written below before anything reads it.
    let (d_gates, d_state, d_w) = unsafe {
        (device.alloc::<f32>(t * 4 * b * h)?, device.alloc::<f32>(2 * b * h)?, device.alloc::<f32>(4 * h * h)?)
    };
    let (c, a) = (slice_address(&saved.cells, &device), slice_address(&saved.gates, &device));
    let (d, dh, dw) =
        (slice_address(&d_gates, &device), slice_address(&d_state, &device), slice_address(&d_w, &device));
    let dc = dh + bytes;
    let (w, s0, o, g) = (tensor_address(w)?, tensor_address(state)?, tensor_address(out)?, tensor_address(grad)?);
    let len = lengths_address(lengths)?;
    let f = device.get_or_load_custom_func("lstm_cell_bwd", "iliad", ptx())?;
    for s in (0..t as u64).rev() {
        let c_prev = if s == 0 { s0 + bytes } else { c + (s - 1) * bytes };
        let (cs, gs, ds, gh) = (c + s * bytes, a + s * 4 * bytes, d + s * 4 * bytes, g + s * bytes);
        let last = s as usize == t - 1;
        let dc_in = if last { g + t as u64 * bytes } else { dc };
        let dh_in = if last { 0 } else { dh };
        let (bi, hi, si) = (b as i32, h as i32, s as i32);
        let mut l = f.builder();
        l.arg(&gs)
            .arg(&c_prev)
            .arg(&cs)
            .arg(&gh)
            .arg(&dh_in)
            .arg(&dc_in)
            .arg(&ds)
            .arg(&dh)
            .arg(&dc)
            .arg(&len)
            .arg(&si)
            .arg(&bi)
            .arg(&hi);
        // Safety: arguments are those of the kernel, buffers as sized above.
        unsafe { l.launch(launch_config(b * h)) }.w()?;
        gemm(&device, false, false, b, h, 4 * h, ds, w, 1.0, dh)?;
    }
    gemm(&device, true, false, 4 * h, h, b, d, s0, 0.0, dw)?;
    if t > 1 {
        gemm(&device, true, false, 4 * h, h, (t - 1) * b, d + 4 * bytes, o, 1.0, dw)?;
    }
    Ok((wrap(d_gates, &device, (t, b, 4 * h)), wrap(d_w, &device, (4 * h, h)), wrap(d_state, &device, (2, b, h))))
}

/// Next symbols of rows of logits; see [`crate::nn::sample::pick`].
pub fn pick(
    logits: &CudaStorage,
    ll: &Layout,
    u: &CudaStorage,
    lu: &Layout,
    n: usize,
    v: usize,
) -> Result<CudaStorage> {
    let device = logits.device().clone();
    // Safety: the kernel writes every element.
    let out = unsafe { device.alloc::<u32>(n)? };
    let f = device.get_or_load_custom_func("pick", "iliad", ptx())?;
    let (x, u) = (address(logits, ll)?, address(u, lu)?);
    let (ni, vi) = (n as i32, v as i32);
    {
        let stream = device.cuda_stream();
        let (o, _guard) = out.device_ptr(&stream);
        let mut l = f.builder();
        l.arg(&x).arg(&u).arg(&o).arg(&ni).arg(&vi);
        let config =
            LaunchConfig { grid_dim: (n.div_ceil(4) as u32, 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 };
        // Safety: arguments are those of the kernel; a warp takes a row.
        unsafe { l.launch(config) }.w()?;
    }
    Ok(CudaStorage::wrap_cuda_slice(out, device))
}

/// One Adam step of a parameter. `c` = [rate, β1, β2, ε, 1/(1−β1^t), 1/(1−β2^t)].
pub fn adam(var: &Var, m: &Tensor, v: &Tensor, grad: &Tensor, c: [f32; 6]) -> Result<()> {
    let device = var.device().as_cuda_device()?.clone();
    let f = device.get_or_load_custom_func("adam", "iliad", ptx())?;
    let n = var.elem_count();
    let ni = n as i32;
    let (p, m, v, g) =
        (tensor_address(var.as_tensor())?, tensor_address(m)?, tensor_address(v)?, tensor_address(grad)?);
    let mut l = f.builder();
    l.arg(&p).arg(&m).arg(&v).arg(&g).arg(&ni);
    l.arg(&c[0]).arg(&c[1]).arg(&c[2]).arg(&c[3]).arg(&c[4]).arg(&c[5]);
    // Safety: all four buffers hold n floats; the stream orders this after the backward pass.
    unsafe { l.launch(launch_config(n)) }.w()?;
    Ok(())
}
