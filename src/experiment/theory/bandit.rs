//! Contextual bandits with a known joint distribution P*(s, a, d), and teachers for them.

use crate::rng::{self, Stream};
use rand::RngExt;
use serde::Serialize;

/// A table of numbers: rows are descriptions d, columns are actions a.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// A table whose entry in row d and column a is `entry(d, a)`.
    pub fn new(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Matrix {
        let values = (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect();
        Matrix { rows, columns, values }
    }

    /// Descriptions.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Actions.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entry in row `d` and column `a`. Panics outside the table.
    pub fn at(&self, d: usize, a: usize) -> f64 {
        self.values[d * self.columns + a]
    }

    /// The entry in row `d` and column `a`, to be changed.
    pub fn at_mut(&mut self, d: usize, a: usize) -> &mut f64 {
        &mut self.values[d * self.columns + a]
    }

    /// Row `d`.
    pub fn row(&self, d: usize) -> &[f64] {
        &self.values[d * self.columns..(d + 1) * self.columns]
    }

    /// The table times a vector over actions.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.rows).map(|d| self.row(d).iter().zip(vector).map(|(m, v)| m * v).sum()).collect()
    }
}

/// A world with horizon H = 1: an execution is e = (s, a). The paper's P*(s, a, d) in factors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bandit {
    /// P*(s).
    pub starts: Vec<f64>,
    /// P*(a | s), the true marginal over executions, by start.
    pub marginals: Vec<Vec<f64>>,
    /// P*(d | \[s, a\]), the paper's matrix P_s, by start.
    pub descriptions: Vec<Matrix>,
}

/// Sizes of a random world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// |A|, at least 1.
    pub actions: usize,
    /// |D|, at least 1.
    pub descriptions: usize,
    /// Start states, at least 1.
    pub starts: usize,
}

impl Bandit {
    /// A random world: P*(s) and P*(a | s) uniform on the simplex; of the descriptions of an execution a few are much
    /// likelier than the rest, as with people. All probabilities are above zero.
    pub fn random(sizes: Sizes, seed: u64) -> Bandit {
        let Sizes { actions, descriptions, starts } = sizes;
        let mut stream = rng::stream(seed, "theory-world", 0);
        let starts_weights = simplex(starts, 1, &mut stream);
        let marginals = (0..starts).map(|_| simplex(actions, 1, &mut stream)).collect();
        let descriptions = (0..starts)
            .map(|_| {
                let columns: Vec<Vec<f64>> = (0..actions).map(|_| simplex(descriptions, 3, &mut stream)).collect();
                Matrix::new(descriptions, actions, |d, a| columns[a][d])
            })
            .collect();
        Bandit { starts: starts_weights, marginals, descriptions }
    }

    /// P*(d | s), the distribution of requests in a start.
    pub fn requests(&self, s: usize) -> Vec<f64> {
        self.descriptions[s].times(&self.marginals[s])
    }

    /// P*(a | s, d) in row d, what a perfect policy does; rows of requests that never come are zero.
    pub fn optimal(&self, s: usize) -> Matrix {
        let (requests, p) = (self.requests(s), &self.descriptions[s]);
        let joint = |d: usize, a: usize| p.at(d, a) * self.marginals[s][a];
        Matrix::new(p.rows(), p.columns(), |d, a| if requests[d] > 0.0 { joint(d, a) / requests[d] } else { 0.0 })
    }

    /// The consistent teacher: P_T(d | e) = P*(d | e).
    pub fn consistent(&self) -> Vec<Matrix> {
        self.descriptions.clone()
    }

    /// A teacher that with probability `strength` (0 to 1) goes wrong in the given way.
    pub fn inconsistent(&self, fault: Fault, strength: f64) -> Vec<Matrix> {
        self.descriptions
            .iter()
            .map(|p| {
                Matrix::new(p.rows(), p.columns(), |d, a| {
                    let wrong = match fault {
                        Fault::Noise => 1.0 / p.rows() as f64,
                        Fault::Swapped => p.at(d, (a + 1) % p.columns()),
                    };
                    (1.0 - strength) * p.at(d, a) + strength * wrong
                })
            })
            .collect()
    }
}

/// The kind of mistakes in a teacher's descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// Any description, whatever was done.
    Noise,
    /// A description of the next action instead of the one that was done.
    Swapped,
}

impl Fault {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Noise => "noise",
            Fault::Swapped => "swapped",
        }
    }
}

/// A random distribution over `n` outcomes: uniform on the simplex for `power` 1, more uneven for higher ones.
fn simplex(n: usize, power: i32, stream: &mut Stream) -> Vec<f64> {
    // The floor keeps logarithms and quotients finite.
    let weights: Vec<f64> = (0..n).map(|_| (-(1.0 - stream.random::<f64>()).ln()).powi(power) + 1e-6).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

/// Draws an index with the given probabilities.
pub fn draw(probabilities: impl IntoIterator<Item = f64>, stream: &mut Stream) -> usize {
    let mut left: f64 = stream.random();
    let mut last = 0;
    for (i, p) in probabilities.into_iter().enumerate() {
        if p > 0.0 {
            last = i;
            if left < p {
                return i;
            }
        }
        left -= p;
    }
    // Rounding can leave a crumb after the last outcome.
    last
}
