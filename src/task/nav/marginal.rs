//! The approximate marginal P_ω(e | s1) of NAV: random shortest paths from the start, drawn without any request.

use super::graph::Graph;
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::IndexedRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest edges of a drawn path.
pub const MIN_EDGES: usize = 2;

/// Most edges of a drawn path.
pub const MAX_EDGES: usize = 6;

/// The distribution that paths are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Marginal {
    /// As the paper says: uniform over the shortest paths of [`MIN_EDGES`] to [`MAX_EDGES`] edges that begin at the start.
    #[default]
    ShortestPaths,
    /// As the authors' program does: the first 3 to 7 viewpoints (uniformly) of the shortest path to a uniformly drawn
    /// other viewpoint of the house.
    Prefixes,
}

impl Marginal {
    /// Draws a path, the start first. Where no path from the start has [`MIN_EDGES`] edges it is shorter; from a viewpoint
    /// without edges it is the start alone.
    pub fn sample(self, graph: &Graph, start: usize, stream: &mut Stream) -> Vec<usize> {
        let edges = |goal: &usize| graph.edges(start, *goal).unwrap_or(0);
        let goals = |least: usize, most: usize| -> Vec<usize> {
            (0..graph.len()).filter(|goal| (least..=most).contains(&edges(goal))).collect()
        };
        match self {
            Marginal::ShortestPaths => {
                let far = goals(MIN_EDGES, MAX_EDGES);
                let goals = if far.is_empty() { goals(1, MAX_EDGES) } else { far };
                let goal = goals.choose(stream).copied().unwrap_or(start);
                graph.shortest_path(start, goal).unwrap_or_else(|| vec![start])
            }
            Marginal::Prefixes => {
                let goal = goals(1, usize::MAX).choose(stream).copied().unwrap_or(start);
                let mut path = graph.shortest_path(start, goal).unwrap_or_else(|| vec![start]);
                path.truncate(stream.random_range(MIN_EDGES + 1..=MAX_EDGES + 1));
                path
            }
        }
    }
}
