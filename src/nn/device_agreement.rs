//! Comparing two devices, or two ways of launching on one: models with the same weights make the same steps on the same batches,
//! and then write the same. The families bring their models ([`Found`]); the comparison is here.

use crate::nn::params::Params;
use candle_core::Result;
use serde::Serialize;

/// The losses, weights and outputs of one model on one device, for a comparison.
pub struct Found {
    /// Loss of each step.
    pub losses: Vec<f32>,
    /// The parameters after all steps.
    pub params: Params,
    /// The sequences that the model wrote; `None` for one that did not end.
    pub written: Vec<Option<Vec<u32>>>,
    /// Verdicts of the model on given sequences.
    pub verdicts: Vec<bool>,
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

/// Compares the same model on two devices. Weights whose names end as one of `without_effect` are left out: their gradient is
/// rounding errors alone, and Adam makes a step of those.
///
/// # Errors
/// When a tensor cannot be read.
pub fn compare(model: &str, a: Found, b: Found, without_effect: &[&str]) -> Result<Apart> {
    let apart = |(x, y): (&f32, &f32)| f64::from((x - y).abs() / x.abs().max(0.01));
    let each: Vec<_> = a.losses.iter().zip(&b.losses).map(apart).collect();
    let losses = each.iter().copied().fold(0.0, f64::max);
    let (ours, theirs) = (a.params.snapshot()?, b.params.snapshot()?);
    let mut weights = 0f64;
    let none = |name: &str| without_effect.iter().any(|end| name.ends_with(end));
    for (name, t) in ours.iter().filter(|(name, _)| !none(name)) {
        let apart = (t - &theirs[name])?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
        weights = weights.max(f64::from(apart));
    }
    let differ = a.written.iter().zip(&b.written).filter(|(x, y)| x != y).count();
    let verdicts = a.verdicts.iter().zip(&b.verdicts).filter(|(x, y)| x != y).count();
    Ok(Apart {
        model: model.to_owned(),
        losses,
        first: each.first().copied().unwrap_or_default(),
        weights,
        written: (a.written.len(), differ),
        checked: (a.verdicts.len(), verdicts),
    })
}
