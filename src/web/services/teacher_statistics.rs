//! Figures and small curves about one teacher of a study, for the page of a participant.

use crate::store::{AnswerKind, StudyAnswer};
use time::OffsetDateTime;

/// Bars of the drawing of answers over time.
const BARS: usize = 24;
/// Width and height of the drawings.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 56.0;
/// Readings that a point of the curve is a mean of, at most.
const WINDOW: usize = 10;

/// A bar of a drawing.
#[derive(Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) width: String,
    pub(crate) height: String,
}

/// Figures about the answers of a teacher.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TeacherStatistics {
    /// Answers by kind, with the words for each; kinds without answers are left out.
    pub(crate) kinds: Vec<(&'static str, u64)>,
    /// Median active seconds of an answer.
    pub(crate) median_seconds: Option<f64>,
    /// Answers over the time between the first and the last.
    pub(crate) bars: Vec<Bar>,
    /// The largest number of answers in a bar.
    pub(crate) most: u64,
    /// When the first and the last were stored.
    pub(crate) span: Option<(OffsetDateTime, OffsetDateTime)>,
    /// Points of the curve of descriptions that the agent understood before it was told; empty with fewer than two.
    pub(crate) curve: String,
    /// Of the descriptions carried out, those that the agent understood, and how many there are.
    pub(crate) understood: (u64, u64),
    /// Answers that were retracted, accepted and rejected.
    pub(crate) retracted: u64,
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
}

/// The middle of some numbers.
fn median(mut numbers: Vec<u64>) -> Option<f64> {
    numbers.sort_unstable();
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        n if n % 2 == 1 => Some(numbers[middle] as f64),
        _ => Some((numbers[middle - 1] + numbers[middle]) as f64 / 2.0),
    }
}

fn bars(answers: &[&StudyAnswer]) -> (Vec<Bar>, u64) {
    let (Some(first), Some(last)) = (answers.first(), answers.last()) else { return (Vec::new(), 0) };
    let whole = (last.created_at - first.created_at).as_seconds_f64().max(1.0);
    let mut counts = [0u64; BARS];
    for answer in answers {
        let share = (answer.created_at - first.created_at).as_seconds_f64() / whole;
        counts[((share * BARS as f64) as usize).min(BARS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let step = WIDTH / BARS as f64;
    let drawn = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| {
        let height = HEIGHT * *count as f64 / most as f64;
        Bar {
            x: format!("{:.1}", at as f64 * step + 1.0),
            y: format!("{:.1}", HEIGHT - height),
            width: format!("{:.1}", step - 2.0),
            height: format!("{height:.1}"),
        }
    });
    (drawn.collect(), most)
}

fn curve(readings: &[bool]) -> String {
    if readings.len() < 2 {
        return String::new();
    }
    let last = readings.len() - 1;
    let point = |at: usize| {
        let window = &readings[at.saturating_sub(WINDOW - 1)..=at];
        let share = window.iter().filter(|understood| **understood).count() as f64 / window.len() as f64;
        format!("{:.1},{:.1}", WIDTH * at as f64 / last as f64, HEIGHT - 2.0 - (HEIGHT - 4.0) * share)
    };
    (0..=last).map(point).collect::<Vec<_>>().join(" ")
}

impl TeacherStatistics {
    /// The figures of a teacher's standing answers, oldest first.
    pub(crate) fn of(answers: &[&StudyAnswer]) -> TeacherStatistics {
        let count = |what: &dyn Fn(&StudyAnswer) -> bool| answers.iter().filter(|answer| what(answer)).count() as u64;
        let of_kind = |kind: AnswerKind| count(&|answer| answer.kind == kind && !answer.fulfilled);
        let kinds = [
            ("descriptions", of_kind(AnswerKind::Described)),
            ("“It did what was asked”", count(&|answer| answer.fulfilled)),
            ("“Nothing changed”", of_kind(AnswerKind::NothingChanged)),
            ("“I can’t describe this”", of_kind(AnswerKind::CannotDescribe)),
            ("skips", of_kind(AnswerKind::Skipped)),
        ];
        let given: Vec<&StudyAnswer> =
            answers.iter().copied().filter(|answer| answer.kind != AnswerKind::Skipped).collect();
        let readings: Vec<bool> = answers.iter().filter_map(|answer| answer.understood_before).collect();
        let (bars, most) = bars(&given);
        let reviewed = |word: &'static str| {
            count(&|answer| answer.review.as_ref().is_some_and(|review| review.state.as_str() == word))
        };
        TeacherStatistics {
            kinds: kinds.into_iter().filter(|(_, count)| *count > 0).collect(),
            median_seconds: median(given.iter().filter_map(|answer| answer.active_ms).collect()).map(|ms| ms / 1000.0),
            bars,
            most,
            span: given.first().zip(given.last()).map(|(first, last)| (first.created_at, last.created_at)),
            curve: curve(&readings),
            understood: (readings.iter().filter(|understood| **understood).count() as u64, readings.len() as u64),
            retracted: count(&|answer| answer.retracted),
            accepted: reviewed("accepted"),
            rejected: reviewed("rejected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AnswerId, ExecutionId, TeacherId};

    fn answer(key: i64, kind: AnswerKind, seconds: i64) -> StudyAnswer {
        StudyAnswer {
            answer: AnswerId(key),
            run: "r".into(),
            execution: ExecutionId(key),
            teacher: TeacherId(1),
            number: 1,
            kind,
            text: String::new(),
            demonstrated: false,
            rating: None,
            fulfilled: false,
            request: String::new(),
            request_shown: false,
            summary: String::new(),
            active_ms: Some(1000 * key as u64),
            created_at: OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(seconds),
            used_in_update: None,
            understood_before: Some(key % 2 == 0),
            retracted: false,
            review: None,
        }
    }

    #[test]
    fn figures_are_those_of_the_answers() {
        let given = [
            answer(1, AnswerKind::Described, 0),
            answer(2, AnswerKind::Described, 10),
            answer(3, AnswerKind::CannotDescribe, 20),
            answer(8, AnswerKind::Skipped, 30),
        ];
        let all: Vec<&StudyAnswer> = given.iter().collect();
        let found = TeacherStatistics::of(&all);
        assert_eq!(found.kinds, [("descriptions", 2), ("“I can’t describe this”", 1), ("skips", 1)]);
        assert_eq!(found.median_seconds, Some(2.0), "skips are no answers");
        assert_eq!((found.bars.len(), found.most, found.understood), (3, 1, (2, 4)));
        assert_eq!(found.bars[0], Bar { x: "1.0".into(), y: "0.0".into(), width: "8.0".into(), height: "56.0".into() });
        assert_eq!(found.curve, "0.0,54.0 80.0,28.0 160.0,36.7 240.0,28.0");
        assert_eq!(TeacherStatistics::of(&[]), TeacherStatistics::default());
        assert_eq!((median(vec![4, 1]), median(vec![])), (Some(2.5), None));
    }
}
