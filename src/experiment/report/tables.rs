//! Results as tables: headers and cells of text, shared by the report and BENCHMARKS.md.

use super::input::{Results, RowResult, SeedResult, Summary};
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
fn spread(summary: Summary) -> String {
    summary.mean.map_or_else(String::new, |mean| {
        let sd = summary.sd.map_or(String::new(), |sd| format!(" ± {:.1}", 100.0 * sd));
        format!("{:.1}{sd}", 100.0 * mean)
    })
}

/// The number of seeds that a figure is of, where the column of seeds says another one.
fn fewer(row: &RowResult, n: usize) -> String {
    let shown = row.complete.max(row.test.n);
    if n == 0 || n == shown || row.seeds.is_empty() { String::new() } else { format!(" ({n})") }
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
        vec![(String::new(), results.rows.iter().map(|row| row.heading().to_owned()).collect(), true)];
    let mut add = |head: &str, cells: Vec<String>, text: bool| {
        if cells.iter().any(|cell| !cell.is_empty()) {
            columns.push((head.into(), cells, text));
        }
    };
    let rows = &results.rows;
    let each = |cell: &dyn Fn(&RowResult) -> String| rows.iter().map(cell).collect::<Vec<String>>();
    let paper = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.1}"));
    // Seeds that are through count; of others it is said whether time ended them or they are under way.
    let seeds = |row: &RowResult| match (row.complete, row.wanted) {
        (0, 0) if row.test.n.max(row.validation.n) > 0 => row.test.n.max(row.validation.n).to_string(),
        (0, 0) => String::new(),
        (complete, wanted) if complete >= wanted => complete.to_string(),
        (0, _) if row.test.n > 0 => format!("{}, stopped", row.test.n),
        (complete, _) if row.test.n > complete => format!("{}, of which {complete} complete", row.test.n),
        (complete, wanted) => format!("{complete} of {wanted}"),
    };
    add("validation, %", each(&|row| format!("{}{}", spread(row.validation), fewer(row, row.validation.n))), false);
    add("paper: validation", each(&|row| paper(row.paper.validation)), false);
    add("test, %", each(&|row| format!("{}{}", spread(row.test), fewer(row, row.test.n))), false);
    add("paper: test", each(&|row| paper(row.paper.test)), false);
    add("seeds", each(&seeds), false);
    let mean = |row: &RowResult, count: fn(&SeedResult) -> u64| {
        let all: Vec<f64> = row.seeds.iter().map(|s| count(s) as f64).collect();
        let mean = Summary::of(&all).mean.filter(|mean| *mean > 0.0);
        mean.map_or(String::new(), |mean| format!("{}{}", number(mean.round()), fewer(row, all.len())))
    };
    add("episodes", each(&|row| mean(row, |s| s.episodes)), false);
    add("teaching", each(&|row| mean(row, |s| s.descriptions)), false);
    let mut levels: Vec<f64> = rows.iter().flat_map(|row| &row.reached).map(|r| r.level).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    for level in levels {
        let cell = |row: &RowResult| {
            let reached = row.reached.iter().find(|r| r.level == level);
            let taught = reached.map(|r| r.descriptions).unwrap_or_default();
            taught.mean.map_or(String::new(), |mean| format!("{} ({})", number(mean.round()), taught.n))
        };
        add(&format!("teaching to {level:.0}% (seeds)"), each(&cell), false);
    }
    add("kind of teaching", each(&|row| row.feedback.clone()), true);
    let mut keys: Vec<&String> = rows
        .iter()
        .flat_map(|row| row.more.iter().filter(|(_, value)| plain(value).is_some()).map(|(key, _)| key))
        .collect();
    keys.sort();
    keys.dedup();
    // Beside success rates further values are details; without them they are what the row is about.
    if columns_of_success(results) {
        keys.clear();
    }
    for key in keys {
        let cell = |row: &RowResult| row.more.get(key).and_then(plain).unwrap_or_default();
        let text = rows.iter().any(|row| row.more.get(key).is_some_and(Value::is_string));
        add(&key.replace('_', " "), each(&cell), text);
    }
    Table {
        text_columns: columns.iter().enumerate().filter(|(_, c)| c.2).map(|(i, _)| i).collect(),
        rows: (0..rows.len()).map(|at| columns.iter().map(|c| c.1[at].clone()).collect()).collect(),
        head: columns.into_iter().map(|c| c.0).collect(),
    }
}

/// Whether a table is of success rates.
fn columns_of_success(results: &Results) -> bool {
    results.rows.iter().any(|row| row.validation.mean.is_some() || row.test.mean.is_some() || !row.seeds.is_empty())
}

/// One row a figure: value with unit, repetitions and range, device, date, command.
pub fn of_figures(results: &[&Results]) -> Table {
    let rows = results.iter().map(|r| {
        let range = match (r.min, r.max) {
            (Some(min), Some(max)) => format!("{} to {}", number(min), number(max)),
            _ => String::new(),
        };
        vec![
            r.heading().to_owned(),
            r.value.map_or(String::new(), |v| format!("{} {}", number(v), r.unit).trim_end().to_owned()),
            if r.n > 0 { r.n.to_string() } else { String::new() },
            range,
            r.device.clone(),
            r.date.split('T').next().unwrap_or_default().to_owned(),
            r.command.clone(),
        ]
    });
    Table {
        head: ["figure", "value", "n", "range", "device", "date", "command"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        text_columns: vec![0, 4, 5, 6],
    }
}
