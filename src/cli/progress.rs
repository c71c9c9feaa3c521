//! Progress bars on the standard error stream. They are hidden when it is no terminal.

use crate::import::Reading;
use crate::protocol::Split;
use crate::run::{remaining, seconds_left};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::time::Duration;

/// Positions of a full bar.
pub(super) const FULL: u64 = 1000;

/// A bar that shows the share done, the time spent and a message.
pub(super) fn bar() -> ProgressBar {
    let bar = ProgressBar::new(FULL);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {elapsed}{left}  {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left));
    // The time goes on while a long part says nothing.
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// A bar for the reading of a file, of which [`reading`] tells.
pub(super) fn file() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {elapsed}{left}  {wide_msg}");
    let bar = ProgressBar::no_length();
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", rest));
    bar
}

/// A bar of rows; it counts them where their number is not known.
pub(super) fn rows() -> ProgressBar {
    let bar = ProgressBar::no_length();
    let style = ProgressStyle::with_template("{bar:30} {human_pos}{of} rows  {elapsed}{left}");
    let of = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        if let Some(all) = state.len() {
            let _ = write!(text, " of {}", HumanCount(all));
        }
    };
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", rest).with_key("of", of));
    bar
}

/// A bar of bytes.
pub(super) fn bytes() -> ProgressBar {
    let bar = ProgressBar::no_length();
    let style = ProgressStyle::with_template("{bar:30} {decimal_bytes} of {decimal_total_bytes}  {elapsed}{left}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", rest));
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// Shows on `bar` how many bytes of all are done.
pub(super) fn shown(bar: &ProgressBar) -> impl Fn(u64, u64) + use<'_> {
    |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    }
}

/// Time after which there is a pace to judge by.
const JUDGED_AFTER: Duration = Duration::from_secs(3);

/// Writes how long the rest takes, once there is a pace to judge by.
fn left(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let eta = state.eta();
    if state.pos() > 0 && !eta.is_zero() && state.elapsed() >= JUDGED_AFTER {
        let _ = write!(text, ", {} left", HumanDuration(eta));
    }
}

/// Writes how long the rest takes at the pace of the whole, for work that goes on evenly.
fn rest(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    if let Some(all) = state.len().filter(|_| state.elapsed() >= JUDGED_EARLY) {
        let _ = text.write_str(&remaining(seconds_left(state.elapsed(), state.pos(), all)));
    }
}

/// Time after which even work has a pace.
const JUDGED_EARLY: Duration = Duration::from_millis(500);

/// Shows on `bar` how many tasks of an evaluation are done.
pub(super) fn show_tasks(bar: &ProgressBar, what: &str, done: u64, tasks: u64) {
    bar.set_length(tasks.max(1));
    bar.set_position(done);
    bar.set_message(format!("{done} of {tasks} {what}"));
}

/// Shows on `bar` how far the reading of a file of rows is.
pub(super) fn reading(bar: &ProgressBar, Reading { rows, bytes, of }: Reading) {
    bar.set_length(of);
    bar.set_position(bytes);
    // Each message is a text of its own, and a bar is drawn twenty times a second at most.
    if rows.is_multiple_of(500) {
        bar.set_message(format!("{} rows read", HumanCount(rows)));
    }
}

/// Shows on `bar` the stage that is under way and the share done of it, from 0 to 1.
pub(super) fn show(bar: &ProgressBar, stage: &str, share: f64) {
    bar.set_length(FULL);
    bar.set_position((FULL as f64 * share) as u64);
    bar.set_message(stage.to_owned());
}

/// Shows on `bar` how far the loading of a run is. The time that is left is the loading's own reading, which knows of the steps that follow.
pub(super) fn loading(bar: &ProgressBar, step: &str, done: Option<f64>, seconds_left: Option<f64>) {
    show(bar, step, done.unwrap_or(0.0));
    bar.set_message(format!("{step}{}", remaining(seconds_left)));
    bar.reset_eta();
}

/// The words for a test of the agent that is under way.
pub(super) fn testing(split: Split, done: u64, of: u64, seconds_left: Option<f64>) -> String {
    let left =
        seconds_left.map(|seconds| format!(", {} left", HumanDuration(Duration::from_secs(seconds.round() as u64))));
    let tasks = match split {
        Split::Train => "training",
        Split::Validation => "validation",
        Split::Test => "test",
    };
    format!("testing the agent: {done} of {of} {tasks} tasks{}", left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_says_how_far_it_is_and_how_long_it_takes() {
        assert_eq!(testing(Split::Test, 0, 500, None), "testing the agent: 0 of 500 test tasks");
        let later = testing(Split::Validation, 256, 500, Some(11.7));
        assert_eq!(later, "testing the agent: 256 of 500 validation tasks, 12 seconds left");
    }
}
