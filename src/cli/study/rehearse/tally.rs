//! Counters and timers of a rehearsal.

use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Counts and times of all simulated people.
#[derive(Debug, Default)]
pub(super) struct Tally {
    times: Mutex<BTreeMap<&'static str, Vec<f64>>>,
    happenings: Mutex<BTreeMap<String, u64>>,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// Quantiles of how long requests took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Times {
    /// Requests.
    pub(super) n: usize,
    /// Median.
    pub(super) p50: f64,
    /// 95th percentile.
    pub(super) p95: f64,
    /// Longest.
    pub(super) max: f64,
}

/// A lock that a panicking thread left is as good as any other: counts stay counts.
fn held<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Tally {
    /// A request of a kind took so long.
    pub(super) fn took(&self, what: &'static str, time: Duration) {
        held(&self.times).entry(what).or_default().push(time.as_secs_f64() * 1000.0);
    }

    /// Something happened that is part of the rehearsal.
    pub(super) fn happened(&self, what: &str) {
        *held(&self.happenings).entry(what.to_owned()).or_default() += 1;
    }

    /// Something happened that should not.
    pub(super) fn failed(&self, what: impl Into<String>) {
        *held(&self.errors).entry(what.into()).or_default() += 1;
    }

    /// Quantiles by kind of request.
    pub(super) fn times(&self) -> BTreeMap<&'static str, Times> {
        held(&self.times).iter().filter_map(|(what, times)| Some((*what, quantiles(times)?))).collect()
    }

    /// Events, each with the number of times that it happened.
    pub(super) fn happenings(&self) -> BTreeMap<String, u64> {
        held(&self.happenings).clone()
    }

    /// Errors, each with how often it came.
    pub(super) fn errors(&self) -> BTreeMap<String, u64> {
        held(&self.errors).clone()
    }
}

/// Quantiles of times; `None` for none.
pub(super) fn quantiles(times: &[f64]) -> Option<Times> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * (sorted.len().checked_sub(1)?) as f64).round() as usize;
        sorted.get(place).map(|time| (time * 100.0).round() / 100.0)
    };
    Some(Times { n: sorted.len(), p50: at(0.5)?, p95: at(0.95)?, max: at(1.0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times() {
        let times: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(quantiles(&times), Some(Times { n: 101, p50: 50.0, p95: 95.0, max: 100.0 }));
        assert_eq!(quantiles(&[]), None);
        let tally = Tally::default();
        tally.happened("a page was reloaded");
        tally.happened("a page was reloaded");
        tally.failed("500");
        assert_eq!((tally.happenings()["a page was reloaded"], tally.errors()["500"]), (2, 1));
    }
}
