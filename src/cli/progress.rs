//! Progress bars on the standard error stream. They are hidden when it is no terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Positions of a full bar.
pub(super) const FULL: u64 = 1000;

/// A bar that shows the share done, the time spent and a message.
pub(super) fn bar() -> ProgressBar {
    let bar = ProgressBar::new(FULL);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {elapsed}  {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Shows on `bar` the stage that is under way and the share done of it, from 0 to 1.
pub(super) fn show(bar: &ProgressBar, stage: &str, share: f64) {
    bar.set_position((FULL as f64 * share) as u64);
    bar.set_message(stage.to_owned());
}
