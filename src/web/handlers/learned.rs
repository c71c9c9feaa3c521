//! The answers that a range of updates learned from, with how well the agent did before and after: the way from a point of a curve back to the
//! words that moved it.

use crate::family::Audience;
use crate::ids::RunId;
use crate::protocol::Rate;
use crate::run::{Attempt, Point, Source};
use crate::store::{AnswerKind, Learned, LearnedPage};
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::{IntoParams, ToSchema};

/// Answers of people, and of the simulated teacher, on a page.
const LENGTH: u32 = 100;
/// The most rows of a page whose address says how many.
const MOST: u32 = 500;
/// Points among which the neighbours of the range are looked for.
const POINTS: usize = 2_000;

/// An answer with its execution drawn.
struct Item {
    answer: Learned,
    html: String,
    /// Whether it is the first of its episode.
    first: bool,
    /// The agent's attempts at these words before it had learned from them, and after.
    tries: Vec<(&'static str, bool, String)>,
}

impl Item {
    /// Who gave it, and in which form.
    fn said(&self) -> &'static str {
        match (self.answer.source, self.answer.kind, self.answer.text.is_empty()) {
            (Source::Human, _, true) => "A person withdrew these words",
            (Source::Human, AnswerKind::Described, _) => "A person said",
            (Source::Human, ..) => "A person could not say",
            (Source::Simulated, ..) => "The simulated teacher said",
        }
    }

    /// How the agent took the words, where that was looked at.
    fn taken(&self) -> Option<&'static str> {
        let understood = |attempt: &Attempt| attempt.understood;
        Some(match (self.answer.before.as_ref().map(understood)?, self.answer.after.as_ref().map(understood)) {
            (true, Some(true)) => "It understood these words before it learned from them, and after.",
            (false, Some(true)) => "It did not understand these words before it learned from them; right after it did.",
            (true, Some(false)) => "It understood these words before it learned from them; right after it did not.",
            (false, Some(false)) => "It understood these words neither before it learned from them nor right after.",
            (true, None) => "It understood these words before it learned from them.",
            (false, None) => "It did not understand these words before it learned from them.",
        })
    }
}

#[derive(Template)]
#[template(path = "learned.html")]
struct LearnedView {
    page: Page,
    view: RunView,
    from: u64,
    to: u64,
    /// The newest tested point before the range, and the one at its end.
    before: Option<Point>,
    after: Option<Point>,
    /// The ranges between the points beside this one.
    earlier: Option<(u64, u64)>,
    later: Option<(u64, u64)>,
    items: Vec<Item>,
    people: u64,
    simulated: u64,
}

impl LearnedView {
    fn title(&self) -> String {
        let (from, to) = (format::count(&self.from), format::count(&self.to));
        if from == to { format!("Learned in update {to}") } else { format!("Learned in updates {from} to {to}") }
    }

    /// Answers of the range that have no room on the page.
    fn left_out(&self) -> u64 {
        self.people + self.simulated - self.items.len() as u64
    }

    /// Validation success at a point, in words.
    fn success(&self, point: &Option<Point>) -> String {
        match point.as_ref().and_then(|point| point.validation.as_ref()) {
            Some(rate) => format::rate(rate),
            None => "not tested".to_owned(),
        }
    }
}

/// Query of the page: the first and the last update; by default all since the test before the newest point.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Range {
    /// The first update; the one after the last test before the range where it is left out.
    from: Option<u64>,
    /// The last update; the newest one where it is left out.
    to: Option<u64>,
    /// Answers of people, and of the simulated teacher, at most; 100 where it is left out.
    #[param(maximum = 500)]
    limit: Option<u32>,
}

/// The updates of a range, and the points around them.
struct Span {
    from: u64,
    to: u64,
    points: Vec<Point>,
}

impl Span {
    async fn of(state: &AppState, view: &RunView, range: &Range) -> Result<Span> {
        let points = state.store.points(&view.run.id, POINTS).await?;
        let newest = points.last().map_or(view.status.update, |point| point.update);
        let to = range.to.unwrap_or(newest);
        let mut span = Span { from: to, to, points };
        let since = to.checked_sub(1).and_then(|update| span.tested(update)).map_or(1, |point| point.update + 1);
        span.from = range.from.unwrap_or(since).min(to);
        Ok(span)
    }

    /// The newest tested point up to an update.
    fn tested(&self, until: u64) -> Option<&Point> {
        self.points.iter().rev().find(|point| point.update <= until && point.validation.is_some())
    }

    /// The newest tested point before the range.
    fn before(&self) -> Option<&Point> {
        self.from.checked_sub(1).and_then(|update| self.tested(update))
    }

    /// The newest tested point in the range.
    fn after(&self) -> Option<&Point> {
        self.tested(self.to).filter(|point| point.update >= self.from)
    }

    /// The ranges between the points beside this one: the one before it, and the one after it.
    fn beside(&self) -> [Option<(u64, u64)>; 2] {
        let point_before = |update: u64| self.points.iter().rev().find(|point| point.update < update);
        let span = |end: &Point| (point_before(end.update).map_or(1, |point| point.update + 1), end.update);
        [
            self.points.iter().rev().find(|point| point.update < self.from).map(span),
            self.points.iter().find(|point| point.update > self.to).map(|end| (self.to + 1, end.update)),
        ]
    }
}

/// `GET /runs/{run}/learned`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(range): Query<Range>,
    page: Page,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let span = Span::of(&state, &view, &range).await?;
    let limit = range.limit.unwrap_or(LENGTH).clamp(1, MOST);
    let learned = state.store.learned(&run, (span.from, span.to), limit).await?;
    let mut met = HashSet::new();
    let drawn = |answer: Learned| {
        let html = view.family.render(&answer.view, Audience::Beside).unwrap_or_default();
        let tries = [("Before", &answer.before), ("After", &answer.after)];
        let tries = tries.into_iter().filter_map(|(when, attempt)| {
            let attempt = attempt.as_ref()?;
            let drawing = view.family.render(&attempt.view, Audience::Beside).unwrap_or_default();
            Some((when, attempt.understood, drawing))
        });
        let first = met.insert(answer.episode);
        Item { html, first, tries: tries.collect(), answer }
    };
    let [earlier, later] = span.beside();
    Ok(page::html(&LearnedView {
        before: span.before().cloned(),
        after: span.after().cloned(),
        items: learned.answers.into_iter().map(drawn).collect(),
        people: learned.people,
        simulated: learned.simulated,
        page,
        view,
        from: span.from,
        to: span.to,
        earlier,
        later,
    }))
}

/// Answer of `GET /api/v1/runs/{run}/learned`.
#[derive(Serialize, ToSchema)]
pub(crate) struct LearnedFrom {
    /// The first update.
    from: u64,
    /// The last update.
    to: u64,
    /// Validation success at the last test before the range.
    validation_before: Option<Rate>,
    /// Validation success at the last test in the range.
    validation_after: Option<Rate>,
    /// Answers of people in the range.
    people: u64,
    /// Answers of the simulated teacher in the range.
    simulated: u64,
    /// The answers: people's first, each kind in order of use.
    answers: Vec<Learned>,
}

/// `GET /api/v1/runs/{run}/learned`.
#[utoipa::path(get, path = "/runs/{run}/learned", operation_id = "show_learned", tag = "runs",
    summary = "The answers that a range of updates learned from, and what changed",
    description = "Of each answer of a person: what the agent did in these words, from the same start, before it learned from them and \
        right after. Simulated descriptions are not carried out again.",
    params(("run" = String, Path, description = "Key of the run"), Range),
    responses((status = 200, body = LearnedFrom, description = "The answers")))]
pub(crate) async fn api(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(range): Query<Range>,
) -> Result<Json<LearnedFrom>> {
    let view = RunView::load(&state, &run).await?;
    let span = Span::of(&state, &view, &range).await?;
    let limit = range.limit.unwrap_or(LENGTH).clamp(1, MOST);
    let LearnedPage { answers, people, simulated } = state.store.learned(&run, (span.from, span.to), limit).await?;
    let success = |point: Option<&Point>| point.and_then(|point| point.validation);
    Ok(Json(LearnedFrom {
        validation_before: success(span.before()),
        validation_after: success(span.after()),
        from: span.from,
        to: span.to,
        people,
        simulated,
        answers,
    }))
}
