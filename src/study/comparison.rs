//! The comparison of a study's arms: success on validation against the effort of teachers, with intervals. Arms of one name are
//! runs of one condition. Everything here is a function of its arguments.
//!
//! The gain of a run lies between two evaluations: the last one before an update that used a response of the study's teachers, and the
//! newest one. Effort is counted between the same two.

use super::intervals::{Interval, bootstrap, difference, mean, quotient};
use crate::ids::{RunId, TeacherId};
use crate::protocol::Rate;
use crate::protocol::evaluation::rate;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most evaluations of a run, and most points of a curve, that a comparison shows.
const MOST_POINTS: usize = 400;

const MS_PER_MINUTE: f64 = 60_000.0;

/// The stored facts about a run of a study.
#[derive(Clone, Debug, Default)]
pub struct TaughtRun {
    /// The run; an empty text in tests.
    pub run: Option<RunId>,
    /// Name of its arm.
    pub condition: String,
    /// Evaluations on validation tasks by update, oldest first.
    pub evaluations: Vec<(u64, Rate)>,
    /// The answers of the study's teachers in figures, by update and teacher.
    pub efforts: Vec<Effort>,
    /// Last update that learned from the simulated teacher.
    pub simulated_until: Option<u64>,
    /// The readings of what the agent understood before it was told, by teacher.
    pub readings: Vec<TeacherReadings>,
}

/// The answers that a teacher gave for an update of a run, in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The update that used it, or a later one up to the first evaluation that knows of it. Skips and whatever else no update uses
    /// belong to the next one that used something given later. `None`: no evaluation knows of it.
    pub update: Option<u64>,
    /// Who.
    pub teacher: TeacherId,
    /// Responses that stand; skips are none.
    pub responses: u64,
    /// Milliseconds of activity, those of skipped, corrected and withdrawn ones included.
    pub active_ms: u64,
    /// Responses and skips whose time was not measured.
    pub untimed: u64,
}

/// Descriptions of a teacher that the agent carried out before it learned from them. The halves are those of the run's readings in
/// the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeacherReadings {
    /// Who.
    pub teacher: TeacherId,
    /// How many of the first half, and how many of these were carried out rightly.
    pub first: (u64, u64),
    /// The share of the second half.
    pub second: (u64, u64),
}

/// A comparison of the conditions of a study, in the order in which the study names them.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Comparison {
    /// The conditions.
    pub conditions: Vec<Condition>,
}

/// Runs of one name.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Condition {
    /// The arms' name.
    pub name: String,
    /// All runs together: sums of counts, means of figures.
    pub outcome: Outcome,
    /// Success against effort.
    pub curves: Curves,
    /// Each run.
    pub runs: Vec<RunOutcome>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct RunOutcome {
    /// The run.
    pub run: Option<RunId>,
    /// Its figures.
    pub outcome: Outcome,
    /// Its evaluations, from the one before the study on.
    pub points: Vec<EffortPoint>,
}

/// An evaluation, with the effort since the one before the study.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct EffortPoint {
    /// Update of the run.
    pub update: u64,
    /// Updates since.
    pub updates: u64,
    /// Responses that these used.
    pub responses: u64,
    /// Active minutes of teachers until then.
    pub active_minutes: f64,
    /// Success on validation tasks.
    pub validation: Rate,
}

/// Success against effort: the run's evaluations with Wilson's intervals, or means over runs with Student's t.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Curves {
    /// Over active minutes of teachers.
    pub active_minutes: Vec<CurvePoint>,
    /// Over responses.
    pub responses: Vec<CurvePoint>,
    /// Over updates.
    pub updates: Vec<CurvePoint>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct CurvePoint {
    /// The effort.
    pub x: f64,
    /// Success with its interval.
    #[serde(flatten)]
    pub success: Interval,
}

/// Figures of a run or of a condition. Shares lie between 0 and 1, also in gains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Outcome {
    /// Teachers who gave something.
    pub teachers: u64,
    /// Responses that the newest evaluation knows of.
    pub responses: u64,
    /// All responses, those that wait among them.
    pub given: u64,
    /// Active minutes of teachers until the newest evaluation.
    pub active_minutes: f64,
    /// Responses and skips whose time was not measured.
    pub untimed: u64,
    /// Success before the study. Of several runs the mean, `n` being the sum.
    pub before: Option<Rate>,
    /// Success at the newest evaluation.
    pub now: Option<Rate>,
    /// The difference.
    pub gain: Option<Interval>,
    /// Gain for each active minute of teachers.
    pub gain_per_minute: Option<Interval>,
    /// Gain for ten responses.
    pub gain_per_ten_responses: Option<Interval>,
    /// Descriptions that the agent understood before it was told.
    pub understood: Option<Understood>,
    /// Whether the simulated teacher taught as well since.
    pub simulated: bool,
}

/// The agent's understanding of the teachers' own words before it was told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Understood {
    /// Share of descriptions, with its interval and number.
    pub share: Rate,
    /// Share in the first half of them.
    pub first_half: Rate,
    /// Share in the second half.
    pub second_half: Rate,
}

/// Sums up to an update.
#[derive(Clone, Copy, Default)]
struct Sum {
    responses: u64,
    active_ms: u64,
}

/// At most `most` of the items, evenly spread, the first and the last among them.
fn thinned<T: Copy>(items: &[T], most: usize) -> Vec<T> {
    if items.len() <= most || most < 2 {
        return items.to_vec();
    }
    (0..most).map(|i| items[i * (items.len() - 1) / (most - 1)]).collect()
}

/// The evaluations from the last one before the study on, with the effort since.
fn points(run: &TaughtRun) -> Vec<EffortPoint> {
    let begun = run.efforts.iter().filter_map(|effort| effort.update).min();
    let before = |(update, _): &&(u64, Rate)| begun.is_none_or(|begun| *update < begun);
    let Some(&(base, _)) = run.evaluations.iter().rfind(before).or(run.evaluations.first()) else { return Vec::new() };
    let mut by_update: BTreeMap<u64, Sum> = BTreeMap::new();
    for effort in &run.efforts {
        if let Some(update) = effort.update.filter(|update| *update > base) {
            let sum = by_update.entry(update).or_default();
            sum.responses += effort.responses;
            sum.active_ms += effort.active_ms;
        }
    }
    let mut sums = by_update.into_iter().peekable();
    let mut sum = Sum::default();
    let evaluations = run.evaluations.iter().filter(|(update, _)| *update >= base);
    let points = evaluations.map(|&(update, validation)| {
        while let Some((_, more)) = sums.next_if(|(at, _)| *at <= update) {
            sum.responses += more.responses;
            sum.active_ms += more.active_ms;
        }
        EffortPoint {
            update,
            updates: update - base,
            responses: sum.responses,
            active_minutes: sum.active_ms as f64 / MS_PER_MINUTE,
            validation,
        }
    });
    let points: Vec<EffortPoint> = points.collect();
    thinned(&points, MOST_POINTS)
}

/// The outcome of one run, with its evaluations.
fn outcome_of(run: &TaughtRun) -> RunOutcome {
    let points = points(run);
    let (first, last) = (points.first(), points.last());
    let (from, until) = (first.map_or(0, |p| p.update), last.map_or(0, |p| p.update));
    let counted: Vec<&Effort> =
        run.efforts.iter().filter(|e| e.update.is_some_and(|at| at > from && at <= until)).collect();
    let mut teachers: BTreeMap<TeacherId, Sum> = BTreeMap::new();
    for effort in &counted {
        let sum = teachers.entry(effort.teacher).or_default();
        sum.responses += effort.responses;
        sum.active_ms += effort.active_ms;
    }
    let responses: u64 = counted.iter().map(|e| e.responses).sum();
    let active_minutes = counted.iter().map(|e| e.active_ms).sum::<u64>() as f64 / MS_PER_MINUTE;
    let given = run.efforts.iter().filter(|e| e.update.is_none_or(|at| at > from)).map(|e| e.responses).sum();
    let gain = match (first, last) {
        (Some(first), Some(last)) if responses > 0 => difference(&first.validation, &last.validation),
        _ => None,
    };
    let teachers: Vec<Sum> = teachers.into_values().collect();
    let minutes = minutes(&teachers, responses, active_minutes);
    let outcome = Outcome {
        teachers: teachers.len() as u64,
        responses,
        given,
        active_minutes,
        untimed: counted.iter().map(|e| e.untimed).sum(),
        before: first.map(|p| p.validation),
        now: last.map(|p| p.validation),
        gain_per_minute: gain.zip(minutes).and_then(|(gain, minutes)| quotient(gain, minutes)),
        gain_per_ten_responses: gain.map(|gain| gain.times(10.0 / responses as f64)),
        gain,
        understood: understood(&run.readings),
        simulated: run.simulated_until.is_some_and(|until| until > from),
    };
    RunOutcome { run: run.run.clone(), outcome, points }
}

/// The minutes that the responses would take teachers like these: their own pace, with a bootstrap over teachers where there are several.
fn minutes(teachers: &[Sum], responses: u64, active_minutes: f64) -> Option<Interval> {
    if responses == 0 || active_minutes <= 0.0 {
        return None;
    }
    let pace = |chosen: &[usize]| {
        let (ms, n) = chosen.iter().fold((0, 0), |(ms, n), &i| (ms + teachers[i].active_ms, n + teachers[i].responses));
        (n > 0).then(|| ms as f64 / n as f64)
    };
    let all = responses as f64 / MS_PER_MINUTE;
    let (low, high) = match bootstrap(teachers.len(), pace) {
        Some((low, high)) => (low * all, high * all),
        None => (active_minutes, active_minutes),
    };
    Some(Interval { value: active_minutes, low: low.min(active_minutes), high: high.max(active_minutes) })
}

/// The share that the agent understood before it was told. Descriptions of one teacher are like each other, so that the interval comes
/// from a bootstrap over teachers, and with one teacher is Wilson's.
fn understood(readings: &[TeacherReadings]) -> Option<Understood> {
    let sum = |half: fn(&TeacherReadings) -> (u64, u64)| {
        readings.iter().map(half).fold((0, 0), |(n, k), (more, right)| (n + more, k + right))
    };
    let (first, second) = (sum(|r| r.first), sum(|r| r.second));
    let share = rate(first.1 + second.1, first.0 + second.0);
    if share.n == 0 {
        return None;
    }
    let of = |chosen: &[usize]| {
        let both =
            |&i: &usize| (readings[i].first.0 + readings[i].second.0, readings[i].first.1 + readings[i].second.1);
        let (n, k) = chosen.iter().map(both).fold((0, 0), |(n, k), (more, right)| (n + more, k + right));
        (n > 0).then(|| k as f64 / n as f64)
    };
    let share = match bootstrap(readings.len(), of) {
        // Where all teachers agree, drawing them says nothing about the next description.
        Some((low, high)) if high > low => Rate { low, high, ..share },
        _ => share,
    };
    Some(Understood { share, first_half: rate(first.1, first.0), second_half: rate(second.1, second.0) })
}

/// The mean of rates over runs, with Student's interval and the sum of their numbers.
fn mean_rate(rates: &[Rate]) -> Option<Rate> {
    let values: Vec<f64> = rates.iter().map(|rate| rate.value).collect();
    let Interval { value, low, high } = mean(&values)?.within(0.0, 1.0);
    Some(Rate { value, n: rates.iter().map(|rate| rate.n).sum(), low, high })
}

/// The figures of several runs together. Where a run has no figure of a kind, the condition has none either.
fn pooled(runs: &[RunOutcome], efforts: &[&TaughtRun]) -> Outcome {
    let [first, rest @ ..] = runs else { return Outcome::default() };
    if rest.is_empty() {
        return first.outcome.clone();
    }
    let all =
        |read: fn(&Outcome) -> Option<f64>| runs.iter().map(|run| read(&run.outcome)).collect::<Option<Vec<f64>>>();
    let interval = |read: fn(&Outcome) -> Option<f64>| all(read).and_then(|values| mean(&values));
    let rates =
        |read: fn(&Outcome) -> Option<Rate>| runs.iter().map(|run| read(&run.outcome)).collect::<Option<Vec<Rate>>>();
    let sum = |read: fn(&Outcome) -> u64| runs.iter().map(|run| read(&run.outcome)).sum();
    let told: Option<Vec<Understood>> = runs.iter().map(|run| run.outcome.understood).collect();
    let half = |read: fn(&Understood) -> Rate, told: &[Understood]| {
        let (k, n) = told.iter().map(read).fold((0.0, 0), |(k, n), rate| (k + rate.value * rate.n as f64, n + rate.n));
        rate(k.round() as u64, n)
    };
    // A teacher who teaches several runs is one teacher.
    let mut teachers: Vec<TeacherId> = efforts
        .iter()
        .zip(runs)
        .filter(|(_, run)| run.outcome.teachers > 0)
        .flat_map(|(taught, _)| taught.efforts.iter().map(|effort| effort.teacher))
        .collect();
    teachers.sort_unstable();
    teachers.dedup();
    Outcome {
        teachers: teachers.len() as u64,
        responses: sum(|o| o.responses),
        given: sum(|o| o.given),
        active_minutes: runs.iter().map(|run| run.outcome.active_minutes).sum(),
        untimed: sum(|o| o.untimed),
        before: rates(|o| o.before).and_then(|rates| mean_rate(&rates)),
        now: rates(|o| o.now).and_then(|rates| mean_rate(&rates)),
        gain: interval(|o| o.gain.map(|gain| gain.value)),
        gain_per_minute: interval(|o| o.gain_per_minute.map(|gain| gain.value)),
        gain_per_ten_responses: interval(|o| o.gain_per_ten_responses.map(|gain| gain.value)),
        understood: told.and_then(|told| {
            let shares: Vec<Rate> = told.iter().map(|one| one.share).collect();
            Some(Understood {
                share: mean_rate(&shares)?,
                first_half: half(|one| one.first_half, &told),
                second_half: half(|one| one.second_half, &told),
            })
        }),
        simulated: runs.iter().any(|run| run.outcome.simulated),
    }
}

/// A curve over one kind of effort.
fn curve(runs: &[RunOutcome], effort: fn(&EffortPoint) -> f64) -> Vec<CurvePoint> {
    // Of several evaluations after the same effort the last counts.
    let steps = |run: &RunOutcome| {
        let mut steps: Vec<(f64, Rate)> = Vec::new();
        for point in &run.points {
            let x = effort(point);
            if steps.last().is_some_and(|(last, _)| *last >= x) {
                steps.pop();
            }
            steps.push((x, point.validation));
        }
        steps
    };
    let all: Vec<Vec<(f64, Rate)>> = runs.iter().map(steps).collect();
    let [first, rest @ ..] = all.as_slice() else { return Vec::new() };
    if rest.is_empty() {
        let wilson = |&(x, Rate { value, low, high, .. }): &(f64, Rate)| CurvePoint {
            x,
            success: Interval { value, low, high },
        };
        return first.iter().map(wilson).collect();
    }
    // Means are drawn as far as every run reaches.
    let Some(end) = all.iter().map(|run| run.last().map(|(x, _)| *x)).collect::<Option<Vec<f64>>>() else {
        return Vec::new();
    };
    let end = end.into_iter().fold(f64::INFINITY, f64::min);
    let mut places: Vec<f64> = all.iter().flatten().map(|(x, _)| *x).filter(|x| *x <= end).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let at = |run: &[(f64, Rate)], x: f64| run.iter().rfind(|(at, _)| *at <= x).map(|(_, rate)| rate.value);
    let means = thinned(&places, MOST_POINTS).into_iter().filter_map(|x| {
        let values: Option<Vec<f64>> = all.iter().map(|run| at(run, x)).collect();
        Some(CurvePoint { x, success: mean(&values?)?.within(0.0, 1.0) })
    });
    means.collect()
}

/// Compares runs. Those of one name become one condition.
pub fn compare(taught: &[TaughtRun]) -> Comparison {
    let mut names: Vec<&str> = Vec::new();
    for run in taught {
        if !names.contains(&run.condition.as_str()) {
            names.push(&run.condition);
        }
    }
    let conditions = names.into_iter().map(|name| {
        let own: Vec<&TaughtRun> = taught.iter().filter(|run| run.condition == name).collect();
        let runs: Vec<RunOutcome> = own.iter().map(|run| outcome_of(run)).collect();
        Condition {
            name: name.to_owned(),
            outcome: pooled(&runs, &own),
            curves: Curves {
                active_minutes: curve(&runs, |point| point.active_minutes),
                responses: curve(&runs, |point| point.responses as f64),
                updates: curve(&runs, |point| point.updates as f64),
            },
            runs,
        }
    });
    Comparison { conditions: conditions.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(update: impl Into<Option<u64>>, teacher: i64, responses: u64, active_ms: u64) -> Effort {
        Effort { update: update.into(), teacher: TeacherId(teacher), responses, active_ms, untimed: 0 }
    }

    /// 10 of 100 before; two teachers give 30 responses in six minutes; 40 of 100 after them.
    fn taught() -> TaughtRun {
        TaughtRun {
            condition: "descriptions".into(),
            evaluations: vec![(0, rate(5, 100)), (2, rate(10, 100)), (5, rate(30, 100)), (8, rate(40, 100))],
            efforts: vec![
                effort(3, 1, 8, 90_000),
                effort(4, 2, 2, 30_000),
                effort(7, 1, 10, 120_000),
                effort(8, 2, 10, 120_000),
                effort(9, 2, 4, 60_000),
                effort(None, 1, 1, 5_000),
            ],
            ..TaughtRun::default()
        }
    }

    #[test]
    fn effort_is_counted_between_the_two_evaluations_of_the_gain() {
        let outcome = outcome_of(&taught());
        let seen: Vec<_> = outcome.points.iter().map(|p| (p.updates, p.responses, p.active_minutes)).collect();
        assert_eq!(seen, [(0, 0, 0.0), (3, 10, 2.0), (6, 30, 6.0)]);
        let found = &outcome.outcome;
        assert_eq!((found.teachers, found.responses, found.given, found.active_minutes), (2, 30, 35, 6.0));
        assert_eq!((found.before, found.now), (Some(rate(10, 100)), Some(rate(40, 100))));
        let gain = found.gain.unwrap();
        assert_eq!(gain, difference(&rate(10, 100), &rate(40, 100)).unwrap());
        assert!((gain.value - 0.3).abs() < 1e-12);
        let ten = found.gain_per_ten_responses.unwrap();
        assert!((ten.value - 0.1).abs() < 1e-12 && (ten.low - gain.low / 3.0).abs() < 1e-12);
        // The teachers' paces differ (11.67 and 12.5 s), so that the interval is wider than that of the gain alone.
        let minute = found.gain_per_minute.unwrap();
        assert!((minute.value - 0.05).abs() < 1e-12 && minute.low < gain.low / 6.0 && minute.high > gain.high / 6.0);
        assert!(minute.low > gain.low / 6.3 && minute.high < gain.high / 5.8, "{minute:?} of {gain:?}");
    }

    #[test]
    fn one_teacher_leaves_the_interval_of_the_gain() {
        let mut run = taught();
        run.efforts.iter_mut().for_each(|effort| effort.teacher = TeacherId(1));
        let found = outcome_of(&run).outcome;
        let (gain, minute) = (found.gain.unwrap(), found.gain_per_minute.unwrap());
        assert!((minute.low - gain.low / 6.0).abs() < 1e-12 && (minute.high - gain.high / 6.0).abs() < 1e-12);
    }

    #[test]
    fn who_has_given_nothing_yet_has_no_gain() {
        let mut run = taught();
        run.efforts.clear();
        let found = outcome_of(&run);
        assert_eq!((found.points.len(), found.outcome.gain, found.outcome.responses), (1, None, 0));
        assert_eq!(found.outcome.before, found.outcome.now);
        run.evaluations.clear();
        assert_eq!(outcome_of(&run).outcome, Outcome::default());
        // Without an evaluation before the first response the first one there is stands for it.
        let mut run = taught();
        run.evaluations.drain(..2);
        let found = outcome_of(&run).outcome;
        assert_eq!((found.before.unwrap().n, found.responses, found.active_minutes), (100, 20, 4.0));
    }

    #[test]
    fn runs_of_one_name_are_one_condition() {
        let mut second = taught();
        second.evaluations = vec![(2, rate(20, 100)), (8, rate(60, 100))];
        let other = TaughtRun { condition: "ratings".into(), ..TaughtRun::default() };
        let found = compare(&[taught(), other, second]);
        assert_eq!(found.conditions.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["descriptions", "ratings"]);
        let both = &found.conditions[0];
        assert_eq!((both.runs.len(), both.outcome.teachers, both.outcome.responses), (2, 2, 60));
        let gain = both.outcome.gain.unwrap();
        assert!((gain.value - 0.35).abs() < 1e-9 && (gain.high - gain.value - 12.706 * 0.05).abs() < 1e-9, "{gain:?}");
        assert_eq!(both.outcome.now.map(|now| (now.value, now.n)), Some((0.5, 200)));
        // The mean is drawn where either run was evaluated: 0.1 and 0.2, 0.3 and 0.2, 0.4 and 0.6.
        let curve: Vec<_> = both.curves.responses.iter().map(|p| (p.x, (p.success.value * 100.0).round())).collect();
        assert_eq!(curve, [(0.0, 15.0), (10.0, 25.0), (30.0, 50.0)]);
        assert_eq!(found.conditions[1].outcome, Outcome::default());
    }

    #[test]
    fn understanding_is_drawn_by_teacher() {
        let reading = |teacher, first, second| TeacherReadings { teacher: TeacherId(teacher), first, second };
        let one = understood(&[reading(1, (10, 2), (10, 8))]).unwrap();
        assert_eq!((one.share, one.first_half, one.second_half), (rate(10, 20), rate(2, 10), rate(8, 10)));
        // Two teachers, one always understood and one never: the interval is all that there can be.
        let two = understood(&[reading(1, (5, 5), (5, 5)), reading(2, (5, 0), (5, 0))]).unwrap();
        assert_eq!((two.share.value, two.share.low, two.share.high), (0.5, 0.0, 1.0));
        // Where teachers do not differ it is Wilson's.
        assert_eq!(understood(&[reading(1, (5, 5), (0, 0)), reading(2, (5, 5), (0, 0))]).unwrap().share, rate(10, 10));
        assert_eq!(understood(&[reading(1, (0, 0), (0, 0))]), None);
    }

    #[test]
    fn a_simulated_teacher_is_told_and_long_curves_are_thinned() {
        let mut run = taught();
        run.simulated_until = Some(2);
        assert!(!outcome_of(&run).outcome.simulated);
        run.simulated_until = Some(3);
        assert!(outcome_of(&run).outcome.simulated);
        run.evaluations = (0..5000).map(|update| (update, rate(update / 50, 100))).collect();
        let points = outcome_of(&run).points;
        assert_eq!((points.len(), points[0].update, points[MOST_POINTS - 1].update), (MOST_POINTS, 2, 4999));
    }
}
