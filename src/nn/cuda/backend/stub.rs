//! The stub of the seam for builds without the feature `cuda`: the same types and functions, all of which fail. No device of
//! such a build is a GPU, so nothing of this is ever reached.

use super::{Arg, Gemm, Grid, Mat, Properties};
use candle_core::{CudaDevice, CudaStorage, DType, Device, Result, bail};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::path::Path;

/// Whether this build can use GPUs.
pub(crate) const AVAILABLE: bool = false;

fn unavailable<T>() -> Result<T> {
    bail!("this build has no GPU support (it was built without the `cuda` feature)")
}

/// Types that kernels take as arguments.
///
/// # Safety
/// The type must be plain data in C layout, the same as the kernel declares.
pub(crate) unsafe trait DeviceRepr {}

// SAFETY: the scalar types are plain data.
unsafe impl DeviceRepr for u32 {}

/// Fails.
pub(crate) fn open(_ordinal: usize) -> Result<Device> {
    unavailable()
}

/// Fails.
pub(crate) fn device_name(_device: &CudaDevice) -> Result<String> {
    unavailable()
}

/// Fails.
pub(crate) fn properties(_device: &CudaDevice) -> Result<Properties> {
    unavailable()
}

/// A buffer that cannot exist.
pub(crate) struct Buffer<T>(Infallible, PhantomData<T>);

/// Fails.
pub(crate) fn allocate<T>(_device: &CudaDevice, _n: usize) -> Result<Buffer<T>> {
    unavailable()
}

impl<T> Buffer<T> {
    pub fn address(&self) -> u64 {
        match self.0 {}
    }

    pub fn into_storage(self, _device: &CudaDevice) -> CudaStorage {
        match self.0 {}
    }
}

/// Fails.
pub(crate) fn storage_address(_storage: &CudaStorage, _dtype: DType) -> Result<u64> {
    unavailable()
}

/// Fails.
pub(crate) fn launch<T: DeviceRepr>(
    _device: &CudaDevice,
    _name: &'static str,
    _grid: Grid,
    _list: Option<&T>,
    _args: &[Arg],
) -> Result<()> {
    unavailable()
}

/// Fails.
pub(crate) fn zero_bytes(_device: &CudaDevice, _at: u64, _bytes: usize) -> Result<()> {
    unavailable()
}

/// Fails.
pub(crate) fn copy_bytes(_device: &CudaDevice, _from: u64, _to: u64, _bytes: usize) -> Result<()> {
    unavailable()
}

/// Fails.
pub(crate) fn upload_words<T: Copy>(_device: &CudaDevice, _to: u64, _values: &[T]) -> Result<()> {
    unavailable()
}

/// Fails.
pub(crate) fn synchronize(_device: &CudaDevice) -> Result<()> {
    unavailable()
}

/// An event that cannot exist.
pub(crate) struct Event(Infallible);

/// Fails.
pub(crate) fn event(_device: &CudaDevice, _timed: bool) -> Result<Event> {
    unavailable()
}

impl Event {
    pub fn synchronize(&self) -> Result<()> {
        match self.0 {}
    }

    pub fn milliseconds_to(&self, _end: &Self) -> Result<f32> {
        match self.0 {}
    }
}

/// Pinned memory, which there is none of.
pub(crate) struct Pinned;

impl Pinned {
    pub fn empty() -> Self {
        Self
    }

    pub fn send(&mut self, _device: &CudaDevice, _to: u64, _values: &[u32]) -> Result<()> {
        unavailable()
    }
}

/// A captured graph that cannot exist.
pub(crate) struct Graph(Infallible);

impl Graph {
    pub fn capture(_device: &CudaDevice, _body: impl FnOnce() -> Result<()>) -> Result<Option<Self>> {
        unavailable()
    }

    pub fn launch(&self) -> Result<()> {
        match self.0 {}
    }
}

/// Shape parameters, of which there are none.
pub(crate) struct KeptParameters;

/// Keeps nothing.
pub(crate) fn keep_shape_parameters(_device: &CudaDevice) -> KeptParameters {
    KeptParameters
}

/// Fails.
pub(crate) fn gemm(_device: &CudaDevice, _sizes: Gemm, _a: Mat, _b: Mat, _c: Mat) -> Result<()> {
    unavailable()
}

/// Nothing is compiled that could be kept.
pub(crate) fn keep_compiled(_folder: &Path) {}
