//! Line plots as SVG, for files and for the report: no script, no network, light and dark, printable.
//!
//! A plot is data ([`Plot`]); [`Plot::svg`] draws it. Values that cannot be drawn (not finite, beyond 10^±100, not above
//! zero on a logarithmic axis) leave a gap in their line, never a broken picture. Colours are CSS variables in the
//! picture's own style, so that it follows the reader's light or dark preference wherever it is embedded; every shape
//! also carries the light colour as an attribute, for programs that do not read style sheets.

mod scale;
mod text;

use scale::{Mapping, drawable};
use std::fmt::Write;
use text::{escape, width_of, wrap};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios; values at or below zero are not drawn.
    Log,
}

/// The format of an axis's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As they are, with thousands separated: `6,400`, `0.25`.
    #[default]
    Number,
    /// Shares as percentages: 0.25 is `25%`.
    Percent,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Its label, with the unit.
    pub title: String,
    /// Layout of the values.
    pub scale: Scale,
    /// Writing of the numbers.
    pub format: Format,
    /// Values that must be on the axis although the data may not reach them (such as 0); others are found from the data.
    pub include: Vec<f64>,
}

impl Axis {
    /// A linear axis of plain numbers.
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), ..Axis::default() }
    }

    /// A logarithmic axis of plain numbers.
    pub fn log(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), scale: Scale::Log, ..Axis::default() }
    }

    /// A linear axis of shares, from 0 upwards.
    pub fn share(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), format: Format::Percent, include: vec![0.0, 0.1], ..Axis::default() }
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The line's name, in a few words.
    pub name: String,
    /// Points (x, y), joined in the order given.
    pub points: Vec<(f64, f64)>,
    /// x, low, high: what lies around the line, such as the range over seeds; may be empty.
    pub band: Vec<(f64, f64, f64)>,
    /// Whether the line is dashed (bounds, references).
    pub dashed: bool,
}

/// A line plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Heading of the picture.
    pub title: String,
    /// A description in a sentence or two, for people who cannot see the picture.
    pub description: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// Colours of lines, light and dark. They differ in lightness as well as in hue, so that they can be told apart with any
/// kind of colour vision, and each has a contrast of at least 3 to 1 to its paper.
const COLOURS: [(&str, &str); 6] = [
    ("#1c5fc4", "#84b4ff"),
    ("#c2510a", "#ffb06a"),
    ("#00795f", "#4fd1ab"),
    ("#93338a", "#e79bdc"),
    ("#7d6300", "#e2c44d"),
    ("#4a5563", "#b4bfcc"),
];

/// Paper, ink, muted ink and grid, light and dark.
const LIGHT: [&str; 4] = ["#ffffff", "#161b22", "#57616e", "#dde2e9"];
const DARK: [&str; 4] = ["#161b22", "#e6eaf0", "#9aa5b4", "#2a323d"];

/// Size of the smallest picture, in CSS pixels.
const SMALLEST: (f64, f64) = (280.0, 200.0);

/// Font sizes, in CSS pixels.
const HEADING: f64 = 15.0;
const SMALL: f64 = 12.5;

/// Height of a line of small text.
const LINE: f64 = 18.0;

/// Where the data goes, and where its names go.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// A name written at the end of its line.
struct EndLabel {
    series: usize,
    /// Where the line ends.
    from: (f64, f64),
    /// Middle of the text.
    y: f64,
}

impl Plot {
    /// The picture, 720 by 420 CSS pixels; it scales with its surroundings.
    pub fn svg(&self) -> String {
        self.svg_sized(720.0, 420.0)
    }

    /// The picture for a given room in CSS pixels; text keeps its size, so a small room gets fewer ticks, not small print.
    pub fn svg_sized(&self, width: f64, height: f64) -> String {
        let width = if width.is_finite() { width.clamp(SMALLEST.0, 4000.0) } else { 720.0 };
        let height = if height.is_finite() { height.clamp(SMALLEST.1, 4000.0) } else { 420.0 };
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n\
             <rect class=\"plot-paper\" width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
            escape(&self.title),
            escape(&self.told()),
            style(),
            LIGHT[0]
        );
        let mut top = 14.0;
        for line in wrap(&self.title, width - 24.0, HEADING).iter().take(2) {
            top += 20.0;
            text_at(&mut out, "plot-title", (12.0, top - 6.0), line, LIGHT[1], "");
        }
        self.body(&mut out, width, height, top);
        out.push_str("</svg>\n");
        out
    }

    /// The description, with the names of the lines.
    fn told(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|s| s.name.as_str()).filter(|n| !n.is_empty()).collect();
        let lines = if names.is_empty() { String::new() } else { format!(" Lines: {}.", names.join("; ")) };
        let axes = format!(" Horizontal axis: {}. Vertical axis: {}.", self.x.title, self.y.title);
        format!("{}{axes}{lines}", self.description)
    }

    /// Axes, lines and names.
    fn body(&self, out: &mut String, width: f64, height: f64, top: f64) {
        let shown = |axis: &Axis, value: f64| drawable(value, axis.scale);
        let points = || {
            self.series.iter().flat_map(|s| {
                let band = s.band.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]);
                s.points.iter().copied().chain(band)
            })
        };
        let both = || points().filter(|&(x, y)| shown(&self.x, x) && shown(&self.y, y));
        if both().next().is_none() {
            let middle = (width / 2.0, (top + height) / 2.0);
            text_at(out, "plot-tick", middle, "Nothing to draw yet", LIGHT[2], " text-anchor=\"middle\"");
            return;
        }
        let mut y = Mapping::new(&self.y, both().map(|(_, y)| y), true);
        let mut x = Mapping::new(&self.x, both().map(|(x, _)| x), false);

        // The vertical axis' title stands above the axis, where it can be read without turning one's head.
        let mut frame = Frame { left: 0.0, right: width - 18.0, top: top + 16.0, bottom: height - 48.0 };
        let heading = wrap(&self.y.title, width - 24.0, SMALL);
        frame.top += LINE * heading.len().min(2) as f64;
        let widest = y.ticks(((frame.bottom - frame.top) / 40.0).max(3.0)).into_iter().map(|t| width_of(&t.1, SMALL));
        frame.left = widest.fold(12.0, f64::max) + 20.0;
        x.place(frame.left, frame.right);
        // Half of the last label stands beyond the axis.
        let last = x.ticks(((frame.right - frame.left) / 78.0).max(3.0)).last().map_or(0.0, |t| width_of(&t.1, SMALL));
        frame.right = frame.right.min(width - last / 2.0 - 6.0);
        x.place(frame.left, frame.right);
        y.place(frame.bottom, frame.top);

        let labels = self.end_labels(&frame, &x, &y);
        if let Some(labels) = &labels {
            let widest = labels.iter().map(|l| width_of(&self.series[l.series].name, SMALL)).fold(0.0, f64::max);
            frame.right = width - widest - 26.0;
            x.place(frame.left, frame.right);
        } else {
            top_legend(out, &self.series, width, &mut frame.top, top + 18.0);
            y.place(frame.bottom, frame.top);
        }
        for (i, line) in heading.iter().take(2).enumerate() {
            let at = frame.top - 15.0 - LINE * (heading.len().min(2) - 1 - i) as f64;
            text_at(out, "plot-tick", (12.0, at), line, LIGHT[2], "");
        }
        self.axes(out, &frame, &x, &y);
        for (i, series) in self.series.iter().enumerate() {
            draw(out, i, series, &x, &y);
        }
        for label in labels.iter().flatten() {
            // The frame moved since the label was placed.
            let (fx, fy, at) = (frame.right, label.from.1, frame.right + 14.0);
            let colour = COLOURS[label.series % COLOURS.len()].0;
            let class = format!("plot-c{}", label.series % COLOURS.len());
            let _ = writeln!(
                out,
                "<path class=\"plot-lead {class}\" d=\"M{:.1} {fy:.1}L{:.1} {:.1}\" stroke=\"{colour}\" fill=\"none\"/>",
                fx + 3.0,
                at - 3.0,
                label.y
            );
            let name = &self.series[label.series].name;
            text_at(out, &format!("plot-name {class}"), (at, label.y + 4.5), name, colour, "");
        }
    }

    /// Names at the ends of their lines, where all of them fit there; otherwise there is a legend.
    fn end_labels(&self, frame: &Frame, x: &Mapping, y: &Mapping) -> Option<Vec<EndLabel>> {
        let room = 0.36 * (frame.right - frame.left);
        let mut labels = Vec::new();
        for (series, s) in self.series.iter().enumerate() {
            if s.name.is_empty() || width_of(&s.name, SMALL) > room {
                return None;
            }
            let from = s.points.iter().rev().find_map(|&(px, py)| Some((x.at(px)?, y.at(py)?)))?;
            // A name far from the end of its line would be taken for another's.
            if frame.right - from.0 > 0.04 * (frame.right - frame.left) + 12.0 {
                return None;
            }
            labels.push(EndLabel { series, from, y: from.1 });
        }
        labels.sort_by(|a, b| a.from.1.total_cmp(&b.from.1));
        // Pushed apart from above to below, then from below to above, until no two overlap.
        let mut last = frame.top - LINE;
        for label in &mut labels {
            label.y = label.y.max(last + LINE);
            last = label.y;
        }
        let mut next = frame.bottom + LINE;
        for label in labels.iter_mut().rev() {
            label.y = label.y.min(next - LINE);
            next = label.y;
        }
        let first = labels.first()?.y;
        let moved = labels.iter().map(|l| (l.y - l.from.1).abs()).fold(0.0, f64::max);
        (first >= frame.top - 1.0 && moved <= 3.2 * LINE).then_some(labels)
    }

    /// Grid, ticks and the horizontal axis' title.
    fn axes(&self, out: &mut String, frame: &Frame, x: &Mapping, y: &Mapping) {
        for (value, label) in y.ticks(((frame.bottom - frame.top) / 40.0).max(3.0)) {
            let Some(at) = y.at(value) else { continue };
            let _ = writeln!(
                out,
                "<path class=\"plot-grid\" d=\"M{:.1} {at:.1}H{:.1}\" stroke=\"{}\"/>",
                frame.left, frame.right, LIGHT[3]
            );
            text_at(out, "plot-tick", (frame.left - 8.0, at + 4.5), &label, LIGHT[2], " text-anchor=\"end\"");
        }
        let _ = writeln!(
            out,
            "<path class=\"plot-axis\" d=\"M{:.1} {:.1}H{:.1}\" stroke=\"{}\"/>",
            frame.left, frame.bottom, frame.right, LIGHT[2]
        );
        let mut free = f64::MIN;
        for (value, label) in x.ticks(((frame.right - frame.left) / 78.0).max(3.0)) {
            let Some(at) = x.at(value) else { continue };
            let _ = writeln!(
                out,
                "<path class=\"plot-axis\" d=\"M{at:.1} {:.1}v5\" stroke=\"{}\"/>",
                frame.bottom, LIGHT[2]
            );
            let half = width_of(&label, SMALL) / 2.0;
            // Labels never run into each other.
            if at - half > free {
                let place = (at, frame.bottom + 20.0);
                text_at(out, "plot-tick", place, &label, LIGHT[2], " text-anchor=\"middle\"");
                free = at + half + 8.0;
            }
        }
        let middle = ((frame.left + frame.right) / 2.0, frame.bottom + 39.0);
        text_at(out, "plot-tick", middle, &self.x.title, LIGHT[2], " text-anchor=\"middle\"");
    }
}

/// A line of text.
fn text_at(out: &mut String, class: &str, (x, y): (f64, f64), text: &str, fill: &str, more: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{fill}\"{more}>{}</text>",
        escape(text)
    );
}

/// Names with a piece of their lines, in rows above the data. Moves `top` down by what it takes.
fn top_legend(out: &mut String, series: &[Series], width: f64, top: &mut f64, mut y: f64) {
    let mut x = 12.0;
    let mut rows = 0.0;
    for (i, s) in series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()) {
        let needed = 26.0 + width_of(&s.name, SMALL) + 18.0;
        if rows == 0.0 {
            rows = 1.0;
        } else if x + needed > width {
            (x, y, rows) = (12.0, y + LINE, rows + 1.0);
        }
        let colour = i % COLOURS.len();
        let _ = writeln!(
            out,
            "<path class=\"plot-line plot-c{colour}\" d=\"M{x:.1} {:.1}h20\" stroke=\"{}\" fill=\"none\"{}/>",
            y - 4.0,
            COLOURS[colour].0,
            dash(i, s)
        );
        text_at(out, "plot-key", (x + 26.0, y), &s.name, LIGHT[1], "");
        x += needed;
    }
    *top += LINE * rows + 4.0;
}

/// The dashes of a line: bounds are dashed, and lines that share a colour differ in their dots.
fn dash(index: usize, series: &Series) -> &'static str {
    match (series.dashed, index >= COLOURS.len()) {
        (true, false) => " stroke-dasharray=\"7 5\"",
        (true, true) => " stroke-dasharray=\"7 4 2 4\"",
        (false, true) => " stroke-dasharray=\"2 4\"",
        (false, false) => "",
    }
}

/// Band and line of a series; gaps where values cannot be drawn.
fn draw(out: &mut String, index: usize, series: &Series, x: &Mapping, y: &Mapping) {
    let (class, fill) = (index % COLOURS.len(), COLOURS[index % COLOURS.len()].0);
    let placed = series.band.iter().map(|&(at, low, high)| Some((x.at(at)?, y.at(low)?, y.at(high)?)));
    for piece in pieces(placed).iter().filter(|piece| piece.len() > 1) {
        let mut path = String::new();
        for (i, (at, low, _)) in piece.iter().enumerate() {
            let _ = write!(path, "{}{at:.1} {low:.1}", if i == 0 { 'M' } else { 'L' });
        }
        for (at, _, high) in piece.iter().rev() {
            let _ = write!(path, "L{at:.1} {high:.1}");
        }
        let _ = writeln!(
            out,
            "<path class=\"plot-band plot-c{class}\" d=\"{path}Z\" fill=\"{fill}\" fill-opacity=\"0.16\" stroke=\"none\"/>"
        );
    }
    let placed = series.points.iter().map(|&(at, value)| Some((x.at(at)?, y.at(value)?)));
    for piece in pieces(placed) {
        if let [(cx, cy)] = piece[..] {
            let _ = writeln!(
                out,
                "<circle class=\"plot-dot plot-c{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\" fill=\"{fill}\"/>"
            );
            continue;
        }
        let mut path = String::new();
        for (i, (px, py)) in piece.iter().enumerate() {
            let _ = write!(path, "{}{px:.1} {py:.1}", if i == 0 { 'M' } else { 'L' });
        }
        let _ = writeln!(
            out,
            "<path class=\"plot-line plot-c{class}\" d=\"{path}\" stroke=\"{fill}\" fill=\"none\" \
             stroke-width=\"2.2\"{}/>",
            dash(index, series)
        );
    }
}

/// Runs of values without a gap.
fn pieces<T>(values: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut pieces = vec![Vec::new()];
    for value in values {
        match (value, pieces.last_mut()) {
            (Some(value), Some(piece)) => piece.push(value),
            (None, Some(piece)) if !piece.is_empty() => pieces.push(Vec::new()),
            _ => {}
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The style sheet: colours as variables, by the reader's preference; paper and ink when printed.
fn style() -> String {
    let variables = |neutral: &[&str; 4], dark: bool| {
        let [paper, ink, muted, grid] = neutral;
        let mut css = format!("--plot-paper:{paper};--plot-ink:{ink};--plot-muted:{muted};--plot-grid:{grid};");
        for (i, (on_light, on_dark)) in COLOURS.iter().enumerate() {
            let _ = write!(css, "--plot-{i}:{};", if dark { on_dark } else { on_light });
        }
        css
    };
    let (light, dark) = (variables(&LIGHT, false), variables(&DARK, true));
    let mut css = format!(
        ".plot{{{light}font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",sans-serif;\
         font-size:{SMALL}px;font-variant-numeric:tabular-nums}}\
         @media (prefers-color-scheme:dark){{.plot{{{dark}}}}}@media print{{.plot{{{light}}}}}\
         .plot-paper{{fill:var(--plot-paper)}}.plot-title{{fill:var(--plot-ink);font-size:{HEADING}px;font-weight:650}}\
         .plot-key{{fill:var(--plot-ink)}}.plot-tick{{fill:var(--plot-muted)}}\
         .plot-grid{{stroke:var(--plot-grid)}}.plot-axis{{stroke:var(--plot-muted)}}\
         .plot-line{{stroke:var(--plot-c);stroke-width:2.2px;stroke-linejoin:round;stroke-linecap:butt}}\
         .plot-lead{{stroke:var(--plot-c);opacity:.6}}.plot-name{{fill:var(--plot-c);font-weight:600}}\
         .plot-band,.plot-dot{{fill:var(--plot-c)}}"
    );
    for i in 0..COLOURS.len() {
        let _ = write!(css, ".plot-c{i}{{--plot-c:var(--plot-{i})}}");
    }
    css
}

#[cfg(test)]
mod tests;
