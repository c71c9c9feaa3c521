//! Experiments on top of the trainer: what is timed, compared and tabulated.

pub mod bench;
