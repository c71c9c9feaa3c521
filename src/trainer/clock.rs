//! The clock of a run: seconds of training, without the time in which the run waited.

use std::time::Instant;

/// Seconds of training.
pub(super) struct Clock {
    recorded: f64,
    since: Instant,
}

impl Clock {
    /// A clock that runs from now on, after the seconds of earlier processes.
    pub(super) fn starting_at(seconds: f64) -> Self {
        Self { recorded: seconds, since: Instant::now() }
    }

    /// Seconds of training up to now.
    pub(super) fn elapsed(&self) -> f64 {
        self.recorded + self.since.elapsed().as_secs_f64()
    }

    /// Seconds up to the last call of [`Clock::record`].
    pub(super) fn recorded(&self) -> f64 {
        self.recorded
    }

    /// Records the seconds up to now.
    pub(super) fn record(&mut self) {
        self.recorded = self.elapsed();
        self.since = Instant::now();
    }

    /// Leaves out the time since the last call of [`Clock::record`] or of this function.
    pub(super) fn skip(&mut self) {
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn skipped_time_is_not_counted() {
        let mut clock = Clock::starting_at(7.0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        clock.record();
        let recorded = clock.recorded();
        assert!(recorded >= 7.02);
        std::thread::sleep(std::time::Duration::from_millis(20));
        clock.skip();
        clock.record();
        assert!(clock.recorded() >= recorded && clock.elapsed() >= clock.recorded());
    }
}
