//! The task families that come with the program. Each is one room; `registry` lists them.

pub mod nav;
pub mod regex;
