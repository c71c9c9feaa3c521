//! Filling the marked blocks of a Markdown file with tables of results:
//!
//! ```text
//! <!-- results: NAME ANOTHER PREFIX* -->
//! what stands here is replaced
//! <!-- end -->
//! ```
//!
//! Tables of success rates come one a result, with its source below; single figures are gathered in one table, in the
//! order they are named. Everything outside the blocks stays as it is.

use super::report::input::Results;
use super::report::tables::{of_figures, of_rows};

const BEGIN: &str = "<!-- results:";
const END: &str = "<!-- end -->";

/// The reason why a file cannot be rendered, as a plain sentence.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct RenderError(String);

/// The file with its blocks filled. Rendering what was rendered changes nothing.
///
/// # Errors
/// When a block has no end, or names results that are not there.
pub fn render(markdown: &str, results: &[Results]) -> Result<String, RenderError> {
    let mut out = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(at) = rest.find(BEGIN) {
        let after = &rest[at + BEGIN.len()..];
        let line = markdown[..markdown.len() - rest.len() + at].lines().count() + 1;
        let fail = |what: String| RenderError(format!("the results block near line {line} {what}"));
        let close = after.find("-->").ok_or_else(|| fail("has a mark that is not closed".into()))?;
        let (names, body) = (&after[..close], &after[close + 3..]);
        let end = body.find(END).filter(|end| !body[..*end].contains(BEGIN));
        let end = end.ok_or_else(|| fail(format!("has no {END}")))?;
        out.push_str(&rest[..at + BEGIN.len() + close + 3]);
        out.push('\n');
        out.push_str(&block(names, results).map_err(fail)?);
        out.push_str(END);
        rest = &body[end + END.len()..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The tables of the named results; the error is the end of a sentence.
fn block(names: &str, results: &[Results]) -> Result<String, String> {
    let mut chosen: Vec<&Results> = Vec::new();
    for name in names.split_whitespace() {
        let before = chosen.len();
        chosen.extend(results.iter().filter(|r| match name.strip_suffix('*') {
            Some(prefix) => r.name.starts_with(prefix),
            None => r.name == name,
        }));
        if chosen.len() == before {
            return Err(format!("names `{name}`, of which there are no results"));
        }
    }
    if chosen.is_empty() {
        return Err("names no results".into());
    }
    let (tables, figures): (Vec<&Results>, Vec<&Results>) = chosen.into_iter().partition(|r| !r.rows.is_empty());
    let mut out = String::new();
    for table in tables {
        out.push('\n');
        out.push_str(&of_rows(table).markdown());
        let command = if table.command.is_empty() { String::new() } else { format!("`{}`", table.command) };
        let source = [table.source(), command].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(": ");
        if !source.is_empty() {
            out.push_str(&format!("\n{source}\n"));
        }
    }
    if !figures.is_empty() {
        out.push('\n');
        out.push_str(&of_figures(&figures).markdown());
    }
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some() -> Vec<Results> {
        serde_json::from_value(serde_json::json!([
            {"name": "speed", "value": 41.66, "unit": "million lines/min", "n": 3, "min": 41.1, "max": 43.5,
             "device": "2 cores", "date": "2026-11-28", "command": "iliad bench execute | tee x"},
            {"name": "size", "value": 12345, "unit": "bytes"},
            {"name": "table-3", "n": 2, "device": "H100", "date": "2026-11-28T01:02:03Z", "rows": [
                {"name": "adel", "title": "ADEL", "wanted": 2, "complete": 2,
                 "validation": {"mean": 0.85, "sd": 0.07, "n": 2}, "test": {"mean": 0.8, "sd": 0.01, "n": 2},
                 "reached": [{"level": 60.0, "descriptions": {"n": 2, "mean": 12345.6}}],
                 "paper": {"test": 88.5, "validation": null}},
                {"name": "DAgger", "wanted": 2, "complete": 1, "validation": {"mean": 0.9}, "paper": {"test": 92.0}}
            ], "command": "iliad reproduce table-3"}
        ]))
        .unwrap()
    }

    #[test]
    fn blocks_are_filled_and_the_rest_is_left_alone() {
        let text = "# A\n<!-- results: speed size -->\nold\n<!-- end -->\nb\n<!-- results: table-3 -->\n<!-- end -->";
        let once = render(text, &some()).unwrap();
        assert!(once.starts_with("# A\n<!-- results: speed size -->\n\n| figure | value |"), "{once}");
        assert!(once.contains("| speed | 41.66 million lines/min | 3 | 41.1 to 43.5 | 2 cores | 2026-11-28 | iliad bench execute \\| tee x |"), "{once}");
        assert!(once.contains("| size | 12,345 bytes |") && !once.contains("old"));
        assert!(once.contains("| ADEL | 85.0 ± 7.0 | 80.0 ± 1.0 | 88.5 | 2 | 12,346 (2) |"), "{once}");
        assert!(once.contains("| DAgger | 90.0 |  | 92.0 | 1 of 2 |  |"), "{once}");
        assert!(once.contains("\nH100, 2026-11-28: `iliad reproduce table-3`\n") && once.ends_with("<!-- end -->"));
        assert_eq!(render(&once, &some()).unwrap(), once);
    }

    #[test]
    fn what_cannot_be_filled_is_said() {
        let told = |text: &str| render(text, &some()).unwrap_err().to_string();
        assert_eq!(
            told("a\n<!-- results: nope -->\n<!-- end -->"),
            "the results block near line 2 names `nope`, of which there are no results"
        );
        assert!(told("<!-- results: size -->").contains("has no <!-- end -->"));
        assert!(told("<!-- results: size -->\n<!-- results: size -->\n<!-- end -->").contains("has no"));
        assert!(told("<!-- results: -->\n<!-- end -->").contains("names no results"));
        assert!(told("<!-- results: size").contains("not closed"));
    }

    #[test]
    fn a_star_takes_all_of_a_kind() {
        assert!(render("<!-- results: s* --><!-- end -->", &some()).unwrap().contains("| size |"));
    }

    /// BENCHMARKS.md is what rendering the committed files gives.
    #[test]
    fn the_committed_benchmarks_are_rendered() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let results = super::super::report::input::read(&root.join("benches/results")).unwrap();
        let text = std::fs::read_to_string(root.join("BENCHMARKS.md")).unwrap();
        assert_eq!(render(&text, &results).unwrap(), text, "run `iliad dev bench --render`");
    }

    proptest! {
        #[test]
        fn files_without_blocks_stay(text in any::<String>().prop_filter("no block", |t| !t.contains(BEGIN))) {
            prop_assert_eq!(render(&text, &[]).unwrap(), text);
        }
    }
}
