//! Pages of the dataset. [`crate::export`] makes files of them.

use super::connection::{from_int, from_json, from_nanos};
use super::error::{Result, unreadable};
use super::{AnswerKind, ExportRow, Store};
use crate::run::Source;
use sqlx::FromRow;

/// How far an export goes: fixed when it begins, so that its row count is known and what is typed meanwhile does not
/// make it chase its own end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Rows.
    pub rows: u64,
    /// Key of the last row; 0 when there is none.
    pub last: i64,
}

#[derive(FromRow)]
struct Row {
    id: i64,
    run: String,
    family: String,
    episode: i64,
    source: String,
    teacher: Option<i64>,
    request: String,
    summary: String,
    view: String,
    kind: String,
    text: String,
    request_shown: bool,
    policy_update: i64,
    used_in_update: Option<i64>,
    supersedes: Option<i64>,
    superseded_by: Option<i64>,
    shown_at: Option<i64>,
    active_ms: Option<i64>,
    created_at: i64,
    withdrawn_at: Option<i64>,
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
            kind: AnswerKind::from_word(&self.kind)?,
            text: self.text,
            request_shown: self.request_shown,
            policy_update: from_int(self.policy_update),
            used_in_update: self.used_in_update.map(from_int),
            supersedes: self.supersedes,
            superseded_by: self.superseded_by,
            shown_at: self.shown_at.map(from_nanos),
            active_ms: self.active_ms.map(from_int),
            created_at: from_nanos(self.created_at),
            withdrawn_at: self.withdrawn_at.map(from_nanos),
        })
    }
}

/// The columns of [`Row`]: what a person answered hangs on an execution, what was simulated on an episode.
macro_rules! page_of {
    ($condition:literal) => {
        concat!(
            "SELECT answers.id, answers.run, runs.family, answers.episode, answers.source, answers.teacher,
                 coalesce(executions.request, episodes.request) AS request,
                 coalesce(executions.summary, episodes.summary) AS summary,
                 coalesce(body.view, episodes.view) AS view,
                 answers.kind, answers.text, answers.request_shown, answers.policy_update, answers.used_in_update,
                 answers.supersedes, answers.superseded_by, answers.shown_at, answers.active_ms, answers.created_at,
                 answers.withdrawn_at
             FROM answers
             LEFT JOIN runs ON runs.id = answers.run
             LEFT JOIN executions ON executions.id = answers.execution
             LEFT JOIN execution_bodies AS body ON body.execution = answers.execution
             LEFT JOIN episodes ON episodes.answer = answers.id
             WHERE ",
            $condition,
            " ORDER BY answers.id LIMIT ?"
        )
    };
}

impl Store {
    /// A page of the dataset in order of answer key: rows after `after`, at most `limit`. `run: None`: all runs.
    pub async fn export_page(&self, run: Option<&str>, after: i64, limit: u32) -> Result<Vec<ExportRow>> {
        let rows: Vec<Row> = match run {
            Some(run) => {
                sqlx::query_as(page_of!("answers.run = ? AND answers.id > ?"))
                    .bind(run)
                    .bind(after)
                    .bind(limit)
                    .fetch_all(self.readers())
                    .await?
            }
            None => {
                sqlx::query_as(page_of!("answers.id > ?")).bind(after).bind(limit).fetch_all(self.readers()).await?
            }
        };
        rows.into_iter().map(Row::read).collect()
    }
}
