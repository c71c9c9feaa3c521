//! Dry runs of the REGEX models' passes on a GPU, without one: all operands fit what is made of them, however work is launched.

use crate::nn::cuda::adam;
use crate::nn::cuda::backend::dry_run;
use crate::nn::cuda::decode::{Rollout, Shape, Source, Weights, matches};
use crate::nn::cuda::tape::{Memory, Tape};
use crate::nn::device::LaunchOptions;
use crate::nn::lstm::Lengths;
use crate::nn::params::Params;
use crate::nn::tokens::Tokens;
use crate::rng::stream;
use crate::task::regex::model::describer::{DescriberSizes, RegexDescriber};
use crate::task::regex::model::gpu::Targets;
use crate::task::regex::model::gpu_training;
use crate::task::regex::model::student::{RegexStudent, StudentSizes};
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

fn tokens(rows: usize, steps: usize, width: usize) -> Tokens {
    let lengths = || Lengths::there(whole(rows));
    let ids = whole(rows * steps * width);
    Tokens { ids, steps, rows, width, count_padding: width == 1, lengths: lengths(), real: lengths(), bias: None }
}

fn targets(rows: usize, steps: usize, bonus: bool) -> Targets {
    let all = || whole(rows * steps);
    Targets { inputs: tokens(rows, steps, 1), targets: all(), weights: all(), entropy: bonus.then(all) }
}

fn train_student(device: &CudaDevice, hidden: usize, (rows, copies, bonus): (usize, usize, bool)) -> Result<()> {
    let sizes = StudentSizes {
        characters: 10,
        request_words: 17,
        outputs: 11,
        hidden,
        character_embedding: 12,
        word_embedding: 20,
    };
    let model = RegexStudent::new(sizes, false, &mut stream(1, "dry", 0), &Device::Cpu)?;
    let (grads, loss) = (gradients(&model.params), numbers(1));
    let (words, requests, targets) = (tokens(rows, 5, 1), tokens(rows, 1, 1), targets(rows * copies, 3, bonus));
    let mut memory = Memory::new(device);
    let tape = Tape::new(&model.params, &mut memory, Some(&grads));
    gpu_training::student(&tape, &words, &requests, &targets, &loss)
}

fn train_describer(device: &CudaDevice, hidden: usize, rows: usize) -> Result<()> {
    let sizes = DescriberSizes { characters: 10, words: 17, hidden, character_embedding: 12, word_embedding: 20 };
    let model = RegexDescriber::new(sizes, false, &mut stream(1, "dry", 0), &Device::Cpu)?;
    let (grads, loss, pairs, targets) =
        (gradients(&model.params), numbers(1), tokens(rows, 6, 3), targets(rows, 4, false));
    let mut memory = Memory::new(device);
    let tape = Tape::new(&model.params, &mut memory, Some(&grads));
    gpu_training::describer(&tape, &pairs, &targets, &loss)
}

fn decode(h: usize, (rows, group): (usize, usize)) -> Result<()> {
    let (v, s, d, items) = (11, 5, h, rows / group);
    let shape = Shape { rows, group, hidden: h, vocabulary: v, memories: vec![s, s + 1] };
    let rollout = Rollout::new(shape, &Device::Cpu)?;
    let zeros = |dims: &[usize]| Tensor::zeros(dims, DType::F32, &Device::Cpu);
    let (query, bias) = (zeros(&[d, h])?, zeros(&[d])?);
    let real = Lengths::there(whole(items));
    let all =
        (0..2).map(|i| Ok((zeros(&[s + i, items, d])?, zeros(&[s + i, items, h])?))).collect::<Result<Vec<_>>>()?;
    let sources: Vec<_> =
        all.iter().map(|(keys, values)| Source { keys, values, real: &real, query: (&query, &bias) }).collect();
    rollout.begin(&zeros(&[2, items, h])?, &zeros(&[v, 4 * h])?, &sources, 2)?;
    let (w_hh, hidden, output) = (zeros(&[4 * h, h])?, zeros(&[h, 3 * h])?, zeros(&[v, h])?);
    let (hb, ob) = (zeros(&[h])?, zeros(&[v])?);
    rollout.steps(&Weights { w_hh: &w_hh, hidden: (&hidden, &hb), output: (&output, &ob) })?;
    matches(&zeros(&[rows * 3, v])?, &whole(rows * 3), &whole(rows))
}

fn optimise(n: usize) -> Result<()> {
    let all: Vec<_> = (0..n).map(|i| [(); 4].map(|()| numbers(i + 1))).collect();
    let clock = numbers(3);
    adam::tick(&clock, 0.9, 0.999)?;
    let parts: Vec<_> = all.iter().map(|[p, m, v, g]| (p, m, v, g)).collect();
    adam::step(&parts, &clock, [1e-3, 0.9, 0.999, 1e-8])?;
    let pairs: Vec<_> = all.iter().map(|[p, m, _, _]| (p, m)).collect();
    adam::average(&pairs, 0.99)
}

#[test]
fn passes_of_all_sizes_fit_however_they_are_launched() {
    let on = LaunchOptions::default();
    for options in [on, LaunchOptions { whole_recurrences: false, ..on }, LaunchOptions { tf32: false, ..on }] {
        for hidden in [64, 48, 512] {
            let fits = |name: &str, launches: Result<Vec<String>>| {
                let launches = launches.unwrap_or_else(|error| panic!("{name} of {hidden}, {options:?}: {error}"));
                assert!(!launches.is_empty(), "{name}");
            };
            for (rows, copies, bonus) in [(16, 1, false), (40, 3, true)] {
                fits("student", dry_run::launches(options, |d| train_student(d, hidden, (rows, copies, bonus))));
            }
            for rows in [16, 80] {
                fits("describer", dry_run::launches(options, |d| train_describer(d, hidden, rows)));
            }
            fits("decode", dry_run::launches(options, |_| decode(hidden, (48, 3))));
        }
    }
    assert_eq!(dry_run::launches(on, |_| optimise(50)).unwrap().len(), 1 + 2 + 2);
}
