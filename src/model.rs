//! The models, over the layers of [`crate::nn`]: shapes, forward passes, decoding. No learning here. `docs/models.md`
//! states them exactly.

pub mod agreement;
pub mod decoder;
#[cfg(feature = "cuda")]
pub mod fused;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod nav;
pub mod nav_describer;
pub mod nav_rollout;
pub mod nav_student;
pub mod parity;
pub mod regex_describer;
pub mod regex_student;
mod sizes;
