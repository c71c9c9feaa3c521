//! The types in which a family is asked to take up weights that another program wrote.

use crate::config::run::RunConfig;
use crate::nn::artifact::Precision;
use crate::nn::weights_file::WeightsFile;
use std::path::Path;

/// The models of which a file can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// A policy that `model.pretrained` names.
    Policy,
    /// The models of a simulated teacher that `teacher.models` names.
    Teacher,
}

/// Weights that become a file of models.
#[derive(Clone, Copy, Debug)]
pub struct ModelImport<'a> {
    /// World and sizes.
    pub config: &'a RunConfig,
    /// The file that is written.
    pub kind: ModelKind,
    /// The weights.
    pub weights: &'a WeightsFile,
    /// Tensors of the file that are passed over.
    pub ignored: &'a [String],
    /// The origin of the weights, for the file's header.
    pub made: &'a serde_json::Value,
    /// The file to write the models to.
    pub output: &'a Path,
    /// The precision in which they are stored.
    pub precision: Precision,
}
