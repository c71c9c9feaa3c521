//! The first checkpoint of a run, from weights that another program wrote.

use super::checkpoint::{self, Counters, Header};
use crate::algorithm;
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
    let world = family.world(config)?;
    let new = family.agent(config, &world, device)?;
    let wanted = Wanted::default().with("", &new.agent.params().snapshot()?, &family.policy_names());
    new.agent.params().load(&weights.fit(&wanted, ignored)?)?;
    let algorithm = algorithm::build(world, new.agent, config)?;
    let state = algorithm.state();
    let header = Header {
        format: checkpoint::FORMAT,
        program: env!("CARGO_PKG_VERSION").into(),
        config: config.clone(),
        counters: Counters { next: Some(0), ..Counters::default() },
        steps: state.steps,
        lambda: algorithm.mixing().map_or(0.0, |mixing| mixing.at(0)),
        blueprint: state.blueprint,
        teacher: config.teacher.mode,
        validation: None,
        validated: None,
        best: None,
        seconds: 0.0,
        meters: Default::default(),
        kind_counts: Default::default(),
        told: Default::default(),
        evaluation_due: true,
        written_at: now()?,
        state: state.state,
        milestones: Default::default(),
    };
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
    let header = Header {
        counters: Counters { next: Some(0), ..Counters::default() },
        steps: 0,
        validation: None,
        validated: None,
        best: None,
        seconds: 0.0,
        meters: Default::default(),
        kind_counts: Default::default(),
        told: Default::default(),
        evaluation_due: true,
        written_at: now()?,
        milestones: Default::default(),
        ..header
    };
    Ok(checkpoint::save(folder, &header, &tensors, header.config.schedule.keep)?)
}

fn now() -> anyhow::Result<String> {
    Ok(time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?)
}

/// Whether a file is a checkpoint of a run, and no file of models.
///
/// # Errors
/// When it cannot be read, or is neither.
pub fn is_checkpoint(path: &Path) -> Result<bool, ArtifactError> {
    let (header, _): (serde_json::Value, BTreeMap<String, Tensor>) = crate::nn::artifact::load(path)?;
    Ok(header["counters"].is_object())
}
