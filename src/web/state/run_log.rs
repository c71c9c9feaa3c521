//! The log of a run in plain sentences. The trainer reports unusual events itself; the run log puts its other events (it
//! began, it was paused, it was tested) into words, for the kept log and for open pages alike.

use crate::config::run::TeacherMode;
use crate::run::{Event, RunState, Status};
use crate::web::format;
use std::collections::VecDeque;
use time::OffsetDateTime;

/// Lines kept of each run for people who open the dashboard later.
const KEPT_LINES: usize = 200;

/// A line of a run's log.
#[derive(Clone, Debug, serde::Serialize, utoipa::ToSchema)]
pub struct LogLine {
    /// When the line was written.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The sentence.
    pub message: String,
}

/// The last lines of a run's log.
#[derive(Default)]
pub(crate) struct RunLog {
    lines: VecDeque<LogLine>,
    writer: LogWriter,
}

impl RunLog {
    /// Appends the sentences of an event, and drops the oldest lines beyond the number that is kept.
    pub(crate) fn append(&mut self, event: &Event) {
        for message in self.writer.lines(event) {
            self.lines.push_back(LogLine { at: OffsetDateTime::now_utc(), message });
            if self.lines.len() > KEPT_LINES {
                self.lines.pop_front();
            }
        }
    }

    /// The kept lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.lines.iter().cloned().collect()
    }
}

/// Turns events into sentences. It remembers the last state and teacher, so that nothing is written twice.
#[derive(Debug, Default)]
pub(crate) struct LogWriter {
    before: Option<(RunState, TeacherMode)>,
}

impl LogWriter {
    /// A writer that continues after `status`.
    pub(crate) fn from(status: &Status) -> LogWriter {
        LogWriter { before: Some((status.state.clone(), status.teacher)) }
    }

    /// The sentences of an event; most events have none.
    pub(crate) fn lines(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Log { message } => vec![message.clone()],
            Event::Status(status) => self.status(status),
            Event::Point(point) => point
                .validation
                .iter()
                .map(|rate| {
                    let after = format::counted(&point.episodes, "episode");
                    format!("Tested after {after}: {} validation requests right.", format::rate(rate))
                })
                .collect(),
            Event::Checkpoint(_) | Event::Episode(_) | Event::Comprehension(_) | Event::Evaluating { .. } => Vec::new(),
        }
    }

    fn status(&mut self, status: &Status) -> Vec<String> {
        let before = self.before.replace((status.state.clone(), status.teacher));
        let (state, teacher) = before.map_or((None, None), |(state, teacher)| (Some(state), Some(teacher)));
        let mut lines = Vec::new();
        match (&status.state, &state) {
            (RunState::Starting { what, .. }, Some(RunState::Starting { what: told, .. })) if what == told => {}
            (RunState::Starting { what, .. }, _) => lines.push(format!("{what}.")),
            (now, Some(told)) if now == told => {}
            (RunState::Running, Some(RunState::Paused)) => lines.push("Learning resumed.".to_owned()),
            (RunState::Running, _) => {
                lines.push(format!(
                    "Learning begins at update {}, on {}.",
                    format::count(&status.update),
                    status.device
                ));
            }
            (RunState::Paused, _) => lines.push(format!("Paused after update {}.", format::count(&status.update))),
            (RunState::Stopped, _) => lines.push(format!("Ended after update {}.", format::count(&status.update))),
            (RunState::Failed { message }, _) => lines.push(message.clone()),
        }
        if teacher.is_some_and(|told| told != status.teacher) {
            lines.push(match status.teacher {
                TeacherMode::Human => "From here on people teach.".to_owned(),
                TeacherMode::Simulated => "From here on the simulated teacher describes everything.".to_owned(),
                TeacherMode::Mixed { share } => {
                    format!("From here on {:.0}% of the executions are offered to people first.", share * 100.0)
                }
            });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Rate;
    use crate::run::Point;

    fn status(state: RunState, teacher: TeacherMode) -> Event {
        Event::Status(Status {
            run: "r".into(),
            state,
            teacher,
            simulated_available: true,
            device: "cpu".into(),
            update: 12,
            episodes: 0,
            descriptions_human: 0,
            descriptions_simulated: 0,
            lambda: 0.5,
            episodes_per_second: 0.0,
            validation: None,
            best_validation: None,
            seconds: 0.0,
            spare_words: None,
            practice: 0,
        })
    }

    #[test]
    fn changes_are_told_once() {
        let warming = |done| RunState::Starting { what: "Warming up".into(), done, seconds_left: None };
        let (people, simulated) = (TeacherMode::Human, TeacherMode::Simulated);
        let mut writer = LogWriter::default();
        let told: Vec<String> = [
            status(warming(None), people),
            status(warming(Some(0.5)), people),
            status(RunState::Running, people),
            status(RunState::Running, people),
            status(RunState::Paused, simulated),
            Event::Log { message: "Something odd.".into() },
            status(RunState::Running, simulated),
            status(RunState::Failed { message: "No room.".into() }, simulated),
        ]
        .iter()
        .flat_map(|event| writer.lines(event))
        .collect();
        assert_eq!(
            told,
            [
                "Warming up.",
                "Learning begins at update 12, on cpu.",
                "Paused after update 12.",
                "From here on the simulated teacher describes everything.",
                "Something odd.",
                "Learning resumed.",
                "No room.",
            ]
        );
    }

    #[test]
    fn a_page_that_opens_later_is_not_told_again() {
        let Event::Status(now) = status(RunState::Running, TeacherMode::Human) else { unreachable!() };
        let mut writer = LogWriter::from(&now);
        assert!(writer.lines(&Event::Status(now.clone())).is_empty());
        let mixed = status(RunState::Running, TeacherMode::Mixed { share: 0.25 });
        assert_eq!(writer.lines(&mixed), ["From here on 25% of the executions are offered to people first."]);
        let rate = Rate { value: 0.5, n: 200, low: 0.4, high: 0.6 };
        let point = Event::Point(Point { episodes: 1280, validation: Some(rate), ..Point::default() });
        assert_eq!(writer.lines(&point), ["Tested after 1,280 episodes: 50.0% of 200 validation requests right."]);
        assert!(writer.lines(&Event::Point(Point::default())).is_empty());
    }
}
