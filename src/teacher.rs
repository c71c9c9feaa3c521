//! The simulated teacher: pragmatic inference over the language models that a family brings, and their training. People are the
//! other teachers: they answer through the store at their own pace.

pub mod simulated;
pub mod training;
