//! Learning algorithms: how executions are chosen and how what was said changes the policies.

pub mod adel;
pub mod ask;
pub mod mixing;

use crate::agent::Example;
use crate::task::World;

/// An example that a teacher's description made, with the episode it came from.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(bound = "")]
pub struct Described<W: World> {
    /// Episode number.
    pub episode: u64,
    /// (s1, d̂, ê).
    pub example: Example<W>,
}

// Not derived: that would ask the world itself to be cloned and printed.
impl<W: World> Clone for Described<W> {
    fn clone(&self) -> Self {
        Self { episode: self.episode, example: self.example.clone() }
    }
}

impl<W: World> std::fmt::Debug for Described<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Described").field("episode", &self.episode).field("example", &self.example).finish()
    }
}
