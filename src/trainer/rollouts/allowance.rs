//! A limit to the executions that are made for people, so that skipping cannot keep the machine busy.

use std::time::Instant;

/// Fresh executions a second and person that are made without an answer in return: for those who skip or go away. A person
/// who reads what they skip is hardly slowed down, and a program that skips cannot keep the machine busy.
const UNANSWERED: f64 = 0.5;

/// Most people for whom such executions are made at once.
const MAX_UNANSWERED: u64 = 40;

/// How many executions may be made: one for each that was answered, and some for those that were not.
pub(super) struct Allowance {
    left: f64,
    most: f64,
    seen: Instant,
}

impl Allowance {
    pub(super) fn new(size: usize) -> Self {
        let most = 2.0 * size as f64;
        Self { left: most, most, seen: Instant::now() }
    }

    /// How much can be saved up when so many are kept ready: the whole pool, twice.
    pub(super) fn set_pool(&mut self, ready: usize) {
        let most = 2.0 * ready as f64;
        // More people come with what they find.
        self.left += (most - self.most).max(0.0);
        self.most = most;
        self.left = self.left.min(most);
    }

    pub(super) fn answered(&mut self, answers: u64) {
        self.left = (self.left + answers as f64).min(self.most);
    }

    /// Time passes while so many people are there.
    pub(super) fn pass(&mut self, people: u64) {
        let seconds = self.seen.elapsed().as_secs_f64();
        self.seen = Instant::now();
        self.left = (self.left + seconds * UNANSWERED * people.clamp(1, MAX_UNANSWERED) as f64).min(self.most);
    }

    pub(super) fn left(&self) -> usize {
        self.left as usize
    }

    pub(super) fn spend(&mut self, executions: usize) {
        self.left = (self.left - executions as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_bring_executions_and_skips_do_not() {
        let mut allowance = Allowance::new(10);
        assert_eq!(allowance.left(), 20);
        for _ in 0..1000 {
            allowance.spend(1);
            allowance.answered(1);
        }
        assert_eq!(allowance.left(), 20, "who answers is never kept waiting");
        allowance.spend(50);
        assert_eq!(allowance.left(), 0, "who only skips comes to an end");
        allowance.set_pool(30);
        assert_eq!(allowance.left(), 40, "more people find more");
        allowance.set_pool(10);
        assert_eq!(allowance.left(), 20);
    }
}
