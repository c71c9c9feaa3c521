//! Experiments: grids of runs that remake the paper's tables and figures, and the files their results are kept in.

pub mod results;
