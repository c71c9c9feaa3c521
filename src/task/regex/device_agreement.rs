//! The device agreement of the REGEX models: whether two devices, or two ways of launching on one, do the same. Models with the same weights make the same
//! steps on the same batches, and then write the same.

use crate::nn::adam::Adam;
use crate::nn::decoder::wrap;
use crate::nn::device_agreement::{Apart, Found, compare};
use crate::rng::{Stream, stream};
use crate::task::regex::model::describer::{DescriberSizes, RegexDescriber};
use crate::task::regex::model::student::{Batch, RegexStudent, StudentSizes};
use candle_core::{Device, Result};
use rand::RngExt;

/// The bias of keys adds the same to all scores of a query.
const KEY_BIAS: &str = ".key.bias";

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
    let (mut losses, mut written, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
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
        // A captured graph must see the weights as they are now.
        let round = step;
        let greedy = model.act(&words, &requests, 12, false, &mut stream(1, "agreement greedy", round))?;
        written.extend(model.act(&words, &requests, 12, true, &mut stream(1, "agreement sample", round))?);
        // A greedy output is reproduced; any other is not.
        let outputs = greedy.iter().map(|ids| wrap(ids.as_deref().unwrap_or(&[5, 6]))).collect();
        let batch = Batch { words: words.clone(), requests: requests.clone(), outputs };
        verdicts.extend(model.reproduces(&batch)?);
        written.extend(greedy);
    }
    Ok(Found { losses, params: model.params, written, verdicts })
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
    Ok(Found { losses, params: model.params, written, verdicts: Vec::new() })
}

/// Compares the REGEX models on `device` with the same ones on the CPU.
///
/// # Errors
/// When a model cannot be made or a step fails.
pub fn agreement(device: &Device, hidden: usize, steps: u64) -> Result<Vec<Apart>> {
    Ok(vec![
        compare("student", students(&Device::Cpu, hidden, steps)?, students(device, hidden, steps)?, &[KEY_BIAS])?,
        compare(
            "describer",
            describers(&Device::Cpu, hidden, steps)?,
            describers(device, hidden, steps)?,
            &[KEY_BIAS],
        )?,
    ])
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
