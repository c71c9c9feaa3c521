//! Facts about visitors that need not outlive the process.

use crate::ids::{RunId, TeacherId};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use tokio::sync::OnceCell;

/// How long a person counts as present after they asked for something or answered, in nanoseconds.
const PRESENT: i64 = 120_000_000_000;

/// Who was there lately (a request that finds nothing leaves no row), and the key that signs cookies once it was read.
#[derive(Default)]
pub(super) struct Visitors {
    /// By run and teacher: when they asked or answered last, by the clock of leases.
    last_seen: Mutex<HashMap<RunId, HashMap<TeacherId, i64>>>,
    pub(super) cookie_key: OnceCell<Vec<u8>>,
}

impl Visitors {
    /// Notes that the teacher is at the run now.
    pub(super) fn note(&self, run: &RunId, teacher: TeacherId, now: i64) {
        let mut last_seen = self.last_seen.lock().unwrap_or_else(PoisonError::into_inner);
        match last_seen.get_mut(run) {
            Some(teachers) => teachers.insert(teacher, now),
            None => last_seen.entry(run.clone()).or_default().insert(teacher, now),
        };
    }

    /// Teachers who were at the run lately. All others are forgotten.
    pub(super) fn present(&self, run: &RunId, now: i64) -> HashSet<TeacherId> {
        let mut last_seen = self.last_seen.lock().unwrap_or_else(PoisonError::into_inner);
        for teachers in last_seen.values_mut() {
            teachers.retain(|_, &mut at| (0..PRESENT).contains(&now.saturating_sub(at)));
        }
        last_seen.retain(|_, teachers| !teachers.is_empty());
        last_seen.get(run).map(|teachers| teachers.keys().copied().collect()).unwrap_or_default()
    }
}
