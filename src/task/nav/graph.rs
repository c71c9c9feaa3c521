//! The navigation graph of a house: viewpoints, edges, and shortest paths between all pairs of viewpoints.
//!
//! A viewpoint is a place where the agent can stand; an edge joins two viewpoints between which nothing is in the way.
//! The weight of an edge is the straight-line distance in metres.

use crate::datafile::{DataError, Faults, read_json};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

/// Lengths are summed in picometres: whole numbers, so that two sums of the same edges are equal and ties are ties.
const UNITS: f64 = 1e12;

/// Length of a path in [`UNITS`] and its number of edges: of two as short, the one of fewer edges is shorter. (Real
/// houses have pairs of viewpoints at one place, and so edges of length 0.)
type Cost = (u64, u16);

/// No path.
const NO_PATH: Cost = (u64::MAX, u16::MAX);

/// No house has more viewpoints: the costs of all shortest paths between so many take 256 MiB.
pub const MOST_VIEWPOINTS: usize = 4096;

/// No edge is longer, in metres; it keeps sums of lengths within what they are counted in.
const LONGEST_EDGE: f64 = 100.0;

/// A place where the agent can stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Viewpoint {
    /// Its name, unique among all houses.
    pub id: String,
    /// Position of the eye in metres: x, y, and z up.
    pub position: [f64; 3],
}

/// The navigation graph of one house with all shortest paths. Viewpoints are known by their index below [`Graph::len`].
#[derive(Clone, Debug)]
pub struct Graph {
    viewpoints: Vec<Viewpoint>,
    neighbours: Vec<Vec<u32>>,
    index: FxHashMap<String, u32>,
    /// Row by row: cost of the shortest path from the row's viewpoint to the column's.
    cost: Vec<Cost>,
}

impl Graph {
    /// A graph of viewpoints and undirected edges (pairs of indices).
    ///
    /// # Errors
    /// When there are more than [`MOST_VIEWPOINTS`], an id comes twice, a position is not finite, or an edge leads nowhere,
    /// to itself or improbably far.
    pub fn new(viewpoints: Vec<Viewpoint>, edges: &[(usize, usize)]) -> Result<Graph, String> {
        let n = viewpoints.len();
        // Before anything is sized by it: all shortest paths are kept.
        if n > MOST_VIEWPOINTS {
            return Err(format!("it has {n} viewpoints; more than {MOST_VIEWPOINTS} are no house"));
        }
        let mut index = FxHashMap::with_capacity_and_hasher(n, Default::default());
        for (i, viewpoint) in viewpoints.iter().enumerate() {
            if viewpoint.position.iter().any(|x| !x.is_finite()) {
                return Err(format!("viewpoint {} has no finite position", viewpoint.id));
            }
            if index.insert(viewpoint.id.clone(), i as u32).is_some() {
                return Err(format!("viewpoint {} comes twice", viewpoint.id));
            }
        }
        let mut neighbours = vec![Vec::new(); n];
        for &(a, b) in edges {
            if a >= n || b >= n {
                return Err(format!("edge [{a}, {b}] leads to no viewpoint (there are {n})"));
            }
            if a == b {
                return Err(format!("edge [{a}, {b}] leads back to its viewpoint"));
            }
            if distance_between(&viewpoints[a].position, &viewpoints[b].position) > LONGEST_EDGE {
                return Err(format!("edge [{a}, {b}] is longer than {LONGEST_EDGE} m"));
            }
            neighbours[a].push(b as u32);
            neighbours[b].push(a as u32);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let mut graph = Graph { viewpoints, neighbours, index, cost: Vec::new() };
        graph.cost = (0..n).flat_map(|from| graph.costs_from(from)).collect();
        Ok(graph)
    }

    /// Dijkstra's algorithm: the costs of the shortest paths from one viewpoint.
    fn costs_from(&self, from: usize) -> Vec<Cost> {
        let mut cost = vec![NO_PATH; self.len()];
        cost[from] = (0, 0);
        let mut open = BinaryHeap::from([Reverse((cost[from], from))]);
        while let Some(Reverse((so_far, at))) = open.pop() {
            if so_far > cost[at] {
                continue;
            }
            for &next in &self.neighbours[at] {
                let next = next as usize;
                let along = self.then(so_far, at, next);
                if along < cost[next] {
                    cost[next] = along;
                    open.push(Reverse((along, next)));
                }
            }
        }
        cost
    }

    /// Cost of a path and a further edge.
    fn then(&self, so_far: Cost, at: usize, next: usize) -> Cost {
        (so_far.0 + (self.edge_length(at, next) * UNITS).round() as u64, so_far.1 + 1)
    }

    fn cost(&self, from: usize, to: usize) -> Cost {
        self.cost[from * self.len() + to]
    }

    /// Number of viewpoints.
    pub fn len(&self) -> usize {
        self.viewpoints.len()
    }

    /// True when there is no viewpoint.
    pub fn is_empty(&self) -> bool {
        self.viewpoints.is_empty()
    }

    /// The viewpoints, by index.
    pub fn viewpoints(&self) -> &[Viewpoint] {
        &self.viewpoints
    }

    /// Position of a viewpoint in metres.
    pub fn position(&self, viewpoint: usize) -> [f64; 3] {
        self.viewpoints[viewpoint].position
    }

    /// Name of a viewpoint.
    pub fn id(&self, viewpoint: usize) -> &str {
        &self.viewpoints[viewpoint].id
    }

    /// Index of the viewpoint of a name.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.index.get(id).map(|i| *i as usize)
    }

    /// Adjacent viewpoints in the order of their indices.
    pub fn neighbours(&self, viewpoint: usize) -> &[u32] {
        &self.neighbours[viewpoint]
    }

    /// Whether an edge joins two viewpoints.
    pub fn adjacent(&self, a: usize, b: usize) -> bool {
        self.neighbours[a].binary_search(&(b as u32)).is_ok()
    }

    /// The edges, smaller index first, in order.
    pub fn edge_list(&self) -> Vec<(usize, usize)> {
        (0..self.len())
            .flat_map(|a| self.neighbours[a].iter().map(move |b| (a, *b as usize)))
            .filter(|(a, b)| a < b)
            .collect()
    }

    /// Straight-line distance in metres.
    pub fn edge_length(&self, a: usize, b: usize) -> f64 {
        distance_between(&self.position(a), &self.position(b))
    }

    /// Length of the shortest path in metres; infinite where there is none.
    pub fn distance(&self, from: usize, to: usize) -> f64 {
        let cost = self.cost(from, to);
        if cost == NO_PATH { f64::INFINITY } else { cost.0 as f64 / UNITS }
    }

    /// Number of edges of [`Graph::shortest_path`]; `None` where there is none.
    pub fn edges(&self, from: usize, to: usize) -> Option<usize> {
        let cost = self.cost(from, to);
        (cost != NO_PATH).then_some(usize::from(cost.1))
    }

    /// The next viewpoint on the shortest path; `None` at the goal or where there is no path.
    pub fn step_toward(&self, from: usize, to: usize) -> Option<usize> {
        let whole = self.cost(from, to);
        let leads = |&&k: &&u32| {
            let rest = self.cost(k as usize, to);
            rest != NO_PATH && self.then(rest, from, k as usize) == whole
        };
        self.neighbours[from].iter().find(leads).map(|k| *k as usize)
    }

    /// The shortest path with both ends; `None` where there is none. Of several as short, one of the fewest edges, and of
    /// those at every viewpoint the step to the neighbour of the smallest index.
    pub fn shortest_path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path = vec![from];
        path.reserve(self.edges(from, to)?);
        let mut at = from;
        while at != to {
            at = self.step_toward(at, to)?;
            path.push(at);
        }
        Some(path)
    }
}

/// Straight-line distance of two points.
pub fn distance_between(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// Houses by name.
pub type Graphs = BTreeMap<String, Graph>;

/// A house as `graphs.json.gz` has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredGraph {
    pub viewpoints: Vec<StoredViewpoint>,
    pub edges: Vec<(usize, usize)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredViewpoint {
    pub id: String,
    pub x: f64,
    pub y: f64,
    pub z: f64,
    pub included: bool,
}

impl StoredGraph {
    /// The graph of the included viewpoints.
    pub(super) fn graph(&self) -> Result<Graph, String> {
        let mut place = vec![None; self.viewpoints.len()];
        let mut viewpoints = Vec::new();
        for (i, v) in self.viewpoints.iter().enumerate().filter(|(_, v)| v.included) {
            place[i] = Some(viewpoints.len());
            viewpoints.push(Viewpoint { id: v.id.clone(), position: [v.x, v.y, v.z] });
        }
        let end = |i: usize| match place.get(i) {
            Some(Some(at)) => Ok(*at),
            Some(None) => Err(format!("an edge leads to viewpoint {}, which is not included", self.viewpoints[i].id)),
            None => Err(format!("an edge leads to viewpoint number {i}; there are {}", place.len())),
        };
        let edges = self.edges.iter().map(|&(a, b)| Ok((end(a)?, end(b)?))).collect::<Result<Vec<_>, String>>()?;
        Graph::new(viewpoints, &edges)
    }
}

/// Reads `graphs.json.gz` of a data folder. Viewpoints that are not part of the environment are left out.
///
/// # Errors
/// Names the file and the house, and says what is wrong.
pub fn load_graphs(folder: &Path) -> Result<Graphs, DataError> {
    load_graphs_noting(folder, &mut Faults::First)
}

/// As [`load_graphs`], noting the houses that are wrong.
pub(super) fn load_graphs_noting(folder: &Path, faults: &mut Faults<'_>) -> Result<Graphs, DataError> {
    let path = folder.join("graphs.json.gz");
    let stored: BTreeMap<String, StoredGraph> = read_json(&path)?;
    if stored.is_empty() {
        return Err(DataError::content(&path, "there is no house in it"));
    }
    let made: Vec<(String, Result<Graph, String>)> =
        stored.into_par_iter().map(|(scan, house)| (scan, house.graph())).collect();
    let mut graphs = Graphs::new();
    for (scan, graph) in made {
        match graph {
            Ok(graph) => drop(graphs.insert(scan, graph)),
            Err(what) => faults.note(DataError::content(&path, format!("house {scan}: {what}")))?,
        }
    }
    Ok(graphs)
}
