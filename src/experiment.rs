//! Experiments: the paper's analysis computed, results gathered, and reports and plots made of them.
//!
//! Nothing here trains: [`theory`] computes in closed form, [`report`] and [`render`] read what runs and benchmarks left
//! in files, [`plot`] draws.

pub mod plot;
pub mod render;
pub mod report;
pub mod theory;
