//! Results files as the report and BENCHMARKS.md read them: `NAME.json` in a folder. Fields that a file lacks are left
//! out of what is shown; fields that are not known are shown as columns where they are plain values.

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// A figure, or a table of rows, with where it comes from. Shares are 0 to 1; the headline `value` is in its `unit`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Results {
    /// Name; the file's, where the file gives none.
    pub name: String,
    /// What it shows, in one line; may be empty.
    pub title: String,
    /// The figure.
    pub value: Option<f64>,
    /// Unit of `value`, `min` and `max`.
    pub unit: String,
    /// Repetitions behind it (seeds, measurements).
    pub n: usize,
    /// Smallest of the repetitions.
    pub min: Option<f64>,
    /// Largest of the repetitions.
    pub max: Option<f64>,
    /// Where it was measured.
    pub device: String,
    /// When: a day, or an RFC 3339 time.
    pub date: String,
    /// The command that prints it.
    pub command: String,
    /// Rows of a table.
    pub rows: Vec<RowResult>,
}

/// A row of a table: an algorithm with its settings over seeds, or plain values.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RowResult {
    /// Short name.
    pub name: String,
    /// What people call it; may be empty.
    pub title: String,
    /// What is counted as one piece of teaching: `descriptions`, `demonstrations`, `rewards`.
    pub feedback: String,
    /// Seeds asked for.
    pub wanted: usize,
    /// Seeds that are through.
    pub complete: usize,
    /// Validation success.
    pub validation: Summary,
    /// Test success.
    pub test: Summary,
    /// When validation first reached certain levels.
    pub reached: Vec<LevelResult>,
    /// The paper's figures.
    pub paper: Paper,
    /// Every seed that has begun.
    pub seeds: Vec<SeedResult>,
    /// Whatever else the row says.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Mean and spread over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Seeds.
    pub n: usize,
    /// Mean; absent without a seed.
    pub mean: Option<f64>,
    /// Sample standard deviation; absent with fewer than two seeds.
    pub sd: Option<f64>,
}

/// What it took to reach a level of validation success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LevelResult {
    /// The level in per cent.
    pub level: f64,
    /// Pieces of teaching until then, over the seeds that reached it.
    pub descriptions: Summary,
}

/// The paper's figures for a row, in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Paper {
    /// Validation success.
    pub validation: Option<f64>,
    /// Test success.
    pub test: Option<f64>,
}

/// One run of a row.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// Whether it is through.
    pub complete: bool,
    /// Learning curve.
    pub curve: Vec<CurvePoint>,
}

/// One point of a learning curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// Episodes by then.
    pub episodes: u64,
    /// Pieces of teaching by then.
    pub descriptions: u64,
    /// Validation success.
    pub validation: Option<f64>,
    /// Share of all executions so far that were successful.
    pub training_success_total: Option<f64>,
}

impl Results {
    /// The heading: the title, or else the name.
    pub fn heading(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    /// Device and day, for the line under a table.
    pub fn source(&self) -> String {
        let day = self.date.split('T').next().unwrap_or_default();
        [self.device.as_str(), day].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

impl RowResult {
    /// What the row is called.
    pub fn heading(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }
}

/// Reads all `*.json` of a folder, in the order of their names. A file holds one object or a list of them; a folder that
/// is not there holds nothing.
///
/// # Errors
/// When a file cannot be read or is not as it should be; says which.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Results>> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum File {
        Many(Vec<Results>),
        One(Box<Results>),
    }
    let mut paths = match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = serde_json::from_str(&text).with_context(|| format!("{} is not results", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let found = match file {
            File::Many(many) => many,
            File::One(one) => vec![*one],
        };
        all.extend(found.into_iter().map(|mut r| {
            if r.name.is_empty() {
                r.name.clone_from(&stem);
            }
            r
        }));
    }
    Ok(all)
}
