//! EpochADEL on a bandit, and the learner that knows the true marginal.
//!
//! An epoch executes a batch of requests with the policy P_n(a | s, d), lets the teacher describe each execution, and
//! fits the next policy to the pairs by maximum likelihood. The fit of a table is its conditional frequencies, so one
//! routine (`fit`) serves both sources of the pairs: their exact distribution D_n (the paper's M → ∞), and M
//! drawn ones.

use super::bandit::{Bandit, Matrix, draw};
use crate::rng::Stream;

/// P(a | s) = Σ_d P*(d | s) P(a | s, d), the marginal of a policy.
pub fn marginal(requests: &[f64], policy: &Matrix) -> Vec<f64> {
    (0..policy.columns()).map(|a| requests.iter().enumerate().map(|(d, p)| p * policy.at(d, a)).sum()).collect()
}

/// The joint weight of (a, d̂) in one start when actions have the marginal `p` and the teacher describes them:
/// P_T(d | \[s, a\]) P(a | s).
fn joint(teacher: &Matrix, p: &[f64]) -> Matrix {
    Matrix::new(teacher.rows(), teacher.columns(), |d, a| teacher.at(d, a) * p[a])
}

/// The policy that maximises the likelihood of weighted pairs (a, d̂): their conditional frequencies. Descriptions that
/// never came say nothing about what to do, so there the policy stays what it was.
fn fit(weights: &Matrix, before: &Matrix) -> Matrix {
    let sums: Vec<f64> = (0..weights.rows()).map(|d| weights.row(d).iter().sum()).collect();
    Matrix::new(weights.rows(), weights.columns(), |d, a| {
        if sums[d] > 0.0 { weights.at(d, a) / sums[d] } else { before.at(d, a) }
    })
}

/// The paper's W operator in one start: the Bayes-optimal policy after an epoch whose executions come from `policy`.
pub fn w(requests: &[f64], teacher: &Matrix, policy: &Matrix) -> Matrix {
    fit(&joint(teacher, &marginal(requests, policy)), policy)
}

/// The paper's first algorithm, ê ~ P*(e | s1), with as many examples as one likes, in start `s`: one fit.
pub fn with_true_marginal(bandit: &Bandit, teacher: &[Matrix], s: usize) -> Matrix {
    let start = uniform(&teacher[s]);
    fit(&joint(&teacher[s], &bandit.marginals[s]), &start)
}

/// The policy that knows nothing: all actions alike.
fn uniform(like: &Matrix) -> Matrix {
    Matrix::new(like.rows(), like.columns(), |_, _| 1.0 / like.columns() as f64)
}

/// EpochADEL with tabular policies, in all starts at once.
#[derive(Clone, Debug)]
pub struct Learner<'a> {
    bandit: &'a Bandit,
    teacher: &'a [Matrix],
    requests: Vec<Vec<f64>>,
    policy: Vec<Matrix>,
    /// Σ of the policies P_1 … P_t.
    sum: Vec<Matrix>,
    t: u64,
}

impl<'a> Learner<'a> {
    /// Before the first epoch: P_1 is uniform, and t = 1.
    pub fn new(bandit: &'a Bandit, teacher: &'a [Matrix]) -> Learner<'a> {
        let policy: Vec<Matrix> = teacher.iter().map(uniform).collect();
        let requests = (0..teacher.len()).map(|s| bandit.requests(s)).collect();
        Learner { bandit, teacher, requests, sum: policy.clone(), policy, t: 1 }
    }

    /// Number of policies so far, the uniform one included.
    pub fn t(&self) -> u64 {
        self.t
    }

    /// P_t(a | s).
    pub fn marginal(&self, s: usize) -> Vec<f64> {
        marginal(&self.requests[s], &self.policy[s])
    }

    /// The running average policy (1/t) Σ_n P_n(a | s, d).
    pub fn average(&self, s: usize) -> Matrix {
        Matrix::new(self.sum[s].rows(), self.sum[s].columns(), |d, a| self.sum[s].at(d, a) / self.t as f64)
    }

    /// Its marginal, (1/t) Σ_n P_n(a | s).
    pub fn average_marginal(&self, s: usize) -> Vec<f64> {
        marginal(&self.requests[s], &self.average(s))
    }

    /// The policy that the paper evaluates: one exact W step from the running average policy.
    pub fn evaluated(&self, s: usize) -> Matrix {
        w(&self.requests[s], &self.teacher[s], &self.average(s))
    }

    /// One epoch with M → ∞.
    pub fn advance(&mut self) {
        let next = (0..self.policy.len()).map(|s| w(&self.requests[s], &self.teacher[s], &self.policy[s])).collect();
        self.take(next);
    }

    /// One epoch with `m` drawn tasks: d* and s ~ P*, ê ~ P_n(· | s, d*), d̂ ~ P_T(· | ê).
    pub fn advance_sampled(&mut self, m: u64, stream: &mut Stream) {
        let mut counts: Vec<Matrix> =
            self.policy.iter().map(|p| Matrix::new(p.rows(), p.columns(), |_, _| 0.0)).collect();
        for _ in 0..m {
            let s = draw(self.bandit.starts.iter().copied(), stream);
            let request = draw(self.requests[s].iter().copied(), stream);
            let a = draw(self.policy[s].row(request).iter().copied(), stream);
            let d = draw((0..self.teacher[s].rows()).map(|d| self.teacher[s].at(d, a)), stream);
            *counts[s].at_mut(d, a) += 1.0;
        }
        let next = counts.iter().zip(&self.policy).map(|(counts, before)| fit(counts, before)).collect();
        self.take(next);
    }

    fn take(&mut self, next: Vec<Matrix>) {
        for (sum, policy) in self.sum.iter_mut().zip(&next) {
            *sum = Matrix::new(sum.rows(), sum.columns(), |d, a| sum.at(d, a) + policy.at(d, a));
        }
        self.policy = next;
        self.t += 1;
    }
}
