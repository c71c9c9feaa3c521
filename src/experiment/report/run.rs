//! A run's folder as the report shows it: settings, curve, examples, and the teacher's effort.

use crate::experiment::plot::{Axis, Plot, Series};
use crate::family::Audience;
use crate::registry::{AnyFamily, Registry};
use crate::run::Point;
use crate::trainer::checkpoint;
use crate::trainer::description_log;
use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// Examples shown from the beginning, and as many from the end.
const EXAMPLES: usize = 5;

/// Most common descriptions shown.
const COMMON: usize = 5;

/// A run, ready to be shown.
pub struct Run {
    /// Name of its folder.
    pub name: String,
    /// Family, preset and seed.
    pub about: String,
    /// Settings that differ from the preset: key, value here, value of the preset.
    pub settings: Vec<[String; 3]>,
    /// Points of the curve.
    pub points: Vec<Point>,
    /// Early examples, then late ones.
    pub examples: Vec<(&'static str, Vec<Example>)>,
    /// Figures about the teacher's effort: what, how much.
    pub effort: Vec<(String, String)>,
    /// Most common descriptions with how often they were said.
    pub common: Vec<(String, u64)>,
    /// Files and lines that could not be read, in plain sentences.
    pub complaints: Vec<String>,
}

/// One description with its execution.
pub struct Example {
    /// Number of the episode.
    pub episode: u64,
    /// HTML of the execution, by the family's template (escaped); empty where the family is not known.
    pub html: String,
    /// The agent's output as text (REGEX: the expression).
    pub execution: String,
    /// The teacher's description.
    pub words: String,
}

/// A line of the record of descriptions, without its family's types.
#[derive(Deserialize)]
struct Line {
    episode: u64,
    example: Said,
}

#[derive(Deserialize)]
struct Said {
    start: Value,
    words: String,
    execution: Value,
}

/// Reads a run's folder.
///
/// # Errors
/// When it has no checkpoint that can be read; anything else that is missing is a complaint.
pub fn read(folder: &Path, registry: Registry) -> anyhow::Result<Run> {
    let best = folder.join(checkpoint::BEST);
    let header = match checkpoint::load(&best) {
        Ok((header, _)) => header,
        // A run that was stopped before its first evaluation has no best one.
        Err(error) => match checkpoint::newest(folder)?.0 {
            Some((header, _)) => header,
            None => return Err(error).with_context(|| format!("{} is not the folder of a run", folder.display())),
        },
    };
    let config = &header.config;
    let mut run = Run {
        name: folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_owned())
            .file_name()
            .map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned()),
        about: format!("{}/{}, seed {}", config.family, config.preset, config.seed),
        settings: Vec::new(),
        points: Vec::new(),
        examples: Vec::new(),
        effort: Vec::new(),
        common: Vec::new(),
        complaints: Vec::new(),
    };
    match registry.preset(&format!("{}/{}", config.family, config.preset)) {
        Ok((_, preset)) => {
            let theirs: HashMap<String, Value> = preset.config.differences(config).into_iter().collect();
            for (key, value) in config.differences(&preset.config).into_iter().filter(|(key, _)| key != "seed") {
                let before = theirs.get(&key).map_or_else(String::new, plain);
                run.settings.push([key, plain(&value), before]);
            }
        }
        Err(error) => run.complaints.push(error.to_string()),
    }
    run.points = lines(&folder.join("curve.jsonl"), &mut run.complaints);
    let said: Vec<Line> = lines(&folder.join(description_log::FILE_NAME), &mut run.complaints);
    let family = registry.family(&config.family);
    run.effort = effort(&run.points, &said, family.map_or([60.0, 75.0, 85.0], |family| family.levels()));
    run.common = common(&said);
    // Half of a short record is early, the other half late; no example is both.
    let shown = EXAMPLES.min(said.len() / 2);
    let tenth = (said.len() / 10).max(shown);
    for (when, part) in [("Early", &said[..tenth]), ("Late", &said[said.len() - tenth..])] {
        let chosen = (0..shown).map(|i| example(family, &part[i * tenth / shown]));
        run.examples.push((when, chosen.collect()));
    }
    run.examples.retain(|(_, examples)| !examples.is_empty());
    Ok(run)
}

/// JSON objects of a file, one a line; lines that do not parse are passed over, and told unless it is the last one, which a
/// killed run may have left half.
fn lines<T: for<'de> Deserialize<'de>>(path: &Path, complaints: &mut Vec<String>) -> Vec<T> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            complaints.push(format!("{name} is missing"));
            return Vec::new();
        }
        Err(e) => {
            complaints.push(format!("{name} cannot be read: {e}"));
            return Vec::new();
        }
    };
    let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
        match serde_json::from_slice(line) {
            Ok(value) => found.push(value),
            Err(error) if at + 1 < lines.len() => bad.push((at + 1, error)),
            Err(_) => {}
        }
    }
    if let Some((at, error)) = bad.first() {
        complaints.push(format!("{} lines of {name} cannot be read, the first of them line {at}: {error}", bad.len()));
    }
    found
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An example as people see it.
fn example(family: Option<&dyn AnyFamily>, line: &Line) -> Example {
    let said = &line.example;
    let shown = family.and_then(|family| Some((family, family.report_example(&said.start, &said.execution)?)));
    let (html, execution) = match shown {
        Some((family, example)) => (family.render(&example.view, Audience::Researcher).ok(), example.execution),
        None => (None, String::new()),
    };
    Example { episode: line.episode, html: html.unwrap_or_default(), execution, words: said.words.clone() }
}

/// Figures about the teacher's effort: a name and a value each.
fn effort(points: &[Point], said: &[Line], levels: [f64; 3]) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut add = |what: &str, much: String| out.push((what.to_owned(), much));
    let grouped = |n: u64| super::tables::number(n as f64);
    let evaluated = || points.iter().filter_map(|p| Some((p, p.validation?.value)));
    let best = evaluated().map(|(_, v)| v).fold(None, |best: Option<f64>, v| Some(best.map_or(v, |b| b.max(v))));
    for level in levels {
        let reached = evaluated().find(|(_, value)| *value >= level / 100.0);
        let text = match (reached, best) {
            (Some((p, _)), _) => format!("{} ({} episodes)", grouped(p.descriptions), grouped(p.episodes)),
            (None, Some(best)) => format!("not reached, best {:.1}%", 100.0 * best),
            (None, None) => "never evaluated".into(),
        };
        add(&format!("Descriptions until {level:.0}% on validation"), text);
    }
    if let Some(last) = points.last() {
        add("Descriptions in all", grouped(last.descriptions));
        if last.episodes > 0 {
            let share = 100.0 * last.descriptions as f64 / last.episodes as f64;
            add("Share of episodes described", format!("{share:.1}% of {}", grouped(last.episodes)));
        }
        if last.seconds > 0.0 {
            let rate = 3600.0 * last.descriptions as f64 / last.seconds;
            add("Descriptions per hour of training", grouped(rate.round() as u64));
        }
    }
    if !said.is_empty() {
        let words: usize = said.iter().map(|line| line.example.words.split_whitespace().count()).sum();
        add("Words per description, mean", format!("{:.1}", words as f64 / said.len() as f64));
        let mut texts: Vec<&str> = said.iter().map(|line| line.example.words.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        add("Distinct descriptions", format!("{} of {}", grouped(texts.len() as u64), grouped(said.len() as u64)));
    }
    out
}

fn common(said: &[Line]) -> Vec<(String, u64)> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for line in said {
        *counts.entry(&line.example.words).or_default() += 1;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().map(|(text, n)| (text.to_owned(), n)).collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(COMMON);
    counts
}

impl Run {
    /// Validation success with its interval, over what `x` reads.
    pub fn validation(&self, name: &str, x: fn(&Point) -> u64) -> Series {
        let evaluated = || self.points.iter().filter_map(|p| Some((x(p) as f64, p.validation?)));
        Series {
            name: name.into(),
            points: evaluated().map(|(x, rate)| (x, rate.value)).collect(),
            band: evaluated().map(|(x, rate)| (x, rate.low, rate.high)).collect(),
            dashed: false,
        }
    }

    /// The learning curves: success over episodes, and over descriptions.
    pub fn plots(&self) -> Vec<Plot> {
        let training = Series {
            name: "training".into(),
            points: self.points.iter().filter_map(|p| Some((p.episodes as f64, p.training_success?))).collect(),
            ..Series::default()
        };
        let description = "Success on validation tasks, greedy, with 95% Wilson intervals.";
        let plot = |title: &str, x: &str, series: Vec<Series>| Plot {
            title: title.into(),
            description: description.into(),
            x: Axis::linear(x),
            y: Axis::share("success"),
            series,
        };
        vec![
            plot("Success over episodes", "episodes", vec![self.validation("validation", |p| p.episodes), training]),
            plot("Success over descriptions", "descriptions", vec![self.validation("validation", |p| p.descriptions)]),
        ]
    }
}
