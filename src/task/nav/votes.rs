//! Votes: beside the likeliest walk some are sampled from the same policy, and the walk is made near whose end most of them end. This
//! is decoding of minimum Bayes risk for success: the policy's own samples stand for where a person may have meant.

use super::agent::NavAgent;
use super::metric::SUCCESS_RADIUS;
use super::{Start, Walk};
use crate::nn::sample::draws;
use candle_core::Result;

/// Walkers that are led at once at most: on a GPU a few graphs' worth, on a CPU few enough that memory does not matter; fewer in
/// tests, which then need few walks to make several parts.
const WALKERS: usize = if cfg!(test) { 64 } else { 2048 };

impl NavAgent {
    /// For each task, given with its request as read, the walk that most of the walks agree with: its `own` likeliest one and the
    /// sampled ones.
    pub(super) fn voted(&self, own: Vec<Walk>, tasks: &[(&Start, &str)], requests: &[Vec<u32>]) -> Result<Vec<Walk>> {
        let (votes, horizon) = (self.blueprint.votes, self.blueprint.horizon);
        // Streams of their own, the same for all tasks: what a request leads to depends on nothing else that is asked with it.
        let stream = |number: usize| crate::rng::stream(0, "votes", number as u64);
        let drawn: Vec<Vec<f32>> = (0..votes).map(|n| draws(horizon, |_| false, &mut stream(n))).collect();
        let some = (WALKERS / votes).max(1);
        let mut chosen = Vec::with_capacity(own.len());
        let mut own = own.into_iter();
        for (tasks, requests) in tasks.chunks(some).zip(requests.chunks(some)) {
            let starts: Vec<_> = tasks.iter().flat_map(|(start, _)| std::iter::repeat_n(*start, votes)).collect();
            let requests: Vec<_> = requests.iter().flat_map(|r| std::iter::repeat_n(r.clone(), votes)).collect();
            let decisions = (0..horizon).flat_map(|t| tasks.iter().flat_map(move |_| 0..votes).map(move |n| (t, n)));
            let draws: Vec<f32> = decisions.map(|(t, n)| drawn[n][t]).collect();
            let mut walkers = self.around.walkers(&starts)?;
            self.student.lead_by(&requests, &mut walkers, &self.around.views, horizon, &draws)?;
            for (sampled, own) in walkers.walks().chunks(votes).zip(&mut own) {
                let ballot = std::iter::once(own).chain(sampled.iter().cloned()).collect();
                chosen.push(self.most_agreed(ballot));
            }
        }
        Ok(chosen)
    }

    /// The walk of a ballot with the most votes.
    fn most_agreed(&self, mut ballot: Vec<Walk>) -> Walk {
        let world = self.around.world();
        let ends: Vec<_> = ballot.iter().map(|walk| world.place(walk.viewpoints.last()?)).collect();
        let near = |a: usize, b: usize| match (ends[a], ends[b]) {
            (Some((house, from)), Some((other, to))) => {
                house == other && world.scenes()[house].graph.distance(from, to) <= SUCCESS_RADIUS
            }
            _ => false,
        };
        ballot.swap_remove(most_votes(ballot.len(), near))
    }
}

/// Which of `n` has the most that are near it, itself included; of equals the first, as the likeliest walk is. There is one at least.
fn most_votes(n: usize, near: impl Fn(usize, usize) -> bool) -> usize {
    let votes: Vec<usize> = (0..n).map(|one| (0..n).filter(|other| near(one, *other)).count()).collect();
    (1..n).fold(0, |best, next| if votes[next] > votes[best] { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Decoding, Split, World};
    use crate::rng::stream;
    use candle_core::Device;

    /// Ends along a corridor, in metres.
    fn chosen(ends: &[f64]) -> usize {
        most_votes(ends.len(), |a, b| (ends[a] - ends[b]).abs() <= SUCCESS_RADIUS)
    }

    #[test]
    fn the_walk_near_whose_end_most_end_is_chosen() {
        assert_eq!(chosen(&[20.0, 0.0, 5.0, 2.5]), 3, "near two others, which are far from each other");
        assert_eq!(chosen(&[20.0, 0.0, 3.0]), 1, "three metres are near");
        assert_eq!(chosen(&[20.0, 0.0, 3.1, 20.0]), 0);
    }

    #[test]
    fn of_equals_the_likeliest_is_chosen_and_then_the_first() {
        assert_eq!(chosen(&[20.0, 10.0, 0.0]), 0);
        assert_eq!(chosen(&[20.0, 21.0, 0.0, 1.0]), 0);
        assert_eq!(chosen(&[20.0, 10.0, 11.0, 0.0, 1.0]), 1);
        assert_eq!(chosen(&[20.0]), 0);
    }

    #[test]
    fn a_vote_depends_on_the_task_alone_and_is_among_what_the_policy_samples() {
        let walks = |setting: &str, tasks: std::ops::Range<usize>, how: Decoding, draws: u64| {
            let config = crate::testing::configure("nav/tiny", 1, &[setting.to_owned()]).unwrap();
            let world = super::super::setup::world(&config, &|_, _| {}).unwrap();
            let agent = super::super::setup::agent(&config, &world, &Device::Cpu).unwrap().agent;
            let tasks: Vec<_> = tasks.map(|index| world.task(Split::Train, index % world.len(Split::Train))).collect();
            let asked: Vec<_> = tasks.iter().map(|task| (&task.start, task.request.as_str())).collect();
            let walks = agent.act(&asked, how, &mut stream(draws, "votes test", 0)).unwrap();
            assert!(tasks.iter().zip(&walks).all(|(task, walk)| world.valid(&task.start, walk)));
            walks
        };
        let plain = walks("model.votes=0", 0..24, Decoding::Greedy, 1);
        let voted = walks("model.votes=7", 0..24, Decoding::Greedy, 1);
        assert_ne!(plain, voted);
        assert_eq!(voted, walks("model.votes=7", 0..24, Decoding::Greedy, 2), "acting again gives the same");
        // So many tasks are led in three parts.
        assert_eq!(voted[19..], walks("model.votes=7", 19..24, Decoding::Greedy, 3), "so does asking for fewer");
        let sampled = |setting| walks(setting, 0..24, Decoding::Sample, 1);
        assert_eq!(sampled("model.votes=7"), sampled("model.votes=0"), "samples stay as they are");
    }
}
