//! How far a command of a family is, on the standard error stream; nothing where that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A part of a command's work, told again and again while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The part, in plain words: "Reading the houses".
    pub what: &'static str,
    /// How much of it is done, in units of its own.
    pub done: u64,
    /// How much there is; 0 where nobody knows.
    pub of: u64,
}

/// Receives the steps of some work.
pub type Told<'a> = &'a dyn Fn(Step);

/// Does some work behind a bar that shows its step, the step's share and the time it has left.
pub fn behind_a_bar<T>(work: impl FnOnce(Told<'_>) -> T) -> T {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {elapsed}, {eta} left  {wide_msg}");
    let bar = ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    // The time goes on while a step says nothing.
    bar.enable_steady_tick(Duration::from_secs(1));
    let done = work(&|step: Step| {
        if bar.message() != step.what {
            bar.set_message(step.what);
            bar.reset_eta();
        }
        match step.of {
            0 => bar.unset_length(),
            of => bar.set_length(of),
        }
        bar.set_position(step.done);
    });
    bar.finish_and_clear();
    done
}
