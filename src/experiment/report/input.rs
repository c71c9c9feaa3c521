//! Results files as the report and BENCHMARKS.md read them: `NAME.json` in a folder. Fields that a file lacks are left
//! out of what is shown; fields that are not known are shown as columns where they are plain values.

use anyhow::Context;
use serde::Deserialize;
use std::path::Path;

pub use crate::experiment::results::{CurvePoint, LevelResult, Results, RowResult, SeedResult, Summary};

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
    /// The row's name.
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
