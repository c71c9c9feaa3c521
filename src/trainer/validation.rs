//! The validation readings of a run: the latest, the best, and whether one has still to be made.

use super::checkpoint::Header;
use super::milestones::{Milestones, Read};
use crate::protocol::Rate;
use crate::run::Moment;

/// Keeps the validation readings of a run.
pub(super) struct ValidationTracker {
    /// Whether the evaluation of the present update has still to be made: at the beginning, and after one that was broken
    /// off.
    pub(super) due: bool,
    /// Latest validation success.
    pub(super) latest: Option<Rate>,
    /// Update of the policy that `latest` was read of.
    pub(super) evaluated_update: Option<u64>,
    /// Validation success and update of the best policy.
    pub(super) best: Option<(Rate, u64)>,
    /// Trailing mean of the readings, and the moments at which it reached the levels.
    pub(super) milestones: Milestones,
}

impl ValidationTracker {
    /// The tracker of a new run of a family with these levels of validation success.
    pub(super) fn new(levels: &[f64]) -> Self {
        let milestones = Milestones::new(levels);
        Self { due: true, latest: None, evaluated_update: None, best: None, milestones }
    }

    /// The tracker as a checkpoint has it.
    pub(super) fn of(header: &Header, levels: &[f64]) -> Self {
        Self {
            due: header.evaluation_due,
            latest: header.validation,
            evaluated_update: header.validated,
            best: header.best,
            milestones: Milestones::of(header, levels),
        }
    }

    /// Adds a reading of the present policy; its trailing mean is over `window` readings.
    pub(super) fn record(&mut self, success: Rate, window: usize, moment: Moment) -> Read {
        self.due = false;
        self.latest = Some(success);
        self.evaluated_update = Some(moment.update);
        let read = self.milestones.note(success.value, window, moment);
        if read.best {
            self.best = Some((success, moment.update));
        }
        read
    }

    /// Validation success of the best policy.
    pub(super) fn best_success(&self) -> Option<Rate> {
        self.best.map(|(success, _)| success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::evaluation::rate;

    #[test]
    fn the_best_policy_is_that_of_the_best_trailing_mean() {
        let mut tracker = ValidationTracker::new(&[60.0, 75.0, 85.0]);
        assert!(tracker.due && tracker.best_success().is_none());
        let readings = [(2, 10), (8, 20), (4, 30), (6, 40)];
        for (successes, update) in readings {
            tracker.record(rate(successes, 10), 2, Moment { update, episodes: update, descriptions: update });
        }
        // Trailing means: 0.2, 0.5, 0.6, 0.5.
        assert_eq!((tracker.due, tracker.best.unwrap().1, tracker.evaluated_update), (false, 30, Some(40)));
        assert_eq!(tracker.latest, Some(rate(6, 10)));
    }
}
