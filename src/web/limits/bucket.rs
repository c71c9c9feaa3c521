//! Buckets: so many at once, refilled at a steady rate, one bucket a key.
//!
//! The generic cell rate algorithm: a key needs one number, the time at which its bucket will be full again. Known crates
//! for it take from the bucket when they are asked; a guess at a token must be refused *before* it is compared and be
//! charged only when it was wrong, so buckets can be looked into here.

use super::standing::{Quota, Standing};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most keys of one kind that are remembered. Full buckets are forgotten first; when there are none, all further keys
/// share one bucket.
const MOST: usize = 50_000;

/// How often forgetting is tried at most.
const FORGET_EVERY: Duration = Duration::from_secs(1);

struct Keys<K> {
    full_at: HashMap<Option<K>, Instant>,
    forgotten: Instant,
}

/// Buckets of one quota.
pub(super) struct Buckets<K> {
    quota: Quota,
    keys: Mutex<Keys<K>>,
}

impl<K: Hash + Eq> Buckets<K> {
    pub(super) fn new(name: &'static str, burst: u32, each: Duration) -> Buckets<K> {
        let keys = Keys { full_at: HashMap::new(), forgotten: Instant::now() };
        Buckets { quota: Quota { name, burst, each }, keys: Mutex::new(keys) }
    }

    /// How the key stands, without taking.
    pub(super) fn look(&self, key: K, now: Instant) -> Standing {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        self.standing(keys.full_at.get(&Some(key)).copied(), now)
    }

    /// Takes one if there is one.
    pub(super) fn take(&self, key: K, now: Instant) -> Standing {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let key = keys.place(key, now);
        let full_at = keys.full_at.get(&key).copied();
        let before = self.standing(full_at, now);
        if !before.allowed {
            return before;
        }
        let full_at = full_at.map_or(now, |at| at.max(now)) + self.quota.each;
        keys.full_at.insert(key, full_at);
        Standing { allowed: true, ..self.standing(Some(full_at), now) }
    }

    /// Gives one back that was taken.
    pub(super) fn give_back(&self, key: K, now: Instant) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let key = keys.place(key, now);
        if let Some(full_at) = keys.full_at.get_mut(&key) {
            *full_at = full_at.checked_sub(self.quota.each).unwrap_or(now);
        }
    }

    fn standing(&self, full_at: Option<Instant>, now: Instant) -> Standing {
        let Quota { burst, each, .. } = self.quota;
        let full = full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let room = (each * burst).saturating_sub(full);
        let left = (room.as_nanos() / each.as_nanos().max(1)).min(u128::from(burst)) as u32;
        let wait = if left > 0 { Duration::ZERO } else { each.saturating_sub(room) };
        Standing { quota: self.quota, allowed: left > 0, left, wait, full }
    }
}

impl<K: Hash + Eq> Keys<K> {
    /// The key itself, or the shared one when too many are remembered.
    fn place(&mut self, key: K, now: Instant) -> Option<K> {
        let key = Some(key);
        if self.full_at.len() < MOST || self.full_at.contains_key(&key) {
            return key;
        }
        if now.saturating_duration_since(self.forgotten) >= FORGET_EVERY {
            self.forgotten = now;
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        key.filter(|_| self.full_at.len() < MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_at_its_rate() {
        let buckets = Buckets::new("test", 3, Duration::from_secs(2));
        let begin = Instant::now();
        let left: Vec<_> = (0..5).map(|_| buckets.take("a", begin)).map(|s| (s.allowed, s.left)).collect();
        assert_eq!(left, [(true, 2), (true, 1), (true, 0), (false, 0), (false, 0)]);
        let refused = buckets.look("a", begin + Duration::from_millis(500));
        assert_eq!((refused.allowed, refused.wait), (false, Duration::from_millis(1500)));
        assert!(buckets.take("b", begin).allowed, "another key has a bucket of its own");
        assert!(buckets.take("a", begin + Duration::from_secs(2)).allowed);
        assert!(!buckets.take("a", begin + Duration::from_secs(2)).allowed);
        buckets.give_back("a", begin + Duration::from_secs(2));
        assert!(buckets.take("a", begin + Duration::from_secs(2)).allowed, "what was given back is there");
        let rested = buckets.look("a", begin + Duration::from_secs(100));
        assert_eq!((rested.left, rested.full), (3, Duration::ZERO));
    }

    #[test]
    fn keys_without_number_share_what_is_left_and_memory_is_bounded() {
        let buckets = Buckets::new("test", 1, Duration::from_secs(60));
        let now = Instant::now();
        let allowed = (0..MOST as u64 + 1000).filter(|key| buckets.take(*key, now).allowed).count();
        assert_eq!(allowed, MOST + 1);
        assert!(buckets.keys.lock().unwrap().full_at.len() <= MOST + 1);
        let later = now + Duration::from_secs(61);
        assert!(buckets.take(u64::MAX, later).allowed);
        assert_eq!(buckets.keys.lock().unwrap().full_at.len(), 1, "full buckets are forgotten");
    }
}
