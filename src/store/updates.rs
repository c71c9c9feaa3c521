//! Answers as the trainer takes them, and the record of which update used which.

use super::connection::Durability;
use super::convert::{from_int, from_json, key_list, to_int, to_json};
use super::error::{Missing, Result, StoreError};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{AnswerKind, Response, Store, TrainerAnswer, UpdateRecord};
use crate::ids::{AnswerId, RunId, TeacherId};
use std::collections::HashMap;

row! {
    struct TrainerRow {
        id: AnswerId,
        episode: i64,
        teacher: Option<TeacherId>,
        request: String,
        trace: String,
        view: String,
        summary: String,
        kind: String,
        text: String,
        demonstration: Option<String>,
        rating: Option<f64>,
        used_in_update: Option<i64>,
    }
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
            kind: AnswerKind::parse(&self.kind)?,
            text: self.text,
            response: Response::read(self.demonstration, self.rating)?,
            used_in_update: self.used_in_update.map(from_int),
        })
    }
}

/// Selects [`TrainerRow`]s. The arguments are the condition with what follows it, and the statement's parameters.
macro_rules! select_answers {
    ($condition:literal, $($parameter:expr),+) => {
        query_as!(
            TrainerRow,
            r#"SELECT answers.id AS "id!: AnswerId", answers.episode AS "episode!",
                   answers.teacher AS "teacher?: TeacherId", executions.request AS "request!", body.trace AS "trace!",
                   body.view AS "view!", executions.summary AS "summary!", answers.kind AS "kind!",
                   answers.text AS "text!", answers.demonstration, answers.rating, answers.used_in_update
               FROM answers
               CROSS JOIN executions ON executions.id = answers.execution
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE "# + $condition,
            $($parameter),+
        )
    };
}

/// Up to how many answers that wait for an update are counted.
pub const MOST_WAITING: u32 = 10_000;

fn read_all(rows: Vec<TrainerRow>) -> Result<Vec<TrainerAnswer>> {
    rows.into_iter().map(TrainerRow::read).collect()
}

impl Store {
    /// Answers no update has used yet (not superseded, skipped, rejected or retracted, and of late ones only those that are learnt from),
    /// oldest first.
    pub async fn unused_answers(&self, run: &RunId, limit: u32) -> Result<Vec<TrainerAnswer>> {
        let rows = select_answers!(
            "answers.run = ? AND answers.used_in_update IS NULL AND answers.superseded_by IS NULL
                 AND answers.execution IS NOT NULL AND answers.kind <> 'skipped' AND answers.late < 2
                 AND answers.passed_over = 0
             ORDER BY answers.id LIMIT ?",
            run,
            limit
        )
        .fetch_all(self.readers())
        .await?;
        read_all(rows)
    }

    /// The answers that the next update takes in, oldest first: at most `limit` unused answers, descriptions before others. Nothing
    /// when none of them is a description: there would be nothing to learn, and the others wait for the next one.
    pub async fn answers_to_learn_from(&self, run: &RunId, limit: u32) -> Result<Vec<TrainerAnswer>> {
        let described = query_scalar!(
            r#"SELECT id AS "id!: AnswerId" FROM answers INDEXED BY answers_to_learn_from
               WHERE run = ? AND used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL
                   AND kind = 'described' AND late < 2 AND passed_over = 0
               ORDER BY id LIMIT ?"#,
            run,
            limit,
        )
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

    /// Descriptions, demonstrations and ratings that no update has taken in yet, [`MOST_WAITING`] at most.
    pub async fn waiting_answers(&self, run: &RunId) -> Result<u64> {
        let waiting = query_scalar!(
            r#"SELECT count(*) AS "waiting!: i64" FROM (SELECT 1 FROM answers INDEXED BY answers_to_learn_from
               WHERE run = ? AND used_in_update IS NULL AND superseded_by IS NULL AND execution IS NOT NULL
                   AND kind = 'described' AND late < 2 AND passed_over = 0
               LIMIT ?) AS unused"#,
            run,
            MOST_WAITING,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(from_int(waiting))
    }

    /// Answers of people by key, in the order asked for.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when one of them does not exist.
    pub async fn answers(&self, ids: &[AnswerId]) -> Result<Vec<TrainerAnswer>> {
        let keys = key_list(ids);
        let rows = select_answers!("answers.id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", keys)
            .fetch_all(self.readers())
            .await?;
        let by_key: HashMap<AnswerId, TrainerAnswer> = read_all(rows)?.into_iter().map(|a| (a.answer, a)).collect();
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
    /// that was taken back, retracted or rejected after it was read.
    pub async fn record_update(&self, run: &RunId, record: &UpdateRecord) -> Result<()> {
        self.record_updates(run, std::slice::from_ref(record)).await
    }

    /// Records several updates in one transaction; as [`Store::record_update`].
    pub async fn record_updates(&self, run: &RunId, records: &[UpdateRecord]) -> Result<()> {
        // Updates without typed answers can be lost to a power cut together with the weights they changed.
        let typed = records.iter().any(|record| !record.answers.is_empty());
        let mut writer = self.writer(if typed { Durability::Full } else { Durability::Normal }).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        for record in records {
            record_update_in(&mut tx, run, record, now).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Updates recorded after `update`, in order (what a resumed run makes again).
    pub async fn updates_after(&self, run: &RunId, update: u64) -> Result<Vec<UpdateRecord>> {
        let update = to_int("the update", update)?;
        // One snapshot for both reads.
        let mut tx = self.readers().snapshot().await?;
        row! {
            struct UpdateRow {
                update_no: i64,
                data: String,
            }
        }
        let updates = query_as!(
            UpdateRow,
            "SELECT update_no, data FROM updates WHERE run = ? AND update_no > ? ORDER BY update_no",
            run,
            update,
        )
        .fetch_all(&mut tx)
        .await?;
        row! {
            struct UseRow {
                update: i64,
                answer: AnswerId,
            }
        }
        let uses = query_as!(
            UseRow,
            r#"SELECT used_in_update AS "update!", id AS "answer!: AnswerId" FROM answers
               WHERE run = ? AND used_in_update > ? AND used_position IS NOT NULL
               ORDER BY used_in_update, used_position"#,
            run,
            update,
        )
        .fetch_all(&mut tx)
        .await?;
        drop(tx);
        let mut answers: HashMap<i64, Vec<AnswerId>> = HashMap::new();
        for used in uses {
            answers.entry(used.update).or_default().push(used.answer);
        }
        updates
            .into_iter()
            .map(|row| {
                Ok(UpdateRecord {
                    update: from_int(row.update_no),
                    data: from_json("an update", &row.data)?,
                    answers: answers.remove(&row.update_no).unwrap_or_default(),
                })
            })
            .collect()
    }

    /// All answers of people used in updates up to `update`, in order of use (the replay memory).
    pub async fn used_answers(&self, run: &RunId, update: u64) -> Result<Vec<TrainerAnswer>> {
        let update = to_int("the update", update)?;
        let rows = select_answers!(
            "answers.run = ? AND answers.used_in_update <= ? AND answers.used_position IS NOT NULL
             ORDER BY answers.used_in_update, answers.used_position",
            run,
            update
        )
        .fetch_all(self.readers())
        .await?;
        read_all(rows)
    }

    /// How many executions the answers describe of which no update before `update` has used a description.
    pub async fn newly_answered(&self, update: u64, answers: &[AnswerId]) -> Result<u64> {
        let (keys, update) = (key_list(answers), to_int("the update", update)?);
        let count = query_scalar!(
            r#"SELECT count(DISTINCT mine.execution) AS "count!: i64" FROM answers AS mine
               WHERE mine.id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND mine.kind = 'described' AND NOT EXISTS
                   (SELECT 1 FROM answers AS earlier
                    WHERE earlier.execution = mine.execution AND earlier.kind = 'described'
                        AND earlier.used_in_update < ?2)"#,
            keys,
            update,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(from_int(count))
    }

    /// Executions of a run of which updates up to `update` have used a description by people. It reads them all, and
    /// is needed for runs that an earlier version began.
    pub async fn answered_by(&self, run: &RunId, update: u64) -> Result<u64> {
        let update = to_int("the update", update)?;
        let count = query_scalar!(
            r#"SELECT count(DISTINCT execution) AS "count!: i64" FROM answers
               WHERE run = ? AND used_in_update <= ? AND used_position IS NOT NULL AND kind = 'described'"#,
            run,
            update,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(from_int(count))
    }
}

async fn record_update_in(tx: &mut Transaction<'_>, run: &RunId, record: &UpdateRecord, now: i64) -> Result<()> {
    let update = to_int("the update", record.update)?;
    let data = to_json(&record.data)?;
    let made = query!(
        "INSERT INTO updates (run, update_no, data, recorded_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (run, update_no) DO NOTHING",
        run,
        update,
        data,
        now,
    )
    .execute(&mut *tx)
    .await
    .or_missing("the run")?;
    if made.rows_affected() == 0 {
        let recorded = query_scalar!(
            r#"SELECT id AS "id!: AnswerId" FROM answers
               WHERE run = ? AND used_in_update = ? AND used_position IS NOT NULL ORDER BY used_position"#,
            run,
            update,
        )
        .fetch_all(&mut *tx)
        .await?;
        if recorded == record.answers {
            return Ok(());
        }
        return Err(StoreError::Conflict(format!("update {update} is recorded already, with other answers")));
    }
    for (position, &answer) in (0_i64..).zip(&record.answers) {
        let marked = query!(
            "UPDATE answers SET used_in_update = ?1, used_position = ?2, used_at = ?3
             WHERE id = ?4 AND run = ?5 AND used_in_update IS NULL AND execution IS NOT NULL AND kind <> 'skipped'
                 AND withdrawn_at IS NULL AND passed_over = 0",
            update,
            position,
            now,
            answer,
            run,
        )
        .execute(&mut *tx)
        .await?;
        if marked.rows_affected() == 0 {
            return Err(refusal_to_mark(tx, run, answer).await?);
        }
    }
    Ok(())
}

/// Why an answer cannot be marked as used.
async fn refusal_to_mark(tx: &mut Transaction<'_>, run: &RunId, answer: AnswerId) -> Result<StoreError> {
    row! {
        struct Row {
            used_in_update: Option<i64>,
            kind: String,
            withdrawn: bool,
        }
    }
    let found = query_as!(
        Row,
        r#"SELECT used_in_update, kind, withdrawn_at IS NOT NULL OR passed_over = 1 AS "withdrawn!: bool" FROM answers
           WHERE id = ? AND run = ? AND execution IS NOT NULL"#,
        answer,
        run,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(found) = found else { return Ok(StoreError::NotFound("the answer")) };
    Ok(match found.used_in_update {
        _ if found.withdrawn => StoreError::Superseded,
        Some(update) => StoreError::Conflict(format!("answer {answer} was used in update {update} already")),
        None => StoreError::Invalid(format!("answer {answer} cannot be learnt from: it is {}", found.kind)),
    })
}
