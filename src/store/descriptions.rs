//! People's answers as programs read them: in the order in which they came, page by page.

use super::convert::{from_int, from_nanos, to_int};
use super::error::Result;
use super::sql::{query_as, row};
use super::{AnswerKind, Response, Store};
use crate::ids::{AnswerId, ExecutionId, RunId, TeacherId};
use serde::Serialize;
use time::OffsetDateTime;

/// Whether an answer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stand {
    /// It stands.
    Standing,
    /// A later answer of its teacher has taken its place.
    Superseded,
    /// The teacher took it back before an update had used it.
    Undone,
    /// The teacher withdrew it from the data; its text is empty.
    Withdrawn,
    /// A reviewer rejected it.
    Rejected,
}

/// An answer of a person about an execution.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Description {
    /// Key; answers that come later have larger keys.
    pub id: AnswerId,
    /// The execution that it is about.
    pub execution: ExecutionId,
    /// Number of the episode in the run.
    pub episode: u64,
    /// The request that the agent was given.
    pub request: String,
    /// Kind: a description, "nothing changed", or "I cannot describe this".
    pub kind: AnswerKind,
    /// The words, exactly as typed.
    pub text: String,
    /// The demonstration or the rating, in runs that are taught by these.
    pub response: Response,
    /// Whether the teacher could see the request.
    pub request_shown: bool,
    /// Pseudonym of the teacher.
    pub teacher: TeacherId,
    /// When it was stored.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Update of the policy that made the execution.
    pub policy_update: u64,
    /// Update that learned from it, if one has.
    pub used_in_update: Option<u64>,
    /// Whether the agent, asked in these words from the start of the execution, did what they describe before it learned from them;
    /// null where that was not looked at.
    pub understood_before: Option<bool>,
    /// Whether it did so right after the update that learned from them.
    pub understood_after: Option<bool>,
    /// The earlier answer whose place it took.
    pub supersedes: Option<AnswerId>,
    /// Whether it stands now.
    pub state: Stand,
}

row! {
    struct Row {
        id: AnswerId,
        execution: ExecutionId,
        episode: i64,
        request: String,
        kind: String,
        text: String,
        demonstration: Option<String>,
        rating: Option<f64>,
        request_shown: bool,
        teacher: TeacherId,
        created_at: i64,
        policy_update: i64,
        used_in_update: Option<i64>,
        understood_before: Option<bool>,
        understood_after: Option<bool>,
        supersedes: Option<AnswerId>,
        superseded: bool,
        undone: bool,
        withdrawn: bool,
        rejected: bool,
    }
}

impl Row {
    fn read(self) -> Result<Description> {
        let state = match &self {
            Row { withdrawn: true, .. } => Stand::Withdrawn,
            Row { undone: true, .. } => Stand::Undone,
            Row { superseded: true, .. } => Stand::Superseded,
            Row { rejected: true, .. } => Stand::Rejected,
            _ => Stand::Standing,
        };
        let gone = state == Stand::Withdrawn;
        Ok(Description {
            id: self.id,
            execution: self.execution,
            episode: from_int(self.episode),
            request: self.request,
            kind: AnswerKind::parse(&self.kind)?,
            text: if gone { String::new() } else { self.text },
            response: if gone { Response::Text } else { Response::read(self.demonstration, self.rating)? },
            request_shown: self.request_shown,
            teacher: self.teacher,
            created_at: from_nanos(self.created_at),
            policy_update: from_int(self.policy_update),
            used_in_update: self.used_in_update.map(from_int),
            understood_before: self.understood_before,
            understood_after: self.understood_after,
            supersedes: self.supersedes,
            state,
        })
    }
}

impl Store {
    /// People's answers to a run's executions that came after `after`, oldest first; skips are none.
    pub async fn descriptions(&self, run: &RunId, after: AnswerId, limit: u64) -> Result<Vec<Description>> {
        let limit = to_int("the limit", limit)?;
        let rows = query_as!(
            Row,
            r#"SELECT answers.id AS "id!: AnswerId", answers.execution AS "execution!: ExecutionId",
                   answers.episode AS "episode!", executions.request AS "request!", answers.kind AS "kind!",
                   answers.text AS "text!", answers.demonstration, answers.rating,
                   answers.request_shown AS "request_shown!: bool", answers.teacher AS "teacher!: TeacherId",
                   answers.created_at AS "created_at!", answers.policy_update AS "policy_update!",
                   answers.used_in_update, comprehension.before_understood AS "understood_before?: bool",
                   comprehension.after_understood AS "understood_after?: bool", answers.supersedes AS "supersedes?: AnswerId",
                   answers.superseded_by IS NOT NULL AS "superseded!: bool",
                   answers.withdrawn_at IS NOT NULL AS "undone!: bool",
                   answers.retracted_at IS NOT NULL AS "withdrawn!: bool",
                   reviews.state IS NOT DISTINCT FROM 'rejected' AS "rejected!: bool"
               FROM answers
               CROSS JOIN executions ON executions.id = answers.execution
               LEFT JOIN reviews ON reviews.answer = answers.id
               LEFT JOIN comprehension ON comprehension.answer = answers.id
               WHERE answers.run = ? AND answers.id > ? AND answers.kind <> 'skipped'
               ORDER BY answers.id LIMIT ?"#,
            run,
            after,
            limit,
        );
        rows.fetch_all(self.readers()).await?.into_iter().map(Row::read).collect()
    }
}
