//! Tabulating what the runs of a grid have left in their folders, complete or not.

use super::grid::{Cell, Finished};
use super::results::{CurvePoint, LevelResult, Results, RowResult, SeedResult, Summary};
use crate::family::tables::Table;
use crate::registry::AnyFamily;
use crate::run::Point;
use crate::run::{Moment, Reached};
use crate::trainer::milestones::Milestones;
use std::path::Path;

/// Points of a curve that a results file keeps.
const CURVE: usize = 250;

/// The results of a table of a family so far. `command` is the one that makes them again. With `until`, only what runs had
/// read after so many episodes counts, so that runs of different lengths compare; no test success is known of then. `more_levels`
/// are levels of validation success, in percent, that are looked for besides the family's own.
///
/// # Errors
/// When the report of a run cannot be read.
pub fn collect(
    family: &dyn AnyFamily,
    table: &Table,
    cells: &[Cell],
    until: Option<u64>,
    more_levels: &[f64],
    command: &str,
) -> anyhow::Result<Results> {
    let mut levels = [&family.levels(), more_levels].concat();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let mut devices: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (index, row) in table.rows.iter().enumerate() {
        let own: Vec<&Cell> = cells.iter().filter(|c| c.row == index).collect();
        let mut seeds = Vec::new();
        for cell in &own {
            let finished = Finished::read(&cell.folder)?;
            if let Some(f) = &finished
                && !devices.contains(&f.device)
            {
                devices.push(f.device.clone());
            }
            seeds.extend(seed(cell, finished.as_ref(), until, &levels));
        }
        let of =
            |value: fn(&SeedResult) -> Option<f64>| Summary::of(&seeds.iter().filter_map(value).collect::<Vec<_>>());
        rows.push(RowResult {
            name: row.name.clone(),
            title: row.title.clone(),
            settings: row.settings.clone(),
            feedback: own.first().map_or("", |c| c.config.algorithm.name.feedback().words()).to_owned(),
            wanted: own.len(),
            complete: seeds.iter().filter(|s| s.complete).count(),
            validation: of(|s| s.validation),
            validation_smoothed: of(|s| s.validation_smoothed),
            test: of(|s| s.test),
            reached: levels.iter().enumerate().map(|(i, &level)| reached(level, i, &seeds)).collect(),
            paper: row.paper,
            seeds,
            more: serde_json::Map::new(),
        });
    }
    let test = rows.first().map(|r| r.test).unwrap_or_default();
    let percent = |share: Option<f64>| share.map(|v| 100.0 * v);
    Ok(Results {
        name: format!("{}-{}{}", family.name(), table.name, until.map_or(String::new(), |n| format!("-until-{n}"))),
        title: format!("{}{}", table.title, until.map_or(String::new(), |n| format!(", after {n} episodes"))),
        value: percent(test.mean),
        unit: "% test success".into(),
        n: test.n,
        min: percent(test.min),
        max: percent(test.max),
        device: devices.join(", "),
        date: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
        command: command.to_owned(),
        program: env!("CARGO_PKG_VERSION").into(),
        complete: rows.iter().all(|r| r.complete == r.wanted),
        levels,
        side_by_side: None,
        rows,
    })
}

fn reached(level: f64, index: usize, seeds: &[SeedResult]) -> LevelResult {
    let of = |moment: fn(&Reached) -> Option<Moment>, count: fn(&Moment) -> u64| {
        let counts: Vec<f64> =
            seeds.iter().filter_map(|s| moment(s.reached.get(index)?)).map(|m| count(&m) as f64).collect();
        Summary::of(&counts)
    };
    LevelResult {
        level,
        episodes: of(|r| r.raw, |m| m.episodes),
        descriptions: of(|r| r.raw, |m| m.descriptions),
        episodes_smoothed: of(|r| r.smoothed, |m| m.episodes),
        descriptions_smoothed: of(|r| r.smoothed, |m| m.descriptions),
    }
}

/// One run's results from its curve and, once complete, its report; `None` where nothing has begun. With `until` from the
/// curve's points up to there alone; runs that have none beyond it are left out.
fn seed(cell: &Cell, finished: Option<&Finished>, until: Option<u64>, levels: &[f64]) -> Option<SeedResult> {
    let mut points = curve(&cell.folder);
    let finished = finished.filter(|_| until.is_none());
    if let Some(until) = until {
        points.last().filter(|p| p.episodes >= until)?;
        points.retain(|p| p.episodes <= until);
    }
    let last = points.last()?;
    // Made anew from the curve, which an interrupted run has as well.
    let mut milestones = Milestones::new(levels);
    let mut best: Option<f64> = None;
    for point in &points {
        if let Some(rate) = point.validation {
            let Point { update, episodes, descriptions, .. } = *point;
            let moment = Moment { update, episodes, descriptions };
            // As the trainer chooses it: the policy with the best trailing mean, not the highest single reading.
            if milestones.note(rate.value, cell.config.schedule.smooth, moment).best {
                best = Some(rate.value);
            }
        }
    }
    // That of a run that went on since it was concluded is out of date.
    let report = finished.map(|f| &f.report).filter(|r| r.complete || r.updates >= last.update);
    Some(SeedResult {
        seed: cell.config.seed,
        complete: until.is_some() || report.is_some_and(|r| r.complete),
        updates: report.map_or(last.update, |r| r.updates),
        episodes: report.map_or(last.episodes, |r| r.episodes),
        descriptions: report.map_or(last.descriptions, |r| r.descriptions),
        seconds: report.map_or(last.seconds, |r| r.seconds),
        validation: report.map(|r| r.validation.value).or(best),
        validation_smoothed: milestones.best(),
        test: report.map(|r| r.test.value),
        reached: milestones.reached,
        curve: thin(&points, CURVE),
    })
}

/// The points of a run's curve; a half-written last line is left out.
fn curve(folder: &Path) -> Vec<Point> {
    let text = std::fs::read_to_string(folder.join("curve.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// At most `limit` points, evenly spread over those with a validation reading, the first and the last among them.
fn thin(points: &[Point], limit: usize) -> Vec<CurvePoint> {
    let read: Vec<&Point> = points.iter().filter(|p| p.validation.is_some()).collect();
    let n = read.len().min(limit);
    (0..n)
        .map(|i| read[if n > 1 { i * (read.len() - 1) / (n - 1) } else { 0 }])
        .map(|p| CurvePoint {
            episodes: p.episodes,
            descriptions: p.descriptions,
            seconds: p.seconds,
            validation: p.validation.map(|r| r.value),
            validation_smoothed: p.validation_smoothed,
            training_success: p.training_success,
            training_success_total: p.training_success_total,
            gold_share: p.gold_share,
            loss: p.loss,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::evaluation::rate;

    /// The tables of the first so many episodes show the reading of the policy that a run would have kept then, as the tables of
    /// whole runs do, and not the highest of many readings.
    #[test]
    fn committed_tables_of_a_part_of_the_runs_show_the_kept_policy() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
        let all = crate::experiment::report::input::read(&folder).unwrap();
        let mut looked_at = 0;
        for results in all.iter().filter(|results| results.name.contains("-until-")) {
            for row in &results.rows {
                for seed in &row.seeds {
                    let mut kept: Option<&CurvePoint> = None;
                    for point in &seed.curve {
                        if kept.is_none_or(|best| point.validation_smoothed > best.validation_smoothed) {
                            kept = Some(point);
                        }
                    }
                    assert_eq!(seed.validation, kept.unwrap().validation, "{} {}", row.name, seed.seed);
                    looked_at += 1;
                }
                let values: Vec<f64> = row.seeds.iter().filter_map(|seed| seed.validation).collect();
                assert_eq!(row.validation.mean.map(f32_of), Summary::of(&values).mean.map(f32_of), "{}", row.name);
            }
        }
        assert!(looked_at > 0);
    }

    fn f32_of(value: f64) -> f32 {
        value as f32
    }

    #[test]
    fn a_thinned_curve_keeps_its_ends() {
        let point = |update: u64| Point { episodes: update, validation: Some(rate(update, 2000)), ..Point::default() };
        let points: Vec<Point> = (0..1000).map(point).collect();
        let thinned = thin(&points, 11);
        assert_eq!(thinned.len(), 11);
        assert_eq!((thinned[0].episodes, thinned[5].episodes, thinned[10].episodes), (0, 499, 999));
        assert_eq!(thin(&points[..1], 11).len(), 1);
        assert!(thin(&[Point::default()], 11).is_empty());
    }
}
