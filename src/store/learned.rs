//! The answers that a range of updates learned from: the way from a point of a curve back to what was said.

use super::convert::{from_int, from_json, to_int};
use super::error::Result;
use super::sql::{query_as, row};
use super::{AnswerKind, Store};
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::run::{Attempt, Source};
use serde::Serialize;

/// An answer that an update learned from.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
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
    /// The agent's own execution of the words, from the same start, before it had learned from them; null where that was not
    /// looked at.
    pub before: Option<Attempt>,
    /// The attempt right after it.
    pub after: Option<Attempt>,
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

row! {
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
        before_understood: Option<bool>,
        before_summary: Option<String>,
        before_view: Option<String>,
        after_understood: Option<bool>,
        after_summary: Option<String>,
        after_view: Option<String>,
    }
}

/// An attempt of which all parts are there.
fn attempt(understood: Option<bool>, summary: Option<String>, view: Option<&str>) -> Result<Option<Attempt>> {
    let (Some(understood), Some(summary), Some(view)) = (understood, summary, view) else { return Ok(None) };
    Ok(Some(Attempt { view: from_json("an attempt's view", view)?, summary, understood }))
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
            before: attempt(self.before_understood, self.before_summary, self.before_view.as_deref())?,
            after: attempt(self.after_understood, self.after_summary, self.after_view.as_deref())?,
        })
    }
}

impl Store {
    /// The answers that the updates `from` to `to` of a run learned from, at most `limit` of people and as many simulated ones.
    pub async fn learned(&self, run: &RunId, (from, to): (u64, u64), limit: u32) -> Result<LearnedPage> {
        let (from, to) = (to_int("the first update", from)?, to_int("the last update", to)?);
        let mut tx = self.readers().snapshot().await?; // one snapshot for all reads
        let people = query_as!(
            Row,
            r#"SELECT answers.id AS "answer!: AnswerId", answers.used_in_update AS "update_no!", answers.episode AS "episode!",
                   answers.teacher AS "teacher?: TeacherId", answers.kind AS "kind!",
                   iif(answers.retracted_at IS NULL, answers.text, '') AS "text!: String", executions.request AS "request!",
                   executions.summary AS "summary!", body.view AS "view!", executions.success AS "success!: bool",
                   comprehension.before_understood AS "before_understood?: bool", comprehension.before_summary AS "before_summary?",
                   comprehension.before_view AS "before_view?", comprehension.after_understood AS "after_understood?: bool",
                   comprehension.after_summary AS "after_summary?", comprehension.after_view AS "after_view?"
               FROM answers INDEXED BY answers_in_order_of_use
               CROSS JOIN executions ON executions.id = answers.execution
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               LEFT JOIN comprehension ON comprehension.answer = answers.id AND answers.retracted_at IS NULL
               WHERE answers.run = ? AND answers.used_in_update BETWEEN ? AND ? AND answers.used_position IS NOT NULL
               ORDER BY answers.used_in_update, answers.used_position LIMIT ?"#,
            run,
            from,
            to,
            limit,
        )
        .fetch_all(&mut tx)
        .await?;
        let simulated = query_as!(
            Row,
            r#"SELECT answers.id AS "answer!: AnswerId", episodes.update_no AS "update_no!", episodes.episode AS "episode!",
                   NULL AS "teacher?: TeacherId", answers.kind AS "kind!", answers.text AS "text!: String",
                   episodes.request AS "request!", episodes.summary AS "summary!", episodes.view AS "view!",
                   episodes.success AS "success!: bool", NULL AS "before_understood?: bool", NULL AS "before_summary?: String",
                   NULL AS "before_view?: String", NULL AS "after_understood?: bool", NULL AS "after_summary?: String",
                   NULL AS "after_view?: String"
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
        .fetch_all(&mut tx)
        .await?;
        row! {
            struct CountRow {
                people: i64,
                simulated: i64,
            }
        }
        let counts = query_as!(
            CountRow,
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
        .fetch_one(&mut tx)
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
