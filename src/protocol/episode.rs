//! Episodes of the loop: an executed task, the description that a teacher gave of it, and the example that both make.

use super::{Example, Task, World};
use serde::{Deserialize, Serialize};

/// An episode that has been executed: number, task and ê.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Episode<W: World> {
    /// Running number in the run.
    pub number: u64,
    /// The task q.
    pub task: Task<W::Start>,
    /// The execution ê.
    pub execution: W::Execution,
}

// Not derived: that would ask the world itself to be cloned and printed.
impl<W: World> Clone for Episode<W> {
    fn clone(&self) -> Self {
        Self { number: self.number, task: self.task.clone(), execution: self.execution.clone() }
    }
}

impl<W: World> std::fmt::Debug for Episode<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Episode")
            .field("number", &self.number)
            .field("task", &self.task)
            .field("execution", &self.execution)
            .finish()
    }
}

/// A teacher's description of an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The description d̂; empty: no description, no update.
    pub description: String,
    /// Whether the description is a human request of the task, because perf(ê, e*) ≥ τ.
    pub gold: bool,
    /// Candidates considered, with whether each qualified (simulated teacher).
    pub candidates: Vec<(String, bool)>,
}

/// An example that a teacher made, with the episode it came from. A description d̂ makes (s1, d̂, ê). A demonstration makes the
/// request and the execution that a person showed for it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct DescribedEpisode<W: World> {
    /// Episode number.
    pub episode: u64,
    /// (s1, d̂, ê); of a demonstration (s1, d*, the execution that was shown).
    pub example: Example<W>,
}

// Not derived: that would ask the world itself to be cloned and printed.
impl<W: World> Clone for DescribedEpisode<W> {
    fn clone(&self) -> Self {
        Self { episode: self.episode, example: self.example.clone() }
    }
}

impl<W: World> std::fmt::Debug for DescribedEpisode<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DescribedEpisode").field("episode", &self.episode).field("example", &self.example).finish()
    }
}

/// An execution that a person has rated, with the episode it came from.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct RatedEpisode<W: World> {
    /// Episode number.
    pub episode: u64,
    /// (s1, d*, ê): the words are the request, the execution is the agent's.
    pub example: Example<W>,
    /// How well it did what was asked, from 0 to 1.
    pub rating: f64,
}

// Not derived: that would ask the world itself to be cloned and printed.
impl<W: World> Clone for RatedEpisode<W> {
    fn clone(&self) -> Self {
        Self { episode: self.episode, example: self.example.clone(), rating: self.rating }
    }
}

impl<W: World> std::fmt::Debug for RatedEpisode<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RatedEpisode")
            .field("episode", &self.episode)
            .field("example", &self.example)
            .field("rating", &self.rating)
            .finish()
    }
}
