//! Pages of the data set. [`crate::export`] makes files of them, and reads all of them from one [`Store::moment`].

use super::convert::{from_int, from_json, from_nanos, to_nanos};
use super::error::{Result, unreadable};
use super::sql::{query_as, query_scalar, row};
use super::{AnswerKind, ExportRow, Store};
use crate::ids::{AnswerId, RunId, StudyId, TeacherId};
use crate::protocol::Medium;
use crate::run::Source;
use crate::study::ReviewState;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// Which answers a data set has. The default has all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
#[schema(as = ExportFilter)]
pub struct Filter {
    /// Those of this run.
    pub run: Option<RunId>,
    /// Those of the runs of this study.
    pub study: Option<StudyId>,
    /// Those of people, or those of the simulated teacher.
    pub source: Option<Source>,
    /// Those of this kind.
    pub kind: Option<AnswerKind>,
    /// Only those that stand ([`ExportRow::stands`]).
    pub standing: bool,
    /// Those that were stored at this moment or later.
    #[serde(with = "time::serde::rfc3339::option")]
    pub from: Option<OffsetDateTime>,
    /// Those that were stored before this moment.
    #[serde(with = "time::serde::rfc3339::option")]
    pub before: Option<OffsetDateTime>,
    /// Those that are valid ([`ExportRow::is_valid`]), or those that are not.
    pub valid: Option<bool>,
    /// Those that reviewers decided on in this way.
    pub review: Option<ReviewFilter>,
}

/// A reviewer's decision, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewFilter {
    /// Accepted.
    Accepted,
    /// Rejected.
    Rejected,
    /// Nobody has decided.
    Open,
}

impl ReviewFilter {
    /// Every one of them.
    pub const ALL: [ReviewFilter; 3] = [ReviewFilter::Accepted, ReviewFilter::Rejected, ReviewFilter::Open];

    /// Its name in addresses and files.
    pub fn as_str(self) -> &'static str {
        match self {
            ReviewFilter::Accepted => "accepted",
            ReviewFilter::Rejected => "rejected",
            ReviewFilter::Open => "open",
        }
    }
}

impl Filter {
    /// All answers of a run.
    pub fn of_run(run: &RunId) -> Filter {
        Filter { run: Some(run.clone()), ..Filter::default() }
    }

    /// Whether it leaves out nothing but other runs.
    fn is_whole(&self) -> bool {
        Filter { run: None, ..self.clone() } == Filter::default()
    }

    /// The columns' values that statements compare with.
    pub(super) fn parts(&self) -> Parts {
        Parts {
            source: self.source.map(Source::as_str),
            kind: self.kind.map(AnswerKind::as_str),
            from: self.from.map(to_nanos),
            before: self.before.map(to_nanos),
            review: self.review.map(ReviewFilter::as_str),
        }
    }
}

/// The parts of a [`Filter`] as columns have them.
pub(super) struct Parts {
    pub(super) source: Option<&'static str>,
    pub(super) kind: Option<&'static str>,
    pub(super) from: Option<i64>,
    pub(super) before: Option<i64>,
    pub(super) review: Option<&'static str>,
}

fn read_source(source: &str) -> Result<Source> {
    Source::named(source).ok_or_else(|| unreadable("an answer's source", source))
}

/// How far an export goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Rows.
    pub rows: u64,
    /// Key of the last answer that there is; 0 when there is none.
    pub last: AnswerId,
}

row! {
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
        reference: Option<String>,
        success: bool,
        revision: i64,
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
}

impl Row {
    fn read(self) -> Result<ExportRow> {
        Ok(ExportRow {
            run: self.run,
            family: self.family,
            answer: self.id,
            episode: from_int(self.episode),
            source: read_source(&self.source)?,
            teacher: self.teacher,
            request: self.request,
            execution: self.summary,
            view: from_json("an execution's view", &self.view)?,
            reference: self.reference.map(|text| from_json("a reference execution", &text)).transpose()?,
            success: self.success,
            revision: from_int(self.revision),
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

/// Selects [`Row`]s: an answer of a person belongs to an execution, a simulated one to an episode. The arguments are the range of
/// rows and the statement's parameters: run, key of the row before, key of the last row, study, source, kind, standing, from,
/// before, valid, review, and the number of rows.
macro_rules! select_page {
    ($range:literal, $($parameter:expr),+) => {
        query_as!(
            Row,
            r#"SELECT answers.id AS "id!: AnswerId", answers.run AS "run!: RunId", runs.family AS "family!",
                   answers.episode AS "episode!", answers.source AS "source!", answers.teacher AS "teacher?: TeacherId",
                   coalesce(executions.request, episodes.request) AS "request!: String",
                   coalesce(executions.summary, episodes.summary) AS "summary!: String",
                   coalesce(body.view, episodes.view) AS "view!: String",
                   coalesce(body.reference, episodes.reference) AS "reference?: String",
                   coalesce(executions.success, episodes.success) AS "success!: bool",
                   max(1, (SELECT count(*) FROM answers AS earlier WHERE earlier.execution = answers.execution
                       AND earlier.teacher = answers.teacher AND earlier.id <= answers.id)) AS "revision!: i64",
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
               WHERE "# + $range + r#" AND answers.id > ?2 AND answers.id <= ?3
                   AND (?4 IS NULL OR answers.run IN (SELECT run FROM study_arms WHERE study = ?4))
                   AND (?5 IS NULL OR answers.source = ?5) AND (?6 IS NULL OR answers.kind = ?6)
                   AND (?7 = 0 OR (answers.superseded_by IS NULL AND answers.withdrawn_at IS NULL
                       AND answers.retracted_at IS NULL AND reviews.state IS DISTINCT FROM 'rejected'))
                   AND (?8 IS NULL OR answers.created_at >= ?8) AND (?9 IS NULL OR answers.created_at < ?9)
                   AND (?10 IS NULL OR ?10 = iif(answers.kind = 'described' AND answers.superseded_by IS NULL
                       AND answers.withdrawn_at IS NULL AND answers.retracted_at IS NULL
                       AND reviews.state IS DISTINCT FROM 'rejected', 1, 0))
                   AND (?11 IS NULL OR coalesce(reviews.state, 'open') = ?11)
               ORDER BY answers.id LIMIT ?12"#,
            $($parameter),+
        )
    };
}

/// Counts the rows that [`select_page`] selects. The parameters are the same without the number of rows.
macro_rules! count_rows {
    ($range:literal, $($parameter:expr),+) => {
        query_scalar!(
            r#"SELECT count(*) AS "n!: i64" FROM answers LEFT JOIN reviews ON reviews.answer = answers.id
               WHERE "# + $range + r#" AND answers.id > ?2 AND answers.id <= ?3
                   AND (?4 IS NULL OR answers.run IN (SELECT run FROM study_arms WHERE study = ?4))
                   AND (?5 IS NULL OR answers.source = ?5) AND (?6 IS NULL OR answers.kind = ?6)
                   AND (?7 = 0 OR (answers.superseded_by IS NULL AND answers.withdrawn_at IS NULL
                       AND answers.retracted_at IS NULL AND reviews.state IS DISTINCT FROM 'rejected'))
                   AND (?8 IS NULL OR answers.created_at >= ?8) AND (?9 IS NULL OR answers.created_at < ?9)
                   AND (?10 IS NULL OR ?10 = iif(answers.kind = 'described' AND answers.superseded_by IS NULL
                       AND answers.withdrawn_at IS NULL AND answers.retracted_at IS NULL
                       AND reviews.state IS DISTINCT FROM 'rejected', 1, 0))
                   AND (?11 IS NULL OR coalesce(reviews.state, 'open') = ?11)"#,
            $($parameter),+
        )
    };
}

fn read_state(state: &str) -> Result<ReviewState> {
    ReviewState::parse(state).ok_or_else(|| unreadable("the state of a review", state))
}

impl Store {
    /// How many rows an export without filters has.
    pub async fn export_count(&self, run: Option<&RunId>) -> Result<u64> {
        Ok(self.export_extent(&Filter { run: run.cloned(), ..Filter::default() }).await?.rows)
    }

    /// How many rows an export that begins now has, and where it ends. It walks through all answers where the filter leaves out
    /// more than other runs.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when there is no such run or study.
    pub async fn export_extent(&self, filter: &Filter) -> Result<Extent> {
        if let Some(study) = &filter.study {
            self.study(study).await?;
        }
        row! {
            struct ExtentRow {
                rows: i64,
                last: Option<AnswerId>,
            }
        }
        // One statement is one snapshot: the count is that of the rows up to the last.
        let (rows, last) = match &filter.run {
            Some(run) => {
                self.run(run).await?; // A run without rows and an unknown run are different answers.
                let extent = query_as!(
                    ExtentRow,
                    r#"SELECT coalesce((SELECT answers FROM run_counts WHERE run = ?1), 0) AS "rows!: i64",
                           (SELECT max(id) FROM answers WHERE run = ?1) AS "last?: AnswerId""#,
                    run,
                )
                .fetch_one(self.readers())
                .await?;
                (extent.rows, extent.last)
            }
            None => {
                let extent = query_as!(
                    ExtentRow,
                    r#"SELECT coalesce(sum(answers), 0) AS "rows!: i64",
                           (SELECT max(id) FROM answers) AS "last?: AnswerId" FROM run_counts"#,
                )
                .fetch_one(self.readers())
                .await?;
                (extent.rows, extent.last)
            }
        };
        let last = last.unwrap_or_default();
        let rows = if filter.is_whole() { rows } else { self.count_up_to(filter, last).await? };
        Ok(Extent { rows: from_int(rows), last })
    }

    async fn count_up_to(&self, filter: &Filter, last: AnswerId) -> Result<i64> {
        let Filter { run, study, standing, valid, .. } = filter;
        let Parts { source, kind, from, before, review } = filter.parts();
        let first = AnswerId::default();
        let count = match run {
            Some(run) => {
                count_rows!(
                    "answers.run = ?1",
                    run,
                    first,
                    last,
                    study,
                    source,
                    kind,
                    standing,
                    from,
                    before,
                    valid,
                    review
                )
                .fetch_one(self.readers())
                .await?
            }
            None => {
                count_rows!("?1 IS NULL", run, first, last, study, source, kind, standing, from, before, valid, review)
                    .fetch_one(self.readers())
                    .await?
            }
        };
        Ok(count)
    }

    /// A page of the data set in order of answer key: rows after `after` and up to `last`, at most `limit`.
    pub async fn export_rows(
        &self,
        filter: &Filter,
        after: AnswerId,
        last: AnswerId,
        limit: u32,
    ) -> Result<Vec<ExportRow>> {
        let Filter { run, study, standing, valid, .. } = filter;
        let Parts { source, kind, from, before, review } = filter.parts();
        let rows = match run {
            Some(run) => {
                select_page!(
                    "answers.run = ?1",
                    run,
                    after,
                    last,
                    study,
                    source,
                    kind,
                    standing,
                    from,
                    before,
                    valid,
                    review,
                    limit
                )
                .fetch_all(self.readers())
                .await?
            }
            None => {
                select_page!(
                    "?1 IS NULL",
                    run,
                    after,
                    last,
                    study,
                    source,
                    kind,
                    standing,
                    from,
                    before,
                    valid,
                    review,
                    limit
                )
                .fetch_all(self.readers())
                .await?
            }
        };
        rows.into_iter().map(Row::read).collect()
    }

    /// A page of all answers, or of those of a run: rows after `after`, at most `limit`.
    pub async fn export_page(&self, run: Option<&RunId>, after: AnswerId, limit: u32) -> Result<Vec<ExportRow>> {
        let filter = Filter { run: run.cloned(), ..Filter::default() };
        self.export_rows(&filter, after, AnswerId(i64::MAX), limit).await
    }
}
