//! Numeric building blocks on Candle: parameters, initialisation, differentiable layers, fused operations, Adam, and
//! the files that weights live in. Nothing here knows a task.
//!
//! Layout: sequences are time-major, `[T, B, …]`; attention works batch-major and transposes once per sequence.

pub mod adam;
pub mod artifact;
pub mod attention;
pub(crate) mod cpu;
pub mod cuda;
pub mod decoder;
pub mod device;
pub mod device_agreement;
pub mod fast_math;
pub mod init;
pub mod layers;
pub mod log_linear;
pub mod loss;
pub mod lstm;
pub mod multihead;
pub mod norm;
pub mod params;
pub mod reference_fixtures;
pub mod sample;
pub mod sharing;
pub mod sizes;
pub mod steps;
pub mod tokens;
pub mod weights_file;
