//! Answers that come from a data set: runs, executions, teachers and answers in one transaction, all or none.
//!
//! Runs that were brought in are not active, and the trainer has no traces of their executions: they are there to be read, reviewed
//! and exported.

use super::connection::Durability;
use super::convert::{to_int, to_json, to_nanos};
use super::error::{Result, StoreError};
use super::sql::{Transaction, query, query_scalar};
use super::{ExportRow, MadeBy, Run, Store};
use crate::ids::{AnswerId, ExecutionId, RunId, TeacherId};
use crate::run::Source;
use std::collections::{HashMap, HashSet};

/// The numbers of what was brought in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Answers.
    pub answers: u64,
    /// Runs.
    pub runs: u64,
    /// Teachers.
    pub teachers: u64,
}

/// The keys in the data set of what was stored already, with those in the store.
#[derive(Default)]
struct Known {
    teachers: HashMap<TeacherId, TeacherId>,
    /// By run, episode and update of the policy.
    executions: HashMap<(RunId, u64, u64), ExecutionId>,
    /// Episodes of which there is an execution that is not withdrawn.
    episodes: HashSet<(RunId, u64)>,
}

impl Store {
    /// Stores runs and their answers under new keys. `rows` come in the order of `keys`, the keys of the answers in the data set;
    /// supersessions follow to the new ones. Flags of quality and a study's texts are no part of it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when there is a run of one of the names, and the first error among the rows; nothing is stored then.
    pub async fn import(
        &self,
        runs: &[Run],
        keys: &[AnswerId],
        rows: impl Iterator<Item = Result<ExportRow>>,
    ) -> Result<Imported> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        // An answer may be corrected by one that comes after it.
        tx.defer_foreign_keys().await?;
        for run in runs {
            insert_run(&mut tx, run).await?;
        }
        let last =
            query_scalar!(r#"SELECT coalesce(max(id), 0) AS "last!: i64" FROM answers"#).fetch_one(&mut tx).await?;
        let new: HashMap<AnswerId, AnswerId> =
            keys.iter().zip(last + 1..).map(|(old, new)| (*old, AnswerId(new))).collect();
        let mut known = Known::default();
        let mut answers = 0;
        for (row, key) in rows.zip(last + 1..) {
            insert(&mut tx, &mut known, &new, AnswerId(key), row?).await?;
            answers += 1;
        }
        tx.answers_were_numbered().await?;
        tx.commit().await?;
        Ok(Imported { answers, runs: runs.len() as u64, teachers: known.teachers.len() as u64 })
    }
}

async fn insert_run(tx: &mut Transaction<'_>, run: &Run) -> Result<()> {
    let (config, teacher) = (to_json(&run.config)?, to_json(&run.teacher)?);
    let (seed, created_at) = (run.seed as i64, to_nanos(run.created_at));
    let made = query!(
        "INSERT INTO runs (id, family, preset, config, seed, teacher, active, created_at)
         VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
        run.id,
        run.family,
        run.preset,
        config,
        seed,
        teacher,
        created_at,
    )
    .execute(&mut *tx)
    .await?;
    if made.rows_affected() == 0 {
        return Err(StoreError::Conflict(format!("there is a run named {:?} already", run.id)));
    }
    let made_by = MadeBy::Import.as_str();
    query!("INSERT INTO run_labels (run, made_by) VALUES (?, ?)", run.id, made_by).execute(&mut *tx).await?;
    Ok(())
}

/// Stores one answer with what it is about.
async fn insert(
    tx: &mut Transaction<'_>,
    known: &mut Known,
    keys: &HashMap<AnswerId, AnswerId>,
    key: AnswerId,
    row: ExportRow,
) -> Result<()> {
    let (episode, policy) = (to_int("the episode", row.episode)?, to_int("the update", row.policy_update)?);
    let used = row.used_in_update.map(|update| to_int("the update", update)).transpose()?;
    let created_at = to_nanos(row.created_at);
    let (shown_at, withdrawn_at) = (row.shown_at.map(to_nanos), row.withdrawn_at.map(to_nanos));
    let (view, reference) = (to_json(&row.view)?, row.reference.as_ref().map(to_json).transpose()?);
    let human = row.source == Source::Human;
    let teacher = match row.teacher.filter(|_| human) {
        Some(teacher) => Some(teacher_of(tx, known, teacher, created_at).await?),
        None => None,
    };
    let place = (row.run.clone(), row.episode, row.policy_update);
    let execution = match known.executions.get(&place).copied() {
        _ if !human => None,
        Some(execution) => Some(execution),
        None => {
            // An episode that was made again has a withdrawn execution beside the one that took its place.
            let first = known.episodes.insert((row.run.clone(), row.episode));
            let state = if first { "done" } else { "withdrawn" };
            let offered_at = shown_at.unwrap_or(created_at);
            let execution = query_scalar!(
                r#"INSERT INTO executions (run, episode, policy_update, wanted, given, state, shown, success, request,
                       summary, offered_at)
                   VALUES (?, ?, ?, 1, 1, ?, 1, ?, ?, ?, ?) RETURNING id AS "id!: ExecutionId""#,
                row.run,
                episode,
                policy,
                state,
                row.success,
                row.request,
                row.execution,
                offered_at,
            )
            .fetch_one(&mut *tx)
            .await?;
            query!(
                "INSERT INTO execution_bodies (execution, view, trace, reference) VALUES (?, ?, 'null', ?)",
                execution,
                view,
                reference,
            )
            .execute(&mut *tx)
            .await?;
            known.executions.insert(place, execution);
            Some(execution)
        }
    };
    let client_key = human.then(|| format!("imported-{key}"));
    let demonstration = row.demonstration.as_ref().map(to_json).transpose()?;
    let (active_ms, idle_ms) = (row.active_ms.map(|ms| ms as i64), row.idle_ms.map(|ms| ms as i64));
    let of = |old: Option<AnswerId>| old.and_then(|old| keys.get(&old).copied());
    let (supersedes, superseded_by) = (of(row.supersedes), of(row.superseded_by));
    let (kind, medium, source) = (row.kind.as_str(), row.medium.word(), row.source.as_str());
    let retracted_at = row.retracted.then_some(created_at);
    query!(
        "INSERT INTO answers (id, run, episode, source, execution, teacher, client_key, kind, text, request_shown,
             policy_update, shown_at, active_ms, idle_ms, created_at, supersedes, superseded_by, used_in_update,
             withdrawn_at, fulfilled, preview_arm, first_text, medium, demonstration, rating, retracted_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        key,
        row.run,
        episode,
        source,
        execution,
        teacher,
        client_key,
        kind,
        row.text,
        row.request_shown,
        policy,
        shown_at,
        active_ms,
        idle_ms,
        created_at,
        supersedes,
        superseded_by,
        used,
        withdrawn_at,
        row.fulfilled,
        row.preview_arm,
        row.first_text,
        medium,
        demonstration,
        row.rating,
        retracted_at,
    )
    .execute(&mut *tx)
    .await?;
    if !human {
        query!(
            "INSERT INTO episodes (run, episode, update_no, answer, success, recorded_at, request, summary, candidates,
                 view, reference)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, '[]', ?, ?)",
            row.run,
            episode,
            used,
            key,
            row.success,
            created_at,
            row.request,
            row.execution,
            view,
            reference,
        )
        .execute(&mut *tx)
        .await?;
    }
    if let (Some(before), Some(teacher)) = (row.understood_before, teacher) {
        let update = used.unwrap_or(policy);
        query!(
            "INSERT INTO comprehension (answer, run, teacher, update_no, episodes, descriptions, seconds, told_before,
                 before_understood, before_summary, before_view, after_understood)
             VALUES (?, ?, ?, ?, 0, 0, 0.0, 0, ?, '', '{}', ?)",
            key,
            row.run,
            teacher,
            update,
            before,
            row.understood_after,
        )
        .execute(&mut *tx)
        .await?;
    }
    if let Some(state) = row.review_state {
        let state = state.as_str();
        query!(
            "INSERT INTO reviews (answer, state, reason, reviewer, reviewed_at) VALUES (?, ?, '', 'data set', ?)",
            key,
            state,
            created_at,
        )
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// The teacher under whose number somebody is in the data set. Nobody has their token.
async fn teacher_of(
    tx: &mut Transaction<'_>,
    known: &mut Known,
    teacher: TeacherId,
    created_at: i64,
) -> Result<TeacherId> {
    if let Some(known) = known.teachers.get(&teacher) {
        return Ok(*known);
    }
    let new = query_scalar!(
        r#"INSERT INTO teachers (token_hash, seen_guide, answered, created_at) VALUES (randomblob(32), 1, 1, ?)
           RETURNING id AS "id!: TeacherId""#,
        created_at,
    )
    .fetch_one(&mut *tx)
    .await?;
    known.teachers.insert(teacher, new);
    Ok(new)
}
