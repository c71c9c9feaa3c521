//! The simulated teacher of the paper: a request of the task where the execution is as good as the gold one, otherwise
//! a pragmatic description, i.e. one that a listener would carry out the same way.

use crate::config::run::{Draw, Pragmatics};
use crate::protocol::{Description, Episode, Teacher, World};
use crate::rng;
use crate::stages;
use candle_core::Result;
use rand::RngExt;

/// Describes a batch of episodes. All must be describable ([`World::describable`]).
/// `counter` numbers the batch: with the same seed and counter the same is said.
pub fn describe<W: World>(
    world: &W,
    models: &dyn Teacher<W>,
    settings: &Pragmatics,
    episodes: &[Episode<W>],
    seed: u64,
    counter: u64,
) -> Result<Vec<Description>> {
    let mut said: Vec<Description> = vec![Description::default(); episodes.len()];
    let mut open = Vec::new();
    for (i, episode) in episodes.iter().enumerate() {
        let task = &episode.task;
        let gold = world.gold(task.split, task.index);
        if settings.requests && world.performs(&task.start, &episode.execution, &gold, settings.tau) {
            let requests = world.requests(task.split, task.index);
            let pick = rng::stream(seed, "teacher-request", episode.number).random_range(0..requests.len());
            said[i] = Description { description: requests[pick].clone(), gold: true, candidates: Vec::new() };
        } else {
            open.push(i);
        }
    }
    if open.is_empty() {
        return Ok(said);
    }
    let executions: Vec<_> = open.iter().map(|&i| (&episodes[i].task.start, &episodes[i].execution)).collect();
    stages::end("compare");
    let proposed = models.propose(&executions, settings.samples, &mut rng::stream(seed, "describe", counter))?;

    stages::end("propose");
    // The executor reads each different sentence once.
    let mut items = Vec::new();
    let mut places = Vec::with_capacity(proposed.len());
    for (k, candidates) in proposed.iter().enumerate() {
        let mut distinct: Vec<(&str, usize)> = Vec::new();
        let place: Vec<usize> = candidates
            .iter()
            .map(|c| match distinct.iter().find(|(d, _)| d == c) {
                Some((_, at)) => *at,
                None => {
                    let (start, execution) = executions[k];
                    items.push((start, execution, c.as_str()));
                    distinct.push((c, items.len() - 1));
                    items.len() - 1
                }
            })
            .collect();
        places.push(place);
    }
    let qualifies = if items.is_empty() { Vec::new() } else { models.qualifies(&items, settings.tau)? };
    stages::end("check");
    for ((&i, candidates), place) in open.iter().zip(&proposed).zip(&places) {
        let judged: Vec<(String, bool)> =
            candidates.iter().cloned().zip(place.iter().map(|&at| qualifies[at])).collect();
        let draw = rng::stream(seed, "teacher-draw", episodes[i].number).random::<f64>();
        let description = choose(&judged, settings.draw, draw);
        let candidates = judged.into_iter().filter(|(c, _)| !c.is_empty()).collect();
        said[i] = Description { description, gold: false, candidates };
    }
    Ok(said)
}

/// Takes the description among judged candidates; `u` in 0..1 decides the draw. Empty when none qualifies, or when the
/// empty description is drawn.
fn choose(judged: &[(String, bool)], draw: Draw, u: f64) -> String {
    let mut pool: Vec<&str> = judged.iter().filter(|(c, ok)| *ok && !c.is_empty()).map(|(c, _)| c.as_str()).collect();
    if pool.is_empty() {
        return String::new();
    }
    match draw {
        Draw::First => return pool[0].to_owned(),
        Draw::List => {}
        Draw::Set => {
            let mut seen = std::collections::HashSet::new();
            pool.retain(|c| seen.insert(*c));
        }
    }
    // The empty description is one more in the draw.
    pool.get((u * (pool.len() + 1) as f64) as usize).map(|c| c.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged() -> Vec<(String, bool)> {
        [("a", true), ("b", false), ("a", true), ("c", true)].map(|(c, ok)| (c.to_owned(), ok)).to_vec()
    }

    fn shares(draw: Draw) -> Vec<(String, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        for i in 0..1200 {
            *counts.entry(choose(&judged(), draw, f64::from(i) / 1200.0)).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    #[test]
    fn the_set_counts_a_sentence_once_and_includes_the_empty_one() {
        assert_eq!(shares(Draw::Set), [(String::new(), 400), ("a".into(), 400), ("c".into(), 400)]);
    }

    #[test]
    fn the_list_counts_it_as_often_as_it_was_sampled() {
        assert_eq!(shares(Draw::List), [(String::new(), 300), ("a".into(), 600), ("c".into(), 300)]);
    }

    #[test]
    fn first_takes_the_first_and_nothing_qualifying_gives_the_empty_description() {
        assert_eq!(shares(Draw::First), [("a".into(), 1200)]);
        assert_eq!(choose(&[("b".into(), false)], Draw::First, 0.0), "");
    }
}
