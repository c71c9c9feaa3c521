//! Layers around the handlers.

pub(crate) mod body;
pub(crate) mod deprecation;
pub(crate) mod errors;
pub(crate) mod family_pages;
pub(crate) mod idempotency;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod rate_limits;
pub(crate) mod security;
pub(crate) mod session;
pub(crate) mod visitor_cookie;
