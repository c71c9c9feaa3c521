//! Episodes that ended, for researchers: simulated ones as they were recorded, people's once an update used them.

use super::connection::Durability;
use super::convert::{from_int, from_json, to_int, to_json};
use super::error::{Missing, Result};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{AnswerKind, Store};
use crate::ids::{AnswerId, RunId};
use crate::run::{EpisodeRow, Source};

row! {
    struct Row {
        episode: i64,
        update_no: Option<i64>,
        request: String,
        view: String,
        summary: String,
        text: Option<String>,
        described: bool,
        candidates: Option<String>,
        success: bool,
    }
}

impl Row {
    fn read(self, source: Source) -> Result<EpisodeRow> {
        Ok(EpisodeRow {
            episode: from_int(self.episode),
            update: self.update_no.map(from_int),
            request: self.request,
            view: from_json("an episode's view", &self.view)?,
            summary: self.summary,
            // Without an answer nobody was asked.
            source: self.text.is_some().then_some(source),
            // The text of an answer of another kind is no description: nothing is learnt from it.
            description: self.text.filter(|_| self.described).unwrap_or_default(),
            candidates: match self.candidates {
                Some(candidates) => from_json("an episode's candidates", &candidates)?,
                None => Vec::new(),
            },
            success: self.success,
            // For the data set, which reads it by itself.
            reference: None,
        })
    }
}

/// Selects simulated episodes as [`Row`]s. The arguments are the rest of the statement, from the join with `answers`
/// on, and its parameters.
macro_rules! select_simulated {
    ($rest:literal, $($parameter:expr),+) => {
        query_as!(
            Row,
            r#"SELECT episodes.episode AS "episode!", episodes.update_no, episodes.request AS "request!",
                   episodes.view AS "view!", episodes.summary AS "summary!", answers.text AS "text?",
                   1 AS "described!: bool", episodes.candidates AS "candidates?", episodes.success AS "success!: bool"
               FROM episodes "# + $rest,
            $($parameter),+
        )
    };
}

impl Store {
    /// Stores simulated episodes (an episode already there is left as it is) in one transaction. Rows described by
    /// people are passed over: their answers are stored already.
    ///
    /// In the dataset the policy of a simulated episode is the one before the update that used it; for an episode
    /// that no update used, that of the row before it.
    pub async fn record_simulated(&self, run: &RunId, rows: &[EpisodeRow]) -> Result<()> {
        let mut latest = rows.iter().find_map(|row| row.update).unwrap_or(0);
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        let now = self.now();
        for row in rows.iter().filter(|row| row.source != Some(Source::Human)) {
            latest = row.update.unwrap_or(latest);
            let policy = to_int("the update", latest.saturating_sub(1))?;
            record_episode(&mut tx, run, row, policy, now).await?;
        }
        Ok(tx.commit().await?)
    }

    /// The latest episode rows, newest first (human ones once used, simulated ones as recorded).
    ///
    /// They are ordered by their updates and keys, since times of day can go back.
    pub async fn recent_episodes(&self, run: &RunId, limit: u32) -> Result<Vec<EpisodeRow>> {
        let simulated = select_simulated!(
            "LEFT JOIN answers ON answers.id = episodes.answer
             WHERE episodes.run = ? ORDER BY episodes.id DESC LIMIT ?",
            run,
            limit
        )
        .fetch_all(self.readers())
        .await?;
        let human = query_as!(
            Row,
            r#"SELECT answers.episode AS "episode!", answers.used_in_update AS update_no,
                   executions.request AS "request!", body.view AS "view!", executions.summary AS "summary!",
                   iif(answers.retracted_at IS NULL, answers.text, '') AS "text?: String", answers.kind = 'described' AS "described!: bool",
                   NULL AS "candidates?: String", executions.success AS "success!: bool"
               FROM answers
               CROSS JOIN executions ON executions.id = answers.execution
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE answers.run = ? AND answers.used_position IS NOT NULL
               ORDER BY answers.used_in_update DESC, answers.used_position DESC LIMIT ?"#,
            run,
            limit,
        )
        .fetch_all(self.readers())
        .await?;
        let updates = updates_of(&simulated);
        let human = human.into_iter().map(|row| (row.update_no, Source::Human, row));
        let simulated = simulated.into_iter().zip(updates).map(|(row, update)| (update, Source::Simulated, row));
        let mut rows: Vec<(Option<i64>, Source, Row)> = human.chain(simulated).collect();
        rows.sort_by_key(|(update, ..)| std::cmp::Reverse(*update)); // stable: each kind keeps its own order
        rows.into_iter().take(limit as usize).map(|(_, source, row)| row.read(source)).collect()
    }

    /// Episodes by their numbers, the largest first, each with the answer of a person (0 for simulated ones). They begin
    /// below `before`, an episode with its answer.
    pub async fn episodes_before(
        &self,
        run: &RunId,
        before: Option<(u64, AnswerId)>,
        limit: u64,
    ) -> Result<Vec<(EpisodeRow, AnswerId)>> {
        let (episode, answer) = match before {
            Some((episode, answer)) => (to_int("the episode", episode)?, answer),
            None => (i64::MAX, AnswerId(i64::MAX)),
        };
        let rows = to_int("the limit", limit)?;
        let simulated = select_simulated!(
            "LEFT JOIN answers ON answers.id = episodes.answer
             WHERE episodes.run = ? AND episodes.episode < ? ORDER BY episodes.episode DESC LIMIT ?",
            run,
            episode,
            rows
        )
        .fetch_all(self.readers())
        .await?;
        row! {
            struct AnsweredRow {
                answer: AnswerId,
                episode: i64,
                update_no: Option<i64>,
                request: String,
                view: String,
                summary: String,
                text: Option<String>,
                described: bool,
                success: bool,
            }
        }
        let human = query_as!(AnsweredRow, r#"SELECT answers.id AS "answer!: AnswerId", answers.episode AS "episode!", answers.used_in_update AS update_no,
                   executions.request AS "request!", body.view AS "view!", executions.summary AS "summary!",
                   iif(answers.retracted_at IS NULL, answers.text, '') AS "text?: String",
                   answers.kind = 'described' AS "described!: bool", executions.success AS "success!: bool"
               FROM answers
               CROSS JOIN executions ON executions.id = answers.execution
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE answers.run = ? AND answers.used_position IS NOT NULL AND (answers.episode, answers.id) < (?, ?)
               ORDER BY answers.episode DESC, answers.id DESC LIMIT ?"#,
            run,
            episode,
            answer,
            rows,
        )
        .fetch_all(self.readers())
        .await?;
        let mut all = Vec::with_capacity(simulated.len() + human.len());
        for row in simulated {
            all.push((row.read(Source::Simulated)?, AnswerId::default()));
        }
        for row in human {
            let answer = row.answer;
            let row = Row {
                episode: row.episode,
                update_no: row.update_no,
                request: row.request,
                view: row.view,
                summary: row.summary,
                text: row.text,
                described: row.described,
                candidates: None,
                success: row.success,
            };
            all.push((row.read(Source::Human)?, answer));
        }
        all.sort_by_key(|(row, answer)| std::cmp::Reverse((row.episode, *answer)));
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(all)
    }

    /// Simulated episodes whose description an update up to `update` has used, in order of use.
    pub async fn simulated_descriptions(&self, run: &RunId, update: u64) -> Result<Vec<EpisodeRow>> {
        let update = to_int("the update", update)?;
        let rows = select_simulated!(
            "CROSS JOIN answers ON answers.id = episodes.answer
             WHERE episodes.run = ? AND episodes.update_no <= ? AND answers.kind = 'described'
             ORDER BY episodes.update_no, episodes.episode",
            run,
            update
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter().map(|row| row.read(Source::Simulated)).collect()
    }
}

/// The update at which each of the rows, newest first, came: its own, or else that of the row before it in time.
fn updates_of(rows: &[Row]) -> Vec<Option<i64>> {
    let mut latest = None;
    let mut updates: Vec<Option<i64>> = rows
        .iter()
        .rev()
        .map(|row| {
            latest = row.update_no.or(latest);
            latest
        })
        .collect();
    updates.reverse();
    // The oldest rows may have none before them: they came before the first that has one.
    let first = updates.iter().rev().find_map(|update| *update);
    updates.into_iter().map(|update| update.or(first)).collect()
}

async fn record_episode(
    tx: &mut Transaction<'_>,
    run: &RunId,
    row: &EpisodeRow,
    policy_update: i64,
    now: i64,
) -> Result<()> {
    let episode = to_int("the episode", row.episode)?;
    let update = row.update.map(|update| to_int("the update", update)).transpose()?;
    let (candidates, view) = (to_json(&row.candidates)?, to_json(&row.view)?);
    let reference = row.reference.as_ref().map(to_json).transpose()?;
    let id = query_scalar!(
        r#"INSERT INTO episodes (run, episode, update_no, success, recorded_at, request, summary, candidates, view,
               reference)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, episode) DO NOTHING RETURNING id AS "id!: i64""#,
        run,
        episode,
        update,
        row.success,
        now,
        row.request,
        row.summary,
        candidates,
        view,
        reference,
    )
    .fetch_optional(&mut *tx)
    .await
    .or_missing("the run")?;
    let (Some(id), Some(_)) = (id, row.source) else { return Ok(()) };
    let kind = if row.description.is_empty() { AnswerKind::CannotDescribe } else { AnswerKind::Described };
    let kind = kind.as_str();
    let answer = query_scalar!(
        r#"INSERT INTO answers (run, episode, source, kind, text, request_shown, policy_update, created_at,
               used_in_update)
           VALUES (?, ?, 'simulated', ?, ?, 0, ?, ?, ?) RETURNING id AS "id!: AnswerId""#,
        run,
        episode,
        kind,
        row.description,
        policy_update,
        now,
        update,
    )
    .fetch_one(&mut *tx)
    .await?;
    query!("UPDATE episodes SET answer = ? WHERE id = ?", answer, id).execute(&mut *tx).await?;
    Ok(())
}
