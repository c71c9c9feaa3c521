//! Logs: where they go, what they say, how they look.
//!
//! Logs go to the standard error stream, results to the standard output: `iliad … --json | jq` sees results alone.

use crate::config::server::{LogFormat, LogLevel};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Starts logging for the whole process. Called once, by `main`; a second call changes nothing.
pub fn init(level: &LogLevel, format: LogFormat) {
    // The filter was checked when it was read.
    let filter = EnvFilter::new(level.filter());
    // https://no-color.org: set and not empty.
    let colours = crate::output::notes_are_watched() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // A log that nobody can read any more ends nothing.
    let notes = || crate::output::Notes;
    let layer = match format {
        LogFormat::Text => {
            fmt::layer().with_writer(notes).with_ansi(colours).with_target(false).log_internal_errors(false).boxed()
        }
        LogFormat::Json => {
            fmt::layer().with_writer(notes).json().flatten_event(true).log_internal_errors(false).boxed()
        }
    };
    // Tests and programs that embed the library may have a subscriber already.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}

/// Where the time of a trainer goes, for benchmarks: milliseconds and laps of each stage, while somebody looks.
static STAGES: Mutex<Option<Stages>> = Mutex::new(None);
static LOOKING: AtomicBool = AtomicBool::new(false);

struct Stages {
    last: Instant,
    found: BTreeMap<&'static str, Vec<f64>>,
}

/// Begins to look, from nothing.
pub fn look_at_stages() {
    *STAGES.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Stages { last: Instant::now(), found: BTreeMap::new() });
    LOOKING.store(true, Ordering::Relaxed);
}

/// The time since the last stage ended belongs to this one. Costs nothing while nobody looks.
pub fn stage(name: &'static str) {
    if !LOOKING.load(Ordering::Relaxed) {
        return;
    }
    if let Some(stages) = &mut *STAGES.lock().unwrap_or_else(PoisonError::into_inner) {
        let now = Instant::now();
        let took = now.duration_since(stages.last).as_secs_f64() * 1e3;
        stages.found.entry(name).or_default().push(took);
        stages.last = now;
    }
}

/// Ends looking: milliseconds of each stage, lap by lap.
pub fn stages() -> BTreeMap<&'static str, Vec<f64>> {
    LOOKING.store(false, Ordering::Relaxed);
    STAGES.lock().unwrap_or_else(PoisonError::into_inner).take().map(|s| s.found).unwrap_or_default()
}
