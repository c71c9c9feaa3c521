//! Experiments on top of the trainer: grids of runs that remake the paper's tables and figures (`iliad reproduce`), what is
//! timed (`iliad bench`), and the files their results are kept in.

pub mod bench;
pub mod collect;
pub mod grid;
pub mod regex;
pub mod results;
pub mod table;
