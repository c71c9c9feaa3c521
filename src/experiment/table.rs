//! Results as a table of plain text.

use super::results::{LevelResult, Results, RowResult, Summary};
use std::fmt::Write;

/// The table: a line a row with mean ± standard deviation over seeds and the paper's figures beside it.
pub fn text(results: &Results) -> String {
    let mut out = format!("{}  ({})\n\n", results.title, results.name);
    let mut lines: Vec<Vec<String>> =
        vec![["", "seeds", "episodes", "validation %", "paper", "test %", "paper"].map(String::from).into()];
    for level in &results.levels {
        lines[0].push(format!("episodes to {level:.0}%"));
        lines[0].push("taught".into());
    }
    lines[0].push("paper".into());
    for row in &results.rows {
        lines.push(line(row));
    }
    let columns = lines[0].len();
    let width = |c: usize| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(c, (text, &w))| if c == 0 { format!("{text:<w$}") } else { format!("{text:>w$}") })
            .collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out.push_str(
        "\nMean ± standard deviation over seeds, with their number where some seeds lack the figure. “taught” counts what the\n\
         teacher gave by then: descriptions, demonstrations or rewards. “paper” in the last column: to which level, after how\n\
         many episodes. “seeds”: how many made all episodes they were to make. Validation and test are those of the policy with the\n\
         best trailing mean of validation; of seeds that are not through, validation is as it was read while training.\n",
    );
    out
}

fn line(row: &RowResult) -> Vec<String> {
    let paper = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.1}"));
    let mut cells = vec![
        row.title.clone(),
        format!("{}/{}", row.complete, row.wanted),
        counts(&Summary::of(&row.seeds.iter().map(|s| s.episodes as f64).collect::<Vec<_>>()), row.wanted),
        shares(&row.validation, row.wanted),
        paper(row.paper.validation),
        shares(&row.test, row.wanted),
        paper(row.paper.test),
    ];
    for LevelResult { episodes, descriptions, .. } in &row.reached {
        cells.push(counts(episodes, row.wanted));
        cells.push(counts(descriptions, row.wanted));
    }
    let to = row.paper.level.zip(row.paper.to_level);
    cells.push(to.map_or(String::new(), |(level, n)| format!("{level:.0}% {:.0}K", n / 1000.0)));
    cells
}

/// A figure over seeds; `of` seeds were asked for.
fn show(s: &Summary, of: usize, number: impl Fn(f64) -> String) -> String {
    let Some(mean) = s.mean else { return "–".into() };
    let spread = s.sd.map_or(String::new(), |sd| format!(" ± {}", number(sd)));
    let some = if s.n < of { format!(" ({}/{of})", s.n) } else { String::new() };
    format!("{}{spread}{some}", number(mean))
}

fn shares(s: &Summary, of: usize) -> String {
    show(s, of, |v| format!("{:.1}", 100.0 * v))
}

fn counts(s: &Summary, of: usize) -> String {
    show(s, of, |v| if v >= 10_000.0 { format!("{:.0}K", v / 1000.0) } else { format!("{v:.0}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::tables::Paper;

    #[test]
    fn a_row_shows_means_spreads_and_missing_seeds() {
        let row = RowResult {
            title: "ADEL".into(),
            wanted: 3,
            complete: 2,
            validation: Summary::of(&[0.8, 0.82, 0.84]),
            test: Summary::of(&[0.9, 0.8]),
            reached: vec![LevelResult { episodes: Summary::of(&[573_000.0]), ..LevelResult::default() }],
            paper: Paper { validation: Some(88.1), level: Some(85.0), to_level: Some(573e3), ..Paper::default() },
            ..RowResult::default()
        };
        let results = Results { levels: vec![85.0], rows: vec![row], ..Results::default() };
        let text = text(&results);
        for part in ["ADEL", "2/3", "82.0 ± 2.0", "88.1", "85.0 ± 7.1 (2/3)", "573K (1/3)", "–", "85% 573K"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
