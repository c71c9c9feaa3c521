//! The agent's learning as a person sees it in their own words: how it took the latest of them, which it understood before it was
//! told, and a few of them carried out anew.

use crate::family::Audience;
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::protocol::Rate;
use crate::protocol::evaluation::rate;
use crate::registry::AnyFamily;
use crate::run::{Attempt, Command, RunState};
use crate::store::{LatestComprehension, NewestDescription, TeacherCounts, TeacherReading};
use crate::web::error::{Error, Result};
use crate::web::extractors::visitor::Visitor;
use crate::web::page::run_view::RunView;
use crate::web::services::commands;
use crate::web::state::AppState;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// Readings that a person sees of their own.
pub(crate) const OWN_READINGS: u32 = 50;

/// Latest answers over which the curve of a teacher is a mean.
const WINDOW: usize = 20;

/// Latest readings of a run that its curves are made of.
const READINGS: u32 = 2_000;

/// Latest descriptions of a person among which a review chooses.
const REVIEWABLE: u32 = 100;

/// An attempt of the agent, drawn.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = DrawnAttempt)]
pub(crate) struct Drawn {
    /// The family's drawing; empty where it cannot be drawn.
    html: String,
    /// The drawing in plain text.
    text: String,
    /// Whether it does what the person described.
    understood: bool,
}

impl Drawn {
    fn of(family: &dyn AnyFamily, attempt: &Attempt) -> Drawn {
        let html = family.render(&attempt.view, Audience::Beside).unwrap_or_default();
        let text = family.render_text(&attempt.view).unwrap_or_default();
        Drawn { html, text, understood: attempt.understood }
    }
}

/// A description that the agent has carried out.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = LatestComprehension)]
pub(crate) struct Latest {
    /// The answer.
    answer: AnswerId,
    /// The description, exactly as typed.
    text: String,
    /// Update that learns from it.
    update: u64,
    /// The agent's attempt before it learned.
    before: Drawn,
    /// Its attempt afterwards; absent while it is learning.
    after: Option<Drawn>,
    /// Why there is nothing after, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
}

/// A description that waits for its update.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = WaitingDescription)]
pub(crate) struct Waiting {
    /// The answer.
    answer: AnswerId,
    /// The description, exactly as typed.
    text: String,
    /// When the agent learns from it, in a sentence.
    when: &'static str,
}

/// Whether the agent understood an answer before it was told.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Reading)]
pub(crate) struct ReadingJson {
    answer: AnswerId,
    understood: bool,
}

/// How the agent takes one person's words.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = OwnComprehension)]
pub(crate) struct Own {
    /// The person's figures in this run.
    counts: TeacherCounts,
    /// The newest description, while it waits.
    waiting: Option<Waiting>,
    /// The newest one that the agent has carried out.
    latest: Option<Latest>,
    /// Whether it understood the latest before it was told, oldest first.
    readings: Vec<ReadingJson>,
}

/// When the agent learns from a description that no update has used.
fn when(view: &RunView) -> &'static str {
    match view.status.state {
        _ if view.ended() => "This run has ended, so the agent has not learned from it. Your words are stored.",
        RunState::Paused => "The agent is paused. It learns from this as soon as it goes on.",
        RunState::Starting { .. } => "The agent is getting ready. It learns from this as soon as it is.",
        _ => "The agent learns from this with its next update.",
    }
}

fn latest(view: &RunView, latest: LatestComprehension) -> Latest {
    let missing = match latest.after {
        Some(_) => None,
        None if view.ended() || view.status.update >= latest.update => {
            Some("Nobody looked: the program ended while the agent was learning this.")
        }
        None => Some("It is learning this now\u{2026}"),
    };
    Latest {
        answer: latest.answer,
        text: latest.text,
        update: latest.update,
        before: Drawn::of(view.family, &latest.before),
        after: latest.after.as_ref().map(|after| Drawn::of(view.family, after)),
        missing,
    }
}

/// How the agent takes the words of a teacher.
pub(crate) async fn own(state: &AppState, run: &RunId, teacher: TeacherId) -> Result<Own> {
    let view = RunView::load(state, run).await?;
    let found = state.store.latest_comprehension(run, teacher).await?;
    let newest = state.store.newest_description(run, teacher).await?;
    let told = found.as_ref().map(|found| found.answer);
    let waiting =
        newest.filter(|newest| newest.used_in_update.is_none() && told.is_none_or(|told| told < newest.answer));
    let readings = state.store.readings(run, teacher, OWN_READINGS).await?;
    Ok(Own {
        counts: state.store.teacher_counts(run, teacher).await?,
        waiting: waiting.map(|NewestDescription { answer, text, .. }| Waiting { answer, text, when: when(&view) }),
        latest: found.map(|found| latest(&view, found)),
        readings: readings.iter().map(|r| ReadingJson { answer: r.answer, understood: r.understood }).collect(),
    })
}

/// A description of a person, carried out anew.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ReviewedDescription)]
pub(crate) struct ReviewedJson {
    /// The description, exactly as typed.
    text: String,
    /// Whether the start is another than the one that was described.
    elsewhere: bool,
    /// The agent's attempt.
    attempt: Drawn,
    /// The start in the fields of the try-the-agent box; null where the family cannot tell.
    start: Value,
}

/// A few of a person's descriptions, carried out anew.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Review {
    /// The person's descriptions that stand.
    described: u64,
    /// Update the agent was at.
    update: u64,
    requests: Vec<ReviewedJson>,
}

/// Lets the agent carry out a few of the visitor's descriptions as it does now.
pub(crate) async fn review(state: &AppState, run: &RunId, visitor: &Visitor) -> Result<Review> {
    let view = RunView::load(state, run).await?;
    commands::is_ready(&view)?;
    let described = state.store.learnt_descriptions(run, visitor.teacher.id, REVIEWABLE).await?;
    if described.is_empty() {
        return Err(Error::change("empty", "The agent has not learned from any of your descriptions yet."));
    }
    let counts = state.store.teacher_counts(run, visitor.teacher.id).await?;
    let (send, receive) = oneshot::channel();
    commands::send(state, run, Command::Review { described, number: counts.described, reply: send }).await?;
    let reviewed = commands::reply(state, run, receive).await?;
    Ok(Review {
        described: counts.described,
        update: reviewed.first().map_or(view.status.update, |first| first.update),
        requests: reviewed
            .into_iter()
            .map(|one| ReviewedJson {
                attempt: Drawn::of(view.family, &one.attempt),
                start: view.family.start_fields(&one.wanted),
                text: one.text,
                elsewhere: one.elsewhere,
            })
            .collect(),
    })
}

/// A point of a teacher's curve.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ReadingPoint)]
pub(crate) struct CurvePoint {
    answer: AnswerId,
    update: u64,
    episodes: u64,
    descriptions: u64,
    seconds: f64,
    /// Whether the agent understood this description before it was told.
    understood: bool,
    /// Whether it did right after it had learned from it.
    understood_after: Option<bool>,
    /// Share understood before among this and the descriptions before it, twenty at most.
    rate: Rate,
}

/// The curve of one teacher: what the agent understood before it was told.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TeacherReadings)]
pub(crate) struct Curve {
    teacher: TeacherId,
    points: Vec<CurvePoint>,
}

/// The curves of a run's teachers, in the order of their keys.
pub(crate) async fn curves(state: &AppState, run: &RunId) -> Result<Vec<Curve>> {
    let run = state.store.run(run).await?;
    Ok(curves_of(state.store.readings_of_all(&run.id, READINGS).await?))
}

fn curves_of(readings: Vec<TeacherReading>) -> Vec<Curve> {
    let mut by_teacher: BTreeMap<TeacherId, Vec<TeacherReading>> = BTreeMap::new();
    for reading in readings {
        by_teacher.entry(reading.teacher).or_default().push(reading);
    }
    let point = |readings: &[TeacherReading], at: usize| {
        let window = &readings[(at + 1).saturating_sub(WINDOW)..=at];
        let understood = window.iter().filter(|reading| reading.understood).count();
        let r = readings[at];
        CurvePoint {
            answer: r.answer,
            update: r.update,
            episodes: r.episodes,
            descriptions: r.descriptions,
            seconds: r.seconds,
            understood: r.understood,
            understood_after: r.understood_after,
            rate: rate(understood as u64, window.len() as u64),
        }
    };
    let curve = |(teacher, readings): (TeacherId, Vec<TeacherReading>)| Curve {
        teacher,
        points: (0..readings.len()).map(|at| point(&readings, at)).collect(),
    };
    by_teacher.into_iter().map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_the_mean_of_the_latest_twenty() {
        let reading = |n: i64, teacher| TeacherReading {
            answer: AnswerId(n),
            teacher: TeacherId(teacher),
            update: n as u64,
            episodes: 0,
            descriptions: 0,
            seconds: 0.0,
            understood: n > 10,
            understood_after: None,
        };
        let mut readings: Vec<_> = (1..=40).map(|n| reading(n, 7)).collect();
        readings.push(reading(41, 3));
        let curves = curves_of(readings);
        assert_eq!(curves.iter().map(|curve| curve.teacher.0).collect::<Vec<_>>(), [3, 7]);
        let rates: Vec<_> =
            [0, 10, 19, 29, 39].map(|at| (curves[1].points[at].rate.value, curves[1].points[at].rate.n)).into();
        assert_eq!(rates, [(0.0, 1), (1.0 / 11.0, 11), (0.5, 20), (1.0, 20), (1.0, 20)]);
        assert_eq!(curves[0].points[0].rate.n, 1);
    }
}
