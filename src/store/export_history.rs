//! Pages of the data set's other tables: episodes, points of curves, and updates.

use super::Store;
use super::convert::{from_int, from_json, from_nanos, to_int};
use super::error::Result;
use super::export::{Filter, Parts};
use super::sql::{query_as, row};
use crate::ids::RunId;
use crate::run::Source;
use time::OffsetDateTime;

/// An episode as the data set has it.
#[derive(Clone, Debug)]
pub struct ExportEpisode {
    /// Key of the row among those of its source.
    pub key: i64,
    /// Run.
    pub run: RunId,
    /// Number of the episode within the run.
    pub episode: u64,
    /// Whom it went to.
    pub source: Source,
    /// Request d*.
    pub request: String,
    /// One plain line of the execution.
    pub execution: String,
    /// The view of it.
    pub view: serde_json::Value,
    /// The gold execution.
    pub reference: Option<crate::run::Reference>,
    /// Whether it performs as well as that.
    pub success: bool,
    /// Update of the policy that made it, where it is known.
    pub policy_update: Option<u64>,
    /// Updates that learned from answers about it.
    pub used_in_updates: Vec<i64>,
    /// Answers about it.
    pub answers: u64,
    /// The candidates of the simulated teacher, each with whether it qualified.
    pub candidates: Option<serde_json::Value>,
    /// When it was offered or recorded.
    pub recorded_at: OffsetDateTime,
}

/// Something that happened in a run, as the data set has it.
#[derive(Clone, Debug)]
pub struct ExportEvent {
    /// Run.
    pub run: RunId,
    /// Update after which it happened.
    pub update: u64,
    /// When it was recorded; the points of curves have the training time alone.
    pub at: Option<OffsetDateTime>,
    /// Episodes by then.
    pub episodes: Option<u64>,
    /// Descriptions by then.
    pub descriptions: Option<u64>,
    /// Training seconds by then.
    pub seconds: Option<f64>,
    /// Its readings.
    pub data: serde_json::Value,
}

impl Store {
    /// A page of the episodes of one source, after a key: executions that people were shown, or episodes that were recorded of the
    /// simulated teacher. Of the filter, run, study and dates count.
    pub async fn export_episodes(
        &self,
        filter: &Filter,
        source: Source,
        after: i64,
        limit: u32,
    ) -> Result<Vec<ExportEpisode>> {
        let Filter { run, study, .. } = filter;
        let Parts { from, before, .. } = filter.parts();
        row! {
            struct Found {
                key: i64,
                run: RunId,
                episode: i64,
                request: String,
                summary: String,
                view: String,
                reference: Option<String>,
                success: bool,
                policy_update: Option<i64>,
                used: Option<String>,
                answers: i64,
                candidates: Option<String>,
                recorded_at: i64,
            }
        }
        let found = match source {
            Source::Human => {
                query_as!(
                    Found,
                    r#"SELECT executions.id AS "key!: i64", executions.run AS "run!: RunId",
                           executions.episode AS "episode!", executions.request AS "request!",
                           executions.summary AS "summary!", body.view AS "view!", body.reference,
                           executions.success AS "success!: bool", executions.policy_update AS "policy_update?: i64",
                           (SELECT json_group_array(used_in_update) FROM answers
                               WHERE answers.execution = executions.id AND used_in_update IS NOT NULL) AS "used?: String",
                           (SELECT count(*) FROM answers WHERE answers.execution = executions.id) AS "answers!: i64",
                           NULL AS "candidates?: String", executions.offered_at AS "recorded_at!"
                       FROM executions CROSS JOIN execution_bodies AS body ON body.execution = executions.id
                       WHERE executions.id > ?1 AND executions.shown = 1 AND (?2 IS NULL OR executions.run = ?2)
                           AND (?3 IS NULL OR executions.run IN (SELECT run FROM study_arms WHERE study = ?3))
                           AND (?4 IS NULL OR executions.offered_at >= ?4) AND (?5 IS NULL OR executions.offered_at < ?5)
                       ORDER BY executions.id LIMIT ?6"#,
                    after,
                    run,
                    study,
                    from,
                    before,
                    limit,
                )
                .fetch_all(self.readers())
                .await?
            }
            Source::Simulated => {
                query_as!(
                    Found,
                    r#"SELECT episodes.id AS "key!: i64", episodes.run AS "run!: RunId", episodes.episode AS "episode!",
                           episodes.request AS "request!", episodes.summary AS "summary!", episodes.view AS "view!",
                           episodes.reference, episodes.success AS "success!: bool",
                           answers.policy_update AS "policy_update?: i64",
                           iif(episodes.update_no IS NULL, NULL, json_array(episodes.update_no)) AS "used?: String",
                           episodes.answer IS NOT NULL AS "answers!: i64", episodes.candidates AS "candidates?: String",
                           episodes.recorded_at AS "recorded_at!"
                       FROM episodes LEFT JOIN answers ON answers.id = episodes.answer
                       WHERE episodes.id > ?1 AND (?2 IS NULL OR episodes.run = ?2)
                           AND (?3 IS NULL OR episodes.run IN (SELECT run FROM study_arms WHERE study = ?3))
                           AND (?4 IS NULL OR episodes.recorded_at >= ?4) AND (?5 IS NULL OR episodes.recorded_at < ?5)
                       ORDER BY episodes.id LIMIT ?6"#,
                    after,
                    run,
                    study,
                    from,
                    before,
                    limit,
                )
                .fetch_all(self.readers())
                .await?
            }
        };
        let read = |found: Found| {
            let mut used: Vec<i64> = match found.used {
                Some(text) => from_json("the updates of an episode", &text)?,
                None => Vec::new(),
            };
            used.sort_unstable();
            used.dedup();
            Ok(ExportEpisode {
                key: found.key,
                run: found.run,
                episode: from_int(found.episode),
                source,
                request: found.request,
                execution: found.summary,
                view: from_json("an execution's view", &found.view)?,
                reference: found.reference.map(|text| from_json("a reference execution", &text)).transpose()?,
                success: found.success,
                policy_update: found.policy_update.map(from_int),
                used_in_updates: used,
                answers: from_int(found.answers),
                candidates: found.candidates.map(|text| from_json("an episode's candidates", &text)).transpose()?,
                recorded_at: from_nanos(found.recorded_at),
            })
        };
        found.into_iter().map(read).collect()
    }

    /// A page of the points of curves, after the point of a run at an update. Of the filter, run and study count.
    pub async fn export_points(
        &self,
        filter: &Filter,
        (run, update): (&str, Option<u64>),
        limit: u32,
    ) -> Result<Vec<ExportEvent>> {
        let (only, study) = (&filter.run, &filter.study);
        let update = update.map_or(Ok(-1), |update| to_int("the update", update))?;
        row! {
            struct Row {
                run: RunId,
                update_no: i64,
                episodes: i64,
                descriptions: i64,
                seconds: f64,
                data: String,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT run AS "run!: RunId", update_no AS "update_no!", episodes AS "episodes!",
                   descriptions AS "descriptions!", seconds AS "seconds!: f64",
                   CAST(json_object('loss', loss, 'training_success', training_success,
                       'training_success_total', training_success_total, 'valid_share', valid_share,
                       'gold_share', gold_share, 'validation', validation, 'validation_n', validation_n,
                       'validation_low', validation_low, 'validation_high', validation_high,
                       'validation_smoothed', validation_smoothed, 'lambda', lambda) AS TEXT) AS "data!: String"
               FROM points WHERE (run, update_no) > (?1, ?2) AND (?3 IS NULL OR run = ?3)
                   AND (?4 IS NULL OR run IN (SELECT run FROM study_arms WHERE study = ?4))
               ORDER BY run, update_no LIMIT ?5"#,
            run,
            update,
            only,
            study,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            events.push(ExportEvent {
                run: row.run,
                update: from_int(row.update_no),
                at: None,
                episodes: Some(from_int(row.episodes)),
                descriptions: Some(from_int(row.descriptions)),
                seconds: Some(row.seconds),
                data: from_json("the readings of a point", &row.data)?,
            });
        }
        Ok(events)
    }

    /// A page of recorded updates, after the one of a run with a number. Of the filter, run and study count.
    pub async fn export_updates(
        &self,
        filter: &Filter,
        (run, update): (&str, Option<u64>),
        limit: u32,
    ) -> Result<Vec<ExportEvent>> {
        let (only, study) = (&filter.run, &filter.study);
        let update = update.map_or(Ok(-1), |update| to_int("the update", update))?;
        row! {
            struct Row {
                run: RunId,
                update_no: i64,
                data: String,
                recorded_at: i64,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT run AS "run!: RunId", update_no AS "update_no!", data AS "data!", recorded_at AS "recorded_at!"
               FROM updates WHERE (run, update_no) > (?1, ?2) AND (?3 IS NULL OR run = ?3)
                   AND (?4 IS NULL OR run IN (SELECT run FROM study_arms WHERE study = ?4))
               ORDER BY run, update_no LIMIT ?5"#,
            run,
            update,
            only,
            study,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            events.push(ExportEvent {
                run: row.run,
                update: from_int(row.update_no),
                at: Some(from_nanos(row.recorded_at)),
                episodes: None,
                descriptions: None,
                seconds: None,
                data: from_json("the record of an update", &row.data)?,
            });
        }
        Ok(events)
    }
}
