//! Settings, one file a concern.

pub mod server;
