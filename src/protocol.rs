//! The nouns and traits of the paper's loop. Algorithms, teachers and the trainer know task families by these alone, and a family
//! implements them. The module imports random streams and nothing else of the crate.
//!
//! | paper | here |
//! |---|---|
//! | task q = (d*, s1) | [`Task`] |
//! | execution ê | [`World::Execution`] |
//! | episode, description d̂ | [`Episode`], [`Description`] |
//! | approximate marginal P_ω(e given s1) | [`World::sample_marginal`] |
//! | policies π_θ, π_β | [`Agent`] |
//! | describer and executor of the simulated teacher | [`Teacher`] |
//! | one gradient step | [`Lesson`] |
//! | success rate | [`evaluation`] |
//! | what people give: descriptions, demonstrations, ratings | [`Medium`] |

mod agent;
mod episode;
pub mod evaluation;
mod medium;
mod parameters;
mod teacher;
mod words;
mod world;

pub use agent::{Agent, Augmentation, Decoding, Example, Lesson, Prior};
pub use episode::{DescribedEpisode, Description, Episode, RatedEpisode};
pub use evaluation::{Evaluation, GroupSuccess, Rate};
pub use medium::Medium;
pub use parameters::{Optimizer, Parameters};
pub use teacher::Teacher;
pub use words::{LearnedWords, ReserveRows, Utterance};
pub use world::{Grouping, Score, Split, Task, World};
