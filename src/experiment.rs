//! Experiments: grids of runs that remake the paper's tables and figures, and the files their results are kept in.
//! `iliad reproduce` carries them out.

pub mod collect;
pub mod grid;
pub mod regex;
pub mod results;
pub mod table;
