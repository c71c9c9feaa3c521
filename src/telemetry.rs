//! Logging of the whole process.
//!
//! Logs go to the standard error stream and results to the standard output, so that `iliad … --json | jq` reads results
//! only.

use crate::config::server::{LogFormat, LogLevel};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Sets up logging for the whole process. A second call changes nothing.
pub fn init(level: &LogLevel, format: LogFormat) {
    // The filter was validated when the settings were read.
    let filter = EnvFilter::new(level.filter());
    // See https://no-color.org: the variable counts when it is set and not empty.
    let colours = crate::output::notes_are_watched() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // A closed error stream must not end the process.
    let notes = || crate::output::Notes;
    let layer = match format {
        LogFormat::Text => {
            fmt::layer().with_writer(notes).with_ansi(colours).with_target(false).log_internal_errors(false).boxed()
        }
        LogFormat::Json => {
            fmt::layer().with_writer(notes).json().flatten_event(true).log_internal_errors(false).boxed()
        }
    };
    // Tests and programs that embed the library may have set a subscriber already.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
