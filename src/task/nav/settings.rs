//! NAV's own settings, and its presets.

use super::marginal::Marginal;
use crate::config::run::TeacherMode;
use crate::config::run::{
    AlgorithmConfig, PeopleConfig, PoolConfig, PracticeSettings, Preset, RunConfig, Schedule, TeacherConfig,
    TeacherLength,
};
use crate::config::run::{Draw, Pragmatics};
use crate::config::run::{Mixing, PriorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The houses, and what a walk through them has to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSettings {
    /// `builtin` (generated houses), `tiny` (a few of them) or `corpus` (real houses and requests from a folder).
    pub world: String,
    /// Folder of the corpus (`docs/nav-worlds.md`).
    pub path: String,
    /// Seed of generated houses.
    pub seed: u64,
    /// When a walk does what another does.
    pub perf: Perf,
    /// How P_ω draws paths.
    pub marginal: Marginal,
    /// Whether walks that end where they began are described, too.
    #[serde(default)]
    pub unmoved: bool,
}

/// perf(ê, e) ≥ τ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Perf {
    /// SDTW of the two walks is at least τ (the paper's formula).
    #[default]
    Sdtw,
    /// They end within 3 m of each other, whatever τ.
    Success,
}

/// The network of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Hidden size H (paper: 256).
    #[schemars(extend("unit" = "units"))]
    pub hidden: usize,
    /// Heads of attentions (paper: 8).
    #[schemars(extend("unit" = "heads"))]
    pub heads: usize,
    /// Size of a direction's embedding (paper: 128).
    #[schemars(extend("unit" = "units"))]
    pub direction: usize,
    /// Decisions at most (paper: 10).
    #[schemars(extend("unit" = "decisions"))]
    pub horizon: usize,
    /// `semantic` (made of what is seen), or a file of view vectors.
    pub views: String,
    /// Whether the places of words in a request are encoded; else it is a bag of words (paper).
    pub positions: bool,
    /// Rows for words that people bring.
    #[schemars(extend("unit" = "words"))]
    pub reserve: usize,
    /// Means over padding, as in the authors' program.
    pub reference_padding: bool,
    /// Whether descriptions are also learnt from as they would be in the mirror ([`super::mirror`]).
    #[serde(default)]
    pub mirror: bool,
    /// The model that reads descriptions beside the network: `none` or `ngrams` ([`super::ngram_prior`]).
    #[serde(default)]
    pub prior: PriorKind,
    /// Probability that a name of things in semantic views is hidden from a step of learning, in all houses at once; with views of a
    /// file, any of their numbers. The agent then relies less on the things of the houses that it learns in; 0 or more, below 1.
    #[serde(default)]
    pub name_dropout: f64,
    /// Walks that are sampled beside the likeliest one when the agent acts greedily; the walk is made near whose end (3 m) most of
    /// them end; 0 to 32.
    #[serde(default)]
    #[schemars(extend("unit" = "walks"))]
    pub votes: usize,
}

fn preset(
    name: &'static str,
    about: &'static str,
    task: TaskSettings,
    model: ModelSettings,
    algorithm: AlgorithmConfig,
    teacher: (TeacherMode, &str, usize, TeacherLength),
    schedule: Schedule,
) -> Preset {
    let (mode, models, samples, training) = teacher;
    let pragmatics = Pragmatics { samples, tau: 0.5, draw: Draw::Set, requests: true };
    let config = RunConfig {
        family: "nav".into(),
        preset: name.into(),
        seed: 1,
        task: serde_json::to_value(task).unwrap_or_default(),
        model: serde_json::to_value(model).unwrap_or_default(),
        algorithm,
        teacher: TeacherConfig { mode, models: models.into(), pragmatics, training },
        people: PeopleConfig::default(),
        pool: PoolConfig::default(),
        schedule,
    };
    Preset { name, about, config }
}

fn task(world: &str) -> TaskSettings {
    TaskSettings {
        world: world.into(),
        path: if world == "corpus" { "corpus".into() } else { String::new() },
        seed: 1,
        perf: Perf::default(),
        marginal: Marginal::default(),
        unmoved: false,
    }
}

/// The presets, the server's default first.
pub fn presets() -> Vec<Preset> {
    let paper = ModelSettings {
        hidden: 256,
        heads: 8,
        direction: 128,
        horizon: 10,
        views: "semantic".into(),
        positions: false,
        reserve: 0,
        reference_padding: false,
        mirror: false,
        prior: PriorKind::None,
        name_dropout: 0.0,
        votes: 0,
    };
    // NAV's policies start at random: nothing is practised on P_ω beforehand.
    let algorithm = AlgorithmConfig { learning_rate: 1e-4, pretrain_updates: 0, ..AlgorithmConfig::default() };
    let length = |n, batch| TeacherLength {
        executor_updates: n,
        describer_updates: n,
        batch,
        evaluate_every: (n / 20).max(50),
        ..TeacherLength::default()
    };
    let small = ModelSettings { hidden: 64, heads: 4, direction: 32, positions: true, reserve: 256, ..paper.clone() };
    let of_people =
        AlgorithmConfig { learning_rate: 1e-3, replay: 3, replay_fade: 1000, average: 0.99, ..algorithm.clone() };
    let mut all = vec![
        preset(
            "small",
            "walks through generated houses with a small agent that a laptop trains while people type",
            task("builtin"),
            ModelSettings { prior: PriorKind::Ngrams, ..small.clone() },
            AlgorithmConfig {
                catch_up: 8,
                average: 0.9,
                practice: PracticeSettings { most: 40, least: 2, ..PracticeSettings::default() },
                ..of_people.clone()
            },
            (TeacherMode::Human, "shipped", 5, length(3000, 32)),
            Schedule {
                evaluate_every: 50,
                evaluate_tasks: 200,
                point_every: 5,
                checkpoint_every: 50,
                ..Schedule::default()
            },
        ),
        preset(
            "tiny",
            "three generated houses: for tests",
            task("tiny"),
            ModelSettings { hidden: 32, direction: 16, reserve: 32, ..small },
            AlgorithmConfig { learning_rate: 3e-3, ..of_people },
            (TeacherMode::Simulated, "shipped", 3, length(200, 32)),
            Schedule {
                episodes: 32 * 100,
                evaluate_every: 20,
                evaluate_tasks: 0,
                point_every: 5,
                checkpoint_every: 20,
                ..Schedule::default()
            },
        ),
        preset(
            "paper",
            "the paper's sizes and settings on real houses; wants a GPU and a teacher from `iliad teacher train`",
            task("corpus"),
            paper.clone(),
            algorithm.clone(),
            (TeacherMode::Simulated, "none", 5, length(20_000, 32)),
            Schedule {
                // 25,000 iterations of 32.
                episodes: 800_000,
                evaluate_every: 250,
                evaluate_tasks: 0,
                point_every: 50,
                checkpoint_every: 500,
                smooth: 5,
                ..Schedule::default()
            },
        ),
        preset(
            "efficient",
            "real houses with as few descriptions as possible; wants a teacher from `iliad teacher train`",
            task("corpus"),
            ModelSettings { positions: true, mirror: true, ..paper },
            AlgorithmConfig {
                replay: 3,
                replay_fade: 4000,
                mixing: Mixing { anneal_every: 500, anneal_rate: 0.8, ..Mixing::default() },
                average: 0.998,
                word_dropout: 0.1,
                ..algorithm
            },
            (TeacherMode::Simulated, "none", 5, length(20_000, 32)),
            Schedule {
                episodes: 96_000,
                evaluate_every: 100,
                evaluate_tasks: 0,
                point_every: 25,
                checkpoint_every: 500,
                smooth: 5,
                ..Schedule::default()
            },
        ),
    ];
    let mut warm = RunConfig { preset: "warm".into(), ..all[0].config.clone() };
    warm.algorithm.prior_examples = 200;
    all.push(Preset {
        name: "warm",
        about: "the agent of `nav/small`, which has read some requests in phrasings of its own before anybody teaches it",
        config: warm,
    });
    all
}
