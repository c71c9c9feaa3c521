//! 95% intervals of the figures by which runs are compared.

use crate::protocol::Rate;
use crate::protocol::evaluation::rate;
use crate::rng::stream;
use rand::RngExt;
use serde::Serialize;

/// An estimate with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// All three numbers multiplied by a positive factor.
    pub fn times(self, factor: f64) -> Interval {
        Interval { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// The interval with its ends brought into `low..=high`.
    pub fn within(self, low: f64, high: f64) -> Interval {
        Interval { low: self.low.max(low), high: self.high.min(high), ..self }
    }
}

/// The number of successes behind a rate.
fn successes(rate: &Rate) -> u64 {
    (rate.value * rate.n as f64).round() as u64
}

/// How much higher `after` is than `before`, with Newcombe's hybrid score interval (his method 10) of two proportions. `None` where
/// one of them counts nothing.
pub fn difference(before: &Rate, after: &Rate) -> Option<Interval> {
    if before.n == 0 || after.n == 0 {
        return None;
    }
    // The ends of Wilson's intervals, made anew: stored ones may come from an earlier program.
    let (before, after) = (rate(successes(before), before.n), rate(successes(after), after.n));
    let value = after.value - before.value;
    let low = value - (after.value - after.low).hypot(before.high - before.value);
    let high = value + (after.high - after.value).hypot(before.value - before.low);
    Some(Interval { value, low, high })
}

/// Quantiles 0.975 of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean of independent values with Student's t interval. `None` for fewer than two values.
pub fn mean(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let freedom = n - 1;
    // Beyond the table the first term of Cornish and Fisher's expansion is right to three digits.
    let z = 1.959_964_f64;
    let t = T.get(freedom - 1).copied().unwrap_or(z + (z.powi(3) + z) / (4.0 * freedom as f64));
    let half = t * (variance / n as f64).sqrt();
    Some(Interval { value: mean, low: mean - half, high: mean + half })
}

/// The quotient of two independent estimates, the lower of which is positive, by the method of variance estimates recovery (Donner and
/// Zou): the quotients R for which the interval of `top - R * bottom` holds 0. `None` where that set has no end.
pub fn quotient(top: Interval, bottom: Interval) -> Option<Interval> {
    if !(bottom.low > 0.0 && bottom.low <= bottom.value && bottom.value <= bottom.high) {
        return None;
    }
    let (below, above) = (bottom.value - bottom.low, bottom.high - bottom.value);
    // (t - R b)² = e² + R² d², where e and d are the distances of the ends that are the farther for this end of the quotient.
    let end = |top_end: f64, distance: f64, sign: f64| {
        let (a, b) = (bottom.value.powi(2) - distance.powi(2), top.value * bottom.value);
        let c = top.value.powi(2) - (top.value - top_end).powi(2);
        let root = (b * b - a * c).max(0.0).sqrt();
        (a > 0.0).then(|| (b + sign * root) / a)
    };
    let low = end(top.low, if top.low >= 0.0 { above } else { below }, -1.0)?;
    let high = end(top.high, if top.high >= 0.0 { below } else { above }, 1.0)?;
    Some(Interval { value: top.value / bottom.value, low, high })
}

/// Most numbers that a bootstrap draws, however many units there are.
const MOST_DRAWS: usize = 4_000_000;

/// The ends of the 95% percentile interval of a statistic when `n` units are drawn anew with replacement. Draws of which there is no
/// statistic are left out. `None` for fewer than two units. The draws are the same at every call.
pub fn bootstrap(n: usize, statistic: impl Fn(&[usize]) -> Option<f64>) -> Option<(f64, f64)> {
    if n < 2 {
        return None;
    }
    let mut draws = stream(0, "bootstrap", n as u64);
    let mut chosen = vec![0; n];
    let mut values = Vec::new();
    for _ in 0..(MOST_DRAWS / n).clamp(200, 2000) {
        chosen.fill_with(|| draws.random_range(0..n));
        values.extend(statistic(&chosen).filter(|value| value.is_finite()));
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len().checked_sub(1)?) as f64 * share).round() as usize).copied();
    at(0.025).zip(at(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Interval, [value, low, high]: [f64; 3], within: f64) {
        let apart = [found.value - value, found.low - low, found.high - high];
        assert!(apart.iter().all(|d| d.abs() < within), "{found:?} is not {value} ({low} to {high})");
    }

    #[test]
    fn the_difference_of_two_proportions_is_newcombes() {
        // Newcombe (1998), table II: 56 of 70 against 48 of 80 (method 10), and 10 of 10 against 0 of 10.
        near(difference(&rate(48, 80), &rate(56, 70)).unwrap(), [0.2, 0.0524, 0.3339], 5e-5);
        near(difference(&rate(0, 10), &rate(10, 10)).unwrap(), [1.0, 0.6075, 1.0], 5e-5);
        // Nothing learned: the interval lies around 0 alike on both sides.
        let nothing = difference(&rate(20, 100), &rate(20, 100)).unwrap();
        assert!(nothing.value == 0.0 && (nothing.low + nothing.high).abs() < 1e-12 && nothing.low < -0.1);
        assert_eq!(difference(&rate(0, 0), &rate(1, 2)), None);
    }

    #[test]
    fn means_of_runs_have_students_interval() {
        // Mean 2, standard deviation 1, three values: 2 ± 4.303 / √3.
        near(mean(&[1.0, 2.0, 3.0]).unwrap(), [2.0, 2.0 - 2.484_338, 2.0 + 2.484_338], 1e-5);
        // Two values: half their distance times 12.706.
        near(mean(&[0.2, 0.4]).unwrap(), [0.3, 0.3 - 1.2706, 0.3 + 1.2706], 1e-9);
        assert_eq!(mean(&[0.5]), None);
        let many: Vec<f64> = (0..42).map(|i| f64::from(i % 2)).collect();
        let half = mean(&many).unwrap().high - 0.5;
        // t of 41 degrees of freedom is 2.0195; the deviation is √(42 / 41) / 2.
        assert!((half - 2.0195 * (42.0_f64 / 41.0).sqrt() / 2.0 / 42.0_f64.sqrt()).abs() < 2e-4, "{half}");
    }

    #[test]
    fn quotients_have_the_interval_of_both_parts() {
        let sure = Interval { value: 20.0, low: 20.0, high: 20.0 };
        // A bottom that is known: the ends are divided.
        let gain = Interval { value: 0.4, low: 0.3, high: 0.52 };
        near(quotient(gain, sure).unwrap(), [0.02, 0.015, 0.026], 1e-12);
        let loss = Interval { value: -0.1, low: -0.2, high: 0.05 };
        near(quotient(loss, sure).unwrap(), [-0.005, -0.01, 0.0025], 1e-12);
        // A top that is known, 8 of 4 to 16: 8/16 and 8/4 would be the ends of R by 1/bottom, and are by this method.
        let known = Interval { value: 8.0, low: 8.0, high: 8.0 };
        near(quotient(known, Interval { value: 8.0, low: 4.0, high: 12.0 }).unwrap(), [1.0, 2.0 / 3.0, 2.0], 1e-12);
        // Both uncertain: each end lies farther out than with either alone.
        let wide = quotient(gain, Interval { value: 20.0, low: 16.0, high: 25.0 }).unwrap();
        assert!(wide.low < 0.3 / 20.0 && wide.high > 0.52 / 20.0 && wide.low > 0.3 / 25.0 && wide.high < 0.52 / 16.0);
        assert_eq!(quotient(gain, Interval { value: 1.0, low: 0.0, high: 2.0 }), None);
        // A bottom of which the interval reaches to twice the estimate bounds no quotient from below.
        assert_eq!(quotient(gain, Interval { value: 1.0, low: 0.5, high: 2.5 }), None);
    }

    #[test]
    fn the_bootstrap_draws_units_and_repeats() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        let of = |chosen: &[usize]| Some(chosen.iter().map(|&i| values[i]).sum::<f64>() / chosen.len() as f64);
        let (low, high) = bootstrap(10, of).unwrap();
        // The deviation of such a mean is √(8.25 / 10) = 0.908.
        assert!((low - (5.5 - 1.78)).abs() < 0.2 && (high - (5.5 + 1.78)).abs() < 0.2, "{low} to {high}");
        assert_eq!(bootstrap(10, of), Some((low, high)));
        assert_eq!(bootstrap(5, |_| Some(3.0)), Some((3.0, 3.0)));
        assert_eq!(bootstrap(1, |_| Some(3.0)), None);
        assert_eq!(bootstrap(3, |_| None), None);
    }
}
