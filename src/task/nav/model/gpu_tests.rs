//! Dry runs of the NAV models' passes on a GPU, without one: all operands fit what is made of them, however work is launched.

use crate::nn::cuda::DeviceSlice;
use crate::nn::cuda::backend::dry_run;
use crate::nn::cuda::operands::{Transitions, Var};
use crate::nn::cuda::tape::{Memory, Tape};
use crate::nn::device::LaunchOptions;
use crate::nn::params::Params;
use crate::rng::stream;
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::describer::NavDescriber;
use crate::task::nav::model::gpu::scale_features;
use crate::task::nav::model::gpu_inference::Walkers;
use crate::task::nav::model::gpu_training::{Pass, Paths, Requests};
use crate::task::nav::model::names::PREDICTOR_OUTPUT;
use crate::task::nav::model::student::{NavStudent, Reading};
use candle_core::{CudaDevice, DType, Device, Result, Tensor};
use std::collections::HashMap;

fn whole(n: usize) -> Tensor {
    Tensor::zeros(n, DType::U32, &Device::Cpu).unwrap()
}

fn numbers(n: usize) -> Tensor {
    Tensor::zeros(n, DType::F32, &Device::Cpu).unwrap()
}

fn gradients(params: &Params) -> HashMap<String, Tensor> {
    params.iter().map(|(name, var)| (name.to_owned(), var.as_tensor().zeros_like().unwrap())).collect()
}

struct Table {
    poses: usize,
    actions: usize,
    features: usize,
    views: Tensor,
    rows: Tensor,
    next: Tensor,
    directions: Tensor,
}

impl Table {
    fn new(features: usize) -> Self {
        let (poses, actions) = (24, 5);
        let n = poses * actions;
        let views = Tensor::zeros((2 * 36 + 1) * features, DType::F16, &Device::Cpu).unwrap();
        Self { poses, actions, features, views, rows: whole(n), next: whole(n), directions: numbers(4 * n) }
    }

    fn there(&self) -> Result<Transitions<'_>> {
        Ok(Transitions {
            table: DeviceSlice::of(&self.views)?,
            rows: DeviceSlice::of(&self.rows)?,
            next: DeviceSlice::of(&self.next)?,
            directions: DeviceSlice::of(&self.directions)?,
            actions: self.actions,
            features: self.features,
            poses: self.poses,
        })
    }
}

/// A student's training step on `copies` walks of each of `rows` requests.
fn train_student(device: &CudaDevice, sizes: NavSizes, (rows, copies, steps): (usize, usize, usize)) -> Result<()> {
    let reading = Reading { positions: true, reference_padding: false };
    let model = NavStudent::new(sizes, reading, &mut stream(1, "dry", 0), &Device::Cpu)?;
    let (grads, table) = (gradients(&model.params), Table::new(sizes.features));
    let (length, n) = (8, rows * copies * steps);
    let (ids, lengths, counted, encodings) =
        (whole(rows * length), whole(rows), whole(rows), numbers(length * sizes.hidden));
    let (poses, actions, targets, weights, entropy, loss) =
        (whole(n), whole(n), whole(n), whole(n), whole(n), numbers(1));
    let mut memory = Memory::new(device);
    let tape = Tape::new(&model.params, &mut memory, Some(&grads));
    let transitions = table.there()?;
    let pass = Pass { tape: &tape, sizes, transitions };
    let requests = Requests {
        rows,
        length,
        ids: DeviceSlice::of(&ids)?,
        lengths: DeviceSlice::of(&lengths)?,
        counted: DeviceSlice::of(&counted)?,
    };
    let course = (DeviceSlice::of(&poses)?, DeviceSlice::of(&actions)?);
    let scores = pass.student(&requests, Some(DeviceSlice::of(&encodings)?), course, steps, copies)?;
    let logits = tape.var(scores.rows, table.actions)?;
    tape.action_scores(scores, transitions, course.0, tape.bias_of(PREDICTOR_OUTPUT)?, logits)?;
    tape.loss(
        logits,
        DeviceSlice::of(&targets)?,
        DeviceSlice::of_bits(&weights)?,
        Some(DeviceSlice::of_bits(&entropy)?),
        DeviceSlice::of(&loss)?,
    )?;
    tape.backward()
}

/// A describer's training step.
fn train_describer(device: &CudaDevice, sizes: NavSizes, (rows, steps, words): (usize, usize, usize)) -> Result<()> {
    let model = NavDescriber::new(sizes, false, &mut stream(2, "dry", 0), &Device::Cpu)?;
    let (grads, table) = (gradients(&model.params), Table::new(sizes.features));
    let n = rows * words;
    let (poses, actions, lengths, last) = (whole(rows * steps), whole(rows * steps), whole(rows), whole(rows));
    let (ids, targets, weights, loss) = (whole(n), whole(n), whole(n), numbers(1));
    let mut memory = Memory::new(device);
    let tape = Tape::new(&model.params, &mut memory, Some(&grads));
    let pass = Pass { tape: &tape, sizes, transitions: table.there()? };
    let paths = Paths {
        rows,
        steps,
        poses: DeviceSlice::of(&poses)?,
        actions: DeviceSlice::of(&actions)?,
        lengths: DeviceSlice::of(&lengths)?,
        last: DeviceSlice::of(&last)?,
    };
    let logits = pass.describer(&paths, DeviceSlice::of(&ids)?, words)?;
    tape.loss(logits, DeviceSlice::of(&targets)?, DeviceSlice::of_bits(&weights)?, None, DeviceSlice::of(&loss)?)?;
    tape.backward()
}

/// Walkers led by a student.
fn lead(device: &CudaDevice, sizes: NavSizes, (rows, steps): (usize, usize)) -> Result<()> {
    let reading = Reading { positions: true, reference_padding: false };
    let model = NavStudent::new(sizes, reading, &mut stream(1, "dry", 0), &Device::Cpu)?;
    let (table, length, n) = (Table::new(sizes.features), 8, rows * steps);
    let (ids, lengths, counted) = (whole(rows * length), whole(rows), whole(rows));
    let (poses, draws, done, actions) = (whole(n + rows), whole(n), whole(rows), whole(n));
    let (mut folded, mut memory) = (Memory::small(device), Memory::new(device));
    let transitions = table.there()?;
    let tape = Tape::new(&model.params, &mut folded, None);
    let leading = Pass { tape: &tape, sizes, transitions }.leading(steps)?;
    tape.flush()?;
    let tape = Tape::new(&model.params, &mut memory, None);
    let requests = Requests {
        rows,
        length,
        ids: DeviceSlice::of(&ids)?,
        lengths: DeviceSlice::of(&lengths)?,
        counted: DeviceSlice::of(&counted)?,
    };
    let walkers = Walkers {
        poses: DeviceSlice::of(&poses)?,
        draws: DeviceSlice::of_bits(&draws)?,
        done: DeviceSlice::of(&done)?,
        actions: DeviceSlice::of(&actions)?,
    };
    Pass { tape: &tape, sizes, transitions }.lead(&leading, &requests, None, &walkers, steps)
}

/// Descriptions written by a describer.
fn propose(
    device: &CudaDevice,
    sizes: NavSizes,
    (rows, steps, copies, words): (usize, usize, usize, usize),
) -> Result<()> {
    let model = NavDescriber::new(sizes, false, &mut stream(2, "dry", 0), &Device::Cpu)?;
    let (table, r, v) = (Table::new(sizes.features), rows * copies, sizes.words);
    let (poses, actions, lengths, last) = (whole(rows * steps), whole(rows * steps), whole(rows), whole(rows));
    let (draws, symbols, previous, never) = (whole(r * words), whole(r * words), whole(r), numbers(v));
    let (mut folded, mut memory) = (Memory::small(device), Memory::new(device));
    let transitions = table.there()?;
    let tape = Tape::new(&model.params, &mut folded, None);
    let never = Var::dense(DeviceSlice::of(&never)?, 1, v)?;
    let wording = Pass { tape: &tape, sizes, transitions }.wording(steps, words, never)?;
    tape.flush()?;
    let paths = Paths {
        rows,
        steps,
        poses: DeviceSlice::of(&poses)?,
        actions: DeviceSlice::of(&actions)?,
        lengths: DeviceSlice::of(&lengths)?,
        last: DeviceSlice::of(&last)?,
    };
    let begun = {
        let tape = Tape::new(&model.params, &mut memory, None);
        let pass = Pass { tape: &tape, sizes, transitions };
        let begun = pass.words(&wording, &paths, copies, words, DeviceSlice::of(&previous)?)?;
        tape.flush()?;
        begun.resident()
    };
    let tape = Tape::again(&model.params, &memory);
    let pass = Pass { tape: &tape, sizes, transitions };
    tape.begin_steps(r)?;
    for t in 0..words {
        let (draws, symbols) = (DeviceSlice::of_bits(&draws)?, DeviceSlice::of(&symbols)?);
        pass.word(&begun, t, draws.part(t * r, r), symbols.part(t * r, r))?;
    }
    tape.end_steps(r)
}

#[test]
fn passes_of_all_sizes_fit_however_they_are_launched() {
    let on = LaunchOptions::default();
    for options in [
        on,
        LaunchOptions { programs: false, ..on },
        LaunchOptions { small_gemm: false, programs: false, ..on },
        LaunchOptions { tf32: false, ..on },
    ] {
        for (hidden, features, words) in [(64, 32, 21), (32, 30, 16), (48, 8, 20)] {
            let sizes = NavSizes { words, hidden, heads: 4, features, direction: 8 };
            let fits = |name: &str, launches: Result<Vec<String>>| {
                let launches = launches.unwrap_or_else(|error| panic!("{name} of {sizes:?}, {options:?}: {error}"));
                assert!(!launches.is_empty(), "{name}");
            };
            for (rows, copies) in [(16, 1), (16, 3), (40, 10)] {
                for steps in [1, 3] {
                    fits("student", dry_run::launches(options, |d| train_student(d, sizes, (rows, copies, steps))));
                }
            }
            for (rows, steps, words) in [(16, 2, 9), (320, 3, 2)] {
                fits("describer", dry_run::launches(options, |d| train_describer(d, sizes, (rows, steps, words))));
            }
            for (rows, steps) in [(16, 4), (256, 2)] {
                fits("lead", dry_run::launches(options, |d| lead(d, sizes, (rows, steps))));
            }
            for (rows, copies) in [(16, 2), (80, 11)] {
                fits("propose", dry_run::launches(options, |d| propose(d, sizes, (rows, 3, copies, 4))));
            }
        }
    }
}

#[test]
fn features_are_scaled_in_one_launch_of_tables_that_fit() {
    let scale = |factors: usize, out: usize| {
        dry_run::launches(LaunchOptions::default(), |device| {
            let halves = |n: usize| Tensor::zeros(n, DType::F16, &Device::Cpu);
            let (table, factors, out) = (halves(5 * 16)?, numbers(factors), halves(out)?);
            scale_features(device, DeviceSlice::of(&table)?, DeviceSlice::of(&factors)?, DeviceSlice::of(&out)?)
        })
    };
    let launches = scale(16, 80).unwrap();
    assert!(launches.len() == 1 && launches[0].starts_with("scale_features"), "{launches:?}");
    for (factors, out) in [(0, 80), (15, 80), (16, 79)] {
        assert!(scale(factors, out).is_err());
    }
}

#[test]
fn programs_take_the_place_of_single_launches() {
    let sizes = NavSizes { words: 21, hidden: 64, heads: 4, features: 32, direction: 8 };
    let launches = |programs: bool| {
        let options = LaunchOptions { programs, ..LaunchOptions::default() };
        dry_run::launches(options, |d| train_student(d, sizes, (16, 1, 3))).unwrap()
    };
    let (gathered, single) = (launches(true), launches(false));
    assert!(gathered.len() < single.len());
    let is_program = |launch: &String| launch.starts_with("few_16") || launch.starts_with("back_16");
    assert!(gathered.iter().any(is_program) && !single.iter().any(is_program));
}
