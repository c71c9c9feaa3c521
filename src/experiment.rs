//! Experiments: the paper's analysis computed, results gathered, and reports and plots made of them.
//!
//! Nothing here trains: [`theory`] computes in closed form, [`plot`] draws.

pub mod plot;
pub mod theory;
