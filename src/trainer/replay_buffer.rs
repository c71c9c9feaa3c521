//! The replay buffer: the newest described episodes, of which some are learnt from again.

use crate::protocol::{DescribedEpisode, World};
use crate::rng::Stream;
use rand::RngExt;
use std::collections::VecDeque;

/// At most `capacity` described episodes, the newest ones.
pub(super) struct ReplayBuffer<W: World> {
    episodes: VecDeque<DescribedEpisode<W>>,
    capacity: usize,
}

impl<W: World> ReplayBuffer<W> {
    /// A buffer that holds the newest `capacity` of some episodes, which come oldest first.
    pub(super) fn new(capacity: usize, episodes: VecDeque<DescribedEpisode<W>>) -> Self {
        let mut buffer = Self { episodes, capacity };
        buffer.evict();
        buffer
    }

    /// Adds episodes, and removes the oldest ones beyond the capacity.
    pub(super) fn extend(&mut self, described: &[DescribedEpisode<W>]) {
        if self.capacity > 0 {
            self.episodes.extend(described.iter().cloned());
            self.evict();
        }
    }

    /// `n` episodes drawn uniformly with replacement; none when the buffer is empty.
    pub(super) fn draw(&self, n: usize, stream: &mut Stream) -> Vec<DescribedEpisode<W>> {
        if self.episodes.is_empty() {
            return Vec::new();
        }
        (0..n).map(|_| self.episodes[stream.random_range(0..self.episodes.len())].clone()).collect()
    }

    fn evict(&mut self) {
        let surplus = self.episodes.len().saturating_sub(self.capacity);
        self.episodes.drain(..surplus);
    }
}
