//! The file that a table or figure leaves behind: everything a report needs, so that no run folder is read again.

use super::grid::{Gain, Outcome};
use crate::family::tables::Paper;
use crate::run::Reached;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One table or figure of one device and program, as `regex-main.json` holds it. Shares are in 0..=1, but for the
/// headline figure, which is in percent as the paper's are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Results {
    /// `FAMILY-TABLE`, the file's own name: `regex-main`.
    pub name: String,
    /// The table's subject, in one line.
    pub title: String,
    /// Headline figure: mean test success of the first row in percent; `None` while no seed is complete.
    pub value: Option<f64>,
    /// Unit of `value`, `min` and `max`: `% test success`.
    pub unit: String,
    /// Complete seeds behind `value`.
    pub n: usize,
    /// Smallest of them.
    pub min: Option<f64>,
    /// Largest of them.
    pub max: Option<f64>,
    /// Where the runs were made: `cpu`, `cuda:0`.
    pub device: String,
    /// RFC 3339 time of writing.
    pub date: String,
    /// The command that makes it again (folders left out).
    pub command: String,
    /// Version of the program.
    pub program: String,
    /// Whether every run of every row is complete.
    pub complete: bool,
    /// Levels of validation success in percent that [`Reached`] is about, ascending: 60, 75, 85.
    pub levels: Vec<f64>,
    /// The pace of runs beside each other against that of one alone, where the command found out how many pay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_by_side: Option<SideBySide>,
    /// Rows, in the order of the table.
    pub rows: Vec<RowResult>,
}

/// Runs beside each other on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideBySide {
    /// How they were kept apart, in words.
    pub kept_apart: String,
    /// Their pace.
    #[serde(flatten)]
    pub gain: Gain,
}

impl SideBySide {
    /// The outcome of a grid, where it measured this.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        Some(Self { kept_apart: outcome.kept_apart.into(), gain: outcome.gain? })
    }
}

/// A row: one algorithm with its settings, over seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowResult {
    /// Name, also of the row's folder: `adel`, `lambda-0.5`.
    pub name: String,
    /// The name that people see: `ADEL`, `λ = 0.5`.
    pub title: String,
    /// Settings that make the row, `key=value`.
    pub settings: Vec<String>,
    /// The unit of teaching that is counted: `descriptions`, `demonstrations`, `rewards`, `requests`.
    pub feedback: String,
    /// Seeds asked for.
    pub wanted: usize,
    /// Seeds whose runs used up their budget of episodes.
    pub complete: usize,
    /// Validation success of the best policy, chosen by the trailing mean of its readings: over the whole split where a seed is
    /// through or was concluded, else as it was read while training.
    pub validation: Summary,
    /// Best smoothed validation success (equal to the best raw one where `schedule.smooth` is 1).
    pub validation_smoothed: Summary,
    /// Test success of the best policy, of complete seeds.
    pub test: Summary,
    /// When validation first reached each level; one entry a level.
    pub reached: Vec<LevelResult>,
    /// The paper's figures for this row.
    pub paper: Paper,
    /// Every seed that has begun.
    pub seeds: Vec<SeedResult>,
    /// All other values of a row; plain values are columns of tables without success rates.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Mean and spread of one figure over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Seeds it is over.
    pub n: usize,
    /// Mean; `None` without a seed.
    pub mean: Option<f64>,
    /// Sample standard deviation (n − 1); `None` with fewer than two seeds.
    pub sd: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl Summary {
    /// Summary of some values.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        if n == 0 {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self {
            n,
            mean: Some(mean),
            sd: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            min: values.iter().copied().reduce(f64::min),
            max: values.iter().copied().reduce(f64::max),
        }
    }
}

/// When the seeds of a row first reached a level of validation success. Seeds that did not are not in the means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelResult {
    /// The level in percent.
    pub level: f64,
    /// Episodes until the raw validation success reached it.
    pub episodes: Summary,
    /// Pieces of teaching until then.
    pub descriptions: Summary,
    /// Episodes until the smoothed validation success reached it.
    pub episodes_smoothed: Summary,
    /// Pieces of teaching until then.
    pub descriptions_smoothed: Summary,
}

/// One run of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// Whether its budget of episodes is used up.
    pub complete: bool,
    /// Updates made.
    pub updates: u64,
    /// Episodes.
    pub episodes: u64,
    /// Pieces of teaching used.
    pub descriptions: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Validation success of the policy with the best trailing mean: over the whole split once complete, before that as it was
    /// read while training.
    pub validation: Option<f64>,
    /// Best smoothed validation reading so far.
    pub validation_smoothed: Option<f64>,
    /// Test success of the best policy, once complete.
    pub test: Option<f64>,
    /// When validation first reached the levels.
    pub reached: Vec<Reached>,
    /// Learning curve, thinned.
    pub curve: Vec<CurvePoint>,
}

/// One point of a thinned learning curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// Episodes by then.
    pub episodes: u64,
    /// Pieces of teaching by then.
    pub descriptions: u64,
    /// Seconds of training by then.
    pub seconds: f64,
    /// Validation success.
    pub validation: Option<f64>,
    /// Trailing mean of validation success.
    pub validation_smoothed: Option<f64>,
    /// Share of the agent's own executions that were successful since the point before in the full curve.
    pub training_success: Option<f64>,
    /// The share over all episodes so far (cumulative).
    pub training_success_total: Option<f64>,
    /// Share of the described executions that were as good as the gold one, since the point before in the full curve.
    pub gold_share: Option<f64>,
    /// Loss on new teaching, nats a sequence.
    pub loss: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_by_hand() {
        let s = Summary::of(&[1.0, 2.0, 6.0]);
        assert_eq!((s.n, s.mean, s.min, s.max), (3, Some(3.0), Some(1.0), Some(6.0)));
        assert!((s.sd.unwrap() - 7f64.sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[4.0]).sd, None);
        assert_eq!(Summary::of(&[]), Summary::default());
    }

    #[test]
    fn results_survive_their_file_and_old_files_lack_fields() {
        let results = Results { name: "regex-main".into(), rows: vec![RowResult::default()], ..Results::default() };
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
        assert_eq!(serde_json::from_str::<Results>(r#"{"name":"x"}"#).unwrap().name, "x");
    }
}
