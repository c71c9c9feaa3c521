//! The progress of a run: its counters, the readings since the last point of the curve, its speed and its time.

use super::checkpoint::Counters;
use super::clock::Clock;
use super::meters::{Meters, Speed};
use crate::run::Point;

/// Counts, readings and time.
pub(super) struct Progress {
    pub(super) counters: Counters,
    pub(super) meters: Meters,
    pub(super) speed: Speed,
    pub(super) clock: Clock,
    /// Answers of people that no update has taken in, as of the last look.
    pub(super) waiting: u64,
}

impl Progress {
    /// The point of the curve that the readings make, which start again from zero.
    pub(super) fn point(&mut self, lambda: f64) -> Point {
        self.meters.take(&self.counters, self.clock.elapsed(), lambda)
    }
}
