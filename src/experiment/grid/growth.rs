//! Decides how many runs share a card: more are added as long as all of them together make noticeably more episodes.

use std::time::{Duration, Instant};

/// The runs that are tried after one alone. From there on their number is doubled. A stage between the two would cost a short
/// grid more than it tells.
const SECOND_STAGE: usize = 8;

/// More runs pay when they raise the episodes of all by this share.
const PAYS: f64 = 0.05;

/// A run's first updates are slow: on a GPU each shape of a batch is captured as a graph when it comes for the first time. So
/// the count of a stage begins this long after its last run began to train.
const WARM_UP: Duration = Duration::from_secs(6);

/// How long the episodes of a stage are counted. Within it a run is tested at least once, as it is on its whole way.
const WINDOW: Duration = Duration::from_secs(10);

/// A count of less time says nothing.
const SHORTEST: Duration = Duration::from_secs(1);

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

    /// Takes in how many episodes a second the runs of the present stage made together. They may be fewer than were wanted, where
    /// there are no others.
    pub(super) fn read(&mut self, runs: usize, per_second: f64) {
        if self.over {
            return;
        }
        let before = self.stages.last().copied();
        self.stages.push((runs, per_second));
        self.limit(if runs < self.wanted { runs } else { self.most });
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

/// How far the runs of a grid are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Episodes that all of them have made here.
    pub(super) episodes: u64,
    /// Runs that train right now.
    pub(super) training: usize,
    /// Runs that have ended.
    pub(super) ended: usize,
}

/// Counts the episodes of a stage: from a while after its last run began to train, until enough time has gone by or one of the
/// runs is through.
#[derive(Debug)]
pub(super) struct Window {
    /// When as many runs as are wanted trained for the first time, and how far they were.
    begun: Option<(Instant, Progress)>,
    /// When they had warmed up, and their episodes then.
    warm: Option<(Instant, u64)>,
}

impl Window {
    /// A window that has not begun.
    pub(super) fn new() -> Self {
        Self { begun: None, warm: None }
    }

    /// Takes in how far the runs are now; a stage begins when `wanted` of them train. Gives its runs and their episodes a second
    /// once it is over; the next one begins with the next call.
    pub(super) fn note(&mut self, now: Instant, progress: Progress, wanted: usize) -> Option<(usize, f64)> {
        let Some((begun, before)) = self.begun else {
            self.begun = (progress.training >= wanted).then_some((now, progress));
            return None;
        };
        let spent = now.duration_since(begun);
        if self.warm.is_none() && spent >= WARM_UP {
            self.warm = Some((now, progress.episodes));
        }
        let counted = self.warm.map_or(Duration::ZERO, |(warm, _)| now.duration_since(warm));
        let one_is_through = progress.ended > before.ended;
        if counted < WINDOW && !one_is_through {
            return None;
        }
        let (from, spent) = match self.warm {
            Some((_, episodes)) if counted >= Self::shortest(before) => (episodes, counted),
            // A run alone that was through before it had warmed up is counted from its beginning: others like it will be, too.
            _ if before.training == 1 => (before.episodes, spent),
            // The others had only begun, and would count for less than they make.
            _ => {
                *self = Self::new();
                return None;
            }
        };
        *self = Self::new();
        let rate = || progress.episodes.saturating_sub(from) as f64 / spent.as_secs_f64();
        (spent >= SHORTEST).then(|| (before.training, rate()))
    }

    /// The least time of a count. One of several runs is tested now and then, so they need more than one alone.
    fn shortest(before: Progress) -> Duration {
        if before.training == 1 { SHORTEST } else { WINDOW / 2 }
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
            growth.read(growth.wanted(), rate(growth.wanted()));
            if growth.wanted() != tried[tried.len() - 1] {
                tried.push(growth.wanted());
            }
            assert!(tried.len() < 20);
        }
        (tried, growth)
    }

    #[test]
    fn runs_are_added_until_they_no_longer_pay() {
        // A card that is full at twelve runs.
        let (tried, growth) = stages(64, |runs| 100.0 * runs.min(12) as f64);
        assert_eq!(tried, [1, 8, 16, 32]);
        assert_eq!(growth.gain().map(|gain| gain.factor()), Some(12.0));
        // One on which more than eight are in each other's way goes back to eight.
        let (tried, growth) = stages(64, |runs| if runs <= 8 { 100.0 * runs as f64 } else { 250.0 });
        assert_eq!((tried.as_slice(), growth.wanted()), (&[1, 8, 16, 8][..], 8));
        assert_eq!(growth.gain().unwrap(), Gain { runs: 8, alone: 100.0, together: 800.0 });
        // One on which a run has no room for others.
        let (tried, growth) = stages(64, |runs| 100.0 / runs as f64);
        assert_eq!((tried.as_slice(), growth.gain().unwrap().runs), (&[1, 8, 1][..], 1));
    }

    #[test]
    fn there_are_never_more_than_the_grid_or_the_machine_has() {
        assert_eq!(stages(3, |runs| runs as f64).0, [1, 3]);
        assert_eq!(stages(20, |runs| runs as f64).0, [1, 8, 16, 20]);
        let mut small = Growth::new(16);
        small.limit(1);
        small.read(1, 100.0);
        assert!(small.is_over() && small.wanted() == 1 && small.gain().is_none());
        let (tried, growth) = stages(1, |_| 1.0);
        assert_eq!((tried, growth.gain()), (vec![1], None));
    }

    #[test]
    fn a_stage_of_fewer_runs_than_were_wanted_is_the_last() {
        let mut growth = Growth::new(8);
        growth.read(1, 100.0);
        assert_eq!(growth.wanted(), 8);
        // The first run is through, and there are seven others.
        growth.read(7, 400.0);
        assert!(growth.is_over());
        assert_eq!(growth.gain().unwrap(), Gain { runs: 7, alone: 100.0, together: 400.0 });
    }

    /// Notes the progress at some moments (seconds, episodes, runs that train, runs that have ended) and collects the readings.
    fn readings(wanted: usize, moments: &[(f64, u64, usize, usize)]) -> Vec<Option<(usize, f64)>> {
        let (start, mut window) = (Instant::now(), Window::new());
        let note = |&(seconds, episodes, training, ended): &(f64, u64, usize, usize)| {
            window.note(start + Duration::from_secs_f64(seconds), Progress { episodes, training, ended }, wanted)
        };
        moments.iter().map(note).collect()
    }

    #[test]
    fn a_window_begins_when_all_runs_train_and_have_warmed_up() {
        let moments = [
            (0.0, 500, 1, 0),
            (1.0, 1_000, 2, 0),
            // Slow first updates.
            (7.0, 2_000, 2, 0),
            (16.9, 20_000, 2, 0),
            (17.0, 22_000, 2, 0),
            (17.1, 22_100, 2, 0),
        ];
        assert_eq!(readings(2, &moments), [None, None, None, None, Some((2, 2_000.0)), None]);
    }

    #[test]
    fn a_stage_ends_with_a_run() {
        // After it had warmed up: what was made since.
        let moments = [(0.0, 0, 1, 0), (6.0, 3_000, 1, 0), (10.0, 11_000, 0, 1)];
        assert_eq!(readings(1, &moments), [None, None, Some((1, 2_000.0))]);
        // Before: all that was made.
        let moments = [(0.0, 0, 1, 0), (4.0, 4_000, 0, 1), (4.1, 4_000, 1, 1)];
        assert_eq!(readings(1, &moments), [None, Some((1, 1_000.0)), None]);
        // Of several runs the others may only have begun: the stage begins anew.
        let moments =
            [(0.0, 0, 8, 0), (4.0, 4_000, 7, 1), (4.5, 4_100, 7, 1), (11.0, 9_000, 7, 1), (21.0, 49_000, 7, 1)];
        assert_eq!(readings(7, &moments), [None, None, None, None, Some((7, 4_000.0))]);
        // A moment is no reading, and the next run is counted anew.
        let moments = [(0.0, 0, 1, 0), (0.5, 4_000, 0, 1), (1.0, 4_000, 1, 1), (7.0, 5_000, 1, 1), (17.0, 9_000, 1, 1)];
        assert_eq!(readings(1, &moments), [None, None, None, None, Some((1, 400.0))]);
    }
}
