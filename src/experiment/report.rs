//! The report: one HTML file that explains itself, opens offline and prints well. Style and pictures are in the file; it
//! has no script and refers to nothing outside.
//!
//! [`input`] reads results, [`tables`] lays them out, [`run`] reads folders of runs; the page is
//! `templates/report.html`.

pub mod input;
pub mod run;
pub mod tables;

use super::plot::{Axis, Plot, Series};
use askama::Template;
use input::{CurvePoint, Results, RowResult};
use run::Run;
use tables::Table;

/// Rooms for a picture, in CSS pixels: beside another one, and on a phone.
const WIDE: (f64, f64) = (560.0, 350.0);
const NARROW: (f64, f64) = (330.0, 290.0);

/// A picture in two sizes, of which the page shows the one that fits.
struct Picture {
    wide: String,
    narrow: String,
}

impl Picture {
    fn of(plot: &Plot) -> Picture {
        Picture { wide: plot.svg_sized(WIDE.0, WIDE.1), narrow: plot.svg_sized(NARROW.0, NARROW.1) }
    }
}

/// An experiment over seeds.
struct Experiment {
    name: String,
    source: String,
    command: String,
    table: Table,
    pictures: Vec<Picture>,
}

struct RunPart<'a> {
    run: &'a Run,
    pictures: Vec<Picture>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    made: &'a str,
    execution_css: &'static str,
    experiments: Vec<Experiment>,
    figures: Option<Table>,
    overlay: Vec<Picture>,
    runs: Vec<RunPart<'a>>,
}

/// The page. `made` says when and by which version, for the line under the heading.
///
/// # Errors
/// Only if the template cannot be filled, which is a fault of the program.
pub fn page(title: &str, made: &str, results: &[Results], runs: &[Run]) -> anyhow::Result<String> {
    let (tables, figures): (Vec<&Results>, Vec<&Results>) = results.iter().partition(|r| !r.rows.is_empty());
    let page = Page {
        title,
        made,
        execution_css: include_str!("../../static/css/execution.css"),
        experiments: tables.into_iter().map(experiment).collect(),
        figures: (!figures.is_empty()).then(|| tables::of_figures(&figures)),
        overlay: if runs.len() > 1 { overlay(runs) } else { Vec::new() },
        runs: runs.iter().map(|run| RunPart { run, pictures: run.plots().iter().map(Picture::of).collect() }).collect(),
    };
    Ok(page.render()?)
}

/// All runs in one picture.
fn overlay(runs: &[Run]) -> Vec<Picture> {
    let plot = |title: &str, x: &str, read: fn(&crate::run::Point) -> u64| {
        // Intervals of several runs on top of each other hide the lines.
        let series = runs.iter().map(|r| Series { band: Vec::new(), ..r.validation(&r.name, read) });
        Picture::of(&Plot {
            title: title.into(),
            description: "Success on validation tasks, one line a run.".into(),
            x: Axis::linear(x),
            y: Axis::share("success"),
            series: series.collect(),
        })
    };
    vec![
        plot("Validation success over episodes", "episodes", |p| p.episodes),
        plot("Validation success over descriptions", "descriptions", |p| p.descriptions),
    ]
}

fn experiment(results: &Results) -> Experiment {
    let mut pictures = Vec::new();
    let mut add = |title: &str, x: &str, at: fn(&CurvePoint) -> u64, y: fn(&CurvePoint) -> Option<f64>| {
        let series: Vec<Series> =
            results.rows.iter().map(|row| over_seeds(row, at, y)).filter(|series| !series.points.is_empty()).collect();
        if !series.is_empty() {
            pictures.push(Picture::of(&Plot {
                title: title.into(),
                description: "Lines are means over seeds, bands reach from the lowest to the highest seed.".into(),
                x: Axis::linear(x),
                y: Axis::share("success"),
                series,
            }));
        }
    };
    add("Validation success over episodes", "episodes", |p| p.episodes, |p| p.validation);
    add("Cumulative training success", "episodes", |p| p.episodes, |p| p.training_success_total);
    add("Validation success over teaching", "descriptions (or other teaching)", |p| p.descriptions, |p| p.validation);
    Experiment {
        name: results.heading().to_owned(),
        source: results.source(),
        command: results.command.clone(),
        table: tables::of_rows(results),
        pictures,
    }
}

/// Mean and range over the seeds of a row that are through (over all that have begun, where none is), as far as all of
/// them go. Seeds are read at different moments, so they are interpolated at those of the first.
fn over_seeds(row: &RowResult, at: fn(&CurvePoint) -> u64, y: fn(&CurvePoint) -> Option<f64>) -> Series {
    let any_complete = row.seeds.iter().any(|seed| seed.complete);
    let curves: Vec<Vec<(f64, f64)>> = row
        .seeds
        .iter()
        .filter(|seed| seed.complete || !any_complete)
        .map(|seed| seed.curve.iter().filter_map(|p| Some((at(p) as f64, y(p)?))).collect())
        .filter(|curve: &Vec<_>| !curve.is_empty())
        .collect();
    let mut series = Series { name: row.heading().to_owned(), ..Series::default() };
    for &(x, _) in curves.first().into_iter().flatten() {
        let Some(values) = curves.iter().map(|curve| interpolated(curve, x)).collect::<Option<Vec<f64>>>() else {
            continue;
        };
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        series.points.push((x, values.iter().sum::<f64>() / values.len() as f64));
        if values.len() > 1 {
            series.band.push((x, low, high));
        }
    }
    series
}

/// The value of a curve (ascending in x) at `x`; none outside it.
fn interpolated(curve: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = curve.iter().position(|p| p.0 >= x)?;
    let (x1, y1) = curve[after];
    if x1 == x {
        return Some(y1);
    }
    let (x0, y0) = *curve.get(after.checked_sub(1)?)?;
    Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
}

#[cfg(test)]
mod tests;
