//! Query selection: which executions a teacher is asked about. Teachers' time is what learning costs; executions cost next to nothing. So more episodes are
//! executed than are asked about, and of those that can be described the most instructive ones are.
//!
//! Instructive is an execution of a *kind* ([`World::kind`]) that was seldom asked about and could be described when it
//! was, on a request whose executions by the exploration policy disagree. An empty description teaches no words, but it counts
//! here: kinds that nobody can describe are asked about less and less.
//!
//! [`World::kind`]: crate::protocol::World::kind

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often teachers were asked about a kind, and how often they described it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KindCount {
    asked: u64,
    described: u64,
}

/// How often each kind was asked about and described. Saved with checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KindCounts(BTreeMap<String, KindCount>);

/// An execution that could be asked about.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its kind.
    pub kind: String,
    /// How much executions of its request differ, in 0..=1 ([`disagreement`]).
    pub disagreement: f64,
}

/// Probability that two of a request's executions, drawn at random, are of different kinds.
pub fn disagreement(kinds: &[&str]) -> f64 {
    let n = kinds.len();
    if n < 2 {
        return 1.0;
    }
    let pairs = kinds.iter().enumerate().flat_map(|(i, a)| kinds[i + 1..].iter().map(move |b| a != b));
    pairs.filter(|different| *different).count() as f64 / (n * (n - 1) / 2) as f64
}

impl KindCounts {
    /// Notes that an execution of a kind was asked about.
    pub fn record(&mut self, kind: &str, described: bool) {
        let count = self.0.entry(kind.to_owned()).or_default();
        count.asked += 1;
        count.described += u64::from(described);
    }

    /// Positions of at most `most` candidates, in order. `waiting` are kinds that somebody is being asked about already.
    pub fn choose(&self, candidates: &[Candidate], waiting: &[String], most: usize) -> Vec<usize> {
        let mut pending: BTreeMap<&str, u64> = BTreeMap::new();
        for kind in waiting {
            *pending.entry(kind).or_default() += 1;
        }
        let mut left: Vec<usize> = (0..candidates.len()).collect();
        let mut chosen = Vec::new();
        while chosen.len() < most && !left.is_empty() {
            let score = |i: usize| {
                let Candidate { kind, disagreement } = &candidates[i];
                let count = self.0.get(kind).copied().unwrap_or_default();
                let asked = (count.asked + pending.get(kind.as_str()).copied().unwrap_or(0) + 1) as f64;
                let describable = (count.described + 1) as f64 / (count.asked + 1) as f64;
                // Without any disagreement there is still a new wording to learn.
                (0.1 + disagreement) * describable / asked.sqrt()
            };
            let mut best = 0;
            for at in 1..left.len() {
                if score(left[at]) > score(left[best]) {
                    best = at;
                }
            }
            let i = left.remove(best);
            *pending.entry(&candidates[i].kind).or_default() += 1;
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
        kinds.iter().map(|kind| Candidate { kind: kind.to_string(), disagreement: 1.0 }).collect()
    }

    #[test]
    fn disagreement_is_the_share_of_pairs_that_differ() {
        assert_eq!(disagreement(&["a", "a", "a"]), 0.0);
        assert_eq!(disagreement(&["a", "b", "c"]), 1.0);
        assert_eq!(disagreement(&["a", "a", "b"]), 2.0 / 3.0);
        assert_eq!(disagreement(&["a"]), 1.0);
    }

    #[test]
    fn new_kinds_come_first_and_a_batch_is_varied() {
        let mut counts = KindCounts::default();
        for _ in 0..20 {
            counts.record("old", true);
        }
        assert_eq!(counts.choose(&candidates(&["old", "new", "old", "newer"]), &[], 2), [1, 3]);
        assert_eq!(counts.choose(&candidates(&["a", "a", "a", "b"]), &[], 2), [0, 3]);
        assert_eq!(counts.choose(&candidates(&["a", "b"]), &["a".into()], 1), [1]);
        assert_eq!(counts.choose(&candidates(&["a"]), &[], 5), [0]);
        assert_eq!(counts.choose(&[], &[], 5), [0; 0]);
    }

    #[test]
    fn kinds_that_nobody_can_describe_are_asked_about_less() {
        let mut counts = KindCounts::default();
        for _ in 0..5 {
            counts.record("odd", false);
            counts.record("plain", true);
        }
        assert_eq!(counts.choose(&candidates(&["odd", "plain"]), &[], 1), [1]);
    }

    #[test]
    fn requests_with_disagreement_come_before_those_without() {
        let mut both = candidates(&["a", "b"]);
        both[0].disagreement = 0.0;
        assert_eq!(KindCounts::default().choose(&both, &[], 1), [1]);
    }

    #[test]
    fn counts_survive_json() {
        let mut counts = KindCounts::default();
        counts.record("(){1}()@", true);
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<KindCounts>(&json).unwrap(), counts);
    }
}
