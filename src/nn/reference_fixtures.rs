//! Comparing a model with a numeric fixture: weights, inputs, and what PyTorch made of them.
//!
//! A fixture's padding symbol is 1 and ours is 0, so rows 0 and 1 of every vocabulary are exchanged on the way in. A weight
//! that only the fixture has must be one that cannot matter: its gradient there is compared with zero.

use crate::nn::params::Params;
use crate::nn::tokens::PAD;
use candle_core::{DType, Device, Result, Tensor, bail};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Largest differences between a model and its fixture: absolute, or relative where the expected value exceeds one.
#[derive(Clone, Debug, Serialize)]
pub struct Differences {
    /// Which model the fixture is of.
    pub model: String,
    /// The difference of the logits.
    pub logits: f64,
    /// The difference of the loss.
    pub loss: f64,
    /// The difference of each gradient, by our parameter name (by the fixture's where ours has no such weight).
    pub gradients: Vec<(String, f64)>,
}

impl Differences {
    /// The largest of all.
    pub fn worst(&self) -> f64 {
        self.gradients.iter().map(|(_, d)| *d).fold(self.logits.max(self.loss), f64::max)
    }
}

/// (our name, the fixture's name, whether its rows are vocabulary entries).
pub type Names = Vec<(String, String, bool)>;

pub(crate) fn names(list: &[(&str, &str, bool)]) -> Names {
    list.iter().map(|(mine, theirs, vocabulary)| ((*mine).to_owned(), (*theirs).to_owned(), *vocabulary)).collect()
}

/// A fixture file as it was read: its tensors, and the number of attention heads, which no shape tells.
#[derive(Clone, Debug)]
pub struct FixtureFile {
    tensors: HashMap<String, Tensor>,
    heads: Option<usize>,
}

impl FixtureFile {
    /// Reads a fixture.
    ///
    /// # Errors
    /// When the file is no safetensors file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path)?;
        let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)?;
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes)?;
        let heads = metadata.metadata().as_ref().and_then(|m| m.get("heads")?.parse().ok());
        Ok(Self { tensors, heads })
    }

    /// Whether it has a tensor of this name. The names of the weights tell whose model it is of.
    pub fn has(&self, tensor: &str) -> bool {
        self.tensors.contains_key(tensor)
    }

    /// The number of attention heads.
    ///
    /// # Errors
    /// When the file does not state it.
    pub fn heads(&self) -> Result<usize> {
        match self.heads {
            Some(heads) => Ok(heads),
            None => bail!("the fixture's metadata lacks `heads`, a number"),
        }
    }

    /// The fixture with the names that its weights have in our model.
    pub fn with_names(&self, names: Names) -> Fixture {
        Fixture { tensors: self.tensors.clone(), names }
    }
}

/// A fixture file, and the names of its weights.
pub struct Fixture {
    /// Everything in the file, by name.
    pub tensors: HashMap<String, Tensor>,
    /// Which weight of ours is which of the fixture.
    pub names: Names,
}

impl Fixture {
    pub(crate) fn get(&self, name: &str) -> Result<&Tensor> {
        match self.tensors.get(name) {
            Some(t) => Ok(t),
            None => bail!("the fixture lacks `{name}`"),
        }
    }

    /// The fixture's name of our parameter, and whether its rows are vocabulary entries.
    pub(crate) fn theirs(&self, ours: &str) -> Result<(String, bool)> {
        for (mine, theirs, vocabulary) in &self.names {
            let Some(part) = ours.strip_prefix(mine.as_str()).and_then(|r| r.strip_prefix('.')) else { continue };
            let suffix = if theirs.ends_with("lstm.lstm") { format!("{part}_l0") } else { part.to_owned() };
            return Ok((format!("{theirs}.{suffix}"), *vocabulary));
        }
        bail!("no fixture name for `{ours}`")
    }

    /// The fixture's tensor for our parameter, `prefix` being `weight` or `grad`.
    pub(crate) fn param(&self, prefix: &str, ours: &str) -> Result<Tensor> {
        let (theirs, vocabulary) = self.theirs(ours)?;
        let t = self.get(&format!("{prefix}.{theirs}"))?.to_dtype(DType::F32)?;
        if vocabulary { swap(&t, 0) } else { Ok(t) }
    }

    pub(crate) fn rows(&self, weight: &str) -> Result<(usize, usize)> {
        self.get(&format!("weight.{weight}"))?.dims2()
    }

    pub(crate) fn sequences(&self, name: &str) -> Result<Vec<Vec<u32>>> {
        Ok(exchange(self.get(name)?.to_dtype(DType::U32)?.to_vec2()?))
    }

    pub(crate) fn load(&self, params: &Params) -> Result<()> {
        let values = params.iter().map(|(n, _)| Ok((n.to_owned(), self.param("weight", n)?))).collect::<Result<_>>()?;
        params.load(&values)
    }

    /// Logits `[T · B, V]` of ours and gradients against what the fixture holds, whose logits are of a vocabulary.
    pub(crate) fn compare(&self, model: &str, params: &Params, logits: &Tensor, loss: &Tensor) -> Result<Differences> {
        let expected = swap(&self.get("logits")?.to_dtype(DType::F32)?, 2)?;
        self.compare_with(model, params, logits, loss, &expected)
    }

    /// Compares where the expected logits are given, `[B, T, V]`.
    pub(crate) fn compare_with(
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

/// Rows of a batch, each computed alone and without padding by the model that agrees with the fixture: the logits of each, `[T, V]`,
/// and the loss of all together.
pub(crate) struct RowsAlone<'a> {
    pub(crate) params: &'a Params,
    pub(crate) logits: Vec<Tensor>,
    pub(crate) loss: Tensor,
}

impl RowsAlone<'_> {
    /// Compares a whole batch, whose encoders stop where a row ends, with its rows alone: logits `[T · B, V]` and loss of a model
    /// with `params`.
    pub(crate) fn compare(&self, model: &str, params: &Params, logits: &Tensor, loss: &Tensor) -> Result<Differences> {
        let rows = self.logits.len();
        let (t, v) = (logits.dim(0)? / rows.max(1), logits.dim(1)?);
        let ours = logits.reshape((t, rows, v))?.transpose(0, 1)?.contiguous()?;
        let expected = Tensor::stack(&self.logits, 0)?;
        let (grads, theirs) = (loss.backward()?, self.loss.backward()?);
        let mut gradients = Vec::new();
        for (name, var) in params.iter() {
            let other = self.params.iter().find(|(n, _)| *n == name).map(|(_, var)| var);
            let (Some(g), Some(e)) = (grads.get(var), other.and_then(|var| theirs.get(var))) else {
                bail!("no gradient for `{name}`")
            };
            gradients.push((name.to_owned(), difference(g, e)?));
        }
        Ok(Differences {
            model: format!("{model} without padding"),
            logits: difference(&ours, &expected)?,
            loss: difference(&loss.reshape(1)?, &self.loss.reshape(1)?)?,
            gradients,
        })
    }
}

/// A row of every step's values of a time-major batch.
pub(crate) fn of_row<T: Copy>(values: &[T], rows: usize, row: usize) -> Vec<T> {
    values.iter().skip(row).step_by(rows).copied().collect()
}

/// A sequence without the padding at its end.
pub(crate) fn without_padding(sequence: &[u32]) -> Vec<u32> {
    let real = sequence.iter().rposition(|id| *id != PAD).map_or(1, |last| last + 1);
    sequence[..real.min(sequence.len())].to_vec()
}

/// Exchanges entries 0 and 1 along a dimension.
pub(crate) fn swap(t: &Tensor, dim: usize) -> Result<Tensor> {
    let n = t.dim(dim)?;
    let order: Vec<u32> = (0..n as u32).map(|i| if i < 2 { 1 - i } else { i }).collect();
    t.contiguous()?.index_select(&Tensor::new(order, t.device())?, dim)
}

pub(crate) fn exchange(mut rows: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    rows.iter_mut().flatten().filter(|id| **id < 2).for_each(|id| *id = 1 - *id);
    rows
}

pub(crate) fn difference(a: &Tensor, b: &Tensor) -> Result<f64> {
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
