//! From values to places: the range of an axis, its ticks, and where a value lies.

use super::{Axis, Format, Scale};

/// Largest power of ten that is drawn; beyond it differences and ratios overflow.
const LIMIT: f64 = 1e100;

/// Whether a value has a place on an axis.
pub(super) fn drawable(value: f64, scale: Scale) -> bool {
    match scale {
        Scale::Linear => value.is_finite() && value.abs() <= LIMIT,
        Scale::Log => (1.0 / LIMIT..=LIMIT).contains(&value),
    }
}

/// The layout of one axis.
pub(super) struct Mapping {
    scale: Scale,
    format: Format,
    /// Ends, as values (linear) or as their decimal logarithms.
    low: f64,
    high: f64,
    /// Places of the ends.
    from: f64,
    to: f64,
}

impl Mapping {
    /// The range of the drawable `values` and of what the axis must include. `round` widens it to round numbers.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, round: bool) -> Mapping {
        let transform = |v: f64| if axis.scale == Scale::Log { v.log10() } else { v };
        let included = axis.include.iter().copied();
        let (mut low, mut high) = values
            .chain(included)
            .filter(|v| drawable(*v, axis.scale))
            .map(transform)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // A range too narrow for the arithmetic is none: give the one value some air.
        let scale = low.abs().max(high.abs());
        if high - low <= 1e-9 * scale.max(f64::MIN_POSITIVE) {
            let air = if axis.scale == Scale::Log || scale == 0.0 { 0.5 } else { 0.1 * scale };
            (low, high) = (low - air, high + air);
        }
        if round {
            match axis.scale {
                Scale::Linear => {
                    let step = step(high - low, 5.0);
                    (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
                }
                Scale::Log => {
                    let air = 0.03 * (high - low);
                    (low, high) = (low - air, high + air);
                }
            }
        }
        Mapping { scale: axis.scale, format: axis.format, low, high, from: 0.0, to: 1.0 }
    }

    /// Lays the axis between two places.
    pub(super) fn place(&mut self, from: f64, to: f64) {
        (self.from, self.to) = (from, to);
    }

    /// The place of a value, if it has one.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        if !drawable(value, self.scale) {
            return None;
        }
        let value = if self.scale == Scale::Log { value.log10() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(-0.02, 1.02);
        Some(self.from + share * (self.to - self.from))
    }

    /// About `wanted` ticks with their labels, in ascending order.
    pub(super) fn ticks(&self, wanted: f64) -> Vec<(f64, String)> {
        let (low, high) = (self.low, self.high);
        let slack = 1e-9 * (high - low);
        let mut values = Vec::new();
        if self.scale == Scale::Log {
            let decades = high - low;
            // 1, 2, 5 within few decades; every so many decades over many.
            let every = (decades / wanted).ceil().max(1.0);
            let digits: &[f64] = match (decades * 3.0 <= wanted + 1.5, decades * 2.0 <= wanted + 1.5) {
                (true, _) => &[1.0, 2.0, 5.0],
                (_, true) => &[1.0, 3.0],
                _ => &[1.0],
            };
            let mut power = (low / every).floor() * every;
            while power <= high + slack {
                for digit in digits {
                    let at = power + digit.log10();
                    if at >= low - slack && at <= high + slack {
                        values.push(digit * 10f64.powf(power));
                    }
                }
                power += every;
            }
        }
        // Also where a logarithmic axis is too short to hold two of its own ticks.
        if values.len() < 2 {
            let (low, high) = if self.scale == Scale::Log { (10f64.powf(low), 10f64.powf(high)) } else { (low, high) };
            let (step, slack) = (step(high - low, wanted), 1e-9 * (high - low));
            values.clear();
            let mut n = (low / step - 1e-9).ceil();
            // A bound on the number, whatever the arithmetic does at the edges of the range.
            while n * step <= high + slack && values.len() < 60 {
                values.push(n * step + 0.0);
                n += 1.0;
            }
        }
        let spread = values.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
        values.into_iter().map(|v| (v, self.label(v, spread))).collect()
    }

    fn label(&self, value: f64, spread: f64) -> String {
        match self.format {
            Format::Number => number(value, spread),
            Format::Percent => format!("{}%", number(100.0 * value, 100.0 * spread)),
        }
    }
}

/// A round step (1, 2 or 5 times a power of ten) that cuts `range` into about `wanted` pieces.
fn step(range: f64, wanted: f64) -> f64 {
    let raw = range / wanted.max(1.0);
    let power = 10f64.powf(raw.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|d| d * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0);
    digit * power
}

/// A number for an axis on which neighbours are `spread` apart: thousands separated, no needless digits, powers of ten
/// where plain digits would be long.
pub(super) fn number(value: f64, spread: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs();
    if !(1e-4..1e7).contains(&size) {
        let text = format!("{value:.1e}");
        return text.replace(".0e", "e").replace('-', "−");
    }
    // Digits that tell this value from its neighbours, and that the value itself needs.
    let smallest = if spread.is_finite() { spread.min(size) } else { size };
    let digits = (-smallest.log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{size:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(w, r)| (w, r.trim_end_matches('0')));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    if rest.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{rest}") }
}
