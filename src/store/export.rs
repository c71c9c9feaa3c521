//! Pages of the dataset. [`crate::export`] makes files of them.

use super::convert::{from_int, from_json, from_nanos};
use super::error::{Result, unreadable};
use super::{AnswerKind, ExportRow, Store};
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::protocol::Medium;
use crate::run::Source;
use crate::study::ReviewState;

/// How far an export goes. It is fixed when the export begins, so that its row count is known and answers that come
/// meanwhile do not make it chase its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Rows.
    pub rows: u64,
    /// Key of the last row; 0 when there is none.
    pub last: AnswerId,
}

struct Row {
    id: AnswerId,
    run: RunId,
    family: String,
    episode: i64,
    source: String,
    teacher: Option<TeacherId>,
    request: String,
    summary: String,
    view: String,
    kind: String,
    text: String,
    medium: String,
    demonstration: Option<String>,
    rating: Option<f64>,
    request_shown: bool,
    policy_update: i64,
    used_in_update: Option<i64>,
    supersedes: Option<AnswerId>,
    superseded_by: Option<AnswerId>,
    shown_at: Option<i64>,
    active_ms: Option<i64>,
    idle_ms: Option<i64>,
    created_at: i64,
    withdrawn_at: Option<i64>,
    understood_before: Option<bool>,
    understood_after: Option<bool>,
    fulfilled: bool,
    preview_arm: Option<bool>,
    first_text: Option<String>,
    retracted: bool,
    review_state: Option<String>,
    adjudicated: Option<String>,
}

impl Row {
    fn read(self) -> Result<ExportRow> {
        Ok(ExportRow {
            run: self.run,
            family: self.family,
            answer: self.id,
            episode: from_int(self.episode),
            source: match self.source.as_str() {
                "human" => Source::Human,
                "simulated" => Source::Simulated,
                other => return Err(unreadable("an answer's source", other)),
            },
            teacher: self.teacher,
            request: self.request,
            execution: self.summary,
            view: from_json("an execution's view", &self.view)?,
            kind: AnswerKind::parse(&self.kind)?,
            text: self.text,
            medium: Medium::named(&self.medium).ok_or_else(|| unreadable("an answer's medium", &self.medium))?,
            demonstration: self.demonstration.map(|text| from_json("a demonstration", &text)).transpose()?,
            rating: self.rating,
            request_shown: self.request_shown,
            policy_update: from_int(self.policy_update),
            used_in_update: self.used_in_update.map(from_int),
            supersedes: self.supersedes,
            superseded_by: self.superseded_by,
            shown_at: self.shown_at.map(from_nanos),
            active_ms: self.active_ms.map(from_int),
            idle_ms: self.idle_ms.map(from_int),
            created_at: from_nanos(self.created_at),
            withdrawn_at: self.withdrawn_at.map(from_nanos),
            understood_before: self.understood_before,
            understood_after: self.understood_after,
            fulfilled: self.fulfilled,
            preview_arm: self.preview_arm,
            preview_shown: self.first_text.is_some(),
            first_text: self.first_text,
            retracted: self.retracted,
            review_state: self.review_state.map(|state| read_state(&state)).transpose()?,
            adjudicated: self.adjudicated,
            quality_flags: Vec::new(),
        })
    }
}

/// Selects [`Row`]s: an answer of a person belongs to an execution, a simulated one to an episode. The arguments are
/// the condition and the statement's parameters.
macro_rules! select_page {
    ($condition:literal, $($parameter:expr),+) => {
        sqlx::query_as!(
            Row,
            r#"SELECT answers.id AS "id!: AnswerId", answers.run AS "run!: RunId", runs.family AS "family!",
                   answers.episode AS "episode!", answers.source AS "source!", answers.teacher AS "teacher?: TeacherId",
                   coalesce(executions.request, episodes.request) AS "request!: String",
                   coalesce(executions.summary, episodes.summary) AS "summary!: String",
                   coalesce(body.view, episodes.view) AS "view!: String",
                   answers.kind AS "kind!", iif(answers.retracted_at IS NULL, answers.text, '') AS "text!: String",
                   answers.medium AS "medium!",
                   iif(answers.retracted_at IS NULL, answers.demonstration, NULL) AS "demonstration?: String",
                   iif(answers.retracted_at IS NULL, answers.rating, NULL) AS "rating?: f64",
                   answers.request_shown AS "request_shown!: bool",
                   answers.policy_update AS "policy_update!", answers.used_in_update,
                   answers.supersedes AS "supersedes?: AnswerId", answers.superseded_by AS "superseded_by?: AnswerId",
                   answers.shown_at, answers.active_ms, answers.idle_ms, answers.created_at AS "created_at!", answers.withdrawn_at,
                   comprehension.before_understood AS "understood_before?: bool",
                   comprehension.after_understood AS "understood_after?: bool",
                   answers.fulfilled AS "fulfilled!: bool", answers.preview_arm AS "preview_arm?: bool",
                   iif(answers.retracted_at IS NULL, answers.first_text, iif(answers.first_text IS NULL, NULL, ''))
                       AS "first_text?: String",
                   answers.retracted_at IS NOT NULL AS "retracted!: bool", reviews.state AS "review_state?",
                   coalesce(adjudications.text, iif(chosen.retracted_at IS NULL, chosen.text, NULL))
                       AS "adjudicated?: String"
               FROM answers
               LEFT JOIN runs ON runs.id = answers.run
               LEFT JOIN executions ON executions.id = answers.execution
               LEFT JOIN execution_bodies AS body ON body.execution = answers.execution
               LEFT JOIN episodes ON episodes.answer = answers.id
               LEFT JOIN comprehension ON comprehension.answer = answers.id
               LEFT JOIN reviews ON reviews.answer = answers.id
               LEFT JOIN adjudications ON adjudications.execution = answers.execution
               LEFT JOIN answers AS chosen ON chosen.id = adjudications.answer
               WHERE "# + $condition + " ORDER BY answers.id LIMIT ?",
            $($parameter),+
        )
    };
}

fn read_state(state: &str) -> Result<ReviewState> {
    ReviewState::parse(state).ok_or_else(|| unreadable("the state of a review", state))
}

impl Store {
    /// How many rows an export has.
    pub async fn export_count(&self, run: Option<&RunId>) -> Result<u64> {
        Ok(self.export_extent(run).await?.rows)
    }

    /// How many rows an export that begins now has, and where it ends.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when there is no such run.
    pub async fn export_extent(&self, run: Option<&RunId>) -> Result<Extent> {
        // One statement is one snapshot: the count is that of the rows up to the last.
        let (rows, last) = match run {
            Some(run) => {
                self.run(run).await?; // A run without rows and an unknown run are different answers.
                let extent = sqlx::query!(
                    r#"SELECT coalesce((SELECT answers FROM run_counts WHERE run = ?1), 0) AS "rows!: i64",
                           (SELECT max(id) FROM answers WHERE run = ?1) AS "last?: AnswerId""#,
                    run,
                )
                .fetch_one(self.readers())
                .await?;
                (extent.rows, extent.last)
            }
            None => {
                let extent = sqlx::query!(
                    r#"SELECT coalesce(sum(answers), 0) AS "rows!: i64",
                           (SELECT max(id) FROM answers) AS "last?: AnswerId" FROM run_counts"#,
                )
                .fetch_one(self.readers())
                .await?;
                (extent.rows, extent.last)
            }
        };
        Ok(Extent { rows: from_int(rows), last: last.unwrap_or_default() })
    }

    /// How many rows of an export up to `last` stand. It walks through them.
    pub async fn standing_count(&self, run: Option<&RunId>, last: AnswerId) -> Result<u64> {
        let count = match run {
            Some(run) => {
                sqlx::query_scalar!(
                    r#"SELECT count(*) AS "n!: i64" FROM answers LEFT JOIN reviews ON reviews.answer = answers.id
                       WHERE answers.run = ? AND answers.id <= ? AND answers.superseded_by IS NULL
                           AND answers.withdrawn_at IS NULL AND answers.retracted_at IS NULL
                           AND reviews.state IS NOT 'rejected'"#,
                    run,
                    last,
                )
                .fetch_one(self.readers())
                .await?
            }
            None => {
                sqlx::query_scalar!(
                    r#"SELECT count(*) AS "n!: i64" FROM answers LEFT JOIN reviews ON reviews.answer = answers.id
                       WHERE answers.id <= ? AND answers.superseded_by IS NULL AND answers.withdrawn_at IS NULL
                           AND answers.retracted_at IS NULL AND reviews.state IS NOT 'rejected'"#,
                    last,
                )
                .fetch_one(self.readers())
                .await?
            }
        };
        Ok(from_int(count))
    }

    /// A page of the dataset in order of answer key: rows after `after`, at most `limit`. `run: None`: all runs.
    pub async fn export_page(&self, run: Option<&RunId>, after: AnswerId, limit: u32) -> Result<Vec<ExportRow>> {
        let rows = match run {
            Some(run) => {
                select_page!("answers.run = ? AND answers.id > ?", run, after, limit).fetch_all(self.readers()).await?
            }
            None => select_page!("answers.id > ?", after, limit).fetch_all(self.readers()).await?,
        };
        rows.into_iter().map(Row::read).collect()
    }
}
