//! NAV, vision-language navigation: the agent walks through houses, people say which way it went.
//!
//! [`graph`] is a house as the agent can walk it, [`action`] its poses, views and moves, [`metric`] what a walk is worth,
//! [`marginal`] P_ω. [`corpus`] and [`objects`] hold real houses with the requests of people.
//! `docs/nav-worlds.md` describes the data formats and the generated houses.

pub mod action;
pub mod agent;
mod benchmark;
mod commands;
pub mod corpus;
mod corpus_format;
mod demonstration;
pub mod device_agreement;
mod drawing;
pub mod elsewhere;
pub mod environment;
pub mod family;
pub mod generated;
pub mod graph;
pub mod house;
pub mod houses;
pub mod import;
pub mod marginal;
pub mod metric;
pub mod mirror;
pub mod model;
mod name_dropout;
pub mod ngram_prior;
pub mod objects;
pub mod observation;
mod pages;
pub mod phrasing;
pub mod reference_fixtures;
pub mod scene;
pub mod settings;
pub mod setup;
pub mod tables;
pub mod teacher;
pub mod tokenise;
mod try_answer;
mod votes;
mod walk_words;
pub mod world;

use serde::{Deserialize, Serialize};

/// The start s1 of a NAV episode: where the agent stands and which way it faces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Start {
    /// Name of the house.
    pub scan: String,
    /// Name of the viewpoint.
    pub viewpoint: String,
    /// Heading index, 0 to 11: steps of 30° to the right of +y.
    pub heading: u8,
}

/// A NAV execution ê: the viewpoints that the agent was at, the start first. It then stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Walk {
    /// Names of viewpoints.
    pub viewpoints: Vec<String>,
}
