//! The reference fixtures of the REGEX models: the names of their weights, and the models made from a fixture's shapes.

use crate::nn::decoder::names::*;
use crate::nn::layers::Grad;
use crate::nn::loss;
use crate::nn::reference_fixtures::{
    Differences, Fixture, FixtureFile, Names, RowsAlone, exchange, names, of_row, without_padding,
};
use crate::rng::stream;
use crate::task::regex::model::describer::{DescriberSizes, RegexDescriber};
use crate::task::regex::model::names::*;
use crate::task::regex::model::student::{Batch, RegexStudent, StudentSizes};
use candle_core::{DType, Device, Result, Tensor};

const STUDENT: &[(&str, &str, bool)] = &[
    (WORD_EMBEDDING, "src_embedding", true),
    (REQUEST_EMBEDDING, "task_embedding", true),
    (OUTPUT_EMBEDDING, "tgt_embedding", true),
    (WORD_ENCODER, "src_encoder.lstm.lstm", false),
    (REQUEST_ENCODER, "task_encoder.lstm.lstm", false),
    (DECODER, "decoder.lstm.lstm", false),
    (WORD_BRIDGE, "src2task.0", false),
    (REQUEST_BRIDGE, "task2tgt.0", false),
    ("request_attention.query", "task_attention.linear_in_h", false),
    ("request_attention.key", "task_attention.linear_in_v", false),
    ("word_attention.query", "src_attention.linear_in_h", false),
    ("word_attention.key", "src_attention.linear_in_v", false),
    (PREDICTOR_HIDDEN, "predictor.0", false),
    (PREDICTOR_OUTPUT, "predictor.2", true),
];

const DESCRIBER: &[(&str, &str, bool)] = &[
    (PAIR_EMBEDDING, "src_embedding", true),
    (OUTPUT_EMBEDDING, "tgt_embedding", true),
    (ENCODER, "encoder.lstm.lstm", false),
    (DECODER, "decoder.lstm.lstm", false),
    (BRIDGE, "enc2dec.0", false),
    ("attention.query", "attention.linear_in_h", false),
    ("attention.key", "attention.linear_in_v", false),
    (PREDICTOR_HIDDEN, "predictor.0", false),
    (PREDICTOR_OUTPUT, "predictor.2", true),
];

/// The names of the layers of the student and executor in the program of the paper's authors, beside ours.
pub(super) fn student_names() -> Names {
    names(STUDENT)
}

/// The names of the describer's layers there, beside ours.
pub(super) fn describer_names() -> Names {
    names(DESCRIBER)
}

/// Compares a REGEX model with the file's; `None` where the file is of another family's model.
///
/// # Errors
/// When a shape does not fit.
pub fn check(file: &FixtureFile, device: &Device) -> Option<Result<Differences>> {
    if file.has("weight.task_encoder.lstm.lstm.weight_ih_l0") {
        return Some(student(file.with_names(names(STUDENT)), device));
    }
    if file.has("weight.encoder.lstm.lstm.weight_ih_l0") {
        return Some(describer(file.with_names(names(DESCRIBER)), device));
    }
    None
}

/// Compares a REGEX model that passes over padding with the rows of the file, each computed alone by the model that [`check`] is
/// about; `None` where the file is of another family's model.
///
/// # Errors
/// When a shape does not fit.
pub fn check_without_padding(file: &FixtureFile, device: &Device) -> Option<Result<Differences>> {
    if file.has("weight.task_encoder.lstm.lstm.weight_ih_l0") {
        return Some(student_without_padding(&file.with_names(names(STUDENT)), device));
    }
    if file.has("weight.encoder.lstm.lstm.weight_ih_l0") {
        return Some(describer_without_padding(&file.with_names(names(DESCRIBER)), device));
    }
    None
}

fn student_of(fixture: &Fixture, reference_padding: bool, device: &Device) -> Result<RegexStudent> {
    let (characters, character_embedding) = fixture.rows("src_embedding.weight")?;
    let (request_words, word_embedding) = fixture.rows("task_embedding.weight")?;
    let (outputs, _) = fixture.rows("tgt_embedding.weight")?;
    let (_, hidden) = fixture.rows("decoder.lstm.lstm.weight_hh_l0")?;
    let sizes = StudentSizes { characters, request_words, outputs, hidden, character_embedding, word_embedding };
    let model = RegexStudent::new(sizes, reference_padding, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
    Ok(model)
}

fn student(fixture: Fixture, device: &Device) -> Result<Differences> {
    let model = student_of(&fixture, true, device)?;
    let batch = Batch {
        words: fixture.sequences("word")?,
        requests: fixture.sequences("request")?,
        outputs: fixture.sequences("target")?,
    };
    let (logits, targets) = model.logits(&batch, Grad::On)?;
    let weights = loss::target_weights(&targets, batch.words.len(), &[(batch.words.len(), 1.0)]);
    let loss = loss::weighted_nll(&logits, &targets, &weights)?;
    fixture.compare("regex student / executor", &model.params, &logits, &loss)
}

fn student_without_padding(fixture: &Fixture, device: &Device) -> Result<Differences> {
    let (model, reference) = (student_of(fixture, false, device)?, student_of(fixture, true, device)?);
    let trimmed = |name: &str| -> Result<Vec<Vec<u32>>> {
        Ok(fixture.sequences(name)?.iter().map(|sequence| without_padding(sequence)).collect())
    };
    let batch = Batch { words: trimmed("word")?, requests: trimmed("request")?, outputs: fixture.sequences("target")? };
    let rows = batch.words.len();
    let (logits, targets) = model.logits(&batch, Grad::On)?;
    let weights = loss::target_weights(&targets, rows, &[(rows, 1.0)]);
    let (mut alone, mut losses) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let one = |sequences: &[Vec<u32>]| vec![sequences[row].clone()];
        let single = Batch { words: one(&batch.words), requests: one(&batch.requests), outputs: one(&batch.outputs) };
        let (logits, targets) = reference.logits(&single, Grad::On)?;
        losses.push(loss::weighted_nll(&logits, &targets, &of_row(&weights, rows, row))?);
        alone.push(logits);
    }
    let loss = loss::weighted_nll(&logits, &targets, &weights)?;
    let alone = RowsAlone { params: &reference.params, logits: alone, loss: Tensor::stack(&losses, 0)?.sum_all()? };
    alone.compare("regex student / executor", &model.params, &logits, &loss)
}

fn describer_of(fixture: &Fixture, reference_padding: bool, device: &Device) -> Result<RegexDescriber> {
    let (characters, character_embedding) = fixture.rows("src_embedding.weight")?;
    let (words, word_embedding) = fixture.rows("tgt_embedding.weight")?;
    let (_, hidden) = fixture.rows("decoder.lstm.lstm.weight_hh_l0")?;
    let sizes = DescriberSizes { characters, words, hidden, character_embedding, word_embedding };
    let model = RegexDescriber::new(sizes, reference_padding, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
    Ok(model)
}

/// The means over an item's pairs count the padding of the shorter ones, which no item can be without. So each item has its first
/// pair only.
fn describer_without_padding(fixture: &Fixture, device: &Device) -> Result<Differences> {
    let (model, reference) = (describer_of(fixture, false, device)?, describer_of(fixture, true, device)?);
    let pairs: Vec<Vec<Vec<u32>>> = fixture.get("word_pairs")?.to_dtype(DType::U32)?.to_vec3()?;
    let pairs = pairs.into_iter().map(exchange);
    let items: Vec<Vec<Vec<u32>>> = pairs.map(|item| vec![without_padding(&item[0])]).collect();
    let (rows, target) = (items.len(), fixture.sequences("target")?);
    let (logits, targets) = model.logits(&items, &target, Grad::On)?;
    let weights = loss::target_weights(&targets, rows, &[(rows, 1.0)]);
    let (mut alone, mut losses) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let (logits, targets) = reference.logits(&items[row..=row], &target[row..=row], Grad::On)?;
        losses.push(loss::weighted_nll(&logits, &targets, &of_row(&weights, rows, row))?);
        alone.push(logits);
    }
    let loss = loss::weighted_nll(&logits, &targets, &weights)?;
    let alone = RowsAlone { params: &reference.params, logits: alone, loss: Tensor::stack(&losses, 0)?.sum_all()? };
    alone.compare("regex describer", &model.params, &logits, &loss)
}

fn describer(fixture: Fixture, device: &Device) -> Result<Differences> {
    let model = describer_of(&fixture, true, device)?;
    let pairs: Vec<Vec<Vec<u32>>> = fixture.get("word_pairs")?.to_dtype(DType::U32)?.to_vec3()?;
    let pairs: Vec<_> = pairs.into_iter().map(exchange).collect();
    let target = fixture.sequences("target")?;
    let (logits, targets) = model.logits(&pairs, &target, Grad::On)?;
    let weights = loss::target_weights(&targets, pairs.len(), &[(pairs.len(), 1.0)]);
    let loss = loss::weighted_nll(&logits, &targets, &weights)?;
    fixture.compare("regex describer", &model.params, &logits, &loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_agree_with_pytorch() {
        let Some(root) = crate::testing::shared("parity") else { return };
        for file in ["regex_student", "regex_describer"] {
            let file = FixtureFile::read(&root.join(format!("{file}.safetensors"))).unwrap();
            let d = check(&file, &Device::Cpu).unwrap().unwrap();
            assert!(d.worst() < 1e-5, "{d:?}");
            let d = check_without_padding(&file, &Device::Cpu).unwrap().unwrap();
            assert!(d.worst() < 1e-5, "{d:?}");
        }
    }
}
