//! Parts that the two NAV models share: the views of all viewpoints on the device ([`views`]), batches of what was seen and
//! done ([`walk`]), and the blocks both are made of ([`blocks`], [`similarity_memory`]).

pub mod blocks;
pub mod describer;
pub(crate) mod gpu;
pub(crate) mod gpu_inference;
#[cfg(test)]
#[cfg(not(feature = "cuda"))]
mod gpu_tests;
pub(crate) mod gpu_training;
pub mod names;
pub mod rollout;
pub mod similarity_memory;
pub mod student;
pub mod transition_table;
pub mod views;
pub mod walk;

use crate::nn::sizes::{MOST_ROWS, MOST_WIDE, within};
use candle_core::{Result, bail};
use serde::{Deserialize, Serialize};

/// Views of a viewpoint: 12 headings × 3 elevations.
pub const VIEWS: usize = 36;

/// Sizes of a NAV model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NavSizes {
    /// Words of requests and descriptions, the four symbols included.
    pub words: usize,
    /// Hidden size H, also of word embeddings (paper: 256).
    pub hidden: usize,
    /// Heads of attentions (paper: 8).
    pub heads: usize,
    /// Numbers of a view's feature vector F (paper: 2048).
    pub features: usize,
    /// Numbers of a direction's embedding (paper: 128): four equal blocks of sin and cos of heading and elevation.
    pub direction: usize,
}

impl NavSizes {
    /// Refuses sizes that no model can have.
    ///
    /// # Errors
    /// When the hidden size is no multiple of the heads or that of directions none of four, or something is zero.
    pub fn check(&self) -> Result<()> {
        let NavSizes { words, hidden, heads, features, direction } = *self;
        if words < 5 || hidden == 0 || features == 0 {
            bail!("a model needs words, a hidden size and features: {self:?}")
        }
        within("words", words, MOST_ROWS)?;
        within("hidden", hidden, MOST_WIDE)?;
        within("features", features, 1 << 16)?;
        within("direction", direction, MOST_WIDE)?;
        if heads == 0 || !hidden.is_multiple_of(heads) {
            bail!("a hidden size of {hidden} cannot be cut into {heads} heads")
        }
        if direction == 0 || !direction.is_multiple_of(4) {
            bail!("a direction's embedding has four equal blocks; {direction} is no multiple of four")
        }
        Ok(())
    }
}
