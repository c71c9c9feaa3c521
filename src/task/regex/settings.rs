//! Settings of REGEX runs, their presets, and the models that come with the program.

use super::letters::Letters;
use super::marginal::MarginalDraw;
use crate::config::run::TeacherMode;
use crate::config::run::{
    AlgorithmConfig, PeopleConfig, PoolConfig, PracticeSettings, Preset, RunConfig, Schedule, TeacherConfig,
    TeacherLength,
};
use crate::config::run::{Draw, Pragmatics};
use crate::config::run::{Mixing, PriorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The words that are edited, and the kinds of edits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSettings {
    /// `builtin`, `tiny` or `corpus`.
    pub world: String,
    /// Folder of the corpus, for `corpus`.
    pub path: String,
    /// Seed of the built-in worlds' tasks.
    pub seed: u64,
    /// Further words of the dictionary that each description is learnt from on.
    #[serde(default)]
    #[schemars(extend("unit" = "words"))]
    pub more_words: usize,
    /// How P_ω of a corpus draws its expressions: each with the same probability (`uniform`, paper), or first a form, then one of its
    /// expressions (`by-form`).
    #[serde(default)]
    pub marginal: MarginalDraw,
}

/// The networks of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Hidden size H (paper: 512).
    #[schemars(extend("unit" = "units"))]
    pub hidden: usize,
    /// Request-word embedding (paper: 128).
    #[schemars(extend("unit" = "units"))]
    pub word_embedding: usize,
    /// Character embedding (paper: 32).
    #[schemars(extend("unit" = "units"))]
    pub character_embedding: usize,
    /// Longest output, in symbols (paper: 40).
    #[schemars(extend("unit" = "symbols"))]
    pub horizon: usize,
    /// Rows kept for words that people bring.
    #[schemars(extend("unit" = "words"))]
    pub reserve: usize,
    /// Encoders run over padding, as in the authors' program.
    pub reference_padding: bool,
    /// Letters as they are (`plain`), those that a request names as `slots`, or `renamed` at random while learning.
    #[serde(default)]
    pub letters: Letters,
    /// The model that reads descriptions beside the network: `none` or `ngrams` (`task/regex/ngram_prior.rs`).
    #[serde(default)]
    pub prior: PriorKind,
    /// Weight of the network beside the prior: of its log likelihood where the prior's proposals are ranked, or, with votes, of
    /// their share; 0 to 10.
    #[serde(default)]
    pub network_weight: f64,
    /// Renamings of letters under which a request is carried out, beside the plain letters, when the agent acts greedily; most
    /// outputs decide. Not with `slots`; 0 to 32.
    #[serde(default)]
    #[schemars(extend("unit" = "renamings"))]
    pub votes: usize,
    /// Policy pretrained on P_ω: `shipped`, a file that `iliad pretrain` wrote, or `none`.
    pub pretrained: String,
}

fn preset(name: &'static str, about: &'static str, task: TaskSettings, model: ModelSettings, rest: Rest) -> Preset {
    let config = RunConfig {
        family: "regex".into(),
        preset: name.into(),
        seed: 1,
        task: serde_json::to_value(task).unwrap_or_default(),
        model: serde_json::to_value(model).unwrap_or_default(),
        algorithm: rest.algorithm,
        teacher: rest.teacher,
        people: PeopleConfig::default(),
        pool: rest.pool,
        schedule: rest.schedule,
    };
    Preset { name, about, config }
}

struct Rest {
    algorithm: AlgorithmConfig,
    teacher: TeacherConfig,
    pool: PoolConfig,
    schedule: Schedule,
}

/// The presets, the server's default first.
pub fn presets() -> Vec<Preset> {
    let pragmatics = |samples| Pragmatics { samples, tau: 1.0, draw: Draw::Set, requests: true };
    let mut all = vec![
        preset(
            "small",
            "the built-in word edits with a small agent that a laptop trains while people type",
            TaskSettings {
                world: "builtin".into(),
                path: String::new(),
                seed: 1,
                more_words: 3,
                marginal: MarginalDraw::Uniform,
            },
            ModelSettings {
                hidden: 192,
                word_embedding: 64,
                character_embedding: 32,
                horizon: 24,
                reserve: 256,
                reference_padding: false,
                letters: Letters::Renamed,
                prior: PriorKind::Ngrams,
                network_weight: 0.0,
                votes: 0,
                pretrained: "shipped".into(),
            },
            Rest {
                algorithm: AlgorithmConfig {
                    catch_up: 8,
                    replay: 5,
                    replay_fade: 1000,
                    average: 0.9,
                    practice: PracticeSettings { most: 60, least: 4, ..PracticeSettings::default() },
                    mixing: Mixing { anneal_every: 100, anneal_rate: 0.8, ..Mixing::default() },
                    pretrain_updates: 4000,
                    pretrain_batch: 256,
                    ..AlgorithmConfig::default()
                },
                teacher: TeacherConfig {
                    mode: TeacherMode::Human,
                    models: "shipped".into(),
                    pragmatics: pragmatics(4),
                    training: TeacherLength {
                        executor_updates: 12_000,
                        describer_updates: 20_000,
                        ..TeacherLength::default()
                    },
                },
                pool: PoolConfig { size: 6, candidates: 24, ..PoolConfig::default() },
                schedule: Schedule {
                    evaluate_every: 50,
                    evaluate_tasks: 200,
                    point_every: 5,
                    checkpoint_every: 50,
                    ..Schedule::default()
                },
            },
        ),
        preset(
            "tiny",
            "eight kinds of edits and six letters: learns visibly within two minutes on two cores, for tests",
            TaskSettings {
                world: "tiny".into(),
                path: String::new(),
                seed: 1,
                more_words: 0,
                marginal: MarginalDraw::Uniform,
            },
            ModelSettings {
                hidden: 64,
                word_embedding: 32,
                character_embedding: 16,
                horizon: 16,
                reserve: 32,
                reference_padding: false,
                letters: Letters::Plain,
                prior: PriorKind::None,
                network_weight: 0.0,
                votes: 0,
                pretrained: "shipped".into(),
            },
            Rest {
                algorithm: AlgorithmConfig {
                    learning_rate: 3e-3,
                    replay: 3,
                    pretrain_updates: 600,
                    pretrain_batch: 128,
                    ..AlgorithmConfig::default()
                },
                teacher: TeacherConfig {
                    mode: TeacherMode::Simulated,
                    models: "shipped".into(),
                    pragmatics: pragmatics(4),
                    training: TeacherLength {
                        executor_updates: 6000,
                        describer_updates: 14_000,
                        batch: 128,
                        evaluate_every: 500,
                        fresh_words: true,
                    },
                },
                pool: PoolConfig::default(),
                schedule: Schedule {
                    episodes: 32 * 200,
                    evaluate_every: 40,
                    evaluate_tasks: 0,
                    point_every: 10,
                    checkpoint_every: 40,
                    keep: 2,
                    smooth: 1,
                },
            },
        ),
        preset(
            "efficient",
            "the real requests with as few descriptions as possible; wants a teacher from `iliad teacher train`",
            TaskSettings {
                world: "corpus".into(),
                path: "corpus".into(),
                seed: 1,
                more_words: 5,
                marginal: MarginalDraw::Uniform,
            },
            ModelSettings {
                hidden: 256,
                word_embedding: 128,
                character_embedding: 32,
                horizon: 24,
                reserve: 256,
                reference_padding: false,
                letters: Letters::Renamed,
                prior: PriorKind::Ngrams,
                network_weight: 0.5,
                votes: 8,
                pretrained: "none".into(),
            },
            Rest {
                algorithm: AlgorithmConfig {
                    replay: 31,
                    replay_fade: 2000,
                    mixing: Mixing { anneal_every: 100, anneal_rate: 0.8, ..Mixing::default() },
                    average: 0.998,
                    pretrain_updates: 2000,
                    ..AlgorithmConfig::default()
                },
                teacher: TeacherConfig {
                    mode: TeacherMode::Simulated,
                    models: "none".into(),
                    pragmatics: pragmatics(10),
                    training: TeacherLength::default(),
                },
                pool: PoolConfig::default(),
                schedule: Schedule {
                    // Some 32,000 descriptions with the teacher of BENCHMARKS.md.
                    episodes: 45_000,
                    evaluate_every: 25,
                    evaluate_tasks: 1000,
                    point_every: 5,
                    checkpoint_every: 100,
                    keep: 2,
                    smooth: 3,
                },
            },
        ),
        preset(
            "paper",
            "the paper's sizes and settings on the real requests; wants a GPU and a teacher from `iliad teacher train`",
            TaskSettings {
                world: "corpus".into(),
                path: "corpus".into(),
                seed: 1,
                more_words: 0,
                marginal: MarginalDraw::Uniform,
            },
            ModelSettings {
                hidden: 512,
                word_embedding: 128,
                character_embedding: 32,
                horizon: 40,
                reserve: 0,
                reference_padding: false,
                letters: Letters::Plain,
                prior: PriorKind::None,
                network_weight: 0.0,
                votes: 0,
                pretrained: "none".into(),
            },
            Rest {
                algorithm: AlgorithmConfig::default(),
                teacher: TeacherConfig {
                    mode: TeacherMode::Simulated,
                    models: "none".into(),
                    pragmatics: pragmatics(10),
                    training: TeacherLength::default(),
                },
                pool: PoolConfig::default(),
                schedule: Schedule {
                    episodes: 1_000_000,
                    evaluate_every: 500,
                    evaluate_tasks: 0,
                    point_every: 50,
                    checkpoint_every: 1000,
                    keep: 2,
                    smooth: 5,
                },
            },
        ),
    ];
    all.push(warm(&all[0], 400));
    all
}

/// The preset `warm`: another one whose agent begins with what so many requests of training tasks teach its prior.
fn warm(small: &Preset, prior_examples: u64) -> Preset {
    let mut config = RunConfig { preset: "warm".into(), ..small.config.clone() };
    config.algorithm.prior_examples = prior_examples;
    Preset {
        name: "warm",
        about: "the agent of `small`, which has read some requests in phrasings of its own before anybody teaches it",
        config,
    }
}
