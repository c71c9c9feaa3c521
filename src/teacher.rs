//! The simulated teacher: pragmatic inference over the language models that a family brings, and their training. People are the
//! other teachers: they answer through the store at their own pace. [`people`] simulates them, slips and pauses included.

mod noise;
pub mod people;
pub mod simulated;
pub mod training;
