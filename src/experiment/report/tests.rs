use super::*;
use crate::protocol::Rate;
use crate::run::Point;
use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

fn results() -> Vec<Results> {
    // Two seeds, the second read at other moments, and a third that is not through.
    let curve = |top: f64, every: u32| -> Vec<serde_json::Value> {
        (0..=6400 / every)
            .map(|i| {
                let share = f64::from(i * every) / 6400.0;
                json!({"episodes": i * every, "descriptions": i * every / 2, "validation": top * share,
                       "training_success_total": if top > 0.7 { Some(0.5 * share) } else { None }, "loss": 1.0})
            })
            .collect()
    };
    serde_json::from_value(json!([
        {"name": "table-3", "device": "2 cores", "date": "2026-11-28", "command": "iliad reproduce table-3", "rows": [
            {"name": "adel", "title": "ADEL", "wanted": 3, "complete": 2, "validation": {"mean": 0.7, "sd": 0.1, "n": 2},
             "settings": ["a=b"], "seeds": [
                {"seed": 1, "complete": true, "curve": curve(0.8, 640)},
                {"seed": 2, "complete": true, "curve": curve(0.6, 1600)},
                {"seed": 3, "complete": false, "curve": curve(0.1, 6400)},
            ]},
        ]},
        {"name": "speed", "value": 41.7, "unit": "million lines/min", "n": 3},
        {"name": "nothing"},
    ]))
    .unwrap()
}

fn made_up(name: &str) -> Run {
    let rate = |value: f64| Rate { value, n: 200, low: value * 0.9, high: value * 1.1 };
    let points = (0..=10u32).map(|i| Point {
        update: u64::from(i) * 20,
        episodes: u64::from(i) * 640,
        descriptions: u64::from(i) * 400,
        validation: Some(rate(f64::from(i) * 0.08)),
        training_success: Some(f64::from(i) * 0.05),
        ..Point::default()
    });
    Run {
        name: name.into(),
        about: "regex/tiny, seed 1".into(),
        settings: vec![["schedule.episodes".into(), "640".into(), "6400".into()]],
        points: points.collect(),
        examples: vec![(
            "Early",
            vec![run::Example {
                episode: 3,
                html: String::new(),
                execution: "()(n)()@c".into(),
                words: "<script>alert(1)</script> & more".into(),
            }],
        )],
        effort: vec![("Descriptions in all".into(), "4,000".into())],
        common: vec![("get rid of any [ t ]".into(), 3)],
        complaints: vec![],
    }
}

/// Fails when the page refers to anything outside itself, or runs anything.
fn stands_alone(html: &str) {
    for needle in ["<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "javascript:", "onload="] {
        assert!(!html.contains(needle), "{needle}");
    }
    // The name space of SVG is a name, not an address that is fetched.
    assert!(!html.replace("http://www.w3.org/2000/svg", "").contains("://"));
    for (at, _) in html.match_indices("href=\"") {
        assert!(html[at + 6..].starts_with('#'), "links stay within the page");
    }
}

/// The page without its styles, with a line for each tag of its pictures.
fn body(html: &str) -> String {
    let (mut body, mut rest) = (String::new(), html);
    while let Some(start) = rest.find("<style>") {
        let end = start + rest[start..].find("</style>").expect("styles end");
        body += &rest[..start];
        rest = &rest[end..];
    }
    (body + rest).replace("><", ">\n<")
}

/// Fails when elements are not closed in order or an id stands twice.
fn is_well_formed(html: &str) {
    let void = ["meta", "br", "hr", "input", "!doctype"];
    let (mut open, mut ids, mut rest): (Vec<&str>, Vec<&str>, &str) = (Vec::new(), Vec::new(), html);
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {}", rest.get(..60).unwrap_or(rest));
            continue;
        }
        if let Some(id) = tag.split(" id=\"").nth(1) {
            ids.push(id.split('"').next().unwrap());
        }
        let name = tag.split([' ', '\n']).next().unwrap();
        if !tag.ends_with('/') && !void.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id stands once");
}

#[test]
fn the_page_stands_alone_and_is_well_formed() {
    let html = page("A & B", "Made today.", &results(), &[made_up("a"), made_up("b")]).unwrap();
    stands_alone(&html);
    is_well_formed(&html);
    assert_snapshot!("a_report", body(&html));
    assert!(html.contains("prefers-color-scheme") && html.contains("@media print") && html.contains("@page"));
}

#[test]
fn an_empty_page_is_a_page() {
    let html = page("Nothing", "Made today.", &[], &[]).unwrap();
    stands_alone(&html);
    is_well_formed(&html);
    assert_snapshot!("an_empty_report", body(&html));
}

#[test]
fn curves_are_means_with_the_range_over_seeds() {
    let row = &results()[0].rows[0];
    let series = over_seeds(row, |p| p.episodes, |p| p.validation);
    assert_eq!(series.points.len(), 11);
    for (i, &(x, mean)) in series.points.iter().enumerate() {
        let share = x / 6400.0;
        assert!(x == 640.0 * i as f64 && (mean - 0.7 * share).abs() < 1e-12, "{x} {mean}");
        let (_, low, high) = series.band[i];
        assert!((low - 0.6 * share).abs() < 1e-12 && (high - 0.8 * share).abs() < 1e-12);
    }
    let training = over_seeds(row, |p| p.episodes, |p| p.training_success_total);
    assert!(training.points.len() == 11 && training.band.is_empty(), "one seed with a reading has no band");
    assert_eq!(tables::of_rows(&results()[0]).rows, [["ADEL", "70.0 ± 10.0", "2 of 3"]]);
}

#[test]
fn files_are_read_in_order_and_damaged_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b.json"), r#"{"value": 1, "surprise": true}"#).unwrap();
    std::fs::write(folder.path().join("a.json"), r#"[{"name": "one"}, {"rows": [{"name": "x", "gain": 2.5}]}]"#)
        .unwrap();
    let found = input::read(folder.path()).unwrap();
    assert_eq!(found.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["one", "a", "b"]);
    assert_eq!(tables::of_rows(&found[1]).rows, [["x", "2.5"]]);
    assert!(input::read(&folder.path().join("absent")).unwrap().is_empty());
    std::fs::write(folder.path().join("c.json"), "{").unwrap();
    assert!(format!("{:#}", input::read(folder.path()).unwrap_err()).contains("c.json"));
}

#[test]
fn a_folder_without_a_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = run::read(folder.path(), crate::registry::Registry::builtin()).err().map(|e| format!("{e:#}")).unwrap();
    assert!(error.contains("is not the folder of a run"), "{error}");
}

proptest! {
    #[test]
    fn nothing_that_was_typed_breaks_the_page(text in any::<String>()) {
        let mut run = made_up(&text);
        run.examples[0].1[0].words = text.clone();
        run.common[0].0 = text.clone();
        run.settings[0][1] = text.clone();
        let html = page(&text, &text, &[Results { name: text.clone(), ..Results::default() }], &[run]).unwrap();
        is_well_formed(&html);
    }

    #[test]
    fn numbers_are_written_plainly(value in -1e9..1e9f64) {
        let text = tables::number(value).replace(',', "").replace('−', "-");
        let read: f64 = text.parse().unwrap();
        prop_assert!((read - value).abs() <= 5e-4 * value.abs() + 1e-6, "{value} as {text}");
    }
}
