//! The answers that a range of updates learned from: the way from a point of a curve back to what was said.

use super::convert::{from_int, from_json, to_int};
use super::error::Result;
use super::{AnswerKind, Store};
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::run::Source;

/// An answer that an update learned from.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The answer.
    pub answer: AnswerId,
    /// The update that used it.
    pub update: u64,
    /// Its episode.
    pub episode: u64,
    /// Whose answer it is.
    pub source: Source,
    /// Who gave it; `None` for simulated ones.
    pub teacher: Option<TeacherId>,
    /// Its kind.
    pub kind: AnswerKind,
    /// The text; empty where it was retracted.
    pub text: String,
    /// The request of the episode.
    pub request: String,
    /// The execution in one line.
    pub summary: String,
    /// The family's view of it.
    pub view: serde_json::Value,
    /// Whether that is what was asked.
    pub success: bool,
    /// Whether the agent understood the words before it had learned from them, where that was looked at.
    pub understood_before: Option<bool>,
    /// Whether it did right after.
    pub understood_after: Option<bool>,
}

/// The answers that a range of updates learned from, and how many there are in all.
#[derive(Clone, Debug)]
pub struct LearnedPage {
    /// Answers of people first, each kind in order of use, at most as many as were asked for of each.
    pub answers: Vec<Learned>,
    /// All answers of people in the range.
    pub people: u64,
    /// All of the simulated teacher.
    pub simulated: u64,
}

struct Row {
    answer: AnswerId,
    update_no: i64,
    episode: i64,
    teacher: Option<TeacherId>,
    kind: String,
    text: String,
    request: String,
    summary: String,
    view: String,
    success: bool,
    understood_before: Option<bool>,
    understood_after: Option<bool>,
}

impl Row {
    fn read(self, source: Source) -> Result<Learned> {
        Ok(Learned {
            answer: self.answer,
            update: from_int(self.update_no),
            episode: from_int(self.episode),
            source,
            teacher: self.teacher,
            kind: AnswerKind::parse(&self.kind)?,
            text: self.text,
            request: self.request,
            summary: self.summary,
            view: from_json("an execution's view", &self.view)?,
            success: self.success,
            understood_before: self.understood_before,
            understood_after: self.understood_after,
        })
    }
}

impl Store {
    /// The answers that the updates `from` to `to` of a run learned from, at most `limit` of people and as many simulated ones.
    pub async fn learned(&self, run: &RunId, (from, to): (u64, u64), limit: u32) -> Result<LearnedPage> {
        let (from, to) = (to_int("the first update", from)?, to_int("the last update", to)?);
        let mut tx = self.readers().begin().await?; // one snapshot for all reads
        let people = sqlx::query_as!(
            Row,
            r#"SELECT answers.id AS "answer!: AnswerId", answers.used_in_update AS "update_no!", answers.episode AS "episode!",
                   answers.teacher AS "teacher?: TeacherId", answers.kind AS "kind!",
                   iif(answers.retracted_at IS NULL, answers.text, '') AS "text!: String", executions.request AS "request!",
                   executions.summary AS "summary!", body.view AS "view!", executions.success AS "success!: bool",
                   comprehension.before_understood AS "understood_before?: bool",
                   comprehension.after_understood AS "understood_after?: bool"
               FROM answers INDEXED BY answers_in_order_of_use
               CROSS JOIN executions ON executions.id = answers.execution
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               LEFT JOIN comprehension ON comprehension.answer = answers.id
               WHERE answers.run = ? AND answers.used_in_update BETWEEN ? AND ? AND answers.used_position IS NOT NULL
               ORDER BY answers.used_in_update, answers.used_position LIMIT ?"#,
            run,
            from,
            to,
            limit,
        )
        .fetch_all(&mut *tx)
        .await?;
        let simulated = sqlx::query_as!(
            Row,
            r#"SELECT answers.id AS "answer!: AnswerId", episodes.update_no AS "update_no!", episodes.episode AS "episode!",
                   NULL AS "teacher?: TeacherId", answers.kind AS "kind!", answers.text AS "text!: String",
                   episodes.request AS "request!", episodes.summary AS "summary!", episodes.view AS "view!",
                   episodes.success AS "success!: bool", NULL AS "understood_before?: bool", NULL AS "understood_after?: bool"
               FROM episodes INDEXED BY episodes_of_update
               CROSS JOIN answers ON answers.id = episodes.answer
               WHERE episodes.run = ? AND episodes.update_no BETWEEN ? AND ? AND episodes.answer IS NOT NULL
                   AND answers.kind = 'described'
               ORDER BY episodes.update_no, episodes.episode LIMIT ?"#,
            run,
            from,
            to,
            limit,
        )
        .fetch_all(&mut *tx)
        .await?;
        let counts = sqlx::query!(
            r#"SELECT (SELECT count(*) FROM answers INDEXED BY answers_in_order_of_use
                   WHERE run = ?1 AND used_in_update BETWEEN ?2 AND ?3 AND used_position IS NOT NULL) AS "people!: i64",
                   (SELECT count(*) FROM episodes INDEXED BY episodes_of_update
                   CROSS JOIN answers ON answers.id = episodes.answer
                   WHERE episodes.run = ?1 AND update_no BETWEEN ?2 AND ?3 AND answer IS NOT NULL
                       AND answers.kind = 'described') AS "simulated!: i64""#,
            run,
            from,
            to,
        )
        .fetch_one(&mut *tx)
        .await?;
        let people_rows = people.into_iter().map(|row| row.read(Source::Human));
        let answers = people_rows.chain(simulated.into_iter().map(|row| row.read(Source::Simulated)));
        Ok(LearnedPage {
            answers: answers.collect::<Result<_>>()?,
            people: from_int(counts.people),
            simulated: from_int(counts.simulated),
        })
    }
}
