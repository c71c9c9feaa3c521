//! The environment: places, walks, requests, scoring and the approximate marginal.

use iliad::protocol::{Score, Split, Task, World};
use iliad::rng::Stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Number of places on the line.
pub const PLACES: u8 = 10;

/// Longest walk, in steps.
pub const HORIZON: usize = 6;

/// Most steps that a request asks for.
const FARTHEST: usize = 4;

/// Starts of tasks: from both places every task stays on the line.
const STARTS: [u8; 2] = [4, 5];

/// The start s1: where the agent stands, 0 to 9.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Place.
    pub at: u8,
}

/// An execution ê: one letter for each step, `l` or `r`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Walk {
    /// Steps.
    pub steps: String,
}

impl Walk {
    /// The same step again and again.
    pub fn straight(step: char, times: usize) -> Walk {
        Walk { steps: step.to_string().repeat(times) }
    }

    /// Where the walk ends; `None` when it leaves the line.
    pub fn end(&self, start: &Place) -> Option<u8> {
        self.steps.chars().try_fold(start.at, |at, step| match step {
            'l' => at.checked_sub(1),
            'r' if at + 1 < PLACES => Some(at + 1),
            _ => None,
        })
    }
}

/// The sentences that ask for a number of steps to one side.
pub fn requests(split: Split, step: char, times: usize) -> Vec<String> {
    let side = if step == 'l' { "left" } else { "right" };
    match split {
        Split::Train => vec![
            format!("go {times} to the {side}"),
            format!("{times} steps {side}"),
            format!("walk {side} {times} times"),
        ],
        Split::Validation => vec![format!("to the {side} {times}")],
        Split::Test => vec![format!("{side} {times} steps")],
    }
}

/// The environment.
pub struct LineWorld;

impl LineWorld {
    /// Start, step and number of steps of a task.
    fn plan(index: usize) -> (Place, char, usize) {
        let step = if index.is_multiple_of(2) { 'l' } else { 'r' };
        (Place { at: STARTS[index / (2 * FARTHEST)] }, step, 1 + index / 2 % FARTHEST)
    }
}

impl World for LineWorld {
    type Start = Place;
    type Execution = Walk;

    fn len(&self, _split: Split) -> usize {
        2 * FARTHEST * STARTS.len()
    }

    fn task(&self, split: Split, index: usize) -> Task<Place> {
        let request = self.requests(split, index).swap_remove(0);
        Task { split, index, request, start: Self::plan(index).0 }
    }

    fn requests(&self, split: Split, index: usize) -> Vec<String> {
        let (_, step, times) = Self::plan(index);
        requests(split, step, times)
    }

    fn gold(&self, _split: Split, index: usize) -> Walk {
        let (_, step, times) = Self::plan(index);
        Walk::straight(step, times)
    }

    fn sample_task(&self, split: Split, stream: &mut Stream) -> Task<Place> {
        let index = stream.random_range(0..self.len(split));
        let mut requests = self.requests(split, index);
        let request = requests.swap_remove(stream.random_range(0..requests.len()));
        Task { request, ..self.task(split, index) }
    }

    fn sample_marginal(&self, start: &Place, stream: &mut Stream) -> Walk {
        loop {
            let step = if stream.random_bool(0.5) { 'l' } else { 'r' };
            let walk = Walk::straight(step, stream.random_range(1..=FARTHEST));
            if self.valid(start, &walk) {
                return walk;
            }
        }
    }

    fn valid(&self, start: &Place, execution: &Walk) -> bool {
        execution.end(start).is_some()
    }

    fn describable(&self, start: &Place, execution: &Walk) -> bool {
        execution.end(start).is_some_and(|end| end != start.at)
    }

    fn performs(&self, start: &Place, execution: &Walk, reference: &Walk, _tau: f64) -> bool {
        self.valid(start, execution) && execution.end(start) == reference.end(start)
    }

    fn score(&self, task: &Task<Place>, execution: &Walk) -> Score {
        let gold = self.gold(task.split, task.index);
        Score { success: self.performs(&task.start, execution, &gold, 1.0), figures: Vec::new() }
    }

    fn view(&self, start: &Place, execution: &Walk) -> Value {
        json!({ "from": start.at, "to": execution.end(start) })
    }

    fn execution_of(&self, start: &Place, view: &Value, summary: &str) -> Option<Walk> {
        let walk = Walk { steps: summary.to_owned() };
        (self.view(start, &walk) == *view).then_some(walk)
    }

    fn summary(&self, execution: &Walk) -> String {
        execution.steps.clone()
    }
}
