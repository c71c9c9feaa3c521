//! A run's log in plain sentences. The trainer tells what is out of the ordinary itself; what its other events amount to
//! (it began, it was paused, it was tested) is put into words here, for the kept log and for open pages alike.

use super::page;
use crate::config::run::TeacherMode;
use crate::run::{Event, RunState, Status};

/// What was told so far, as far as the next sentence depends on it.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    before: Option<(RunState, TeacherMode)>,
}

impl Chronicle {
    /// A chronicle that has told everything up to `status`.
    pub(super) fn from(status: &Status) -> Chronicle {
        Chronicle { before: Some((status.state.clone(), status.teacher)) }
    }

    /// The sentences of an event, most often none.
    pub(super) fn lines(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Log { message } => vec![message.clone()],
            Event::Status(status) => self.status(status),
            Event::Point(point) => point
                .validation
                .iter()
                .map(|rate| {
                    let after = page::counted(&point.episodes, "episode");
                    format!("Tested after {after}: {} validation requests right.", page::rate(rate))
                })
                .collect(),
            Event::Checkpoint(_) | Event::Episode(_) => Vec::new(),
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
            (RunState::Running, Some(RunState::Paused)) => lines.push("Learning goes on.".to_owned()),
            (RunState::Running, _) => {
                lines.push(format!("Learning begins at update {}, on {}.", page::count(&status.update), status.device));
            }
            (RunState::Paused, _) => lines.push(format!("Paused after update {}.", page::count(&status.update))),
            (RunState::Stopped, _) => lines.push(format!("Ended after update {}.", page::count(&status.update))),
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
        })
    }

    #[test]
    fn changes_are_told_once() {
        let warming = |done| RunState::Starting { what: "Warming up".into(), done };
        let (people, simulated) = (TeacherMode::Human, TeacherMode::Simulated);
        let mut chronicle = Chronicle::default();
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
        .flat_map(|event| chronicle.lines(event))
        .collect();
        assert_eq!(
            told,
            [
                "Warming up.",
                "Learning begins at update 12, on cpu.",
                "Paused after update 12.",
                "From here on the simulated teacher describes everything.",
                "Something odd.",
                "Learning goes on.",
                "No room.",
            ]
        );
    }

    #[test]
    fn a_page_that_opens_later_is_not_told_again() {
        let Event::Status(now) = status(RunState::Running, TeacherMode::Human) else { unreachable!() };
        let mut chronicle = Chronicle::from(&now);
        assert!(chronicle.lines(&Event::Status(now.clone())).is_empty());
        let mixed = status(RunState::Running, TeacherMode::Mixed { share: 0.25 });
        assert_eq!(chronicle.lines(&mixed), ["From here on 25% of the executions are offered to people first."]);
        let rate = Rate { value: 0.5, n: 200, low: 0.4, high: 0.6 };
        let point = Event::Point(Point { episodes: 1280, validation: Some(rate), ..Point::default() });
        assert_eq!(chronicle.lines(&point), ["Tested after 1,280 episodes: 50.0% of 200 validation requests right."]);
        assert!(chronicle.lines(&Event::Point(Point::default())).is_empty());
    }
}
