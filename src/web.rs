//! The web application: the teachers' room, the researchers' room, and the JSON that both are made of.
//!
//! Handlers never touch tensors: they send [`crate::run::Command`]s, read [`crate::run::Status`] and
//! [`crate::run::Event`]s, and talk to the store. `docs/http-api.md` lists every address.
//!
//! The modules, each of which knows only those above it that its row names:
//!
//! | module | contents | knows |
//! |---|---|---|
//! | `format` | how numbers, times and addresses are written | |
//! | `listener` | taking connections, with limits on them | |
//! | `settings` | how the web application is set up | `listener` |
//! | `limits` | how often visitors may do things | `settings` |
//! | `error` | the error type and its words | `limits` |
//! | `state` | the store, families, runs and settings that handlers reach; logs of runs | `format`, `settings` |
//! | `extractors` | what handlers read from a request: input, access, visitors | `error`, `limits`, `settings`, `state` |
//! | `page` | the frame of pages, static files, views of runs and episodes | `error`, `extractors`, `format`, `state` |
//! | `services` | actions that pages and JSON addresses share | `error`, `extractors`, `format`, `page`, `settings`, `state` |
//! | `middleware` | layers around the handlers | `error`, `extractors`, `format`, `limits`, `listener`, `page`, `settings`, `state` |
//! | `handlers` | a file for each page or resource | `error`, `extractors`, `format`, `limits`, `page`, `services`, `settings`, `state` |
//! | `router` | addresses and layers | `extractors`, `handlers`, `limits`, `middleware`, `settings`, `state` |
//! | `server` | serving the router | `limits`, `listener`, `router`, `state` |

mod error;
mod extractors;
mod format;
mod handlers;
mod limits;
pub mod listener;
mod middleware;
mod page;
mod router;
mod server;
mod services;
mod settings;
mod state;

pub use page::assets::vendor_files;
pub use router::router;
pub use server::serve;
pub use settings::{BODY_LIMIT, TEXT_LIMIT, WebSettings};
pub use state::{AppState, LogLine, Runs};
