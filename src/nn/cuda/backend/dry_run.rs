//! A dry run of the engine, for tests of builds without a GPU: buffers have addresses but no memory, tensors of the CPU stand in
//! for those of a GPU, and launches are written down instead of made.

use super::{Address, Arg, DeviceSlice, Gemm, Grid, Mat, Properties};
use crate::nn::cuda::OPTIONS;
use crate::nn::device::LaunchOptions;
use candle_core::{CpuStorage, CudaDevice, DType, Result, Storage, Tensor, bail};
use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// The state of a dry run.
struct DryRun {
    /// The next free address.
    next: u64,
    /// Host memory of tensors, and the address that stands for it.
    tensors: Vec<(usize, u64)>,
    launches: Vec<String>,
}

thread_local! {
    static RUN: RefCell<Option<DryRun>> = const { RefCell::new(None) };
}

/// One run at a time, since launch options are looked up by the device's number, which is the same for all of them.
static ONE: Mutex<()> = Mutex::new(());

/// The launches that `body` makes on a device with `options`.
pub(crate) fn launches(options: LaunchOptions, body: impl FnOnce(&CudaDevice) -> Result<()>) -> Result<Vec<String>> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let device = CudaDevice;
    {
        let mut all = OPTIONS.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(id, _)| *id != device.id());
        all.push((device.id(), options));
    }
    RUN.with(|run| *run.borrow_mut() = Some(DryRun { next: 1 << 20, tensors: Vec::new(), launches: Vec::new() }));
    let done = body(&device);
    let run = RUN.with(|run| run.borrow_mut().take());
    done?;
    Ok(run.map(|run| run.launches).unwrap_or_default())
}

fn with<T>(f: impl FnOnce(&mut DryRun) -> T) -> Result<T> {
    RUN.with(|run| match &mut *run.borrow_mut() {
        Some(run) => Ok(f(run)),
        None => super::stub::unavailable(),
    })
}

impl DryRun {
    fn allocate(&mut self, bytes: usize) -> u64 {
        let at = self.next;
        self.next += (bytes as u64).next_multiple_of(256) + 256;
        at
    }
}

/// An address for so many bytes.
pub(super) fn allocate(bytes: usize) -> Result<u64> {
    with(|run| run.allocate(bytes))
}

/// The device of a dry run.
pub(super) fn device() -> Result<CudaDevice> {
    with(|_| CudaDevice)
}

/// Properties of an H200.
pub(super) fn properties() -> Result<Properties> {
    with(|_| Properties { major: 9, multiprocessors: 132, shared_memory: 227 << 10 })
}

/// The address that stands for a contiguous tensor of the CPU.
pub(super) fn tensor_address(t: &Tensor, dtype: DType) -> Result<u64> {
    let (storage, layout) = t.storage_and_layout();
    if t.dtype() != dtype || !layout.is_contiguous() {
        bail!("expected a contiguous tensor of {dtype:?}")
    }
    let (host, bytes) = match &*storage {
        Storage::Cpu(CpuStorage::F32(all)) => (all.as_ptr() as usize, 4 * all.len()),
        Storage::Cpu(CpuStorage::U32(all)) => (all.as_ptr() as usize, 4 * all.len()),
        Storage::Cpu(CpuStorage::F16(all)) => (all.as_ptr() as usize, 2 * all.len()),
        _ => bail!("no kernel works on this tensor"),
    };
    let offset = (layout.start_offset() * dtype.size_in_bytes()) as u64;
    with(|run| {
        if let Some((_, at)) = run.tensors.iter().find(|(known, _)| *known == host) {
            return at + offset;
        }
        let at = run.allocate(bytes);
        run.tensors.push((host, at));
        at + offset
    })
}

/// Writes a launch down.
pub(super) fn launch<T>(name: &str, ((x, y), threads, shared): Grid, list: Option<&T>, args: &[Arg]) -> Result<()> {
    let list = list.map_or(String::new(), |_| format!("a struct of {} bytes, ", size_of::<T>()));
    let args: Vec<String> = args.iter().map(text).collect();
    note(format!("{name} <{x} x {y}, {threads}, {shared}> ({list}{})", args.join(", ")))
}

/// Writes a matrix product down.
pub(super) fn gemm(sizes: Gemm, operands: [Mat<'_>; 3]) -> Result<()> {
    let Gemm { m, n, k, beta, batch, tf32 } = sizes;
    let operands =
        operands.map(|x| format!("{:x} t {} ld {} stride {}", Address::from(x.at).0, x.t, x.ld, x.stride)).join(", ");
    note(format!("gemm {m}x{n}x{k} x{batch} beta {beta} tf32 {tf32} ({operands})"))
}

/// Writes down that elements are set to zero.
pub(super) fn zero<T>(to: DeviceSlice<'_, T>) -> Result<()> {
    note(format!("zero {:x} {}", Address::from(to).0, to.len() * size_of::<T>()))
}

/// Writes a copy down.
pub(super) fn copy<T>(from: DeviceSlice<'_, T>, to: DeviceSlice<'_, T>) -> Result<()> {
    let (from, to, bytes) = (Address::from(from).0, Address::from(to).0, to.len() * size_of::<T>());
    note(format!("copy {from:x} to {to:x} {bytes}"))
}

fn note(text: String) -> Result<()> {
    with(|run| run.launches.push(text))
}

fn text(arg: &Arg) -> String {
    match arg {
        Arg::Address(x) => format!("{:x}", x.0),
        Arg::Int(x) => x.to_string(),
        Arg::Double(x) => x.to_string(),
        Arg::Float(x) => x.to_string(),
        Arg::Heads(x) => format!("{x:?}"),
        Arg::Transitions(x) => format!("{x:x?}"),
    }
}
