//! Tests of the family REGEX.

mod corpus;
mod engine;
mod golden;
mod grammar;
mod import;
mod letters;
mod prior;
mod tokenise;
mod world;
