//! The replay buffer: the newest described episodes, of which some are learnt from again.

use crate::protocol::{DescribedEpisode, World};
use crate::rng::Stream;
use rand::RngExt;
use std::collections::VecDeque;

/// At most `capacity` described episodes, the newest ones.
pub(super) struct ReplayBuffer<W: World> {
    episodes: VecDeque<DescribedEpisode<W>>,
    capacity: usize,
    /// Line of the description log that the oldest episode has.
    first: u64,
}

impl<W: World> ReplayBuffer<W> {
    /// A buffer that holds the newest `capacity` of some episodes, which come oldest first and are the last of `lines` in the log.
    pub(super) fn new(capacity: usize, episodes: VecDeque<DescribedEpisode<W>>, lines: u64) -> Self {
        let first = lines - episodes.len() as u64;
        let mut buffer = Self { episodes, capacity, first };
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

    /// The episodes with their lines in the log, oldest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, &DescribedEpisode<W>)> {
        (self.first..).zip(&self.episodes)
    }

    /// `n` of the episodes whose lines are accepted, drawn uniformly with replacement; none where there are none.
    pub(super) fn draw_of(
        &self,
        n: usize,
        stream: &mut Stream,
        accepted: impl Fn(u64) -> bool,
    ) -> Vec<DescribedEpisode<W>> {
        let all: Vec<&DescribedEpisode<W>> = self.lines().filter(|(line, _)| accepted(*line)).map(|(_, d)| d).collect();
        if all.is_empty() {
            return Vec::new();
        }
        (0..n).map(|_| all[stream.random_range(0..all.len())].clone()).collect()
    }

    fn evict(&mut self) {
        let surplus = self.episodes.len().saturating_sub(self.capacity);
        self.episodes.drain(..surplus);
        self.first += surplus as u64;
    }
}
