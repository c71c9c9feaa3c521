//! What the two NAV models share: the views of all viewpoints on the device ([`views`]), batches of what was seen and done
//! ([`walk`]), and the blocks both are made of ([`blocks`], [`recall`]).

pub mod blocks;
pub mod recall;
pub mod views;
pub mod walk;

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
