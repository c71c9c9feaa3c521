//! Timing of the stages of an iteration, for benchmarks.
//!
//! Trainer and teacher call [`end`] where a stage ends. That costs one relaxed load while no benchmark measures.
//! `experiment::bench` calls [`measure`] before the iterations and [`take`] after them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

static TIMES: Mutex<Option<Times>> = Mutex::new(None);
static MEASURING: AtomicBool = AtomicBool::new(false);

struct Times {
    /// End of the stage before.
    last: Instant,
    /// Milliseconds of each stage, one for each time that it was passed.
    stages: BTreeMap<&'static str, Vec<f64>>,
}

/// Begins to measure. Earlier measurements are dropped.
pub fn measure() {
    *TIMES.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Times { last: Instant::now(), stages: BTreeMap::new() });
    MEASURING.store(true, Ordering::Relaxed);
}

/// Ends the stage `name`, which began where the stage before it ended.
pub fn end(name: &'static str) {
    if !MEASURING.load(Ordering::Relaxed) {
        return;
    }
    if let Some(times) = &mut *TIMES.lock().unwrap_or_else(PoisonError::into_inner) {
        let now = Instant::now();
        let took = now.duration_since(times.last).as_secs_f64() * 1e3;
        times.stages.entry(name).or_default().push(took);
        times.last = now;
    }
}

/// Ends the measurement; milliseconds of each stage, in the order in which they were measured.
pub fn take() -> BTreeMap<&'static str, Vec<f64>> {
    MEASURING.store(false, Ordering::Relaxed);
    TIMES.lock().unwrap_or_else(PoisonError::into_inner).take().map(|times| times.stages).unwrap_or_default()
}
