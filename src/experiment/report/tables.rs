//! Results as tables: headers and cells of text, shared by the report and BENCHMARKS.md.

use super::input::{Results, Row, Spread};
use serde_json::Value;

/// A table of text. All columns but the first hold figures unless `text_columns` says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Heads of the columns.
    pub head: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
    /// Columns that hold words, by position.
    pub text_columns: Vec<usize>,
}

impl Table {
    /// Whether a column holds figures.
    pub fn is_figure(&self, column: &usize) -> bool {
        !self.text_columns.contains(column)
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let cell = |text: &String| text.replace('|', "\\|").replace('\n', " ");
        let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
        let marks: Vec<&str> = (0..self.head.len()).map(|i| if self.is_figure(&i) { "---:" } else { "---" }).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{}|\n{rows}", line(&self.head), marks.join("|"))
    }
}

/// Mean ± standard deviation in per cent.
fn spread(results: &Results, spread: Option<Spread>) -> String {
    spread.map_or_else(String::new, |s| {
        let sd = s.sd.map_or(String::new(), |sd| format!(" ± {:.1}", results.percent(sd)));
        format!("{:.1}{sd}", results.percent(s.mean))
    })
}

/// A figure of the paper: a number or `{"mean", "sd"}`.
fn paper(results: &Results, row: &Row, key: &str) -> String {
    let figure = match row.paper.get(key) {
        Some(Value::Number(n)) => n.as_f64().map(|mean| Spread { mean, sd: None, n: None }),
        Some(value) => serde_json::from_value(value.clone()).ok(),
        None => None,
    };
    spread(results, figure)
}

/// A value as a cell.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.as_f64().map_or_else(|| n.to_string(), number)),
        Value::Bool(b) => Some(if *b { "yes" } else { "no" }.into()),
        _ => None,
    }
}

/// A number with about four digits that count.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let digits = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i64).clamp(0, 6) as usize };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("−", rest));
    let (whole, rest) = text.split_once('.').map_or((text, None), |(w, r)| (w, Some(r)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or_else(|| format!("{sign}{grouped}"), |rest| format!("{sign}{grouped}.{rest}"))
}

/// A table of success rates in per cent, the paper's beside them; or of whatever plain values the rows hold. Columns
/// that no row fills are left out.
pub fn of_rows(results: &Results) -> Table {
    let mut columns: Vec<(String, Vec<String>, bool)> =
        vec![(String::new(), results.rows.iter().map(|row| row.row.clone()).collect(), true)];
    let mut add = |head: &str, cells: Vec<String>, text: bool| {
        if cells.iter().any(|cell| !cell.is_empty()) {
            columns.push((head.into(), cells, text));
        }
    };
    let rows = &results.rows;
    let seeds = |row: &Row| {
        let told = row.validation.and_then(|s| s.n).or(row.test.and_then(|s| s.n));
        told.or((!row.seeds.is_empty()).then_some(row.seeds.len() as u64)).map_or(String::new(), |n| n.to_string())
    };
    add("validation, %", rows.iter().map(|row| spread(results, row.validation)).collect(), false);
    add("paper's validation, %", rows.iter().map(|row| paper(results, row, "validation")).collect(), false);
    add("test, %", rows.iter().map(|row| spread(results, row.test)).collect(), false);
    add("paper's test, %", rows.iter().map(|row| paper(results, row, "test")).collect(), false);
    add("seeds", rows.iter().map(seeds).collect(), false);
    let mut keys: Vec<&String> = rows.iter().flat_map(|row| row.more.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let cells = rows.iter().map(|row| row.more.get(key).and_then(plain).unwrap_or_default()).collect();
        let text = rows.iter().any(|row| row.more.get(key).is_some_and(Value::is_string));
        add(&key.replace('_', " "), cells, text);
    }
    Table {
        text_columns: columns.iter().enumerate().filter(|(_, c)| c.2).map(|(i, _)| i).collect(),
        rows: (0..rows.len()).map(|at| columns.iter().map(|c| c.1[at].clone()).collect()).collect(),
        head: columns.into_iter().map(|c| c.0).collect(),
    }
}

/// One row a figure: value with unit, repetitions and range, device, date, command.
pub fn of_figures(results: &[&Results]) -> Table {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let rows = results.iter().map(|r| {
        let unit = r.unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        let range = match (r.min, r.max) {
            (Some(min), Some(max)) => format!("{} to {}", number(min), number(max)),
            _ => String::new(),
        };
        vec![
            r.name.clone(),
            r.value.map_or(String::new(), |v| format!("{}{unit}", number(v))),
            r.n.map_or(String::new(), |n| n.to_string()),
            range,
            text(&r.device),
            text(&r.date),
            text(&r.command),
        ]
    });
    Table {
        head: ["figure", "value", "n", "range", "device", "date", "command"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        text_columns: vec![0, 4, 5, 6],
    }
}
