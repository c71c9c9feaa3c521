//! A task family, as everything above it sees it: [`kit::TaskKit`] says how runs of it are made, [`Family`] how pages show it.

pub mod kit;
pub mod pages;
mod presentation;
pub mod shipped;

pub use presentation::{Audience, Change, Family, Guide, RenderError};
