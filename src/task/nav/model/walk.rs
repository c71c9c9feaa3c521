//! Batches of what was seen and done, on their way to the device: indices and angles only.

use crate::task::nav::model::VIEWS;
use crate::task::nav::model::views::ViewTable;
use candle_core::{Result, Tensor, bail};

/// Added to the logits of actions that do not exist.
pub const NO_ACTION: f32 = -1e30;

/// A move that can be made: to the adjacent viewpoint that lies in this view and direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The view that faces it, 0..36 (12 · row + column).
    pub view: u32,
    /// Heading relative to the agent's, in radians; to the right is positive.
    pub heading: f32,
    /// Elevation in radians; up is positive.
    pub elevation: f32,
}

/// The observation of an agent at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Where it is: an index into the [`ViewTable`].
    pub place: u32,
    /// Its pose in the table's [`crate::task::nav::model::transition_table::TransitionTable`], where it has them; from their number on, poses of the mirrored world.
    pub pose: Option<u32>,
    /// The moves in order. Action 0 is to stop, action i to make move i − 1.
    pub moves: Vec<Candidate>,
}

/// Observations and actions, one action for each observation. A walk that ended has 0 as its last action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Walk {
    /// Observations in order.
    pub seen: Vec<Observation>,
    /// Actions in order.
    pub actions: Vec<u32>,
}

impl Walk {
    /// Number of steps.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether it has no step.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}

/// Observations of many moments on the device, N rows: either one step of a batch or all steps, time-major.
#[derive(Clone, Debug)]
pub struct Scene {
    /// `[N]` (u32): places.
    pub places: Tensor,
    /// `[N, A]` (u32): rows of the view table that face the actions; stopping and actions that do not exist have its
    /// row of zeros.
    pub rows: Tensor,
    /// `[N, A, W]`: direction embeddings of the actions; zeros for stopping. W is 4 (sin and cos of heading, sin and
    /// cos of elevation), each standing for a quarter of the embedding, or the whole embedding's size.
    pub directions: Tensor,
    /// `[N, A]`: 0 where the action exists, else [`NO_ACTION`].
    pub bias: Tensor,
}

impl Scene {
    /// Puts observations on the table's device; `None` stands for a moment that never was (a shorter walk's padding).
    ///
    /// # Errors
    /// When an observation names a place or view that the table lacks.
    pub fn new(observations: &[Option<&Observation>], views: &ViewTable) -> Result<Self> {
        let n = observations.len();
        let actions = 1 + observations.iter().flatten().map(|o| o.moves.len()).max().unwrap_or(0);
        let mut places = vec![0u32; n];
        let mut rows = vec![views.nothing(); n * actions];
        let mut directions = vec![0f32; n * actions * 4];
        let mut bias = vec![NO_ACTION; n * actions];
        for (i, observation) in observations.iter().enumerate() {
            bias[i * actions] = 0.0;
            let Some(observation) = observation else { continue };
            if observation.place as usize >= views.places() {
                bail!("place {} where there are {}", observation.place, views.places())
            }
            places[i] = observation.place;
            for (a, candidate) in observation.moves.iter().enumerate() {
                if candidate.view as usize >= VIEWS {
                    bail!("view {} of a place that has {VIEWS}", candidate.view)
                }
                let at = i * actions + a + 1;
                rows[at] = views.row(observation.place, candidate.view);
                bias[at] = 0.0;
                let (sin_h, cos_h) = candidate.heading.sin_cos();
                let (sin_e, cos_e) = candidate.elevation.sin_cos();
                directions[at * 4..][..4].copy_from_slice(&[sin_h, cos_h, sin_e, cos_e]);
            }
        }
        let device = views.device();
        Ok(Self {
            places: Tensor::from_vec(places, n, device)?,
            rows: Tensor::from_vec(rows, (n, actions), device)?,
            directions: Tensor::from_vec(directions, (n, actions, 4), device)?,
            bias: Tensor::from_vec(bias, (n, actions), device)?,
        })
    }

    /// Number of rows N.
    pub fn moments(&self) -> Result<usize> {
        self.places.dim(0)
    }

    /// Numbers of a direction W.
    pub fn width(&self) -> Result<usize> {
        self.directions.dim(2)
    }

    /// Inputs `[N, F + W]` that stand for the chosen `actions` `[N]`: the feature vector of the view and the direction.
    pub fn chosen(&self, actions: &Tensor, views: &ViewTable) -> Result<Tensor> {
        let n = self.moments()?;
        let width = self.width()?;
        let actions = actions.reshape((n, 1))?;
        let rows = self.rows.gather(&actions, 1)?.flatten_all()?;
        let index = actions.unsqueeze(2)?.broadcast_as((n, 1, width))?.contiguous()?;
        Tensor::cat(&[&views.gather(&rows)?, &self.directions.gather(&index, 1)?.squeeze(1)?], 1)
    }
}

/// Whole walks on the device, time-major: row t · B + b is step t of walk b.
#[derive(Clone, Debug)]
pub struct Walks {
    /// `[S · B]` moments.
    pub scene: Scene,
    /// The actions made, 0 as padding.
    pub actions: Vec<u32>,
    /// Steps of each walk, B of them.
    pub lengths: Vec<usize>,
}

impl Walks {
    /// Puts walks on the table's device.
    ///
    /// # Errors
    /// When a walk has no step, not one action for each observation, or an action that is not among its moves.
    pub fn new(walks: &[Walk], views: &ViewTable) -> Result<Self> {
        let steps = walks.iter().map(Walk::len).max().unwrap_or(0);
        let mut observations = vec![None; steps * walks.len()];
        let mut actions = vec![0; steps * walks.len()];
        for (b, walk) in walks.iter().enumerate() {
            if walk.is_empty() || walk.seen.len() != walk.len() {
                bail!("walk {b} has {} observations and {} actions", walk.seen.len(), walk.len())
            }
            for (t, (seen, &action)) in walk.seen.iter().zip(&walk.actions).enumerate() {
                if action as usize > seen.moves.len() {
                    bail!("walk {b}: action {action} at step {t}, where there are {} moves", seen.moves.len())
                }
                observations[t * walks.len() + b] = Some(seen);
                actions[t * walks.len() + b] = action;
            }
        }
        if observations.is_empty() {
            bail!("a batch without walks")
        }
        let lengths = walks.iter().map(Walk::len).collect();
        Ok(Self { scene: Scene::new(&observations, views)?, actions, lengths })
    }

    /// Steps S of the longest.
    pub fn steps(&self) -> usize {
        self.actions.len() / self.lengths.len().max(1)
    }

    /// Places of step `t`, `[B]`.
    pub fn places(&self, t: usize) -> Result<Tensor> {
        self.scene.places.narrow(0, t * self.lengths.len(), self.lengths.len())
    }

    /// Inputs `[S · B, F + W]` that stand for the actions made.
    pub fn chosen(&self, views: &ViewTable) -> Result<Tensor> {
        self.scene.chosen(&Tensor::new(self.actions.as_slice(), views.device())?, views)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device};

    fn table() -> ViewTable {
        let values: Vec<f32> = (0..2 * VIEWS).flat_map(|i| [i as f32, -1.0]).collect();
        ViewTable::new(&values, 2, DType::F32, &Device::Cpu).unwrap()
    }

    fn look(place: u32, views: &[u32]) -> Observation {
        let moves = views.iter().map(|&view| Candidate { view, heading: std::f32::consts::FRAC_PI_2, elevation: 0.0 });
        Observation { place, pose: None, moves: moves.collect() }
    }

    #[test]
    fn an_action_is_the_view_that_faces_it_and_its_direction_and_stopping_is_zeros() {
        let (a, b) = (
            Walk { seen: vec![look(1, &[4, 7]), look(0, &[2])], actions: vec![2, 0] },
            Walk { seen: vec![look(0, &[3])], actions: vec![1] },
        );
        let Walks { scene, actions, lengths } = Walks::new(&[a, b], &table()).unwrap();
        assert_eq!(lengths, [2, 1]);
        assert_eq!(actions, [2, 1, 0, 0]);
        assert_eq!(scene.rows.to_vec2::<u32>().unwrap(), [[72, 40, 43], [72, 3, 72], [72, 2, 72], [72, 72, 72]]);
        let bias = scene.bias.to_vec2::<f32>().unwrap();
        assert_eq!(bias, [[0.0; 3], [0.0, 0.0, NO_ACTION], [0.0, 0.0, NO_ACTION], [0.0, NO_ACTION, NO_ACTION]]);
        let chosen = scene.chosen(&Tensor::new(actions.as_slice(), &Device::Cpu).unwrap(), &table()).unwrap();
        let chosen = chosen.to_vec2::<f32>().unwrap();
        // Heading 90° to the right, level: sin h = 1, cos h = 0, sin e = 0, cos e = 1.
        for (found, expected) in chosen[0].iter().zip([43.0, -1.0, 1.0, 0.0, 0.0, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{chosen:?}");
        }
        assert_eq!(chosen[2], [0.0; 6]);
    }

    #[test]
    fn walks_that_cannot_be_are_refused() {
        let refused = |walk: Walk| Walks::new(&[walk], &table()).unwrap_err().to_string();
        assert!(refused(Walk::default()).contains("0 actions"));
        assert!(refused(Walk { seen: vec![look(0, &[1])], actions: vec![2] }).contains("action 2"));
        assert!(refused(Walk { seen: vec![look(2, &[1])], actions: vec![0] }).contains("place 2"));
        assert!(refused(Walk { seen: vec![look(0, &[36])], actions: vec![0] }).contains("view 36"));
    }
}
