//! Experiments on top of the trainer.
//!
//! [`grid`] carries out grids of runs that remake the paper's tables and figures (`iliad reproduce`), [`collect`]
//! and [`table`] tabulate them, [`mod@bench`] times, and [`results`] are the files that all of it is kept in. Nothing else here
//! trains: [`theory`] computes the paper's analysis in closed form, [`report`] and [`render`] read what runs and benchmarks
//! left in files, [`plot`] draws.

pub mod bench;
pub mod collect;
pub mod grid;
pub mod plot;
pub mod render;
pub mod report;
pub mod results;
pub mod table;
pub mod theory;

use crate::family::tables::{Table, Tables};

/// A family's table by name; `None` for another name.
pub fn table_of(family: &str, name: &str) -> Option<Table> {
    tables(family).table(name).cloned()
}

/// A family's figure by name; `None` for another name.
pub fn figure_of(family: &str, name: &str) -> Option<Table> {
    tables(family).figure(name)
}

fn tables(family: &str) -> &'static Tables {
    if family == "nav" { &crate::task::nav::tables::TABLES } else { &crate::task::regex::tables::TABLES }
}
