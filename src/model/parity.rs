//! Comparing a model with a numeric fixture: weights, inputs, and what PyTorch made of them.
//!
//! A fixture's padding symbol is 1 and ours is 0, so rows 0 and 1 of every vocabulary are exchanged on the way in. A weight
//! that only the fixture has must be one that cannot matter: its gradient there is compared with zero.

mod nav;

use crate::model::regex_describer::{DescriberSizes, RegexDescriber};
use crate::model::regex_student::{Batch, RegexStudent, StudentSizes};
use crate::nn::layers::Grad;
use crate::nn::loss;
use crate::nn::params::Params;
use crate::rng::stream;
use candle_core::{DType, Device, Result, Tensor, bail};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Largest differences between a model and its fixture: absolute, or relative where the expected value exceeds one.
#[derive(Clone, Debug, Serialize)]
pub struct Differences {
    /// Which model the fixture is of.
    pub model: String,
    /// Of the logits.
    pub logits: f64,
    /// Of the loss.
    pub loss: f64,
    /// Of each gradient, by our parameter name (by the fixture's where ours has no such weight).
    pub gradients: Vec<(String, f64)>,
}

impl Differences {
    /// The largest of all.
    pub fn worst(&self) -> f64 {
        self.gradients.iter().map(|(_, d)| *d).fold(self.logits.max(self.loss), f64::max)
    }
}

/// (our name, the fixture's name, whether its rows are vocabulary entries).
type Names = Vec<(String, String, bool)>;

fn names(list: &[(&str, &str, bool)]) -> Names {
    list.iter().map(|(mine, theirs, vocabulary)| ((*mine).to_owned(), (*theirs).to_owned(), *vocabulary)).collect()
}

const STUDENT: &[(&str, &str, bool)] = &[
    ("word_embedding", "src_embedding", true),
    ("request_embedding", "task_embedding", true),
    ("output_embedding", "tgt_embedding", true),
    ("word_encoder", "src_encoder.lstm.lstm", false),
    ("request_encoder", "task_encoder.lstm.lstm", false),
    ("decoder", "decoder.lstm.lstm", false),
    ("word_bridge", "src2task.0", false),
    ("request_bridge", "task2tgt.0", false),
    ("request_attention.query", "task_attention.linear_in_h", false),
    ("request_attention.key", "task_attention.linear_in_v", false),
    ("word_attention.query", "src_attention.linear_in_h", false),
    ("word_attention.key", "src_attention.linear_in_v", false),
    ("predictor.hidden", "predictor.0", false),
    ("predictor.output", "predictor.2", true),
];

const DESCRIBER: &[(&str, &str, bool)] = &[
    ("pair_embedding", "src_embedding", true),
    ("output_embedding", "tgt_embedding", true),
    ("encoder", "encoder.lstm.lstm", false),
    ("decoder", "decoder.lstm.lstm", false),
    ("bridge", "enc2dec.0", false),
    ("attention.query", "attention.linear_in_h", false),
    ("attention.key", "attention.linear_in_v", false),
    ("predictor.hidden", "predictor.0", false),
    ("predictor.output", "predictor.2", true),
];

struct Fixture {
    tensors: HashMap<String, Tensor>,
    names: Names,
}

impl Fixture {
    fn get(&self, name: &str) -> Result<&Tensor> {
        match self.tensors.get(name) {
            Some(t) => Ok(t),
            None => bail!("the fixture lacks `{name}`"),
        }
    }

    /// The fixture's name of our parameter, and whether its rows are vocabulary entries.
    fn theirs(&self, ours: &str) -> Result<(String, bool)> {
        for (mine, theirs, vocabulary) in &self.names {
            let Some(part) = ours.strip_prefix(mine.as_str()).and_then(|r| r.strip_prefix('.')) else { continue };
            let suffix = if theirs.ends_with("lstm.lstm") { format!("{part}_l0") } else { part.to_owned() };
            return Ok((format!("{theirs}.{suffix}"), *vocabulary));
        }
        bail!("no fixture name for `{ours}`")
    }

    /// The fixture's tensor for our parameter, `prefix` being `weight` or `grad`.
    fn param(&self, prefix: &str, ours: &str) -> Result<Tensor> {
        let (theirs, vocabulary) = self.theirs(ours)?;
        let t = self.get(&format!("{prefix}.{theirs}"))?.to_dtype(DType::F32)?;
        if vocabulary { swap(&t, 0) } else { Ok(t) }
    }

    fn rows(&self, weight: &str) -> Result<(usize, usize)> {
        self.get(&format!("weight.{weight}"))?.dims2()
    }

    fn sequences(&self, name: &str) -> Result<Vec<Vec<u32>>> {
        Ok(exchange(self.get(name)?.to_dtype(DType::U32)?.to_vec2()?))
    }

    fn load(&self, params: &Params) -> Result<()> {
        let values = params.iter().map(|(n, _)| Ok((n.to_owned(), self.param("weight", n)?))).collect::<Result<_>>()?;
        params.load(&values)
    }

    /// Logits `[T · B, V]` of ours and gradients against what the fixture holds, whose logits are of a vocabulary.
    fn compare(&self, model: &str, params: &Params, logits: &Tensor, loss: &Tensor) -> Result<Differences> {
        let expected = swap(&self.get("logits")?.to_dtype(DType::F32)?, 2)?;
        self.compare_with(model, params, logits, loss, &expected)
    }

    /// The same where the expected logits are given, `[B, T, V]`.
    fn compare_with(
        &self,
        model: &str,
        params: &Params,
        logits: &Tensor,
        loss: &Tensor,
        expected: &Tensor,
    ) -> Result<Differences> {
        let (b, t, v) = expected.dims3()?;
        if logits.elem_count() != b * t * v {
            bail!("the fixture's logits do not fit its target")
        }
        let ours = logits.reshape((t, b, v))?.transpose(0, 1)?.contiguous()?;
        let grads = loss.backward()?;
        let mut known = HashSet::new();
        let mut gradients = Vec::new();
        for (name, var) in params.iter() {
            let Some(g) = grads.get(var) else { bail!("no gradient for `{name}`") };
            known.insert(format!("grad.{}", self.theirs(name)?.0));
            gradients.push((name.to_owned(), difference(g, &self.param("grad", name)?)?));
        }
        let mut others: Vec<_> =
            self.tensors.iter().filter(|(n, _)| n.starts_with("grad.") && !known.contains(*n)).collect();
        others.sort_by_key(|(name, _)| *name);
        for (name, grad) in others {
            gradients.push((name.trim_start_matches("grad.").to_owned(), difference(&grad.zeros_like()?, grad)?));
        }
        Ok(Differences {
            model: model.into(),
            logits: difference(&ours, expected)?,
            loss: difference(&loss.reshape(1)?, &self.get("loss")?.to_dtype(DType::F32)?.reshape(1)?)?,
            gradients,
        })
    }
}

/// Exchanges entries 0 and 1 along a dimension.
fn swap(t: &Tensor, dim: usize) -> Result<Tensor> {
    let n = t.dim(dim)?;
    let order: Vec<u32> = (0..n as u32).map(|i| if i < 2 { 1 - i } else { i }).collect();
    t.contiguous()?.index_select(&Tensor::new(order, t.device())?, dim)
}

fn exchange(mut rows: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    rows.iter_mut().flatten().filter(|id| **id < 2).for_each(|id| *id = 1 - *id);
    rows
}

fn difference(a: &Tensor, b: &Tensor) -> Result<f64> {
    let flat = |t: &Tensor| t.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
    let (a, b) = (flat(a)?, flat(b)?);
    if a.len() != b.len() {
        bail!("{} values where the fixture has {}", a.len(), b.len())
    }
    // NaN must not hide: it compares as infinitely far.
    Ok(a.iter().zip(&b).map(|(x, y)| (x - y).abs() / y.abs().max(1.0)).fold(0.0, |m, d| {
        if d <= m {
            m
        } else if d.is_nan() {
            f64::INFINITY
        } else {
            d
        }
    }))
}

/// Runs the model that a fixture is of (by its weights' names) and compares.
///
/// # Errors
/// When the file is no fixture of a known model, or a shape does not fit.
pub fn check(path: &Path, device: &Device) -> Result<Differences> {
    let bytes = std::fs::read(path)?;
    let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)?;
    if tensors.contains_key("weight.task_encoder.lstm.lstm.weight_ih_l0") {
        return student(Fixture { tensors, names: names(STUDENT) }, device);
    }
    if tensors.contains_key("weight.encoder.lstm.lstm.weight_ih_l0") {
        return describer(Fixture { tensors, names: names(DESCRIBER) }, device);
    }
    if tensors.contains_key("weight.text_decoder.input_projection.weight") {
        return nav::student(Fixture { tensors, names: nav::student_names() }, heads(&bytes)?, device);
    }
    if tensors.contains_key("weight.encoder.curr_view_attention.linear_in_h.weight") {
        return nav::describer(Fixture { tensors, names: nav::describer_names() }, heads(&bytes)?, device);
    }
    bail!("{} is not a fixture of a model this program knows", path.display())
}

/// The number of heads, which no shape tells.
fn heads(bytes: &[u8]) -> Result<usize> {
    let (_, metadata) = safetensors::SafeTensors::read_metadata(bytes)?;
    let stated = metadata.metadata().as_ref().and_then(|m| m.get("heads")?.parse().ok());
    match stated {
        Some(heads) => Ok(heads),
        None => bail!("the fixture's metadata lacks `heads`, a number"),
    }
}

fn student(fixture: Fixture, device: &Device) -> Result<Differences> {
    let (characters, character_embedding) = fixture.rows("src_embedding.weight")?;
    let (request_words, word_embedding) = fixture.rows("task_embedding.weight")?;
    let (outputs, _) = fixture.rows("tgt_embedding.weight")?;
    let (_, hidden) = fixture.rows("decoder.lstm.lstm.weight_hh_l0")?;
    let sizes = StudentSizes { characters, request_words, outputs, hidden, character_embedding, word_embedding };
    let model = RegexStudent::new(sizes, true, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
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

fn describer(fixture: Fixture, device: &Device) -> Result<Differences> {
    let (characters, character_embedding) = fixture.rows("src_embedding.weight")?;
    let (words, word_embedding) = fixture.rows("tgt_embedding.weight")?;
    let (_, hidden) = fixture.rows("decoder.lstm.lstm.weight_hh_l0")?;
    let sizes = DescriberSizes { characters, words, hidden, character_embedding, word_embedding };
    let model = RegexDescriber::new(sizes, true, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
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
        for file in ["regex_student", "regex_describer", "nav_executor", "nav_describer"] {
            let d = check(&root.join(format!("{file}.safetensors")), &Device::Cpu).unwrap();
            assert!(d.worst() < 1e-5, "{d:?}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        let t = Tensor::new(&[1f32], &Device::Cpu).unwrap();
        candle_core::safetensors::save(&HashMap::from([("a", t)]), &path).unwrap();
        assert!(check(&path, &Device::Cpu).unwrap_err().to_string().contains("not a fixture"));
        assert!(check(&dir.path().join("none"), &Device::Cpu).is_err());
    }
}
