//! The manifest of a data set: its name and version, what is in it, and how to tell that it is whole.

use super::schema::SCHEMA_VERSION;
use super::walk::{Snapshot, Table};
use crate::ids::RunId;
use crate::store::Filter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// The researcher's words about a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence: an SPDX identifier, or words.
    pub licence: Option<String>,
}

impl Default for Description {
    fn default() -> Self {
        Description { name: "iliad-descriptions".to_owned(), version: "1".to_owned(), licence: None }
    }
}

/// Characters of a name or version at most.
const NAME_LIMIT: usize = 80;

/// Characters of a licence at most.
const LICENCE_LIMIT: usize = 20_000;

impl Description {
    /// Checks what was typed.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn check(self) -> Result<Description, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let named = |text: &str| {
            !text.is_empty() && text.len() <= NAME_LIMIT && text.chars().all(plain) && !text.starts_with(['.', '-'])
        };
        if !named(&self.name) || !named(&self.version) {
            return Err(format!(
                "The name and the version of a data set have letters, digits, and . - _ between them, and at most {NAME_LIMIT} characters."
            ));
        }
        if self.licence.as_ref().is_some_and(|text| text.chars().count() > LICENCE_LIMIT) {
            return Err(format!("The licence has at most {LICENCE_LIMIT} characters."));
        }
        Ok(Description { licence: self.licence.filter(|text| !text.trim().is_empty()), ..self })
    }

    /// The beginning of the names of its files: name and version.
    pub fn stem(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// A file of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileEntry {
    /// Its path, from where the manifest lies.
    pub path: String,
    /// The table that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// A run that the data set has rows of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunEntry {
    /// Its name.
    pub run_id: RunId,
    /// Its family.
    pub task: String,
    /// Its preset.
    pub preset: String,
    /// Its seed.
    pub seed: u64,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// SHA-256 of its configuration.
    pub config_hash: String,
    /// Its configuration.
    pub config: Value,
}

/// The manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Manifest {
    /// Name of the data set.
    pub name: String,
    /// Version of it.
    pub version: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Version of the columns.
    pub schema_version: i64,
    /// Version of the program.
    pub code_version: String,
    /// Licence, if the researcher has chosen one.
    pub licence: Option<String>,
    /// The filters, which leave rows out.
    pub filters: Filter,
    /// Rows of each table.
    pub counts: BTreeMap<String, u64>,
    /// The files, but for the manifest.
    pub files: Vec<FileEntry>,
    /// The runs that rows are of.
    pub runs: Vec<RunEntry>,
}

impl Manifest {
    pub(super) fn new(snapshot: &Snapshot, about: Description, files: Vec<FileEntry>) -> Manifest {
        let mut counts = BTreeMap::new();
        for file in &files {
            if let (Some(table), Some(rows)) = (&file.table, file.rows) {
                *counts.entry(table.clone()).or_default() += rows;
            }
        }
        let runs = snapshot.met().into_iter().map(|facts| RunEntry {
            run_id: facts.run.id.clone(),
            task: facts.run.family.clone(),
            preset: facts.run.preset.clone(),
            seed: facts.run.seed,
            created_at: facts.run.created_at,
            config_hash: facts.config_hash.clone(),
            config: facts.run.config.clone(),
        });
        Manifest {
            runs: runs.collect(),
            name: about.name,
            version: about.version,
            created_at: OffsetDateTime::now_utc(),
            schema_version: SCHEMA_VERSION,
            code_version: env!("CARGO_PKG_VERSION").to_owned(),
            licence: about.licence,
            filters: snapshot.filter.clone(),
            counts,
            files,
        }
    }

    /// Adds a file that is no table.
    pub(super) fn add(&mut self, path: &str, bytes: &[u8]) {
        let sha256 = hex::encode(Sha256::digest(bytes));
        self.files.push(FileEntry {
            path: path.to_owned(),
            table: None,
            rows: None,
            bytes: bytes.len() as u64,
            sha256,
        });
    }

    /// Rows of a table.
    pub fn rows(&self, table: Table) -> u64 {
        self.counts.get(table.name()).copied().unwrap_or_default()
    }

    /// The file, indented for people.
    pub fn text(&self) -> String {
        format!("{:#}\n", serde_json::to_value(self).unwrap_or_default())
    }
}
