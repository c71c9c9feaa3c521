//! Whether two devices, or the recorded and the plain way of one, do the same: models with the same weights make the same
//! steps on the same batches, and then write the same.

mod nav;

use crate::model::decoder::wrap;
use crate::model::regex_describer::{DescriberSizes, RegexDescriber};
use crate::model::regex_student::{Batch, RegexStudent, StudentSizes};
use crate::nn::adam::Adam;
use crate::nn::params::Params;
use crate::rng::{Stream, stream};
use candle_core::{Device, Result};
use rand::RngExt;
use serde::Serialize;

/// What was found on a device, to be compared.
struct Found {
    losses: Vec<f32>,
    params: Params,
    written: Vec<Option<Vec<u32>>>,
    flags: Vec<bool>,
}

/// How far two ways are apart.
#[derive(Clone, Debug, Serialize)]
pub struct Apart {
    /// Which model.
    pub model: String,
    /// Largest difference of a loss, relative to it, or to 0.01 where it is nearer to zero (REINFORCE).
    pub losses: f64,
    /// That of the first loss, before anything was learnt: what differs later may be Adam's doing.
    pub first: f64,
    /// Largest difference of a weight after all steps.
    pub weights: f64,
    /// Sequences written, and how many of them differ.
    pub written: (usize, usize),
    /// Sequences checked, and how many of the verdicts differ.
    pub checked: (usize, usize),
}

fn sequences(n: usize, symbols: u32, longest: usize, draws: &mut Stream) -> Vec<Vec<u32>> {
    (0..n)
        .map(|_| {
            let length = draws.random_range(1..=longest);
            wrap(&(0..length).map(|_| draws.random_range(4..symbols)).collect::<Vec<_>>())
        })
        .collect()
}

fn students(device: &Device, hidden: usize, steps: u64) -> Result<Found> {
    let sizes = StudentSizes {
        characters: 20,
        request_words: 50,
        outputs: 15,
        hidden,
        character_embedding: 8,
        word_embedding: 16,
    };
    let model = RegexStudent::new(sizes, false, &mut stream(1, "agreement", 0), device)?;
    let mut adam = Adam::new(&model.params, 1e-3)?;
    let mut draws = stream(1, "agreement act", 0);
    let (words, requests) = (sequences(330, 20, 8, &mut draws), sequences(330, 50, 10, &mut draws));
    let (mut losses, mut written, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..steps {
        let mut draws = stream(1, "agreement batch", step);
        let rows = 97;
        let batch = Batch {
            words: sequences(rows, 20, 8, &mut draws),
            requests: sequences(rows, 50, 10, &mut draws),
            outputs: sequences(2 * rows, 15, 6, &mut draws),
        };
        let loss = model.step(&batch, &[(rows, 0.25), (rows, 0.75)], &mut adam)?;
        losses.push(loss.to_scalar::<f32>()?);
        // What is recorded must see the weights as they are now.
        let round = step;
        let greedy = model.act(&words, &requests, 12, false, &mut stream(1, "agreement greedy", round))?;
        written.extend(model.act(&words, &requests, 12, true, &mut stream(1, "agreement sample", round))?);
        // What was written greedily is reproduced, what was not is not.
        let outputs = greedy.iter().map(|ids| wrap(ids.as_deref().unwrap_or(&[5, 6]))).collect();
        let batch = Batch { words: words.clone(), requests: requests.clone(), outputs };
        flags.extend(model.reproduces(&batch)?);
        written.extend(greedy);
    }
    Ok(Found { losses, params: model.params, written, flags })
}

fn describers(device: &Device, hidden: usize, steps: u64) -> Result<Found> {
    let sizes = DescriberSizes { characters: 20, words: 50, hidden, character_embedding: 8, word_embedding: 16 };
    let model = RegexDescriber::new(sizes, false, &mut stream(2, "agreement", 0), device)?;
    let mut adam = Adam::new(&model.params, 1e-3)?;
    let items =
        |n: usize, draws: &mut Stream| -> Vec<Vec<Vec<u32>>> { (0..n).map(|_| sequences(5, 20, 9, draws)).collect() };
    let asked = items(7, &mut stream(2, "agreement act", 0));
    let (mut losses, mut written) = (Vec::new(), Vec::new());
    for step in 0..steps {
        let mut draws = stream(2, "agreement batch", step);
        let (pairs, texts) = (items(218, &mut draws), sequences(218, 50, 9, &mut draws));
        losses.push(model.step(&pairs, &texts, &mut adam)?.to_scalar::<f32>()?);
        let all = model.propose(&asked, 3, 20, &mut stream(2, "agreement sample", step))?;
        written.extend(all.into_iter().flatten());
    }
    Ok(Found { losses, params: model.params, written, flags: Vec::new() })
}

fn compare(model: &str, a: Found, b: Found) -> Result<Apart> {
    let apart = |(x, y): (&f32, &f32)| f64::from((x - y).abs() / x.abs().max(0.01));
    let each: Vec<_> = a.losses.iter().zip(&b.losses).map(apart).collect();
    let losses = each.iter().copied().fold(0.0, f64::max);
    let (ours, theirs) = (a.params.snapshot()?, b.params.snapshot()?);
    let mut weights = 0f64;
    // What has no effect has no gradient but rounding, which Adam makes a step of.
    let none =
        |name: &str| name.ends_with(".key.bias") || (name == "predictor.output.bias" && ours[name].elem_count() == 1);
    for (name, t) in ours.iter().filter(|(name, _)| !none(name)) {
        let apart = (t - &theirs[name])?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
        weights = weights.max(f64::from(apart));
    }
    let differ = a.written.iter().zip(&b.written).filter(|(x, y)| x != y).count();
    let verdicts = a.flags.iter().zip(&b.flags).filter(|(x, y)| x != y).count();
    Ok(Apart {
        model: model.to_owned(),
        losses,
        first: each.first().copied().unwrap_or_default(),
        weights,
        written: (a.written.len(), differ),
        checked: (a.flags.len(), verdicts),
    })
}

/// Compares `device` with the CPU.
///
/// # Errors
/// When a model cannot be made or a step fails.
pub fn agreement(device: &Device, hidden: usize, steps: u64) -> Result<Vec<Apart>> {
    let mut all = vec![
        compare("student", students(&Device::Cpu, hidden, steps)?, students(device, hidden, steps)?)?,
        compare("describer", describers(&Device::Cpu, hidden, steps)?, describers(device, hidden, steps)?)?,
    ];
    all.extend(nav::agreement(device, hidden, 2 * steps)?);
    Ok(all)
}

/// Compares, on a GPU, operations that are gathered into programs with the same ones launched singly.
///
/// # Errors
/// When a model cannot be made or a step fails.
pub fn programs(device: &Device, hidden: usize, steps: u64) -> Result<Vec<Apart>> {
    nav::programs(device, hidden, steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees_with_itself() {
        for apart in agreement(&Device::Cpu, 16, 3).unwrap() {
            assert_eq!((apart.losses, apart.weights, apart.written.1, apart.checked.1), (0.0, 0.0, 0, 0));
        }
    }
}
