//! The answers that a range of updates learned from, with how well the agent did before and after: the way from a point of a curve back to the
//! words that moved it.

use crate::family::Audience;
use crate::ids::RunId;
use crate::run::{Point, Source};
use crate::store::{AnswerKind, Learned};
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

/// Answers of people, and of the simulated teacher, on a page.
const LENGTH: u32 = 100;
/// Points among which the neighbours of the range are looked for.
const POINTS: usize = 2_000;

/// An answer with its execution drawn.
struct Item {
    answer: Learned,
    html: String,
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
        Some(match (self.answer.understood_before?, self.answer.understood_after) {
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
struct LearnedPage {
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

impl LearnedPage {
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
#[derive(Deserialize)]
pub(crate) struct Range {
    from: Option<u64>,
    to: Option<u64>,
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
    let points = state.store.points(&run, POINTS).await?;
    let newest = points.last().map_or(view.status.update, |point| point.update);
    let to = range.to.unwrap_or(newest);
    let point_before = |update: u64| points.iter().rev().find(|point| point.update < update);
    let tested = |until: u64| points.iter().rev().find(|point| point.update <= until && point.validation.is_some());
    let since = |end: u64| end.checked_sub(1).and_then(tested).map_or(1, |point| point.update + 1);
    let from = range.from.unwrap_or_else(|| since(to)).min(to);
    let span = |end: &Point| (point_before(end.update).map_or(1, |point| point.update + 1), end.update);
    let earlier = points.iter().rev().find(|point| point.update < from).map(span);
    let later = points.iter().find(|point| point.update > to).map(|end| (to + 1, end.update));
    let learned = state.store.learned(&run, (from, to), LENGTH).await?;
    let drawn = |answer: Learned| {
        let html = view.family.render(&answer.view, Audience::Beside).unwrap_or_default();
        Item { answer, html }
    };
    Ok(page::html(&LearnedPage {
        before: from.checked_sub(1).and_then(tested).cloned(),
        after: tested(to).filter(|point| point.update >= from).cloned(),
        items: learned.answers.into_iter().map(drawn).collect(),
        people: learned.people,
        simulated: learned.simulated,
        page,
        view,
        from,
        to,
        earlier,
        later,
    }))
}
