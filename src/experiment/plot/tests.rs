use super::scale::number;
use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..10.0f64,
        2 => any::<f64>(),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(0.0), Just(-0.0)],
        1 => prop_oneof![Just(f64::MAX), Just(f64::MIN), Just(f64::MIN_POSITIVE), Just(1e-300), Just(1e100)],
    ]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    (any::<String>(), any::<bool>(), any::<bool>(), prop::collection::vec(any_value(), 0..2)).prop_map(
        |(title, log, percent, include)| Axis {
            title,
            scale: if log { Scale::Log } else { Scale::Linear },
            format: if percent { Format::Percent } else { Format::Number },
            include,
        },
    )
}

fn any_plot() -> impl Strategy<Value = Plot> {
    let series = (
        any::<String>(),
        prop::collection::vec((any_value(), any_value()), 0..8),
        prop::collection::vec((any_value(), any_value(), any_value()), 0..8),
        any::<bool>(),
    )
        .prop_map(|(name, points, band, dashed)| Series { name, points, band, dashed });
    (any::<String>(), any::<String>(), any_axis(), any_axis(), prop::collection::vec(series, 0..9))
        .prop_map(|(title, description, x, y, series)| Plot { title, description, x, y, series })
}

/// Walks the markup: tags are closed in order, attributes quoted, no bare `<` or `&`. Returns all attribute values and
/// all text.
fn parse(svg: &str) -> (Vec<(String, String)>, Vec<String>) {
    let (mut attributes, mut texts, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        texts.push(rest[..start].to_owned());
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "tags are closed in order");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        let (name, mut more) = tag.split_once(' ').unwrap_or((tag, ""));
        while let Some((key, after)) = more.split_once("=\"") {
            let (value, after) = after.split_once('"').expect("attributes are quoted");
            attributes.push((key.trim().to_owned(), value.to_owned()));
            more = after;
        }
        assert!(more.trim().is_empty(), "nothing is left of <{tag}>");
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    (attributes, texts)
}

proptest! {
    #[test]
    fn any_data_gives_a_sound_picture(plot in any_plot(), width in 0.0..3000.0f64) {
        let svg = plot.svg_sized(width, 420.0);
        let (attributes, texts) = parse(&svg);
        for (key, value) in &attributes {
            prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{key}={value}");
            if ["x", "y", "cx", "cy"].contains(&key.as_str()) {
                let at: f64 = value.parse().unwrap();
                prop_assert!((-200.0..4300.0).contains(&at), "{key}={value}");
            }
            if key == "d" {
                for number in value.split(|c: char| c.is_ascii_alphabetic() || c == ' ').filter(|n| !n.is_empty()) {
                    let at: f64 = number.parse().unwrap();
                    prop_assert!((-200.0..4300.0).contains(&at), "{value}");
                }
            }
        }
        for text in texts {
            for (at, _) in text.match_indices('&') {
                prop_assert!(["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|e| text[at + 1..].starts_with(e)));
            }
            prop_assert!(text.chars().all(|c| c >= ' ' || c == '\n'), "{text:?}");
        }
    }

    #[test]
    fn escaping_leaves_no_markup(text in any::<String>()) {
        let escaped = escape(&text);
        prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
    }

    #[test]
    fn ticks_are_few_and_within_the_axis(a in any_value(), b in any_value(), log in any::<bool>(), wanted in 2.0..12.0f64) {
        let axis = if log { Axis::log("") } else { Axis::linear("") };
        let mut mapping = Mapping::new(&axis, [a, b].into_iter(), true);
        mapping.place(0.0, 100.0);
        let ticks = mapping.ticks(wanted);
        prop_assert!((1..=60).contains(&ticks.len()), "{ticks:?}");
        for (value, _) in &ticks {
            if let Some(at) = mapping.at(*value) {
                prop_assert!((-2.1..=102.1).contains(&at));
            }
        }
    }
}

/// The markup with a line for each tag, so that a snapshot shows the tag that differs.
fn lines(svg: &str) -> String {
    svg.replace('<', "\n<").trim_start().to_owned()
}

fn two_lines() -> Plot {
    Plot {
        title: "Success & failure".into(),
        description: "Two lines.".into(),
        x: Axis::linear("episodes"),
        y: Axis::share("success"),
        series: vec![
            Series {
                name: "ADEL".into(),
                points: vec![(0.0, 0.1), (100.0, 0.5), (200.0, 0.8)],
                band: vec![(0.0, 0.05, 0.15), (100.0, 0.4, 0.6), (200.0, 0.7, 0.9)],
                dashed: false,
            },
            Series { name: "bound".into(), points: vec![(0.0, 0.9), (200.0, 0.2)], dashed: true, ..Series::default() },
        ],
    }
}

#[test]
fn names_stand_at_the_ends_where_they_fit_and_in_a_legend_where_not() {
    let mut plot = two_lines();
    assert_snapshot!("names_at_the_ends", lines(&plot.svg()));
    plot.series[1].name = "a name that is far too long to stand at the end of anything that is drawn here".into();
    assert_snapshot!("a_long_name_in_the_legend", lines(&plot.svg()));
    plot.series[1].name = "bound".into();
    plot.series[1].points.truncate(1);
    assert_snapshot!("a_line_that_ends_early_in_the_legend", lines(&plot.svg()));
}

#[test]
fn pictures_are_accessible_and_know_dark_and_print() {
    let plot = two_lines();
    let svg = plot.svg();
    for needle in
        ["role=\"img\"", "<title>", "Success &amp; failure", "<desc>", "prefers-color-scheme:dark", "@media print"]
    {
        assert!(svg.contains(needle), "{needle}");
    }
    assert!(svg.contains("Lines: ADEL; bound."));
    assert!(!svg.contains(" id="), "the same picture can stand on a page twice");
}

#[test]
fn gaps_and_lone_points_are_drawn_as_such() {
    let mut plot = two_lines();
    plot.series.truncate(1);
    plot.series[0].band.clear();
    plot.series[0].points = vec![(0.0, 0.1), (1.0, 0.2), (2.0, f64::NAN), (3.0, 0.3)];
    assert_snapshot!("a_gap_and_a_lone_point", lines(&plot.svg()));
    plot.series.clear();
    assert_snapshot!("nothing_to_draw", lines(&plot.svg()));
}

#[test]
fn numbers_are_short() {
    let cases = [
        (0.0, 1.0, "0"),
        (6400.0, 200.0, "6,400"),
        (0.25, 0.05, "0.25"),
        (0.2, 0.05, "0.2"),
        (-1.5, 0.5, "−1.5"),
        (1e-6, 1e-6, "1e−6"),
        (1234567.0, 1.0, "1,234,567"),
        (1e9, 1e9, "1e9"),
        (0.001, 0.001, "0.001"),
    ];
    for (value, spread, expected) in cases {
        assert_eq!(number(value, spread), expected);
    }
}
