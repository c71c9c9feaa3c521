//! Experiments on top of the trainer.
//!
//! [`grid`] carries out grids of runs that remake the paper's tables and figures (`iliad reproduce`), [`job_array`] hands them to
//! a scheduler, [`collect`] and [`table`] tabulate them, [`mod@bench`] times, and [`results`] are the files that all of it is kept in. Nothing else here
//! trains: [`theory`] computes the paper's analysis in closed form, [`report`] and [`render`] read what runs and benchmarks
//! left in files, [`plot`] draws.

pub mod bench;
pub mod collect;
pub mod grid;
pub mod job_array;
pub mod plot;
pub mod render;
pub mod report;
pub mod results;
pub mod table;
pub mod theory;
