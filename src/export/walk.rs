//! The walk through the rows of a table, page by page, in one snapshot of the store.

use super::ExportError;
use super::flags::Flags;
use super::schema::{DESCRIPTIONS, EPISODES, EVENTS, SCHEMA_VERSION};
use super::table::{Cell, Column, Row};
use crate::ids::{AnswerId, RunId};
use crate::registry::{AnyFamily, Registry, outside};
use crate::run::{Reference, Source};
use crate::store::{AnswerKind, ExportEpisode, ExportEvent, ExportRow, Extent, Filter, Run, Store};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// Rows read at once.
const PAGE: u32 = 500;

/// The language that the pages ask for descriptions in.
const LANGUAGE: &str = "en";

/// The split that agents are taught on.
const SPLIT: &str = "train";

/// A table of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each answer.
    Descriptions,
    /// A row for each execution that somebody was asked about.
    Episodes,
    /// Points of curves and records of updates.
    Events,
}

impl Table {
    /// All of them, the most important first.
    pub const ALL: [Table; 3] = [Table::Descriptions, Table::Episodes, Table::Events];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Table::Descriptions => "descriptions",
            Table::Episodes => "episodes",
            Table::Events => "events",
        }
    }

    /// Its columns.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Table::Descriptions => &DESCRIPTIONS,
            Table::Episodes => &EPISODES,
            Table::Events => &EVENTS,
        }
    }
}

/// The facts about a run that its rows have.
#[derive(Clone, Debug)]
pub(super) struct RunFacts {
    pub(super) run: Run,
    pub(super) config_hash: String,
    pub(super) study: Option<String>,
}

/// One moment of a store, with what of it is exported. All tables of a data set come from one.
pub struct Snapshot {
    pub(super) store: Store,
    families: Registry,
    pub(super) filter: Filter,
    extent: Extent,
    runs: HashMap<RunId, RunFacts>,
    flags: Flags,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("filter", &self.filter).field("extent", &self.extent).finish_non_exhaustive()
    }
}

/// Where the walk through a table is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Descriptions(AnswerId),
    Episodes(Source, i64),
    Points(String, Option<u64>),
    Updates(String, Option<u64>),
    End,
}

impl Place {
    /// The beginning of a table.
    pub(super) fn begin(table: Table) -> Place {
        match table {
            Table::Descriptions => Place::Descriptions(AnswerId::default()),
            Table::Episodes => Place::Episodes(Source::Human, 0),
            Table::Events => Place::Points(String::new(), None),
        }
    }
}

/// SHA-256 of a run's configuration, as JSON with sorted keys.
pub fn config_hash(config: &Value) -> String {
    hex::encode(Sha256::digest(config.to_string().as_bytes()))
}

impl Snapshot {
    /// The moment now.
    ///
    /// # Errors
    /// When there is no such run or study, or the store cannot be read.
    pub async fn take(store: &Store, families: Registry, filter: Filter) -> Result<Snapshot, ExportError> {
        let store = store.moment().await?;
        let extent = match store.export_extent(&filter).await {
            Ok(extent) => extent,
            Err(error) => {
                // A connection that is only dropped closes in its own time, and leaves the log's files when the program ends first.
                store.end_moment().await;
                return Err(error.into());
            }
        };
        Ok(Snapshot { store, families, filter, extent, runs: HashMap::new(), flags: Flags::default() })
    }

    /// Lets go of the store, when everything has been read.
    pub(super) async fn end(&self) {
        self.store.end_moment().await;
    }

    /// How many descriptions it has.
    pub fn descriptions(&self) -> u64 {
        self.extent.rows
    }

    /// The runs whose rows were met so far, by name.
    pub(super) fn met(&self) -> Vec<&RunFacts> {
        let mut met: Vec<&RunFacts> = self.runs.values().collect();
        met.sort_by(|a, b| a.run.id.cmp(&b.run.id));
        met
    }

    /// The facts about a run, which is met from now on.
    pub(super) async fn facts(&mut self, run: &RunId) -> Result<RunFacts, ExportError> {
        if let Some(facts) = self.runs.get(run) {
            return Ok(facts.clone());
        }
        let found = self.store.run(run).await?;
        let study = self.store.study_of_run(run).await?.map(String::from);
        let facts = RunFacts { config_hash: config_hash(&found.config), run: found, study };
        self.runs.insert(run.clone(), facts.clone());
        Ok(facts)
    }

    /// The answers after a place, with their flags.
    pub(super) async fn answers(&mut self, place: &mut Place) -> Result<Option<Vec<ExportRow>>, ExportError> {
        let Place::Descriptions(after) = *place else { return Ok(None) };
        if after >= self.extent.last {
            *place = Place::End;
            return Ok(None);
        }
        let mut rows = self.store.export_rows(&self.filter, after, self.extent.last, PAGE).await?;
        let ended = rows.len() < PAGE as usize;
        *place = match rows.last() {
            Some(row) if !ended => Place::Descriptions(row.answer),
            _ => Place::End,
        };
        self.flags.fill(&self.store, &mut rows).await?;
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    /// The next rows of a table; none at its end.
    pub(super) async fn next(&mut self, place: &mut Place) -> Result<Option<Vec<Row>>, ExportError> {
        loop {
            let rows = match place.clone() {
                Place::Descriptions(_) => {
                    let Some(answers) = self.answers(place).await? else { return Ok(None) };
                    let mut rows = Vec::with_capacity(answers.len());
                    for answer in answers {
                        let facts = self.facts(&answer.run).await?;
                        rows.push(self.description(answer, &facts));
                    }
                    rows
                }
                Place::Episodes(source, after) => {
                    let wanted = self.filter.source.is_none_or(|only| only == source);
                    let found = if wanted {
                        self.store.export_episodes(&self.filter, source, after, PAGE).await?
                    } else {
                        Vec::new()
                    };
                    *place = match (found.last(), source) {
                        (Some(last), _) => Place::Episodes(source, last.key),
                        (None, Source::Human) => Place::Episodes(Source::Simulated, 0),
                        (None, Source::Simulated) => Place::End,
                    };
                    let mut rows = Vec::with_capacity(found.len());
                    for episode in found {
                        let facts = self.facts(&episode.run).await?;
                        rows.push(self.episode(episode, &facts));
                    }
                    rows
                }
                Place::Points(run, update) => {
                    let found = self.store.export_points(&self.filter, (&run, update), PAGE).await?;
                    *place = match found.last() {
                        Some(last) => Place::Points(last.run.to_string(), Some(last.update)),
                        None => Place::Updates(String::new(), None),
                    };
                    found.into_iter().map(|event| event_row("point", event)).collect()
                }
                Place::Updates(run, update) => {
                    let found = self.store.export_updates(&self.filter, (&run, update), PAGE).await?;
                    *place = match found.last() {
                        Some(last) => Place::Updates(last.run.to_string(), Some(last.update)),
                        None => Place::End,
                    };
                    found.into_iter().map(|event| event_row("update", event)).collect()
                }
                Place::End => return Ok(None),
            };
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
    }

    /// The family of a name; the one of outside runs among them.
    fn family(&self, name: &str) -> Option<&'static dyn AnyFamily> {
        self.families.family(name).or_else(|| outside(name))
    }

    /// The examples of a training form in an answer.
    pub(super) fn examples(&self, form: &str, row: &ExportRow) -> Vec<Value> {
        let Some(family) = self.family(&row.family).filter(|_| row.is_valid()) else { return Vec::new() };
        let words = if row.demonstration.is_some() { &row.request } else { &row.text };
        if row.rating.is_some() || words.is_empty() {
            return Vec::new();
        }
        if form == super::forms::PAIRS {
            let Ok(execution) = family.render_text(&row.view) else { return Vec::new() };
            return vec![json!({
                "description_id": row.answer, "request": row.request, "execution": execution, "description": row.text,
                "success": row.success,
            })];
        }
        if family.training_form().is_none_or(|known| known.name != form) {
            return Vec::new();
        }
        family.training_examples(crate::family::dataset::TaughtExample {
            key: row.answer.0,
            words,
            view: &row.view,
            execution: &row.execution,
            demonstration: row.demonstration.as_ref(),
        })
    }

    /// Start, outputs, line and outputs of the reference, and the reference itself.
    fn parts(&self, family: &str, view: &Value, reference: Option<Reference>) -> [Cell; 5] {
        let family = self.family(family);
        let parts = family.map(|family| family.parts(view)).unwrap_or_default();
        let known = reference.as_ref().zip(family);
        let outputs = known.map(|(reference, family)| family.outputs(&reference.execution)).unwrap_or_default();
        let line = reference.as_ref().map(|reference| reference.summary.clone());
        let whole = reference.map(|reference| reference.execution);
        [parts.start.into(), parts.outputs.into(), line.into(), outputs.into(), whole.into()]
    }

    fn description(&self, row: ExportRow, facts: &RunFacts) -> Row {
        let valid = row.is_valid();
        let [start, outputs, reference, reference_outputs, whole] = self.parts(&row.family, &row.view, row.reference);
        let skipped = row.kind == AnswerKind::Skipped;
        let (description, reason) = if skipped { (None, Some(row.text)) } else { (Some(row.text), None) };
        let flags = row.quality_flags.iter().map(|flag| flag.as_str().to_owned()).collect();
        vec![
            row.answer.0.into(),
            row.episode.into(),
            String::from(row.run).into(),
            row.family.into(),
            row.request.into(),
            start,
            row.execution.into(),
            outputs,
            reference,
            reference_outputs,
            row.success.into(),
            description.into(),
            row.kind.as_str().into(),
            reason.into(),
            valid.into(),
            row.medium.word().into(),
            row.source.as_str().into(),
            row.teacher.map(|teacher| teacher.0).into(),
            LANGUAGE.into(),
            row.created_at.into(),
            row.active_ms.into(),
            row.idle_ms.into(),
            row.revision.into(),
            row.superseded_by.map(|answer| answer.0).into(),
            row.preview_shown.into(),
            row.policy_update.into(),
            Cell::Integers(row.used_in_update.into_iter().map(|update| update as i64).collect()),
            Cell::Words(flags),
            SPLIT.into(),
            facts.run.preset.as_str().into(),
            facts.config_hash.as_str().into(),
            SCHEMA_VERSION.into(),
            facts.study.clone().into(),
            row.view.into(),
            row.demonstration.into(),
            row.rating.into(),
            row.request_shown.into(),
            row.supersedes.map(|answer| answer.0).into(),
            row.shown_at.into(),
            row.withdrawn_at.into(),
            row.understood_before.into(),
            row.understood_after.into(),
            row.fulfilled.into(),
            row.preview_arm.into(),
            row.first_text.into(),
            row.retracted.into(),
            row.review_state.map(|state| state.as_str()).into(),
            row.adjudicated.into(),
            whole,
            facts.run.seed.to_string().into(),
        ]
    }

    fn episode(&self, row: ExportEpisode, facts: &RunFacts) -> Row {
        let [start, outputs, reference, reference_outputs, _] = self.parts(&facts.run.family, &row.view, row.reference);
        vec![
            row.episode.into(),
            String::from(row.run).into(),
            facts.run.family.as_str().into(),
            row.request.into(),
            start,
            row.execution.into(),
            outputs,
            reference,
            reference_outputs,
            row.success.into(),
            row.source.as_str().into(),
            row.answers.into(),
            row.candidates.into(),
            row.recorded_at.into(),
            row.policy_update.into(),
            Cell::Integers(row.used_in_updates),
            SPLIT.into(),
            facts.run.preset.as_str().into(),
            facts.config_hash.as_str().into(),
            SCHEMA_VERSION.into(),
            row.view.into(),
        ]
    }
}

fn event_row(event: &str, row: ExportEvent) -> Row {
    vec![
        String::from(row.run).into(),
        event.into(),
        row.update.into(),
        row.at.into(),
        row.episodes.into(),
        row.descriptions.into(),
        row.seconds.into(),
        // An empty record is a value, too.
        Cell::Json(row.data),
        SCHEMA_VERSION.into(),
    ]
}
