//! Logs: where they go, what they say, how they look.
//!
//! Logs go to the standard error stream, results to the standard output: `iliad … --json | jq` sees results alone.

use crate::config::server::{LogFormat, LogLevel};
use std::io::IsTerminal;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Starts logging for the whole process. Called once, by `main`; a second call changes nothing.
pub fn init(level: &LogLevel, format: LogFormat) {
    // The filter was checked when it was read.
    let filter = EnvFilter::new(level.filter());
    // https://no-color.org: set and not empty.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let layer = match format {
        LogFormat::Text => fmt::layer().with_writer(std::io::stderr).with_ansi(colours).with_target(false).boxed(),
        LogFormat::Json => fmt::layer().with_writer(std::io::stderr).json().flatten_event(true).boxed(),
    };
    // Tests and programs that embed the library may have a subscriber already.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
