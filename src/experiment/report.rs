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
use input::{CurvePoint, Results};
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
    let source: Vec<&str> = [&results.device, &results.date].into_iter().flatten().map(String::as_str).collect();
    let mut pictures = Vec::new();
    let mut add = |title: &str, x: &str, at: fn(&CurvePoint) -> Option<f64>, y: fn(&CurvePoint) -> &[Option<f64>]| {
        let series: Vec<Series> = results
            .rows
            .iter()
            .map(|row| over_seeds(results, &row.row, &row.curve, at, y))
            .filter(|series| !series.points.is_empty())
            .collect();
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
    add("Validation success over episodes", "episodes", |p| Some(p.episodes), |p| &p.validation);
    add("Cumulative training success over episodes", "episodes", |p| Some(p.episodes), |p| &p.training);
    add("Validation success over descriptions", "descriptions", |p| p.descriptions, |p| &p.validation);
    Experiment {
        name: results.name.clone(),
        source: source.join(", "),
        command: results.command.clone().unwrap_or_default(),
        table: tables::of_rows(results),
        pictures,
    }
}

/// Mean and range over seeds.
fn over_seeds(
    results: &Results,
    name: &str,
    curve: &[CurvePoint],
    at: fn(&CurvePoint) -> Option<f64>,
    y: fn(&CurvePoint) -> &[Option<f64>],
) -> Series {
    let mut series = Series { name: name.into(), ..Series::default() };
    for point in curve {
        let values: Vec<f64> = y(point).iter().flatten().map(|v| results.percent(*v) / 100.0).collect();
        let Some(x) = at(point).filter(|_| !values.is_empty()) else { continue };
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        series.points.push((x, values.iter().sum::<f64>() / values.len() as f64));
        if values.len() > 1 {
            series.band.push((x, low, high));
        }
    }
    series
}

#[cfg(test)]
mod tests;
