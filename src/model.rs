//! The models of MODELS, over the layers of [`crate::nn`]: shapes, forward passes, decoding. No learning here.

pub mod decoder;
pub mod parity;
pub mod regex_describer;
pub mod regex_student;
