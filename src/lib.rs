//! Iliad: people teach an agent by describing what it just did.
//!
//! The crate implements the ILIAD protocol and the ADEL algorithm of "Interactive Learning from Activity
//! Description" (Nguyen et al., ICML 2021). One flow serves the browser and the command line:
//!
//! ```text
//! Task (request d*, start s1)   task        sampled by the world; the agent never sees its reward
//!   -> Execution ê              agent       sampled from the exploration policy π_β
//!   -> Description d̂            teacher     a person (store, web) or simulated
//!   -> Update of π_θ and π_β    algorithm   ADEL, practical form, or another algorithm
//!   -> Checkpoint, events       trainer     one owning thread; commands in, events out
//!   -> the next Execution
//! ```
//!
//! `docs/architecture.md` draws the same flow with its files.

// A printing macro panics on a closed pipe and on a full device; `output` has what to use instead.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod algorithm;
pub mod app;
pub mod backup;
pub mod checkpoint_store;
pub mod cli;
pub mod command_line;
pub mod config;
pub mod corpora;
pub mod credentials;
pub mod datafile;
pub mod experiment;
pub mod export;
pub mod family;
pub mod ids;
pub mod import;
pub mod launch;

pub mod nn;
pub mod output;
pub mod protocol;
pub mod registry;
pub mod rng;
pub mod run;
pub mod stages;
pub mod store;
pub mod study;
pub mod suggest;
pub mod task;
pub mod teacher;
pub mod telemetry;
#[cfg(test)]
pub mod testing;
pub mod trainer;
pub mod vocab;
pub mod web;
