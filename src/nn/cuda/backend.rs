//! The seam to the CUDA driver. With the feature `cuda` it is cudarc; without it a stub of the same shape, whose functions
//! fail. Everything above it is compiled and linted in both builds, so `cfg` stands only here.
// The stub reads none of the arguments.
#![cfg_attr(not(feature = "cuda"), allow(dead_code))]

#[cfg(feature = "cuda")]
mod cudarc;
mod device_slice;
#[cfg(test)]
#[cfg(not(feature = "cuda"))]
pub(crate) mod dry_run;
#[cfg(feature = "cuda")]
mod module;
#[cfg(not(feature = "cuda"))]
mod stub;

#[cfg(feature = "cuda")]
pub(crate) use cudarc::*;
#[cfg(not(feature = "cuda"))]
pub(crate) use stub::*;

pub(crate) use device_slice::{Address, DeviceSlice};

/// One argument of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Arg {
    /// A device address, or the default for a missing buffer.
    Address(Address),
    /// A 32-bit integer.
    Int(i32),
    /// A double-precision number.
    Double(f64),
    /// A single-precision number.
    Float(f32),
    /// The sizes of an attention.
    Heads(super::operands::Heads),
    /// The transition table of an environment.
    Transitions(super::operands::TransitionArgs),
}

/// The launch grid: blocks in x and y, threads of a block, bytes of dynamic shared memory.
pub(crate) type Grid = ((u32, u32), u32, u32);

/// One operand of a matrix product.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'m> {
    /// Its elements, and what lies between them.
    pub at: DeviceSlice<'m, f32>,
    /// Whether the matrix is stored transposed.
    pub t: bool,
    /// Elements from row to row as stored.
    pub ld: usize,
    /// Elements from one matrix of a batch to the next.
    pub stride: usize,
}

/// The sizes and the precision of a matrix product.
#[derive(Clone, Copy)]
pub(crate) struct Gemm {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Inner dimension.
    pub k: usize,
    /// Factor of the previous content of the result.
    pub beta: f32,
    /// Number of matrices.
    pub batch: usize,
    /// Whether the factors are rounded to TF32.
    pub tf32: bool,
}

/// Properties of a GPU that decide which kernels it can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// Major number of the compute capability; 9 and later have thread block clusters.
    pub major: i32,
    /// Number of multiprocessors.
    pub multiprocessors: usize,
    /// Most bytes of shared memory that a block may ask for.
    pub shared_memory: usize,
}
