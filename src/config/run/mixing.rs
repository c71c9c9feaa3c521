//! The mixing weight λ between the approximate marginal and the agent's own executions, and its annealing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// λ and how it changes: every `every` updates λ ← max(λ_min, λ·rate) (paper, appendix on annealing).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mixing {
    /// λ at the start, in 0..=1 (paper: 0.5).
    pub lambda: f64,
    /// Updates L between two annealing steps; 0: never (the paper's default).
    #[schemars(extend("unit" = "updates"))]
    pub anneal_every: u64,
    /// Annealing rate β (paper: 0.5).
    pub anneal_rate: f64,
    /// Smallest weight λ_min (paper: 0.1).
    pub lambda_min: f64,
}

impl Default for Mixing {
    fn default() -> Self {
        Self { lambda: 0.5, anneal_every: 0, anneal_rate: 0.5, lambda_min: 0.1 }
    }
}

impl Mixing {
    /// λ in force at an update (counted from 0).
    pub fn at(&self, update: u64) -> f64 {
        if self.anneal_every == 0 {
            return self.lambda;
        }
        let steps = (update / self.anneal_every).min(1024) as i32;
        let annealed = self.lambda * self.anneal_rate.powi(steps);
        if steps == 0 { self.lambda } else { annealed.max(self.lambda_min) }
    }
}

#[cfg(test)]
mod tests {
    use super::Mixing;

    #[test]
    fn lambda_is_halved_every_l_updates_down_to_its_minimum() {
        let m = Mixing { anneal_every: 2000, ..Mixing::default() };
        let at: Vec<f64> = [0, 1999, 2000, 4000, 6000, 1_000_000].iter().map(|u| m.at(*u)).collect();
        assert_eq!(at, [0.5, 0.5, 0.25, 0.125, 0.1, 0.1]);
        assert_eq!(Mixing::default().at(1_000_000), 0.5);
    }
}
