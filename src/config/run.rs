//! The configuration of a run: what is learnt from whom, how. Saved with the weights, shown on the dashboard.

mod algorithm;
pub mod documented;
mod file;
mod mixing;
mod people;
mod pool;
mod teacher;

use crate::suggest::{did_you_mean, in_message};
pub use algorithm::{AlgorithmName, EpochSettings, Feedback, PracticeSettings, QuerySelection, ReinforceSettings};
pub use file::RunFile;
pub use mixing::Mixing;
pub use people::{PeopleConfig, PeopleModel, RatingScale};
pub use pool::{PoolConfig, Preview};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use teacher::{Draw, Pragmatics, TeacherMode};

/// Everything that decides what a run does, but its seed's draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Task family, e.g. `regex`.
    pub family: String,
    /// Preset this configuration started from.
    pub preset: String,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Settings of the family's world (its own keys).
    pub task: Value,
    /// Settings of the family's models (its own keys).
    pub model: Value,
    /// How policies learn.
    pub algorithm: AlgorithmConfig,
    /// Who describes.
    pub teacher: TeacherConfig,
    /// How people answer.
    #[serde(default)]
    pub people: PeopleConfig,
    /// Executions that wait for people.
    pub pool: PoolConfig,
    /// When to evaluate, save and end.
    pub schedule: Schedule,
}

/// The learning algorithm and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AlgorithmConfig {
    /// `adel`, `dagger`, `reinforce-binary`, `reinforce-continuous`, `supervised`, `epoch-adel` or `true-marginal`.
    pub name: AlgorithmName,
    /// Adam's learning rate (paper, REGEX: 1e-3). REINFORCE has its own.
    pub learning_rate: f64,
    /// Episodes per iteration (paper: 32).
    #[schemars(extend("unit" = "episodes"))]
    pub batch: usize,
    /// Batches of people's answers that one update takes in at most, where so many wait: a run that falls behind its people catches up
    /// with larger updates.
    #[schemars(extend("unit" = "batches"))]
    pub catch_up: usize,
    /// Decay of an exponential moving average of π_θ's weights, below 1; the averaged weights are what is evaluated,
    /// tried and reported. 0: off.
    pub average: f64,
    /// λ and its annealing (ADEL).
    pub mixing: Mixing,
    /// REINFORCE's own settings.
    pub reinforce: ReinforceSettings,
    /// EpochADEL's own settings.
    pub epoch: EpochSettings,
    /// Further updates on stored descriptions per new batch; 0: each description is used once (the paper). Not for
    /// EpochADEL, which has its passes, nor for algorithms that need no description.
    #[schemars(extend("unit" = "updates"))]
    pub replay: usize,
    /// Descriptions after which there are fewer of these updates: in proportion to `replay_fade` / descriptions; 0: never.
    /// Few descriptions must be used often, many would be learnt by heart.
    #[schemars(extend("unit" = "descriptions"))]
    pub replay_fade: u64,
    /// Newest descriptions that replay and practice draw from.
    #[schemars(extend("unit" = "descriptions"))]
    pub memory: usize,
    /// Practice of stored descriptions while people think.
    pub practice: PracticeSettings,
    /// Probability that a word of a request or description reads as unknown while learning (letters never do).
    #[schemars(extend("unit" = "probability"))]
    pub word_dropout: f64,
    /// Which executions teachers are asked about.
    pub ask: QuerySelection,
    /// Updates of the policy on P_ω before the first episode (paper: 10,000), when no pretrained policy is loaded.
    #[schemars(extend("unit" = "updates"))]
    pub pretrain_updates: u64,
    /// Batch size of these (paper: 256).
    #[schemars(extend("unit" = "examples"))]
    pub pretrain_batch: usize,
    /// Requests of training tasks that the prior of a new agent is taught, with their gold executions, before the first episode; 0
    /// but for the presets `warm` (paper: none).
    #[schemars(extend("unit" = "requests"))]
    pub prior_examples: u64,
    /// For experiments: deal the descriptions of an iteration out to the wrong executions. Nothing should be learnt.
    pub shuffle_descriptions: bool,
}

impl Default for AlgorithmConfig {
    fn default() -> Self {
        Self {
            name: AlgorithmName::default(),
            learning_rate: 1e-3,
            batch: 32,
            catch_up: 1,
            average: 0.0,
            mixing: Mixing::default(),
            reinforce: ReinforceSettings::default(),
            epoch: EpochSettings::default(),
            replay: 0,
            replay_fade: 0,
            memory: 100_000,
            practice: PracticeSettings::default(),
            word_dropout: 0.0,
            ask: QuerySelection::default(),
            pretrain_updates: 10_000,
            pretrain_batch: 256,
            prior_examples: 0,
            shuffle_descriptions: false,
        }
    }
}

/// The model that reads descriptions beside the network (`model.prior` of a family that has one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PriorKind {
    /// None: the network alone decides (the paper).
    #[default]
    None,
    /// A log-linear model over n-grams of the description and parts of the execution.
    Ngrams,
}

/// Who teaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TeacherConfig {
    /// Mode at the start; it can be switched while the run goes on.
    pub mode: TeacherMode,
    /// The simulated teacher's models: `shipped`, the path of a file that `iliad teacher train` wrote, or `none`.
    pub models: String,
    /// Pragmatic inference.
    pub pragmatics: Pragmatics,
    /// How `iliad teacher train` makes the models.
    pub training: TeacherLength,
}

/// Length of a teacher's training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TeacherLength {
    /// Updates of the executor (paper, REGEX: 30,000).
    #[schemars(extend("unit" = "updates"))]
    pub executor_updates: u64,
    /// Updates of the describer (paper, REGEX: 40,000).
    #[schemars(extend("unit" = "updates"))]
    pub describer_updates: u64,
    /// Batch size (paper, REGEX: 256).
    #[schemars(extend("unit" = "examples"))]
    pub batch: usize,
    /// Updates between two evaluations.
    #[schemars(extend("unit" = "updates"))]
    pub evaluate_every: u64,
    /// Whether each example gets new words of the dictionary (the paper draws the words of an episode anew), instead of
    /// the five that its task has in the corpus.
    pub fresh_words: bool,
}

impl Default for TeacherLength {
    fn default() -> Self {
        Self {
            executor_updates: 30_000,
            describer_updates: 40_000,
            batch: 256,
            evaluate_every: 1000,
            fresh_words: true,
        }
    }
}

impl Default for TeacherConfig {
    fn default() -> Self {
        Self {
            mode: TeacherMode::Simulated,
            models: "shipped".into(),
            pragmatics: Pragmatics::default(),
            training: TeacherLength::default(),
        }
    }
}

/// When things happen, counted in updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// The run ends after so many episodes; 0: it goes on until stopped.
    #[schemars(extend("unit" = "episodes"))]
    pub episodes: u64,
    /// Updates between two evaluations on the validation split.
    #[schemars(extend("unit" = "updates"))]
    pub evaluate_every: u64,
    /// Validation tasks of such an evaluation; 0: all.
    #[schemars(extend("unit" = "tasks"))]
    pub evaluate_tasks: usize,
    /// Updates between two points of the curves.
    #[schemars(extend("unit" = "updates"))]
    pub point_every: u64,
    /// Updates between two checkpoints.
    #[schemars(extend("unit" = "updates"))]
    pub checkpoint_every: u64,
    /// Checkpoints kept beside the best one.
    #[schemars(extend("unit" = "checkpoints"))]
    pub keep: usize,
    /// Evaluations in the trailing mean of validation success; 1: off. The best policy is the one after which this mean
    /// was highest.
    #[schemars(extend("unit" = "evaluations"))]
    pub smooth: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            episodes: 0,
            evaluate_every: 200,
            evaluate_tasks: 0,
            point_every: 20,
            checkpoint_every: 200,
            keep: 3,
            smooth: 1,
        }
    }
}

/// A named configuration of a family.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Name.
    pub name: &'static str,
    /// One sentence: what it is for, how long it takes.
    pub about: &'static str,
    /// The configuration (seed 1).
    pub config: RunConfig,
}

/// The largest seed. JSON numbers are exact up to here in every language, browsers included.
pub const LARGEST_SEED: u64 = (1 << 53) - 1;

/// Counts of updates and episodes in settings are at most this.
pub const LARGEST_COUNT: u64 = 1_000_000_000_000;

/// Why a configuration cannot be used; in plain words.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Why people cannot teach a run of this algorithm.
pub fn not_by_people(name: AlgorithmName) -> String {
    format!(
        "people teach by describing, demonstrating or rating what the agent does, and {} learns from {} that are known \
         beforehand; set teacher.mode to {{\"mode\":\"simulated\"}}, or algorithm.name to adel, epoch-adel, dagger or a reinforce",
        name.typed(),
        name.feedback().words()
    )
}

impl AlgorithmConfig {
    /// Further updates on stored descriptions for a new batch, when there are so many descriptions.
    pub fn replays(&self, descriptions: u64) -> u64 {
        let replay = self.replay as u64;
        if self.replay_fade == 0 || descriptions <= self.replay_fade {
            return replay;
        }
        (replay * self.replay_fade).div_ceil(descriptions)
    }
}

impl RunConfig {
    /// Applies overrides `key=value` (`algorithm.batch=16`, `teacher.mode={"mode":"human"}`); values are JSON, or
    /// plain text where that does not parse.
    ///
    /// # Errors
    /// When a key does not exist, a value has the wrong type, or the result makes no sense.
    pub fn with_overrides(&self, overrides: &[String]) -> Result<RunConfig, ConfigError> {
        let mut json = serde_json::to_value(self).map_err(|e| ConfigError(e.to_string()))?;
        for item in overrides {
            let (key, text) =
                item.split_once('=').ok_or_else(|| ConfigError(format!("`{item}` is not of the form key=value")))?;
            let (key, text) = (key.trim(), text.trim());
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()));
            let mut at = &mut json;
            for part in key.split('.') {
                at = match at.as_object_mut().and_then(|o| o.get_mut(part)) {
                    Some(inner) => inner,
                    None => return Err(self.no_such(key)),
                };
            }
            *at = value;
            // After each, so that the sentence can name the one that does not fit.
            serde_json::from_value::<RunConfig>(json.clone())
                .map_err(|e| ConfigError(format!("`{item}` cannot be used: {e}{}", in_message(&e.to_string()))))?;
        }
        let config: RunConfig = serde_json::from_value(json).map_err(|e| ConfigError(e.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// Every setting, `dotted.key` and value, sorted. What takes one of several forms, such as
    /// `teacher.mode`, is one setting.
    pub fn settings(&self) -> Vec<(String, Value)> {
        fn walk(prefix: &str, value: Value, out: &mut Vec<(String, Value)>) {
            match value {
                Value::Object(members) if prefix != "teacher.mode" => {
                    for (key, value) in members {
                        let path = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                        walk(&path, value, out);
                    }
                }
                value => out.push((prefix.to_owned(), value)),
            }
        }
        let mut out = Vec::new();
        walk("", serde_json::to_value(self).unwrap_or_default(), &mut out);
        out
    }

    /// Says that there is no setting of a name, and which may have been meant.
    fn no_such(&self, key: &str) -> ConfigError {
        let settings = self.settings();
        let meant = did_you_mean(key, settings.iter().map(|(key, _)| key.as_str()));
        let list = format!("`iliad presets {}/{}` lists all", self.family, self.preset);
        ConfigError(format!("there is no setting `{key}`{meant}; {list}"))
    }

    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |m: &str| Err(ConfigError(m.into()));
        let a = &self.algorithm;
        if !(a.learning_rate > 0.0 && a.learning_rate < 1.0) {
            return fail("algorithm.learning_rate lies between 0 and 1");
        }
        let r = a.reinforce;
        if !(r.learning_rate > 0.0 && r.learning_rate < 1.0 && (0.0..=100.0).contains(&r.entropy)) {
            return fail("algorithm.reinforce.learning_rate lies between 0 and 1, its entropy between 0 and 100");
        }
        if !(0.0..1.0).contains(&a.average) {
            return fail("algorithm.average lies between 0 and 1, 1 excluded");
        }
        let e = a.epoch;
        if e.iterations == 0 || !(1..=1000).contains(&e.passes) || !(1..=100).contains(&e.snapshots) {
            return fail(
                "algorithm.epoch.iterations is at least 1, its passes lie between 1 and 1000, its snapshots between 1 and 100",
            );
        }
        if self.teacher.mode != TeacherMode::Simulated && !a.name.taught_by_people() {
            return Err(ConfigError(not_by_people(a.name)));
        }
        if a.batch == 0 || a.batch > 4096 || a.pretrain_batch == 0 || a.pretrain_batch > 4096 {
            return fail("algorithm.batch and algorithm.pretrain_batch lie between 1 and 4096");
        }
        if !(0.0..=1.0).contains(&a.mixing.lambda) || !(0.0..=1.0).contains(&a.mixing.lambda_min) {
            return fail("algorithm.mixing.lambda and lambda_min lie between 0 and 1");
        }
        if !(0.0..=1.0).contains(&a.mixing.anneal_rate) {
            return fail("algorithm.mixing.anneal_rate lies between 0 and 1");
        }
        if a.replay > 1000 || a.memory > 100_000_000 {
            return fail("algorithm.replay is at most 1000, algorithm.memory at most 100000000");
        }
        // Counts of updates and episodes are multiplied and added up; none of them may come near what a number can hold.
        let counts = [
            ("algorithm.replay_fade", a.replay_fade),
            ("algorithm.mixing.anneal_every", a.mixing.anneal_every),
            ("algorithm.epoch.iterations", e.iterations),
            ("algorithm.pretrain_updates", a.pretrain_updates),
            ("pool.max_age", self.pool.max_age),
            ("schedule.episodes", self.schedule.episodes),
            ("schedule.evaluate_every", self.schedule.evaluate_every),
            ("schedule.point_every", self.schedule.point_every),
            ("schedule.checkpoint_every", self.schedule.checkpoint_every),
            ("teacher.training.executor_updates", self.teacher.training.executor_updates),
            ("teacher.training.describer_updates", self.teacher.training.describer_updates),
            ("teacher.training.evaluate_every", self.teacher.training.evaluate_every),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count > LARGEST_COUNT) {
            return Err(ConfigError(format!("{key} is at most {LARGEST_COUNT}")));
        }
        let t = &self.teacher.training;
        if !(1..=4096).contains(&t.batch) || t.evaluate_every == 0 {
            return fail(
                "teacher.training.batch lies between 1 and 4096, teacher.training.evaluate_every is at least 1",
            );
        }
        let tau = self.teacher.pragmatics.tau;
        if !(0.0..=1000.0).contains(&tau) {
            return fail("teacher.pragmatics.tau lies between 0 and 1000");
        }
        if !(0.0..1.0).contains(&a.word_dropout) {
            return fail("algorithm.word_dropout is at least 0 and below 1");
        }
        if !(1..=100).contains(&a.ask.candidates) || a.ask.samples > 100 {
            return fail("algorithm.ask.candidates lies between 1 and 100, algorithm.ask.samples is at most 100");
        }
        if let TeacherMode::Mixed { share } = self.teacher.mode
            && !(0.0..=1.0).contains(&share)
        {
            return fail("the share of episodes that go to people lies between 0 and 1");
        }
        if !(1..=10_000).contains(&self.pool.size) || !(1..=10_000).contains(&self.pool.overlap) {
            return fail("pool.size and pool.overlap lie between 1 and 10000");
        }
        if !(1..=100).contains(&self.pool.candidates) {
            return fail("pool.candidates lies between 1 and 100");
        }
        if !(1..=64).contains(&a.catch_up) {
            return fail("algorithm.catch_up lies between 1 and 64");
        }
        let practice = a.practice;
        if practice.most > 10_000 || practice.least > practice.most.min(100) || practice.explore_every > 10_000 {
            return fail(
                "algorithm.practice.most and explore_every are at most 10000, algorithm.practice.least is at most 100 and at most algorithm.practice.most",
            );
        }
        if a.prior_examples > 100_000 {
            return fail("algorithm.prior_examples is at most 100000");
        }
        if !(1..=256).contains(&practice.batch) {
            return fail("algorithm.practice.batch lies between 1 and 256");
        }
        self.people.simulated.check().map_err(ConfigError)?;
        if self.teacher.pragmatics.samples > 1000 {
            return fail("teacher.pragmatics.samples is at most 1000");
        }
        let s = &self.schedule;
        if s.evaluate_every == 0 || s.point_every == 0 || s.checkpoint_every == 0 || s.keep == 0 {
            return fail("schedule.evaluate_every, point_every, checkpoint_every and keep are at least 1");
        }
        if s.keep > 100_000 || s.evaluate_tasks > 1_000_000_000 {
            return fail("schedule.keep is at most 100000, schedule.evaluate_tasks at most 1000000000");
        }
        if !(1..=1000).contains(&s.smooth) {
            return fail("schedule.smooth lies between 1 and 1000");
        }
        Ok(())
    }

    /// Settings that differ from `other`, as `dotted.key` → value here. The dashboard shows them.
    pub fn differences(&self, other: &RunConfig) -> Vec<(String, Value)> {
        fn walk(prefix: &str, a: &Value, b: &Value, out: &mut Vec<(String, Value)>) {
            match (a, b) {
                (Value::Object(a), Value::Object(b)) => {
                    for (key, value) in a {
                        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                        walk(&path, value, b.get(key).unwrap_or(&Value::Null), out);
                    }
                }
                _ if a != b => out.push((prefix.to_owned(), a.clone())),
                _ => {}
            }
        }
        let json = |c: &RunConfig| serde_json::to_value(c).unwrap_or_default();
        let mut out = Vec::new();
        walk("", &json(self), &json(other), &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> RunConfig {
        RunConfig {
            family: "regex".into(),
            preset: "tiny".into(),
            seed: 1,
            task: serde_json::json!({ "world": "tiny" }),
            model: serde_json::json!({ "hidden": 64 }),
            algorithm: AlgorithmConfig::default(),
            teacher: TeacherConfig::default(),
            people: PeopleConfig::default(),
            pool: PoolConfig::default(),
            schedule: Schedule::default(),
        }
    }

    #[test]
    fn configurations_of_earlier_programs_are_adels() {
        let mut json = serde_json::to_value(config()).unwrap();
        for key in ["name", "average", "reinforce", "epoch"] {
            json["algorithm"].as_object_mut().unwrap().remove(key);
        }
        json["schedule"].as_object_mut().unwrap().remove("smooth");
        json["teacher"]["pragmatics"].as_object_mut().unwrap().remove("requests");
        assert_eq!(serde_json::from_value::<RunConfig>(json).unwrap(), config());
    }

    /// Every number of a preset, with its key.
    fn numbers(config: &RunConfig) -> Vec<String> {
        fn walk(prefix: &str, value: &Value, keys: &mut Vec<String>) {
            match value {
                Value::Object(all) => {
                    let path = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
                    all.iter().for_each(|(key, value)| walk(&path(key), value, keys));
                }
                Value::Number(_) if !prefix.ends_with("seed") => keys.push(prefix.to_owned()),
                _ => {}
            }
        }
        let mut keys = Vec::new();
        walk("", &serde_json::to_value(config).unwrap(), &mut keys);
        keys
    }

    #[test]
    fn absurd_numbers_are_refused_whichever_setting_has_them() {
        use crate::registry::Registry;
        for name in ["regex/small", "nav/small"] {
            let (trainer, preset) = Registry::builtin().preset(name).unwrap();
            let keys = numbers(&preset.config);
            assert!(keys.len() > 40, "{keys:?}");
            for key in keys {
                for absurd in ["1000000000000000", "18446744073709551615", "-1", "-1e300", "1e300", "NaN", "Infinity"] {
                    let set = format!("{key}={absurd}");
                    let made = preset.config.with_overrides(std::slice::from_ref(&set)).map_err(anyhow::Error::from);
                    let told = made.and_then(|config| trainer.check(&config)).map_err(|e| e.to_string());
                    assert!(told.is_err(), "{name} takes {set}");
                }
                // Zero means something in places; it must not break anything.
                if let Ok(config) = preset.config.with_overrides(&[format!("{key}=0")]) {
                    let _ = trainer.check(&config);
                }
            }
        }
    }

    #[test]
    fn replay_fades_in_proportion_and_never_quite_ends() {
        let a = AlgorithmConfig { replay: 31, replay_fade: 2000, ..AlgorithmConfig::default() };
        assert_eq!([0, 2000, 4000, 62_000, 10_000_000].map(|n| a.replays(n)), [31, 31, 16, 1, 1]);
        let constant = AlgorithmConfig { replay: 3, ..AlgorithmConfig::default() };
        assert_eq!((constant.replays(1_000_000), AlgorithmConfig::default().replays(5)), (3, 0));
    }

    #[test]
    fn overrides_reach_every_depth_and_wrong_ones_are_named() {
        let set = |items: &[&str]| config().with_overrides(&items.iter().map(|s| s.to_string()).collect::<Vec<_>>());
        let c = set(&["algorithm.mixing.lambda=0.25", "model.hidden=32", "teacher.models=none", "seed=9"]).unwrap();
        assert_eq!((c.algorithm.mixing.lambda, c.seed, c.teacher.models.as_str()), (0.25, 9, "none"));
        assert_eq!(c.model["hidden"], 32);
        assert_eq!(set(&["schedule.episodes = 64"]).unwrap().schedule.episodes, 64, "as people type it");
        let told = set(&["algorithm.lamda=1"]).unwrap_err().0;
        assert!(
            told.contains("`algorithm.lamda`") && told.contains("did you mean `algorithm.mixing.lambda`?"),
            "{told}"
        );
        assert!(told.contains("`iliad presets regex/tiny` lists all"), "{told}");
        let told = set(&["algorithm.name=dager"]).unwrap_err().0;
        assert!(told.contains("did you mean `dagger`?"), "{told}");
        let told = set(&["seed=2", "algorithm.batch=lots"]).unwrap_err().0;
        assert!(told.contains("`algorithm.batch=lots` cannot be used"), "{told}");
        assert!(set(&["pool.size=99999999"]).is_err() && set(&["teacher.pragmatics.samples=9999"]).is_err());
        assert!(set(&["algorithm.batch=0"]).is_err());
        assert_eq!(set(&["algorithm.name=epoch-adel"]).unwrap().algorithm.name, AlgorithmName::EpochAdel);
        assert!(set(&["algorithm.name=adele"]).is_err() && set(&["algorithm.average=1"]).is_err());
        assert!(set(&["algorithm.epoch.passes=0"]).is_err() && set(&["schedule.smooth=0"]).is_err());
        let human = r#"teacher.mode={"mode":"human"}"#;
        assert!(set(&["algorithm.name=epoch-adel", human]).is_ok());
        for taught in ["dagger", "reinforce-binary", "reinforce-continuous"] {
            assert!(set(&[&format!("algorithm.name={taught}"), human]).is_ok(), "{taught}");
        }
        let told = set(&["algorithm.name=supervised", human]).unwrap_err().0;
        assert!(told.contains("supervised learns from requests that are known"), "{told}");
        assert_eq!(set(&["people.rating=stars"]).unwrap().people.rating, RatingScale::Stars);
        assert!(set(&["seed"]).unwrap_err().0.contains("key=value"));
        let differences = c.differences(&config());
        assert!(differences.contains(&("seed".into(), 9.into())) && differences.len() == 4, "{differences:?}");
    }
}
