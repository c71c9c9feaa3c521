//! The web application: the teachers' room, the researchers' room, and the JSON that both are made of.
//!
//! Handlers never touch tensors: they send [`crate::run::Command`]s, read [`crate::run::Status`] and
//! [`crate::run::Event`]s, and talk to the store. `docs/http-api.md` lists every address.
//!
//! The table in `docs/architecture.md` says which of its modules may know which.

mod error;
mod extractors;
mod format;
mod handlers;
mod limits;
pub mod listener;
mod metrics;
mod middleware;
mod page;
mod router;
mod server;
mod services;
mod settings;
mod state;

pub use extractors::program::PREFIX as PROGRAM_TOKEN_PREFIX;
pub use page::assets::vendor_files;
pub use router::router;
pub use server::serve;
pub use settings::{BODY_LIMIT, TEXT_LIMIT, WORDS_LIMIT, WebSettings};
pub use state::{AppState, LogLine, Runs};
