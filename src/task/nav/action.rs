//! Poses, views and the action space.
//!
//! At every viewpoint the agent has 36 views: 12 headings, 30° apart, by 3 elevations (30° down, level, 30° up). View
//! `12 * row + column` looks along heading `30° * column`; row 0 looks down. Heading 0 is the +y direction, turning
//! right is positive. An action moves to an adjacent viewpoint; afterwards the agent faces along the view in which that
//! viewpoint lay. Stop, action 0 of the models, is not in these lists.

use super::graph::Graph;
use std::f64::consts::{PI, TAU};

/// Headings that the agent can face.
pub const HEADINGS: usize = 12;

/// Views at a viewpoint.
pub const VIEWS: usize = 36;

/// Angle between neighbouring views: 30°.
pub const VIEW_STEP: f64 = TAU / HEADINGS as f64;

/// Where the agent is and which way it faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pose {
    /// Index of the viewpoint in its graph.
    pub viewpoint: usize,
    /// Heading index, 0 to 11: the agent faces `30° * heading`.
    pub heading: u8,
}

/// A move to an adjacent viewpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    /// The viewpoint it leads to.
    pub viewpoint: usize,
    /// Its bearing less the agent's heading, in (−π, π].
    pub rel_heading: f64,
    /// Its elevation, seen from the agent's viewpoint.
    pub rel_elevation: f64,
    /// The view whose centre is nearest to it, 0 to 35.
    pub view: u8,
}

/// Bearing of `to` from `from`, in (−π, π]: 0 along +y, π/2 along +x.
pub fn bearing(from: &[f64; 3], to: &[f64; 3]) -> f64 {
    (to[0] - from[0]).atan2(to[1] - from[1])
}

/// Elevation of `to` from `from`: 0 is level, up is positive.
pub fn elevation(from: &[f64; 3], to: &[f64; 3]) -> f64 {
    (to[2] - from[2]).atan2((to[0] - from[0]).hypot(to[1] - from[1]))
}

/// An angle brought into (−π, π].
pub fn wrapped(angle: f64) -> f64 {
    let angle = angle.rem_euclid(TAU);
    if angle > PI { angle - TAU } else { angle }
}

/// The heading index nearest to a heading in radians.
pub fn heading_index(heading: f64) -> u8 {
    ((heading / VIEW_STEP).round() as i64).rem_euclid(HEADINGS as i64) as u8
}

/// The view whose centre is nearest to a direction.
pub fn view_toward(bearing: f64, elevation: f64) -> u8 {
    let row = 1 + (elevation / VIEW_STEP).round().clamp(-1.0, 1.0) as i8;
    row as u8 * HEADINGS as u8 + heading_index(bearing)
}

/// Heading and elevation of the centre of a view.
pub fn view_direction(view: u8) -> (f64, f64) {
    let (row, column) = (view / HEADINGS as u8, view % HEADINGS as u8);
    (f64::from(column) * VIEW_STEP, (f64::from(row) - 1.0) * VIEW_STEP)
}

/// The moves from a pose, the one most straight ahead first (of two as straight, the smaller viewpoint index).
pub fn actions(graph: &Graph, pose: Pose) -> Vec<Action> {
    let here = graph.position(pose.viewpoint);
    let mut actions: Vec<Action> = graph
        .neighbours(pose.viewpoint)
        .iter()
        .map(|&next| {
            let there = graph.position(next as usize);
            let (bearing, rel_elevation) = (bearing(&here, &there), elevation(&here, &there));
            Action {
                viewpoint: next as usize,
                rel_heading: wrapped(bearing - f64::from(pose.heading) * VIEW_STEP),
                rel_elevation,
                view: view_toward(bearing, rel_elevation),
            }
        })
        .collect();
    actions.sort_by(|a, b| a.rel_heading.abs().total_cmp(&b.rel_heading.abs()));
    actions
}

/// The pose after a move.
pub fn after(action: &Action) -> Pose {
    Pose { viewpoint: action.viewpoint, heading: action.view % HEADINGS as u8 }
}

/// The pose after moving to an adjacent viewpoint, whatever the heading before.
pub fn step(graph: &Graph, from: usize, to: usize) -> Pose {
    Pose { viewpoint: to, heading: heading_index(bearing(&graph.position(from), &graph.position(to))) }
}

/// The poses along a walk: the start's, and one for each further viewpoint.
pub fn poses(graph: &Graph, heading: u8, path: &[usize]) -> Vec<Pose> {
    let start = path.first().map(|&viewpoint| Pose { viewpoint, heading });
    start.into_iter().chain(path.windows(2).map(|pair| step(graph, pair[0], pair[1]))).collect()
}
