//! Learning algorithms: how executions are chosen and how what was said changes the policies.

pub mod adel;
pub mod mixing;

use crate::agent::Example;
use crate::task::World;

/// An example that a teacher's description made, with the episode it came from.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(bound = "")]
pub struct Described<W: World> {
    /// Episode number.
    pub episode: u64,
    /// (s1, d̂, ê).
    pub example: Example<W>,
}
