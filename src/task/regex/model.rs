//! The REGEX models over the layers of [`crate::nn`]: shapes, forward passes, decoding. No learning here. `docs/models.md` states
//! them exactly.

pub mod describer;
pub mod gpu;
#[cfg(test)]
#[cfg(not(feature = "cuda"))]
mod gpu_tests;
pub mod gpu_training;
pub mod names;
pub mod student;
