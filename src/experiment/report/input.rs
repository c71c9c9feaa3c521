//! Results files as the report and BENCHMARKS.md read them: `NAME.json` in a folder. Fields that a file lacks are left
//! out of what is shown; fields that are not known are shown as columns where they are plain values.

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// A figure or a table, with where it comes from. Shares are 0 to 1 unless `unit` is `%`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Results {
    /// Name; the file's, where the file gives none.
    pub name: String,
    /// The figure.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Option<String>,
    /// Repetitions (seeds, measurements).
    pub n: Option<u64>,
    /// Smallest of the repetitions.
    pub min: Option<f64>,
    /// Largest of the repetitions.
    pub max: Option<f64>,
    /// Where it was measured.
    pub device: Option<String>,
    /// When.
    pub date: Option<String>,
    /// The command that prints it.
    pub command: Option<String>,
    /// Rows of a table.
    pub rows: Vec<Row>,
}

/// A row of a table: a setting or a method, over seeds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Row {
    /// What the row is about.
    pub row: String,
    /// One figure a seed.
    pub seeds: Vec<f64>,
    /// Validation success over seeds.
    pub validation: Option<Spread>,
    /// Test success over seeds.
    pub test: Option<Spread>,
    /// The paper's figures, each a number or `{"mean", "sd"}`.
    pub paper: Map<String, Value>,
    /// The learning curve.
    pub curve: Vec<CurvePoint>,
    /// Whatever else the row says.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Mean and standard deviation over `n` seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation; absent for one seed.
    pub sd: Option<f64>,
    /// Seeds.
    pub n: Option<u64>,
}

/// All seeds at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// Episodes by then.
    pub episodes: f64,
    /// Descriptions by then, mean over seeds; absent where nobody counted.
    pub descriptions: Option<f64>,
    /// Validation success, one a seed; null where a seed has no reading.
    pub validation: Vec<Option<f64>>,
    /// Cumulative training success, one a seed.
    pub training: Vec<Option<f64>>,
}

impl Results {
    /// Whether it is a table of success rates.
    pub fn is_table(&self) -> bool {
        self.rows.iter().any(|row| row.validation.is_some() || row.test.is_some())
    }

    /// A share as a percentage.
    pub fn percent(&self, value: f64) -> f64 {
        if self.unit.as_deref() == Some("%") { value } else { 100.0 * value }
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
