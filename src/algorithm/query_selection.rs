//! Choosing what to ask. Teachers' time is what learning costs; executions cost next to nothing. So more episodes are
//! executed than are asked about, and of those that can be described the most instructive ones are.
//!
//! Instructive is an execution of a *kind* ([`World::kind`]) that was seldom asked about and could be described when it
//! was, on a request that the exploration policy is in doubt about. An empty description teaches no words, but it counts
//! here: kinds that nobody can describe are asked about less and less.
//!
//! [`World::kind`]: crate::protocol::World::kind

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What became of asking about a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    asked: u64,
    described: u64,
}

/// How often each kind was asked about and described. AlgorithmState with checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tallies(BTreeMap<String, Tally>);

/// An execution that could be asked about.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its kind.
    pub kind: String,
    /// How much executions of its request differ, in 0..=1 ([`doubt`]).
    pub doubt: f64,
}

/// Probability that two of a request's executions, drawn at random, are of different kinds.
pub fn doubt(kinds: &[&str]) -> f64 {
    let n = kinds.len();
    if n < 2 {
        return 1.0;
    }
    let pairs = kinds.iter().enumerate().flat_map(|(i, a)| kinds[i + 1..].iter().map(move |b| a != b));
    pairs.filter(|different| *different).count() as f64 / (n * (n - 1) / 2) as f64
}

impl Tallies {
    /// Notes that an execution of a kind was asked about.
    pub fn note(&mut self, kind: &str, described: bool) {
        let tally = self.0.entry(kind.to_owned()).or_default();
        tally.asked += 1;
        tally.described += u64::from(described);
    }

    /// Positions of at most `most` candidates, in order. `waiting` are kinds that somebody is being asked about already.
    pub fn choose(&self, candidates: &[Candidate], waiting: &[String], most: usize) -> Vec<usize> {
        let mut soon: BTreeMap<&str, u64> = BTreeMap::new();
        for kind in waiting {
            *soon.entry(kind).or_default() += 1;
        }
        let mut left: Vec<usize> = (0..candidates.len()).collect();
        let mut chosen = Vec::new();
        while chosen.len() < most && !left.is_empty() {
            let worth = |i: usize| {
                let Candidate { kind, doubt } = &candidates[i];
                let tally = self.0.get(kind).copied().unwrap_or_default();
                let asked = (tally.asked + soon.get(kind.as_str()).copied().unwrap_or(0) + 1) as f64;
                let describable = (tally.described + 1) as f64 / (tally.asked + 1) as f64;
                // Without any doubt there is still something to learn: a new way of saying it.
                (0.1 + doubt) * describable / asked.sqrt()
            };
            let mut best = 0;
            for at in 1..left.len() {
                if worth(left[at]) > worth(left[best]) {
                    best = at;
                }
            }
            let i = left.remove(best);
            *soon.entry(&candidates[i].kind).or_default() += 1;
            chosen.push(i);
        }
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(kinds: &[&str]) -> Vec<Candidate> {
        kinds.iter().map(|kind| Candidate { kind: kind.to_string(), doubt: 1.0 }).collect()
    }

    #[test]
    fn doubt_is_the_share_of_pairs_that_differ() {
        assert_eq!(doubt(&["a", "a", "a"]), 0.0);
        assert_eq!(doubt(&["a", "b", "c"]), 1.0);
        assert_eq!(doubt(&["a", "a", "b"]), 2.0 / 3.0);
        assert_eq!(doubt(&["a"]), 1.0);
    }

    #[test]
    fn what_is_new_comes_first_and_a_batch_is_varied() {
        let mut tallies = Tallies::default();
        for _ in 0..20 {
            tallies.note("old", true);
        }
        assert_eq!(tallies.choose(&candidates(&["old", "new", "old", "newer"]), &[], 2), [1, 3]);
        assert_eq!(tallies.choose(&candidates(&["a", "a", "a", "b"]), &[], 2), [0, 3]);
        assert_eq!(tallies.choose(&candidates(&["a", "b"]), &["a".into()], 1), [1]);
        assert_eq!(tallies.choose(&candidates(&["a"]), &[], 5), [0]);
        assert_eq!(tallies.choose(&[], &[], 5), [0; 0]);
    }

    #[test]
    fn what_nobody_can_describe_is_asked_about_less() {
        let mut tallies = Tallies::default();
        for _ in 0..5 {
            tallies.note("odd", false);
            tallies.note("plain", true);
        }
        assert_eq!(tallies.choose(&candidates(&["odd", "plain"]), &[], 1), [1]);
    }

    #[test]
    fn doubtful_requests_come_before_clear_ones() {
        let mut both = candidates(&["a", "b"]);
        both[0].doubt = 0.0;
        assert_eq!(Tallies::default().choose(&both, &[], 1), [1]);
    }

    #[test]
    fn they_survive_json() {
        let mut tallies = Tallies::default();
        tallies.note("(){1}()@", true);
        let json = serde_json::to_string(&tallies).unwrap();
        assert_eq!(serde_json::from_str::<Tallies>(&json).unwrap(), tallies);
    }
}
