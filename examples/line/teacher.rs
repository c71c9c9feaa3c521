//! The simulated teacher: its describer and its executor are rules instead of language models.

use crate::world::{LineWorld, Place, Walk, requests};
use candle_core::Result;
use iliad::protocol::{Split, Teacher, World};
use iliad::rng::Stream;
use rand::RngExt;

/// Probability that a sampled description miscounts the steps. The executor finds these out.
const MISCOUNTED: f64 = 0.2;

/// The simulated teacher.
pub struct LineTeacher;

/// Sentences about a number of steps to one side; none about a walk that ends where it began or leaves the line.
fn sentences(start: &Place, walk: &Walk, miscount: usize) -> Vec<String> {
    let Some(end) = walk.end(start) else { return Vec::new() };
    let step = if end < start.at { 'l' } else { 'r' };
    match usize::from(end.abs_diff(start.at)) {
        0 => Vec::new(),
        times => requests(Split::Train, step, times + miscount),
    }
}

/// The walk of a listener who was told a sentence: the number and the side in it count.
fn walk_of(sentence: &str) -> Option<Walk> {
    let times = sentence.split(' ').find_map(|word| word.parse().ok())?;
    let side = sentence.split(' ').find_map(|word| match word {
        "left" => Some('l'),
        "right" => Some('r'),
        _ => None,
    })?;
    Some(Walk::straight(side, times))
}

impl Teacher<LineWorld> for LineTeacher {
    fn propose(&self, executions: &[(&Place, &Walk)], samples: usize, stream: &mut Stream) -> Result<Vec<Vec<String>>> {
        let mut all = Vec::with_capacity(executions.len());
        for (start, walk) in executions {
            let mut candidates: Vec<String> = sentences(start, walk, 0).into_iter().take(1).collect();
            for _ in 0..samples {
                let miscount = usize::from(stream.random_bool(MISCOUNTED));
                let mut said = sentences(start, walk, miscount);
                if !said.is_empty() {
                    candidates.push(said.swap_remove(stream.random_range(0..said.len())));
                }
            }
            // One greedy candidate and `samples` sampled ones, empty where there is nothing to say.
            candidates.resize(samples + 1, String::new());
            all.push(candidates);
        }
        Ok(all)
    }

    fn qualifies(&self, items: &[(&Place, &Walk, &str)], tau: f64) -> Result<Vec<bool>> {
        let told = |sentence: &str, start: &Place, walk: &Walk| {
            walk_of(sentence).is_some_and(|heard| LineWorld.performs(start, &heard, walk, tau))
        };
        Ok(items.iter().map(|(start, walk, sentence)| told(sentence, start, walk)).collect())
    }
}
