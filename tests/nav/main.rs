//! Tests of the family NAV.

mod cli;
mod corpus;
mod graph;
mod house;
mod import;
mod layers;
mod models;
mod observation;
mod pages;
mod training;
mod walk_words;
mod walks;
mod world;
