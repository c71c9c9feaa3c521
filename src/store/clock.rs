//! The two clocks of a store: the time of day for time stamps, and a monotonic clock for leases.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// A source of the current time.
pub(super) type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

/// A clock that begins at the time of day and from then on only goes forward, whatever the time of day does.
pub(super) fn monotonic() -> impl Fn() -> OffsetDateTime + Send + Sync + 'static {
    let begin = OffsetDateTime::now_utc();
    let passed = Mutex::new((Instant::now(), Duration::ZERO));
    move || {
        let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        // Some virtual machines let even the monotonic clock go back. The time that had passed before stays passed.
        let (before, now) = (passed.0, Instant::now());
        passed.0 = now;
        passed.1 += now.saturating_duration_since(before);
        begin + passed.1
    }
}
