//! How well a walked path does what a reference path does.
//!
//! All distances are graph distances in metres. Success and SPL are those of Anderson et al., "On Evaluation of
//! Embodied Navigation Agents" (2018); nDTW and SDTW those of Ilharco et al., "General Evaluation for Instruction
//! Conditioned Navigation using Dynamic Time Warping" (2019).

use super::graph::Graph;
use serde::Serialize;

/// A walk succeeds when it ends within so many metres of the goal. nDTW takes the same threshold.
pub const SUCCESS_RADIUS: f64 = 3.0;

/// The figures of one walk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathScore {
    /// It ends within [`SUCCESS_RADIUS`] of the goal.
    pub success: bool,
    /// Distance from its end to the goal; infinite where no path leads there.
    pub distance: f64,
    /// Success weighted by path length: success × shortest / max(shortest, walked), where `shortest` is the length of the
    /// shortest way from the walk's start to the goal, also where the reference path is longer. 0 where no way leads there.
    pub spl: f64,
    /// Normalised dynamic time warping, exp(−DTW / (|reference| × 3 m)).
    pub ndtw: f64,
    /// Success weighted by nDTW: success × nDTW.
    pub sdtw: f64,
    /// Length walked.
    pub length: f64,
}

/// Scores a walk against a reference path. Neither may be empty. Viewpoints that follow each other without an edge count
/// with their shortest distance.
pub fn score(graph: &Graph, path: &[usize], reference: &[usize]) -> PathScore {
    let (start, end, goal) = (path[0], path[path.len() - 1], reference[reference.len() - 1]);
    let distance = graph.distance(end, goal);
    let success = succeeds(graph, path, reference);
    let length = path_length(graph, path);
    let shortest = graph.distance(start, goal);
    let spl = match (success, length > shortest) {
        (false, _) => 0.0,
        // Without a way there is nothing that was walked as short as it.
        (true, false) => f64::from(u8::from(shortest.is_finite())),
        (true, true) => shortest / length,
    };
    let ndtw = ndtw(graph, path, reference);
    PathScore { success, distance, spl, ndtw, sdtw: if success { ndtw } else { 0.0 }, length }
}

/// Whether a walk ends within [`SUCCESS_RADIUS`] of the end of a reference path. Neither may be empty.
pub fn succeeds(graph: &Graph, path: &[usize], reference: &[usize]) -> bool {
    graph.distance(path[path.len() - 1], reference[reference.len() - 1]) <= SUCCESS_RADIUS
}

/// Length of a path in metres.
pub fn path_length(graph: &Graph, path: &[usize]) -> f64 {
    path.windows(2).map(|pair| graph.distance(pair[0], pair[1])).sum()
}

/// Normalised dynamic time warping of a walk and a reference path, in 0..=1. Neither may be empty.
pub fn ndtw(graph: &Graph, path: &[usize], reference: &[usize]) -> f64 {
    (-dtw(graph, path, reference) / (reference.len() as f64 * SUCCESS_RADIUS)).exp()
}

/// SDTW: nDTW where the walk succeeds, else 0. Neither path may be empty.
pub fn sdtw(graph: &Graph, path: &[usize], reference: &[usize]) -> f64 {
    let end = graph.distance(path[path.len() - 1], reference[reference.len() - 1]);
    if end <= SUCCESS_RADIUS { ndtw(graph, path, reference) } else { 0.0 }
}

/// Dynamic time warping: the least sum of distances over all alignments that keep the order of both paths.
pub fn dtw(graph: &Graph, path: &[usize], reference: &[usize]) -> f64 {
    // One row of the table at a time; `row[j]` is the cost of aligning what was read of `path` with j reference points.
    let mut row = vec![f64::INFINITY; reference.len() + 1];
    row[0] = 0.0;
    for &at in path {
        let mut diagonal = std::mem::replace(&mut row[0], f64::INFINITY);
        for (j, &to) in reference.iter().enumerate() {
            let least = diagonal.min(row[j]).min(row[j + 1]);
            diagonal = std::mem::replace(&mut row[j + 1], least + graph.distance(at, to));
        }
    }
    row[reference.len()]
}

/// A path without its loops, in the order they were walked: of everything between two visits of a viewpoint nothing is
/// left. The ends stay.
pub fn without_loops(path: &[usize]) -> Vec<usize> {
    let mut kept = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&viewpoint) = path.get(at) {
        kept.push(viewpoint);
        let last = path[at..].iter().rposition(|&other| other == viewpoint).unwrap_or(0);
        at += last + 1;
    }
    kept
}
