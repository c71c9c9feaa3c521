//! The actions that pages and JSON addresses share.

pub(crate) mod commands;
pub(crate) mod comprehension;
pub(crate) mod launching;
pub(crate) mod teaching;
pub(crate) mod undo;
