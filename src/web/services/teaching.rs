//! Leasing, showing and answering, for the teacher's page and the JSON addresses.

use crate::family::Change;
use crate::ids::{AnswerId, ExecutionId, TeacherId};
use crate::protocol::Medium;
use crate::registry::AnyFamily;
use crate::run::{Command, RunState};
use crate::store::{AnswerKind, MOST_WAITING, NewAnswer, Response, SavedDraft, StoreError, Stored, TeacherCounts};
use crate::web::error::{Error, Result};
use crate::web::extractors::cookie::new_token;
use crate::web::extractors::visitor::Visitor;
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::services::participation::{self, Progress};
use crate::web::services::{echo, media, preview};
use crate::web::settings::TEXT_LIMIT;
use crate::web::state::AppState;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

/// Number of a person's own answers that the Back page lists.
pub(crate) const OWN_ANSWERS: u32 = 20;

/// Most executions that a page may say it has already. It has two.
pub(crate) const EXCEPT: usize = 32;

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 3_600_000;

/// How many executions that cannot be drawn are passed over before giving up.
const PASSED_OVER: usize = 5;

/// An execution drawn for a teacher.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ShownExecution)]
pub(crate) struct Shown {
    /// Key of the execution.
    pub(crate) execution: ExecutionId,
    /// Number of the episode in the run.
    pub(crate) episode: u64,
    /// The family's drawing.
    pub(crate) html: String,
    /// The drawing in plain text, in a form that programs may rely on.
    pub(crate) text: String,
    /// The drawing in sentences, for a screen reader.
    pub(crate) spoken: String,
    /// The request, in a run that lets teachers see it.
    pub(crate) request: Option<String>,
    /// The visitor's draft about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) draft: Option<SavedDraft>,
    /// An example of a description, for the empty box.
    pub(crate) placeholder: &'static str,
    /// The question that "nothing changed" is met with; `None` when it is believed at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<String>,
    /// Key that makes sending the answer twice harmless.
    pub(crate) client_key: String,
    /// When the lease ends unless it is renewed.
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) expires_at: OffsetDateTime,
    /// When it was given out.
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) shown_at: OffsetDateTime,
    /// Seconds from then to the end of the lease.
    #[serde(skip)]
    pub(crate) lease_seconds: u64,
}

/// The lease of settings as the store wants it.
pub(crate) fn ttl(state: &AppState) -> time::Duration {
    time::Duration::try_from(state.settings.lease_ttl).unwrap_or(time::Duration::minutes(3))
}

/// Leases an execution to the visitor and draws it. `None` when there is none, or the run has ended.
pub(crate) async fn lease(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    except: &[ExecutionId],
) -> Result<Option<Shown>> {
    if view.ended() {
        return Ok(None);
    }
    let mut except = except.to_vec();
    for _ in 0..=PASSED_OVER {
        let Some(leased) = state.store.lease(&view.run.id, visitor.teacher.id, &except, ttl(state)).await? else {
            return Ok(None);
        };
        let drawn = media::draw(view, &leased.view, &Value::Null);
        match drawn {
            Ok((html, text)) => {
                let shown_at = OffsetDateTime::now_utc();
                // Two readings of the clock, which may be set between them: never more than a lease can have.
                let lease_seconds =
                    (leased.expires_at - shown_at).whole_seconds().clamp(1, ttl(state).whole_seconds().max(1));
                let lease_seconds = lease_seconds.unsigned_abs();
                return Ok(Some(Shown {
                    execution: leased.execution,
                    episode: leased.episode,
                    html,
                    text,
                    spoken: media::spoken(view, &leased.view)?,
                    draft: state.store.draft(leased.execution, visitor.teacher.id).await?,
                    placeholder: placeholder(view.family, leased.execution),
                    doubt: media::doubt(view, &leased.view),
                    request: leased.request,
                    client_key: new_token()?,
                    expires_at: leased.expires_at,
                    shown_at,
                    lease_seconds,
                }));
            }
            // One damaged row must not stand in the way of all others, nor take one of the places that a person has.
            Err(error) => {
                state.store.release(leased.execution, visitor.teacher.id).await?;
                tracing::warn!(execution = %leased.execution, %error, "passing over an execution that cannot be drawn");
                except.push(leased.execution);
            }
        }
    }
    Err(Error::Panic("many executions in a row cannot be drawn".to_owned()))
}

/// An example of a description, another one for each execution. It says nothing about the execution itself.
pub(crate) fn placeholder(family: &dyn AnyFamily, execution: ExecutionId) -> &'static str {
    let all = family.placeholders();
    all.get(execution.0.unsigned_abs() as usize % all.len().max(1)).copied().unwrap_or_default()
}

/// An answer as a page or program sends it, before it is checked.
pub(crate) struct Given {
    /// Key that makes sending twice harmless.
    pub(crate) client_key: String,
    /// Execution it is about.
    pub(crate) execution: ExecutionId,
    /// Kind.
    pub(crate) kind: AnswerKind,
    /// Description, or the reason of a skip.
    pub(crate) text: String,
    /// RFC 3339 time at which it was shown.
    pub(crate) shown_at: Option<String>,
    /// Milliseconds of activity.
    pub(crate) active_ms: Option<u64>,
    /// Milliseconds without a sign of the person.
    pub(crate) idle_ms: Option<u64>,
    /// Whether the person was asked, and means it all the same.
    pub(crate) confirmed: bool,
    /// Whether the person says that the execution did what was asked.
    pub(crate) fulfilled: bool,
    /// The text of which a preview was shown.
    pub(crate) first_text: Option<String>,
    /// The demonstration, in a run that learns from demonstrations; null for nothing.
    pub(crate) demonstration: Value,
    /// The rating, in a run that learns from ratings.
    pub(crate) rating: Option<f64>,
}

impl Given {
    /// Checks what a person typed; the sentences say what to change. `nothing`: the words of the button for an execution
    /// that did nothing. `response` is what was given in the run's medium, with the text that says it.
    fn checked(
        self,
        teacher: TeacherId,
        nothing: &str,
        preview_arm: Option<bool>,
        (response, words): (Response, Option<String>),
    ) -> Result<NewAnswer> {
        let length = self.text.chars().count();
        if self.client_key.is_empty() || self.client_key.chars().count() > 64 {
            return Err(Error::Unreadable("client_key must have 1 to 64 characters".to_owned()));
        }
        if self.kind == AnswerKind::Described && response == Response::Text && self.text.trim().is_empty() {
            return Err(Error::change(
                "empty",
                format!(
                    "Write a sentence first. If there is nothing to say, choose \u{201c}{nothing}\u{201d} or \u{201c}I can\u{2019}t describe this\u{201d}."
                ),
            ));
        }
        if length > TEXT_LIMIT {
            return Err(Error::change(
                "too-long",
                format!(
                    "Your text has {} characters and {} fit. Shorten it and send it again.",
                    format::count(&(length as u64)),
                    format::count(&(TEXT_LIMIT as u64))
                ),
            ));
        }
        let now = OffsetDateTime::now_utc();
        let shown_at = self
            .shown_at
            .and_then(|at| OffsetDateTime::parse(&at, &time::format_description::well_known::Rfc3339).ok())
            // A clock that is wrong, or a page left open for weeks: better no time than a false one.
            .filter(|at| *at <= now + time::Duration::minutes(1) && now - *at < time::Duration::days(7))
            .map(|at| at.min(now));
        Ok(NewAnswer {
            client_key: self.client_key,
            execution: self.execution,
            teacher,
            kind: self.kind,
            text: words.unwrap_or(self.text),
            response,
            shown_at,
            active_ms: self.active_ms.map(|ms| ms.min(DAY_MS)),
            idle_ms: self.idle_ms.map(|ms| ms.min(7 * DAY_MS)),
            fulfilled: self.fulfilled,
            preview_arm,
            // Nothing is previewed to others, nor of other answers than descriptions.
            first_text: self.first_text.filter(|text| {
                let described = self.kind == AnswerKind::Described && !self.fulfilled;
                preview_arm == Some(true) && described && text.chars().count() <= TEXT_LIMIT
            }),
        })
    }
}

/// The reply to an answer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Thanks {
    /// Key of the stored answer.
    pub(crate) answer: AnswerId,
    /// Whether it had been stored before.
    pub(crate) again: bool,
    /// The teacher's figures in this run.
    pub(crate) counts: TeacherCounts,
    /// One true sentence.
    pub(crate) thanks: String,
    /// How far the teacher is, and what the agent can do ([`progress`]).
    pub(crate) progress: String,
    /// How the teacher stands in the study that the run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) study: Option<Progress>,
}

/// Question for a person whose description of a failed execution is its request.
const ECHO: &str = "That is what it was asked to do. Is it also what it did? Nothing has been stored yet.";

/// Makes the request the description where the person says that it was fulfilled, and asks before it stores what contradicts
/// what the server knows: a description that repeats the request of an execution that did something else, and "nothing changed"
/// of one that changed something. A press beside the button meant is told from an opinion only by asking.
async fn doubt(state: &AppState, view: &RunView, visitor: &Visitor, given: &mut Given) -> Result<()> {
    if given.kind == AnswerKind::Described {
        let asked = match state.store.asked(given.execution, visitor.teacher.id).await {
            Err(StoreError::NotFound(_)) => return Ok(()), // storing it says so
            other => other?,
        };
        if given.fulfilled {
            if !asked.visible {
                return Err(Error::change(
                    "hidden",
                    "Look at what it was asked to do first, then say whether it did that.",
                ));
            }
            given.text = asked.request;
        } else if asked.visible && !asked.success && !given.confirmed && echo::repeats(&given.text, &asked.request) {
            return Err(Error::Unconfirmed(ECHO.to_owned()));
        }
        return Ok(());
    }
    given.fulfilled = false;
    if given.kind != AnswerKind::NothingChanged || given.confirmed {
        return Ok(());
    }
    let shown = match state.store.view(given.execution).await {
        Err(StoreError::NotFound(_)) => return Ok(()), // storing it says so
        other => other?,
    };
    question(view.family, &shown).map_or(Ok(()), |question| Err(Error::Unconfirmed(question)))
}

/// The question for a person who says "nothing changed" of an execution that, as far as the family knows, changed something.
pub(crate) fn question(family: &dyn AnyFamily, view: &Value) -> Option<String> {
    let Change::Something(what) = family.change(view) else { return None };
    let nothing = family.nothing_changed();
    Some(format!("{what} Do you still mean \u{201c}{nothing}\u{201d}? Nothing has been stored yet."))
}

/// Stores an answer and tells the trainer. When it returns, the answer is on disk.
pub(crate) async fn answer(state: &AppState, view: &RunView, visitor: &Visitor, mut given: Given) -> Result<Thanks> {
    doubt(state, view, visitor, &mut given).await?;
    let arm = preview::arm(state, view, visitor.teacher.id).await?;
    state.store.execution_in(&view.run.id, given.execution).await?;
    let response = media::check(state, view, &given).await?;
    let new = given.checked(visitor.teacher.id, view.family.nothing_changed(), arm, response)?;
    let stored = state.store.answer(&new).await?;
    arrived(state, view);
    thanks(state, view, visitor, new.kind, stored).await
}

/// Key for other words sent by a plain form that was sent before (the browser's back button): the same words sent
/// twice have the same key.
pub(crate) fn key_of_words(key: &str, text: &str) -> String {
    let digest = Sha256::digest(format!("{key} {text}"));
    hex::encode(&digest[..16])
}

/// Stores a corrected answer.
pub(crate) async fn correct(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    answer: AnswerId,
    mut given: Given,
) -> Result<Thanks> {
    doubt(state, view, visitor, &mut given).await?;
    let arm = preview::arm(state, view, visitor.teacher.id).await?;
    state.store.answer_in(&view.run.id, answer, visitor.teacher.id).await?;
    state.store.execution_in(&view.run.id, given.execution).await?;
    let response = media::check(state, view, &given).await?;
    let new = given.checked(visitor.teacher.id, view.family.nothing_changed(), arm, response)?;
    let stored = state.store.correct(answer, &new).await?;
    arrived(state, view);
    thanks(state, view, visitor, new.kind, stored).await
}

/// Tells the trainer to look into the store. It also looks by itself, so a run that just ended is no error here.
fn arrived(state: &AppState, view: &RunView) {
    state.runs.tell_answer();
    if let Some(handle) = state.runs.get(&view.run.id) {
        let _ = handle.commands.send(Command::DescriptionArrived);
    }
}

async fn thanks(
    state: &AppState,
    view: &RunView,
    visitor: &Visitor,
    kind: AnswerKind,
    stored: Stored,
) -> Result<Thanks> {
    let counts = state.store.teacher_counts(&view.run.id, visitor.teacher.id).await?;
    let thanks = sentence(kind, counts, view);
    let study = participation::progress(state, &view.run.id, visitor).await?;
    let progress = progress(counts, view);
    Ok(Thanks { answer: stored.answer, again: stored.again, counts, thanks, progress, study })
}

/// How many answers the teacher gave, and what the agent can do now.
pub(crate) fn progress(counts: TeacherCounts, view: &RunView) -> String {
    let tested = view.status.validation.as_ref().map(|rate| {
        let right = (rate.value * rate.n as f64).round() as u64;
        format!(
            "In its latest test the agent did {} of {} new requests right.",
            format::count(&right),
            format::count(&rate.n)
        )
    });
    let given = given_of(counts.described, view.medium());
    [given, tested.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// How many answers somebody gave in a run's medium; nothing for none. A study's own line says how many it asks for.
fn given_of(given: u64, medium: Medium) -> String {
    match given {
        0 => String::new(),
        _ => format!("You have given {} so far.", format::counted(&given, medium.word())),
    }
}

/// Answers that wait for an update beyond which the agent is said to be behind.
const BEHIND: u64 = 64;

/// The words for an agent that more people teach than it can follow.
fn behind(waiting: u64, medium: Medium) -> String {
    let more = if waiting >= u64::from(MOST_WAITING) { " or more" } else { "" };
    format!("The agent is behind: {}{more} {} wait to be learned from", format::count(&waiting), medium.words())
}

/// One line of thanks with something true in it.
pub(crate) fn sentence(kind: AnswerKind, counts: TeacherCounts, view: &RunView) -> String {
    let learns = match view.status.state {
        _ if view.ended() => "The agent has ended and learns no more".to_owned(),
        RunState::Paused => "The agent is paused and learns later".to_owned(),
        RunState::Starting { .. } => "The agent learns as soon as it is ready".to_owned(),
        _ if view.status.waiting > BEHIND => behind(view.status.waiting, view.medium()),
        _ => String::new(),
    };
    thank(kind, counts, view.family.nothing_changed(), &learns, view.medium())
}

/// The line of thanks. `nothing`: the words of the button for an execution that did nothing. `learns`: when the agent learns
/// from what it has not used, where that is not its next update.
fn thank(kind: AnswerKind, counts: TeacherCounts, nothing: &str, learns: &str, medium: Medium) -> String {
    let n = format::count(&counts.described);
    let waiting = counts.described.saturating_sub(counts.used);
    let rest = match (learns, waiting) {
        ("", 0 | 1) => "it will learn from the last one next".to_owned(),
        ("", more) => format!("it will learn from the last {} next", format::count(&more)),
        (other, _) => format::lower(other),
    };
    match (kind, counts.used, counts.described) {
        (AnswerKind::Skipped, ..) => "Skipped. It waits under Back if you change your mind.".to_owned(),
        (AnswerKind::NothingChanged, ..) => format!("Noted: {}. Here is the next one.", format::lower(nothing)),
        (AnswerKind::CannotDescribe, ..) if medium != Medium::Description => {
            "Noted, thank you. Here is the next one.".to_owned()
        }
        (AnswerKind::CannotDescribe, ..) => "Noted, thank you. Not everything can be put into words.".to_owned(),
        (_, 0, 0 | 1) if learns.is_empty() => {
            format!("Thank you. Your first {medium} is stored; the agent will learn from it next.")
        }
        (_, 0, 0 | 1) => format!("Thank you. Your first {medium} is stored. {learns}."),
        (_, 0, _) => format!("Thank you. {n} of your {} are stored; {rest}.", medium.words()),
        (_, used, described) if used == described => {
            format!("Thank you. The agent has learned from all {n} of your {}.", medium.words())
        }
        (_, used, _) => {
            format!("Thank you. The agent has learned from {} of your {n}; {rest}.", format::count(&used))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(kind: AnswerKind, text: &str) -> Given {
        Given {
            client_key: "k".into(),
            execution: ExecutionId(1),
            kind,
            text: text.into(),
            shown_at: Some("2001-01-01T00:00:00Z".into()),
            active_ms: Some(u64::MAX),
            idle_ms: Some(u64::MAX),
            confirmed: false,
            fulfilled: false,
            first_text: Some("before".into()),
            demonstration: Value::Null,
            rating: None,
        }
    }

    #[test]
    fn text_is_checked_and_never_altered() {
        let text = "  it doubled the \u{e9}\u{1f600}  ";
        let new = given(AnswerKind::Described, text)
            .checked(TeacherId(7), "Nothing changed", None, (Response::Text, None))
            .unwrap();
        assert_eq!((new.text.as_str(), new.teacher), (text, TeacherId(7)));
        assert_eq!((new.shown_at, new.active_ms, new.idle_ms), (None, Some(86_400_000), Some(7 * 86_400_000)));
        assert_eq!((new.preview_arm, new.first_text), (None, None), "previews are shown to nobody");
        let previewed = given(AnswerKind::Described, text)
            .checked(TeacherId(7), "Nothing changed", Some(true), (Response::Text, None))
            .unwrap();
        assert_eq!(previewed.first_text.as_deref(), Some("before"));
        let skipped = given(AnswerKind::Skipped, "")
            .checked(TeacherId(7), "Nothing changed", Some(true), (Response::Text, None))
            .unwrap();
        assert_eq!(skipped.first_text, None);
        assert!(
            given(AnswerKind::Described, " \n\u{2003}")
                .checked(TeacherId(7), "Nothing changed", None, (Response::Text, None))
                .is_err()
        );
        assert!(
            given(AnswerKind::Skipped, "")
                .checked(TeacherId(7), "Nothing changed", None, (Response::Text, None))
                .is_ok()
        );
    }

    #[test]
    fn the_limit_counts_characters_not_bytes() {
        assert!(
            given(AnswerKind::Described, &"\u{1f600}".repeat(TEXT_LIMIT))
                .checked(TeacherId(7), "Nothing changed", None, (Response::Text, None))
                .is_ok()
        );
        let error = given(AnswerKind::Described, &"x".repeat(TEXT_LIMIT + 1))
            .checked(TeacherId(7), "Nothing changed", None, (Response::Text, None))
            .unwrap_err();
        assert!(error.to_string().contains("5,001") && error.to_string().contains("5,000"), "{error}");
    }

    #[test]
    fn how_far_one_is_is_said_with_and_without_a_goal() {
        assert_eq!(given_of(0, Medium::Description), "");
        assert_eq!(given_of(1, Medium::Description), "You have given 1 description so far.");
        assert_eq!(given_of(1200, Medium::Rating), "You have given 1,200 ratings so far.");
    }

    #[test]
    fn thanks_are_true() {
        let said = |described, used| {
            thank(AnswerKind::Described, TeacherCounts { described, used }, "Nothing changed", "", Medium::Description)
        };
        assert!(said(1, 0).contains("first"));
        assert!(said(45, 41).contains("41 of your 45") && said(45, 41).contains("it will learn from the last 4 next"));
        assert!(said(3, 2).contains("2 of your 3; it will learn from the last one next."));
        assert!(said(3, 3).contains("all 3"));
        let counts = TeacherCounts { described: 2, used: 1 };
        let paused =
            thank(AnswerKind::Described, counts, "Nothing changed", "The agent is paused", Medium::Description);
        assert!(paused.ends_with("1 of your 2; the agent is paused."), "{paused}");
        let late = thank(
            AnswerKind::Described,
            counts,
            "Nothing changed",
            &behind(571, Medium::Description),
            Medium::Description,
        );
        assert!(
            late.ends_with("1 of your 2; the agent is behind: 571 descriptions wait to be learned from."),
            "{late}"
        );
        assert!(behind(10_000, Medium::Rating).contains("10,000 or more ratings"));
    }
}
