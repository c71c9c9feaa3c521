//! The store: everything that must survive, in one SQLite file. No other module has SQL.
//!
//! WAL, one writer connection and a pool of readers; every transaction that writes begins `IMMEDIATE`. Descriptions
//! that people typed are written with `synchronous = FULL`: acknowledged means on disk.
//!
//! Every statement on the tables is checked when the program is compiled, against the data in `.sqlx/` (`tests/sqlx-data`
//! makes them from `migrations/`). `docs/store.md` draws the tables.
//!
//! The submodules: [`runs`](Store::create_run), [`run_labels`](Store::label_run), [`run_trash`](Store::trash_run),
//! [`run_evaluations`](Store::record_evaluation), [`pool`](Store::offer), [`leases`](Store::lease),
//! [`answers`](Store::answer), [`undo`](Store::undo), [`requests`](Store::reveal), [`drafts`](Store::save_draft), [`teachers`](Store::teacher), [`updates`](Store::record_update),
//! [`episodes`](Store::record_simulated), [`comprehension`](Store::record_comprehension), [`points`](Store::record_points), [`checkpoints`](Store::record_checkpoint),
//! [`export`](Store::export_page), [`import`](Store::import), [`accounts`](Store::list_accounts), [`account_sessions`](Store::open_session),
//! [`account_invites`](Store::invite), [`studies`](Store::create_study), [`participants`](Store::join_study),
//! [`invitations`](Store::invite_to_study), [`qualification`](Store::choose_qualification), [`audit`](Store::audit),
//! [`reviews`](Store::review), [`retracting`](Store::retract),
//! [`webhooks`](Store::due_webhooks), [`api_tokens`](Store::api_token), [`kept_replies`](Store::keep_reply),
//! [`descriptions`](Store::descriptions), [`outside`](Store::offer_outside).
//!
//! Invariants:
//!
//! * An execution is in at most `wanted - given` hands; a lease that ran out counts no longer.
//! * A teacher holds at most two executions of a run, and answers only what they hold or have held.
//! * Leases go by a clock that nobody sets back, and order goes by keys: the time of day is only ever shown.
//! * A teacher has one standing answer per execution; what came before it stays, superseded, and is exported.
//! * An execution that a teacher answered or skipped never comes back to this teacher, unless they took that answer back.
//! * An answer is used in at most one update; recording the same update again changes nothing.
//! * An answer that was taken back is in no update that learnt from it, and never will be.
//! * An answer that was retracted or rejected before an update had used it is in no update.
//! * There is an owner who can sign in as soon as there has been one; an ended session opens nothing from then on.
//! * Text is stored and returned exactly as typed.

mod account_invites;
mod account_sessions;
mod accounts;
mod address;
mod answers;
mod api_tokens;
mod attention;
mod audit;
mod bus;
mod checkpoints;
mod clock;
mod comparison;
mod comprehension;
mod connection;
mod consistency;
mod convert;
mod counters;
mod descriptions;
mod drafts;
mod episodes;
mod error;
mod export;
mod export_history;
mod import;
mod invitations;
mod kept_replies;
mod learned;
mod leases;
mod log_check;
mod opening;
mod outside;
mod overlap;
mod participants;
mod points;
mod pool;
mod postgres;
mod qualification;
mod requests;
mod retracting;
mod reviews;
mod run_evaluations;
mod run_labels;
mod run_trash;
mod runs;
mod schema;
mod sql;
mod studies;
mod teachers;
mod undo;
mod updates;
mod visitors;
mod webhooks;

use crate::config::run::TeacherMode;
use crate::ids::{AnswerId, ExecutionId, RunId, TeacherId};
use crate::protocol::Medium;
use crate::run::{Reference, Source};
use crate::study::ReviewState;
use crate::study::quality::Flag;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

pub use account_invites::{Invite, InviteId, Joined};
pub use account_sessions::{Session, SessionId, SignedIn};
pub use accounts::{Account, Credentials, NAME_LIMIT, Role, account_name};
pub use api_tokens::{ApiToken, KnownToken, Scope, TokenId};
pub use attention::{AttentionItem, Choice};
pub use audit::AuditEntry;
pub use bus::{Alone, Bus, BusListener, Message, Request, Told};
pub use comprehension::{LatestComprehension, NewestDescription, Reading, TeacherReading};
pub use connection::Store;
pub use counters::Standing;
pub use descriptions::{Description, Stand};
pub use error::{Result, StoreError};
pub use export::{Extent, Filter, ReviewFilter};
pub use export_history::{ExportEpisode, ExportEvent};
pub use import::Imported;
pub use invitations::Invitation;
pub use kept_replies::KeptReply;
pub use learned::{Learned, LearnedPage};
pub use outside::{EpisodesImported, ImportedEpisode, MOST_OPEN, OutsideExecution, PostedExecution};
pub use participants::{Joining, Participant, ParticipantFigures, Person, SELF};
pub use qualification::{QualificationAnswer, QualificationItem};
pub use requests::Asked;
pub use retracting::{OwnPage, Retracted, StudyOwnAnswer};
pub use reviews::{Adjudication, AgreementAttempt, Chosen, Review, StudyAnswer};
pub use run_evaluations::RunEvaluation;
pub use run_labels::{Inherited, LabelChange, LabelProblem, MadeBy, RunLabel, RunOrigin, RunParent};
pub use run_trash::{RunLosses, TRASH_KEEPS};
pub use studies::{Study, StudyArm};
pub use undo::WithdrawnAnswer;
pub use updates::MOST_WAITING;
pub use webhooks::{WebhookMessage, WebhookRecord};

/// A run as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Key; also the folder name under the data folder's `runs`.
    pub id: RunId,
    /// Family name.
    pub family: String,
    /// Preset name.
    pub preset: String,
    /// Whole configuration as JSON.
    pub config: serde_json::Value,
    /// Seed.
    pub seed: u64,
    /// Last teacher mode set.
    pub teacher: TeacherMode,
    /// Whether the server resumes it at start: `true` until it is stopped by command or finished.
    pub active: bool,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

/// An execution offered to people.
#[derive(Clone, Debug)]
pub struct NewExecution {
    /// Episode number in the run (unique in the run).
    pub episode: u64,
    /// Update of the policy that made it.
    pub update: u64,
    /// The request d* (not shown to teachers unless the run says so).
    pub request: String,
    /// The trainer's data for learning from a description of it (opaque here).
    pub trace: serde_json::Value,
    /// The view that people are shown.
    pub view: serde_json::Value,
    /// One plain line for researchers.
    pub summary: String,
    /// Whether the execution performs as well as the gold one (for the episode row; never shown to teachers).
    pub success: bool,
    /// How many people should describe it; 1 unless overlap is asked for.
    pub wanted: u32,
    /// The gold execution, for the data set; it is never shown to teachers.
    pub reference: Option<Reference>,
}

/// Sizes of a run's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PoolCounts {
    /// Fresh ones: waiting, nobody at them, and nobody has answered or skipped them. One that somebody skipped (or the
    /// first of several has answered) waits for others, but takes no fresh one's room: else a person who skips
    /// everything would face an empty queue for ever. 20,000 are counted at most.
    pub open: u64,
    /// Somebody is at them.
    pub leased: u64,
    /// People who are there: they hold something, or asked or answered within the last two minutes.
    #[serde(default)]
    pub people: u64,
}

/// The answers that came to a run meanwhile ([`Store::answers_since`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswersSince {
    /// Answers of people that came in the meantime; skips and corrections are not counted.
    pub answered: u64,
    /// Key of the run's newest answer, for the next call.
    pub newest: AnswerId,
}

/// An execution in one teacher's hands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leased {
    /// Execution key.
    pub execution: ExecutionId,
    /// Episode number.
    pub episode: u64,
    /// The view to show.
    pub view: serde_json::Value,
    /// The request d*, only when teachers see it: where they demonstrate or rate, with `pool.show_request`, and where the teacher
    /// asked to see it.
    pub request: Option<String>,
    /// When the lease ends unless renewed.
    pub expires_at: OffsetDateTime,
}

/// Kind of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A description, or what takes its place in the run's medium: a demonstration, a rating.
    #[default]
    Described,
    /// "Nothing changed": the agent did nothing worth a sentence.
    NothingChanged,
    /// "I cannot describe this."
    CannotDescribe,
    /// Skipped, with a reason in `text`.
    Skipped,
}

/// The part of an answer that is no text, in runs that people teach in another medium than descriptions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AnswerResponse)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// None: the text is the answer.
    #[default]
    Text,
    /// A demonstration, as its family has checked it.
    Demonstration(serde_json::Value),
    /// A rating from 0 to 1.
    Rating(f64),
}

impl Response {
    /// The demonstration, if it is one.
    pub fn demonstration(&self) -> Option<&serde_json::Value> {
        match self {
            Response::Demonstration(demonstration) => Some(demonstration),
            _ => None,
        }
    }

    /// The rating, if it is one.
    pub fn rating(&self) -> Option<f64> {
        match self {
            Response::Rating(rating) => Some(*rating),
            _ => None,
        }
    }

    /// Reads the stored columns.
    fn read(demonstration: Option<String>, rating: Option<f64>) -> Result<Response> {
        Ok(match (demonstration, rating) {
            (Some(text), _) => Response::Demonstration(convert::from_json("a demonstration", &text)?),
            (None, Some(rating)) => Response::Rating(rating),
            (None, None) => Response::Text,
        })
    }
}

/// An answer to be stored. `client_key` makes sending twice harmless: the same key stores once.
#[derive(Clone, Debug, Default)]
pub struct NewAnswer {
    /// Random key made by the page for this answer (1..=64 characters).
    pub client_key: String,
    /// Execution it is about.
    pub execution: ExecutionId,
    /// Who answers.
    pub teacher: TeacherId,
    /// Kind.
    pub kind: AnswerKind,
    /// Exactly what was typed (for `Skipped`: the reason); never altered.
    pub text: String,
    /// The demonstration or the rating. It has to be of the run's medium where the kind is [`AnswerKind::Described`].
    pub response: Response,
    /// When the execution was first shown to this person.
    pub shown_at: Option<OffsetDateTime>,
    /// Milliseconds of activity on it as the page measured (idle left out).
    pub active_ms: Option<u64>,
    /// Milliseconds in which the page saw no sign of the person.
    pub idle_ms: Option<u64>,
    /// Whether the person said that the execution did what was asked; the text is then the request.
    pub fulfilled: bool,
    /// Whether the person is one of those to whom previews are shown; `None` where nobody is.
    pub preview_arm: Option<bool>,
    /// The text of which a preview was shown before this was sent.
    pub first_text: Option<String>,
}

/// Text that a teacher is typing about an execution.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Execution it is about.
    pub execution: ExecutionId,
    /// Who types.
    pub teacher: TeacherId,
    /// The key that the page got with the execution: versions are counted for each.
    pub client_key: String,
    /// Number of the change.
    pub version: u64,
    /// Exactly what was typed.
    pub text: String,
}

/// A draft as it was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SavedDraft {
    /// Execution it is about.
    pub execution: ExecutionId,
    /// Exactly what was typed.
    pub text: String,
    /// When it was kept.
    #[serde(with = "time::serde::rfc3339")]
    pub saved_at: OffsetDateTime,
}

/// Outcome of storing an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Key of the stored answer.
    pub answer: AnswerId,
    /// True when it had been stored before: the same `client_key`, or the very same words by the same teacher about
    /// the same execution (a second tab). Nothing new was written.
    pub again: bool,
}

/// A person's own earlier answer, newest first in lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnAnswer {
    /// Key.
    pub answer: AnswerId,
    /// Execution it is about.
    pub execution: ExecutionId,
    /// The view that was shown.
    pub view: serde_json::Value,
    /// Kind.
    pub kind: AnswerKind,
    /// Text.
    pub text: String,
    /// The demonstration or the rating.
    pub response: Response,
    /// When it was stored.
    pub created_at: OffsetDateTime,
    /// Update that used it, if any has.
    pub used_in_update: Option<u64>,
    /// Whether it says that the execution did what was asked.
    pub fulfilled: bool,
}

/// An answer as the trainer takes it.
#[derive(Clone, Debug)]
pub struct TrainerAnswer {
    /// Key.
    pub answer: AnswerId,
    /// Episode of the execution.
    pub episode: u64,
    /// Who answered.
    pub teacher: Option<TeacherId>,
    /// Request d*.
    pub request: String,
    /// The trainer's own trace of the execution.
    pub trace: serde_json::Value,
    /// View and summary, for the episode row.
    pub view: serde_json::Value,
    /// One plain line.
    pub summary: String,
    /// Kind (skips are not given to the trainer).
    pub kind: AnswerKind,
    /// Text.
    pub text: String,
    /// The demonstration or the rating.
    pub response: Response,
    /// Update that used it, if any.
    pub used_in_update: Option<u64>,
}

/// The record of an update: enough to make it again after a kill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateRecord {
    /// Number of the update.
    pub update: u64,
    /// Opaque data of the trainer (mode, room in the pool …).
    pub data: serde_json::Value,
    /// Answers the update used, in order.
    pub answers: Vec<AnswerId>,
}

/// A teacher: a browser that came by. Accounts are for people who sign in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Teacher {
    /// Key.
    pub id: TeacherId,
    /// Whether the first-visit guide was dismissed.
    pub seen_guide: bool,
    /// Whether they have ever answered (a skip is no answer).
    pub answered: bool,
    /// When first seen.
    pub created_at: OffsetDateTime,
}

/// A teacher's own figures in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TeacherCounts {
    /// Descriptions this person gave (superseded ones not counted).
    pub described: u64,
    /// Of these, used in an update already.
    pub used: u64,
}

/// An answer as the data set has it.
#[derive(Clone, Debug)]
pub struct ExportRow {
    /// Run id.
    pub run: RunId,
    /// Family.
    pub family: String,
    /// Key of the answer.
    pub answer: AnswerId,
    /// Episode.
    pub episode: u64,
    /// Human or simulated.
    pub source: Source,
    /// Pseudonymous teacher key within the store; `None` for simulated ones.
    pub teacher: Option<TeacherId>,
    /// Request d* of the episode.
    pub request: String,
    /// One plain line of the execution.
    pub execution: String,
    /// The view that the teacher was shown.
    pub view: serde_json::Value,
    /// The gold execution; rows of earlier versions have none.
    pub reference: Option<Reference>,
    /// Whether the execution performs as well as the gold one.
    pub success: bool,
    /// Number of the answer among those of its teacher about the execution, from 1.
    pub revision: u64,
    /// Kind.
    pub kind: AnswerKind,
    /// Text exactly as typed.
    pub text: String,
    /// Medium of the answer.
    pub medium: Medium,
    /// The demonstration.
    pub demonstration: Option<serde_json::Value>,
    /// The rating, from 0 to 1.
    pub rating: Option<f64>,
    /// Whether the teacher could see the request.
    pub request_shown: bool,
    /// Update of the policy that made the execution.
    pub policy_update: u64,
    /// Update that used the answer.
    pub used_in_update: Option<u64>,
    /// Answer that this one corrects.
    pub supersedes: Option<AnswerId>,
    /// Answer that corrects this one; its own key when it was taken back.
    pub superseded_by: Option<AnswerId>,
    /// When the execution was shown.
    pub shown_at: Option<OffsetDateTime>,
    /// Milliseconds of activity.
    pub active_ms: Option<u64>,
    /// Milliseconds without a sign of the person.
    pub idle_ms: Option<u64>,
    /// When the answer was stored.
    pub created_at: OffsetDateTime,
    /// When the teacher took the answer back.
    pub withdrawn_at: Option<OffsetDateTime>,
    /// Whether the agent, asked in these words, did what they describe before it learned from them; `None` where nobody looked.
    pub understood_before: Option<bool>,
    /// Whether it did so right after it had learned from them.
    pub understood_after: Option<bool>,
    /// Whether the person said that the execution did what was asked: `text` is then the request.
    pub fulfilled: bool,
    /// Whether the person is one of those to whom previews are shown; `None` where nobody is.
    pub preview_arm: Option<bool>,
    /// Whether the person saw what the agent would do in their words before they sent them.
    pub preview_shown: bool,
    /// The words of which the preview was shown.
    pub first_text: Option<String>,
    /// Whether the teacher withdrew the answer from the data set: its texts are empty then.
    pub retracted: bool,
    /// A reviewer's decision about it.
    pub review_state: Option<ReviewState>,
    /// The description of its execution that a reviewer decided on.
    pub adjudicated: Option<String>,
    /// Signs that its teacher did not take care. The export fills them in.
    pub quality_flags: Vec<Flag>,
}

impl AnswerKind {
    /// Every kind.
    pub const ALL: [AnswerKind; 4] =
        [AnswerKind::Described, AnswerKind::NothingChanged, AnswerKind::CannotDescribe, AnswerKind::Skipped];
}

impl ExportRow {
    /// Whether the answer stands: no other has taken its place, nobody has taken it back, and no reviewer has rejected it.
    pub fn stands(&self) -> bool {
        let taken_back = self.superseded_by.is_some() || self.withdrawn_at.is_some() || self.retracted;
        !taken_back && self.review_state != Some(ReviewState::Rejected)
    }

    /// Whether it is valid: an answer in the run's medium, and one that stands.
    pub fn is_valid(&self) -> bool {
        self.kind == AnswerKind::Described && self.stands()
    }
}

#[cfg(test)]
mod tests;
