//! The trainer's side of the answers: taking them, and recording which update used which.

use super::connection::{Durability, from_int, from_json, key_list, to_int, to_json};
use super::error::{Missing, Result, StoreError};
use super::{AnswerKind, Store, TrainerAnswer, UpdateRecord};
use sqlx::{FromRow, Sqlite, Transaction};
use std::collections::HashMap;

#[derive(FromRow)]
struct TrainerRow {
    id: i64,
    episode: i64,
    teacher: Option<i64>,
    request: String,
    trace: String,
    view: String,
    summary: String,
    kind: String,
    text: String,
    used_in_update: Option<i64>,
}

impl TrainerRow {
    fn read(self) -> Result<TrainerAnswer> {
        Ok(TrainerAnswer {
            answer: self.id,
            episode: from_int(self.episode),
            teacher: self.teacher,
            trace: from_json("an execution's trace", &self.trace)?,
            view: from_json("an execution's view", &self.view)?,
            request: self.request,
            summary: self.summary,
            kind: AnswerKind::from_word(&self.kind)?,
            text: self.text,
            used_in_update: self.used_in_update.map(from_int),
        })
    }
}

fn read_all(rows: Vec<TrainerRow>) -> Result<Vec<TrainerAnswer>> {
    rows.into_iter().map(TrainerRow::read).collect()
}

impl Store {
    /// Answers no update has used yet (not superseded, not skipped, and of late ones only those that are learnt from),
    /// oldest first.
    pub async fn unused_answers(&self, run: &str, limit: u32) -> Result<Vec<TrainerAnswer>> {
        let rows = sqlx::query_as(
            "SELECT answers.id, answers.episode, answers.teacher, executions.request, body.trace, body.view, executions.summary,
                 answers.kind, answers.text, answers.used_in_update
             FROM answers
             CROSS JOIN executions ON executions.id = answers.execution
             CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
             WHERE answers.run = ? AND answers.used_in_update IS NULL AND answers.superseded_by IS NULL
                 AND answers.execution IS NOT NULL AND answers.kind <> 'skipped' AND answers.late < 2
             ORDER BY answers.id LIMIT ?",
        )
        .bind(run)
        .bind(limit)
        .fetch_all(self.readers())
        .await?;
        read_all(rows)
    }

    /// What the next update takes in, oldest first: at most `limit` unused answers, descriptions before others. Nothing
    /// when none of them is a description: there would be nothing to learn, and the others wait for the next one.
    pub async fn answers_to_learn_from(&self, run: &str, limit: u32) -> Result<Vec<TrainerAnswer>> {
        let described: Vec<i64> = sqlx::query_scalar(
            "SELECT id FROM answers INDEXED BY answers_to_learn_from
             WHERE run = ? AND used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL
                 AND kind = 'described' AND late < 2
             ORDER BY id LIMIT ?",
        )
        .bind(run)
        .bind(limit)
        .fetch_all(self.readers())
        .await?;
        if described.is_empty() {
            return Ok(Vec::new());
        }
        let mut keys = described;
        for answer in self.unused_answers(run, limit).await? {
            if answer.kind != AnswerKind::Described && keys.len() < limit as usize {
                keys.push(answer.answer);
            }
        }
        keys.sort_unstable();
        self.answers(&keys).await
    }

    /// Answers of people by key, in the order asked for.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when one of them does not exist.
    pub async fn answers(&self, ids: &[i64]) -> Result<Vec<TrainerAnswer>> {
        let rows = sqlx::query_as(
            "SELECT answers.id, answers.episode, answers.teacher, executions.request, body.trace, body.view, executions.summary,
                 answers.kind, answers.text, answers.used_in_update
             FROM answers
             CROSS JOIN executions ON executions.id = answers.execution
             CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
             WHERE answers.id IN (SELECT value FROM json_each(?))",
        )
        .bind(key_list(ids))
        .fetch_all(self.readers())
        .await?;
        let by_key: HashMap<i64, TrainerAnswer> = read_all(rows)?.into_iter().map(|a| (a.answer, a)).collect();
        ids.iter().map(|id| by_key.get(id).cloned().ok_or(StoreError::NotFound("the answer"))).collect()
    }

    /// Records an update and marks its answers as used, in one transaction.
    ///
    /// A resumed run makes the updates after its checkpoint again and records them again: the same update with the
    /// same answers changes nothing (the first `data` stay).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the update is recorded with other answers, or an answer was used in another
    /// update (nothing is written then); [`StoreError::Invalid`] for a skipped answer; [`StoreError::Superseded`] for one
    /// that was taken back after it was read.
    pub async fn record_update(&self, run: &str, record: &UpdateRecord) -> Result<()> {
        self.record_updates(run, std::slice::from_ref(record)).await
    }

    /// Records several updates in one transaction; as [`Store::record_update`].
    pub async fn record_updates(&self, run: &str, records: &[UpdateRecord]) -> Result<()> {
        // Updates without typed answers can be lost to a power cut together with the weights they changed.
        let typed = records.iter().any(|record| !record.answers.is_empty());
        let mut writer = self.writer(if typed { Durability::Full } else { Durability::Normal }).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        for record in records {
            record_one(&mut tx, run, record, now).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Updates recorded after `update`, in order (what a resumed run makes again).
    pub async fn updates_after(&self, run: &str, update: u64) -> Result<Vec<UpdateRecord>> {
        let update = to_int("the update", update)?;
        // One snapshot for both reads.
        let mut tx = self.readers().begin().await?;
        let updates: Vec<(i64, String)> =
            sqlx::query_as("SELECT update_no, data FROM updates WHERE run = ? AND update_no > ? ORDER BY update_no")
                .bind(run)
                .bind(update)
                .fetch_all(&mut *tx)
                .await?;
        let uses: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT used_in_update, id FROM answers
             WHERE run = ? AND used_in_update > ? AND used_position IS NOT NULL
             ORDER BY used_in_update, used_position",
        )
        .bind(run)
        .bind(update)
        .fetch_all(&mut *tx)
        .await?;
        drop(tx);
        let mut answers: HashMap<i64, Vec<i64>> = HashMap::new();
        for (update, answer) in uses {
            answers.entry(update).or_default().push(answer);
        }
        updates
            .into_iter()
            .map(|(update, data)| {
                Ok(UpdateRecord {
                    update: from_int(update),
                    data: from_json("an update", &data)?,
                    answers: answers.remove(&update).unwrap_or_default(),
                })
            })
            .collect()
    }

    /// All answers of people used in updates up to `update`, in order of use (the replay memory).
    pub async fn used_answers(&self, run: &str, update: u64) -> Result<Vec<TrainerAnswer>> {
        let rows = sqlx::query_as(
            "SELECT answers.id, answers.episode, answers.teacher, executions.request, body.trace, body.view, executions.summary,
                 answers.kind, answers.text, answers.used_in_update
             FROM answers
             CROSS JOIN executions ON executions.id = answers.execution
             CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
             WHERE answers.run = ? AND answers.used_in_update <= ? AND answers.used_position IS NOT NULL
             ORDER BY answers.used_in_update, answers.used_position",
        )
        .bind(run)
        .bind(to_int("the update", update)?)
        .fetch_all(self.readers())
        .await?;
        read_all(rows)
    }
}

async fn record_one(tx: &mut Transaction<'_, Sqlite>, run: &str, record: &UpdateRecord, now: i64) -> Result<()> {
    let update = to_int("the update", record.update)?;
    let made = sqlx::query(
        "INSERT INTO updates (run, update_no, data, recorded_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (run, update_no) DO NOTHING",
    )
    .bind(run)
    .bind(update)
    .bind(to_json(&record.data)?)
    .bind(now)
    .execute(&mut **tx)
    .await
    .or_missing("the run")?;
    if made.rows_affected() == 0 {
        let recorded: Vec<i64> = sqlx::query_scalar(
            "SELECT id FROM answers WHERE run = ? AND used_in_update = ? AND used_position IS NOT NULL
             ORDER BY used_position",
        )
        .bind(run)
        .bind(update)
        .fetch_all(&mut **tx)
        .await?;
        if recorded == record.answers {
            return Ok(());
        }
        return Err(StoreError::Conflict(format!("update {update} is recorded already, with other answers")));
    }
    for (position, &answer) in record.answers.iter().enumerate() {
        let marked = sqlx::query(
            "UPDATE answers SET used_in_update = ?1, used_position = ?2, used_at = ?3
             WHERE id = ?4 AND run = ?5 AND used_in_update IS NULL AND execution IS NOT NULL AND kind <> 'skipped'
                 AND withdrawn_at IS NULL",
        )
        .bind(update)
        .bind(position as i64)
        .bind(now)
        .bind(answer)
        .bind(run)
        .execute(&mut **tx)
        .await?;
        if marked.rows_affected() == 0 {
            return Err(why_not(tx, run, answer).await?);
        }
    }
    Ok(())
}

/// Why an answer cannot be marked as used.
async fn why_not(tx: &mut Transaction<'_, Sqlite>, run: &str, answer: i64) -> Result<StoreError> {
    let found: Option<(Option<i64>, String, bool)> = sqlx::query_as(
        "SELECT used_in_update, kind, withdrawn_at IS NOT NULL FROM answers
         WHERE id = ? AND run = ? AND execution IS NOT NULL",
    )
    .bind(answer)
    .bind(run)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(match found {
        None => StoreError::NotFound("the answer"),
        Some((_, _, true)) => StoreError::Superseded,
        Some((Some(update), _, _)) => {
            StoreError::Conflict(format!("answer {answer} was used in update {update} already"))
        }
        Some((None, kind, _)) => StoreError::Invalid(format!("answer {answer} cannot be learnt from: it is {kind}")),
    })
}
