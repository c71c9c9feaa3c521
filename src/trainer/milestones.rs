//! Readings of validation success over a run: their trailing mean, the best of it, and when which level was first
//! reached. Saved with checkpoints.

use crate::run::{Moment, Reached};
use crate::trainer::checkpoint::Header;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The state that is kept of the readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Milestones {
    /// The newest readings, as many as the trailing mean is over.
    recent: VecDeque<f64>,
    /// Best trailing mean.
    best: Option<f64>,
    /// Update of the newest reading.
    at: Option<u64>,
    /// First moment at each of the family's levels.
    pub reached: Vec<Reached>,
}

/// The meaning of a new reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// Trailing mean with this reading.
    pub smoothed: f64,
    /// Whether it is the best so far.
    pub best: bool,
}

impl Milestones {
    /// No level reached yet; `levels`, in percent, are those of the run's family, or any others of which a table tells.
    pub fn new(levels: &[f64]) -> Self {
        let reached = levels.iter().map(|&level| Reached { level, raw: None, smoothed: None }).collect();
        Self { recent: VecDeque::new(), best: None, at: None, reached }
    }

    /// Those of a checkpoint. One of an earlier program knows its best reading and no moments.
    pub fn of(header: &Header, levels: &[f64]) -> Self {
        let mut milestones = header.milestones.clone();
        if milestones.reached.is_empty() {
            milestones.reached = Self::new(levels).reached;
        }
        milestones.best = milestones.best.or(header.best.map(|(rate, _)| rate.value));
        milestones
    }

    /// Takes a reading of validation success in 0..=1; the mean is over the last `window` ones, or over as many as there
    /// are.
    pub fn note(&mut self, value: f64, window: usize, moment: Moment) -> Read {
        self.at = Some(moment.update);
        self.recent.push_back(value);
        while self.recent.len() > window.max(1) {
            self.recent.pop_front();
        }
        let smoothed = self.recent.iter().sum::<f64>() / self.recent.len() as f64;
        for level in &mut self.reached {
            // Rates such as 0.6 are not exact in binary; a hair below counts.
            let passed = |x: f64| 100.0 * x >= level.level - 1e-9;
            if passed(value) && level.raw.is_none() {
                level.raw = Some(moment);
            }
            if passed(smoothed) && level.smoothed.is_none() {
                level.smoothed = Some(moment);
            }
        }
        let best = self.best.is_none_or(|best| smoothed > best);
        if best {
            self.best = Some(smoothed);
        }
        Read { smoothed, best }
    }

    /// Best trailing mean so far.
    pub fn best(&self) -> Option<f64> {
        self.best
    }

    /// Update of the newest reading.
    pub fn at(&self) -> Option<u64> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trailing_mean_and_the_levels_by_hand() {
        let mut m = Milestones::new(&[60.0, 75.0, 85.0]);
        let moment = |update: u64| Moment { update, episodes: 32 * update, descriptions: 10 * update };
        let readings = [0.2, 0.6, 0.9, 0.3, 0.8];
        let read: Vec<Read> = readings.iter().zip(1..).map(|(v, i)| m.note(*v, 2, moment(i))).collect();
        let smoothed: Vec<f64> = read.iter().map(|r| (r.smoothed * 1000.0).round() / 1000.0).collect();
        assert_eq!(smoothed, [0.2, 0.4, 0.75, 0.6, 0.55]);
        assert_eq!(read.iter().map(|r| r.best).collect::<Vec<_>>(), [true, true, true, false, false]);
        let updates = |f: fn(&Reached) -> Option<Moment>| m.reached.iter().map(|r| f(r).map(|m| m.update)).collect();
        let (raw, smooth): (Vec<_>, Vec<_>) = (updates(|r| r.raw), updates(|r| r.smoothed));
        assert_eq!((raw, smooth), (vec![Some(2), Some(3), Some(3)], vec![Some(3), Some(3), None]));
        assert_eq!((m.best(), m.at()), (Some(0.75), Some(5)));
        let text = serde_json::to_string(&m).unwrap();
        assert_eq!(serde_json::from_str::<Milestones>(&text).unwrap(), m);
        assert_eq!(serde_json::from_str::<Milestones>("{}").unwrap(), Milestones::default());
    }
}
