//! Readings between two points of the curves, and the rate of episodes.

use crate::protocol::evaluation::rate;
use crate::run::Point;
use crate::trainer::checkpoint::Counters;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Instant;

/// Sums since the last point. Saved with checkpoints, so that curves go on unbroken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meters {
    loss: f64,
    losses: u64,
    executions: u64,
    valid: u64,
    successes: u64,
    described: u64,
    gold: u64,
    /// Sampled executions of the whole run, and how many were successful.
    #[serde(default)]
    all_executions: u64,
    #[serde(default)]
    all_successes: u64,
}

impl Meters {
    /// Losses of π_θ: their sum and number.
    pub fn losses(&mut self, sum: f64, count: u64) {
        self.loss += sum;
        self.losses += count;
    }

    /// A sampled execution.
    pub fn execution(&mut self, valid: bool, success: bool) {
        self.executions += 1;
        self.valid += u64::from(valid);
        self.successes += u64::from(success);
        self.all_executions += 1;
        self.all_successes += u64::from(success);
    }

    /// Executions that were sampled elsewhere.
    pub fn executions(&mut self, executions: u64, valid: u64, successes: u64) {
        self.executions += executions;
        self.valid += valid;
        self.successes += successes;
        self.all_executions += executions;
        self.all_successes += successes;
    }

    /// A description of the simulated teacher.
    pub fn described(&mut self, gold: bool) {
        self.described += 1;
        self.gold += u64::from(gold);
    }

    /// The point that these sums make; they start again from zero, but for those over the whole run.
    pub fn take(&mut self, counters: &Counters, seconds: f64, lambda: f64) -> Point {
        let share = |k: u64, n: u64| (n > 0).then(|| rate(k, n).value);
        let m = std::mem::take(self);
        (self.all_executions, self.all_successes) = (m.all_executions, m.all_successes);
        Point {
            update: counters.update,
            episodes: counters.episodes,
            descriptions: counters.human + counters.simulated,
            seconds,
            loss: (m.losses > 0).then(|| m.loss / m.losses as f64),
            training_success: share(m.successes, m.executions),
            valid_share: share(m.valid, m.executions),
            gold_share: share(m.gold, m.described),
            validation: None,
            lambda: Some(lambda),
            training_success_total: share(m.all_successes, m.all_executions),
            validation_smoothed: None,
        }
    }
}

/// Episodes per second over the last few seconds.
#[derive(Debug, Default)]
pub struct Speed {
    seen: VecDeque<(Instant, u64)>,
}

impl Speed {
    /// Notes the number of episodes at this moment.
    pub fn note(&mut self, episodes: u64) {
        let now = Instant::now();
        self.seen.push_back((now, episodes));
        while self.seen.len() > 2 && now.duration_since(self.seen[0].0).as_secs_f64() > 10.0 {
            self.seen.pop_front();
        }
    }

    /// Forgets what it saw (after a pause).
    pub fn reset(&mut self) {
        self.seen.clear();
    }

    /// The rate, 0 when unknown.
    pub fn per_second(&self) -> f64 {
        match (self.seen.front(), self.seen.back()) {
            (Some((t0, e0)), Some((t1, e1))) if t1 > t0 => (e1 - e0) as f64 / t1.duration_since(*t0).as_secs_f64(),
            _ => 0.0,
        }
    }
}
