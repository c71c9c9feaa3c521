//! The comparison of a study's conditions: learning against the effort of teachers, as a page, as JSON and as tables.

use crate::ids::StudyId;
use crate::output::spreadsheet;
use crate::protocol::Rate;
use crate::store::Study;
use crate::study::comparison::{EffortPoint, Outcome};
use crate::study::{Comparison, Interval, compare};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Path;
use crate::web::format;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::Response;

/// Evaluations of a run in the page's table of curves.
const TABLED: usize = 12;

/// A figure with its interval, as pages write them.
pub(crate) struct Figure {
    pub(crate) value: String,
    pub(crate) range: String,
}

/// A condition, or a run of it, as a row of the page's table.
pub(crate) struct Row {
    pub(crate) name: String,
    /// Runs of the condition; of a run's own row its name.
    pub(crate) runs: u64,
    pub(crate) run: Option<String>,
    pub(crate) outcome: Outcome,
    /// Success before and now, the gain, the gain each minute and for ten responses, and words understood.
    pub(crate) figures: Vec<Option<Figure>>,
}

/// A share as a percentage with one decimal.
fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A difference of shares in percentage points: three digits at most, and a sign.
fn points(share: f64) -> String {
    let points = share * 100.0;
    let decimals = match points.abs() {
        size if size >= 1.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    let digits = format!("{:.decimals$}", points.abs());
    let nothing = digits.chars().all(|c| matches!(c, '0' | '.'));
    match points {
        _ if nothing => digits,
        negative if negative < 0.0 => format!("\u{2212}{digits}"),
        _ => format!("+{digits}"),
    }
}

fn share(rate: Option<Rate>) -> Option<Figure> {
    let rate = rate?;
    let range = format!("{:.0} to {:.0}%, n = {}", rate.low * 100.0, rate.high * 100.0, format::count(&rate.n));
    Some(Figure { value: percent(rate.value), range })
}

fn change(interval: Option<Interval>) -> Option<Figure> {
    let Interval { value, low, high } = interval?;
    Some(Figure { value: points(value), range: format!("{} to {}", points(low), points(high)) })
}

impl Row {
    fn new(name: String, runs: usize, run: Option<String>, outcome: &Outcome) -> Row {
        let figures = vec![
            share(outcome.before),
            share(outcome.now),
            change(outcome.gain),
            change(outcome.gain_per_minute),
            change(outcome.gain_per_ten_responses),
            share(outcome.understood.map(|understood| understood.share)),
        ];
        Row { name, runs: runs as u64, run, outcome: outcome.clone(), figures }
    }

    /// The figures that are about success in tests.
    pub(crate) fn of_success(&self) -> &[Option<Figure>] {
        &self.figures[..5]
    }

    pub(crate) fn halves(&self) -> Option<String> {
        let understood = self.outcome.understood?;
        Some(format!("{} then {}", percent(understood.first_half.value), percent(understood.second_half.value)))
    }

    pub(crate) fn minutes(&self) -> String {
        format!("{:.1}", self.outcome.active_minutes)
    }

    /// Responses that the newest evaluation does not know of yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.outcome.given.saturating_sub(self.outcome.responses)
    }
}

/// The rows of the page's table. `taught`: none before anybody has given a response.
pub(crate) fn rows(comparison: &Comparison, taught: bool) -> Vec<Row> {
    if taught && comparison.conditions.iter().all(|condition| condition.outcome.given == 0) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for condition in &comparison.conditions {
        let runs = condition.runs.len();
        rows.push(Row::new(condition.name.clone(), runs, None, &condition.outcome));
        for run in condition.runs.iter().filter(|_| runs > 1 && !taught) {
            let name = run.run.as_ref().map(|run| run.to_string()).unwrap_or_default();
            rows.push(Row::new(condition.name.clone(), 1, Some(name), &run.outcome));
        }
    }
    rows
}

/// The comparison of a study, as of now.
pub(crate) async fn load(state: &AppState, study: &Study) -> Result<Comparison> {
    let runs = state.store.taught_runs(study).await?;
    // A bootstrap of many teachers is work for a thread that nobody waits for.
    let compared = tokio::task::spawn_blocking(move || compare(&runs)).await;
    compared.map_err(|error| Error::Panic(format!("the comparison broke off: {error}")))
}

#[derive(Template)]
#[template(path = "study/comparison.html")]
struct ComparisonPage {
    page: Page,
    study: Study,
    compared: Vec<Row>,
    /// A few evaluations of each run: the condition, the run where there are several, and the evaluation.
    curves: Vec<(String, Option<String>, EffortPoint)>,
    /// Whether a condition has several runs.
    several: bool,
    /// Whether the simulated teacher taught as well.
    simulated: bool,
    /// Responses whose time was not measured.
    untimed: u64,
}

impl ComparisonPage {
    fn success(&self, point: &EffortPoint) -> String {
        let Rate { value, n, low, high } = point.validation;
        format!("{} of {} ({:.0}\u{2013}{:.0}%)", percent(value), format::count(&n), low * 100.0, high * 100.0)
    }
}

/// `GET /studies/{study}/comparison`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let comparison = load(&state, &study).await?;
    let mut curves = Vec::new();
    for condition in &comparison.conditions {
        for run in &condition.runs {
            let name = run.run.as_ref().map(|run| run.to_string()).filter(|_| condition.runs.len() > 1);
            let last = run.points.len().saturating_sub(1);
            let chosen = (0..run.points.len()).filter(|i| *i == last || *i % run.points.len().div_ceil(TABLED) == 0);
            curves.extend(chosen.map(|i| (condition.name.clone(), name.clone(), run.points[i])));
        }
    }
    let outcomes = || comparison.conditions.iter().map(|condition| &condition.outcome);
    Ok(page::html(&ComparisonPage {
        page,
        study,
        curves,
        several: comparison.conditions.iter().any(|condition| condition.runs.len() > 1),
        simulated: outcomes().any(|outcome| outcome.simulated),
        untimed: outcomes().map(|outcome| outcome.untimed).sum(),
        compared: rows(&comparison, false),
    }))
}

/// `GET /api/studies/{study}/comparison`.
#[utoipa::path(get, path = "/studies/{study}/comparison", operation_id = "compare_conditions", tag = "studies",
    summary = "What the runs of a study have come to", description = "",
    params(("study" = String, Path, description = "Key of the study")),
    responses((status = 200, body = Comparison, description = "The comparison")))]
pub(crate) async fn api(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
) -> Result<Json<Comparison>> {
    let study = state.store.study(&id).await?;
    Ok(Json(load(&state, &study).await?))
}

/// Columns of [`csv`] that name a row and count.
const COUNTS: [&str; 9] =
    ["level", "condition", "run", "runs", "teachers", "responses", "given", "active_minutes", "untimed"];
/// Shares of it; each has three more columns, `_n`, `_low` and `_high`.
const SHARES: [&str; 3] = ["before", "now", "understood"];
/// Differences of shares; each has two more columns, `_low` and `_high`.
const CHANGES: [&str; 3] = ["gain", "gain_per_minute", "gain_per_ten_responses"];

fn header_of_table() -> Vec<String> {
    let shares = SHARES.iter().flat_map(|name| ["", "_n", "_low", "_high"].map(|end| format!("{name}{end}")));
    let changes = CHANGES.iter().flat_map(|name| ["", "_low", "_high"].map(|end| format!("{name}{end}")));
    let counts = COUNTS.iter().map(|name| (*name).to_owned());
    let last = ["understood_first_half", "understood_second_half", "simulated"].map(str::to_owned);
    counts.chain(shares).chain(changes).chain(last).collect()
}

/// A number as a file has it: as many digits as it has.
fn number(number: f64) -> String {
    number.to_string()
}

fn cells_of(outcome: &Outcome, level: &str, condition: &str, run: &str, runs: usize) -> Vec<String> {
    let mut cells = vec![
        level.to_owned(),
        spreadsheet::cell(condition).into_owned(),
        spreadsheet::cell(run).into_owned(),
        runs.to_string(),
        outcome.teachers.to_string(),
        outcome.responses.to_string(),
        outcome.given.to_string(),
        number(outcome.active_minutes),
        outcome.untimed.to_string(),
    ];
    for rate in [outcome.before, outcome.now, outcome.understood.map(|understood| understood.share)] {
        cells.extend(match rate {
            Some(rate) => [number(rate.value), rate.n.to_string(), number(rate.low), number(rate.high)],
            None => Default::default(),
        });
    }
    for change in [outcome.gain, outcome.gain_per_minute, outcome.gain_per_ten_responses] {
        cells.extend(match change {
            Some(change) => [number(change.value), number(change.low), number(change.high)],
            None => Default::default(),
        });
    }
    cells.extend(match outcome.understood {
        Some(understood) => [number(understood.first_half.value), number(understood.second_half.value)],
        None => Default::default(),
    });
    cells.push(outcome.simulated.to_string());
    cells
}

/// `GET /studies/{study}/comparison.csv`: a line for each condition, followed by one for each of its runs.
pub(crate) async fn csv(_: Steering, State(state): State<AppState>, Path(id): Path<StudyId>) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let comparison = load(&state, &study).await?;
    let mut lines = vec![header_of_table()];
    for condition in &comparison.conditions {
        lines.push(cells_of(&condition.outcome, "condition", &condition.name, "", condition.runs.len()));
        for run in &condition.runs {
            let name = run.run.as_ref().map(|run| run.to_string()).unwrap_or_default();
            lines.push(cells_of(&run.outcome, "run", &condition.name, &name, 1));
        }
    }
    page::csv_file(&format!("{id}-comparison"), lines)
}

/// `GET /studies/{study}/comparison-curves.csv`: a line for each evaluation of each run.
pub(crate) async fn curves_csv(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let comparison = load(&state, &study).await?;
    let columns =
        ["condition", "run", "update", "updates", "responses", "active_minutes", "success", "n", "low", "high"];
    let mut lines = vec![columns.map(str::to_owned).to_vec()];
    for condition in &comparison.conditions {
        for run in &condition.runs {
            let name = run.run.as_ref().map(|run| run.to_string()).unwrap_or_default();
            lines.extend(run.points.iter().map(|point| {
                vec![
                    spreadsheet::cell(&condition.name).into_owned(),
                    spreadsheet::cell(&name).into_owned(),
                    point.update.to_string(),
                    point.updates.to_string(),
                    point.responses.to_string(),
                    number(point.active_minutes),
                    number(point.validation.value),
                    point.validation.n.to_string(),
                    number(point.validation.low),
                    number(point.validation.high),
                ]
            }));
        }
    }
    page::csv_file(&format!("{id}-comparison-curves"), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_and_few_digits() {
        let written = [0.312, -0.05, 0.0, 0.0067, 0.000_62, -0.000_000_1].map(points);
        assert_eq!(written, ["+31.2", "\u{2212}5.0", "0.000", "+0.67", "+0.062", "0.000"]);
    }

    #[test]
    fn lines_have_as_many_cells_as_the_header() {
        let columns = header_of_table();
        assert_eq!(cells_of(&Outcome::default(), "run", "=a", "r", 1).len(), columns.len());
        assert_eq!(columns.iter().position(|name| name == "gain_per_minute_low"), Some(25));
        assert_eq!(cells_of(&Outcome::default(), "run", "=a", "r", 1)[1], "'=a");
    }
}
