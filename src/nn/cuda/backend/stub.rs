//! The stub of the seam for builds without the feature `cuda`: the same types and functions, all of which fail. No device of
//! such a build is a GPU, so nothing of this is ever reached but in the unit tests' dry runs (`super::dry_run`).
#![cfg_attr(not(test), allow(unused_variables))]

use super::{Arg, DeviceSlice, Gemm, Grid, Mat, Properties};
use candle_core::{CudaDevice, CudaStorage, DType, Device, Result, Tensor, bail};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::path::Path;

/// Whether this build can use GPUs.
pub(crate) const AVAILABLE: bool = false;

pub(super) fn unavailable<T>() -> Result<T> {
    bail!("this build has no GPU support (it was built without the `cuda` feature)")
}

/// Asks the dry run that is under way, which there is in unit tests alone.
macro_rules! in_dry_run {
    ($($call:tt)*) => {{
        #[cfg(test)]
        {
            super::dry_run::$($call)*
        }
        #[cfg(not(test))]
        {
            unavailable()
        }
    }};
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

/// There are none for this build.
pub(crate) fn device_count() -> usize {
    0
}

/// Fails.
pub(crate) fn device_name(_device: &CudaDevice) -> Result<String> {
    unavailable()
}

/// Fails.
pub(crate) fn device_of(_t: &Tensor) -> Result<CudaDevice> {
    in_dry_run!(device())
}

/// Fails.
pub(crate) fn properties(_device: &CudaDevice) -> Result<Properties> {
    in_dry_run!(properties())
}

/// A buffer that cannot exist but in a dry run.
pub(crate) struct Buffer<T> {
    address: u64,
    len: usize,
    elements: PhantomData<T>,
}

/// Fails.
pub(crate) fn allocate<T>(_device: &CudaDevice, n: usize) -> Result<Buffer<T>> {
    in_dry_run!(allocate(n * size_of::<T>()).map(|address| Buffer { address, len: n, elements: PhantomData }))
}

impl<T> Buffer<T> {
    pub fn slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(self.address, self.len)
    }

    pub fn into_storage(self, _device: &CudaDevice) -> CudaStorage {
        CudaStorage
    }
}

/// Fails.
pub(crate) fn storage_address(_storage: &CudaStorage, _dtype: DType) -> Result<u64> {
    unavailable()
}

/// Fails.
pub(crate) fn tensor_address(t: &Tensor, dtype: DType) -> Result<u64> {
    in_dry_run!(tensor_address(t, dtype))
}

/// Fails.
pub(crate) fn launch<T: DeviceRepr>(
    _device: &CudaDevice,
    name: &'static str,
    grid: Grid,
    list: Option<&T>,
    args: &[Arg],
) -> Result<()> {
    in_dry_run!(launch(name, grid, list, args))
}

/// Fails.
pub(crate) fn zero<T>(_device: &CudaDevice, to: DeviceSlice<'_, T>) -> Result<()> {
    in_dry_run!(zero(to))
}

/// Fails.
pub(crate) fn copy<T>(_device: &CudaDevice, from: DeviceSlice<'_, T>, to: DeviceSlice<'_, T>) -> Result<()> {
    in_dry_run!(copy(from, to))
}

/// Fails.
pub(crate) fn upload_words<T: Copy>(_device: &CudaDevice, _to: DeviceSlice<'_, u32>, _values: &[T]) -> Result<()> {
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

    pub fn send(&mut self, _device: &CudaDevice, _to: DeviceSlice<'_, u32>, _values: &[u32]) -> Result<()> {
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
pub(crate) fn gemm(_device: &CudaDevice, sizes: Gemm, a: Mat<'_>, b: Mat<'_>, c: Mat<'_>) -> Result<()> {
    in_dry_run!(gemm(sizes, [a, b, c]))
}

/// Nothing is compiled that could be kept.
pub(crate) fn keep_compiled(_folder: &Path) {}
