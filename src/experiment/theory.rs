//! The paper's analysis of EpochADEL (its appendix), computed on small contextual bandits where P* is known.
//!
//! [`bandit`] holds worlds and teachers, [`epochs`] the algorithm and the W operator, [`singular`] σ_min. Here stand the
//! quantities that the theorems bound, each in the very norm of its statement, and the study that `iliad dev theory` prints.
//! `docs/theory.md` says how to read it.

pub mod bandit;
pub mod epochs;
pub mod singular;
mod study;

use bandit::{Bandit, Matrix};
use epochs::{Learner, with_true_marginal};
use serde::Serialize;
pub use study::{Study, StudySettings, Wrong, picture, study};

/// ‖x − y‖₂.
pub fn distance(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

/// ‖x − y‖₁; twice the total variation of two distributions.
pub fn l1(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum()
}

/// KL(x ‖ y) in nats; infinite where y lacks an outcome of x.
pub fn kl(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).filter(|(x, _)| **x > 0.0).map(|(x, y)| x * (x / y).ln()).sum()
}

/// Values that are fixed for a start state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartFacts {
    /// P*(s).
    pub probability: f64,
    /// σ_min(s) of P_s.
    pub sigma_min: f64,
    /// KL(P*(a | s) ‖ P_1(a | s)) with the uniform P_1, in nats; at most ln |A|.
    pub first_kl: f64,
    /// K_s = max over requests of 2 / P*(d | s), the constant of the smoothness lemma.
    pub k: f64,
    /// Requests that come at all: P*(d | s).
    #[serde(skip)]
    requests: Vec<f64>,
    #[serde(skip)]
    optimal: Matrix,
    #[serde(skip)]
    actions: f64,
}

impl StartFacts {
    /// Of start `s`.
    pub fn new(bandit: &Bandit, s: usize) -> StartFacts {
        let requests = bandit.requests(s);
        let n = bandit.marginals[s].len();
        let k = requests.iter().filter(|p| **p > 0.0).map(|p| 2.0 / p).fold(0.0, f64::max);
        StartFacts {
            probability: bandit.starts[s],
            sigma_min: singular::smallest(&bandit.descriptions[s]),
            first_kl: kl(&bandit.marginals[s], &vec![1.0 / n as f64; n]),
            k,
            optimal: bandit.optimal(s),
            requests,
            actions: n as f64,
        }
    }

    /// The main theorem's bound after `t` epochs: (1/σ_min) √(2 ln |A| / t). Infinite where σ_min is 0.
    pub fn bound(&self, t: u64) -> f64 {
        self.bound_with(self.actions.ln(), t)
    }

    /// The sharper one that the proof has on the way, with KL(P* ‖ P_1) in place of ln |A|.
    pub fn sharp_bound(&self, t: u64) -> f64 {
        self.bound_with(self.first_kl, t)
    }

    fn bound_with(&self, nats: f64, t: u64) -> f64 {
        if self.sigma_min > 0.0 { (2.0 * nats.max(0.0) / t as f64).sqrt() / self.sigma_min } else { f64::INFINITY }
    }

    /// Total variation of a policy to P*(a | s, d): the largest over the requests that come.
    pub fn largest_error(&self, policy: &Matrix) -> f64 {
        self.errors(policy).map(|(_, error)| error).fold(0.0, f64::max)
    }

    /// The mean over requests, each as often as it comes.
    pub fn mean_error(&self, policy: &Matrix) -> f64 {
        self.errors(policy).map(|(p, error)| p * error).sum()
    }

    fn errors<'a>(&'a self, policy: &'a Matrix) -> impl Iterator<Item = (f64, f64)> + 'a {
        let requests = self.requests.iter().copied().enumerate().filter(|(_, p)| *p > 0.0);
        requests.map(|(d, p)| (p, 0.5 * l1(policy.row(d), self.optimal.row(d))))
    }
}

/// One start after `t` epochs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// t: policies averaged.
    pub t: u64,
    /// ‖P*(a | s) − (1/t) Σ_n P_n(a | s)‖₂, what the main theorem bounds.
    pub distance: f64,
    /// (1/σ_min) √(2 ln |A| / t).
    pub bound: f64,
    /// The bound with KL(P* ‖ P_1) in place of ln |A|.
    pub sharp_bound: f64,
    /// Largest total variation, over requests, of W's policy from the running average to P*(a | s, d).
    pub policy_error: f64,
    /// Its bound by the smoothness lemma: ½ K_s ‖P̃_t(a | s) − P*(a | s)‖₁ (total variation is half the lemma's norm).
    pub policy_bound: f64,
    /// The potential KL(P*(a | s) ‖ P_t(a | s)).
    pub potential: f64,
    /// KL(P*(d | s) ‖ P_t(d | s)): by how much the lemma says the potential falls at least in this epoch.
    pub promised_fall: f64,
}

impl Reading {
    /// Reads a learner in start `s`.
    pub fn of(learner: &Learner<'_>, bandit: &Bandit, facts: &StartFacts, s: usize) -> Reading {
        let (t, average, now) = (learner.t(), learner.average_marginal(s), learner.marginal(s));
        let truth = &bandit.marginals[s];
        Reading {
            t,
            distance: distance(truth, &average),
            bound: facts.bound(t),
            sharp_bound: facts.sharp_bound(t),
            policy_error: facts.largest_error(&learner.evaluated(s)),
            policy_bound: 0.5 * facts.k * l1(&average, truth),
            potential: kl(truth, &now),
            promised_fall: kl(&facts.requests, &bandit.descriptions[s].times(&now)),
        }
    }

    /// Distance divided by bound.
    pub fn ratio(&self) -> f64 {
        if self.distance == 0.0 { 0.0 } else { self.distance / self.bound }
    }
}

/// `left` ≤ `right`, but for the rounding of floating-point numbers.
pub fn at_most(left: f64, right: f64) -> bool {
    left <= right * (1.0 + 1e-9) + 1e-12
}

/// Largest error of the learner that knows the true marginal, over starts; and its mean over tasks.
pub fn true_marginal_error(bandit: &Bandit, teacher: &[Matrix], facts: &[StartFacts]) -> (f64, f64) {
    let mut errors = (0.0f64, 0.0);
    for (s, facts) in facts.iter().enumerate() {
        let policy = with_true_marginal(bandit, teacher, s);
        errors.0 = errors.0.max(facts.largest_error(&policy));
        errors.1 += facts.probability * facts.mean_error(&policy);
    }
    errors
}

#[cfg(test)]
mod tests;
