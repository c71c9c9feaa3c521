//! One study: a random world, its consistent teacher with exact and with sampled epochs, and inconsistent teachers.

use super::bandit::{Bandit, Fault, Matrix, Sizes};
use super::epochs::Learner;
use super::{Reading, StartFacts, at_most, distance, l1, true_marginal_error};
use crate::experiment::plot::{Axis, Plot, Series};
use crate::rng;
use serde::Serialize;

/// Settings of the study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudySettings {
    /// Sizes of the world.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// Epochs T, at least 1.
    pub epochs: u64,
    /// Seed of the world and of drawn batches.
    pub seed: u64,
    /// M, the batch of the sampled version; 0: leave it out.
    pub samples: u64,
    /// Shares of wrong descriptions of the inconsistent teachers, each between 0 and 1.
    pub inconsistent: Vec<f64>,
}

/// All starts after `t` epochs.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// t: policies averaged.
    pub t: u64,
    /// The start whose distance is closest to its bound (or furthest beyond it), counted from 1 as the printed table does.
    pub start: usize,
    /// Its distance.
    pub distance: f64,
    /// Its bound; null in JSON where it is infinite.
    pub bound: f64,
    /// Distance divided by bound.
    pub ratio: f64,
    /// Largest total variation of the evaluated policy to P*(a | s, d), over starts and requests.
    pub policy_error: f64,
    /// The policy bound of the start with that error.
    pub policy_bound: f64,
    /// The distance of the sampled version, largest over starts.
    pub sampled_distance: Option<f64>,
}

/// Results with an inconsistent teacher.
#[derive(Clone, Debug, Serialize)]
pub struct Wrong {
    /// The kind of its mistakes.
    pub fault: Fault,
    /// Their frequency.
    pub strength: f64,
    /// Mean total variation of P_T(d | e) to P*(d | e) over executions of P*.
    pub inconsistency: f64,
    /// ‖P* − running average‖₂ after T epochs, largest over starts.
    pub distance: f64,
    /// That distance for the last epoch's marginal alone, in which averaging has no part.
    pub last_distance: f64,
    /// Mean total variation of the evaluated policy to P*(a | s, d), over tasks.
    pub policy_error: f64,
    /// Mean policy error of the learner that knows the true marginal: the part that no exploration can mend.
    pub true_marginal_error: f64,
    /// Distance of the running average at every t, for the plot.
    #[serde(skip)]
    pub distances: Vec<f64>,
}

/// A study's results.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// The settings.
    pub settings: StudySettings,
    /// Values that are fixed for each start.
    pub starts: Vec<StartFacts>,
    /// Whether σ_min > 0 in every start, without which the theorem says nothing there.
    pub applies: bool,
    /// Whether distance ≤ bound at every t in every start.
    pub bound_held: bool,
    /// Whether the bound held with KL(P* ‖ P_1) in place of ln |A|.
    pub sharp_bound_held: bool,
    /// Whether the potential fell by at least what the lemma says in every epoch and start.
    pub potential_held: bool,
    /// Whether the policy's error was within its bound at every t in every start.
    pub policy_bound_held: bool,
    /// Pairs (t, start) that were looked at.
    pub checked: u64,
    /// Largest error of the learner that knows the true marginal (the paper's first algorithm).
    pub true_marginal_error: f64,
    /// One row for every t.
    pub rows: Vec<Row>,
    /// Inconsistent teachers.
    pub wrong: Vec<Wrong>,
}

/// Computes a study.
pub fn study(settings: &StudySettings) -> Study {
    let bandit = Bandit::random(settings.sizes, settings.seed);
    let starts: Vec<StartFacts> = (0..settings.sizes.starts).map(|s| StartFacts::new(&bandit, s)).collect();
    let teacher = bandit.consistent();
    let mut study = Study {
        settings: settings.clone(),
        applies: starts.iter().all(|s| s.sigma_min > 0.0),
        bound_held: true,
        sharp_bound_held: true,
        potential_held: true,
        policy_bound_held: true,
        checked: 0,
        true_marginal_error: true_marginal_error(&bandit, &teacher, &starts).0,
        rows: Vec::new(),
        wrong: Vec::new(),
        starts,
    };
    let mut exact = Learner::new(&bandit, &teacher);
    let mut sampled = (settings.samples > 0).then(|| exact.clone());
    let mut before: Vec<Reading> = Vec::new();
    for t in 1..=settings.epochs {
        if t > 1 {
            exact.advance();
            if let Some(sampled) = &mut sampled {
                sampled.advance_sampled(settings.samples, &mut rng::stream(settings.seed, "theory-epoch", t));
            }
        }
        let readings: Vec<Reading> =
            study.starts.iter().enumerate().map(|(s, facts)| Reading::of(&exact, &bandit, facts, s)).collect();
        study.check(&readings, &before);
        let sampled_distance = sampled.as_ref().map(|sampled| largest_distance(sampled, &bandit));
        study.rows.extend(row(&readings, sampled_distance));
        before = readings;
    }
    for fault in [Fault::Noise, Fault::Swapped] {
        for &strength in &settings.inconsistent {
            study.wrong.push(wrong(&bandit, &study.starts, fault, strength, settings.epochs));
        }
    }
    study
}

impl Study {
    /// Compares the readings of an epoch with what the theorems say.
    fn check(&mut self, readings: &[Reading], before: &[Reading]) {
        for reading in readings {
            self.bound_held &= at_most(reading.distance, reading.bound);
            self.sharp_bound_held &= at_most(reading.distance, reading.sharp_bound);
            self.policy_bound_held &= at_most(reading.policy_error, reading.policy_bound);
            self.checked += 1;
        }
        for (now, before) in readings.iter().zip(before) {
            self.potential_held &= at_most(now.potential - before.potential, -before.promised_fall);
        }
    }

    /// Rows for a table: t = 1, 2, 5, 10, 20, … and the last.
    pub fn chosen(&self) -> Vec<&Row> {
        let round = |t: u64| {
            let power = 10u64.pow(t.ilog10());
            t == power || t == 2 * power || t == 5 * power
        };
        let last = self.rows.len();
        self.rows.iter().enumerate().filter(|(i, row)| round(row.t) || i + 1 == last).map(|(_, row)| row).collect()
    }
}

fn largest_distance(learner: &Learner<'_>, bandit: &Bandit) -> f64 {
    let of = |s: usize| distance(&bandit.marginals[s], &learner.average_marginal(s));
    (0..bandit.starts.len()).map(of).fold(0.0, f64::max)
}

/// The row of an epoch: the start nearest to its bound.
fn row(readings: &[Reading], sampled_distance: Option<f64>) -> Option<Row> {
    let (start, nearest) = readings.iter().enumerate().max_by(|(_, a), (_, b)| a.ratio().total_cmp(&b.ratio()))?;
    let worst = readings.iter().max_by(|a, b| a.policy_error.total_cmp(&b.policy_error))?;
    Some(Row {
        t: nearest.t,
        start: start + 1,
        distance: nearest.distance,
        bound: nearest.bound,
        ratio: nearest.ratio(),
        policy_error: worst.policy_error,
        policy_bound: worst.policy_bound,
        sampled_distance,
    })
}

fn wrong(bandit: &Bandit, starts: &[StartFacts], fault: Fault, strength: f64, epochs: u64) -> Wrong {
    let teacher = bandit.inconsistent(fault, strength);
    let mut learner = Learner::new(bandit, &teacher);
    let mut distances = vec![largest_distance(&learner, bandit)];
    for _ in 1..epochs {
        learner.advance();
        distances.push(largest_distance(&learner, bandit));
    }
    let last = |s: usize| distance(&bandit.marginals[s], &learner.marginal(s));
    let policy_error =
        starts.iter().enumerate().map(|(s, f)| f.probability * f.mean_error(&learner.evaluated(s))).sum();
    Wrong {
        fault,
        strength,
        inconsistency: inconsistency(bandit, &teacher),
        distance: distances.last().copied().unwrap_or_default(),
        last_distance: (0..starts.len()).map(last).fold(0.0, f64::max),
        policy_error,
        true_marginal_error: true_marginal_error(bandit, &teacher, starts).1,
        distances,
    }
}

/// Mean total variation of a teacher to P*(d | e), over executions of P*.
fn inconsistency(bandit: &Bandit, teacher: &[Matrix]) -> f64 {
    let column = |m: &Matrix, a: usize| -> Vec<f64> { (0..m.rows()).map(|d| m.at(d, a)).collect() };
    let mut mean = 0.0;
    for (s, (p, q)) in bandit.descriptions.iter().zip(teacher).enumerate() {
        for a in 0..p.columns() {
            mean += bandit.starts[s] * bandit.marginals[s][a] * 0.5 * l1(&column(p, a), &column(q, a));
        }
    }
    mean
}

/// The study as a picture: distances and the bound over epochs, both axes logarithmic.
pub fn picture(study: &Study) -> Plot {
    let of = |name: &str, dashed: bool, read: &dyn Fn(&Row) -> f64| Series {
        name: name.into(),
        points: study.rows.iter().map(|r| (r.t as f64, read(r))).collect(),
        dashed,
        ..Series::default()
    };
    let mut series = vec![
        of("distance", false, &|r| r.distance),
        of("bound", true, &|r| r.bound),
        of("policy error", false, &|r| r.policy_error),
    ];
    if study.settings.samples > 0 {
        let name = format!("distance, M = {}", study.settings.samples);
        series.push(of(&name, false, &|r| r.sampled_distance.unwrap_or(f64::NAN)));
    }
    // One fault is enough for a picture; the table has both.
    for w in study.wrong.iter().filter(|w| w.fault == Fault::Swapped) {
        let points = w.distances.iter().enumerate().map(|(i, d)| ((i + 1) as f64, *d)).collect();
        // The bound is stated for a consistent teacher.
        let name = format!("{:.0}% swapped (outside the theorem)", 100.0 * w.strength);
        series.push(Series { name, points, ..Series::default() });
    }
    for s in &mut series {
        s.points = thinned(&s.points);
    }
    Plot {
        title: "EpochADEL: running average of marginals and the paper's bound".into(),
        description: format!(
            "Over epochs t: the Euclidean distance of the running average marginal to the true one in the start nearest to \
             its bound, that bound, and the largest total variation of the evaluated policy. {}",
            if study.bound_held { "The distance stays below the bound." } else { "The distance exceeds the bound." }
        ),
        x: Axis::log("epochs t"),
        y: Axis::log("distance"),
        series,
    }
}

/// Points that a logarithmic axis can show apart: all of the first hundred, then steps of one per cent.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let (mut kept, mut next) = (Vec::new(), 0.0);
    for (i, point) in points.iter().enumerate() {
        if point.0 >= next || i + 1 == points.len() {
            kept.push(*point);
            next = if point.0 < 100.0 { point.0 } else { point.0 * 1.01 };
        }
    }
    kept
}
