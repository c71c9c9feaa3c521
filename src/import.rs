//! Descriptions from files into a store: the formats that [`crate::export`] writes, and the same by hand with fewer columns.
//!
//! A file is read twice. The first reading finds everything that is wrong ([`check`]), the second stores the rows
//! ([`Checked::store`]); what is held in memory are the keys of the rows.

pub mod episodes;
mod lines;
mod read;
pub mod upload;

use crate::config::run::TeacherMode;
use crate::export::manifest::{Manifest, RunEntry};
use crate::export::schema::{DESCRIPTIONS, SCHEMA_VERSION};
use crate::export::table::{Cell, Row};
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::protocol::Medium;
use crate::registry::{Registry, outside};
use crate::run::{Reference, Source};
use crate::store::{AnswerKind, ExportRow, Imported, Run, Store, StoreError};
use crate::study::ReviewState;
pub use read::ReadError;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

/// Characters of a run's name at most.
const NAME_LIMIT: usize = 100;

/// A row that cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The file that it is in.
    pub file: PathBuf,
    /// Its number in the file, from 1: the line of JSON lines, the record of the others.
    pub number: u64,
    /// Why, in a sentence without its full stop.
    pub reason: String,
}

/// The facts about a run that all of its rows state.
#[derive(Clone, Debug)]
struct RunFacts {
    family: String,
    preset: String,
    seed: u64,
    config_hash: Option<String>,
    first: OffsetDateTime,
}

/// A file, or the files of a folder, as the first reading found them.
#[derive(Debug)]
pub struct Checked {
    files: Vec<PathBuf>,
    keys: Vec<AnswerId>,
    runs: BTreeMap<RunId, RunFacts>,
    manifest: Vec<RunEntry>,
    /// Another name for the one run.
    name: Option<RunId>,
    /// The rows that cannot be stored.
    pub bad: Vec<BadRow>,
    /// Columns that the data set does not have, and that are passed over.
    pub unknown: Vec<String>,
    now: OffsetDateTime,
}

/// How far the first reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Rows that are read.
    pub rows: u64,
    /// Bytes of the files that are read.
    pub bytes: u64,
    /// Bytes of all files.
    pub of: u64,
}

fn at(name: &str) -> usize {
    DESCRIPTIONS.iter().position(|column| column.name == name).unwrap_or(0)
}

/// Whether a run that comes in can have a name.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().count() <= NAME_LIMIT && name.chars().all(plain) && !name.starts_with('.')
}

/// Columns without which a row says nothing.
pub(crate) const NEEDED: [&str; 4] = ["run_id", "task", "episode_id", "view"];

/// A row by its columns' names.
struct Record(Row);

impl Record {
    fn text(&self, name: &str) -> Option<&str> {
        if let Cell::Text(text) = &self.0[at(name)] { Some(text) } else { None }
    }

    fn owned(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    fn integer(&self, name: &str) -> Option<i64> {
        if let Cell::Integer(number) = self.0[at(name)] { Some(number) } else { None }
    }

    fn count(&self, name: &str) -> Result<Option<u64>, String> {
        self.integer(name)
            .map(|number| u64::try_from(number).map_err(|_| format!("`{name}` is below zero")))
            .transpose()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        if let Cell::Boolean(value) = self.0[at(name)] { Some(value) } else { None }
    }

    fn time(&self, name: &str) -> Option<OffsetDateTime> {
        if let Cell::Time(time) = self.0[at(name)] { Some(time) } else { None }
    }

    fn json(&self, name: &str) -> Option<Value> {
        if let Cell::Json(value) = &self.0[at(name)] { Some(value.clone()) } else { None }
    }

    /// The row as the store has it.
    fn read(&self, now: OffsetDateTime) -> Result<ExportRow, String> {
        let kind = self.text("kind").unwrap_or("described");
        let kind = AnswerKind::ALL.into_iter().find(|known| known.as_str() == kind).unwrap_or_default();
        let source = self.text("source").and_then(Source::named);
        let teacher = self.integer("teacher_id").map(TeacherId);
        let source = source.unwrap_or(if teacher.is_some() { Source::Human } else { Source::Simulated });
        match (source, teacher) {
            (Source::Human, None) => return Err("an answer of a person has no `teacher_id`".into()),
            (Source::Simulated, Some(_)) => return Err("a simulated answer has a `teacher_id`".into()),
            _ => {}
        }
        let used = match &self.0[at("used_in_updates")] {
            Cell::Integers(updates) if updates.len() > 1 => {
                return Err("`used_in_updates` names several updates".into());
            }
            Cell::Integers(updates) => updates.first().copied(),
            _ => None,
        };
        let used = used.map(|update| u64::try_from(update).map_err(|_| "`used_in_updates` is below zero".to_owned()));
        let rating = if let Cell::Number(rating) = self.0[at("rating")] { Some(rating) } else { None };
        if rating.is_some_and(|rating| !(0.0..=1.0).contains(&rating)) {
            return Err("`rating` lies between 0 and 1".into());
        }
        let text = if kind == AnswerKind::Skipped { "skip_reason" } else { "description" };
        let retracted = self.flag("retracted").unwrap_or_default();
        // An export may have empty texts, and CSV has one field for them and for none; a file by hand has forgotten something.
        let own = self.integer("schema_version").is_none();
        if own && kind == AnswerKind::Described && self.text(text).is_none_or(str::is_empty) {
            return Err("`description` is empty".into());
        }
        let reference = self.json("reference");
        let reference = reference.map(|execution| Reference { summary: self.owned("reference_execution"), execution });
        Ok(ExportRow {
            run: self.owned("run_id").into(),
            family: self.owned("task"),
            answer: AnswerId(self.integer("description_id").unwrap_or_default()),
            episode: self.count("episode_id")?.unwrap_or_default(),
            source,
            teacher,
            request: self.owned("request"),
            execution: self.owned("execution"),
            view: self.json("view").unwrap_or_default(),
            reference,
            success: self.flag("success").unwrap_or_default(),
            revision: 1,
            kind,
            text: self.owned(text),
            medium: self.text("medium").and_then(Medium::named).unwrap_or_default(),
            demonstration: self.json("demonstration"),
            rating,
            request_shown: self.flag("request_shown").unwrap_or_default(),
            policy_update: self.count("policy_version")?.unwrap_or_default(),
            used_in_update: used.transpose()?,
            supersedes: self.integer("supersedes").map(AnswerId),
            superseded_by: self.integer("superseded_by").map(AnswerId),
            shown_at: self.time("shown_at"),
            active_ms: self.count("active_ms")?,
            idle_ms: self.count("idle_ms")?,
            created_at: self.time("created_at").unwrap_or(now),
            withdrawn_at: self.time("withdrawn_at"),
            understood_before: self.flag("understood_before"),
            understood_after: self.flag("understood_after"),
            fulfilled: self.flag("fulfilled").unwrap_or_default(),
            preview_arm: self.flag("preview_arm"),
            preview_shown: self.flag("preview_shown").unwrap_or_default(),
            first_text: match self.text("first_text") {
                // CSV has one field for an empty text and for none.
                None if self.flag("preview_shown") == Some(true) => Some(String::new()),
                text => text.map(str::to_owned),
            },
            retracted,
            review_state: self.text("review_state").and_then(ReviewState::parse),
            adjudicated: None,
            quality_flags: Vec::new(),
        })
    }
}

/// The keys and places of the rows that the first reading has passed.
#[derive(Default)]
struct Seen {
    keys: HashSet<AnswerId>,
    /// Rows that were corrected, each with the answer that corrects it, which may come later.
    named: Vec<(PathBuf, u64, AnswerId)>,
    simulated: HashSet<(RunId, u64)>,
    standing: HashSet<(RunId, u64, u64, TeacherId)>,
}

/// Reads a file, or a folder that an export made, and finds everything that is wrong with it. Nothing is stored. `name`: another
/// name for the run, where the file has one.
///
/// # Errors
/// When a file cannot be read at all, or is of no known format.
pub fn check(path: &Path, registry: Registry, name: Option<RunId>) -> Result<Checked, ReadError> {
    check_telling(path, registry, name, u64::MAX, |_| {})
}

/// Reads as [`check`] does, at most `most` rows, and tells `told` after each how far it is.
///
/// # Errors
/// As [`check`].
pub fn check_telling(
    path: &Path,
    registry: Registry,
    name: Option<RunId>,
    most: u64,
    mut told: impl FnMut(Reading),
) -> Result<Checked, ReadError> {
    let (files, manifest) = read::files(path)?;
    let manifest = match manifest {
        Some(path) => {
            let bytes = std::fs::read(&path).map_err(|e| ReadError::new(&path, e))?;
            let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| ReadError::new(&path, e))?;
            manifest.runs
        }
        None => Vec::new(),
    };
    let now = OffsetDateTime::now_utc();
    let mut checked = Checked {
        files,
        keys: Vec::new(),
        runs: BTreeMap::new(),
        manifest,
        name,
        bad: Vec::new(),
        unknown: Vec::new(),
        now,
    };
    let (mut seen, mut done) = (Seen::default(), 0);
    let files = checked.files.clone();
    let sizes: Vec<u64> = files.iter().map(|file| std::fs::metadata(file).map_or(0, |found| found.len())).collect();
    let (of, mut before) = (sizes.iter().sum(), 0);
    'files: for (file, size) in files.iter().zip(sizes) {
        let mut rows = read::rows(file)?;
        while let Some((number, row)) = rows.next() {
            if done == most {
                let reason = format!("there are more than {most} rows; bring the rest in as another file");
                checked.bad.push(BadRow { file: file.clone(), number, reason });
                break 'files;
            }
            done += 1;
            told(Reading { rows: done, bytes: before + rows.bytes_read(), of });
            let found = row.and_then(|row| checked.take(row, registry, &mut seen, file, number));
            if let Err(reason) = found {
                checked.bad.push(BadRow { file: file.clone(), number, reason });
            }
        }
        checked.unknown.extend(rows.unknown());
        before += size;
    }
    for (file, number, key) in seen.named {
        if !seen.keys.contains(&key) {
            let reason = format!("`superseded_by` names the answer {key}, which is not there");
            checked.bad.push(BadRow { file, number, reason });
        }
    }
    checked.bad.sort_by(|a, b| (&a.file, a.number).cmp(&(&b.file, b.number)));
    checked.unknown.sort();
    checked.unknown.dedup();
    if checked.name.is_some() && checked.runs.len() > 1 {
        let names: Vec<&str> = checked.runs.keys().map(RunId::as_str).collect();
        let reason = format!("a new name is for one run, and there are {}", names.join(", "));
        return Err(ReadError::new(path, reason));
    }
    Ok(checked)
}

impl Checked {
    /// How many rows there are that can be stored.
    pub fn rows(&self) -> u64 {
        self.keys.len() as u64
    }

    /// The runs under the names that they will have.
    pub fn runs(&self) -> Vec<RunId> {
        self.runs.keys().map(|run| self.name.clone().unwrap_or_else(|| run.clone())).collect()
    }

    fn take(&mut self, row: Row, registry: Registry, seen: &mut Seen, file: &Path, number: u64) -> Result<(), String> {
        let record = Record(row);
        if let Some(version) = record.integer("schema_version").filter(|version| *version != SCHEMA_VERSION) {
            return Err(format!("`schema_version` is {version}; this program reads version {SCHEMA_VERSION}"));
        }
        let row = record.read(self.now)?;
        let run = row.run.as_str();
        if !is_name(run) {
            return Err("`run_id` is a name of letters, digits, and . - _ between them".into());
        }
        let Some(family) = registry.family(&row.family).or_else(|| outside(&row.family)) else {
            let known: Vec<&str> = registry.families().iter().map(|family| family.name()).collect();
            return Err(format!("there is no task {:?}; there are {}", row.family, known.join(", ")));
        };
        if family.render_text(&row.view).is_err() {
            return Err(format!("`view` is none of the task {}", row.family));
        }
        let key = match record.integer("description_id") {
            Some(key) => AnswerId(key),
            // Keys of their own, which nothing names.
            None => AnswerId(-1 - seen.keys.len() as i64),
        };
        if !seen.keys.insert(key) {
            return Err(format!("`description_id` {key} is there twice"));
        }
        if row.source == Source::Simulated && !seen.simulated.insert((row.run.clone(), row.episode)) {
            return Err(format!("the simulated episode {} is there twice", row.episode));
        }
        if let (Some(teacher), None) = (row.teacher, row.superseded_by)
            && !seen.standing.insert((row.run.clone(), row.episode, row.policy_update, teacher))
        {
            return Err(format!("the teacher {teacher} has two answers about the episode {} that stand", row.episode));
        }
        // The answer that this one corrects may have been left out of the file: it then stands without naming it.
        if let Some(named) = row.superseded_by {
            seen.named.push((file.to_owned(), number, named));
        }
        let seed = record.text("seed").unwrap_or("0");
        let facts = RunFacts {
            family: row.family.clone(),
            preset: record.owned("preset"),
            seed: seed.parse().map_err(|_| "`seed` is a whole number without sign".to_owned())?,
            config_hash: record.text("config_hash").map(str::to_owned),
            first: row.created_at,
        };
        let known = self.runs.entry(row.run.clone()).or_insert_with(|| facts.clone());
        known.first = known.first.min(facts.first);
        if (&known.family, known.seed) != (&facts.family, facts.seed) {
            return Err(format!("the run {run} has another task or seed in rows before"));
        }
        self.keys.push(key);
        Ok(())
    }

    /// The runs to store: their configurations are those of the manifest, or else of their presets.
    fn stored_runs(&self, registry: Registry) -> Result<Vec<Run>, StoreError> {
        let mut runs = Vec::new();
        for (id, facts) in &self.runs {
            let known = self.manifest.iter().find(|entry| entry.run_id == *id);
            let config = match known {
                Some(entry) => entry.config.clone(),
                None => Checked::config_of(registry, facts)?,
            };
            runs.push(Run {
                id: self.name.clone().unwrap_or_else(|| id.clone()),
                family: facts.family.clone(),
                preset: facts.preset.clone(),
                config,
                seed: facts.seed,
                teacher: TeacherMode::Human,
                active: false,
                created_at: known.map_or(facts.first, |entry| entry.created_at),
            });
        }
        Ok(runs)
    }

    fn config_of(registry: Registry, facts: &RunFacts) -> Result<Value, StoreError> {
        let presets = registry.family(&facts.family).map(|family| family.presets()).unwrap_or_default();
        let preset = presets.iter().find(|preset| preset.name == facts.preset).or(presets.first());
        // Agents that live elsewhere have no presets.
        let Some(preset) = preset else { return Ok(json!({"family": facts.family})) };
        let mut config = preset.config.clone();
        config.seed = facts.seed;
        serde_json::to_value(config).map_err(|e| StoreError::Invalid(e.to_string()))
    }

    /// Runs whose configuration will be another than in the data set: no manifest has it, and it is not their preset's.
    pub fn other_configurations(&self, registry: Registry) -> Vec<RunId> {
        let hashes: HashMap<RunId, String> = self
            .stored_runs(registry)
            .unwrap_or_default()
            .iter()
            .zip(self.runs.keys())
            .map(|(run, id)| (id.clone(), crate::export::config_hash(&run.config)))
            .collect();
        let other = self.runs.iter().filter(|(id, facts)| {
            facts.config_hash.as_ref().is_some_and(|hash| hashes.get(*id).is_some_and(|now| now != hash))
        });
        other.map(|(id, _)| id.clone()).collect()
    }

    /// Stores the rows, all or none.
    ///
    /// # Errors
    /// When a row is bad, a run of one of the names exists, or the store cannot be written.
    pub async fn store(&self, store: &Store, registry: Registry) -> Result<Imported, StoreError> {
        self.store_telling(store, registry, |_| {}).await
    }

    /// Stores as [`Checked::store`] does, and tells `told` how many rows it has stored.
    ///
    /// # Errors
    /// As [`Checked::store`].
    pub async fn store_telling(
        &self,
        store: &Store,
        registry: Registry,
        mut told: impl FnMut(u64),
    ) -> Result<Imported, StoreError> {
        if let Some(bad) = self.bad.first() {
            return Err(StoreError::Invalid(format!("row {} of {}: {}", bad.number, bad.file.display(), bad.reason)));
        }
        let runs = self.stored_runs(registry)?;
        let (now, name) = (self.now, self.name.clone());
        let mut files = Vec::new();
        for file in &self.files {
            files.push(read::rows(file).map_err(|e| StoreError::Invalid(e.to_string()))?);
        }
        let rows = files.into_iter().flatten().zip(1..).map(|((number, row), done)| {
            told(done);
            let row = row.and_then(|row| Record(row).read(now));
            let row = row.map_err(|why| StoreError::Invalid(format!("row {number} is another than before: {why}")))?;
            Ok(ExportRow { run: name.clone().unwrap_or_else(|| row.run.clone()), ..row })
        });
        store.import(&runs, &self.keys, rows).await
    }
}
