//! The moves from each pose of a world in one table: where walkers are led by a policy on the device itself, a walk
//! needs no word from the host.
//!
//! A pose is 12 · place + heading, for the 12 headings of a place of the [`crate::task::nav::model::views::ViewTable`].

use crate::task::nav::model::VIEWS;
use crate::task::nav::model::walk::Candidate;
use candle_core::{Device, Result, Tensor, bail};
use std::sync::Arc;

/// Headings of a place.
pub const HEADINGS: usize = 12;

/// A move from a pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// How it looks from there.
    pub seen: Candidate,
    /// The pose after it.
    pub next: u32,
}

/// The moves of all poses in order. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct TransitionTable {
    moves: Arc<Vec<Transition>>,
    /// Where a pose's moves begin; one more at the end.
    begin: Arc<Vec<u32>>,
    actions: usize,
    on_device: Option<OnDevice>,
}

/// As kernels read it: for each pose and action (0 is to stop) the row of the view table, sin and cos of heading and
/// elevation, and the pose after it.
#[derive(Clone, Debug)]
pub(crate) struct OnDevice {
    pub rows: Tensor,
    pub directions: Tensor,
    pub next: Tensor,
}

/// A row where there is no such action.
const NONE: u32 = u32::MAX;

impl TransitionTable {
    /// The moves of all poses.
    ///
    /// # Errors
    /// When they are not of whole places, or one leads nowhere or faces no view.
    pub fn new(all: &[Vec<Transition>]) -> Result<Self> {
        let poses = all.len();
        if poses == 0 || !poses.is_multiple_of(HEADINGS) {
            bail!("{poses} poses are not {HEADINGS} of each place")
        }
        if let Some(transition) =
            all.iter().flatten().find(|w| w.next as usize >= poses || w.seen.view as usize >= VIEWS)
        {
            bail!(
                "a move to pose {} in view {}, where there are {poses} poses and {VIEWS} views",
                transition.next,
                transition.seen.view
            )
        }
        let mut begin = vec![0];
        for own in all {
            begin.push(begin[begin.len() - 1] + own.len() as u32);
        }
        let actions = 1 + all.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Self { moves: Arc::new(all.concat()), begin: Arc::new(begin), actions, on_device: None })
    }

    /// The moves from a pose.
    ///
    /// # Panics
    /// When there is no such pose.
    pub fn of(&self, pose: u32) -> &[Transition] {
        &self.moves[self.begin[pose as usize] as usize..self.begin[pose as usize + 1] as usize]
    }

    /// Poses.
    pub fn poses(&self) -> usize {
        self.begin.len() - 1
    }

    /// Actions of a pose at most, to stop among them.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The table on a device, for a view table of as many places.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn on(&self, device: &Device) -> Result<Self> {
        let (poses, actions) = (self.poses(), self.actions);
        let nothing = (poses / HEADINGS * VIEWS) as u32;
        let n = poses * actions;
        let (mut rows, mut next, mut directions) = (vec![NONE; n], vec![0; n], vec![0f32; 4 * n]);
        for pose in 0..poses as u32 {
            let at = pose as usize * actions;
            (rows[at], next[at]) = (nothing, pose);
            for (i, transition) in self.of(pose).iter().enumerate() {
                let at = at + i + 1;
                rows[at] = pose / HEADINGS as u32 * VIEWS as u32 + transition.seen.view;
                next[at] = transition.next;
                let (sin_h, cos_h) = transition.seen.heading.sin_cos();
                let (sin_e, cos_e) = transition.seen.elevation.sin_cos();
                directions[4 * at..][..4].copy_from_slice(&[sin_h, cos_h, sin_e, cos_e]);
            }
        }
        let on_device = OnDevice {
            rows: Tensor::from_vec(rows, n, device)?,
            directions: Tensor::from_vec(directions, 4 * n, device)?,
            next: Tensor::from_vec(next, n, device)?,
        };
        Ok(Self { on_device: Some(on_device), ..self.clone() })
    }

    /// The table, where it is on a device.
    pub(crate) fn table(&self) -> Option<&OnDevice> {
        self.on_device.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transition(view: u32, next: u32) -> Transition {
        Transition { seen: Candidate { view, heading: 0.0, elevation: 0.0 }, next }
    }

    #[test]
    fn moves_are_found_by_pose_and_stopping_stays() {
        let mut all = vec![Vec::new(); 24];
        all[3] = vec![transition(1, 12), transition(5, 13)];
        let transitions = TransitionTable::new(&all).unwrap().on(&Device::Cpu).unwrap();
        assert_eq!((transitions.poses(), transitions.actions()), (24, 3));
        assert_eq!(transitions.of(3), [transition(1, 12), transition(5, 13)]);
        assert!(transitions.of(4).is_empty());
        let table = transitions.table().unwrap();
        let row = |t: &Tensor, pose: usize| t.to_vec1::<u32>().unwrap()[3 * pose..][..3].to_vec();
        assert_eq!(row(&table.rows, 3), [72, 1, 5]);
        assert_eq!(row(&table.next, 3), [3, 12, 13]);
        assert_eq!(row(&table.rows, 14), [72, NONE, NONE]);
        assert_eq!(row(&table.next, 14)[0], 14);
        assert_eq!(table.directions.to_vec1::<f32>().unwrap()[36..][..8], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        assert!(TransitionTable::new(&[]).is_err() && TransitionTable::new(&vec![Vec::new(); 13]).is_err());
        assert!(TransitionTable::new(&vec![vec![transition(36, 0)]; 12]).is_err());
        assert!(TransitionTable::new(&vec![vec![transition(0, 12)]; 12]).is_err());
    }
}
