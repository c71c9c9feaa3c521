//! Extractors: what handlers read from a request.

pub(crate) mod access;
pub(crate) mod account;
pub(crate) mod actor;
pub(crate) mod cookie;
pub(crate) mod input;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod session;
pub(crate) mod upload;
pub(crate) mod visitor;
