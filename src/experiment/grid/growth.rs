//! Decides how many runs share a card: more are added as long as all of them together make noticeably more episodes.

use std::time::{Duration, Instant};

/// The runs that are tried after one alone. From there on their number is doubled.
const SECOND_STAGE: usize = 4;

/// More runs pay when they raise the episodes of all by this share.
const PAYS: f64 = 0.05;

/// How long the episodes of a stage are counted. Within it a run is tested at least once, as it is on its whole way.
const WINDOW: Duration = Duration::from_secs(12);

/// The pace of runs beside each other, against that of one alone.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gain {
    /// Runs at once in the stage that made the most.
    pub runs: usize,
    /// Episodes a second of one run alone.
    pub alone: f64,
    /// Episodes a second of all of them together.
    pub together: f64,
}

impl Gain {
    /// The pace of all of them, in multiples of the pace of one alone.
    pub fn factor(&self) -> f64 {
        self.together / self.alone
    }
}

/// The decision how many runs there should be.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    most: usize,
    wanted: usize,
    /// Runs, and episodes a second of all of them, of the stages so far.
    stages: Vec<(usize, f64)>,
    over: bool,
}

impl Growth {
    /// Begins with one run; there will never be more than `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), wanted: 1, stages: Vec::new(), over: most <= 1 }
    }

    /// Runs that there should be now.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// Lowers the most that there will be.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = self.most.min(most.max(1));
    }

    /// Whether another reading would change anything.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Takes in how many episodes a second all runs of the present stage made.
    pub(super) fn read(&mut self, per_second: f64) {
        if self.over {
            return;
        }
        let before = self.stages.last().copied();
        self.stages.push((self.wanted, per_second));
        match before {
            Some((runs, rate)) if per_second < rate => {
                // They are in each other's way. Those that are too many end when they are through.
                self.wanted = runs;
                self.over = true;
            }
            Some((_, rate)) if per_second < (1.0 + PAYS) * rate => self.over = true,
            _ if self.wanted >= self.most => self.over = true,
            _ => self.wanted = (2 * self.wanted).max(SECOND_STAGE).min(self.most),
        }
    }

    /// The pace of the best stage against that of one run alone, which may be the best itself; `None` until there is a second stage.
    pub(super) fn gain(&self) -> Option<Gain> {
        let &(_, alone) = self.stages.first().filter(|_| self.stages.len() > 1)?;
        let &(runs, together) = self.stages.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (alone > 0.0).then_some(Gain { runs, alone, together })
    }
}

/// Counts the episodes of a stage.
#[derive(Debug)]
pub(super) struct Window {
    from: Option<(Instant, u64)>,
}

impl Window {
    /// A window that has not begun.
    pub(super) fn new() -> Self {
        Self { from: None }
    }

    /// Takes in the episodes that all runs have made by now; `training` says whether each of them is past its preparations. Gives the
    /// episodes a second of the window once it is over; the next one begins with the next call.
    pub(super) fn note(&mut self, now: Instant, episodes: u64, training: bool) -> Option<f64> {
        if !training {
            self.from = None;
            return None;
        }
        let (begun, before) = *self.from.get_or_insert((now, episodes));
        let spent = now.duration_since(begun);
        if spent < WINDOW {
            return None;
        }
        self.from = None;
        Some(episodes.saturating_sub(before) as f64 / spent.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of runs that are tried where `rate` says what so many make.
    fn stages(most: usize, rate: impl Fn(usize) -> f64) -> (Vec<usize>, Growth) {
        let mut growth = Growth::new(most);
        let mut tried = vec![growth.wanted()];
        while !growth.is_over() {
            growth.read(rate(growth.wanted()));
            if growth.wanted() != tried[tried.len() - 1] {
                tried.push(growth.wanted());
            }
            assert!(tried.len() < 20);
        }
        (tried, growth)
    }

    #[test]
    fn runs_are_added_until_they_no_longer_pay() {
        // A card that is full at six runs.
        let (tried, growth) = stages(64, |runs| 100.0 * runs.min(6) as f64);
        assert_eq!(tried, [1, 4, 8, 16]);
        assert_eq!(growth.gain().map(|gain| gain.factor()), Some(6.0));
        // One on which more than four are in each other's way goes back to four.
        let (tried, growth) = stages(64, |runs| if runs <= 4 { 100.0 * runs as f64 } else { 250.0 });
        assert_eq!((tried.as_slice(), growth.wanted()), (&[1, 4, 8, 4][..], 4));
        assert_eq!(growth.gain().unwrap(), Gain { runs: 4, alone: 100.0, together: 400.0 });
        // One on which a run has no room for others.
        let (tried, growth) = stages(64, |runs| 100.0 / runs as f64);
        assert_eq!((tried.as_slice(), growth.gain().unwrap().runs), (&[1, 4, 1][..], 1));
    }

    #[test]
    fn there_are_never_more_than_the_grid_or_the_machine_has() {
        assert_eq!(stages(3, |runs| runs as f64).0, [1, 3]);
        assert_eq!(stages(10, |runs| runs as f64).0, [1, 4, 8, 10]);
        let mut small = Growth::new(16);
        small.limit(1);
        small.read(100.0);
        assert!(small.is_over() && small.wanted() == 1 && small.gain().is_none());
        let (tried, growth) = stages(1, |_| 1.0);
        assert_eq!((tried, growth.gain()), (vec![1], None));
    }

    #[test]
    fn a_window_begins_when_all_runs_train_and_counts_until_its_end() {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut window = Window::new();
        assert_eq!(window.note(at(0.0), 500, false), None);
        assert_eq!(window.note(at(1.0), 1_000, true), None);
        assert_eq!(window.note(at(12.9), 20_000, true), None);
        // A run that has to be prepared first begins the count anew.
        assert_eq!(window.note(at(12.95), 20_000, false), None);
        assert_eq!(window.note(at(13.0), 21_000, true), None);
        assert_eq!(window.note(at(33.0), 61_000, true), Some(2_000.0));
        assert_eq!(window.note(at(34.0), 62_000, true), None);
    }
}
