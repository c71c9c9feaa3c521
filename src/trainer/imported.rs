//! The first checkpoint of a run, from weights that another program wrote.

use super::checkpoint::{self, Counters, Header};
use crate::algorithm::{self, AlgorithmState};
use crate::config::run::RunConfig;
use crate::family::Family;
use crate::nn::artifact::ArtifactError;
use crate::nn::weights_file::{Wanted, WeightsFile};
use crate::run::CheckpointRow;
use candle_core::{Device, Tensor};
use std::collections::BTreeMap;
use std::path::Path;

/// Lays the weights of a policy down as the first checkpoint of a run with a configuration. The run validates it when it begins.
///
/// # Errors
/// When the weights do not fit, or the checkpoint cannot be written.
pub fn lay_down<K: Family>(
    family: &K,
    config: &RunConfig,
    (weights, ignored): (&WeightsFile, &[String]),
    folder: &Path,
    device: &Device,
) -> anyhow::Result<CheckpointRow> {
    let world = family.world(config, &|_, _| {})?;
    let new = family.agent(config, &world, device)?;
    let wanted = Wanted::default().with("", &new.agent.params().snapshot()?, &family.policy_names());
    new.agent.params().load(&weights.fit(&wanted, ignored)?)?;
    let algorithm = algorithm::build(world, new.agent, config)?;
    let state = algorithm.state();
    let lambda = algorithm.mixing().map_or(0.0, |mixing| mixing.at(0));
    let header = first_header(config.clone(), lambda, state)?;
    Ok(checkpoint::save(folder, &header, &algorithm.tensors()?, config.schedule.keep)?)
}

/// Lays a checkpoint with other weights of its policy down as the first one of a run: with its settings and vocabularies, and without
/// its history.
///
/// # Errors
/// When the weights do not fit, the checkpoint cannot be read, or the new one cannot be written.
pub fn lay_down_like(
    like: &Path,
    (weights, ignored): (&WeightsFile, &[String]),
    folder: &Path,
) -> anyhow::Result<CheckpointRow> {
    let (header, mut tensors) = checkpoint::load(like)?;
    let reported = algorithm::learner::reported(&tensors);
    let fitting = weights.fit(&Wanted::default().with("", &reported, &Vec::new()), ignored)?;
    for (name, tensor) in &mut tensors {
        let own = ["theta.weights.", "average.weights."].iter().find_map(|prefix| name.strip_prefix(prefix));
        if let Some(new) = own.and_then(|own| fitting.get(own)) {
            *tensor = new.clone();
        } else if name.starts_with("theta.adam.") {
            // The moments are of other weights.
            *tensor = tensor.zeros_like()?;
        }
    }
    let Header { config, lambda, blueprint, state, teacher, .. } = header;
    let first = first_header(config, lambda, AlgorithmState { steps: 0, blueprint, state })?;
    let header = Header { teacher, ..first };
    Ok(checkpoint::save(folder, &header, &tensors, header.config.schedule.keep)?)
}

/// The header of a run's first checkpoint, which has no history and is still to be evaluated.
fn first_header(config: RunConfig, lambda: f64, algorithm: AlgorithmState) -> anyhow::Result<Header> {
    let AlgorithmState { steps, blueprint, state } = algorithm;
    Ok(Header {
        format: checkpoint::FORMAT,
        program: env!("CARGO_PKG_VERSION").into(),
        teacher: config.teacher.mode,
        config,
        counters: Counters { next: Some(0), ..Counters::default() },
        steps,
        lambda,
        blueprint,
        validation: None,
        validated: None,
        best: None,
        seconds: 0.0,
        meters: Default::default(),
        kind_counts: Default::default(),
        told: Default::default(),
        evaluation_due: true,
        written_at: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
        state,
        milestones: Default::default(),
    })
}

/// Whether a file is a checkpoint of a run, and no file of models.
///
/// # Errors
/// When it cannot be read, or is neither.
pub fn is_checkpoint(path: &Path) -> Result<bool, ArtifactError> {
    let (header, _): (serde_json::Value, BTreeMap<String, Tensor>) = crate::nn::artifact::load(path)?;
    Ok(header["counters"].is_object())
}
