//! Settings, one file a concern.

pub mod run;
pub mod server;
