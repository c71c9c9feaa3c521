//! The outcome of a rehearsal, as JSON and in words.

use super::tally::Times;
use crate::ids::RunId;
use crate::output::{OutputError, out};
use crate::study::comparison::Outcome;
use crate::study::{Comparison, Estimate, Interval};
use serde::Serialize;
use std::collections::BTreeMap;

/// The outcome of a rehearsal.
#[derive(Debug, Serialize)]
pub(super) struct Rehearsal {
    /// Title of the study.
    pub(super) study: String,
    /// Simulated people.
    pub(super) teachers: u64,
    /// Factor by which they were quicker than people.
    pub(super) speed: f64,
    /// Share of them who left early.
    pub(super) drops: f64,
    /// Seed of everything that they did.
    pub(super) seed: u64,
    /// Version of the program.
    pub(super) version: &'static str,
    /// Seconds from the first who came to the last who went.
    pub(super) seconds: f64,
    /// Participants by state at the end.
    pub(super) states: BTreeMap<&'static str, u64>,
    /// The arms.
    pub(super) arms: Vec<ArmOutcome>,
    /// Milliseconds of requests by kind.
    pub(super) milliseconds: BTreeMap<&'static str, Times>,
    /// Intended disturbances, each with the number of times that it happened.
    pub(super) happenings: BTreeMap<String, u64>,
    /// Errors, each with the number of times that it happened.
    pub(super) errors: BTreeMap<String, u64>,
    /// Minutes that it would take one person who finishes, with all that is read.
    pub(super) minutes_each: Option<Times>,
    /// The estimate of the study's page with the time that answers took here.
    pub(super) estimate: Estimate,
    /// Pay for all minutes of everybody, in the settings' currency.
    pub(super) pay: f64,
    /// The currency.
    pub(super) currency: String,
    /// The figures of each condition.
    pub(super) comparison: BTreeMap<String, Outcome>,
}

/// One arm.
#[derive(Debug, Serialize)]
pub(super) struct ArmOutcome {
    /// Its name.
    pub(super) name: String,
    /// Its run.
    pub(super) run: RunId,
    /// Word for an answer in it.
    pub(super) medium: String,
    /// People who finished in it.
    pub(super) finished: u64,
}

/// Figures by the name of the condition, without curves.
pub(super) fn figures(comparison: &Comparison) -> BTreeMap<String, Outcome> {
    comparison.conditions.iter().map(|condition| (condition.name.clone(), condition.outcome.clone())).collect()
}

/// A change of a share in percentage points with its interval.
fn points(change: Option<Interval>) -> String {
    change.map_or_else(
        || "-".to_owned(),
        |Interval { value, low, high }| format!("{:+.2} ({:+.2} to {:+.2})", value * 100.0, low * 100.0, high * 100.0),
    )
}

impl Rehearsal {
    /// Prints the outcome for people.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(super) fn print(&self) -> Result<(), OutputError> {
        let states: Vec<String> =
            self.states.iter().map(|(state, n)| format!("{n} {}", state.replace('_', " "))).collect();
        out!("{}: {} simulated people, {:.0} times as quick as people", self.study, self.teachers, self.speed)?;
        out!("  took {:.0} s; at the end {}", self.seconds, states.join(", "))?;
        for (what, times) in &self.milliseconds {
            out!(
                "  {what:<8} {:>6} requests, median {:>7.1} ms, 95th percentile {:>7.1} ms",
                times.n,
                times.p50,
                times.p95
            )?;
        }
        for (what, n) in &self.happenings {
            out!("  {n:>6} {what}")?;
        }
        if self.errors.is_empty() {
            out!("  no error")?;
        }
        for (what, n) in &self.errors {
            out!("  ERROR {n} times: {what}")?;
        }
        out!("")?;
        let width = self.comparison.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(9);
        out!(
            "{:<width$}  {:>8}  {:>9}  {:>7}  {:>15}  {:>24}  {:>24}",
            "condition",
            "teachers",
            "responses",
            "minutes",
            "before and now",
            "points each minute",
            "points for ten responses"
        )?;
        for (name, outcome) in &self.comparison {
            let share = |rate: Option<crate::protocol::Rate>| {
                rate.map_or("-".into(), |rate| format!("{:.1}%", rate.value * 100.0))
            };
            out!(
                "{name:<width$}  {:>8}  {:>9}  {:>7.1}  {:>15}  {:>24}  {:>24}",
                outcome.teachers,
                outcome.responses,
                outcome.active_minutes,
                format!("{} {}", share(outcome.before), share(outcome.now)),
                points(outcome.gain_per_minute),
                points(outcome.gain_per_ten_responses)
            )?;
        }
        out!("Intervals are of 95% and about one run with these people; another seed may do better or worse.")?;
        out!("")?;
        if let Some(minutes) = self.minutes_each {
            out!(
                "Real people would need about {:.0} minutes each (19 of 20 at most {:.0}).",
                minutes.p50,
                minutes.p95
            )?;
        }
        if self.pay > 0.0 {
            out!(
                "At the study's rate, all of it would cost {:.2} {} without a platform's fee.",
                self.pay,
                self.currency
            )?;
        }
        Ok(())
    }
}
