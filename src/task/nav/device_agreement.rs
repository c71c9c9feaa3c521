//! The device agreement of the NAV models, in a small random world.

use crate::nn::adam::Adam;
use crate::nn::device::{LaunchOptions, options, with_options};
use crate::nn::device_agreement::{Apart, Found, compare};
use crate::nn::init::uniform;
use crate::nn::tokens::{END, START};
use crate::rng::{Stream, stream};
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::VIEWS;
use crate::task::nav::model::describer::NavDescriber;
use crate::task::nav::model::rollout::Environment;
use crate::task::nav::model::student::{Batch, Lesson, NavStudent, Reading, as_read};
use crate::task::nav::model::transition_table::{HEADINGS, Transition, TransitionTable};
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::{Candidate, Observation, Walk};
use candle_core::{DType, Device, Result};
use rand::RngExt;

const PLACES: usize = 40;
const FEATURES: usize = 24;
const WORDS: usize = 60;
const HORIZON: usize = 7;

/// Biases that add the same to all scores: of a query, or of the actions.
const STUDENT: [&str; 2] = [".key.bias", "predictor.output.bias"];
const DESCRIBER: [&str; 1] = [".key.bias"];

fn sizes(hidden: usize) -> NavSizes {
    NavSizes { words: WORDS, hidden, heads: 4, features: FEATURES, direction: 16 }
}

fn transitions(draws: &mut Stream) -> Result<TransitionTable> {
    let mut pose = || {
        let moves = draws.random_range(1..6);
        (0..moves)
            .map(|_| {
                let view = draws.random_range(0..VIEWS as u32);
                let (heading, elevation) = (draws.random_range(-3.0..3.0), draws.random_range(-1.0..1.0));
                let place = draws.random_range(0..PLACES as u32);
                Transition {
                    seen: Candidate { view, heading, elevation },
                    next: place * HEADINGS as u32 + view % HEADINGS as u32,
                }
            })
            .collect()
    };
    TransitionTable::new(&(0..PLACES * HEADINGS).map(|_| pose()).collect::<Vec<_>>())
}

/// As float16 on every device: the same numbers.
fn views(transitions: &TransitionTable, draws: &mut Stream, device: &Device) -> Result<ViewTable> {
    let values = uniform(&[PLACES * VIEWS * FEATURES], 1.5, draws)?.to_vec1::<f32>()?;
    ViewTable::new(&values, FEATURES, DType::F16, device)?.with_transitions(transitions)
}

fn observation(transitions: &TransitionTable, pose: u32) -> Observation {
    let moves = transitions.of(pose).iter().map(|transition| transition.seen).collect();
    Observation { place: pose / HEADINGS as u32, pose: Some(pose), moves }
}

struct Walkers<'a> {
    transitions: &'a TransitionTable,
    poses: Vec<u32>,
    actions: Vec<Vec<u32>>,
}

impl Environment for Walkers<'_> {
    fn observe(&mut self) -> Result<Vec<Observation>> {
        Ok(self.poses.iter().map(|pose| observation(self.transitions, *pose)).collect())
    }

    fn act(&mut self, actions: &[u32]) -> Result<()> {
        for ((pose, made), &action) in self.poses.iter_mut().zip(&mut self.actions).zip(actions) {
            made.push(action);
            if action > 0 {
                *pose = self.transitions.of(*pose)[action as usize - 1].next;
            }
        }
        Ok(())
    }

    fn poses(&self) -> Option<Vec<u32>> {
        Some(self.poses.clone())
    }
}

fn walk(transitions: &TransitionTable, draws: &mut Stream) -> Walk {
    let mut pose = draws.random_range(0..(PLACES * HEADINGS) as u32);
    let (steps, mut walk) = (draws.random_range(1..=HORIZON), Walk::default());
    for step in 0..steps {
        let moves = transitions.of(pose);
        let action = if step + 1 == steps { 0 } else { draws.random_range(1..=moves.len()) };
        walk.seen.push(observation(transitions, pose));
        walk.actions.push(action as u32);
        if action > 0 {
            pose = moves[action - 1].next;
        }
    }
    walk
}

fn text(draws: &mut Stream) -> Vec<u32> {
    (0..draws.random_range(1..20)).map(|_| draws.random_range(4..WORDS as u32)).collect()
}

/// Factors that hide about half of the features. Twice a float16 is a float16, so devices differ by no rounding of theirs.
fn factors(step: u64) -> Vec<f32> {
    let mut draws = stream(3, "agreement factors", step);
    (0..FEATURES).map(|_| if draws.random_bool(0.5) { 0.0 } else { 2.0 }).collect()
}

/// `varied`: with other features hidden in each step.
fn students(device: &Device, hidden: usize, steps: u64, reading: Reading, varied: bool) -> Result<Found> {
    let mut draws = stream(3, "agreement world", 0);
    let transitions = transitions(&mut draws)?;
    let views = views(&transitions, &mut draws, device)?;
    let model = NavStudent::new(sizes(hidden), reading, &mut stream(3, "agreement", 0), device)?;
    let mut adam = Adam::new(&model.params, 1e-3)?;
    let (mut losses, mut written) = (Vec::new(), Vec::new());
    for step in 0..steps {
        let mut draws = stream(3, "agreement batch", step);
        let rows = 19;
        let batch = Batch {
            requests: (0..rows).map(|_| as_read(&text(&mut draws))).collect(),
            walks: (0..2 * rows).map(|_| walk(&transitions, &mut draws)).collect(),
        };
        let actions: Vec<_> = batch.walks.iter().map(|w| w.actions.clone()).collect();
        let lesson = if step % 3 == 2 {
            let advantages: Vec<f32> = (0..2 * rows).map(|_| draws.random_range(-1.0..1.0)).collect();
            Lesson::reward(&actions, &advantages, 0.1)
        } else {
            Lesson::likelihood(&actions, &[(rows, 0.25), (rows, 0.75)])
        };
        let shown = if varied { views.with_factors(&factors(step))? } else { views.clone() };
        losses.push(model.step(&batch, &lesson, &shown, &mut adam)?.to_scalar::<f32>()?);
        for sample in [false, true] {
            let poses = (0..rows).map(|_| draws.random_range(0..(PLACES * HEADINGS) as u32)).collect();
            let mut walkers = Walkers { transitions: &transitions, poses, actions: vec![Vec::new(); rows] };
            let lot = &mut stream(3, "agreement sample", step);
            model.lead(&batch.requests, &mut walkers, &views, (HORIZON, sample), lot)?;
            // How long nothing more happens depends on the device.
            let until = |all: Vec<u32>| all.iter().position(|a| *a == 0).map_or(all.clone(), |end| all[..end].to_vec());
            written.extend(walkers.actions.into_iter().map(until).map(Some));
        }
    }
    Ok(Found { losses, params: model.params, written, verdicts: Vec::new() })
}

fn describers(device: &Device, hidden: usize, steps: u64, reference: bool) -> Result<Found> {
    let mut draws = stream(4, "agreement world", 0);
    let transitions = transitions(&mut draws)?;
    let views = views(&transitions, &mut draws, device)?;
    let model = NavDescriber::new(sizes(hidden), reference, &mut stream(4, "agreement", 0), device)?;
    let mut adam = Adam::new(&model.params, 1e-3)?;
    let (mut losses, mut written) = (Vec::new(), Vec::new());
    for step in 0..steps {
        let mut draws = stream(4, "agreement batch", step);
        let walks: Vec<_> = (0..21).map(|_| walk(&transitions, &mut draws)).collect();
        let texts: Vec<_> = (0..21).map(|_| [&[START], &text(&mut draws)[..], &[END]].concat()).collect();
        losses.push(model.step(&walks, &texts, &views, &mut adam)?.to_scalar::<f32>()?);
        let all = model.propose(&walks[..9], &views, 3, 24, &mut stream(4, "agreement sample", step))?;
        written.extend(all.into_iter().flatten().map(|r| Some(r.symbols)));
    }
    Ok(Found { losses, params: model.params, written, verdicts: Vec::new() })
}

/// Compares programs with single operations on `device`.
pub fn programs(device: &Device, hidden: usize, steps: u64) -> Result<Vec<Apart>> {
    let reading = Reading { reference_padding: false, positions: true };
    let options = LaunchOptions { programs: false, ..options(device) };
    let single = &with_options(device, options)?;
    let gathered = &with_options(device, LaunchOptions { programs: true, ..options })?;
    let student = |device| students(device, hidden, steps, reading, false);
    let describer = |device| describers(device, hidden, steps, false);
    Ok(vec![
        compare("nav student, gathered", student(single)?, student(gathered)?, &STUDENT)?,
        compare("nav describer, gathered", describer(single)?, describer(gathered)?, &DESCRIBER)?,
    ])
}

/// Compares `device` with the CPU.
pub fn agreement(device: &Device, hidden: usize, steps: u64) -> Result<Vec<Apart>> {
    let cpu = &Device::Cpu;
    let mut all = Vec::new();
    for on in [false, true] {
        let reading = Reading { reference_padding: on, positions: on };
        let [one, other] = [cpu, device].map(|device| students(device, hidden, steps, reading, false));
        all.push(compare(if on { "nav student, with positions" } else { "nav student" }, one?, other?, &STUDENT)?);
        let [one, other] = [cpu, device].map(|device| students(device, hidden, steps, reading, true));
        all.push(compare("nav student, features hidden", one?, other?, &STUDENT)?);
        let both = (describers(cpu, hidden, steps, on)?, describers(device, hidden, steps, on)?);
        all.push(compare("nav describer", both.0, both.1, &DESCRIBER)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees_with_itself() {
        for apart in agreement(&Device::Cpu, 16, 6).unwrap() {
            assert_eq!((apart.losses, apart.weights, apart.written.1, apart.checked.1), (0.0, 0.0, 0, 0));
        }
    }
}
